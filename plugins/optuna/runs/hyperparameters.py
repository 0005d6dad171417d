"""Two small searches for hyperparameters on data that scikit-learn ships."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import optuna
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

EPOCHS = 6


def svc_error(params: Mapping[str, Any]) -> dict[str, float]:
    """Mean error of three folds; that of the worst fold is kept beside it."""
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC(**params))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(model, X, y, cv=folds)
    return {"value": 1.0 - float(scores.mean()), "worst_fold": 1.0 - float(scores.min())}


@cache
def _digits() -> list[np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return list(train_test_split(X / 16.0, y, test_size=0.3, random_state=0, stratify=y))


def sgd_accuracy(trial: optuna.Trial) -> float:
    """Accuracy on held-out digits after some epochs of stochastic gradient descent."""
    X, X_test, y, y_test = _digits()
    model = SGDClassifier(
        loss=trial.suggest_categorical("loss", ["log_loss", "hinge"]),
        alpha=trial.suggest_float("alpha", 1e-6, 1.0, log=True),
        learning_rate="constant",
        eta0=trial.suggest_float("eta0", 1e-3, 10.0, log=True),
        random_state=0,
    )
    accuracy = 0.0
    for epoch in range(EPOCHS):
        model.partial_fit(X, y, classes=np.arange(10))
        accuracy = float(model.score(X_test, y_test))
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy

"""Logistic regression on breast_cancer with a penalty, both of which only tell their values."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer

from infimum import Composite
from infimum.functions import Function

PENALTY, LARGEST = 0.02, 5


def problem() -> Composite:
    """The loss plus `PENALTY` times the sum of the `LARGEST` largest |w_i|; 30 standardized measurements."""
    X, y = load_breast_cancer(return_X_y=True)
    A = (2.0 * y - 1.0)[:, None] * (X - X.mean(axis=0)) / X.std(axis=0)
    rows, columns = A.shape

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -A @ w).mean())

    def losses(W: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -W @ A.T).mean(axis=1)

    def penalty(w: np.ndarray) -> float:
        return PENALTY * float(np.sort(np.abs(w))[-LARGEST:].sum())

    def penalties(W: np.ndarray) -> np.ndarray:
        return PENALTY * np.sort(np.abs(W), axis=1)[:, -LARGEST:].sum(axis=1)

    lipschitz = float(np.linalg.norm(A, 2) ** 2 / (4.0 * rows))
    terms = {
        "loss": Function(loss, values=losses, convex=True, lipschitz=lipschitz, shape=(columns,)),
        "penalty": Function(penalty, values=penalties, convex=True, shape=(columns,)),
    }
    return Composite(terms, start=np.zeros(columns), name="logistic regression by values")

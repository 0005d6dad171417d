"""Extremely randomized trees on digits: the error and the seconds that the fit took."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

X, y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(y))
TRAIN, TEST = ORDER[:1200], ORDER[1200:]


def error(params: dict[str, Any]) -> dict[str, float]:
    """Validation error (%) of one setting, and its cost in CPU seconds."""
    trees = ExtraTreesClassifier(**params, random_state=0, n_jobs=1)
    began = time.process_time()
    trees.fit(X[TRAIN], y[TRAIN])
    return {"value": 100.0 * (1.0 - trees.score(X[TEST], y[TEST])), "cost": time.process_time() - began}

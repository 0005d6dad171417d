"""The spread of the digits in a subspace, as a function of which nothing but values is known."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

PIXELS = load_digits().data - load_digits().data.mean(axis=0)
PIXELS = PIXELS / np.linalg.norm(PIXELS, 2)
start = np.linalg.qr(np.random.default_rng(7).standard_normal((64, 4)))[0].T
"""Four orthonormal rows, shape (4, 64)."""


def spread(x: np.ndarray) -> float:
    """Minus half of the squared norm of the pictures in the subspace, over that of the largest component."""
    return -0.5 * float(((PIXELS @ x.T) ** 2).sum())

"""The limit operator of many samples, where it has a closed form: what the estimator converges to at a fixed delta."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from infimum_hjprox.checks import positive

_ROOT = float(np.sqrt(2.0 / np.pi))


def _hazard(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """phi(u) / Phi(u), without underflow for very negative u."""
    return np.asarray(_ROOT / erfcx(-u / np.sqrt(2.0)))


def nonnegative_limit(x: NDArray[np.float64], t: float, delta: float) -> NDArray[np.float64]:
    """Limit operator of the indicator of x >= 0, by coordinate: `x + s phi(u)/Phi(u)`, `s = sqrt(delta t)`, `u = x/s`.

    Parameters
    ----------
    x : array
        Points, any shape.
    t, delta : float
        Step and smoothing, above 0.

    Returns
    -------
    array
        Like x.
    """
    s = np.sqrt(positive(delta, "delta", "nonnegative_limit") * positive(t, "t", "nonnegative_limit"))
    x = np.asarray(x, dtype=float)
    return np.asarray(x + s * _hazard(x / s))


def l1_limit(x: NDArray[np.float64], t: float, delta: float, weight: float = 1.0) -> NDArray[np.float64]:
    """Limit operator of `weight * ||x||_1`, by coordinate: a mixture of two truncated normals, in log space.

    Parameters
    ----------
    x : array
        Points, any shape.
    t, delta : float
        Step and smoothing, above 0.
    weight : float, default 1
        Above 0.

    Returns
    -------
    array
        Like x.
    """
    name = "l1_limit"
    t, delta, weight = positive(t, "t", name), positive(delta, "delta", name), positive(weight, "weight", name)
    s, x = np.sqrt(delta * t), np.asarray(x, dtype=float)
    right, left = x - t * weight, -x - t * weight
    # exp(-(y - x)^2/(2 s^2) - weight |y|/delta) is a normal around x -+ t weight on either side of 0.
    positive_part, negative_part = log_ndtr(right / s) - x * weight / delta, log_ndtr(left / s) + x * weight / delta
    whole = np.logaddexp(positive_part, negative_part)
    mean, mirrored = nonnegative_limit(right, t, delta), nonnegative_limit(left, t, delta)
    return np.asarray(np.exp(positive_part - whole) * mean - np.exp(negative_part - whole) * mirrored)

"""Subproblems of smooth blocks: elementwise Newton, and L-BFGS where entries are coupled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Call = Callable[..., np.ndarray]

STEPS = 100
EXACT = 4.0 * float(np.finfo(float).eps)


def elementwise(gradient: Call, curvatures: Call, x: np.ndarray, pull: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """The z near x with `f'(z) + pull + metric * (z - x) = 0` entry by entry.

    Newton's step where it stays between the points at which the left side was last seen negative and positive, else
    half of that interval: a minimizer is found also where f is not convex.

    Parameters
    ----------
    gradient, curvatures : callable
        f' and f'' of all entries.
    x, pull, metric : array, shape (n,)
        With `metric > 0`.
    """
    z = x.copy()
    low = high = None
    for _ in range(STEPS):
        slope, bend = gradient(z), curvatures(z) + metric
        moved = metric * (z - x)
        defect = slope + pull + moved
        # What rounding leaves of the sum, and of z itself.
        scale = np.abs(slope) + np.abs(pull) + np.abs(moved) + (np.abs(bend) + metric) * np.abs(z)
        done = np.abs(defect) <= EXACT * scale
        if done.all():
            break
        if low is None or high is None:
            low, high = np.full_like(x, -np.inf), np.full_like(x, np.inf)
        low, high = np.where(defect < 0, z, low), np.where(defect > 0, z, high)
        ahead = z - defect / np.where(bend > 0.1 * metric, bend, metric)
        inside = done | ((ahead > low) & (ahead < high))
        if inside.all():
            z = ahead
            continue
        with np.errstate(invalid="ignore"):
            halved = 0.5 * (low + high)
        z = np.where(inside | ~np.isfinite(halved), ahead, halved)
    return z


def coupled(
    value_and_gradient: Callable[[np.ndarray], tuple[float, np.ndarray]],
    product: Call,
    x: np.ndarray,
    pull: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """The minimizer of `f(z) + <pull, z> + 1/2 <z - x, Q (z - x)>` by L-BFGS, to a gradient of `tolerance`.

    Parameters
    ----------
    value_and_gradient : callable
        Of f.
    product : callable
        `Q v`.
    x, pull : array, shape (n,)
    tolerance : float
        Largest entry of the gradient at the end.
    """
    from scipy.optimize import minimize

    def whole(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = value_and_gradient(z)
        d = z - x
        bent = product(d)
        return float(value + pull @ d + 0.5 * (d @ bent)), slope + pull + bent

    options = {"maxiter": 1000, "maxcor": 20, "gtol": tolerance, "ftol": 0.0}
    return np.asarray(minimize(whole, x, jac=True, method="L-BFGS-B", options=options).x)

"""The rate of linear convergence, from step lengths of which a bounded sample is kept."""

from __future__ import annotations

import math

import numpy as np

from infimum.errors import InputError

ROOM = 128


def note(kept: np.ndarray, k: int, step: float) -> np.ndarray:
    """Keep the step length of iteration k where the stride says so; the stride doubles when the room is full.

    Parameters
    ----------
    kept : array, shape (ROOM + 2,)
        Number kept and stride, then the kept values. A new array comes back where something changes.
    k : int
        Iteration, from 1.
    step : float
        Length of its step.
    """
    count, stride = int(kept[0]), int(kept[1])
    if k % stride:
        return kept
    kept = kept.copy()
    if count == ROOM:
        half = kept[3::2].copy()  # Iterations 2, 4, … in units of the old stride.
        count, stride = half.size, 2 * stride
        kept[0], kept[1], kept[2 : 2 + count] = count, stride, half
        if k % stride:
            return kept
    kept[2 + count] = step
    kept[0] = count + 1
    return kept


def empty() -> np.ndarray:
    """Nothing kept yet."""
    kept = np.zeros(ROOM + 2)
    kept[1] = 1.0
    return kept


def rate(kept: np.ndarray) -> float | None:
    """`q` of `||dx_k|| ~ q^k`: the logarithm's slope over the last half of the iterations; None before 10 steps."""
    count, stride = int(kept[0]), int(kept[1])
    return _fitted(kept[2 : 2 + count], stride)


def estimate_rate(values: np.ndarray) -> float | None:
    """The same of a plain sequence: residuals or errors, one an iteration.

    Parameters
    ----------
    values : array, shape (k,)
        Positive numbers; None comes back for fewer than 10, or for a last half that is not positive and finite.

    Raises
    ------
    InputError
        For anything but a vector of numbers.
    """
    try:
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"values are no numbers: {error}") from error
    if values.ndim != 1:
        raise InputError(f"values has shape {values.shape}; expected (k,), one number an iteration")
    return _fitted(values, 1)


def _fitted(values: np.ndarray, stride: int) -> float | None:
    tail = values[values.size // 2 :]
    if values.size < 10 or not (tail > 0).all() or not np.isfinite(tail).all():
        return None
    slope = np.polyfit(np.arange(tail.size, dtype=float), np.log(tail), 1)[0]
    return math.exp(float(slope) / stride)

"""CUSUM of whole streams at once, and where the change began."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infimum.errors import InputError
from infimum_cpd.checks import is_number, samples

Floats = NDArray[np.float64]

BLOCK = 256
"""Samples between two restarts of the cumulative sum: it stays small, so that differences of it keep their digits."""


def cusum(z: ArrayLike, k: float = 0.5, start: ArrayLike = 0.0) -> Floats:
    """`W_t = max(0, W_{t-1} + z_t - k)` for whole streams, without a loop over samples.

    By W_t = max(W_0 + S_t, S_t - min_{j<=t} S_j) with the cumulative sums S of z - k, in blocks.

    Parameters
    ----------
    z : array_like, shape (..., n)
        Standardized samples; time is the last axis. Finite.
    k : float, default 0.5
        Allowance.
    start : array_like, shape (...), default 0
        W before the first sample.

    Returns
    -------
    ndarray, shape (..., n)

    Raises
    ------
    InputError
        For samples, k or a start that are not finite numbers, no axis, or a start of another shape.
    """
    z = samples(z, "cusum")
    if not is_number(k):
        raise InputError(f"cusum: k={k!r}; expected a finite number")
    if z.ndim == 0:
        raise InputError("cusum: z is a single number; expected an array with time as its last axis")
    w = np.subtract(z, k)
    if not np.isfinite(w).all():
        raise InputError("cusum: z holds NaN or inf; drop such samples or use CusumDetector, which has a rule for them")
    before = samples(start, "cusum: start")
    if not np.isfinite(before).all():
        raise InputError(f"cusum: start={start!r:.60}; expected finite numbers")
    try:
        before = np.broadcast_to(before, w.shape[:-1])
    except ValueError:
        raise InputError(f"cusum: start has shape {before.shape}; expected {w.shape[:-1]}, one W a stream") from None
    if not w.shape[-1]:
        return np.asarray(w)
    lowest = np.empty((*w.shape[:-1], min(BLOCK, w.shape[-1])))
    for low in range(0, w.shape[-1], BLOCK):
        sums = w[..., low : low + BLOCK]
        least = lowest[..., : sums.shape[-1]]
        np.cumsum(sums, axis=-1, out=sums)
        np.minimum.accumulate(sums, axis=-1, out=least)
        np.minimum(least, -before[..., None], out=least)
        np.subtract(sums, least, out=sums)
        before = sums[..., -1]
    return np.asarray(w)


def first_alarm(w: ArrayLike, h: float) -> NDArray[np.int64]:
    """Index of the first sample with `w >= h` in each stream, -1 where there is none.

    Parameters
    ----------
    w : array_like, shape (..., n)
    h : float

    Returns
    -------
    ndarray of int, shape (...)
    """
    above = samples(w, "first_alarm") >= h
    if not above.shape or not above.shape[-1]:
        raise InputError(f"first_alarm: w has shape {above.shape}; expected a time axis with a sample or more")
    return np.where(above.any(axis=-1), above.argmax(axis=-1), -1)


def last_zero_onset(w: ArrayLike, alarm: int) -> int:
    """Index of the first sample after the last zero of one stream's statistic, up to its alarm (Page's rule).

    Parameters
    ----------
    w : array_like, shape (n,)
    alarm : int
        Index of the alarm.
    """
    zeros = np.flatnonzero(_until(w, alarm, "last_zero_onset") == 0.0)
    return int(zeros[-1]) + 1 if zeros.size else 0


def glr_onset(z: ArrayLike, alarm: int) -> int:
    """Index of the first sample of the new regime of one stream: the most likely start of a rise of any size.

    The generalized likelihood ratio argmax_j (S_tau - S_j)² / (tau - j) over the sums S_j of the first j samples, with
    tau = alarm + 1, among the j after which the mean is above the reference. Unlike the last zero of W it also serves
    with k = 0, where W seldom returns to zero.

    Parameters
    ----------
    z : array_like, shape (n,)
        Standardized samples, of the sign in which the change is a rise.
    alarm : int
        Index of the alarm.
    """
    sums = np.concatenate([[0.0], np.cumsum(_until(z, alarm, "glr_onset"))])
    rise = np.maximum(sums[-1] - sums[:-1], 0.0)
    return int(np.argmax(rise * rise / np.arange(sums.size - 1, 0, -1)))


def _until(stream: ArrayLike, alarm: int, who: str) -> Floats:
    """One stream up to its alarm."""
    x = samples(stream, who)
    if x.ndim != 1 or not 0 <= alarm < x.size:
        raise InputError(f"{who}: alarm={alarm!r} in a stream of shape {x.shape}; expected (n,) and an index below n")
    return x[: alarm + 1]


class Onset:
    """The GLR onset of a stream, with the memory of a convex hull.

    For a fixed end the ratio is convex in (j, S_j) and falls with S_j, so its maximum is at a vertex of the lower hull
    of the points so far: about log n of them for a random walk, and all others can be forgotten.
    """

    __slots__ = ("count", "hull", "total")

    LIMIT = 4096
    """Most vertices kept; a curve that is convex for longer loses every other one of the older half."""

    def __init__(self) -> None:
        self.hull: list[list[Any]] = []
        self.count, self.total = 0, 0.0

    def add(self, z: float, label: int) -> None:
        """The next sample, known to the caller as `label`."""
        hull, x, y = self.hull, self.count, self.total
        while len(hull) > 1:
            (x1, y1, _), (x0, y0, _) = hull[-1], hull[-2]
            if (y1 - y0) * (x - x1) < (y - y1) * (x1 - x0):
                break
            hull.pop()
        hull.append([x, y, label])
        if len(hull) > self.LIMIT:
            del hull[1 : self.LIMIT // 2 : 2]
        self.count, self.total = x + 1, y + z

    def best(self) -> int:
        """Label of the first sample of the new regime, were the last one an alarm."""
        end, total = self.count, self.total
        rises = [(max(0.0, total - y) ** 2 / (end - x), label) for x, y, label in self.hull]
        return int(max(rises, key=lambda one: one[0])[1])

    def state_dict(self) -> dict[str, Any]:
        return {"hull": [list(one) for one in self.hull], "count": self.count, "total": self.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.hull = [[int(x), float(y), int(label)] for x, y, label in state["hull"]]
        self.count, self.total = int(state["count"]), float(state["total"])

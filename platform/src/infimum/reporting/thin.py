"""Fewer points for the same picture."""

from __future__ import annotations

import numpy as np

POINTS = 500
"""Points of a curve at most: more than a screen shows."""
TOTAL = 40_000
"""Points of a figure at most, so that a page of many runs stays small."""


def budget(curves: int) -> int:
    """Points for each of so many curves of a figure."""
    return max(40, min(POINTS, TOTAL // max(curves, 1)))


def thin(y: np.ndarray, most: int = POINTS) -> np.ndarray:
    """Indices of at most `most` points that keep how a curve looks over a linear and over a logarithmic axis.

    The first, the last, the smallest and the largest point stay; of the others, half are spread evenly, a quarter
    geometrically (the beginning, which a log axis spreads out), and a quarter are the lowest and highest of their
    neighborhood, so that no peak is lost.
    """
    n = len(y)
    if n <= most:
        return np.arange(n)
    even = np.linspace(0, n - 1, most // 2)
    early = np.geomspace(1, n, max(most // 4 - 4, 2)) - 1
    bins = max((most - len(even) - len(early) - 4) // 2, 1)
    filled = np.where(np.isfinite(y), y, np.nanmedian(y) if np.isfinite(y).any() else 0.0)
    # The last few points that fill no neighborhood of their own are near the last one, which stays.
    size = n // bins
    table, starts = filled[: bins * size].reshape(bins, size), np.arange(bins) * size
    peaks = (starts + table.argmin(axis=1), starts + table.argmax(axis=1))
    chosen = np.concatenate([even, early, *peaks, [filled.argmin(), filled.argmax()]])
    return np.unique(np.clip(np.rint(chosen), 0, n - 1).astype(int))

"""Projections by sorting, which norms and sets share: the simplex and the l1 ball, over all entries of an array."""

from __future__ import annotations

import numpy as np

from infimum.arrays import Array, clip, namespace


def simplex_projection(v: Array, radius: float) -> Array:
    """The nearest point with entries >= 0 that sum to `radius`, for real v of any shape."""
    xp = namespace(v)
    # Sums run in float64, and from the largest entry downwards: a common shift of v does not move the projection,
    # and without it a radius far below the entries would be lost to rounding.
    shifted = xp.astype(xp.reshape(v, (-1,)), xp.float64)
    shifted = shifted - xp.max(shifted)
    if xp is np:
        descending = np.sort(shifted)[::-1]
        sums = np.cumsum(descending)
    else:
        descending = xp.sort(shifted, descending=True)
        sums = xp.cumulative_sum(descending)
    counts = xp.arange(1, sums.shape[0] + 1, dtype=xp.float64, device=v.device)
    support = max(int(xp.count_nonzero(descending * counts > sums - radius)), 1)
    threshold = (sums[support - 1] - radius) / support
    return xp.reshape(xp.astype(clip(shifted - threshold, 0.0, None), v.dtype), v.shape)


def l1_ball_projection(v: Array, radius: float) -> Array:
    """The nearest point whose entries sum to at most `radius` in absolute value, for real v of any shape."""
    size = abs(v)
    if float(size.sum()) <= radius:
        return 1.0 * v
    return namespace(v).sign(v) * simplex_projection(size, radius)

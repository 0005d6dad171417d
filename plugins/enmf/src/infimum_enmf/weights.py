"""Nonnegative least squares for many rows at once: the weights of samples on given components."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from infimum_enmf.descent import sweep
from infimum_enmf.matrix import Array

SWEEPS = 10
"""Between two looks at which rows are done."""
PIVOTS, PATIENCE = 100, 3
"""Rounds of exchanges at most, and those in which a row exchanges all at once without getting better."""
BATCH = 4_000_000
"""Entries of the systems that are solved at once."""
OPTIMAL = 1e-12
"""Violation, relative to the row, up to which it counts as solved."""


def nonnegative_least_squares(
    XB: Array,
    gram: Array,
    *,
    start: Array | None = None,
    tol: float = 1e-9,
    passes: int = 2000,
    ended: Callable[[], bool] = lambda: False,
) -> Array:
    """argmin over A >= 0 of ||X - A B^T||, every row for itself.

    A few sweeps of coordinate descent guess which entries of a row are positive; block principal pivoting corrects the
    guess until the row is exact. Rows with singular systems go on by sweeps to the relative change `tol`.

    Parameters
    ----------
    XB : ndarray, (m, r)
        X B, in float64.
    gram : ndarray, (r, r)
        B^T B, in float64.
    start : ndarray, (m, r), optional
        Nonnegative; zero by default.
    tol : float, default 1e-9
    passes : int, default 2000
        Sweeps at most.
    ended : callable, optional
        Asked after every few sweeps and every round of exchanges: true ends them all.

    Returns
    -------
    ndarray, (m, r)

    References
    ----------
    Kim and Park, "Fast nonnegative matrix factorization: an active-set-like method and comparisons", SIAM J. Sci.
    Comput. 33 (2011): block principal pivoting.
    """
    XBt = np.ascontiguousarray(XB.T)
    At = np.zeros_like(XBt) if start is None else np.array(start.T, dtype=np.float64, order="C")
    sweep(At, XBt, gram, SWEEPS)
    left = np.arange(At.shape[1])
    if not ended():
        size = max(1, BATCH // len(gram) ** 2)
        left = np.concatenate([_pivot(At, XBt, gram, left[k : k + size], ended) for k in range(0, len(left), size)])
    for _ in range(passes // SWEEPS):
        if not len(left) or ended():
            break
        part, target = At[:, left], np.ascontiguousarray(XBt[:, left])
        before = part.copy()
        sweep(part, target, gram, SWEEPS)
        At[:, left] = part
        change, length = (np.linalg.norm(one, axis=0) for one in (part - before, part))
        left = left[change > tol * length]
    return np.ascontiguousarray(At.T)


def _pivot(At: Array, XBt: Array, gram: Array, rows: Array, ended: Callable[[], bool]) -> Array:
    """Solve these columns of At in place; which of them are left unsolved."""
    free, target = (At[:, rows] > 0.0).T, XBt[:, rows].T
    scale = OPTIMAL * np.abs(target).max(axis=1, keepdims=True)
    fewest = np.full(len(rows), gram.shape[0] + 1)
    chances = np.full(len(rows), PATIENCE)
    for _ in range(PIVOTS):
        found = _solved(free, target, gram)
        if found is None:
            break
        wrong = np.where(free, found < 0.0, found @ gram - target < -scale)
        count = wrong.sum(axis=1)
        good = count == 0
        At[:, rows[good]] = found[good].T
        better = count < fewest
        fewest, chances = np.where(better, count, fewest), np.where(better, PATIENCE, chances - 1)
        last = np.arange(wrong.shape[1]) == wrong.shape[1] - 1 - wrong[:, ::-1].argmax(axis=1)[:, None]
        free = (free ^ np.where((chances >= 0)[:, None], wrong, last))[~good]
        rows, target, scale, fewest, chances = (one[~good] for one in (rows, target, scale, fewest, chances))
        if not len(rows) or ended():
            break
    return rows


def _solved(free: Array, target: Array, gram: Array) -> Array | None:
    """Each row's least squares over its free entries, (k, r); None where a system is singular."""
    systems = np.where(free[:, :, None] & free[:, None, :], gram, np.eye(len(gram)))
    try:
        return np.asarray(np.linalg.solve(systems, np.where(free, target, 0.0)[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return None

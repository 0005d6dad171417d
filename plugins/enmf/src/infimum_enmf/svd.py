"""The truncated singular value decomposition that the exterior start is made of, and the bound that it gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infimum_enmf.matrix import Array, Matrix

GRAM_FLOOR = 1e-5
"""Smallest s_r / s_1 for which the Gram matrix, which squares it, gives the subspace to about 1e-6 in float64."""
DENSE_SIDE = 3000
"""Longest shorter side for which a dense Gram matrix is decomposed."""


@dataclass(frozen=True)
class Truncated:
    """P diag(s) Q^T, the best approximation of rank r, with the distance ||X - P diag(s) Q^T||_F.

    `bound` is below the error of every factorization of that rank (Eckart and Young), nonnegative or not.
    """

    P: Array
    s: Array
    Q: Array
    bound: float


def truncated(data: Matrix, rank: int) -> Truncated:
    """The truncated SVD of X by the cheapest route that is accurate: Gram matrix, LAPACK, or ARPACK for sparse data."""
    m, n = data.shape
    if data.sparse and rank < min(m, n) and min(m, n) > 4 * rank:
        P, s, Q = _arpack(data, rank)
    else:
        dense = data.X.toarray() if data.sparse else data.X
        P, s, Q = _dense(np.asarray(dense, dtype=np.float64), rank)
    P, s, Q = (np.ascontiguousarray(one, dtype=data.dtype) for one in (P, s, Q))
    return Truncated(P, s, Q, data.residual(P * s, Q))


def _arpack(data: Matrix, rank: int) -> tuple[Array, Array, Array]:
    from scipy.sparse.linalg import svds

    start = np.ones(min(data.shape)) / np.sqrt(min(data.shape))
    P, s, Qt = svds(data.X.astype(np.float64), k=rank, v0=start)
    order = np.argsort(s)[::-1]
    return P[:, order], s[order], Qt[order].T


def _dense(X: Array, rank: int) -> tuple[Array, Array, Array]:
    from scipy.linalg import eigh

    m, n = X.shape
    tall = m >= n
    side = min(m, n)
    if side <= DENSE_SIDE and rank < side:
        gram = X.T @ X if tall else X @ X.T
        values, Q = eigh(gram, subset_by_index=[side - rank, side - 1])
        if values[0] > GRAM_FLOOR**2 * values[-1]:
            # One thin decomposition makes the singular values accurate, which those of the Gram matrix are not.
            thin = X @ Q if tall else X.T @ Q
            P, s, Wt = np.linalg.svd(thin, full_matrices=False)
            Q = Q @ Wt.T
            return (P, s, Q) if tall else (Q, s, P)
    P, s, Qt = np.linalg.svd(X, full_matrices=False)
    return P[:, :rank], s[:rank], Qt[:rank].T


def balanced(found: Truncated) -> tuple[Array, Array]:
    """Factors U*, V* with U* V*^T = P diag(s) Q^T, signs and lengths fitted to the dominant-sign parts.

    Returns
    -------
    U, V : ndarray, (m, r) and (n, r)
    """
    P, s, Q = found.P, found.s, found.Q
    up, un = _parts(P)
    vp, vn = _parts(Q)
    keep = up * vp >= un * vn
    a, b = np.where(keep, up, un), np.where(keep, vp, vn)
    ratio = np.ones_like(a)
    np.divide(b, a, out=ratio, where=(a > 0) & (b > 0))
    sign = np.where(keep, 1.0, -1.0).astype(P.dtype)
    root = np.sqrt(s)
    return P * (sign * np.sqrt(ratio) * root), Q * (sign / np.sqrt(ratio) * root)


def _parts(P: Array) -> tuple[Array, Array]:
    return np.linalg.norm(np.maximum(P, 0), axis=0), np.linalg.norm(np.minimum(P, 0), axis=0)

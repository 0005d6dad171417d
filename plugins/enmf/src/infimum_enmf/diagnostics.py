"""What can be said of a factorization: stationarity, distance to the bound, agreement of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.errors import InputError
from infimum_enmf.mapping import balance
from infimum_enmf.matrix import Array, Matrix


def kkt_residual(X: Any, U: Array, V: Array) -> float:
    """How far the first-order conditions are from being met: 0 at a stationary point, and nowhere else.

    The factors are balanced column by column; the residual is the length of the step to the minimizer in each entry by
    itself, A - max(0, A - G / diag(B^T B)), relative to that of A, for the worse of A = U and A = V. It has no unit and
    does not depend on the scaling of X or of the columns.

    Parameters
    ----------
    X : matrix or Matrix, (m, n)
    U, V : ndarray, (m, r) and (n, r)
        Nonnegative.
    """
    data = X if isinstance(X, Matrix) else Matrix(X)
    U, V = balance(U, V)
    one = _steps(U, V, data.times(V))
    other = _steps(V, U, data.adjoint(U))
    return max(one, other)


def _steps(A: Array, B: Array, XB: Array) -> float:
    gram = B.T @ B
    diagonal = np.diag(gram)
    gradient = A @ gram - XB
    step = np.divide(gradient, diagonal, out=np.zeros_like(gradient), where=diagonal > 0.0)
    length = float(np.linalg.norm(A))
    return float(np.linalg.norm(A - np.maximum(A - step, 0.0))) / length if length else 0.0


@dataclass(frozen=True)
class Matching:
    """Columns of two factorizations in pairs, by the assignment of least total distance.

    Attributes
    ----------
    columns : ndarray, (r,)
        Column k of the first goes with `columns[k]` of the second.
    distances : ndarray, (r,)
        1 - cosine of the rank-one terms u_k v_k^T, 0 for the same direction.
    share : float
        Of pairs within the tolerance.
    """

    columns: Array
    distances: Array
    share: float


def match_factors(one: tuple[Array, Array], other: tuple[Array, Array], tol: float = 0.1) -> Matching:
    """Which terms u_k v_k^T two factorizations share, whatever their order and scaling.

    Parameters
    ----------
    one, other : pair of ndarray, (m, r) and (n, r)
    tol : float, default 0.1
        Distance up to which a pair counts as the same.

    Raises
    ------
    InputError
        For factors of different shapes.
    """
    from scipy.optimize import linear_sum_assignment

    if one[0].shape != other[0].shape or one[1].shape != other[1].shape:
        raise InputError(
            f"expected factors of the same shapes, got {[f.shape for f in one]} and {[f.shape for f in other]}"
        )
    cosines = _cosines(one[0], other[0]) * _cosines(one[1], other[1])
    rows, columns = linear_sum_assignment(-cosines)
    distances = np.maximum(1.0 - cosines[rows, columns], 0.0)
    return Matching(columns, distances, float(np.mean(distances <= tol)))


def _cosines(A: Array, B: Array) -> Array:
    def unit(M: Array) -> Array:
        lengths = np.linalg.norm(M, axis=0)
        return np.asarray(M / np.where(lengths > 0.0, lengths, 1.0))

    return np.asarray(unit(A).T @ unit(B))


def tolerance(dtype: Any) -> float:
    """Distance to the bound, relative to ||X||, below which a factorization counts as a global optimum."""
    return 1e-8 if np.dtype(dtype) == np.float64 else 1e-4

"""What can be said of a factorization: stationarity, distance to the bound, agreement of two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.errors import InputError
from infimum_enmf.checks import check_number, checked_factors, checked_matrix
from infimum_enmf.mapping import balance
from infimum_enmf.matrix import Array, Matrix


def kkt_residual(X: Any, U: Array, V: Array) -> float:
    """How far the first-order conditions are from being met: 0 at a stationary point, and nowhere else.

    The factors are balanced column by column; the residual is the length of the step to the minimizer in each entry by
    itself, A - max(0, A - G / diag(B^T B)), relative to that of A, for the worse of A = U and A = V. It has no unit and
    does not depend on the scaling of X or of the columns. Where only one of two columns is zero, the other one counts
    as of length sqrt(||X||), and so does a factor that is zero as a whole.

    Parameters
    ----------
    X : array, sparse matrix or Matrix, (m, n)
    U, V : ndarray, (m, r) and (n, r)
        Nonnegative.

    Raises
    ------
    InputError
        For entries that are negative, NaN or inf, and for shapes that do not fit. Nothing is tested where X is a
        `Matrix`, as in the stages of this package.
    """
    if isinstance(X, Matrix):
        data = X
    else:
        data = Matrix(checked_matrix(X))
        U, V = checked_factors((U, V), "factors", data.shape)
    unit = math.sqrt(data.norm)
    U, V = _leveled(U, V, unit)
    return max(_steps(U, V, data.times(V), unit), _steps(V, U, data.adjoint(U), unit))


def _leveled(U: Array, V: Array, unit: float) -> tuple[Array, Array]:
    """The balanced pair; a column that is paired with zero is kept, at length `unit`."""
    left, right = balance(U, V)
    a, b = np.linalg.norm(U, axis=0), np.linalg.norm(V, axis=0)
    for one, given, lengths, lone in ((left, U, a, (b == 0) & (a > 0)), (right, V, b, (a == 0) & (b > 0))):
        if lone.any():
            one[:, lone] = given[:, lone] * (unit / lengths[lone])
    return left, right


def _steps(A: Array, B: Array, XB: Array, unit: float) -> float:
    gram = B.T @ B
    diagonal = np.diag(gram)
    gradient = A @ gram - XB
    step = np.divide(gradient, diagonal, out=np.zeros_like(gradient), where=diagonal > 0.0)
    return float(np.linalg.norm(A - np.maximum(A - step, 0.0))) / (float(np.linalg.norm(A)) or unit)


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
    """Which terms u_k v_k^T two factorizations share, whatever their order and scaling; two zero terms are the same.

    Parameters
    ----------
    one, other : pair of ndarray, (m, r) and (n, r)
    tol : float, default 0.1
        Distance up to which a pair counts as the same.

    Raises
    ------
    InputError
        For factors of different shapes, NaN or inf, and a bad `tol`.
    """
    from scipy.optimize import linear_sum_assignment

    check_number("tol", tol)
    one = checked_factors(one, "the first factorization", signed=True)
    other = checked_factors(other, "the second factorization", signed=True)
    if one[0].shape != other[0].shape or one[1].shape != other[1].shape:
        raise InputError(
            f"expected factors of the same shapes, got {[f.shape for f in one]} and {[f.shape for f in other]}"
        )
    cosines = _cosines(one[0], other[0]) * _cosines(one[1], other[1]) + np.outer(_dead(one), _dead(other))
    rows, columns = linear_sum_assignment(-cosines)
    distances = np.maximum(1.0 - cosines[rows, columns], 0.0)
    return Matching(columns, distances, float(np.mean(distances <= tol)))


def _dead(pair: tuple[Array, Array]) -> Array:
    """Which of the terms are zero; (r,)."""
    return np.asarray(~(pair[0].any(axis=0) & pair[1].any(axis=0)), dtype=float)


def _cosines(A: Array, B: Array) -> Array:
    def unit(M: Array) -> Array:
        lengths = np.linalg.norm(M, axis=0)
        return np.asarray(M / np.where(lengths > 0.0, lengths, 1.0))

    return np.asarray(unit(A).T @ unit(B))


def tolerance(dtype: Any) -> float:
    """Distance to the bound, relative to ||X||, below which a factorization counts as a global optimum."""
    return 1e-8 if np.dtype(dtype) == np.float64 else 1e-4

"""Batches of matrices with orthonormal rows: the formulas, for NumPy and torch, real and complex.

Everything here takes arrays of shape (…, p, n) with p <= n, and means X X^H = I.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum.arrays import Array, all_finite, is_complex, namespace


def adjoint(X: Array) -> Array:
    """The conjugate transpose of each matrix; a view where X is real."""
    return namespace(X).conj(X.mT) if is_complex(X) else X.mT


def identity(X: Array) -> Array:
    """The p x p identity in the dtype and on the device of X."""
    xp, p = namespace(X), int(X.shape[-2])
    return np.eye(p, dtype=X.dtype) if xp is np else xp.eye(p, dtype=X.dtype, device=X.device)


def sturdy(X: Array) -> Array:
    """X in a precision that factorizations take: half precision as single, anything else as it is."""
    xp = namespace(X)
    return X if xp.finfo(X.dtype).bits > 16 else xp.astype(X, xp.float32)


def frobenius(X: Array) -> Array:
    """Frobenius norm of each matrix, shape (…)."""
    return namespace(X).linalg.vector_norm(X, axis=(-2, -1))


def defects(X: Array) -> Array:
    """`X X^H - I` of each matrix, shape (…, p, p)."""
    return X @ adjoint(X) - identity(X)


def gaps(X: Array) -> Array:
    """How far each matrix is from having orthonormal rows.

    Parameters
    ----------
    X : array, shape (..., p, n)

    Returns
    -------
    array, shape (...)
        `||X X^H - I||_F`, real.
    """
    return frobenius(defects(sturdy(X)))


def largest_gap(X: Array) -> float:
    """The largest of `gaps(X)`, a number; NaN where X holds NaN."""
    if 0 in X.shape:
        return 0.0
    return float(namespace(X).max(gaps(X)))


def rounding(X: Array) -> float:
    """The gap that a matrix with orthonormal rows has from rounding alone, in its dtype."""
    return 4.0 * float(namespace(X).finfo(X.dtype).eps) * int(X.shape[-2])


def polar(X: Array) -> Array:
    """The nearest matrix with orthonormal rows, for each matrix: `U V^H` of its singular value decomposition.

    Parameters
    ----------
    X : array, shape (..., p, n), p <= n

    Returns
    -------
    array of the shape of X
        Where X is rank-deficient one of several nearest points; NaN everywhere if X holds NaN or inf.
    """
    if not all_finite(X):
        return X * float("nan")
    xp = namespace(X)
    left, _, right = xp.linalg.svd(sturdy(X), full_matrices=False)
    return xp.astype(left @ right, X.dtype)


def tangent(X: Array, G: Array) -> Array:
    """`G` projected orthogonally on the tangent space at each matrix: `G - 1/2 (G X^H + X G^H) X`, X X^H = I."""
    inner = G @ adjoint(X)
    return G - 0.5 * ((inner + adjoint(inner)) @ X)


def relative_gradient(X: Array, D: Array) -> Array:
    """`R = 1/2 (X X^H D - X D^H X)`, the direction of POGO and of Landing.

    It lies in `{Z : Z X^H + X Z^H = 0}` for *every* X, on the manifold or off it, and vanishes there exactly where D
    has no part along the manifold.

    Parameters
    ----------
    X, D : array, shape (..., p, n)

    Returns
    -------
    array of the shape of X
    """
    return 0.5 * ((X @ adjoint(X)) @ D - (X @ adjoint(D)) @ X)


def retract(X: Array, Z: Array, sweeps: int = 40) -> Array:
    """`polar(X + Z)` for X X^H = I and Z tangent at X, by products of matrices alone where Z is moderate.

    The singular values of X + Z then lie in [1, sqrt(1 + ||Z||^2)]; scaled below one, each sweep `s -> s (3 - s^2)/2`
    brings them nearer to one, at the end quadratically.
    """
    moved = X + Z
    size = namespace(X).max(frobenius(Z)) if 0 not in X.shape else 0.0
    if not float(size) <= 4.0:
        return polar(moved)
    moved = moved / (1.0 + frobenius(Z)[..., None, None] ** 2) ** 0.5
    for _ in range(sweeps):
        defect = defects(moved)
        moved = moved - 0.5 * (defect @ moved)
        # The defect after a sweep is 3/4 of the square of the one before.
        if float(namespace(X).max(frobenius(defect))) ** 2 <= float(namespace(X).finfo(X.dtype).eps):
            break
    return moved


def determinant_signs(X: Array) -> Array:
    """Sign of the determinant of each square real matrix, shape (…): +1 rotation, -1 reflection, 0 singular.

    A connected path, and a step with lr ||R|| below sqrt(2), never changes it: a start with the wrong sign cannot reach
    an optimum on the other component of O(n).

    Raises
    ------
    ValueError
        Unless X is real with p = n.
    """
    if X.shape[-1] != X.shape[-2] or is_complex(X):
        raise ValueError(f"determinant signs belong to real square matrices, got {tuple(X.shape)} {X.dtype}")
    return namespace(X).linalg.slogdet(sturdy(X))[0]


def on_columns(X: Any) -> Any:
    """Matrices with orthonormal columns as matrices with orthonormal rows, and back; a view.

    It is the plain transpose for complex matrices too: X^H X = I exactly where X^T (X^T)^H = conj(X^H X) = I.
    """
    return X.mT

"""Solving `(I + s A^T A) u = v + s A^T b` and `(I + s P) u = q` for many right-hand sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from infimum.arrays import Array, is_sparse, namespace
from infimum.errors import InputError

KEPT = 4
"""How many factorizations a function keeps, one per step of its prox."""

Solve = Callable[[Array], Array]


def kept(factors: dict[float, Solve], step: float, make: Callable[[], Solve]) -> Solve:
    """The factorization for `step`, made where it is not among those kept; the oldest gives way."""
    solve = factors.get(step)
    if solve is None:
        solve = make()
        if len(factors) >= KEPT:
            factors.pop(next(iter(factors)))
        factors[step] = solve
    return solve


def least_squares_prox(A: Any, At: Any, b: Array, s: float) -> Solve:
    """A callable `v -> (I + s A^T A)^{-1} (v + s A^T b)`, factorized once, by the smaller of the two Gram matrices.

    Parameters
    ----------
    A, At : arrays or SciPy sparse matrices
        A matrix of shape (rows, columns) and its transpose.
    b : array, shape (rows,)
        Right-hand side.
    s : float
        A number >= 0.
    """
    rows, columns = A.shape
    if columns <= rows:
        solve, pull = factorize(At @ A, s, "least squares: I + t A^T A"), s * (At @ b)
        return lambda v: solve(v + pull)
    solve = factorize(A @ At, s, "least squares: I + t A A^T")
    # The same point as v - s A^T (I + s A A^T)^{-1} (A v - b). Large s is not lost to rounding: what of v the rows of
    # A do not see stays as it is.
    return lambda v: v - At @ solve(s * (A @ v - b))


def factorize(gram: Any, s: float, what: str) -> Solve:
    """A callable `q -> (I + s G)^{-1} q` for a symmetric positive semidefinite G, dense or sparse.

    Raises
    ------
    InputError
        If `I + s G`, which messages call `what`, is not positive definite. A sparse G is not tested.
    """
    if is_sparse(gram):
        return _sparse_lu(gram, s)
    xp = namespace(gram)
    system = s * gram
    index = xp.arange(system.shape[0])
    system[index, index] += 1.0
    if xp is np:
        return _cholesky(system, what)
    if is_torch_array(system):
        import torch

        factor, failed = torch.linalg.cholesky_ex(system)
        if int(failed):
            raise InputError(_indefinite(what, system.dtype))
        return lambda q: torch.cholesky_solve(q[:, None], factor)[:, 0]
    return lambda q: xp.linalg.solve(system, q[:, None])[:, 0]


def _cholesky(system: np.ndarray, what: str) -> Solve:
    from scipy.linalg import get_lapack_funcs

    potrf, potrs = get_lapack_funcs(("potrf", "potrs"), (system,))
    factor, failed = potrf(system.T, lower=False, clean=False, overwrite_a=True)
    if failed:
        raise InputError(_indefinite(what, system.dtype))
    return lambda q: potrs(factor, q, lower=False)[0]


def _sparse_lu(gram: Any, s: float) -> Solve:
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    system = eye_array(gram.shape[0], dtype=gram.dtype) + s * gram
    factor = splu(system.tocsc())
    return lambda q: factor.solve(q)


def _indefinite(what: str, dtype: Any) -> str:
    return (
        f"prox of {what} is not positive definite in {str(dtype).rpartition('.')[2]}; "
        "use float64, a smaller step or rescaled data"
    )

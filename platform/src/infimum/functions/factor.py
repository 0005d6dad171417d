"""Solving `(I + s A^T A) u = q` for many right-hand sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from infimum.arrays import Array, is_sparse, namespace
from infimum.errors import InputError


def shifted_solver(A: Any, At: Any, s: float) -> Callable[[Array], Array]:
    """A callable `q -> (I + s A^T A)^{-1} q`, factorized once, by the smaller of the two Gram matrices.

    Parameters
    ----------
    A, At : arrays or SciPy sparse matrices
        A matrix of shape (rows, columns) and its transpose.
    s : float
        A number >= 0.
    """
    rows, columns = A.shape
    if columns <= rows:
        return _factorize(At @ A, s)
    solve = _factorize(A @ At, s)
    # (I + s A^T A)^{-1} = I - s A^T (I + s A A^T)^{-1} A
    return lambda q: q - s * (At @ solve(A @ q))


def _factorize(gram: Any, s: float) -> Callable[[Array], Array]:
    if is_sparse(gram):
        return _sparse_lu(gram, s)
    xp = namespace(gram)
    system = s * gram
    index = xp.arange(system.shape[0])
    system[index, index] += 1.0
    if xp is np:
        return _cholesky(system)
    if is_torch_array(system):
        import torch

        factor, failed = torch.linalg.cholesky_ex(system)
        if int(failed):
            raise InputError(_indefinite(system.dtype))
        return lambda q: torch.cholesky_solve(q[:, None], factor)[:, 0]
    return lambda q: xp.linalg.solve(system, q[:, None])[:, 0]


def _cholesky(system: np.ndarray) -> Callable[[Array], Array]:
    from scipy.linalg import get_lapack_funcs

    potrf, potrs = get_lapack_funcs(("potrf", "potrs"), (system,))
    factor, failed = potrf(system.T, lower=False, clean=False, overwrite_a=True)
    if failed:
        raise InputError(_indefinite(system.dtype))
    return lambda q: potrs(factor, q, lower=False)[0]


def _sparse_lu(gram: Any, s: float) -> Callable[[Array], Array]:
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    system = eye_array(gram.shape[0], dtype=gram.dtype) + s * gram
    factor = splu(system.tocsc())
    return lambda q: factor.solve(q)


def _indefinite(dtype: Any) -> str:
    return (
        f"prox of least squares: I + t A^T A is not positive definite in {str(dtype).rpartition('.')[2]}; "
        "use float64, a smaller step or rescaled data"
    )

"""Affine sets: the solutions of a system of linear equations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from infimum.arrays import Array, as_data, is_array, is_sparse, like, norm, to_numpy
from infimum.constraints.base import ConvexSet
from infimum.errors import InputError
from infimum.functions.factor import Solve

CONSISTENT = 1e-8
"""Share of ||b|| by which the nearest A x may miss b, in float64."""
ROUNDED = 100.0
"""The same in rounding units of the data: dependent rows of float32 agree no better."""


@dataclass(frozen=True, eq=False, repr=False)
class Affine(ConvexSet):
    """`A x = b` for a vector x.

    Dense systems are factorized once by a singular value decomposition: dependent rows are harmless where b fits them.
    Sparse systems are factorized as `A A^T` and must have independent rows.

    Parameters
    ----------
    A : array or SciPy sparse matrix, shape (rows, columns)
        Left-hand side. Not copied: leave it unchanged while the set is in use.
    b : array, shape (rows,)
        Right-hand side.

    Raises
    ------
    InputError
        If no x solves the system, the rows of a sparse A are linearly dependent, shapes do not agree, or the data is
        empty, complex or holds NaN or inf.
    """

    provides = (*ConvexSet.provides, "tangent", "rows", "residual", "jacobian")
    data = ("A", "b", "_basis", "_offset")
    examples = ({"A": [[1.0, 1.0, 1.0], [0.0, 1.0, -1.0]], "b": [1.0, 0.5]},)

    A: Array
    b: Array
    _basis: Any = field(default=None, init=False)
    _offset: Any = field(default=None, init=False)
    _solve: Solve | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        A, b = as_data(self.A, "A"), as_data(self.b, "b")
        if len(A.shape) != 2:
            raise InputError(f"A is {tuple(A.shape)}; expected a matrix of shape (rows, columns)")
        if tuple(b.shape) != (int(A.shape[0]),):
            raise InputError(
                f"A is {tuple(A.shape)}, b is {tuple(b.shape)}; expected b of shape ({A.shape[0]},), one entry per row"
            )
        self._set(A=A, b=like(b, A if is_array(A) else np.empty(0, A.dtype)))
        if is_sparse(A):
            self._set(_solve=_factorized(A))
        else:
            basis, offset = _orthonormal(to_numpy(A), to_numpy(b))
            self._set(_basis=like(basis, A), _offset=like(offset, A))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        # Twins in another dtype or process factorize anew.
        return {**self.__dict__, "_solve": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"Affine(A is {tuple(self.A.shape)})"

    def _rows(self, r: Array) -> Array:
        """`A^T (A A^T)^{-1} r`."""
        if self._solve is None:
            self._set(_solve=_factorized(self.A))
        return self.A.T @ self._solve(r)  # type: ignore[misc]

    def project(self, x: Array) -> Array:
        if self._basis is None:
            return x - self._rows(self.A @ x - self.b)
        return x - self._basis.T @ (self._basis @ x - self._offset)

    def violation(self, x: Array) -> float:
        """Euclidean distance to the set."""
        return norm(x - self.project(x)) if self._basis is None else norm(self._basis @ x - self._offset)

    def tangent(self, x: Array, g: Array) -> Array:
        """`g` without its part in the row space of A, at every x alike."""
        return g - (self._rows(self.A @ g) if self._basis is None else self._basis.T @ (self._basis @ g))

    def rows(self, x: Array) -> tuple[Any, Array, Array]:
        """`(A, b, b)`: the set as `b <= A x <= b`."""
        return self.A, self.b, self.b

    def residual(self, x: Array) -> Array:
        """`A x`, between `lower` and `upper`, which are both b."""
        return self.A @ x

    def jacobian(self, x: Array) -> Any:
        """A itself; do not change it in place."""
        return self.A

    @property
    def lower(self) -> Array:
        return self.b

    upper = lower

    def check(self, x: Array) -> None:
        super().check(x)
        if tuple(x.shape) != (int(self.A.shape[1]),):
            raise InputError(
                f"A of the affine set is {tuple(self.A.shape)}, x0 is {tuple(x.shape)}; "
                f"expected x0 of shape ({self.A.shape[1]},)"
            )


def _orthonormal(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(V, c)` with orthonormal rows and `V x = c` exactly where `A x = b`."""
    left, singular, right = np.linalg.svd(A.astype(np.float64), full_matrices=False)
    rank = int(np.count_nonzero(singular > max(A.shape) * np.finfo(A.dtype).eps * singular[0]))
    left, image = left[:, :rank], left[:, :rank].T @ b
    miss = b - left @ image
    if norm(miss) > max(CONSISTENT, ROUNDED * float(np.finfo(A.dtype).eps)) * norm(b):
        worst = int(np.argmax(np.abs(miss)))
        raise InputError(
            f"no x solves A x = b: A is {A.shape} of rank {rank}, and the nearest A x misses b by {norm(miss):.3g}, "
            f"most in row {worst} (b[{worst}] = {b[worst]:g}); drop or correct rows that contradict others"
        )
    return right[:rank], image / singular[:rank]


def _factorized(A: Any) -> Solve:
    """A callable `r -> (A A^T)^{-1} r` for sparse A."""
    from scipy.sparse.linalg import splu

    rows, columns = A.shape
    dependent = InputError(
        f"A is {(int(rows), int(columns))} and sparse, and its rows are linearly dependent; drop the rows that follow "
        "from others, or pass A.toarray(), which copes with them and tells whether b fits"
    )
    if rows > columns:
        raise dependent
    try:
        factor = splu((A @ A.T).tocsc())
    except RuntimeError as error:  # exactly singular
        raise dependent from error
    pivots = np.abs(factor.U.diagonal())
    if pivots.min() <= rows * np.finfo(A.dtype).eps * pivots.max():
        raise dependent
    return lambda r: factor.solve(r)

"""The quadratic term of a block's subproblem: `Q_j = sum_i beta_i A_ij^T A_ij`, as simple as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from infimum.functions.maps import ScaledIdentity
from infimum_padmm.structure import Structure, is_operator, matrix_of

LARGEST_OPERATOR = 512
"""Columns up to which an operator is applied to the identity to get its matrix."""
ROUNDED = 1e-12
SAFETY = 1.0001
"""Factor on the largest eigenvalue in a linearized step: the metric must not fall below Q by rounding."""


@dataclass(frozen=True, slots=True)
class Gram:
    """Q_j of one block.

    Attributes
    ----------
    scalar : float or None
        q where Q = q I.
    diagonal : array or None
        The diagonal where Q is diagonal.
    matrix : array, sparse matrix or None
        Q itself; None where only products with operators are known.
    bound : float
        The largest eigenvalue, or an upper bound.
    """

    scalar: float | None
    diagonal: np.ndarray | None
    matrix: Any
    bound: float

    def times_identity(self, size: int) -> Any:
        """Q as a number, or as a matrix."""
        return self.scalar if self.scalar is not None else self.matrix


def gram(structure: Structure, block: int, beta: np.ndarray) -> Gram:
    """Q of a block at the penalties beta, one a row."""
    size, scalar = structure.sizes[block], 0.0
    matrices, bound, whole = [], 0.0, True
    for i, map_ in structure.column(block).items():
        bound += float(beta[i]) * map_.norm**2
        if isinstance(map_, ScaledIdentity):
            scalar += float(beta[i]) * map_.scale**2
        elif is_operator(map_) and size > LARGEST_OPERATOR:
            whole = False
        else:
            A = matrix_of(map_, size)
            matrices.append(float(beta[i]) * (A.T @ A))
    if not whole:
        return Gram(None, None, None, bound)
    if not matrices:
        return Gram(scalar, np.full(size, scalar), None, scalar)
    return _simplest(_summed(matrices, scalar, size), bound)


def _summed(matrices: list[Any], scalar: float, size: int) -> Any:
    if all(sparse.issparse(one) for one in matrices):
        return sparse.csc_array(sum(matrices) + scalar * sparse.eye_array(size, format="csc"))
    dense = [np.asarray(one.toarray() if sparse.issparse(one) else one, dtype=float) for one in matrices]
    total: np.ndarray = np.sum(dense, axis=0)
    total[np.diag_indices(size)] += scalar
    return total


def _simplest(Q: Any, bound: float) -> Gram:
    diagonal = Q.diagonal().copy()
    rest = Q - (sparse.diags_array(diagonal) if sparse.issparse(Q) else np.diag(diagonal))
    top = float(np.abs(diagonal).max(initial=0.0))
    if float(abs(rest).max()) > ROUNDED * top:
        return Gram(None, None, Q, bound if sparse.issparse(Q) or Q.shape[0] > 1024 else _largest(Q))
    level = float(diagonal.mean())
    even = float(np.abs(diagonal - level).max(initial=0.0)) <= ROUNDED * top
    return Gram(level if even else None, diagonal, Q, top)


def _largest(Q: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(Q)[-1])

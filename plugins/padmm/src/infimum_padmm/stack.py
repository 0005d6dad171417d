"""All rows over all blocks (or some of them) as one map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from infimum_padmm.structure import Structure, is_operator, matrix_of

DENSE_ENTRIES = 65_536
"""Entries up to which a stacked matrix is dense: below it, one dense product costs less than a sparse one."""


class Stack:
    """`x -> A x` for stacked rows and columns, with its adjoint.

    Parameters
    ----------
    structure : Structure
    blocks : sequence of int, optional
        Indices of the blocks taken, in this order; all of them, as they lie in the packed vector, by default.
    rows : sequence of int, optional
        Indices of the rows taken; all by default.
    """

    def __init__(
        self, structure: Structure, blocks: Sequence[int] | None = None, rows: Sequence[int] | None = None
    ) -> None:
        blocks = range(len(structure.sizes)) if blocks is None else blocks
        rows = range(len(structure.lengths)) if rows is None else rows
        self.shape = (sum(structure.lengths[i] for i in rows), sum(structure.sizes[j] for j in blocks))
        self.matrix: Any = None
        self._pieces: list[tuple[slice, slice, Any]] = []
        self._place(structure, blocks, rows)
        if not any(is_operator(map_) for *_, map_ in self._pieces):
            self.matrix = self._assembled(structure)
            self._adjoint = self.matrix.T if isinstance(self.matrix, np.ndarray) else self.matrix.T.tocsr()

    def _place(self, structure: Structure, blocks: Sequence[int], rows: Sequence[int]) -> None:
        sizes = np.concatenate([[0], np.cumsum([structure.sizes[j] for j in blocks])]).astype(int)
        lengths = np.concatenate([[0], np.cumsum([structure.lengths[i] for i in rows])]).astype(int)
        for a, i in enumerate(rows):
            for c, j in enumerate(blocks):
                if j in structure.entries[i]:
                    where = slice(lengths[a], lengths[a + 1]), slice(sizes[c], sizes[c + 1])
                    self._pieces.append((*where, structure.entries[i][j]))

    def _assembled(self, structure: Structure) -> Any:
        if self.shape[0] * self.shape[1] <= DENSE_ENTRIES:
            out = np.zeros(self.shape)
            for where, columns, map_ in self._pieces:
                A = matrix_of(map_, columns.stop - columns.start)
                out[where, columns] = A.toarray() if sparse.issparse(A) else A
            return out
        row, column, data = [], [], []
        for where, columns, map_ in self._pieces:
            A = sparse.coo_array(matrix_of(map_, columns.stop - columns.start))
            row.append(A.coords[0] + where.start)
            column.append(A.coords[1] + columns.start)
            data.append(A.data)
        coords = (np.concatenate(row), np.concatenate(column))
        return sparse.csr_array((np.concatenate(data), coords), shape=self.shape)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """`A x`."""
        if self.matrix is not None:
            image: np.ndarray = self.matrix @ x
            return image
        out = np.zeros(self.shape[0])
        for where, columns, map_ in self._pieces:
            out[where] += map_.forward(x[columns])
        return out

    def adjoint(self, y: np.ndarray) -> np.ndarray:
        """`A^T y`."""
        if self.matrix is not None:
            image: np.ndarray = self._adjoint @ y
            return image
        out = np.zeros(self.shape[1])
        for where, columns, map_ in self._pieces:
            out[columns] += map_.adjoint(y[where])
        return out

    def weighted_gram(self, weights: np.ndarray) -> Any:
        """`A^T diag(weights) A`, dense or sparse as A is; not for operators."""
        if isinstance(self.matrix, np.ndarray):
            return self.matrix.T @ (weights[:, None] * self.matrix)
        return (self._adjoint @ self.matrix.multiply(weights[:, None])).tocsc()

"""The data matrix, dense or sparse: the products, norms and residuals that every stage uses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

CANCELLATION = 1e5
"""Below this times eps the trace form of the squared error, relative to ||X||^2, is replaced by the residual itself."""
BLOCK = 4_000_000
"""Entries of a residual that are held at once."""


class Matrix:
    """X with its products. Sparse matrices are held as CSR; residuals make them dense block by block.

    Parameters
    ----------
    X : ndarray or CSR matrix, (m, n)
        Checked, of float32 or float64.

    Attributes
    ----------
    norm : float
        ||X||_F.
    stored : int
        Entries that a product goes through.
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self.sparse = not isinstance(X, np.ndarray)
        self.shape: tuple[int, int] = X.shape
        self.dtype = X.dtype
        self._transposed = X.T.tocsr() if self.sparse else X.T
        entries = X.data if self.sparse else X
        self.stored = int(entries.size)
        self.norm = float(np.linalg.norm(np.asarray(entries, dtype=np.float64)))

    def times(self, V: Array) -> Array:
        """X V, (m, r)."""
        out: Array = self.X @ V
        return out

    def adjoint(self, U: Array) -> Array:
        """X^T U, (n, r)."""
        out: Array = self._transposed @ U
        return out

    def residual(self, U: Array, V: Array) -> float:
        """||X - U V^T||_F, summed over blocks of rows."""
        rows = max(1, BLOCK // self.shape[1])
        total = 0.0
        for k in range(0, self.shape[0], rows):
            block = self.X[k : k + rows]
            block = block.toarray() if self.sparse else block
            rest = (block - U[k : k + rows] @ V.T).ravel()
            total += float(np.dot(rest, rest))
        return math.sqrt(total)

    def error(self, U: Array, V: Array, *, XV: Array | None = None, XtU: Array | None = None) -> float:
        """||X - U V^T||_F, from products at hand where that is accurate, else from the residual."""
        if XV is None and XtU is None:
            XtU = self.adjoint(U)
        mixed = np.vdot(XV, U) if XV is not None else np.vdot(XtU, V)
        square = self.norm**2
        found = square - 2.0 * float(mixed) + float(np.vdot(U.T @ U, V.T @ V))
        if found > CANCELLATION * float(np.finfo(self.dtype).eps) * square:
            return math.sqrt(found)
        return self.residual(U, V)

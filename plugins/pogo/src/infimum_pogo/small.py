"""Steps on thousands of small real matrices: the batch lies along the last axis, and each product is a few sweeps.

A batched product of tiny matrices costs many times its arithmetic in calls; sweeps over the batch do not. Tensors on a
CPU lend their memory to NumPy for it, whose sweeps start faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum.arrays import Array, is_complex
from infimum_pogo.landing import best_lambda

MOST = 256
"""Largest p^2 n for which sweeps were seen to beat batched products."""
TENSOR, NUMPY = 4, 8
"""Smallest batch for which they do, in multiples of p^2 n, against the products of torch and of NumPy (measured)."""


LARGE = 2**17
"""p^2 n from which on products of single matrices are left to NumPy's BLAS, which knows that X X^T is symmetric."""
LENT = ("torch.float32", "torch.float64")


def lends(X: Any) -> bool:
    """Whether a tensor lends its memory to NumPy here: real, in single or double precision, on a CPU."""
    return bool(X.device.type == "cpu" and str(X.dtype) in LENT and not X.is_neg())


def is_large(X: Array) -> bool:
    """Whether a batch is one of large real matrices on a CPU, whose memory a tensor lends to NumPy."""
    if isinstance(X, np.ndarray) or not lends(X):
        return False
    _, p, n = X.shape
    return bool(p * p * n >= LARGE)


def is_small(X: Array) -> bool:
    """Whether a batch is one of many small real matrices on a CPU."""
    b, p, n = X.shape
    size, plain = p * p * n, isinstance(X, np.ndarray)
    if size > MOST or b < (NUMPY if plain else TENSOR) * size or is_complex(X):
        return False
    return plain or lends(X)


def plain(X: Any) -> Any:
    """The memory of a CPU tensor as a NumPy array (a copy of a lazy negative); anything else as it is."""
    return X.detach().resolve_neg().numpy() if hasattr(X, "detach") else X


def unscaled(norms: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The norms of some rows, (b,) and (b, k), made anew where squares overflowed."""
    if np.isfinite(norms).all():
        return norms
    top = np.abs(rows).max(axis=1)
    top = np.where(top > 0, top, 1)
    out: np.ndarray = top * np.linalg.norm(rows / top[:, None], axis=1)
    return out


class Narrow:
    """Arrays of shape (p, n, b) and (p, p, b) for one shape of batch, and the step on them."""

    def __init__(self, X: Array) -> None:
        b, p, n = X.shape
        dtype = plain(X).dtype
        self.p, self.n = p, n
        self.X, self.D, self.R, self.M = (np.empty((p, n, b), dtype) for _ in range(4))
        self.A, self.B, self.S = (np.empty((p, p, b), dtype) for _ in range(3))
        self._part = np.empty((p, max(p, n), b), dtype)

    def _gram(self, U: np.ndarray, V: np.ndarray, out: np.ndarray) -> None:
        """out[i, j] = sum_k U[i, k] V[j, k]."""
        part = self._part[:, : self.p]
        np.multiply(U[:, None, 0], V[None, :, 0], out=out)
        for k in range(1, self.n):
            np.multiply(U[:, None, k], V[None, :, k], out=part)
            np.add(out, part, out=out)

    def _apply(self, P: np.ndarray, V: np.ndarray, out: np.ndarray) -> None:
        """out[i, j] = sum_k P[i, k] V[k, j]."""
        part = self._part[:, : self.n]
        np.multiply(P[:, 0, None], V[None, 0], out=out)
        for k in range(1, self.p):
            np.multiply(P[:, k, None], V[None, k], out=part)
            np.add(out, part, out=out)

    def directions(self, X: Array, D: Array) -> None:
        """A, R and S, as in the wide kernel."""
        np.copyto(self.X, plain(X).transpose(1, 2, 0))
        np.copyto(self.D, plain(D).transpose(1, 2, 0))
        self._gram(self.X, self.X, self.A)
        self._gram(self.X, self.D, self.B)
        self._apply(self.A, self.D, self.R)
        self._apply(self.B, self.X, self.M)
        self.R -= self.M
        self.R *= 0.5
        self._gram(self.R, self.R, self.S)

    def squares(self) -> np.ndarray:
        """`||R R^H||_F` of each matrix."""
        flat = self.S.reshape(self.p * self.p, -1)
        return unscaled(np.sqrt(np.einsum("ij,ij->j", flat, flat)), flat.T)

    def move(self, X: Array, eta: Any, optimal: bool, out: Array | None) -> Array:
        """Leap and land; the result in the layout of X."""
        np.multiply(self.R, eta, out=self.M)
        np.subtract(self.X, self.M, out=self.M)
        self.S *= eta
        self.S *= eta
        self.A += self.S
        step: Any = 0.5
        if optimal:
            step = best_lambda(self.A.transpose(2, 0, 1) - np.eye(self.p, dtype=self.A.dtype))
        self.A *= -step
        for i in range(self.p):
            self.A[i, i] += 1.0 + step
        self._apply(self.A, self.M, self.R)
        if out is None:
            out = np.empty(X.shape, self.R.dtype) if isinstance(X, np.ndarray) else X.new_empty(X.shape)
        np.copyto(plain(out), self.R.transpose(2, 0, 1))
        return out

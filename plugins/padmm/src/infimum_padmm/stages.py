"""The updates of a sweep, compiled for given penalties: each moves some blocks and the weighted residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy import sparse

from infimum.errors import InputError
from infimum_padmm.newton import coupled, elementwise
from infimum_padmm.stack import Stack
from infimum_padmm.structure import Structure

Call = Callable[..., Any]
Solve = Callable[[np.ndarray], np.ndarray]


def span(pieces: Sequence[tuple[int, int]]) -> Any:
    """A slice where the pieces (start, stop) lie side by side, else an index array."""
    if not pieces:
        return slice(0, 0)
    if all(a[1] == b[0] for a, b in pairwise(pieces)):
        return slice(int(pieces[0][0]), int(pieces[-1][1]))
    return np.concatenate([np.arange(a, b) for a, b in pieces])


class Place:
    """Where blocks lie in the packed vector and their rows in the stacked rows, and the map between."""

    def __init__(self, structure: Structure, blocks: Sequence[int], beta: np.ndarray) -> None:
        self.blocks = tuple(blocks)
        rows = sorted({i for j in blocks for i in structure.column(j)})
        s, t = structure.starts, structure.row_starts
        self.x = span([(s[j], s[j + 1]) for j in blocks])
        self.w = span([(t[i], t[i + 1]) for i in rows])
        self.stack = Stack(structure, blocks, rows)
        self.beta = np.repeat([float(beta[i]) for i in rows], [structure.lengths[i] for i in rows])
        matrix = self.stack.matrix
        self.back: Any = self.stack.adjoint
        """`A^T w`."""
        self.weigh: Any = lambda d: self.beta * self.stack.forward(d)
        """`beta A d`."""
        self.diagonal = _diagonal(matrix)
        """The diagonal of A where it has nothing else, as for copies of blocks."""
        if self.diagonal is not None:
            self.back, self.weigh = self.diagonal.__mul__, (self.beta * self.diagonal).__mul__
        elif isinstance(matrix, np.ndarray):
            back, weighed = np.ascontiguousarray(matrix.T), self.beta[:, None] * matrix
            self.back, self.weigh = back.__matmul__, weighed.__matmul__


def _diagonal(matrix: Any) -> np.ndarray | None:
    if matrix is None or matrix.shape[0] != matrix.shape[1]:
        return None
    diagonal = matrix.diagonal().copy()
    entries = matrix.count_nonzero() if sparse.issparse(matrix) else np.count_nonzero(matrix)
    return diagonal if entries == np.count_nonzero(diagonal) else None


class Run:
    """Quadratic blocks one after the other, as one affine map of their values and the weighted residual of their rows.

    With D the penalties, `K` the columns of these blocks and `T = H + P + (lower block triangle of K^T D K, with its
    diagonal)`, a Gauss-Seidel pass over them moves x by `dx = -T^{-1} (H x + c + K^T w)`, w = lam + D r.
    """

    def __init__(self, place: Place, H: np.ndarray, lower: np.ndarray, linear: Sequence[np.ndarray]) -> None:
        """`lower` is T."""
        self.place, self.H = place, H
        K = place.stack.matrix
        K = np.asarray(K.toarray() if sparse.issparse(K) else K)
        inverse = sl.inv(lower, check_finite=False)
        self.moves = np.vstack([-inverse, -(place.beta[:, None] * K) @ inverse])
        """From `H x + c + K^T w` to the changes of x and of w."""
        self.matrix = np.ascontiguousarray(self.moves @ np.hstack([H, K.T]))
        self._at, self._change = np.empty(self.matrix.shape[1]), np.empty(self.matrix.shape[0])
        self.relinear(linear)

    def relinear(self, linear: Sequence[np.ndarray]) -> None:
        """Another linear part, without factoring again."""
        self.c = np.concatenate(linear)
        self.offset = self.moves @ self.c

    def __call__(self, x: np.ndarray, w: np.ndarray, xi: np.ndarray | None, tolerance: float) -> None:
        at, rows, n = self.place.x, self.place.w, self.c.size
        now, change = self._at, self._change
        now[:n] = x[at]
        now[n:] = w[rows]
        np.dot(self.matrix, now, out=change)
        change += self.offset
        x[at] += change[:n]
        w[rows] += change[n:]

    def certify(self, x: np.ndarray, xi: np.ndarray) -> None:
        at = self.place.x
        xi[at] = self.H @ x[at] + self.c


class One:
    """One quadratic block, by a kept factorization."""

    def __init__(self, place: Place, product: Solve, solve: Solve, linear: Sequence[np.ndarray]) -> None:
        self.place, self.product, self.solve = place, product, solve
        self.relinear(linear)

    def relinear(self, linear: Sequence[np.ndarray]) -> None:
        self.c = linear[0]

    def __call__(self, x: np.ndarray, w: np.ndarray, xi: np.ndarray | None, tolerance: float) -> None:
        at, rows = self.place.x, self.place.w
        change = -self.solve(self.product(x[at]) + self.c + self.place.back(w[rows]))
        x[at] += change
        w[rows] += self.place.weigh(change)

    def certify(self, x: np.ndarray, xi: np.ndarray) -> None:
        at = self.place.x
        xi[at] = self.product(x[at]) + self.c


class Proxes:
    """Blocks that share no row, by their proxes, with a metric `s I` for each."""

    def __init__(self, place: Place, calls: Sequence[Call], sizes: Sequence[int], scales: Sequence[float]) -> None:
        self.place, self.calls, self.scales = place, calls, scales
        ends = np.cumsum(sizes)
        self.slices = [slice(int(b - n), int(b)) for b, n in zip(ends, sizes, strict=True)]
        self.scale = np.repeat(scales, sizes)
        matrix = place.stack.matrix
        self.pull: Any = lambda w: place.back(w) / self.scale
        """`A^T w / s`."""
        if place.diagonal is not None:
            self.pull = (place.diagonal / self.scale).__mul__
        elif isinstance(matrix, np.ndarray):
            self.pull = np.ascontiguousarray(matrix.T / self.scale[:, None]).__matmul__

    def __call__(self, x: np.ndarray, w: np.ndarray, xi: np.ndarray | None, tolerance: float) -> None:
        at, rows = self.place.x, self.place.w
        old = x[at]
        v = old - self.pull(w[rows])
        if len(self.calls) == 1:
            new = np.asarray(self.calls[0](v, 1.0 / self.scales[0]))
        else:
            new = np.empty_like(v)
            for call, where, s in zip(self.calls, self.slices, self.scales, strict=True):
                new[where] = call(v[where], 1.0 / s)
        w[rows] += self.place.weigh(new - old)
        x[at] = new  # Last: `old` may be a view of it.
        if xi is not None:
            xi[at] = self.scale * (v - new)


class Smooth:
    """One smooth block whose entries are coupled by nothing: Newton entry by entry."""

    def __init__(self, place: Place, gradient: Call, curvatures: Call, metric: np.ndarray) -> None:
        self.place, self.gradient, self.curvatures, self.metric = place, gradient, curvatures, metric

    def __call__(self, x: np.ndarray, w: np.ndarray, xi: np.ndarray | None, tolerance: float) -> None:
        at, rows = self.place.x, self.place.w
        old, pull = x[at].copy(), self.place.back(w[rows])
        new = elementwise(self.gradient, self.curvatures, old, pull, self.metric)
        x[at] = new
        if xi is not None:
            xi[at] = self.gradient(new)
        w[rows] += self.place.weigh(new - old)


class General:
    """One smooth block, by L-BFGS."""

    def __init__(self, place: Place, value_and_gradient: Call, weight: float) -> None:
        self.place, self.call, self.weight = place, value_and_gradient, weight

    def __call__(self, x: np.ndarray, w: np.ndarray, xi: np.ndarray | None, tolerance: float) -> None:
        at, rows, place = self.place.x, self.place.w, self.place
        old, pull = x[at].copy(), place.back(w[rows])
        new = coupled(self.call, lambda d: place.back(place.weigh(d)) + self.weight * d, old, pull, tolerance)
        x[at] = new
        if xi is not None:
            xi[at] = self.call(new)[1]
        w[rows] += place.weigh(new - old)


def definite(block: str, M: np.ndarray, base: np.ndarray, Q: np.ndarray) -> None:
    """Raise `InputError` unless `M = base + Q` is positive definite; say what would make it so."""
    lowest, highest = (float(one) for one in np.linalg.eigvalsh(M)[[0, -1]])
    if lowest > 1e-13 * max(highest, -lowest) and highest > 0:
        return
    hint = ""
    if float(np.linalg.eigvalsh(Q)[0]) > 1e-12 * float(np.linalg.norm(Q)):
        factor = float(sl.eigh(-base, Q, eigvals_only=True)[-1])
        hint = f"raise beta above {factor:.4g} times its value, or "
    raise InputError(
        f"block '{block}': H + Q + P is not positive definite, its smallest eigenvalue is {lowest:.4g}; {hint}"
        f"add prox_weight{f' above {-lowest:.4g}' if lowest < -1e-13 else ''} to the block"
    )

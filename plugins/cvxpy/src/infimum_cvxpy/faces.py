"""Quadratic programs solved exactly, once it is known which inequalities hold as equations."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import MatrixRankWarning, splu

ROUNDING = 1e-10
"""Share of the sizes of x and of the multipliers that counts as zero."""
CLEAR = 1e-6
"""The same, above which a slack or a multiplier counts as positive for certain."""
CORRECTIONS = 2
"""How often a face is exchanged for the one that its wrong rows point to."""
FEW = 0.05
"""Share of wrong rows up to which the last face is worth correcting."""


@dataclass(frozen=True)
class _Face:
    """The optimality conditions with the rows `active` as equations, factorized."""

    active: np.ndarray
    t: float
    matrix: Any
    factors: Any


@dataclass(frozen=True)
class _Found:
    x: np.ndarray
    multipliers: np.ndarray
    slack: np.ndarray
    """Of all rows, 0 where active; the multipliers are 0 where not."""
    exact: bool

    def least(self, equations: int) -> float:
        """The smallest number that has to be positive, as a share of the sizes: a multiplier or a slack per row."""
        own = np.maximum(self.multipliers / _size(self.multipliers), self.slack / _size(self.x))
        return float(own[equations:].min(initial=np.inf))


class Faces:
    """`min q^T x + 1/2 x^T P x` with `A x = b` in the first rows and `A x <= b` in the others.

    An interior point method finds which rows are active, and x to six digits or so; the equations of that face give x
    to rounding errors. The face of the last solution is tried first, since the points of a method lie close together.
    Where its slacks and multipliers are clearly positive, no other face has a solution: the answer does not depend on
    what was solved before.

    Parameters
    ----------
    A : sparse matrix, shape (rows, n)
    b : array, shape (rows,)
    equations : int
        Number of rows that are equations.
    """

    def __init__(self, A: Any, b: np.ndarray, equations: int) -> None:
        self._A, self._b, self._equations = sp.csr_array(A), np.asarray(b, dtype=np.float64), equations
        self._row = np.repeat(np.arange(len(self._b)), np.diff(self._A.indptr))
        self._left: tuple[float, Any] = (np.nan, None)
        self._last: _Face | None = None

    def again(self, P: Any, q: np.ndarray, t: float) -> np.ndarray | None:
        """The solution, if it is for certain on the face of the last one or on one that differs in a few rows."""
        face = self._last
        for _ in range(1 + CORRECTIONS):
            if face is None or face.t != t:
                return None
            found = self._solve(face, q)
            if not found.exact:
                return None
            wrong = self._wrong(found)
            if not wrong.any():
                self._last = face
                return found.x if found.least(self._equations) > CLEAR else None
            if wrong.sum() > FEW * len(wrong):
                return None
            face = self._face(P, face.active ^ wrong, t)
        return None

    def near(self, P: Any, q: np.ndarray, t: float, active: np.ndarray) -> np.ndarray | None:
        """The solution, if it is on the face of the rows `active` or on one close by; P depends on nothing but t."""
        active = active.copy()
        active[: self._equations] = True
        for _ in range(1 + CORRECTIONS):
            face = self._face(P, active, t)
            found = None if face is None else self._solve(face, q)
            if found is None or not found.exact:
                return None
            wrong = self._wrong(found)
            if not wrong.any():
                self._last = face
                return found.x
            active = active ^ wrong
        return None

    def _wrong(self, found: _Found) -> np.ndarray:
        """The inequalities that do not hold, or hold with a multiplier of the wrong sign."""
        out: np.ndarray = found.slack < -ROUNDING * _size(found.x)
        out |= found.multipliers < -ROUNDING * _size(found.multipliers)
        out[: self._equations] = False
        return out

    def _face(self, P: Any, active: np.ndarray, t: float) -> _Face | None:
        if self._last is not None and self._last.t == t and np.array_equal(self._last.active, active):
            return self._last
        matrix = self._conditions(P, active, t)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatrixRankWarning)
            try:
                return _Face(active.copy(), t, matrix, splu(matrix))
            except RuntimeError:  # Singular: the rows depend on each other.
                return None

    def _conditions(self, P: Any, active: np.ndarray, t: float) -> Any:
        """`[[P, A^T], [A, 0]]` with the active rows of A, put together column by column, as its compressed form is."""
        n, A = P.shape[0], self._A
        if self._left[0] != t:
            self._left = t, sp.vstack([P, A], format="csc")
        left = self._left[1]
        kept = np.concatenate([np.ones(n, dtype=bool), active])
        place = (np.cumsum(kept) - 1).astype(left.indices.dtype)
        inside = kept[left.indices]
        ends = np.concatenate([[0], np.cumsum(inside)])[left.indptr]
        rows = active[self._row]
        columns = ends[-1] + np.cumsum(np.diff(A.indptr)[active])
        return sp.csc_array(
            (
                np.concatenate([left.data[inside], A.data[rows]]),
                np.concatenate([place[left.indices[inside]], A.indices[rows]]),
                np.concatenate([ends, columns]).astype(left.indices.dtype),
            ),
            shape=(n + len(columns), n + len(columns)),
        )

    def _solve(self, face: _Face, q: np.ndarray) -> _Found:
        n, right = len(q), np.concatenate([-q, self._b[face.active]])
        y = face.factors.solve(right)
        x = y[:n]
        slack, multipliers = self._b - self._A @ x, np.zeros(len(self._b))
        slack[face.active], multipliers[face.active] = 0.0, y[n:]
        exact = np.isfinite(y).all() and np.abs(face.matrix @ y - right).max() <= ROUNDING * _size(right)
        return _Found(x, multipliers, slack, bool(exact))


def _size(x: np.ndarray) -> float:
    return max(1.0, float(np.abs(x).max(initial=0.0)))

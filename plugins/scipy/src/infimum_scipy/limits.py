"""The sets that SciPy's methods take: bounds, rows of linear functions, and nonlinear functions between limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from infimum.arrays import is_sparse
from infimum.errors import InputError, NonFiniteError
from infimum_scipy.form import Form, matrix, vector


class Bounds:
    """The intersection of the boxes that stand in slot `bounds`.

    Raises
    ------
    InputError
        If no point is within all of them.
    """

    def __init__(self, parts: Sequence[Any], start: Any, form: Form) -> None:
        pairs = [part.bounds(start) for part in parts]
        n = int(np.prod(form.shape))
        self.lower, self.upper = np.full(n, -np.inf), np.full(n, np.inf)
        for low, high in pairs:
            self.lower = np.maximum(self.lower, vector(low))
            self.upper = np.minimum(self.upper, vector(high))
        self.given = bool(parts)
        if (crossed := np.flatnonzero(self.lower > self.upper)).size:
            k = int(crossed[0])
            raise InputError(
                f"the bounds of entry {k} of x leave no point: lower {self.lower[k]:g} > upper {self.upper[k]:g}"
            )

    def clip(self, v: np.ndarray) -> np.ndarray:
        out: np.ndarray = np.clip(v, self.lower, self.upper)
        return out

    def violation(self, v: np.ndarray) -> float:
        """Euclidean distance."""
        return float(np.linalg.norm(v - self.clip(v))) if self.given else 0.0

    def slope(self, v: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The gradient mapping `x - P(x - g)`: zero exactly where no feasible direction descends to first order."""
        return v - self.clip(v - gradient) if self.given else gradient


class Rows:
    """One set `lower <= c(x) <= upper` in the vectors of SciPy; c and its Jacobian are kept for the last point."""

    def __init__(self, part: Any, start: Any, form: Form, call: Callable[..., Any]) -> None:
        self.part, self.form, self._call = part, form, call
        self.linear = part.offers("rows")
        self.A: Any = None
        if self.linear:
            A, lower, upper = part.rows(start)
            self.A = matrix(A)
        else:
            lower, upper = part.lower, part.upper
        self._limits = lower, upper
        self._x: np.ndarray | None = None
        self._c: np.ndarray | None = None
        self._J: Any = None

    def _at(self, v: np.ndarray) -> Any:
        """The point of `v`; what was known elsewhere is forgotten."""
        if self._x is None or not np.array_equal(self._x, v):
            self._x, self._c, self._J = v.copy(), None, None
        return self.form.point(self._x)

    def limits(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`(lower, upper)`, each as long as c(v), with infinite entries where there is no bound."""
        size = self.value(v).shape
        lower, upper = (
            np.broadcast_to(free if one is None else vector(one), size).astype(np.float64)
            for one, free in zip(self._limits, (-np.inf, np.inf), strict=True)
        )
        return lower, upper

    def value(self, v: np.ndarray) -> np.ndarray:
        if self.linear:
            return np.asarray(self.A @ v)
        point = self._at(v)
        if self._c is None:
            self._c = vector(self._finite(self._call(self.part.residual, point), "residual"))
        return self._c.copy()

    def jacobian(self, v: np.ndarray) -> Any:
        if self.linear:
            return self.A
        point = self._at(v)
        if self._J is None:
            self._J = self._finite(matrix(self._call(self.part.jacobian, point)), "jacobian")
        return self._J

    def violation(self, v: np.ndarray) -> float:
        """What the set itself calls its violation."""
        if self.linear:
            return float(self.part.violation(self.form.point(v)))
        c = self.value(v)
        lower, upper = self.limits(v)
        return float(np.linalg.norm(c - np.clip(c, lower, upper)))

    @staticmethod
    def _finite(data: Any, capability: str) -> Any:
        entries = data.data if is_sparse(data) else vector(data)
        if not np.isfinite(entries).all():
            raise NonFiniteError("a constraint", capability, "NaN or inf")
        return data


class Signed:
    """Several `Rows` as the equations `c(x) = 0` and inequalities `c(x) >= 0` that SLSQP takes."""

    def __init__(self, rows: Sequence[Rows], v: np.ndarray) -> None:
        self.pieces: dict[str, list[tuple[Rows, np.ndarray, float, np.ndarray]]] = {"eq": [], "ineq": []}
        for one in rows:
            lower, upper = one.limits(v)
            equal = lower == upper
            for kind, mask, sign, shift in (
                ("eq", equal, 1.0, lower),
                ("ineq", ~equal & np.isfinite(lower), 1.0, lower),
                ("ineq", ~equal & np.isfinite(upper), -1.0, upper),
            ):
                if mask.any():
                    self.pieces[kind].append((one, np.flatnonzero(mask), sign, shift[mask]))

    def value(self, kind: str, v: np.ndarray) -> np.ndarray:
        return np.concatenate([sign * (one.value(v)[at] - shift) for one, at, sign, shift in self.pieces[kind]])

    def jacobian(self, kind: str, v: np.ndarray) -> np.ndarray:
        stacked = []
        for one, at, sign, _ in self.pieces[kind]:
            J = one.jacobian(v)
            stacked.append(sign * (J.toarray() if hasattr(J, "toarray") else J)[at])
        return np.concatenate(stacked)

    def constraints(self) -> list[dict[str, Any]]:
        """In SciPy's dictionaries, equations first, as the multipliers that SLSQP returns."""
        return [
            {
                "type": kind,
                "fun": lambda v, kind=kind: self.value(kind, v),
                "jac": lambda v, kind=kind: self.jacobian(kind, v),
            }
            for kind in ("eq", "ineq")
            if self.pieces[kind]
        ]

    def pull(self, v: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """The Jacobian of all of them, transposed, times the multipliers."""
        total, done = np.zeros_like(v), 0
        for kind in ("eq", "ineq"):
            if self.pieces[kind]:
                J = self.jacobian(kind, v)
                total = total + J.T @ multipliers[done : done + len(J)]
                done += len(J)
        return total

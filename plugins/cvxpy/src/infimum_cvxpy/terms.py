"""CVXPY expressions and constraints as functions and sets of infimum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np

from infimum.arrays import Array, is_complex, like, to_numpy
from infimum.constraints import Constraint
from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.functions import Function
from infimum_cvxpy.proximal import ProximalProblem
from infimum_cvxpy.translate import express
from infimum_cvxpy.variables import Pieces, copied, flat

_DOMAIN = 1e-9
"""How far outside of its domain an expression may be evaluated before its value is +inf."""


class _OnPieces:
    """What functions and sets made of CVXPY objects share: variables as pieces of a point."""

    pieces: Pieces
    exactness: ClassVar[Exactness] = Exactness.tolerance
    solver: str
    solver_options: dict[str, Any]

    def _fits(self, x: Array, what: str) -> None:
        if is_complex(x):
            raise InputError(f"{what} is defined for real points, x0 is complex")
        if tuple(x.shape) != self.pieces.shape:
            raise InputError(f"{what} has a variable of shape {self.pieces.shape}, x0 is {tuple(x.shape)}")

    def _nearest(self, problem: ProximalProblem, v: Array, t: float) -> Array:
        host = np.asarray(to_numpy(v), dtype=np.float64)
        return like(self.pieces.gather(problem.solve(self.pieces.split(host), t), host), v)


class CvxFunction(_OnPieces, Function):
    """A scalar CVXPY expression as a function: the value by evaluation, the prox by a parametrized problem.

    The problem of the prox is canonicalized once, at the first call, and solved anew with other numbers after that.

    Parameters
    ----------
    expression : cvxpy.Expression
        Convex and scalar, of the variables of `pieces`, without parameters. A concave one has a value only.
    pieces : Pieces
        Where its variables lie in a point.
    solver : str, default "CLARABEL"
        CVXPY's name of the solver for the prox: an interior point method, accurate to about 1e-8.
    solver_options : dict, optional
        Passed to that solver.
    """

    def __init__(
        self,
        expression: cp.Expression,
        pieces: Pieces,
        *,
        solver: str = "CLARABEL",
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.cvxpy, self.pieces = expression, pieces
        self.solver, self.solver_options = solver, dict(solver_options or {})
        self.convex = True if expression.is_convex() else None
        self._domain = list(expression.domain)
        self.extended = bool(self._domain)
        self.shape = pieces.shape
        self.shape_source = "the CVXPY variables are " + ", ".join(f"{v.name()} {v.shape}" for v in pieces.variables)

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"value", "expression", "prox"} if self.convex else {"value", "expression"})

    @property
    def how(self) -> dict[str, str]:
        return {"prox": f"{self.solver} on a parametrized problem"} if self.convex else {}

    def __repr__(self) -> str:
        text = str(self.cvxpy)
        return text if len(text) <= 60 else text[:57] + "..."

    def check(self, x: Array) -> None:
        self._fits(x, repr(self))

    def value(self, x: Array) -> float:
        self.pieces.assign(x)
        with np.errstate(all="ignore"):
            if any(float(np.max(one.violation())) > _DOMAIN for one in self._domain):
                return float("inf")
            value = float(self.cvxpy.value)
        # On the rim of the domain, as with ||x||^2 / y at y = 0; a point with NaN or inf keeps its NaN.
        rim = self.extended and np.isnan(value) and np.isfinite(to_numpy(x)).all()
        return float("inf") if rim else value

    def expression(self, x: cp.Expression) -> cp.Expression:
        """The expression with the pieces of x in place of its variables."""
        return copied(self.cvxpy, self.pieces.views(x))

    @cached_property
    def _proximal(self) -> ProximalProblem:
        return ProximalProblem(self.pieces.variables, self.cvxpy, (), self.solver, self.solver_options)

    def prox(self, v: Array, t: float) -> Array:
        """`argmin_u f(u) + ||u - v||^2 / (2 t)` to the tolerance of the solver."""
        return self._nearest(self._proximal, v, t)

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in self.__dict__.items() if name != "_proximal"}


class Flat(Function):
    """A function of vectors as one of points in another shape, by their entries in C order.

    Parameters
    ----------
    function : Function
        Of vectors, known to `infimum_cvxpy.to_cvxpy`.
    shape : tuple of int
        Of the points.
    """

    def __init__(self, function: Function, shape: tuple[int, ...]) -> None:
        self.function, self._points = function, shape
        self.shape = shape
        self.shape_source = f"the CVXPY variable is {shape}"
        self.convex, self.strongly_convex = function.convex, function.strongly_convex

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        return self.function.lipschitz

    @property
    def capabilities(self) -> frozenset[str]:
        return self.function.capabilities & {"value", "gradient", "value_and_gradient", "prox"} | {"expression"}

    def __repr__(self) -> str:
        return f"{self.function!r} of the entries"

    def to(self, x: Array) -> Function:
        return Flat(self.function.to(x.reshape(-1)), self._points)

    def check(self, x: Array) -> None:
        super().check(x)
        self.function.check(x.reshape(-1))

    def value(self, x: Array) -> float:
        return self.function.value(x.reshape(-1))

    def gradient(self, x: Array) -> Array:
        return self.function.gradient(x.reshape(-1)).reshape(self._points)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        value, gradient = self.function.value_and_gradient(x.reshape(-1))
        return value, gradient.reshape(self._points)

    def prox(self, v: Array, t: float) -> Array:
        return self.function.prox(v.reshape(-1), t).reshape(self._points)

    def expression(self, x: cp.Expression) -> cp.Expression:
        """The function of the entries of x."""
        return express(self.function, flat(x))


class CvxSet(_OnPieces, Constraint):
    """CVXPY constraints as a set: the violation by evaluation, the projection by a parametrized problem.

    Parameters
    ----------
    constraints : sequence of cvxpy constraints
        Of the variables of `pieces`, without parameters. The set is where all of them hold.
    pieces, solver, solver_options
        As for `CvxFunction`.
    """

    provides: ClassVar[tuple[str, ...]] = ("violation", "project", "expression")
    convex = True

    def __init__(
        self,
        constraints: Sequence[cp.Constraint],
        pieces: Pieces,
        *,
        solver: str = "CLARABEL",
        solver_options: dict[str, Any] | None = None,
    ) -> None:
        self.constraints, self.pieces = tuple(constraints), pieces
        self.solver, self.solver_options = solver, dict(solver_options or {})

    @property
    def how(self) -> dict[str, str]:
        return {"project": f"{self.solver} on a parametrized problem"}

    def __repr__(self) -> str:
        text = ", ".join(map(str, self.constraints))
        return text if len(text) <= 60 else text[:57] + "..."

    def check(self, x: Array) -> None:
        self._fits(x, repr(self))

    def violation(self, x: Array) -> float:
        """The norm of the residuals of all constraints, as CVXPY defines them: 0 on the set."""
        self.pieces.assign(x)
        with np.errstate(all="ignore"):
            return float(np.sqrt(sum(float(np.sum(np.square(one.violation()))) for one in self.constraints)))

    def expression(self, x: cp.Expression) -> list[cp.Constraint]:
        """The constraints with the pieces of x in place of their variables."""
        views = self.pieces.views(x)
        return [copied(one, views) for one in self.constraints]

    @cached_property
    def _proximal(self) -> ProximalProblem:
        return ProximalProblem(self.pieces.variables, None, self.constraints, self.solver, self.solver_options)

    def project(self, x: Array) -> Array:
        """The nearest point of the set, to the tolerance of the solver."""
        return self._nearest(self._proximal, x, 1.0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in self.__dict__.items() if name != "_proximal"}

"""A proximal point as a CVXPY problem with parameters: canonicalized once, solved again with other numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from infimum.errors import InputError
from infimum_cvxpy.conic import Repeated

SOLVED = ("optimal", "optimal_inaccurate")


class ProximalProblem:
    """`argmin_u t f(u) + 1/2 ||u - v||^2` over `u` in the constraints.

    Both `v` and `t` stand in the objective alone (`1/2 ||u||^2 - <v, u>`, and `t` times the convex f), so that a call
    changes no constraint of the canonical problem. With Clarabel the canonical problem is kept inside of the solver,
    and a call hands over the new objective.

    Parameters
    ----------
    variables : sequence of cvxpy.Variable
        Those of f and of the constraints; they become the variables of the problem.
    expression : cvxpy.Expression or None
        f; None for a projection.
    constraints : sequence of cvxpy constraints
    solver : str
        CVXPY's name.
    options : mapping
        Passed to the solver.

    Raises
    ------
    InputError
        If the solver is not installed, or f is not convex by the rules of CVXPY.
    """

    def __init__(
        self,
        variables: Sequence[cp.Variable],
        expression: cp.Expression | None,
        constraints: Sequence[cp.Constraint],
        solver: str,
        options: Mapping[str, Any],
    ) -> None:
        self.variables, self.options = tuple(variables), checked_options(options)
        self.solver = installed(solver)
        self.centers = [cp.Parameter(one.shape) for one in variables]
        self.t = cp.Parameter(nonneg=True)
        self._what = "projection" if expression is None else f"prox of {expression}"
        objective = 0.0 if expression is None else self.t * expression
        for u, v in zip(self.variables, self.centers, strict=True):
            objective += 0.5 * cp.sum_squares(u) - cp.sum(cp.multiply(v, u))
        self.problem = cp.Problem(cp.Minimize(objective), list(constraints))
        if not self.problem.is_dcp():
            raise InputError(f"{self._what}: CVXPY does not know it as convex; expected a function or set by its rules")
        self._repeated: Repeated | None = None
        if self.solver == "CLARABEL":
            self._repeated = Repeated.of(self._canonical, [one.size for one in self.variables], self.options)

    def _canonical(self, v: Sequence[np.ndarray], t: float) -> Mapping[str, Any]:
        """The data of the canonical problem."""
        self._set(v, t)
        data: Mapping[str, Any] = self.problem.get_problem_data(self.solver)[0]
        return data

    def _set(self, v: Sequence[np.ndarray], t: float) -> None:
        self.t.value = t
        for parameter, value in zip(self.centers, v, strict=True):
            parameter.value = value.reshape(parameter.shape, order="F")

    def solve(self, v: Sequence[np.ndarray], t: float) -> list[np.ndarray]:
        """The values of the variables, in their shapes, at the proximal point of `v`, arrays in the same shapes.

        Raises
        ------
        InputError
            If t is negative or not finite, or the solver finds no point: the set is empty, or it gave up.
        """
        if not 0.0 <= t < np.inf:
            raise InputError(f"{self._what}: the step t is {t}; expected a finite number, not negative")
        if not all(np.isfinite(one).all() for one in v):
            return [np.full(u.shape, np.nan) for u in self.variables]
        if self._repeated is None:
            self._set(v, t)
            return self._by_cvxpy()
        flat, status = self._repeated.solve(np.concatenate([one.ravel(order="F") for one in v]), t)
        if not flat.size:
            self._fail(status)
        ends = np.cumsum([u.size for u in self.variables])[:-1]
        pieces = np.split(flat, ends)
        return [one.reshape(u.shape, order="F") for one, u in zip(pieces, self.variables, strict=True)]

    def _by_cvxpy(self) -> list[np.ndarray]:
        try:
            self.problem.solve(solver=self.solver, warm_start=False, **self.options)  # The same bits at every call.
        except cp.SolverError as error:
            raise InputError(f"{self._what}: {self.solver} gave up ({error}); try another solver") from None
        except (TypeError, AttributeError, KeyError, ValueError, OverflowError) as error:
            raise InputError(f"{self._what}: {self.solver} refused the options {self.options}: {error}") from error
        if self.problem.status not in SOLVED:
            self._fail(self.problem.status)
        return [np.asarray(u.value) for u in self.variables]

    def _fail(self, status: str) -> None:
        word, why = status.lower(), ""
        if "dualinfeasible" in word or "unbounded" in word:
            why = "; the point or the step is too large for its arithmetic"
        elif "infeasible" in word:
            why = "; no point satisfies the constraints"
        raise InputError(f"{self._what}: {self.solver} says '{status}'{why}")


def checked_options(options: Any) -> dict[str, Any]:
    """Options for a solver.

    Raises
    ------
    InputError
        If they are no mapping of names.
    """
    if not isinstance(options, Mapping) or not all(isinstance(one, str) for one in options):
        raise InputError(f"options of the solver: {options!r}; expected a mapping of names to values")
    return dict(options)


def installed(solver: str) -> str:
    """CVXPY's name of a solver, checked.

    Raises
    ------
    InputError
        If CVXPY finds no such solver here.
    """
    known = cp.installed_solvers()
    if not isinstance(solver, str) or solver.upper() not in known:
        raise InputError(f"solver {solver!r} is not among those that CVXPY finds here: {', '.join(known)}")
    return solver.upper()

"""CVXPY's solvers on composite problems, in one call."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import cvxpy as cp
import numpy as np

from infimum.arrays import like
from infimum.errors import InputError
from infimum.oracle import Resume
from infimum.problem import Composite
from infimum.solver import Metric, Slot, Solver, Ticker
from infimum.status import Status
from infimum_cvxpy.conic import TOLERANCE
from infimum_cvxpy.proximal import checked_options, installed
from infimum_cvxpy.translate import express, restrict, to_cvxpy, untranslatable

STATUS = {
    "optimal": Status.converged,
    "optimal_inaccurate": Status.stalled,
    "infeasible": Status.infeasible,
    "infeasible_inaccurate": Status.stalled,
    "unbounded": Status.diverged,
    "unbounded_inaccurate": Status.stalled,
    "infeasible_or_unbounded": Status.stalled,
    "user_limit": Status.limit,
    "solver_error": Status.failed,
}
"""CVXPY's status words; the inaccurate ones certify nothing."""


@dataclass(frozen=True)
class Solve(Solver):
    """A convex problem through CVXPY (Clarabel, OSQP, SCS, HiGHS, …), in one call: no rule can end it on the way.

    Takes what `infimum_cvxpy.to_cvxpy` can say in CVXPY: the functions and sets of infimum, under linear maps and on
    blocks, and a user's own with `expression=`. The start plays no part in the method; it is iteration 0, and the
    solution is iteration 1. `converged`, `infeasible` and `diverged` are what the solver certifies; `inaccurate`
    answers of it are `stalled`. Dual values stand in `result.extras`.

    Parameters
    ----------
    solver : str, default "CLARABEL"
        CVXPY's name of an installed solver. Clarabel takes all cones and is accurate to about 1e-8.
    options : dict, optional
        Passed to `cvxpy.Problem.solve`: the solver's settings, such as `{max_iter: 500, tol_gap_rel: 1e-12}`.

    Raises
    ------
    InputError
        If the solver is not installed, or CVXPY does not know a term as convex; the term is named.
    """

    solver: str = "CLARABEL"
    options: Mapping[str, Any] = field(default_factory=dict)

    metrics: ClassVar[Mapping[str, Metric]] = {"value": Metric()}
    resume: ClassVar[Resume] = "none"
    stops: ClassVar[Literal["evaluation", "iteration", "never"]] = "never"
    preference: ClassVar[int] = -5  # A method of the user's choice comes first; this one is the reference.

    def __post_init__(self) -> None:
        installed(self.solver)
        checked_options(self.options)

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("terms", needs=("value",), each=True, refuses=untranslatable),
            Slot("sets", needs=("violation",), each=True, refuses=untranslatable),
        )

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Ticker) -> Any:
        x = cp.Variable(tuple(start.shape))
        objective, groups = self._stated(parts, x)
        state: dict[str, Any] = {"x": start, "dual": [], "solver": ""}

        def metrics(point: Any) -> dict[str, float]:
            out = {"value": sum(float(one.value(point)) for one in parts.terms)}
            if parts.sets:
                out["violation"] = max(float(one.violation(point)) for one in parts.sets)
            return out

        monitor.note("cvxpy.solve is one call: limits and rules are looked at before and after it")
        if monitor.tick(metrics(start), start) is not None:
            return state
        problem = cp.Problem(cp.Minimize(objective), [one for group in groups for one in group])
        status, message = _run(problem, self.solver, self.options)
        stats = problem.solver_stats
        state["solver"] = "" if stats is None else str(stats.solver_name)
        if x.value is not None and np.isfinite(x.value).all():
            state["x"] = like(np.asarray(x.value), start)
            state["dual"] = [[dual for one in group for dual in _multipliers(one)] for group in groups]
            monitor.tick(metrics(state["x"]), state["x"])
        monitor.finish(status, message)
        return state

    def _stated(self, parts: Any, x: cp.Variable) -> tuple[cp.Expression, list[list[cp.Constraint]]]:
        """The objective and the rows of each set; a term that CVXPY does not know as convex is refused by name."""
        objective, groups = cp.Constant(0.0), []
        for part in parts.terms:
            expression = express(part.origin, x)
            if not (isinstance(expression, cp.Expression) and expression.is_scalar() and expression.is_convex()):
                raise InputError(f"cvxpy.solve: {part.origin!r} is no scalar convex expression by CVXPY's rules")
            objective += expression
        for part in parts.sets:
            found = restrict(part.origin, x)
            if not all(one.is_dcp() for one in found):
                raise InputError(f"cvxpy.solve: {part.origin!r} is no convex set by CVXPY's rules")
            groups.append(found)
        return objective, groups

    def extras(self, state: Any) -> dict[str, Any]:
        """`solver`, the one that CVXPY used, and `dual`: for each constraint, in their order, a list of multipliers."""
        return {"solver": state["solver"], "dual": state["dual"]}


def _multipliers(constraint: cp.Constraint) -> list[np.ndarray]:
    """The multipliers of a constraint; a cone of several parts has as many."""
    found = constraint.dual_value
    return [np.asarray(one) for one in (found if isinstance(found, list) else [found]) if one is not None]


def _run(problem: cp.Problem, solver: str, options: Mapping[str, Any]) -> tuple[Status, str]:
    """Solve; infimum's status, and why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Solution may be inaccurate" is in the status.
        try:
            problem.solve(solver=installed(solver), **options)
        except cp.SolverError as error:
            if "settings" in str(error):
                raise _refused(options, error) from error
            if "cannot solve" in str(error):
                raise InputError(f"cvxpy.solve: {error} Choose one for its cones, such as CLARABEL") from None
            return Status.failed, f"CVXPY: {error}"
        except cp.DCPError as error:
            return Status.failed, f"CVXPY: {error}"
        except (TypeError, AttributeError, KeyError, ValueError, OverflowError) as error:
            raise _refused(options, error) from error
    name = getattr(problem.solver_stats, "solver_name", None) or solver
    return STATUS.get(problem.status, Status.stalled), f"{name} says '{problem.status}'"


def _refused(options: Mapping[str, Any], error: Exception) -> InputError:
    return InputError(
        f"cvxpy.solve: the options {dict(options)} were refused: {error}; expected the solver's own settings"
    )


def reference(problem: Composite, solver: str = "CLARABEL", **options: Any) -> float:
    """The optimal value of a convex problem, in its own sense: a reference for comparisons.

    Parameters
    ----------
    problem : Composite
    solver : str, default "CLARABEL"
        CVXPY's name of an installed solver.
    options
        Passed to `cvxpy.Problem.solve`; for Clarabel tolerances of 1e-10 by default.

    Returns
    -------
    float
        `Composite(…, reference=value)` gives the metric `gap`, `infimum compare` its targets.

    Raises
    ------
    InputError
        If the problem has no form in CVXPY, or no optimum was found.
    """
    stated, _ = to_cvxpy(problem)
    if not stated.is_dcp():
        raise InputError(f"{problem.describe()} is not convex by CVXPY's rules; a reference must come from elsewhere")
    if installed(solver) == "CLARABEL":
        options = {**dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOLERANCE), **options}
    status, message = _run(stated, solver, options)
    if (status is not Status.converged and stated.status != "optimal_inaccurate") or not math.isfinite(stated.value):
        raise InputError(f"no optimal value of {problem.describe()}: {message}")
    return float(-stated.value if problem.sense == "max" else stated.value)

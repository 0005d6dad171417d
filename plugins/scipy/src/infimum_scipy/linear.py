"""`scipy.optimize.linprog`: linear programs by HiGHS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.arrays import is_sparse
from infimum.oracle import Resume
from infimum.solver import Metric, Slot, Solver, Ticker
from infimum.status import Status
from infimum_scipy.form import Form, vector
from infimum_scipy.least_squares import ONE_CALL, stacked
from infimum_scipy.limits import Bounds, Rows
from infimum_scipy.loop import Guard, quiet
from infimum_scipy.minimize import whole

STATUS = {0: Status.converged, 1: Status.limit, 2: Status.infeasible, 3: Status.diverged, 4: Status.stalled}
"""What `linprog` says in `status`: optimal, limit, infeasible, unbounded, numerical difficulties."""


@dataclass(frozen=True)
class LinProg(Solver):
    """Linear programs by HiGHS, in one call: no rule can end it on the way.

    Minimizes linear terms (`infimum.functions.Linear`) under bounds and linear constraints. The start plays no part in
    the method; it is iteration 0, and the solution is iteration 1. HiGHS certifies what it says: `converged` is an
    optimum, `infeasible` a proof that no point is feasible, `diverged` a problem without a bound.

    Parameters
    ----------
    method : {"highs", "highs-ds", "highs-ipm"}, default "highs"
        The choice of HiGHS, its dual simplex, or its interior point method.
    presolve : bool, default True
        Simplify the program first.
    time_limit : float, optional
        Seconds after which HiGHS gives up; status `limit`.
    maxiter : int, optional
        Iterations after which HiGHS gives up; status `limit`.
    primal_feasibility_tolerance, dual_feasibility_tolerance : float, optional
        HiGHS uses 1e-7.
    """

    method: Literal["highs", "highs-ds", "highs-ipm"] = "highs"
    presolve: bool = True
    time_limit: Annotated[float, Gt(0)] | None = None
    maxiter: Annotated[int, Ge(0)] | None = None
    primal_feasibility_tolerance: Annotated[float, Gt(0)] | None = None
    dual_feasibility_tolerance: Annotated[float, Gt(0)] | None = None

    metrics: ClassVar[Mapping[str, Metric]] = {"value": Metric()}
    resume: ClassVar[Resume] = "none"
    stops: ClassVar[Literal["evaluation", "iteration", "never"]] = "never"

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("cost", needs=("value", "coefficients"), at_least=1, each=True),
            Slot("bounds", needs=("bounds",), each=True),
            Slot("linear", needs=("violation", "rows"), each=True),
        )

    def check(self, parts: Any) -> None:
        whole(parts, self.slots(), "scipy.linprog")

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Ticker) -> Any:
        from scipy.optimize import linprog

        form = Form(start, "scipy.linprog")
        if form.note is not None:
            monitor.note(form.note)
        bounds = Bounds(parts.bounds, start, form)
        rows = [Rows(one, start, form, Guard(monitor)) for one in parts.linear]
        pairs = [part.coefficients(start) for part in parts.cost]
        c, constant = sum(vector(one) for one, _ in pairs), sum(float(r) for _, r in pairs)

        def metrics(v: np.ndarray) -> dict[str, Any]:
            worst = max([bounds.violation(v), *(one.violation(v) for one in rows)])
            return {"value": float(c @ v) + constant, "violation": worst}

        monitor.note(ONE_CALL.format("scipy.linprog"))
        x0 = form.flat(start)
        if monitor.tick(metrics(x0), form.point(x0)) is not None:
            return {"x": form.point(x0)}
        box = np.column_stack([bounds.lower, bounds.upper])
        with quiet():
            out = linprog(c, **_split(rows, x0), bounds=box, method=self.method, options=self._options())
        x = x0 if out.x is None else np.asarray(out.x, dtype=np.float64)
        if out.x is not None:
            monitor.tick(metrics(x), form.point(x))
        monitor.finish(STATUS.get(out.status, Status.stalled), str(out.message).strip())
        return {"x": form.point(x)}

    def _options(self) -> dict[str, Any]:
        named = {
            "time_limit": self.time_limit,
            "maxiter": self.maxiter,
            "primal_feasibility_tolerance": self.primal_feasibility_tolerance,
            "dual_feasibility_tolerance": self.dual_feasibility_tolerance,
        }
        return {"presolve": self.presolve, **{name: one for name, one in named.items() if one is not None}}


def _split(rows: list[Rows], v: np.ndarray) -> dict[str, Any]:
    """Rows between limits as `A_ub x <= b_ub` and `A_eq x = b_eq`."""
    pieces: dict[str, list[tuple[Any, np.ndarray]]] = {"eq": [], "ub": []}
    for one in rows:
        A = one.A.tocsr() if is_sparse(one.A) else one.A
        lower, upper = one.limits(v)
        equal = lower == upper
        pieces["eq"].append((A[equal], lower[equal]))
        for mask, sign, limit in ((np.isfinite(upper), 1.0, upper), (np.isfinite(lower), -1.0, lower)):
            keep = mask & ~equal
            pieces["ub"].append((sign * A[keep], sign * limit[keep]))
    out: dict[str, Any] = {}
    for kind, found in pieces.items():
        kept = [pair for pair in found if len(pair[1])]
        if kept:
            out[f"A_{kind}"] = stacked([A for A, _ in kept])
            out[f"b_{kind}"] = np.concatenate([b for _, b in kept])
    return out

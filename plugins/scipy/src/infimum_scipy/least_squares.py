"""`scipy.optimize.least_squares` and `lsq_linear`: half the squared norm of a residual, under bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.arrays import Array, is_sparse
from infimum.errors import InputError, NonFiniteError
from infimum.oracle import Resume
from infimum.solver import Metric, Slot, Solver, Ticker
from infimum_scipy.form import Form, matrix, vector
from infimum_scipy.limits import Bounds
from infimum_scipy.loop import Guard, Halt, quiet
from infimum_scipy.minimize import UNLIMITED, certified, fall, whole

MATCH = 1e-6
"""Relative difference up to which half the squared residual is the value."""


ONE_CALL = "{} is one call: stopping rules are looked at before and after it, and its own limits are options"


class Residual:
    """The stacked residuals of all terms, and their Jacobian, kept for the last two points."""

    def __init__(self, parts: Any, form: Form, call: Guard) -> None:
        self.parts, self.form, self.call = parts, form, call
        self._known: list[tuple[np.ndarray, dict[str, Any]]] = []

    def _at(self, v: np.ndarray) -> dict[str, Any]:
        for x, known in self._known:
            if np.array_equal(x, v):
                return known
        self._known = [*self._known[-1:], (np.array(v, dtype=np.float64), {})]
        return self._known[-1][1]

    def value(self, v: np.ndarray) -> np.ndarray:
        known = self._at(v)
        if "r" not in known:
            point = self.form.point(np.array(v))
            known["r"] = self._finite(
                np.concatenate([vector(self.call(part.residual, point)) for part in self.parts]), "residual"
            )
        out: np.ndarray = known["r"].copy()
        return out

    def jacobian(self, v: np.ndarray) -> Any:
        known = self._at(v)
        if "J" not in known:
            point = self.form.point(np.array(v))
            pieces = [matrix(self.call(part.jacobian, point)) for part in self.parts]
            known["J"] = self._finite(stacked(pieces), "jacobian")
        return known["J"]

    def cost(self, v: np.ndarray) -> float:
        r = self.value(v)
        return 0.5 * float(r @ r)

    def gradient(self, v: np.ndarray) -> np.ndarray:
        return np.asarray(self.jacobian(v).T @ self.value(v))

    def _finite(self, data: Any, capability: str) -> Any:
        entries = data.data if is_sparse(data) else data
        if not np.isfinite(entries).all():
            self.call.error = NonFiniteError("slot 'residuals'", capability, "NaN or inf")
            raise self.call.error
        return data


def stacked(pieces: list[Any]) -> Any:
    """Matrices on top of each other: sparse if one is."""
    if len(pieces) == 1:
        return pieces[0]
    if any(is_sparse(one) for one in pieces):
        from scipy.sparse import vstack

        return vstack(pieces).tocsr()
    return np.vstack(pieces)


class _Squares(Solver):
    """What the two share."""

    metrics: ClassVar[Mapping[str, Metric]] = {"value": Metric(), "grad_norm": Metric()}
    resume: ClassVar[Resume] = "none"
    name: ClassVar[str]

    def check(self, parts: Any) -> None:
        whole(parts, self.slots(), self.name)


@dataclass(frozen=True)
class LeastSquares(_Squares):
    """Nonlinear least squares, `1/2 ||r(x)||^2`, under bounds: trust region reflective, dogbox or Levenberg–Marquardt.

    Several terms are one: their residuals are stacked. Robust losses are not offered: they change the objective, which
    the problem states.

    Parameters
    ----------
    method : {"trf", "dogbox", "lm"}, default "trf"
        "lm" takes no bounds and needs as many residuals as variables; one of its iterations is a Jacobian.
    ftol, xtol : float, default 1e-8
        SciPy ends the run on a relative change of the value or of x below these. That is `converged` only if the
        gradient has fallen to a thousandth of that at the start; else `stalled`. 0 switches a test off.
    gtol : float, default 1e-8
        SciPy ends the run as `converged` once the gradient is below this.
    x_scale : float, array of shape (n,) or "jac", default 1.0
        Scale of the variables, or from the Jacobian.
    tr_solver : {"exact", "lsmr"}, optional
        How the subproblems are solved; from the Jacobian by default.
    """

    method: Literal["trf", "dogbox", "lm"] = "trf"
    ftol: Annotated[float, Ge(0)] = 1e-8
    xtol: Annotated[float, Ge(0)] = 1e-8
    gtol: Annotated[float, Ge(0)] = 1e-8
    x_scale: Annotated[float, Gt(0)] | Literal["jac"] | Array = 1.0
    tr_solver: Literal["exact", "lsmr"] | None = None

    name = "scipy.least_squares"
    stops: ClassVar[Literal["evaluation", "iteration", "never"]] = "evaluation"

    def slots(self) -> tuple[Slot, ...]:
        # `value` keeps out sets that have a residual too.
        squares = Slot("residuals", needs=("value", "residual", "jacobian"), at_least=1, each=True)
        return (squares,) if self.method == "lm" else (squares, Slot("bounds", needs=("bounds",), each=True))

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Ticker) -> Any:
        return _Squared(self, parts, start, monitor).run()


class _Squared:
    """One run of `least_squares`."""

    def __init__(self, solver: LeastSquares, parts: Any, start: Any, monitor: Ticker) -> None:
        self.solver, self.monitor = solver, monitor
        self.form = Form(start, solver.name)
        if self.form.note is not None:
            monitor.note(self.form.note)
        self.call = Guard(monitor)
        self.bounds = Bounds(getattr(parts, "bounds", ()), start, self.form)
        self.residual = Residual(parts.residuals, self.form, self.call)
        self.x = inside(self.form.flat(start), self.bounds, monitor)
        self.first = 0.0
        if (fixed := np.flatnonzero(self.bounds.lower == self.bounds.upper)).size:
            raise InputError(
                f"scipy.least_squares: the bounds fix entry {int(fixed[0])} of x; it needs lower < upper everywhere"
            )

    def run(self) -> dict[str, Any]:
        try:
            with quiet():
                out = self._solve()
            if self.call.error is not None:
                raise self.call.error
            self._conclude(out)
        except Halt:
            pass
        return {"x": self.form.point(self.x)}

    def _solve(self) -> Any:
        from scipy.optimize import least_squares

        r = self.residual.value(self.x)
        self._compare()
        self.first = float(np.max(np.abs(self._slope(self.x)), initial=0.0))
        self._tick(self.x)
        s = self.solver
        more: dict[str, Any] = {}
        if s.method != "lm":
            if s.tr_solver is not None:
                more["tr_solver"] = s.tr_solver
            more["callback"] = lambda intermediate_result: self._tick(intermediate_result.x)
        elif r.size < self.x.size:
            raise InputError(
                f"scipy.least_squares: method 'lm' needs {self.x.size} residuals or more, there are {r.size}"
            )
        jacobian = self._counted_jacobian if s.method == "lm" else self.residual.jacobian
        limits = (self.bounds.lower, self.bounds.upper)
        scale = s.x_scale if isinstance(s.x_scale, str | float | int) else vector(s.x_scale)
        return least_squares(
            self.residual.value,
            self.x,
            jac=jacobian,
            bounds=limits,
            method=s.method,
            ftol=s.ftol or None,
            xtol=s.xtol or None,
            gtol=s.gtol or None,
            x_scale=scale,
            max_nfev=UNLIMITED,
            **more,
        )

    def _compare(self) -> None:
        """Half the squared residual must be the value: a term may state them apart."""
        point, cost = self.form.point(self.x.copy()), self.residual.cost(self.x)
        value = sum(float(self.call(part.value, point)) for part in self.residual.parts)
        if abs(value - cost) > MATCH * max(1.0, abs(cost)):
            raise InputError(
                f"scipy.least_squares minimizes 1/2 ||residual||^2, which is {cost:.6g} at the start where the value "
                f"is {value:.6g}; scale the residual so that they agree"
            )

    def _slope(self, v: np.ndarray) -> np.ndarray:
        return self.bounds.slope(v, self.residual.gradient(v))

    def _metrics(self, v: np.ndarray) -> dict[str, Any]:
        out = {"value": self.residual.cost(v), "grad_norm": float(np.linalg.norm(self._slope(v)))}
        if self.bounds.given:
            out["violation"] = self.bounds.violation(v)
        return out

    def _tick(self, v: np.ndarray) -> None:
        metrics = self._metrics(v)
        self.x = np.array(v, dtype=np.float64)
        if self.monitor.tick(metrics, self.form.point(self.x)) is not None:
            raise Halt

    def _counted_jacobian(self, v: np.ndarray) -> Any:
        J = self.residual.jacobian(v)
        if not np.array_equal(v, self.x):
            self._tick(v)
        return J

    def _conclude(self, out: Any) -> None:
        v = np.asarray(out.x, dtype=np.float64)
        s, size = self.solver, float(np.max(np.abs(self._slope(v)), initial=0.0))
        share = fall(max(s.ftol, s.xtol**2)) if out.success else 0.0
        status, message = certified(str(out.message).strip(), "gradient", size, s.gtol, share, self.first)
        self.x = v
        self.monitor.finish(status, message, self._metrics(v), self.form.point(v))


def inside(v: np.ndarray, bounds: Bounds, monitor: Ticker) -> np.ndarray:
    """The start within the bounds, with a word if it was not."""
    if not bounds.violation(v):
        return v
    monitor.note("x0 lies outside of the bounds: the run starts at the nearest point within them")
    return bounds.clip(v)


@dataclass(frozen=True)
class LsqLinear(_Squares):
    """Linear least squares, `1/2 ||A x - b||^2`, under bounds, in one call: no rule can end it on the way.

    The start plays no part in the method; it is iteration 0, and the solution is iteration 1.

    Parameters
    ----------
    method : {"trf", "bvls"}, default "trf"
        Trust region reflective, or an active set (dense A only).
    tol : float, default 1e-10
        On the change of the value and on the scaled gradient.
    lsq_solver : {"exact", "lsmr"}, optional
        How the unbounded problems are solved; by default exact for dense A, lsmr for sparse.
    lsmr_tol : float or "auto", optional
        Accuracy of lsmr.
    max_iter : int, optional
        SciPy's own limit; 100 for trf, the number of variables for bvls by default.
    """

    method: Literal["trf", "bvls"] = "trf"
    tol: Annotated[float, Gt(0)] = 1e-10
    lsq_solver: Literal["exact", "lsmr"] | None = None
    lsmr_tol: Annotated[float, Gt(0)] | Literal["auto"] | None = None
    max_iter: Annotated[int, Ge(1)] | None = None

    name = "scipy.lsq_linear"
    stops: ClassVar[Literal["evaluation", "iteration", "never"]] = "never"

    def slots(self) -> tuple[Slot, ...]:
        squares = Slot("squares", needs=("value", "linear_system"), at_least=1, each=True)
        return (squares, Slot("bounds", needs=("bounds",), each=True))

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Ticker) -> Any:
        from scipy.optimize import lsq_linear

        form = Form(start, self.name)
        if form.note is not None:
            monitor.note(form.note)
        bounds = Bounds(parts.bounds, start, form)
        x0 = inside(form.flat(start), bounds, monitor)
        monitor.note(ONE_CALL.format(self.name))
        systems = [part.linear_system(start) for part in parts.squares]
        A, b = stacked([matrix(one) for one, _ in systems]), np.concatenate([vector(one) for _, one in systems])
        if self.method == "bvls" and is_sparse(A):
            raise InputError(f"{self.name}: method 'bvls' takes dense A only; use 'trf'")

        def metrics(v: np.ndarray) -> tuple[dict[str, Any], float]:
            r = A @ v - b
            slope = bounds.slope(v, A.T @ r)
            out = {"value": 0.5 * float(r @ r), "grad_norm": float(np.linalg.norm(slope))}
            return out | ({"violation": bounds.violation(v)} if bounds.given else {}), float(np.max(np.abs(slope)))

        found, first = metrics(x0)
        if monitor.tick(found, form.point(x0)) is not None:
            return {"x": form.point(x0)}
        with quiet():
            out = lsq_linear(
                A, b, bounds=(bounds.lower, bounds.upper), method=self.method, tol=self.tol, max_iter=self.max_iter,
                lsq_solver=self.lsq_solver, lsmr_tol=self.lsmr_tol,
            )  # fmt: skip
        found, size = metrics(out.x)
        share = fall(self.tol) if out.success else 0.0
        status, message = certified(str(out.message).strip(), "gradient", size, self.tol, share, first)
        monitor.tick(found, form.point(out.x))
        monitor.finish(status, message)
        return {"x": form.point(out.x)}

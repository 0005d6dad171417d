"""Any solver of infimum as a method of `scipy.optimize.minimize`."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from infimum.api import explain, prepare
from infimum.constraints import Constraint, LinearConstraint, NonlinearConstraint
from infimum.errors import InputError, did_you_mean
from infimum.functions.base import Function
from infimum.inputs import as_rule
from infimum.plan.plan import Plan
from infimum.result import Result
from infimum.run.defaults import optimality
from infimum.stopping.base import Progress, StoppingRule
from infimum.stopping.rules import MaxCalls, MaxIter, MaxTime, RelChange

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

OPTIONS = ("tol", "maxiter", "maxfev", "maxtime", "stopping", "seed", "disp")
"""What `options=` of `minimize` may hold."""


def as_scipy(
    solver: str, *, oracles: Any = None, stopping: Any = None, seed: int | None = None, **solver_options: Any
) -> Callable[..., OptimizeResult]:
    """A callable for `scipy.optimize.minimize(…, method=…)` that runs a solver of infimum.

    Parameters
    ----------
    solver : str
        Name of an installed solver.
    oracles : mapping or "auto", optional
        As in `infimum.solve`; the objective is the term `objective`. SciPy's own finite differences are not used:
        without `jac=`, name an oracle such as `{"objective": "zeroth.forward_difference"}` or a solver that needs none.
    stopping : str, mapping or StoppingRule, optional
        As in `infimum.solve`. `tol=` and `options=` of `minimize` add to it.
    seed : int, optional
    **solver_options
        Options of the solver.

    Returns
    -------
    callable
        Takes what `minimize` hands on: `jac`, `hess`, `hessp`, `bounds`, `constraints`, `callback` (either of SciPy's
        two signatures; it may raise StopIteration), `tol` (of the solver's own `grad_norm` or `residual`, else of
        `rel_change`) and in `options`: `maxiter`, `maxfev`, `maxtime` (seconds), `stopping`, `seed`, `disp`. Returns
        an `OptimizeResult` with SciPy's fields and, beside them, `status_word`, `best_x`, `best_fun`, `exactness`
        and `result`, the whole `infimum.Result`.

    Raises
    ------
    InputError
        When called: for an unknown option, or constraints without exact Jacobians.
    PlanError
        When called: if the solver cannot take the problem, bounds and constraints included.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.optimize import minimize
    >>> import infimum
    >>> method = infimum.as_scipy("splitting.gradient_descent", step=0.25, seed=0)
    >>> out = minimize(lambda x: (x - 1) @ (x - 1), np.zeros(2), jac=lambda x: 2 * (x - 1), method=method, tol=1e-8)
    >>> out.success, bool(np.allclose(out.x, 1.0))
    (True, True)
    """
    fixed = {"oracles": oracles, "stopping": stopping, "seed": seed}

    def method(fun: Callable[..., Any], x0: np.ndarray, args: Any = (), **given: Any) -> OptimizeResult:
        spec = {"use": solver, **solver_options}
        return _Call(spec, fun, x0, args if isinstance(args, tuple) else (args,), fixed, given).run()

    method.__name__ = method.__qualname__ = f"as_scipy({solver!r})"
    return method


_HANDED = ("jac", "hess", "hessp", "bounds", "constraints", "callback")


class _Call:
    """One call of `minimize`."""

    def __init__(
        self,
        spec: dict[str, Any],
        fun: Callable[..., Any],
        x0: Any,
        args: tuple[Any, ...],
        fixed: Mapping[str, Any],
        given: Mapping[str, Any],
    ) -> None:
        self.spec, self.fun, self.args, self.fixed = spec, fun, args, fixed
        self.x0 = np.atleast_1d(np.asarray(x0, dtype=np.float64))
        self.handed = {name: given.get(name) for name in _HANDED}
        self.options = {name: value for name, value in given.items() if name not in _HANDED}
        for name in self.options:
            if name not in OPTIONS:
                raise InputError(
                    f"options: '{name}' is none of minimize's options here; {did_you_mean(name, OPTIONS)} (options of "
                    f"the solver go into as_scipy({spec['use']!r}, …))"
                )

    def run(self) -> OptimizeResult:
        callback = self.handed["callback"]
        named = callback is not None and set(inspect.signature(callback).parameters) == {"intermediate_result"}
        stated = {
            "solver": self.spec,
            "oracles": self.fixed["oracles"],
            "constraints": _sets(self.handed["constraints"]),
            "bounds": self.handed["bounds"],
        }
        function = self._function()
        plan = explain(function, **stated)
        assert isinstance(plan, Plan)
        run = prepare(
            function,
            self.x0,
            **stated,
            stopping=self._rule(plan.metrics),
            seed=self.options.get("seed", self.fixed["seed"]),
            callback=None if callback is None else _teller(callback, named),
            verbose=bool(self.options.get("disp", False)),
            value_every=1 if named else None,
        )
        return _optimize_result(run.solve())

    def _function(self) -> Function:
        fun, args, shape = self.fun, self.args, self.x0.shape

        def value(x: np.ndarray) -> float:
            out = fun(x, *args)
            return float(out) if np.ndim(out) == 0 else float(np.asarray(out).item())

        found: dict[str, Any] = {}
        if callable(jac := self.handed["jac"]):
            found["gradient"] = lambda x: np.asarray(jac(x, *args), dtype=np.float64).reshape(shape)
        if callable(hess := self.handed["hess"]):
            found["hessian"] = lambda x: hess(x, *args)
        if callable(hessp := self.handed["hessp"]):
            found["hvp"] = lambda x, v: np.asarray(hessp(x, v, *args), dtype=np.float64).reshape(shape)
        return Function(value, **found)

    def _rule(self, metrics: Mapping[str, Any]) -> StoppingRule | None:
        """Everything that says when to stop, joined by `|`; None for the default of `infimum.solve`."""
        given = [self.fixed["stopping"], self.options.get("stopping")]
        rules = [rule for one in given if (rule := as_rule(one)) is not None]
        own_words = bool(rules)
        limits = {"maxiter": MaxIter, "maxfev": MaxCalls, "maxtime": MaxTime}
        rules += [kind(self.options[name]) for name, kind in limits.items() if self.options.get(name) is not None]
        tol = self.options.get("tol")
        if tol is not None and (isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not tol >= 0):
            raise InputError(f"tol={tol!r}: expected a number >= 0")
        if tol is not None or (rules and not own_words):
            rules += _tolerance(None if tol is None else float(tol), metrics)
        return functools.reduce(operator.or_, rules) if rules else None


def _tolerance(tol: float | None, metrics: Mapping[str, Any]) -> list[StoppingRule]:
    """What `tol` means for this solver: of its own optimality measure, where it has one here."""
    own = optimality(metrics) if tol is None else optimality(metrics, tol)
    if own is not None:
        return [own]
    return [] if tol is None else [RelChange(tol)]


def _teller(callback: Callable[..., Any], named: bool) -> Callable[[Progress], None]:
    """SciPy's callback as ours. Iteration 0 is not told, as in SciPy, and what it returns means nothing."""
    from scipy.optimize import OptimizeResult

    def tell(progress: Progress) -> None:
        if progress.iteration == 0:
            return
        x = np.array(progress.point)
        if named:
            known = {"nit": progress.iteration, "fun": progress.metrics.get("value")}
            callback(intermediate_result=OptimizeResult(x=x, **known))
        else:
            callback(x)

    return tell


def _optimize_result(result: Result) -> OptimizeResult:
    from scipy.optimize import OptimizeResult

    out = OptimizeResult(
        x=result.x,
        fun=result.value,
        success=result.success,
        status=0 if result.success else 1 + result.status.rank,
        message=result.message,
        nit=result.nit,
        nfev=result.nfev + sum(row.get("value", 0) for row in result.monitored.values()),
        njev=result.njev,
        status_word=str(result.status),
        best_x=result.best_x,
        best_fun=result.best_value,
        exactness=result.exactness,
        result=result,
    )
    if result.violation is not None:
        out["maxcv"] = result.violation
    return out


def _sets(given: Any) -> list[Constraint]:
    """SciPy's constraints (objects, dictionaries, or a sequence of them) as ours."""
    if given is None:
        return []
    pieces = list(given) if isinstance(given, list | tuple) else [given]
    return [_set(one) for one in pieces]


def _set(one: Any) -> Constraint:
    if isinstance(one, Constraint):
        return one
    if isinstance(one, Mapping):
        return _from_mapping(one)
    if hasattr(one, "A"):
        return LinearConstraint(np.atleast_2d(one.A) if isinstance(one.A, list) else one.A, one.lb, one.ub)
    if not hasattr(one, "fun"):
        raise InputError(
            f"constraints: got {type(one).__name__}; expected SciPy's LinearConstraint, NonlinearConstraint or a "
            "dictionary, or a set of infimum"
        )
    return NonlinearConstraint(one.fun, one.lb, one.ub, jacobian=one.jac if callable(one.jac) else None)


def _from_mapping(one: Mapping[str, Any]) -> Constraint:
    kind = one.get("type")
    if kind not in ("eq", "ineq") or not callable(one.get("fun")):
        raise InputError(f"constraints: {dict(one)!r}; expected {{'type': 'eq' or 'ineq', 'fun': callable}}")
    args, fun, jac = tuple(one.get("args", ())), one["fun"], one.get("jac")
    slope = (lambda x: np.atleast_2d(jac(x, *args))) if callable(jac) else None
    return NonlinearConstraint(lambda x: fun(x, *args), 0.0, 0.0 if kind == "eq" else None, jacobian=slope)

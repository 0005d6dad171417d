"""The Python front door: `solve`, `prepare`, `explain`. A run file builds the same objects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from infimum.constraints import Box
from infimum.constraints.base import Constraint
from infimum.errors import InputError, PlanError, did_you_mean
from infimum.explanation import Explanation, able, explain_all, installed_oracles
from infimum.functions.base import Function
from infimum.oracle import Oracle
from infimum.plan.match import Choice
from infimum.plan.plan import Plan, make_plan
from infimum.plugins.build import build
from infimum.plugins.registry import Registry, get_registry
from infimum.problem import Composite, Problem
from infimum.result import Result
from infimum.run.monitor import Observer
from infimum.run.run import Run
from infimum.solver import Solver
from infimum.stopping import StoppingRule, from_mapping, parse

log = logging.getLogger("infimum")


def solve(problem: Any, x0: Any = None, **options: Any) -> Result:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem, Function, callable, str or mapping
        A problem; a function or plain callable `f(x) -> float` to be minimized; or the name of an installed problem
        (`"problems.lasso"`, `{"use": "problems.lasso", "penalty": 0.1}`).
    x0 : array_like, mapping of blocks, Result, "zeros" or "random", optional
        Start; the problem's own by default. Never changed in place. An earlier result is a warm start.
    solver : str, mapping or Solver, optional
        `"splitting.proximal_gradient"`, `{"use": …, "step": 0.1}`, or an object. Without one, the installed solver
        that takes the problem as it is, most exact and with the fewest empty slots; the choice is logged and noted.
    oracles : mapping of str to (str, mapping or Oracle), or "auto", optional
        What lifts which term: `{"penalty": "hjprox.prox"}`; key `slot:NAME` lifts the sum in a slot. "auto" fills
        every gap with the most exact installed oracle that fits; what was chosen stands in the plan.
    constraints : Constraint, sequence or mapping, optional
        Further sets, as objects or as `{"use": "core.box", "lower": 0}`.
    stopping : str, mapping, list or StoppingRule, optional
        `"max_iter(1e4) | grad_norm(1e-6)"`, `{"any": [{"max_iter": 10000}, …]}`, or an object. A default limit is
        added, and noted in the result, where there is none.
    seed : int, optional
        Drawn, logged and stored when not given.
    assign : mapping of str to str, optional
        Term name to slot name, where the plan's own choice is not the one wanted.
    jac, args, bounds, maximize : optional
        For plain callables, as in `scipy.optimize.minimize`: gradient, extra arguments, a sequence of (lower, upper)
        pairs (also `scipy.optimize.Bounds`), and whether to maximize.
    callback : callable, optional
        `callback(progress)` at every check; returning True or raising StopIteration stops the run.
    verbose : bool, default False
        A progress bar on a terminal.
    check_every, value_every, record, max_rows, feasibility_tol, divergence, repetition : optional
        See `infimum.run.run.Run`.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        For anything that does not fit, before the first step where that is possible.
    PlanError
        If the parts of the problem do not fit the solver; says which oracles or solvers would.

    Examples
    --------
    >>> import numpy as np, infimum
    >>> result = infimum.solve(lambda x: float((x - 1) @ (x - 1)), np.zeros(2), jac=lambda x: 2 * (x - 1),
    ...                        solver={"use": "splitting.gradient_descent", "step": 0.25}, seed=0)
    >>> bool(np.allclose(result.x, 1.0, atol=1e-6)), str(result.status)
    (True, 'converged')
    """
    return prepare(problem, x0, **options).solve()


def prepare(
    problem: Any,
    x0: Any = None,
    *,
    solver: Any = None,
    oracles: Any = None,
    constraints: Any = None,
    stopping: Any = None,
    seed: int | None = None,
    assign: Mapping[str, str] | None = None,
    jac: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    bounds: Any = None,
    maximize: bool | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: bool = False,
    base: Path | None = None,
    **run_options: Any,
) -> Run:
    """Everything of `solve` up to the first step: validates, plans, binds, and returns the run.

    Parameters are those of `solve`; `base` is the folder that relative `python:` targets are looked up in first.
    """
    registry = get_registry()
    stated = as_problem(problem, jac=jac, args=args, maximize=maximize, base=base)
    if bounds is not None:
        constraints = [*_as_list(constraints), _as_box(bounds)]
    stated = add_constraints(stated, constraints, base=base)
    rule = as_rule(stopping)
    plan, notes = plan_for(stated, solver, oracles=oracles, assign=assign, base=base, registry=registry)
    observers = [Observer(callback)] if callback is not None else []
    start = _warm(x0)
    run = Run(plan, rule, x0=start, seed=seed, observers=observers, **_checked(run_options))
    for note in notes:
        run.notes.append(note)
    _attach(run, registry, verbose)
    return run


def explain(problem: Any, solver: Any = None, *, oracles: Any = None, constraints: Any = None, **more: Any) -> Any:
    """The plan for one solver, or what every installed solver would do with the problem. Nothing is solved.

    Returns
    -------
    Plan or Explanation
        Both print well and have `to_dict()`.

    Raises
    ------
    PlanError
        If a solver is named and cannot take the problem.
    """
    base = more.pop("base", None)
    assign = more.pop("assign", None)
    stated = as_problem(problem, base=base, **more)
    stated = add_constraints(stated, constraints, base=base)
    registry = get_registry()
    if solver is None:
        return explain_all(stated, oracles=as_choices(oracles, base, registry)[0], registry=registry)
    return plan_for(stated, solver, oracles=oracles, assign=assign, base=base, registry=registry)[0]


def plan_for(
    problem: Problem,
    solver: Any,
    *,
    oracles: Any = None,
    assign: Mapping[str, str] | None = None,
    base: Path | None = None,
    registry: Registry | None = None,
) -> tuple[Plan, list[str]]:
    """A plan for `solver` (or for the best installed one), and notes on what was decided for the user."""
    registry = registry or get_registry()
    choices, allowed = as_choices(oracles, base, registry)
    notes = []
    if solver is None:
        names = able(problem, registry) if not choices else []
        if not names:
            raise PlanError(
                f"no solver was named and none takes {problem.describe()} as it is",
                str(explain_all(problem, oracles=choices, registry=registry)).splitlines()[1:],
            )
        solver = names[0]
        notes.append(f"no solver was named: {solver} takes the problem as it is")
        log.info(notes[-1])
    spec, assign = _split_assign(solver, assign)
    built = build(spec, "solver", base=base, registry=registry)
    if not isinstance(built.instance, Solver):
        raise InputError(f"solver: expected a Solver, got {type(built.instance).__name__}")
    installed = installed_oracles(registry)
    try:
        plan = make_plan(
            problem,
            built.instance,
            solver_name=built.name,
            oracles=choices,
            allowed=allowed,
            installed=installed,
            assign=assign,
        )
    except PlanError as error:
        others = able(problem, registry, but=built.name)
        extra = [f"solvers that take the problem as it is: {', '.join(others)}"] if others else []
        raise PlanError(error.reason, [*error.remedies, *extra]) from None
    return plan, notes


def as_problem(
    problem: Any,
    *,
    jac: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    maximize: bool | None = None,
    base: Path | None = None,
) -> Problem:
    """Whatever states a problem, as a `Problem`."""
    if isinstance(problem, str | Mapping):
        problem = build(problem, "problem", base=base).instance
    if isinstance(problem, Problem):
        if jac is not None or args:
            raise InputError("jac= and args= go with a plain callable; a Problem says its gradients itself")
        if maximize is not None and maximize != (problem.sense == "max"):
            raise InputError(f"maximize={maximize} contradicts the problem's own sense={problem.sense!r}")
        return problem
    sense = "max" if maximize else "min"
    if isinstance(problem, Function):
        return Composite(problem, sense=sense)  # type: ignore[arg-type]
    if callable(problem):
        value = (lambda x: problem(x, *args)) if args else problem
        slope = (lambda x: jac(x, *args)) if args and jac is not None else jac
        name = getattr(problem, "__name__", "")
        return Composite(Function(value, gradient=slope), sense=sense, name=name.strip("<>"))  # type: ignore[arg-type]
    raise InputError(
        f"problem: expected a Problem, a Function, a callable or the name of an installed problem, got "
        f"{type(problem).__name__}"
    )


def add_constraints(problem: Problem, constraints: Any, *, base: Path | None = None) -> Problem:
    """The problem with further constraints, given as objects or as `{use: …}`; `on` in a mapping names a block."""
    if constraints is None or (isinstance(constraints, Sequence) and not constraints):
        return problem
    if not isinstance(problem, Composite):
        raise InputError(f"constraints: a problem of family '{problem.family}' brings its own; set them there")
    if isinstance(constraints, Mapping) and "use" not in constraints:
        items = [(name, one) for name, one in constraints.items()]
    else:
        items = [(None, one) for one in _as_list(constraints)]
    named: dict[str, Constraint] = {}
    places: dict[str, str] = {}
    for name, spec in items:
        block = spec.get("on") if isinstance(spec, Mapping) else None
        if isinstance(spec, Mapping):
            spec = {key: value for key, value in spec.items() if key != "on"}
        one = build(spec, "constraint", base=base).instance
        key = name or _free(type(one).__name__.lower(), named, problem)
        named[key] = one
        if block is not None:
            places[key] = block
    return problem.with_constraints(named, on=places)


def as_rule(stopping: Any) -> StoppingRule | None:
    """A stopping rule from text, mapping, list or object; None and empty ones mean the default."""
    if stopping is None or (isinstance(stopping, str | Mapping | list) and not stopping):
        return None
    if isinstance(stopping, StoppingRule):
        return stopping
    if isinstance(stopping, str):
        return parse(stopping, resolve=rule_class) if stopping.strip() else None
    if isinstance(stopping, Mapping | list):
        return from_mapping(stopping, resolve=rule_class)
    raise InputError(f"stopping: expected text, a mapping or a rule, got {type(stopping).__name__}")


def rule_class(name: str) -> type[StoppingRule]:
    """The class behind a rule's name, qualified or bare."""
    target: type[StoppingRule] = get_registry().find(name, "stopping_rule").load()
    return target


def as_choices(oracles: Any, base: Path | None, registry: Registry) -> tuple[dict[str, Choice], list[Choice]]:
    """Named oracles, and those that may be used unasked (only under "auto")."""
    if oracles is None:
        return {}, []
    if oracles == "auto":
        return {}, installed_oracles(registry)
    if not isinstance(oracles, Mapping):
        raise InputError(f"oracles: expected {{term: oracle}} or 'auto', got {oracles!r}")
    named = {}
    for term, spec in oracles.items():
        built = build(spec, "oracle", base=base, registry=registry)
        if not isinstance(built.instance, Oracle):
            raise InputError(f"oracles: '{term}': expected an Oracle, got {type(built.instance).__name__}")
        named[term] = Choice(built.name, built.instance)
    return named, []


def _split_assign(solver: Any, assign: Mapping[str, str] | None) -> tuple[Any, dict[str, str]]:
    """A solver mapping may carry `assign: {slot: term or [terms]}`; as an argument it is `{term: slot}`."""
    out = dict(assign or {})
    if isinstance(solver, Mapping) and "assign" in solver:
        for slot, terms in solver["assign"].items():
            for term in terms if isinstance(terms, list | tuple) else [terms]:
                out[term] = slot
        solver = {key: value for key, value in solver.items() if key != "assign"}
    return solver, out


_RUN_OPTIONS = (
    "repetition",
    "check_every",
    "value_every",
    "record",
    "max_rows",
    "feasibility_tol",
    "divergence",
)


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _RUN_OPTIONS:
            known = [*_RUN_OPTIONS, "solver", "oracles", "constraints", "stopping", "seed", "assign", "callback"]
            raise InputError(f"solve has no option '{name}'; {did_you_mean(name, known)}")
    return dict(options)


def _warm(x0: Any) -> Any:
    if isinstance(x0, Result):
        return x0.best_x if x0.best_x is not None else x0.x
    return x0


def _attach(run: Run, registry: Registry, verbose: bool) -> None:
    """Life-cycle hooks and observers of the plugins, as plain callables."""
    extra = [Observer(call, every) for group in registry.call_hook("infimum_observers", run=run) for every, call in group]
    if verbose:
        from infimum.run.bar import progress_bar

        extra += progress_bar(run)
    run.monitor.observers = (*run.monitor.observers, *extra)
    run.started.append(lambda one: registry.call_hook("infimum_run_started", run=one))
    run.finished.append(lambda one, result: registry.call_hook("infimum_run_finished", run=one, result=result))


def _as_list(constraints: Any) -> list[Any]:
    if constraints is None:
        return []
    return list(constraints) if isinstance(constraints, list | tuple) else [constraints]


def _free(base: str, taken: Mapping[str, Any], problem: Composite) -> str:
    used = {*taken, *(term.name for term in problem.terms)}
    key, k = base, 2
    while key in used:
        key, k = f"{base}_{k}", k + 1
    return key


def _as_box(bounds: Any) -> Box:
    """SciPy's bounds: a `Bounds` object or a sequence of (lower, upper) pairs with None for no bound."""
    lower, upper = getattr(bounds, "lb", None), getattr(bounds, "ub", None)
    if lower is None or upper is None:
        pairs = list(bounds)
        if any(not isinstance(one, list | tuple) or len(one) != 2 for one in pairs):
            raise InputError(f"bounds: expected a sequence of (lower, upper) pairs, got {bounds!r}")
        lower = [-np.inf if one[0] is None else one[0] for one in pairs]
        upper = [np.inf if one[1] is None else one[1] for one in pairs]
    return Box(lower=np.asarray(lower, dtype=float), upper=np.asarray(upper, dtype=float))


__all__ = ["Explanation", "explain", "prepare", "solve"]

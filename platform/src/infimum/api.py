"""The Python front door: `solve`, `prepare`, `explain`. A run file builds the same objects."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infimum.errors import InputError, PlanError, did_you_mean
from infimum.explanation import Explanation, able, explain_all, installed_oracles
from infimum.inputs import add_constraints, as_problem, as_rule, with_bounds
from infimum.observers.attach import as_observers, attach
from infimum.oracle import Oracle
from infimum.plan.match import Choice
from infimum.plan.plan import Plan, make_plan
from infimum.plugins.build import build
from infimum.plugins.registry import Registry, get_registry
from infimum.problem import Problem
from infimum.result import Result
from infimum.run.monitor import Observer
from infimum.run.run import Run
from infimum.solver import Solver
from infimum.status import Status
from infimum.stopping.rules import BUILT_IN

log = logging.getLogger("infimum")


def solve(problem: Any, x0: Any = None, *, folder: Any = None, checkpoint: Any = None, **options: Any) -> Result:
    """Solve a problem.

    Parameters
    ----------
    problem : Problem, Function, callable, str or mapping
        A problem; a function or plain callable `f(x) -> float` to be minimized; or the name of an installed problem
        (`"problems.lasso"`, `{"use": "problems.lasso", "penalty": 0.1}`).
    x0 : array_like, mapping of blocks, Result, "zeros" or "random", optional
        Start; the problem's own by default. Never changed in place. An earlier result is a warm start: from its
        solution where it converged, else from its best point.
    solver : str, mapping or Solver, optional
        `"splitting.proximal_gradient"`, `{"use": …, "step": 0.1}`, or an object. Without one, the installed solver
        that takes the problem with the fewest oracles (none unless you name some or write "auto"), then most exact,
        then with the fewest empty slots; the choice is logged and noted.
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
    assign : mapping of str to (str or list of str), optional
        Slot name to the term or terms that stand there, where the plan's own choice is not the one wanted. As in a run
        file, a solver given as a mapping may hold it too: `{"use": …, "assign": {"rest": "penalty"}}`.
    jac, args, bounds, maximize : optional
        For plain callables, as in `scipy.optimize.minimize`: gradient (True where the callable returns value and
        gradient), extra arguments, a sequence of (lower, upper) pairs (also `scipy.optimize.Bounds`), and whether to
        maximize.
    callback : callable, optional
        `callback(progress)` at every check; returning True or raising StopIteration stops the run, any other
        exception ends it as `failed`.
    observers : sequence, optional
        What else watches: names (`"core.csv"`), mappings (`{"use": "core.tensorboard", "dir": "events"}`), observers,
        callables, or pairs `(every, callable)`. One that raises is logged, noted and told nothing more; the run goes
        on.
    verbose : bool, default False
        A progress bar on a terminal.
    folder : path, optional
        Keep the run in this folder: result, trace, log, a manifest of what took part, and checkpoints while it lasts,
        one of them when it is interrupted. `infimum.resume(folder)` goes on, `infimum.rerun(folder)` repeats it.
    checkpoint : mapping, optional
        When to write checkpoints into `folder`: `{"every": "30s", "keep": 2}`, or every so many iterations,
        `{"every": 500}`.
    check_every, value_every, record, max_rows, feasibility_tol, divergence, average, repetition : optional
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
    if folder is not None:
        from infimum import solve_into

        kept: Result = solve_into(folder, problem, x0, checkpoint=checkpoint, **options)
        return kept
    if checkpoint is not None:
        raise InputError(f"checkpoint={checkpoint!r} needs a folder to write to: give folder= too")
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
    assign: Mapping[str, Any] | None = None,
    jac: Callable[..., Any] | bool | None = None,
    args: Any = (),
    bounds: Any = None,
    maximize: bool | None = None,
    callback: Callable[..., Any] | None = None,
    observers: Any = None,
    verbose: bool = False,
    base: Path | None = None,
    folder: Path | None = None,
    **run_options: Any,
) -> Run:
    """Everything of `solve` up to the first step: validates, plans, binds, and returns the run.

    Parameters are those of `solve`, without `checkpoint`. `base` is the folder that relative `python:` targets are
    looked up in first. `folder` is where observers write; `solve` keeps the whole run in it.
    """
    registry = get_registry()
    stated = as_problem(problem, jac=jac, args=args, maximize=maximize, base=base)
    stated = add_constraints(stated, with_bounds(constraints, bounds), base=base)
    rule = as_rule(stopping)
    plan, notes = plan_for(stated, solver, oracles=oracles, assign=assign, base=base, registry=registry)
    told = [Observer(callback)] if callback is not None else []
    watching = as_observers(observers, base, registry)
    start = _warm(x0)
    run = Run(plan, rule, x0=start, seed=seed, observers=told, **_checked(run_options))
    run.folder = folder
    for note in notes:
        run.notes.append(note)
    _attach(run, registry, watching, verbose)
    return run


def explain(
    problem: Any,
    solver: Any = None,
    *,
    oracles: Any = None,
    constraints: Any = None,
    assign: Mapping[str, Any] | None = None,
    jac: Callable[..., Any] | bool | None = None,
    args: Any = (),
    bounds: Any = None,
    maximize: bool | None = None,
    base: Path | None = None,
) -> Plan | Explanation:
    """The plan for one solver, or what every installed solver would do with the problem. Nothing is solved.

    Parameters are those of `solve`.

    Returns
    -------
    Plan or Explanation
        Both print well and have `to_dict()`.

    Raises
    ------
    PlanError
        If a solver is named and cannot take the problem.
    """
    stated = as_problem(problem, jac=jac, args=args, maximize=maximize, base=base)
    stated = add_constraints(stated, with_bounds(constraints, bounds), base=base)
    registry = get_registry()
    if solver is None:
        if assign:
            raise InputError("assign: puts terms into the slots of a solver; name the solver too")
        return explain_all(stated, oracles=as_choices(oracles, base, registry)[0], registry=registry)
    return plan_for(stated, solver, oracles=oracles, assign=assign, base=base, registry=registry)[0]


def plan_for(
    problem: Problem,
    solver: Any,
    *,
    oracles: Any = None,
    assign: Mapping[str, Any] | None = None,
    base: Path | None = None,
    registry: Registry | None = None,
) -> tuple[Plan, list[str]]:
    """A plan for `solver` (or for the best installed one), and notes on what was decided for the user."""
    registry = registry or get_registry()
    choices, allowed = as_choices(oracles, base, registry)
    notes = []
    if solver is None:
        solver = _best(problem, choices, allowed, registry)
        notes.append(f"no solver was named: {solver} was chosen")
        log.info(notes[-1])
    spec, places = _split_assign(solver, assign)
    built = build(spec, "solver", base=base, registry=registry)
    if not isinstance(built.instance, Solver):
        raise InputError(f"solver: expected a Solver, got {type(built.instance).__name__}")
    try:
        plan = make_plan(
            problem,
            built.instance,
            solver_name=built.name,
            oracles=choices,
            allowed=allowed,
            # Asked for only by a refusal: every oracle's plugin is imported for it.
            installed=lambda: installed_oracles(registry),
            assign=places,
        )
    except PlanError as error:
        others = able(problem, registry, but=built.name)
        extra = [f"solvers that take the problem as it is: {', '.join(others)}"] if others else []
        raise PlanError(error.reason, [*error.remedies, *extra]) from None
    return plan, notes


def _best(problem: Problem, choices: Mapping[str, Choice], allowed: Sequence[Choice], registry: Registry) -> str:
    """The installed solver that takes a problem with the fewest oracles."""
    names = able(problem, registry, oracles=choices, allowed=allowed)
    if names:
        return names[0]
    rows = explain_all(problem, oracles=choices, registry=registry).rows
    how = "with these oracles" if choices else "with any installed oracle" if allowed else "as it is"
    remedies = []
    for row in rows:
        if row.verdict == "with oracles" and row.plan is not None:
            need = ", ".join(f"{one.term}: {one.oracle}" for one in row.plan.placements if one.oracle)
            remedies.append(f"{row.solver} takes it with  oracles: {{{need}}}  ({row.plan.exactness})")
    if not remedies and rows:
        remedies = [f"{rows[0].solver}: {rows[0].reason.splitlines()[0]}"]
    remedies.append("why the others cannot:  infimum.explain(problem)")
    raise PlanError(f"no solver was named and none takes {problem.describe()} {how}", remedies)


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


def _split_assign(solver: Any, assign: Mapping[str, Any] | None) -> tuple[Any, dict[str, str]]:
    """`assign`, beside a solver or inside its mapping, as term name to slot name."""
    given = dict(assign or {})
    if isinstance(solver, Mapping) and "assign" in solver:
        given = {**solver["assign"], **given}
        solver = {key: value for key, value in solver.items() if key != "assign"}
    out: dict[str, str] = {}
    for slot, terms in given.items():
        for term in terms if isinstance(terms, list | tuple) else [terms]:
            if out.setdefault(term, slot) != slot:
                raise InputError(f"assign: term '{term}' stands in slots '{out[term]}' and '{slot}'; choose one")
    return solver, out


_RUN_OPTIONS = (
    "repetition",
    "check_every",
    "value_every",
    "record",
    "max_rows",
    "feasibility_tol",
    "divergence",
    "average",
)


_FILE_KEYS = {
    "trace": 'record=["METRIC", …] and max_rows=N',
    "metrics": 'record=["METRIC", …]',
    "start": "x0=…",
    "output": "folder=…",
    "repeat": "infimum.sweep(…, repeat=N)",
    "sweep": "infimum.sweep(…, product={…})",
    "compare": "infimum.compare(…, budget={…})",
}
"""Keys of a run file (and words like them) that are called otherwise in Python."""


def option_names() -> list[str]:
    """Names of all options of `solve` that `prepare` takes."""
    own = [one for one in inspect.signature(prepare).parameters if one not in ("base", "run_options")]
    return [*_RUN_OPTIONS, *own]


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in _RUN_OPTIONS:
            hint = _place_of(name) or did_you_mean(name, option_names())
            raise InputError(f"solve has no option '{name}'; {hint}")
    return dict(options)


def _place_of(name: str) -> str:
    """Where an option that is none of `solve` belongs, if it is a stopping rule or an option of a solver."""
    if name in BUILT_IN or name in ("tol", "maxiter"):
        rule = {"tol": "grad_norm", "maxiter": "max_iter"}.get(name, name)
        return f'when to stop is said in stopping="{rule}(…)"'
    if name in _FILE_KEYS:
        return f"what a run file says under {name} is {_FILE_KEYS[name]} here"
    if name in ("step", "step_size", "lr", "acceleration", "options"):
        return f'options of a solver stand beside its name: solver={{"use": NAME, "{name}": …}}'
    return ""


def _warm(x0: Any) -> Any:
    if isinstance(x0, Result):
        # A solution that a method approaches from outside the sets would lose against a feasible start.
        solved = x0.status in (Status.converged, Status.target_reached)
        return x0.x if solved or x0.best_x is None else x0.best_x
    return x0


def _attach(run: Run, registry: Registry, observers: Sequence[Any], verbose: bool) -> None:
    """Life-cycle hooks, observers of the plugins and of the user, and the progress bar."""
    for pairs in registry.call_hook("infimum_observers", run=run):
        try:
            watching = [Observer(call, every) for every, call in pairs]
        except (TypeError, ValueError, InputError) as error:
            log.error("an infimum_observers hook gave %r; expected pairs (every, callable): %s", pairs, error)
        else:
            attach(run, watching)
    attach(run, observers)
    if verbose:
        from infimum.run.bar import progress_bar

        run.monitor.observers = (*run.monitor.observers, *progress_bar(run))

    def started(one: Run) -> None:
        registry.call_hook("infimum_run_started", run=one)

    def finished(one: Run, result: Result) -> None:
        registry.call_hook("infimum_run_finished", run=one, result=result)

    run.started.append(started)
    run.finished.append(finished)


__all__ = ["Explanation", "explain", "prepare", "solve"]

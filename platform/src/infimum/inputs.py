"""What a user may write for a problem, its sets and its stopping rule, as the objects behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from infimum.constraints import Box
from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.plugins.build import build
from infimum.plugins.registry import get_registry
from infimum.problem import Composite, Problem, Sense, free_name
from infimum.run import monitor as run_monitor
from infimum.stopping import StoppingRule, from_mapping, parse


def as_problem(
    problem: Any,
    *,
    jac: Callable[..., Any] | bool | None = None,
    args: Any = (),
    maximize: bool | None = None,
    base: Path | None = None,
) -> Problem:
    """Whatever states a problem, as a `Problem`."""
    if isinstance(problem, str | Mapping):
        problem = build(problem, "problem", base=base).instance
    plain = callable(problem) and not isinstance(problem, Problem | Function)
    if not plain and (jac is not None or args not in ((), None)):
        kind = type(problem).__name__
        raise InputError(f"jac= and args= go with a plain callable; {kind} states its gradient itself")
    if isinstance(problem, Problem):
        if maximize is not None and maximize != (problem.sense == "max"):
            raise InputError(f"maximize={maximize} contradicts the problem's own sense={problem.sense!r}")
        return problem
    sense: Sense = "max" if maximize else "min"
    if isinstance(problem, Function):
        return Composite(problem, sense=sense)
    if plain:
        name = getattr(problem, "__name__", "").strip("<>")
        return Composite(_as_function(problem, jac, args), sense=sense, name=name)
    hint = "; give several terms as infimum.Composite({name: function, …})" if isinstance(problem, list | tuple) else ""
    raise InputError(
        f"problem: expected a Problem, a Function, a callable or the name of an installed problem, got "
        f"{type(problem).__name__}{hint}"
    )


def _as_function(call: Callable[..., Any], jac: Callable[..., Any] | bool | None, args: Any) -> Function:
    """A plain callable in the manner of SciPy."""
    extra = args if isinstance(args, tuple) else () if args is None else (args,)

    def fixed(one: Callable[..., Any]) -> Callable[..., Any]:
        return (lambda x: one(x, *extra)) if extra else one

    if jac is True:
        return Function(value_and_gradient=fixed(call))
    if jac is not None and jac is not False and not callable(jac):
        raise InputError(f"jac={jac!r}: expected the gradient as a callable, or True where f returns both")
    return Function(fixed(call), gradient=fixed(jac) if callable(jac) else None)


def add_constraints(problem: Problem, constraints: Any, *, base: Path | None = None) -> Problem:
    """The problem with further constraints, given as objects or as `{use: …}`; `on` in a mapping names a block."""
    if constraints is None or (isinstance(constraints, Sequence) and not constraints):
        return problem
    if isinstance(constraints, Mapping) and "use" not in constraints:
        specs: list[tuple[str | None, Any]] = list(constraints.items())
    else:
        specs = [(None, one) for one in _as_list(constraints)]
    sets = []
    for name, spec in specs:
        block = spec.get("on") if isinstance(spec, Mapping) else None
        if isinstance(spec, Mapping):
            spec = {key: value for key, value in spec.items() if key != "on"}
        sets.append((name, build(spec, "constraint", base=base).instance, block))
    return place_constraints(problem, sets)


def place_constraints(problem: Problem, sets: Sequence[tuple[str | None, Constraint, str | None]]) -> Problem:
    """The problem with further sets, each with a name (its class's without one) and the block that it is on, if any."""
    if not sets:
        return problem
    if not hasattr(problem, "with_constraints"):
        raise InputError(f"constraints: a problem of family '{problem.family}' brings its own; set them there")
    named: dict[str, Constraint] = {}
    taken = [term.name for term in problem.terms]
    for name, one, _ in sets:
        named[name or free_name(type(one).__name__.lower(), {*named, *taken})] = one
    places = {name: block for name, (_, _, block) in zip(named, sets, strict=True) if block is not None}
    placed: Problem = problem.with_constraints(named, on=places)
    return placed


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
    hint = "; a function of your own that says when to stop goes into callback=" if callable(stopping) else ""
    raise InputError(f"stopping: expected text, a mapping or a rule, got {type(stopping).__name__}{hint}")


class Monitor(run_monitor.Monitor):
    # The rules of the plugins have names too, which the layer of the loop knows nothing of.
    __doc__ = run_monitor.Monitor.__doc__

    def __init__(self, rule: Any, metrics: Sequence[str] = (), **options: Any) -> None:
        found = as_rule(rule)
        if found is None:
            raise InputError("Monitor: the rule is empty; give one, such as 'target(0.1) | stall(20)'")
        super().__init__(found, metrics, **options)


def rule_class(name: str) -> type[StoppingRule]:
    """The class behind a rule's name, qualified or bare."""
    target: type[StoppingRule] = get_registry().find(name, "stopping_rule").load()
    return target


def with_bounds(constraints: Any, bounds: Any) -> Any:
    """Constraints and, beside them, SciPy's bounds as a box named `bounds`; bounds that bound nothing are no set."""
    box = None if bounds is None else _as_box(bounds)
    if box is None:
        return constraints
    if isinstance(constraints, Mapping) and "use" not in constraints:
        return {**constraints, "bounds": box}
    return [*_as_list(constraints), box]


def _as_box(bounds: Any) -> Box | None:
    """SciPy's bounds: a `Bounds` object or a sequence of (lower, upper) pairs with None for no bound."""
    lower, upper = getattr(bounds, "lb", None), getattr(bounds, "ub", None)
    if lower is None or upper is None:
        try:
            pairs = [tuple(pair) for pair in bounds]
        except TypeError:
            pairs = [()]
        if any(len(pair) != 2 for pair in pairs):
            raise InputError(
                f"bounds: expected a sequence of (lower, upper) pairs, got {bounds!r}; give one pair for each entry "
                "of x, or constraints=[Box(lower=…, upper=…)]"
            )
        lower = [-np.inf if low is None else low for low, _ in pairs]
        upper = [np.inf if high is None else high for _, high in pairs]
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    return None if np.isneginf(low).all() and np.isposinf(high).all() else Box(lower=low, upper=high)


def _as_list(constraints: Any) -> list[Any]:
    if constraints is None:
        return []
    return list(constraints) if isinstance(constraints, list | tuple) else [constraints]

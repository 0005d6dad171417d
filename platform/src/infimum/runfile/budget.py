"""`compare` of a run file: which methods on which problems, at which budget, measured by which targets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infimum.errors import InputError, did_you_mean
from infimum.runfile.keys import TOP_KEYS
from infimum.runfile.reader import kind_of
from infimum.runfile.tree import Node, Path
from infimum.runfile.vary import Choice, Fail, Variant, longer, short
from infimum.stopping.base import StoppingRule
from infimum.stopping.rules import MaxCalls, MaxIter, MaxSolverTime

OPTIONS = ("solvers", "problems", "budget", "targets", "references")
PROBLEM_KEYS = ("problem", "constraints", "x0", "value_every")
"""What an entry of `problems` may state, where it is more than a problem."""
SOLVER_KEYS = ("solver", "oracles", "check_every")
"""What an entry of `solvers` may state, where it is more than a solver."""
REFERENCE_KEYS = ("solver", "oracles", "stopping")
"""What an entry of `references` may state, where it is more than a number or a solver."""
TARGETS = (1e-1, 1e-3, 1e-5)
MEASURES = ("decrease", "gap", "value")


@dataclass(frozen=True, eq=False)
class Terms:
    """On what terms methods are compared.

    Attributes
    ----------
    budget : str
        "iterations", "seconds", or a capability.
    amount : float
    targets : tuple of float
        From loose to strict.
    measure : {"decrease", "gap", "value"}
    references : dict
        Problem label to its known best value, or to the solver that is to find it (a mapping with the key `solver`).
    origins : dict
        Problem label to where its reference is from, if not from the user.
    """

    budget: str
    amount: float
    targets: tuple[float, ...] = TARGETS
    measure: str = "decrease"
    references: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def rule(self) -> StoppingRule:
        """The limit that every run has."""
        if self.budget == "iterations":
            return MaxIter(int(self.amount))
        if self.budget == "seconds":
            return MaxSolverTime(self.amount)
        return MaxCalls(int(self.amount), self.budget)


def read_compare(node: Node, fail: Fail) -> tuple[list[Variant], Terms | None]:
    """Every method on every problem, and the terms; mistakes go to `fail(node, path, message)`."""
    if not isinstance(node.value, dict):
        fail(node, ("compare",), f"compare: expected a mapping with {', '.join(OPTIONS)}, got {kind_of(node.plain)}")
        return [], None
    for name, child in node.value.items():
        if name not in OPTIONS:
            fail(child, ("compare", name), f"compare has no option '{name}'; {did_you_mean(name, OPTIONS)}")
    solvers = _entries(node, "solvers", "solver", SOLVER_KEYS, fail)
    problems = _entries(node, "problems", "problem", PROBLEM_KEYS, fail)
    if node.child("solvers") is None:
        fail(node, ("compare",), "compare: 'solvers' is missing; name at least one")
    terms = _terms(node, fail)
    variants = [
        Variant((*choices, *more), parts={"problem": problem, "solver": solver})
        for problem, choices in (problems or [("", ())])
        for solver, more in solvers
    ]
    return variants, terms


def _entries(
    node: Node, name: str, kind: str, allowed: tuple[str, ...], fail: Fail
) -> list[tuple[str, tuple[Choice, ...]]]:
    """Labels with what each entry puts where."""
    listed = node.child(name)
    if listed is None:
        return []
    path: Path = ("compare", name)
    value = listed.value
    if isinstance(value, dict) and "use" not in value:
        pairs: list[tuple[str | None, str | int, Node]] = [(key, key, one) for key, one in value.items()]
    elif isinstance(value, list) and value:
        pairs = [(None, k, one) for k, one in enumerate(value)]
    else:
        fail(listed, path, f"{name}: expected a list, or {{label: {kind}}}, got {kind_of(listed.plain)}")
        return []
    found = []
    labels = _labels([(label, one) for label, _, one in pairs], kind)
    for label, (_, key, one) in zip(labels, pairs, strict=True):
        choices = _choices(one, (*path, key), kind, allowed, label, fail)
        if choices:
            found.append((label, choices))
    return found


def _labels(entries: list[tuple[str | None, Node]], kind: str) -> list[str]:
    """Given labels, else names, with options where names do not tell the entries apart."""
    plain = [one.plain for _, one in entries]
    inner = [value.get(kind, value) if isinstance(value, dict) and "use" not in value else value for value in plain]
    labels = [label or short(one) for (label, _), one in zip(entries, inner, strict=True)]
    for spelled in (inner, plain):
        if len(set(labels)) == len(labels):
            break
        labels = [label or longer(one) for (label, _), one in zip(entries, spelled, strict=True)]
    counted: dict[str, int] = {}
    for k, label in enumerate(labels):
        counted[label] = counted.get(label, 0) + 1
        if counted[label] > 1:
            labels[k] = f"{label} ({counted[label]})"
    return labels


def _choices(node: Node, path: Path, kind: str, allowed: tuple[str, ...], label: str, fail: Fail) -> tuple[Choice, ...]:
    if not isinstance(node.value, dict | list) or (isinstance(node.value, dict) and "use" in node.value):
        return (Choice((kind,), node, label),)
    if not isinstance(node.value, dict) or not node.value:
        fail(node, path, f"expected a {kind}, or {{{kind}: …, {allowed[1]}: …}}, got {kind_of(node.plain)}")
        return ()
    unknown = [name for name in node.value if name not in allowed]
    for name in unknown:
        more = "" if name in TOP_KEYS else f"; {did_you_mean(name, allowed)}"
        fail(node.value[name], (*path, name), f"'{name}' cannot differ between the {kind}s of a comparison{more}")
    return () if unknown else tuple(Choice((name,), one, label) for name, one in node.value.items())


def _terms(node: Node, fail: Fail) -> Terms | None:
    given = node.child("budget")
    if given is None:
        fail(
            node,
            ("compare",),
            "compare: 'budget' is missing; say at what the runs are equal: {iterations: 1000}, "
            "{seconds: 10}, or evaluations such as {value: 500}, {gradient: 200}, {prox: 200}",
        )
        return None
    try:
        budget, amount = as_budget(given.plain)
    except InputError as error:
        fail(given, ("compare", "budget"), str(error))
        return None
    try:
        targets = node.child("targets")
        measure, levels = as_targets(None if targets is None else targets.plain)
    except InputError as error:
        assert targets is not None
        fail(targets, ("compare", "targets"), str(error))
        return None
    return Terms(budget, amount, levels, measure, _references(node.child("references"), fail))


def as_budget(given: Any) -> tuple[str, float]:
    """`{iterations: 1000}` as name and amount.

    Raises
    ------
    InputError
        For anything else.
    """
    wanted = "expected one of {iterations: n}, {seconds: s}, or {capability: n} such as {gradient: 200}"
    if not isinstance(given, Mapping) or len(given) != 1:
        raise InputError(f"budget: {wanted}, got {given!r}")
    (name, amount) = next(iter(given.items()))
    good = isinstance(amount, int | float) and not isinstance(amount, bool) and math.isfinite(amount) and amount > 0
    if not isinstance(name, str) or not name.isidentifier() or not good:
        raise InputError(f"budget: {wanted}, got {dict(given)!r}")
    if name != "seconds" and amount != int(amount):
        raise InputError(f"budget: {name} are counted, expected a whole number, got {amount!r}")
    return name, float(amount)


def as_targets(given: Any) -> tuple[str, tuple[float, ...]]:
    """Targets as measure and levels, from loose to strict.

    Raises
    ------
    InputError
        If they are no list of numbers, nor one under decrease, gap or value.
    """
    if given is None:
        return MEASURES[0], TARGETS
    measure = MEASURES[0]
    if isinstance(given, Mapping):
        if len(given) != 1 or next(iter(given)) not in MEASURES:
            raise InputError(f"targets: expected a list, or one of {', '.join(MEASURES)} with a list, got {given!r}")
        measure, given = next(iter(given.items()))
    numbers = list(given) if isinstance(given, list | tuple) else [given]
    if not numbers or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        raise InputError(f"targets: expected numbers, got {given!r}")
    if measure != "value" and not all(0 < one < math.inf for one in numbers):
        raise InputError(f"targets: expected numbers > 0, got {given!r}")
    unique = dict.fromkeys(float(one) for one in numbers)
    return measure, tuple(unique) if measure == "value" else tuple(sorted(unique, reverse=True))


def _references(node: Node | None, fail: Fail) -> dict[str, Any]:
    """Problem label to a value or a solver; what counts for all problems stands under the empty label."""
    if node is None:
        return {}
    one = _reference(node.value if not isinstance(node.value, dict | list) else node.plain)
    if one is not None:
        return {"": one}
    path: Path = ("compare", "references")
    wanted = "expected a number, a solver such as {use: name}, or {problem: number or solver}"
    if not isinstance(node.value, dict) or not node.value:
        fail(node, path, f"references: {wanted}, got {kind_of(node.plain)}")
        return {}
    found = {}
    for name, child in node.value.items():
        found[name] = _reference(child.plain)
        if found[name] is None:
            fail(child, (*path, name), f"references: {wanted}, got {kind_of(child.plain)}")
    return found


def _reference(value: Any) -> Any:
    """A number, or a solver with what may stand beside it; None for anything else."""
    if isinstance(value, bool) or value is None or isinstance(value, list):
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    if not isinstance(value, Mapping):
        return {"solver": value}
    if "use" in value:
        return {"solver": dict(value)}
    return dict(value) if "solver" in value and set(value) <= set(REFERENCE_KEYS) else None

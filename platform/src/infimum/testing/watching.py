"""Functions and problems behind a witness that counts every call for itself and can turn results into NaN."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import numpy as np

from infimum.arrays import Array, is_array
from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum.functions.base import FACTS, Function
from infimum.problem import Composite, Problem

# Written out here on purpose: a count by the host's own table would agree with a wrong table.
COUNTED = {"value_and_gradient": ("value", "gradient"), "values": ("value",)}


class Witness:
    """Counts calls and points, and poisons results after a number of calls.

    Attributes
    ----------
    points : Counter
        Points by (term, capability).
    calls : int
        Calls of functions, of any capability; sets do not count here.
    poison_after : int or None
        After so many calls every function returns NaN.
    at_poison : callable, optional
        Called once, at the first poisoned call.
    """

    def __init__(self, poison_after: int | None = None, at_poison: Callable[[], None] | None = None) -> None:
        self.points: Counter[tuple[str, str]] = Counter()
        self.calls = 0
        self.poison_after, self.at_poison = poison_after, at_poison

    def of_function(self, term: str, name: str, call: Callable[..., Any], *args: Any) -> Any:
        self._count(term, name, args)
        self.calls += 1
        out = call(*args)
        if self.poison_after is None or self.calls <= self.poison_after:
            return out
        if self.at_poison is not None:
            tell, self.at_poison = self.at_poison, None
            tell()
        return _poisoned(out)

    def of_set(self, term: str, name: str, call: Callable[..., Any], *args: Any) -> Any:
        self._count(term, name, args)
        return call(*args)

    def _count(self, term: str, name: str, args: tuple[Any, ...]) -> None:
        n = int(args[0].shape[0]) if name == "values" else 1
        for counted in COUNTED.get(name, (name,)):
            self.points[term, counted] += n


def _poisoned(out: Any) -> Any:
    if isinstance(out, tuple):
        return tuple(_poisoned(one) for one in out)
    if is_array(out) or isinstance(out, np.generic):
        return out * float("nan")
    return float("nan") if isinstance(out, int | float) else out


class WatchedFunction(Function):
    """A function of which every capability goes through a witness, or some capabilities are hidden."""

    def __init__(
        self, function: Any, watch: Callable[..., Any] | None = None, only: Collection[str] | None = None
    ) -> None:
        self.function, self.watch, self.only = function, watch, only
        offered = frozenset(function.capabilities)
        self._offered = offered if only is None else offered & frozenset(only)
        for name in self._offered:
            call = getattr(function, name)
            setattr(self, name, call if watch is None else partial(watch, name, call))
        for fact in FACTS:
            setattr(self, fact, getattr(function, fact, FACTS[fact]))

    @property
    def capabilities(self) -> frozenset[str]:
        return self._offered

    @property
    def origin(self) -> Any:
        """What a solver that reads functions finds behind this one."""
        return self.function

    def check(self, x: Array) -> None:
        self.function.check(x)

    def to(self, x: Array) -> Function:
        return WatchedFunction(self.function.to(x), self.watch, self.only)

    def __repr__(self) -> str:
        return f"{self.function!r}"


class WatchedSet(Constraint):
    """A set of which every capability goes through a witness."""

    def __init__(self, body: Any, watch: Callable[..., Any]) -> None:
        self.body, self.watch = body, watch
        self.convex = getattr(body, "convex", None)
        for name in body.capabilities:
            setattr(self, name, partial(watch, name, getattr(body, name)))

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(self.body.capabilities)

    @property
    def origin(self) -> Any:
        """What a solver that reads sets finds behind this one."""
        return self.body

    def check(self, x: Array) -> None:
        self.body.check(x)

    def to(self, x: Array) -> Constraint:
        return WatchedSet(self.body.to(x), self.watch)

    def __repr__(self) -> str:
        return f"{self.body!r}"


def watched(problem: Problem, witness: Witness) -> Problem:
    """The problem with all its terms behind `witness`; linear maps stay outside of it.

    Raises
    ------
    InputError
        For a family other than `Composite`.
    """

    def function(name: str, body: Any) -> Function:
        if (map_ := getattr(body, "map", None)) is not None:
            composed: Function = function(name, body.function) @ map_
            return composed
        return WatchedFunction(body, partial(witness.of_function, name))

    return rebuilt(problem, function, lambda name, body: WatchedSet(body, partial(witness.of_set, name)))


def negated(problem: Problem) -> Problem:
    """The same problem stated as a maximum: every function times -1."""
    return rebuilt(problem, lambda _, body: -body, lambda _, body: body, sense="max")


def rebuilt(
    problem: Problem,
    function: Callable[[str, Any], Any],
    constraint: Callable[[str, Any], Any],
    sense: str | None = None,
) -> Problem:
    """A `Composite` with changed terms.

    Raises
    ------
    InputError
        For another family.
    """
    if type(problem) is not Composite:
        raise InputError(f"a problem of type {type(problem).__name__} cannot be rebuilt with other terms")
    terms = problem.terms
    return Composite(
        {one.name: function(one.name, one.body) for one in terms if one.role == "term"},
        constraints={one.name: constraint(one.name, one.body) for one in terms if one.role == "constraint"},
        start=problem.start(np.random.default_rng(0)),
        blocks=problem.layout.shapes if problem.layout is not None else None,
        on={one.name: one.on for one in terms if one.on is not None},
        sense=problem.sense if sense is None else sense,  # type: ignore[arg-type]
        name=problem.name,
    )

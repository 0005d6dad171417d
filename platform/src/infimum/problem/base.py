"""The contract of families: what a problem says of itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from infimum import arrays
from infimum.errors import InputError
from infimum.vocabulary import Role

Sense = Literal["min", "max"]
PointMetric = Callable[[Any, Any], float | None]
"""`(point, previous point or None) -> number or None`."""


@dataclass(frozen=True, slots=True)
class Term:
    """A named piece of a problem: a function, a set, or whatever a family is made of.

    Attributes
    ----------
    name : str
    body : object
        Has `capabilities`, a set of names, each of them an attribute of it.
    on : str or None
        Block name or parameter pattern; None means the whole point.
    role : {"term", "constraint"}
    """

    name: str
    body: Any
    on: str | None = None
    role: Role = "term"


@dataclass(frozen=True, slots=True)
class Cadence:
    """A metric of points that costs much: taken every `every` iterations and at the end, also where a rule reads it.

    The user's `value_every` goes before it.
    """

    measure: PointMetric
    every: int

    def __call__(self, point: Any, previous: Any) -> float | None:
        return self.measure(point, previous)


class Problem:
    """Base of all families: what is to be solved.

    A family says its terms, how a run starts and copies points, and which metric ranks points (`merit`). The
    defaults suit a family whose points are opaque to the host.
    """

    family: ClassVar[str] = ""
    name: str = ""
    sense: Sense = "min"
    resume: Literal["exact", "replay", "none"] = "exact"
    reference: float | None = None
    """Known optimal value of the merit, in the user's sense."""

    @property
    def terms(self) -> tuple[Term, ...]:
        raise NotImplementedError

    @property
    def merit(self) -> str | None:
        """Name of the metric that ranks points, or None when no point is better than another."""
        return None

    @property
    def recorded(self) -> tuple[str, ...]:
        """Metrics that a trace holds unasked where they are supplied, beside the merit and the violation."""
        return ()

    def start(self, rng: np.random.Generator) -> Any:
        """A starting point when the user gives none."""
        return None

    def prepare(self, start: Any) -> Any:
        """The host's own copy of a start, checked, in the form that solvers see."""
        return start

    def copy(self, point: Any) -> Any:
        """An independent copy of a point."""
        return point

    def view(self, term: Term, point: Any = None) -> Any:
        """The term's body to be minimized: flipped for `sense="max"`, its data fitting `point`."""
        return term.body

    def embeds(self, term: Term) -> bool:
        """Whether the term sees only a piece of the point, so that `embed` has something to do."""
        return False

    def embed(self, part: Any, term: Term) -> Any:
        """A part of one term as a function of the whole point."""
        return part

    def embed_map(self, map_: Any, term: Term) -> Any:
        """A map of one term's piece of the point as a map of the whole point."""
        return map_

    def dimension(self, term: Term | None = None) -> int | None:
        """Number of variables that a term sees (of the whole point without one), where it is known without a start."""
        return None

    def joined(self, terms: Sequence[Term], offers: Sequence[frozenset[str]]) -> frozenset[str]:
        """Capabilities that terms in one slot have together, when each offers `offers`; more terms never add any."""
        return offers[0] if len(terms) == 1 else frozenset()

    def join(self, terms: Sequence[Term], parts: Sequence[Any]) -> Any:
        """One part from the parts of several terms in one slot."""
        if len(parts) != 1:
            raise InputError(f"family '{self.family}' does not join terms in one slot")
        return parts[0]

    def units(self, terms: Sequence[Term]) -> int:
        """How many terms a slot's `at_most` counts."""
        return len(terms)

    def metrics(self, point: Any) -> Mapping[str, PointMetric]:
        """Metrics that the family computes from points alone, in the user's sense. Never calls a stateful part."""
        return {}

    def square(self, point: Any) -> Any:
        """A cheap sum of squares of a point, below any bound only if the point is finite and below that bound."""
        return math.nan

    def size(self, point: Any) -> float | None:
        """Norm of a point: NaN or inf where it is not finite, None where the family has no such thing."""
        return None

    def unpack(self, point: Any) -> Any:
        """A point in the form in which the user gave it."""
        return point

    def dump(self, point: Any) -> Any:
        """A point as a plain tree."""
        return point

    def load(self, tree: Any) -> Any:
        """A point from what `dump` gave."""
        return tree

    def describe(self, point: Any = None) -> str:
        """The problem in a few words, for plans and results."""
        return self.name or type(self).__name__


START_WORDS = ("zeros", "random")


def start_by(word: str, problem: Problem, rng: np.random.Generator) -> Any:
    """The start that a word asks for: zeros, or standard normal numbers, like the problem's own start.

    Raises
    ------
    InputError
        For another word, or a problem whose points are no arrays.
    """
    if word not in START_WORDS:
        raise InputError(f"x0={word!r}: expected an array, 'zeros' or 'random'")
    return _filled(word, problem.prepare(problem.start(rng)), rng)


def _filled(word: str, like: Any, rng: np.random.Generator) -> Any:
    if isinstance(like, Mapping):
        return {name: _filled(word, one, rng) for name, one in like.items()}
    if not hasattr(like, "shape"):
        raise InputError(f"x0: {word} needs a problem whose points are arrays; leave x0 out to let the problem choose")
    numbers = np.zeros(tuple(like.shape)) if word == "zeros" else rng.standard_normal(tuple(like.shape))
    return arrays.like(numbers, like)


def as_point(x: Any, what: str) -> arrays.Array:
    """`x` as a real floating array with finite entries; integers become float64."""
    if arrays.is_sparse(x):
        raise InputError(f"{what} is a SciPy sparse matrix; expected a dense array, such as its toarray()")
    return arrays.as_data(x, what, remedy="a start must be finite")

"""Problems: the family contract, and the host's own family `Composite`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from infimum import arrays
from infimum.arrays import Array
from infimum.constraints.base import Constraint
from infimum.errors import InputError, did_you_mean
from infimum.functions.algebra import SMOOTH, Sum, scaled
from infimum.functions.base import Function
from infimum.functions.blocks import Layout, OnBlock, SetOnBlock, place
from infimum.functions.maps import BlockMap

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
    role: Literal["term", "constraint"] = "term"


class Problem:
    """Base of all families: what is to be solved.

    A family says its terms, how a run starts and copies points, and which metric ranks points (`merit`). The
    defaults suit a family whose points are opaque to the host.
    """

    family: ClassVar[str] = ""
    name: str = ""
    sense: Sense = "min"
    resume: Literal["exact", "replay", "none"] = "exact"

    @property
    def terms(self) -> tuple[Term, ...]:
        raise NotImplementedError

    @property
    def merit(self) -> str | None:
        """Name of the metric that ranks points, or None when no point is better than another."""
        return None

    @property
    def needs_rng(self) -> bool:
        """Whether `view` bodies draw random numbers of their own."""
        return False

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

    def joined(self, terms: Sequence[Term], offers: Sequence[frozenset[str]]) -> frozenset[str]:
        """Capabilities that terms in one slot have together, when each offers `offers`."""
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


class Composite(Problem):
    """Minimize `sum_i f_i(A_i x)` over `x` in the constraints.

    Parameters
    ----------
    terms : mapping of str to Function, or Function
        Named terms; a single function is named `objective`.
    constraints : mapping of str to Constraint, sequence of Constraint, or Constraint
        Named after their class where no names are given.
    start : array_like or mapping of str to array_like, optional
        Default starting point. Without one: zeros of the shape that the terms ask for.
    blocks : mapping of str to tuple of int, optional
        Named blocks of `x` with their shapes. Solvers see one flat vector; terms see their block in its shape.
    on : mapping of str to str, optional
        Term or constraint name to the block that it acts on. A map from several blocks is `f @ {"L": A, "S": B}`.
    sense : {"min", "max"}, default "min"
        With "max" the sum of the terms is maximized; values and targets stay in your sense.
    reference : float, optional
        Known optimal value; gives the metric `gap` = |F - F*| / max(1, |F*|).
    name : str, optional

    Raises
    ------
    InputError
        For no terms, clashing names, things that are not functions or sets, blocks that nobody knows.

    Examples
    --------
    >>> import numpy as np, infimum
    >>> from infimum.functions import L1, LeastSquares
    >>> A, b = np.eye(3), np.array([1.0, 0.05, -2.0])
    >>> problem = infimum.Composite({"loss": LeastSquares(A, b, reduction="sum"), "penalty": 0.1 * L1()})
    >>> float(round(problem.value(np.zeros(3)), 4))
    2.5013
    """

    family = "composite"

    def __init__(
        self,
        terms: Mapping[str, Function] | Function,
        *,
        constraints: Mapping[str, Constraint] | Sequence[Constraint] | Constraint = (),
        start: Any = None,
        blocks: Mapping[str, tuple[int, ...]] | None = None,
        on: Mapping[str, str] | None = None,
        sense: Sense = "min",
        reference: float | None = None,
        name: str = "",
    ) -> None:
        if sense not in ("min", "max"):
            raise InputError(f"sense={sense!r}: expected 'min' or 'max'")
        named = {"objective": terms} if isinstance(terms, Function) else dict(terms)
        sets = _name_sets(constraints)
        if not named and not sets:
            raise InputError("Composite without terms: give at least one function, such as {'loss': f}")
        if clash := set(named) & set(sets):
            raise InputError(f"a term and a constraint are both called '{min(clash)}'; rename one")
        for key, body in named.items():
            if not isinstance(body, Function):
                hint = "; sets go into constraints=" if isinstance(body, Constraint) else ""
                raise InputError(f"term '{key}': expected a Function, got {type(body).__name__}{hint}")
        self.name, self.sense, self.reference = name, sense, reference
        self.layout = Layout(blocks) if blocks else None
        self._start = start
        placed = dict(on or {})
        self._terms = tuple(
            [Term(key, body, placed.pop(key, None)) for key, body in named.items()]
            + [Term(key, body, placed.pop(key, None), "constraint") for key, body in sets.items()]
        )
        if placed:
            key = next(iter(placed))
            raise InputError(f"on={{'{key}': …}}: no such term; {did_you_mean(key, [t.name for t in self._terms])}")
        self._check_blocks()

    def _check_blocks(self) -> None:
        known = list(self.layout.shapes) if self.layout else []
        for term in self._terms:
            names = [term.on] if term.on is not None else []
            map_ = getattr(term.body, "map", None)
            if isinstance(map_, BlockMap):
                names += list(map_.maps)
            for block in names:
                if block not in known:
                    raise InputError(f"term '{term.name}' acts on block '{block}'; {did_you_mean(block, known)}")

    @property
    def terms(self) -> tuple[Term, ...]:
        return self._terms

    @property
    def merit(self) -> str | None:
        functions = [term for term in self._terms if term.role == "term"]
        return "value" if functions and all(_has_value(term.body) for term in functions) else None

    def with_constraints(self, constraints: Any, on: Mapping[str, str] | None = None) -> Composite:
        """The same problem with further constraints."""
        new = _name_sets(constraints)
        functions = {t.name: t.body for t in self._terms if t.role == "term"}
        sets = {t.name: t.body for t in self._terms if t.role == "constraint"}
        for key in new:
            if key in sets:
                raise InputError(f"the problem already has a constraint called '{key}'; give yours another name")
        return Composite(
            functions,
            constraints={**sets, **new},
            start=self._start,
            blocks=self.layout.shapes if self.layout else None,
            on={**{t.name: t.on for t in self._terms if t.on is not None}, **(on or {})},
            sense=self.sense,
            reference=self.reference,
            name=self.name,
        )

    def start(self, rng: np.random.Generator) -> Any:
        if self._start is not None:
            return self._start
        if self.layout is not None:
            return np.zeros(self.layout.size)
        for term in self._terms:
            shape = getattr(term.body, "shape", None)
            if shape is not None:
                return np.zeros(shape)
        raise InputError("no term says the shape of x: pass x0= (or Composite(…, start=…))")

    def prepare(self, start: Any) -> Array:
        if isinstance(start, Mapping):
            if self.layout is None:
                raise InputError(f"x0 is a mapping of {sorted(start)}, but the problem has no blocks; pass an array")
            start = self.layout.pack({key: _as_point(value, f"x0['{key}']") for key, value in start.items()})
        x = arrays.copy(_as_point(start, "x0"))
        if self.layout is not None and tuple(x.shape) != (self.layout.size,):
            raise InputError(
                f"x0 is {tuple(x.shape)}, the blocks {dict(self.layout.shapes)} pack into ({self.layout.size},)"
            )
        for term in self._terms:
            body, point = self.view(term), x
            if self.layout is not None and term.on is not None:
                point = self.layout.unpack(x)[term.on]
            try:
                body.check(point)
            except InputError as error:
                raise InputError(f"term '{term.name}': {error}") from None
        return x

    def copy(self, point: Array) -> Array:
        return arrays.copy(point)

    def view(self, term: Term, point: Any = None) -> Any:
        body = term.body
        if self.layout is not None and term.role == "term":
            body = place(body, self.layout)
        if self.sense == "max" and term.role == "term":
            body = scaled(body, -1.0)
        return body if point is None else body.to(point)

    def embeds(self, term: Term) -> bool:
        return self.layout is not None and term.on is not None

    def embed(self, part: Any, term: Term) -> Any:
        if self.layout is None or term.on is None:
            return part
        kind = SetOnBlock if term.role == "constraint" and not hasattr(part, "value") else OnBlock
        return kind(part, self.layout, term.on)

    def units(self, terms: Sequence[Term]) -> int:
        return 1 if terms and _disjoint(terms) else len(terms)

    def joined(self, terms: Sequence[Term], offers: Sequence[frozenset[str]]) -> frozenset[str]:
        common = frozenset.intersection(*offers)
        return common if len(terms) == 1 or _disjoint(terms) else common & (SMOOTH | {"hessian"})

    def join(self, terms: Sequence[Term], parts: Sequence[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        return Stacked(parts) if _disjoint(terms) else Sum(parts)

    def value(self, x: Any) -> float:
        """The objective at `x` (an array, or a mapping of blocks), in the user's sense; sets are not in it."""
        point = self.prepare(x)
        value = self.metrics(point)["value"](point, None)
        if value is None:
            raise InputError("not every term offers a value")
        return value

    def violation(self, x: Any) -> float:
        """The largest violation among the constraints at `x`; 0 without constraints."""
        point = self.prepare(x)
        metric = self.metrics(point).get("violation")
        return float(metric(point, None) or 0.0) if metric else 0.0

    def metrics(self, point: Array) -> Mapping[str, PointMetric]:
        out: dict[str, PointMetric] = {"rel_change": _rel_change, "abs_change": _abs_change}
        functions = [self._plain(term, point) for term in self._terms if term.role == "term"]
        sets = [self._plain(term, point) for term in self._terms if term.role == "constraint"]
        if self.merit is not None:
            calls = [f.value if hasattr(f, "value") else _value_of(f) for f in functions]
            sign = -1.0 if self.sense == "max" else 1.0

            def value(x: Array, _: Any) -> float:
                return sign * sum(float(call(x)) for call in calls)

            out["value"] = value
            if self.reference is not None:
                reference = self.reference
                out["gap"] = lambda x, _: abs(value(x, None) - reference) / max(1.0, abs(reference))
        if sets:
            out["violation"] = lambda x, _: max(float(one.violation(x)) for one in sets)
        return out

    def _plain(self, term: Term, point: Array) -> Any:
        return self.embed(self.view(term, point), term)

    def square(self, point: Array) -> Any:
        return point.dot(point) if point.ndim == 1 else arrays.norm(point) ** 2

    def size(self, point: Array) -> float:
        return arrays.norm(point)

    def unpack(self, point: Array) -> Any:
        return point if self.layout is None else self.layout.unpack(point)

    def describe(self, point: Any = None) -> str:
        name = self.name or "Composite"
        if point is None:
            return name
        n = int(np.prod(point.shape))
        return f"{name} ({n} variable{'s' if n != 1 else ''}, {str(point.dtype).rpartition('.')[2]})"

    def __repr__(self) -> str:
        inside = ", ".join(f"{t.name}: {t.body!r}" + (f" on {t.on}" if t.on else "") for t in self._terms)
        return f"Composite({'maximize ' if self.sense == 'max' else ''}{inside})"


class Stacked(Function):
    """Terms on disjoint blocks as one separable function of the packed vector."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = tuple(parts)
        self._common = frozenset.intersection(*(part.capabilities for part in parts))
        summed = Sum(parts)
        for name in self._common & summed.capabilities:
            setattr(self, name, getattr(summed, name))
        for name in self._common & {"prox", "project"}:
            setattr(self, name, _in_turn([getattr(part, name) for part in parts]))
        self.convex, self.extended = summed.convex, summed.extended
        self._offers = (self._common & summed.capabilities) | (self._common & {"prox", "project"})

    @property
    def capabilities(self) -> frozenset[str]:
        return self._offers

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        constants = [part.lipschitz for part in self.parts]
        return None if None in constants else max(constants)


def _in_turn(calls: Sequence[Callable[..., Array]]) -> Callable[..., Array]:
    def apply(v: Array, *args: Any) -> Array:
        for call in calls:
            v = call(v, *args)
        return v

    return apply


def _disjoint(terms: Sequence[Term]) -> bool:
    blocks = [term.on for term in terms]
    return None not in blocks and len(set(blocks)) == len(blocks)


def _has_value(body: Any) -> bool:
    return bool({"value", "value_and_gradient"} & body.capabilities)


def _value_of(body: Any) -> Callable[[Array], float]:
    return lambda x: float(body.value_and_gradient(x)[0])


def _rel_change(x: Array, previous: Array | None) -> float | None:
    if previous is None:
        return None
    change, size = arrays.norm(x - previous), arrays.norm(x)
    return change / size if size > 1.0 else change


def _abs_change(x: Array, previous: Array | None) -> float | None:
    return None if previous is None else arrays.norm(x - previous)


def _name_sets(constraints: Any) -> dict[str, Constraint]:
    if isinstance(constraints, Constraint):
        constraints = (constraints,)
    if isinstance(constraints, Mapping):
        named = dict(constraints)
    else:
        named = {}
        for one in constraints:
            base = type(one).__name__.lower()
            key, k = base, 2
            while key in named:
                key, k = f"{base}_{k}", k + 1
            named[key] = one
    for key, one in named.items():
        if not isinstance(one, Constraint):
            raise InputError(f"constraint '{key}': expected a Constraint, got {type(one).__name__}")
    return named


def _as_point(x: Any, what: str) -> Array:
    """`x` as a real floating array with finite entries; integers become float64."""
    if not arrays.is_array(x):
        try:
            x = np.asarray(x)
        except (ValueError, TypeError) as error:
            raise InputError(f"{what} cannot become an array: {error}") from None
    xp = arrays.namespace(x)
    if xp is np and x.dtype.kind not in "fiubc":
        raise InputError(f"{what} has dtype {x.dtype}: expected numbers")
    if xp.isdtype(x.dtype, "complex floating"):
        raise InputError(f"{what} is {arrays.describe(x)}: expected real numbers; split into real and imaginary parts")
    if not xp.isdtype(x.dtype, "real floating"):
        x = xp.astype(x, xp.float64)
    if not arrays.all_finite(x):
        bad = int(np.argmax(~np.isfinite(np.asarray(x).ravel())))
        raise InputError(f"{what} holds {np.asarray(x).ravel()[bad]} at index {bad}; a start must be finite")
    return x

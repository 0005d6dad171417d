"""The host's own family: a sum of functions over a set."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from infimum import arrays
from infimum.arrays import Array
from infimum.constraints.base import Constraint
from infimum.counters import checked
from infimum.errors import InputError, did_you_mean
from infimum.functions.algebra import Sum, scaled
from infimum.functions.base import Function
from infimum.functions.blocks import PLACED, Layout, OnBlock, Separable, block_names, place, place_map
from infimum.functions.derived import ADDITIVE
from infimum.functions.maps import BlockMap
from infimum.problem.base import PointMetric, Problem, Sense, Term, as_point
from infimum.problem.zeros import zeros_for


class Composite(Problem):
    """Minimize `sum_i f_i(A_i x)` over `x` in the constraints.

    Parameters
    ----------
    terms : mapping of str to Function, or Function
        Named terms; a single function is named `objective`.
    constraints : mapping of str to Constraint, sequence of Constraint, or Constraint
        Named after their class where no names are given.
    start : array_like or mapping of str to array_like, optional
        Default starting point. Without one: zeros of the shape that the terms ask for, in the dtype and the kind of
        array of the data of the first term that asks (of the first term, with blocks); float64 where it has none.
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
        named, sets = _name_terms(terms), _name_sets(constraints)
        if not named and not sets:
            raise InputError("Composite without terms: give at least one function, such as {'loss': f}")
        if clash := set(named) & set(sets):
            raise InputError(f"a term and a constraint are both called '{min(clash)}'; rename one")
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
        self._views = {term.name: self._placed(term) for term in self._terms}
        self._fitted: tuple[Callable[[], Any], dict[str, Any]] = (_no_point, {})

    def __getstate__(self) -> dict[str, Any]:
        # What was made to fit one point serves no copy.
        return {**self.__dict__, "_fitted": (_no_point, {})}

    def _placed(self, term: Term) -> Any:
        """The body of a term, to be minimized, with its maps from named blocks on the packed vector."""
        known = list(self.layout.shapes) if self.layout else []
        inside = block_names(term.body)
        for block in (*([term.on] if term.on is not None else []), *inside):
            if block not in known:
                hint = did_you_mean(block, known) if known else f"give blocks={{'{block}': shape, …}}"
                raise InputError(f"term '{term.name}' acts on block '{block}'; {hint}")
        if term.on is not None and inside:
            raise InputError(
                f"term '{term.name}' is on block '{term.on}' and maps named blocks itself; leave it out of on="
            )
        if term.role == "constraint":
            return term.body
        try:
            body = term.body if self.layout is None else place(term.body, self.layout)
        except InputError as error:
            raise InputError(f"term '{term.name}': {error}") from None
        return scaled(body, -1.0) if self.sense == "max" else body

    @property
    def terms(self) -> tuple[Term, ...]:
        return self._terms

    @property
    def merit(self) -> str | None:
        functions = [term for term in self._terms if term.role == "term"]
        return "value" if functions and all(_has_value(term.body) for term in functions) else None

    def with_constraints(self, constraints: Any, on: Mapping[str, str] | None = None) -> Composite:
        """The same problem with further constraints, in any form that `constraints=` takes.

        A known optimal value is that of the problem without them, and left out.
        """
        new = _name_sets(constraints, taken=[term.name for term in self._terms])
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
            reference=None if new else self.reference,
            name=self.name,
        )

    def start(self, rng: np.random.Generator) -> Any:
        if self._start is not None:
            return self._start
        for term in self._terms:
            shape = getattr(term.body, "shape", None) if self.layout is None else (self.layout.size,)
            if shape is not None:
                return zeros_for(shape, term.body)
        raise InputError("no term says the shape of x: pass x0= (or Composite(…, start=…))")

    def prepare(self, start: Any) -> Array:
        if isinstance(start, Mapping):
            if self.layout is None:
                raise InputError(f"x0 is a mapping of {sorted(start)}, but the problem has no blocks; pass an array")
            start = self.layout.pack({key: as_point(value, f"x0['{key}']") for key, value in start.items()})
        x = arrays.copy(as_point(start, "x0"))
        if self.layout is not None and tuple(x.shape) != (self.layout.size,):
            raise InputError(
                f"x0 is {tuple(x.shape)}, the blocks {dict(self.layout.shapes)} pack into ({self.layout.size},)"
            )
        for term in self._terms:
            body, point = self.view(term), x
            if self.layout is not None and term.on is not None:
                point = self.layout.view(x, term.on)
            try:
                body.check(point)
            except InputError as error:
                raise InputError(f"term '{term.name}': {error}") from None
        return x

    def copy(self, point: Array) -> Array:
        return arrays.copy(point)

    def view(self, term: Term, point: Any = None) -> Any:
        body = self._views[term.name]
        if point is None:
            return body
        of, fitted = self._fitted
        if of() is not point:
            # Converted data is shared by all who ask with the same point (parts and metrics), and goes when that goes.
            fitted = {}
            self._fitted = weakref.ref(point, lambda _: fitted.clear()), fitted
        if term.name not in fitted:
            fitted[term.name] = body.to(point)
        return fitted[term.name]

    def embeds(self, term: Term) -> bool:
        return term.on is not None

    def embed(self, part: Any, term: Term) -> Any:
        return part if self.layout is None or term.on is None else OnBlock(part, self.layout, term.on)

    def embed_map(self, map_: Any, term: Term) -> Any:
        if self.layout is None or term.on is None:
            return map_
        return place_map(BlockMap({term.on: map_}), self.layout)

    def dimension(self, term: Term | None = None) -> int | None:
        if self.layout is not None:
            on = None if term is None else term.on
            return self.layout.size if on is None else math.prod(self.layout.shapes[on])
        shapes = [getattr(one.body, "shape", None) for one in (*([term] if term else []), *self._terms)]
        if self._start is not None:
            shapes.append(np.shape(self._start))
        return next((math.prod(shape) for shape in shapes if shape is not None), None)

    def units(self, terms: Sequence[Term]) -> int:
        return 1 if terms and _disjoint(terms) else len(terms)

    def joined(self, terms: Sequence[Term], offers: Sequence[frozenset[str]]) -> frozenset[str]:
        kept = [one & PLACED if self.embeds(term) else one for term, one in zip(terms, offers, strict=True)]
        common = frozenset.intersection(*kept)
        return common if len(terms) == 1 or _disjoint(terms) else common & ADDITIVE

    def join(self, terms: Sequence[Term], parts: Sequence[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        return Separable(parts) if _disjoint(terms) else Sum(parts)

    def value(self, x: Any) -> float:
        """The objective at `x` (an array, or a mapping of blocks), in the user's sense; sets are not in it."""
        if self.merit is None:
            without = [t.name for t in self._terms if t.role == "term" and not _has_value(t.body)]
            which = f"term '{without[0]}' offers none" if without else "it has constraints only"
            raise InputError(f"{self.describe()} has no value: {which}")
        point = self.prepare(x)
        value: float = self.metrics(point)["value"](point, None)  # type: ignore[assignment]
        return value

    def violation(self, x: Any) -> float:
        """The largest violation among the constraints at `x`; 0 without constraints."""
        point = self.prepare(x)
        metric = self.metrics(point).get("violation")
        return float(metric(point, None) or 0.0) if metric else 0.0

    def metrics(self, point: Array) -> Mapping[str, PointMetric]:
        out: dict[str, PointMetric] = {"rel_change": _rel_change, "abs_change": _abs_change}
        if self.merit is not None:
            calls = [
                checked(_value_of(self._plain(term, point)), term.name, "value", extended=bool(term.body.extended))
                for term in self._terms
                if term.role == "term"
            ]
            sign = -1.0 if self.sense == "max" else 1.0

            def value(x: Array, _: Any) -> float:
                return sign * sum(float(call(x)) for call in calls)

            out["value"] = value
            if self.reference is not None:
                reference = self.reference
                out["gap"] = lambda x, _: abs(value(x, None) - reference) / max(1.0, abs(reference))
        sets = [
            checked(self._plain(term, point).violation, term.name, "violation")
            for term in self._terms
            if term.role == "constraint"
        ]
        if sets:
            out["violation"] = lambda x, _: max(float(call(x)) for call in sets)
        return out

    def _plain(self, term: Term, point: Array) -> Any:
        return self.embed(self.view(term, point), term)

    def square(self, point: Array) -> Any:
        return point.dot(point) if point.ndim == 1 else _squared(arrays.norm(point))

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


def _no_point() -> None:
    return None


def _disjoint(terms: Sequence[Term]) -> bool:
    blocks = [term.on for term in terms]
    return None not in blocks and len(set(blocks)) == len(blocks)


def _has_value(body: Any) -> bool:
    return bool({"value", "value_and_gradient"} & body.capabilities)


def _value_of(function: Any) -> Callable[[Array], Any]:
    # By the capabilities: a function made from others has the method even where they do not offer it.
    if "value" in function.capabilities:
        call: Callable[[Array], Any] = function.value
        return call
    return lambda x: function.value_and_gradient(x)[0]


def _squared(size: float) -> float:
    """Unlike `size**2`, inf where the square is too large for a float."""
    return size * size


def _rel_change(x: Array, previous: Array | None) -> float | None:
    if previous is None:
        return None
    change, size = arrays.norm(x - previous), arrays.norm(x)
    return change / size if size > 1.0 else change


def _abs_change(x: Array, previous: Array | None) -> float | None:
    return None if previous is None else arrays.norm(x - previous)


def free_name(base: str, taken: Collection[str]) -> str:
    """`base`, or with the first number from 2 up that makes a name not in `taken`."""
    key, k = base, 2
    while key in taken:
        key, k = f"{base}_{k}", k + 1
    return key


def _name_terms(terms: Any) -> dict[str, Function]:
    if isinstance(terms, Function):
        terms = {"objective": terms}
    if not isinstance(terms, Mapping):
        raise InputError(f"terms: expected {{name: Function}} or one Function, got {type(terms).__name__}")
    for key, body in terms.items():
        _check_name(key)
        if not isinstance(body, Function):
            hint = ""
            if isinstance(body, Constraint):
                hint = "; sets go into constraints="
            elif callable(body):
                hint = "; wrap it: Function(value=…)"
            raise InputError(f"term '{key}': expected a Function, got {type(body).__name__}{hint}")
        if not body.capabilities:
            raise InputError(
                f"term '{key}' is empty: {body!r} offers nothing, since its parts have no capability in common; "
                "give them as terms of their own"
            )
    return dict(terms)


def _name_sets(constraints: Any, taken: Collection[str] = ()) -> dict[str, Constraint]:
    if isinstance(constraints, Constraint):
        constraints = (constraints,)
    if isinstance(constraints, Mapping):
        named = dict(constraints)
    elif isinstance(constraints, Iterable) and not isinstance(constraints, str):
        named = {}
        for one in constraints:
            named[free_name(type(one).__name__.lower(), {*taken, *named})] = one
    else:
        raise InputError(f"constraints: expected sets, one or several, got {type(constraints).__name__}")
    for key, one in named.items():
        _check_name(key)
        if not isinstance(one, Constraint):
            raise InputError(f"constraint '{key}': expected a Constraint, got {type(one).__name__}")
    return named


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name or name.startswith("slot:"):
        raise InputError(f"{name!r} is no name for a term: expected text that does not start with 'slot:'")

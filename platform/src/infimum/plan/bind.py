"""From a plan to parts: views of the terms that count, oracles bound to them, joined per slot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from infimum.counters import Cell, Counters, counting, evaluating
from infimum.exactness import Exactness
from infimum.functions.base import FACTS
from infimum.functions.maps import Map, ScaledIdentity
from infimum.oracle import Stateful
from infimum.plan.derive import Derivation, derive, obtain
from infimum.plan.match import Lift, inner, offers_in
from infimum.plan.plan import Plan
from infimum.problem import Term
from infimum.solver import Slot
from infimum.vocabulary import CAPABILITIES

Streams = Callable[[str], np.random.Generator]
"""Role, such as "oracle/penalty", to that role's own generator."""


def streams(seed: int, repetition: int = 0) -> Streams:
    """Independent generators by role, the same for any order or number of workers."""

    def stream(role: str) -> np.random.Generator:
        key = int.from_bytes(hashlib.blake2b(role.encode(), digest_size=8).digest(), "little")
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(repetition, key))))

    return stream


class Part:
    """What stands in a slot: the capabilities that the slot needs, as attributes, and the facts of what is behind.

    Facts (`lipschitz`, `strongly_convex`, `convex`, `shape`, …) come from the function; facts that cost something
    are computed at first use and kept, also in checkpoints.
    """

    def __init__(
        self,
        calls: Mapping[str, Callable[..., Any]],
        source: Any,
        *,
        exactness: Exactness = Exactness.exact,
        facts: Mapping[str, Any] | None = None,
        on: str | None = None,
    ) -> None:
        self.capabilities = frozenset(calls)
        self.exactness = exactness
        self.on = on
        self.native: frozenset[str] = frozenset()
        """Capabilities that the function or the oracle has itself; the others follow from these by a rule."""
        self.direct: dict[str, Cell] = {}
        """Cells of the capabilities of which a call is an evaluation: it is counted once for both."""
        self._source = source
        self._facts: dict[str, Any] = dict(facts or {})
        for name, call in calls.items():
            setattr(self, name, call)

    def offers(self, name: str) -> bool:
        """Whether this part has capability `name`."""
        return name in self.capabilities

    def __getattr__(self, name: str) -> Any:
        # Reached only for what is no attribute: facts, never a capability that the plan did not grant.
        if name.startswith("__") or name in ("_source", "_facts"):
            raise AttributeError(name)
        if name in self._facts:
            return self._facts[name]
        source = self._source
        if name in CAPABILITIES or name in getattr(source, "capabilities", ()):
            raise AttributeError(f"this part does not offer '{name}'; name it in the slot's needs or wants")
        value = getattr(source, name, FACTS[name]) if name in FACTS else getattr(source, name)
        if isinstance(value, np.generic):  # NumPy's numbers would make float32 points float64.
            value = value.item()
        if isinstance(value, int | float | str | tuple) or value is None:
            self._facts[name] = value
        return value

    @property
    def origin(self) -> Any:
        """The function behind this part, for what reads it instead of evaluating it."""
        return self._source.origin if isinstance(self._source, Part) else self._source

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that were asked for so far, as plain data."""
        return {name: value for name, value in self._facts.items() if isinstance(value, int | float | str)}

    def __repr__(self) -> str:
        return f"Part({', '.join(sorted(self.capabilities))}; {self.exactness})"


class Bound:
    """Everything a run binds: parts by slot, the stateful objects among them, and the counters."""

    def __init__(self, plan: Plan, point: Any, stream: Streams, counters: Counters) -> None:
        self.plan, self.counters = plan, counters
        self.stateful: dict[str, Stateful] = {}
        self.metrics: dict[str, list[Callable[[], Any]]] = {}
        """Getters of the oracles' metrics, by name."""
        self._all: dict[str, Part] = {}
        self._point, self._stream = point, stream
        self.parts = SimpleNamespace(**{slot.name: self._slot(slot) for slot in plan.slots})

    def state_dict(self) -> dict[str, Any]:
        """State of every stateful part, and the facts that were computed."""
        return {
            "parts": {key: one.state_dict() for key, one in self.stateful.items()},
            "facts": {key: part.facts for key, part in self._all.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for key, one in self.stateful.items():
            one.load_state_dict(state["parts"][key])
        for key, part in self._all.items():
            part._facts.update(state["facts"].get(key, {}))

    def _slot(self, slot: Slot) -> Any:
        plan, problem = self.plan, self.plan.problem
        terms = plan.assignment.terms[slot.name]
        if not terms:
            return () if slot.each else _vacant(slot)
        lifted = [self._term(slot, term) for term in terms]
        if slot.each:
            # Where the map stands beside f, f itself never sees the packed vector.
            placed = lifted if slot.takes_map else [self._placed(slot, *one) for one in zip(lifted, terms, strict=True)]
            pairs = zip(placed, terms, strict=True)
            return tuple(self._called(slot, part, f"{slot.name}/{term.name}", term) for part, term in pairs)
        if slot.takes_map:
            return self._called(slot, lifted[0], slot.name, *terms)
        whole = plan.assignment.slot_lifts.get(slot.name)
        embedded = [problem.embed(part, term) for part, term in zip(lifted, terms, strict=True)]
        joined = problem.join(terms, embedded)
        exactness = max(part.exactness for part in lifted)
        if whole is not None:
            joined = self._lift(joined, frozenset(joined.capabilities), whole, f"{slot.name}/slot:{slot.name}")
            exactness = max(exactness, whole.exactness)
        elif len(terms) == 1 and isinstance(joined, Part):
            return self._called(slot, joined, slot.name, *terms)
        names = [n for n in (*slot.needs, *slot.wants) if n in joined.capabilities]
        part = Part({n: getattr(joined, n) for n in names}, joined, exactness=exactness)
        part.native = frozenset(names).intersection(*(one.native for one in lifted)) if whole is None else frozenset()
        return self._called(slot, part, slot.name, *terms)

    def _placed(self, slot: Slot, part: Part, term: Term) -> Part:
        """A part of one block as a part of the packed vector."""
        if not self.plan.problem.embeds(term):
            return part
        whole = self.plan.problem.embed(part, term)
        names = [n for n in (*slot.needs, *slot.wants) if n in whole.capabilities]
        out = Part({n: getattr(whole, n) for n in names}, whole, exactness=part.exactness, on=part.on)
        out.native = part.native
        return out

    def _term(self, slot: Slot, term: Term) -> Part:
        """One term as the slot sees it: counted, lifted, with the map beside it where the slot takes it."""
        problem = self.plan.problem
        body = problem.view(term, self._point)
        offers, seen = offers_in(slot, body), inner(slot, body)
        extended = bool(getattr(seen, "extended", False))
        calls = {
            name: evaluating(getattr(seen, name), term.name, name, self.counters, extended=extended) for name in offers
        }
        for name in offers:
            self.counters.evaluation(term.name, name).label += self._under(slot, term)
        view = Part(calls, seen, on=term.on)
        part = self._lift(view, offers, self.plan.assignment.lifts[term.name], f"{slot.name}/{term.name}")
        part.direct = {name: self.counters.evaluation(term.name, name) for name in self._direct(slot, term)}
        if slot.takes_map:
            _add_map(part, problem.embed_map(body.map if seen is not body else ScaledIdentity(), term))
        part.on = term.on
        return part

    def _under(self, slot: Slot, *terms: Term) -> str:
        """The oracles between these terms and their slot, for messages."""
        found = self.plan.assignment
        lifts = [*(found.lifts[term.name] for term in terms), found.slot_lifts.get(slot.name)]
        names = dict.fromkeys(lift.choice.name for lift in lifts if lift is not None and lift.choice is not None)
        return f" (under oracle {', '.join(names)})" if names else ""

    def _direct(self, slot: Slot, term: Term) -> frozenset[str]:
        """Capabilities with nothing between solver and function: a call of one is an evaluation of the other."""
        found = self.plan.assignment
        lift = found.lifts[term.name]
        alone = not slot.each and found.terms[slot.name] == (term,) and slot.name not in found.slot_lifts
        if not alone or self.plan.problem.embeds(term) or lift.choice is not None:
            return frozenset()
        derived = [one for one in lift.derivations.values() if one.rule is not None]
        below = {leaf for one in derived for leaf in one.leaves}
        batched = {name for name, known in CAPABILITIES.items() if known.points is not None}
        return frozenset(n for n, one in lift.derivations.items() if one.rule is None and n not in below | batched)

    def _lift(self, view: Any, offers: frozenset[str], lift: Lift, role: str) -> Part:
        """A part with the capabilities of `lift`, through its oracle if there is one."""
        facts: dict[str, Any] = {}
        source: Callable[[str], Callable[..., Any]] = lambda name: getattr(view, name)  # noqa: E731
        if lift.choice is not None:
            oracle, own = lift.choice.oracle, source
            below = {one.name: obtain(one, own) for one in self._sees(oracle, offers)}
            bound = oracle.bind(Part(below, view), self._stream(f"oracle/{role}"))
            if isinstance(bound, Stateful):
                self.stateful[role] = bound
            for name, get in oracle.metrics.items():
                self.metrics.setdefault(name, []).append(partial(get, bound))
            supplied = set(oracle.supplies)
            source = lambda name: getattr(bound, name) if name in supplied else obtain(lift.beside[name], own)  # noqa: E731
            facts = {n: getattr(bound, n) for n in ("lipschitz",) if getattr(bound, n, None) is not None}
        calls = {name: obtain(one, source) for name, one in lift.derivations.items()}
        part = Part(calls, view, exactness=lift.exactness, facts=facts)
        part.native = frozenset(name for name, one in lift.derivations.items() if one.rule is None)
        self._all[role] = part
        return part

    @staticmethod
    def _sees(oracle: Any, offers: frozenset[str]) -> list[Derivation]:
        found = [derive(name, offers) for name in dict.fromkeys((*oracle.needs, *oracle.wants))]
        return [one for one in found if one is not None]

    def _called(self, slot: Slot, part: Part, owner: str, *terms: Term) -> Part:
        """The same part, made of `terms`, with the solver's own calls counted."""
        names = [n for n in (*slot.needs, *slot.wants) if part.offers(n)]
        under = self._under(slot, *terms)
        calls = {}
        for n in names:
            cell = self.counters.call(owner, n, slot.name, same=part.direct.get(n))
            if n not in part.direct:
                cell.label += under
            calls[n] = getattr(part, n) if n in part.direct else counting(getattr(part, n), cell)
        out = Part(calls, part, exactness=part.exactness, on=part.on)
        out.native = part.native
        if slot.takes_map:
            for n in ("map", "adjoint", "norm"):
                setattr(out, n, getattr(part, n))
        return out


def _add_map(part: Part, map_: Map) -> None:
    part.map, part.adjoint = map_.forward, map_.adjoint  # type: ignore[attr-defined]
    part._facts["norm"] = map_.norm


def _vacant(slot: Slot) -> Any:
    """What stands in a slot without terms: the capabilities that the slot asks for, uncounted."""
    empty = slot.empty
    if empty is None:
        return None
    offers = frozenset(empty.capabilities)
    found = [derive(name, offers) for name in dict.fromkeys((*slot.needs, *slot.wants))]
    part = Part({one.name: obtain(one, lambda k: getattr(empty, k)) for one in found if one is not None}, empty)
    if slot.takes_map:
        _add_map(part, ScaledIdentity())
    return part

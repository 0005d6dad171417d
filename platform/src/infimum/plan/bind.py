"""From a plan to parts: views of the terms that count, oracles bound to them, joined per slot."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from infimum.counters import Cell, Counters, counting, evaluating
from infimum.exactness import Exactness
from infimum.functions.maps import Map, ScaledIdentity
from infimum.oracle import Stateful
from infimum.plan.derive import derive, obtain
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
        if name in getattr(source, "capabilities", ()):
            raise AttributeError(f"this part does not offer '{name}'; name it in the slot's needs or wants")
        value = getattr(source, name)
        if isinstance(value, int | float | str | tuple) or value is None:
            self._facts[name] = value
        return value

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
            return () if slot.each else _plain(slot.empty)
        lifted = [self._term(slot, term) for term in terms]
        if slot.each:
            return tuple(self._called(slot, part, f"{slot.name}/{term.name}") for part, term in zip(lifted, terms))
        whole = plan.assignment.slot_lifts.get(slot.name)
        embedded = [problem.embed(part, term) for part, term in zip(lifted, terms, strict=True)]
        joined = problem.join(terms, embedded)
        exactness = max(part.exactness for part in lifted)
        if whole is not None:
            joined = self._lift(joined, frozenset(joined.capabilities), whole, f"{slot.name}/slot:{slot.name}")
            exactness = max(exactness, whole.exactness)
        elif len(terms) == 1 and isinstance(joined, Part):
            return self._called(slot, joined, slot.name)
        names = [n for n in (*slot.needs, *slot.wants) if n in joined.capabilities]
        part = Part({n: getattr(joined, n) for n in names}, joined, exactness=exactness)
        return self._called(slot, part, slot.name)

    def _term(self, slot: Slot, term: Term) -> Part:
        """One term as the slot sees it: counted, lifted, with the map beside it where the slot takes it."""
        problem = self.plan.problem
        body = problem.view(term, self._point)
        map_ = getattr(body, "map", None) if slot.takes_map else None
        offers, seen = offers_in(slot, body), inner(slot, body)
        extended = bool(getattr(seen, "extended", False))
        calls = {
            name: evaluating(getattr(seen, name), term.name, name, self.counters, extended=extended) for name in offers
        }
        view = Part(calls, seen, on=term.on)
        part = self._lift(view, offers, self.plan.assignment.lifts[term.name], f"{slot.name}/{term.name}")
        part.direct = {name: self.counters.evaluation(term.name, name) for name in self._direct(slot, term)}
        if slot.takes_map:
            _add_map(part, map_ if map_ is not None else ScaledIdentity())
        part.on = term.on
        return part

    def _direct(self, slot: Slot, term: Term) -> frozenset[str]:
        """Capabilities with nothing between the solver and the function: a call of one is an evaluation of the other."""
        plan = self.plan
        lift = plan.assignment.lifts[term.name]
        alone = not slot.each and plan.assignment.terms[slot.name] == (term,) and slot.name not in plan.assignment.slot_lifts
        if not alone or plan.problem.embeds(term) or lift.choice is not None:
            return frozenset()
        derived = [one for one in lift.derivations.values() if one.rule is not None]
        below = {leaf for one in derived for leaf in one.leaves}
        batched = {name for name, known in CAPABILITIES.items() if known.points is not None}
        return frozenset(n for n, one in lift.derivations.items() if one.rule is None and n not in below | batched)

    def _lift(self, view: Any, offers: frozenset[str], lift: Lift, role: str) -> Part:
        """A part with the capabilities of `lift`, through its oracle if there is one."""
        facts: dict[str, Any] = {}
        if lift.choice is None:
            source: Callable[[str], Callable[..., Any]] = lambda name: getattr(view, name)  # noqa: E731
            seen = offers
        else:
            oracle = lift.choice.oracle
            below = {n: obtain(n, offers, lambda k: getattr(view, k)) for n in self._sees(oracle, offers)}
            bound = oracle.bind(Part(below, view), self._stream(f"oracle/{role}"))
            if isinstance(bound, Stateful):
                self.stateful[role] = bound
            supplied = set(oracle.supplies)
            source = lambda name: getattr(bound, name) if name in supplied else getattr(view, name)  # noqa: E731
            seen = lift.offers
            facts = {n: getattr(bound, n) for n in ("lipschitz",) if getattr(bound, n, None) is not None}
        calls = {name: obtain(name, seen, source) for name in lift.derivations}
        part = Part(calls, view, exactness=lift.exactness, facts=facts)
        self._all[role] = part
        return part

    @staticmethod
    def _sees(oracle: Any, offers: frozenset[str]) -> list[str]:
        return [n for n in dict.fromkeys((*oracle.needs, *oracle.wants)) if derive(n, offers) is not None]

    def _called(self, slot: Slot, part: Part, owner: str) -> Part:
        """The same part with the solver's own calls counted."""
        names = [n for n in (*slot.needs, *slot.wants) if part.offers(n)]
        calls = {}
        for n in names:
            cell = self.counters.call(owner, n, slot.name, same=part.direct.get(n))
            calls[n] = getattr(part, n) if n in part.direct else counting(getattr(part, n), cell)
        out = Part(calls, part, exactness=part.exactness, on=part.on)
        if slot.takes_map:
            for n in ("map", "adjoint", "norm"):
                setattr(out, n, getattr(part, n))
        return out


def _add_map(part: Part, map_: Map) -> None:
    part.map, part.adjoint = map_.forward, map_.adjoint  # type: ignore[attr-defined]
    part._facts["norm"] = map_.norm


def _plain(empty: Any) -> Any:
    """What stands in an empty slot, with `offers` like any part."""
    if empty is None:
        return None
    calls = {name: getattr(empty, name) for name in empty.capabilities}
    return Part(calls, empty)

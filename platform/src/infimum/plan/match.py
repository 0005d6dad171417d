"""Which term can stand in which slot, and the first complete assignment by backtracking, fewest oracles first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum.plan.derive import Derivation, derive
from infimum.problem import Problem, Term
from infimum.solver import Slot


@dataclass(frozen=True, slots=True)
class Choice:
    """An oracle that may be used, under the name that the user knows it by."""

    name: str
    oracle: Oracle
    named: bool = True
    """True when the user asked for it; then it must be used."""


@dataclass(frozen=True, slots=True)
class Lift:
    """How a term, or the sum in a slot, gets what the slot needs."""

    derivations: Mapping[str, Derivation]
    offers: frozenset[str]
    choice: Choice | None
    exactness: Exactness
    replaced: frozenset[str] = frozenset()
    """Capabilities that the function has and that the named oracle supplies in their place."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Why something cannot stand in a slot."""

    capabilities: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Assignment:
    """Terms and their lifts per slot; for a slot with an oracle of its own, `slot_lifts` says how the sum is lifted."""

    terms: Mapping[str, tuple[Term, ...]]
    lifts: Mapping[str, Lift]
    slot_lifts: Mapping[str, Lift] = field(default_factory=dict)


def offers_in(slot: Slot, body: Any) -> frozenset[str]:
    """Capabilities of a term as the slot sees it: of f where the slot takes the map, of f∘A else."""
    if slot.takes_map and getattr(body, "map", None) is not None:
        return frozenset(body.function.capabilities)
    return frozenset(body.capabilities)


def inner(slot: Slot, body: Any) -> Any:
    """The function that a slot sees: `f` of `f @ A` where it takes the map."""
    return body.function if slot.takes_map and getattr(body, "map", None) is not None else body


def lift(offers: frozenset[str], slot: Slot, choice: Choice | None, body: Any) -> Lift | Missing:
    """How `offers` becomes what `slot` needs, with the oracle of `choice` or without one."""
    own = getattr(body, "exactness", Exactness.exact)
    if choice is None:
        found = {name: derive(name, offers) for name in slot.needs}
        missing = tuple(name for name, one in found.items() if one is None)
        if missing:
            return Missing(missing, f"offers only {', '.join(sorted(offers)) or 'nothing'}")
        wanted = {name: derive(name, offers) for name in slot.wants}
        given = {name: one for name, one in {**found, **wanted}.items() if one is not None}
        if own > slot.accepts:
            return Missing((), f"is {own}, but slot '{slot.name}' accepts {slot.accepts} at worst")
        return Lift(given, offers, None, own)
    return _lift_by(offers, slot, choice, body, own)


def _lift_by(offers: frozenset[str], slot: Slot, choice: Choice, body: Any, own: Exactness) -> Lift | Missing:
    oracle = choice.oracle
    lacking = tuple(name for name in oracle.needs if derive(name, offers) is None)
    if lacking:
        return Missing(lacking, f"offers no {' and no '.join(lacking)}, which oracle {choice.name} needs")
    if (refusal := oracle.refuses(body)) is not None:
        return Missing((), f"is refused by oracle {choice.name}: {refusal}")
    supplied = frozenset(oracle.supplies)
    seen = supplied | {name for name in (*oracle.needs, *oracle.wants) if derive(name, offers) is not None}
    found = {name: derive(name, seen) or derive(name, offers) for name in slot.needs}
    missing = tuple(name for name, one in found.items() if one is None)
    if missing:
        return Missing(missing, f"gets only {', '.join(sorted(supplied))} from oracle {choice.name}")
    if not any(one.leaves & supplied for one in found.values() if one is not None):
        return Missing((), f"needs no {' or '.join(oracle.supplies)} from oracle {choice.name} there")
    exactness = max(own, oracle.exactness)
    if exactness > slot.accepts:
        return Missing(
            (), f"would be {exactness} through oracle {choice.name}, but slot '{slot.name}' accepts {slot.accepts} at worst"
        )
    wanted = {name: derive(name, seen) for name in slot.wants}
    given = {name: one for name, one in {**found, **wanted}.items() if one is not None}
    used = frozenset().union(*(one.leaves for one in given.values()))
    return Lift(given, seen | used, choice, exactness, replaced=supplied & offers)


class Matcher:
    """Searches the assignments of one problem's terms to one solver's slots.

    Parameters
    ----------
    problem : Problem
    slots : sequence of Slot
    named : mapping of str to Choice
        Oracle per term name, or per `slot:NAME` for the slot's sum.
    allowed : iterable of Choice
        Oracles that may be used where none was named (`oracles: auto`), best first.
    assign : mapping of str to str
        Slot name per term name, by the user.
    """

    def __init__(
        self,
        problem: Problem,
        slots: Sequence[Slot],
        named: Mapping[str, Choice],
        allowed: Iterable[Choice] = (),
        assign: Mapping[str, str] | None = None,
    ) -> None:
        self.problem, self.slots, self.named = problem, tuple(slots), named
        self.allowed, self.assign = tuple(allowed), dict(assign or {})
        self.terms = problem.terms
        self.bodies = {term.name: problem.view(term) for term in self.terms}
        self.options = {term.name: self._options(term) for term in self.terms}

    def _options(self, term: Term) -> dict[str, list[Lift] | Missing]:
        """Per slot: the ways in which the term can stand there (without an oracle first), or why not."""
        body = self.bodies[term.name]
        out: dict[str, list[Lift] | Missing] = {}
        for slot in self.slots:
            if self.assign.get(term.name, slot.name) != slot.name:
                out[slot.name] = Missing((), f"is assigned to slot '{self.assign[term.name]}'")
                continue
            offers, seen = offers_in(slot, body), inner(slot, body)
            named = self.named.get(term.name)
            if (whole := self.named.get(f"slot:{slot.name}")) is not None and named is None:
                out[slot.name] = self._for_sum(whole, offers)
                continue
            choices: list[Choice | None] = [named] if named is not None else [None, *self.allowed]
            tried = [lift(offers, slot, choice, seen) for choice in choices]
            good = [one for one in tried if isinstance(one, Lift)]
            out[slot.name] = good or next(one for one in tried if isinstance(one, Missing))
        return out

    @staticmethod
    def _for_sum(whole: Choice, offers: frozenset[str]) -> list[Lift] | Missing:
        found = {name: derive(name, offers) for name in whole.oracle.needs}
        lacking = tuple(name for name, one in found.items() if one is None)
        if lacking:
            return Missing(lacking, f"offers no {' and no '.join(lacking)}, which oracle {whole.name} needs")
        wanted = {name: derive(name, offers) for name in whole.oracle.wants}
        given = {name: one for name, one in {**found, **wanted}.items() if one is not None}
        return [Lift(given, offers, None, Exactness.exact)]

    def search(self) -> Assignment | None:
        """The first complete assignment in term order × slot order with the fewest oracles."""
        most = sum(1 for term in self.terms if self._needs_oracle(term))
        least = sum(1 for term in self.terms if term.name in self.named)
        for budget in range(least, max(most, least) + 1):
            found = self._extend(0, budget, {slot.name: [] for slot in self.slots}, {})
            if found is not None:
                return found
        return None

    def _needs_oracle(self, term: Term) -> bool:
        ways = self.options[term.name].values()
        return any(one.choice is not None for way in ways if isinstance(way, list) for one in way)

    def _extend(
        self, at: int, budget: int, placed: dict[str, list[Term]], lifts: dict[str, Lift]
    ) -> Assignment | None:
        if at == len(self.terms):
            return self._complete(placed, lifts)
        term = self.terms[at]
        for slot in self.slots:
            ways = self.options[term.name][slot.name]
            if isinstance(ways, Missing):
                continue
            here = placed[slot.name]
            if slot.at_most is not None and self.problem.units([*here, term]) > slot.at_most:
                continue
            for way in ways:
                cost = 0 if way.choice is None else 1
                if cost > budget:
                    continue
                here.append(term)
                lifts[term.name] = way
                found = self._extend(at + 1, budget - cost, placed, lifts)
                if found is not None:
                    return found
                here.pop()
                del lifts[term.name]
        return None

    def _complete(self, placed: Mapping[str, list[Term]], lifts: Mapping[str, Lift]) -> Assignment | None:
        slot_lifts: dict[str, Lift] = {}
        for slot in self.slots:
            terms = placed[slot.name]
            if self.problem.units(terms) < slot.at_least:
                return None
            whole = self.named.get(f"slot:{slot.name}")
            if not terms:
                if whole is not None:
                    return None
                continue
            if slot.each:
                continue
            together = self.problem.joined(terms, [frozenset(lifts[t.name].derivations) for t in terms])
            if whole is not None:
                lifted = lift(together, slot, whole, None)
                if isinstance(lifted, Missing):
                    return None
                slot_lifts[slot.name] = lifted
            elif not set(slot.needs) <= together:
                return None
        return Assignment({name: tuple(terms) for name, terms in placed.items()}, dict(lifts), slot_lifts)


def names(items: Collection[str], word: str = "and") -> str:
    """`'a'`, `'a' and 'b'`, `'a', 'b' and 'c'`."""
    quoted = [f"'{one}'" for one in items]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"

"""Which term can stand in which slot, and the first complete assignment by backtracking, fewest oracles first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infimum.exactness import Exactness
from infimum.functions.derived import Composed
from infimum.oracle import Oracle
from infimum.plan.derive import RULES, Derivation, barred, derive
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
    choice: Choice | None
    exactness: Exactness
    beside: Mapping[str, Derivation] = field(default_factory=dict)
    """What the derivations may take from the function itself where an oracle stands over it."""
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


def inner(slot: Slot, body: Any) -> Any:
    """The function that a slot sees: `f` of `f @ A` where it takes the map, else the whole."""
    return body.function if slot.takes_map and isinstance(body, Composed) else body


def offers_in(slot: Slot, body: Any) -> frozenset[str]:
    """Capabilities of a term as the slot sees it: of f where the slot takes the map, of f∘A else."""
    return frozenset(inner(slot, body).capabilities)


def lift(offers: frozenset[str], slot: Slot, choice: Choice | None, body: Any) -> Lift | Missing:
    """How `offers` of `body`, as the slot sees it, becomes what `slot` needs, by the oracle of `choice` or without."""
    own = getattr(body, "exactness", Exactness.exact)
    if choice is not None:
        return _lift_by(offers, slot, choice, body, own)
    never = barred(body)
    found = {name: derive(name, offers, never) for name in slot.needs}
    missing = tuple(name for name, one in found.items() if one is None)
    if missing:
        return Missing(missing, f"offers only {_listed(offers)}")
    if own > slot.accepts:
        return Missing((), f"is {own}, but slot '{slot.name}' accepts {slot.accepts} at worst")
    wanted = {name: derive(name, offers, never) for name in slot.wants}
    return Lift(_those(found, wanted), None, own)


def _lift_by(offers: frozenset[str], slot: Slot, choice: Choice, body: Any, own: Exactness) -> Lift | Missing:
    oracle = choice.oracle
    lacking = tuple(name for name in oracle.needs if derive(name, offers) is None)
    if lacking:
        why = f"offers no {' and no '.join(lacking)}, which oracle {choice.name} needs"
        return Missing(lacking, why + _without(offers, slot, choice, barred(body)))
    if (refused := oracle.refuses(body)) is not None:
        return Missing((), f"is refused by oracle {choice.name}: {refused}")
    supplied = frozenset(oracle.supplies)
    own_too = beside(supplied, offers)
    seen, never = supplied | own_too.keys(), barred(body)
    found = {name: derive(name, seen, never) for name in slot.needs}
    if not any(one.leaves & supplied for one in found.values() if one is not None):
        found = {name: derive(name, supplied, never) or one for name, one in found.items()}
    missing = tuple(name for name, one in found.items() if one is None)
    if missing:
        return Missing(missing, f"gets only {_listed(supplied)} from oracle {choice.name}")
    used = frozenset().union(*(one.leaves for one in found.values() if one is not None)) & supplied
    if not used:
        return Missing((), f"has no use for what oracle {choice.name} supplies ({_listed(supplied)})")
    exactness = max(own, oracle.exactness)
    if exactness > slot.accepts:
        by = f"would be {exactness} through oracle {choice.name}"
        return Missing((), f"{by}, but slot '{slot.name}' accepts {slot.accepts} at worst")
    # A want is not put together around an oracle: that would cost evaluations nobody asked for.
    wanted = {name: derive(name, seen) for name in slot.wants if name in supplied or derive(name, seen - supplied)}
    replaced = frozenset(name for name in used if derive(name, offers) is not None)
    return Lift(_those(found, wanted), choice, exactness, own_too, replaced)


def _without(offers: frozenset[str], slot: Slot, choice: Choice, never: frozenset[str]) -> str:
    """A clause for a function that cannot use an oracle, and needs none."""
    found = [derive(name, offers, never) for name in slot.needs]
    if any(one is None for one in found):
        return ""
    rests = sorted(frozenset().union(*(one.leaves for one in found if one is not None)))
    return f"; leave {choice.name} out of oracles: its own {' and '.join(rests)} gives {' and '.join(slot.needs)}"


def beside(supplied: frozenset[str], offers: frozenset[str]) -> dict[str, Derivation]:
    """What a function offers beside an oracle: nothing that rests on what the oracle supplies, or that it rests on."""
    out = {}
    for name in sorted(offers | {rule.supplies for rule in RULES}):
        found = derive(name, offers - supplied, supplied)
        if found is not None and not any(derive(one, {name}) for one in supplied):
            out[name] = found
    return out


def _those(*groups: Mapping[str, Derivation | None]) -> dict[str, Derivation]:
    return {name: one for group in groups for name, one in group.items() if one is not None}


def _listed(offers: Collection[str]) -> str:
    return ", ".join(sorted(offers)) or "nothing"


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
        return {slot.name: self._ways(term, slot) for slot in self.slots}

    def _ways(self, term: Term, slot: Slot) -> list[Lift] | Missing:
        target = self.assign.get(term.name, slot.name)
        if target != slot.name:
            return Missing((), f"is assigned to slot '{target}'")
        body = self.bodies[term.name]
        offers, seen = offers_in(slot, body), inner(slot, body)
        if slot.refuses is not None and (refused := slot.refuses(seen)):
            return Missing((), f"cannot stand: {refused}")
        named, whole = self.named.get(term.name), self.named.get(f"slot:{slot.name}")
        if whole is not None:
            if named is not None:
                return Missing((), f"would stand under two oracles: its own {named.name} and the slot's {whole.name}")
            return self._for_sum(slot, whole, offers, seen)
        unasked = (one for one in self.allowed if one.oracle.volunteers(seen))
        choices: list[Choice | None] = [named] if named is not None else [None, *unasked]
        tried = [lift(offers, slot, choice, seen) for choice in choices]
        good = [one for one in tried if isinstance(one, Lift)]
        return (
            good[:1]
            if good and good[0].choice is None
            else good or next(one for one in tried if isinstance(one, Missing))
        )

    @staticmethod
    def _for_sum(slot: Slot, whole: Choice, offers: frozenset[str], body: Any) -> list[Lift] | Missing:
        found = {name: derive(name, offers) for name in whole.oracle.needs}
        lacking = tuple(name for name, one in found.items() if one is None)
        if lacking:
            return Missing(lacking, f"offers no {' and no '.join(lacking)}, which oracle {whole.name} needs")
        more = {name: derive(name, offers) for name in (*whole.oracle.wants, *slot.needs, *slot.wants)}
        return [Lift(_those(found, more), None, getattr(body, "exactness", Exactness.exact))]

    def search(self) -> Assignment | None:
        """The first complete assignment in term order × slot order, with the fewest oracles and then the most exact.

        Only the oracles that nobody named are weighed by exactness: the worst of them is as good as it can be.
        """
        if any(not self.places(term) for term in self.terms) or any(self.fits(s) < s.at_least for s in self.slots):
            return None
        least = sum(1 for term in self.terms if term.name in self.named)
        most = least + sum(1 for term in self.terms if term.name not in self.named) if self.allowed else least
        worst = sorted({one.oracle.exactness for one in self.allowed}) or [Exactness.exact]
        for budget in range(least, most + 1):
            for cap in worst if budget > least else worst[:1]:
                found = self._extend(0, budget, cap, {slot.name: [] for slot in self.slots}, {})
                if found is not None:
                    return found
        return None

    def places(self, term: Term) -> list[Slot]:
        """The slots in which a term can stand when it is looked at alone."""
        return [slot for slot in self.slots if not isinstance(self.options[term.name][slot.name], Missing)]

    def fits(self, slot: Slot) -> int:
        """How many terms could stand in a slot, as the slot counts them."""
        return slot.count(self.problem, [term for term in self.terms if slot in self.places(term)])

    def _extend(
        self, at: int, budget: int, cap: Exactness, placed: dict[str, list[Term]], lifts: dict[str, Lift]
    ) -> Assignment | None:
        if at == len(self.terms):
            return self._complete(placed, lifts)
        term = self.terms[at]
        for slot in self.slots:
            ways = self.options[term.name][slot.name]
            for way in () if isinstance(ways, Missing) else ways:
                cost = 0 if way.choice is None else 1
                if cost > budget or (way.choice is not None and not way.choice.named and way.exactness > cap):
                    continue
                placed[slot.name].append(term)
                lifts[term.name] = way
                if self.together(slot, placed[slot.name], lifts):
                    found = self._extend(at + 1, budget - cost, cap, placed, lifts)
                    if found is not None:
                        return found
                placed[slot.name].pop()
                del lifts[term.name]
        return None

    def together(self, slot: Slot, terms: Sequence[Term], lifts: Mapping[str, Lift]) -> bool:
        """Whether terms can share a slot: not too many, and with what it needs in common. More never help."""
        if slot.at_most is not None and slot.count(self.problem, terms) > slot.at_most:
            return False
        if slot.each or slot.takes_map:
            return True
        whole = self.named.get(f"slot:{slot.name}")
        return set(whole.oracle.needs if whole else slot.needs) <= self.joined(terms, lifts)

    def joined(self, terms: Sequence[Term], lifts: Mapping[str, Lift]) -> frozenset[str]:
        """What the sum of terms in one slot offers."""
        return self.problem.joined(terms, [frozenset(lifts[term.name].derivations) for term in terms])

    def _complete(self, placed: Mapping[str, list[Term]], lifts: Mapping[str, Lift]) -> Assignment | None:
        slot_lifts: dict[str, Lift] = {}
        for slot in self.slots:
            terms = placed[slot.name]
            if slot.count(self.problem, terms) < slot.at_least:
                return None
            whole = self.named.get(f"slot:{slot.name}")
            if whole is None:
                continue
            lifted = self.lift_sum(slot, whole, terms, lifts)
            if isinstance(lifted, Missing):
                return None
            slot_lifts[slot.name] = lifted
        return Assignment({name: tuple(terms) for name, terms in placed.items()}, dict(lifts), slot_lifts)

    def lift_sum(self, slot: Slot, whole: Choice, terms: Sequence[Term], lifts: Mapping[str, Lift]) -> Lift | Missing:
        """How the oracle of a slot lifts the sum of what stands there."""
        if not terms:
            return Missing((), "stays empty")
        problem = self.problem
        body = problem.join(terms, [problem.embed(self.bodies[term.name], term) for term in terms])
        return lift(self.joined(terms, lifts), slot, whole, body)


def names(items: Collection[str], word: str = "and") -> str:
    """`'a'`, `'a' and 'b'`, `'a', 'b' and 'c'`."""
    quoted = [f"'{one}'" for one in items]
    return ", ".join(quoted[:-1]) + f" {word} {quoted[-1]}" if len(quoted) > 1 else "".join(quoted)

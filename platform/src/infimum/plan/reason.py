"""One reason per refusal: the sentence that says why a problem does not fit a solver, and what would help."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from infimum.errors import PlanError
from infimum.exactness import Exactness
from infimum.functions.algebra import Sum
from infimum.plan.match import Choice, Lift, Matcher, Missing, inner, lift, names, offers_in
from infimum.problem import Problem, Term
from infimum.solver import Slot, Solver
from infimum.vocabulary import CAPABILITIES


def wrong_family(problem: Problem, solver: Solver, name: str) -> PlanError | None:
    """The refusal of a solver that takes other families, or None."""
    if problem.family in solver.families:
        return None
    return PlanError(
        f"{name} takes problems of family {names(solver.families, 'or')}; "
        f"{problem.describe()} is of family '{problem.family}'"
    )


def refusal(matcher: Matcher, name: str, installed: Sequence[Choice]) -> PlanError:
    """Why no assignment is complete: the first cause in the order term, slot's oracle, slot, number of places."""
    for term in matcher.terms:
        if not matcher.places(term):
            misses = {slot: way for slot, way in matcher.options[term.name].items() if isinstance(way, Missing)}
            return _unplaceable(matcher, term, misses, name, installed)
    for slot in matcher.slots:
        if matcher.fits(slot) < slot.at_least:
            fitting = names([term.name for term in matcher.terms if slot in matcher.places(term)]) or "none"
            how_many = "a term" if slot.at_least == 1 else f"{slot.at_least} terms"
            return PlanError(
                f"{name} needs {how_many} with {' and '.join(slot.needs)} for slot '{slot.name}'; fitting: {fitting}"
            )
    return _oracle_of_a_slot(matcher, name) or _crowded(matcher, name)


def _unplaceable(
    matcher: Matcher, term: Term, misses: Mapping[str, Missing], name: str, installed: Sequence[Choice]
) -> PlanError:
    what = "constraint" if term.role == "constraint" else "term"
    named = matcher.named.get(term.name)
    lacking = [slot for slot in matcher.slots if misses[slot.name].capabilities]
    if named is not None or not lacking:
        groups: dict[str, list[str]] = {}
        for slot, miss in misses.items():
            groups.setdefault(miss.why, []).append(slot)
        why = "; ".join(f"in slot {names(slots, 'or')} it {reason}" for reason, slots in groups.items())
        remedies = [f"take '{term.name}' out of oracles to see what fits without"] if named is not None else []
        return PlanError(f"{name} cannot take {what} '{term.name}': {why}", remedies)
    meant = [slot for slot in lacking if _conceivable(misses[slot.name].capabilities, term)]
    different = _distinct(meant or lacking, misses)
    needs = " or ".join(
        " and ".join(misses[slot.name].capabilities) + (f" (slot {slot.name})" if len(different) > 1 else "")
        for slot in different
    )
    offers = ", ".join(sorted(matcher.bodies[term.name].capabilities)) or "nothing"
    return PlanError(
        f"{name} needs {needs} of {what} '{term.name}', which offers only {offers}.",
        _helping(matcher, term, different, misses, installed),
    )


def _conceivable(capabilities: Sequence[str], term: Term) -> bool:
    """Whether functions, if the term is one, or else sets can have these; of unknown names nothing is known."""
    known = [CAPABILITIES[name] for name in capabilities if name in CAPABILITIES]
    return all(term.role in one.roles for one in known)


def _distinct(slots: Sequence[Slot], misses: Mapping[str, Missing]) -> list[Slot]:
    """The first slot for each set of missing capabilities."""
    seen: dict[tuple[str, ...], Slot] = {}
    for slot in slots:
        seen.setdefault(misses[slot.name].capabilities, slot)
    return list(seen.values())


def _helping(
    matcher: Matcher, term: Term, slots: Sequence[Slot], misses: Mapping[str, Missing], installed: Sequence[Choice]
) -> list[str]:
    """Which installed oracles would let a term stand in these slots, and what to write."""
    lines, body = [], matcher.bodies[term.name]
    for slot in slots:
        needs = " and ".join(misses[slot.name].capabilities)
        anything = dataclasses.replace(slot, accepts=max(Exactness))
        offers, seen = offers_in(slot, body), inner(slot, body)
        helping = [one for one in installed if isinstance(lift(offers, anything, one, seen), Lift)]
        helping.sort(key=lambda one: not one.oracle.volunteers(seen))
        good = [one for one in helping if one.oracle.exactness <= slot.accepts]
        listed = ", ".join(f"{one.name} ({one.oracle.exactness})" for one in good or helping)
        if good:
            add = f"add  oracles: {{{term.name}: {good[0].name}}}"
            lines.append(f"installed oracles that supply {needs}: {listed}      {add}")
        elif helping:
            lines.append(f"{listed} would supply {needs}, but slot '{slot.name}' accepts {slot.accepts} at worst")
    every = " or ".join(" and ".join(misses[slot.name].capabilities) for slot in slots)
    if isinstance(term.body, Sum):
        lines.insert(0, f"'{term.name}' is a sum; its parts may fit as terms of their own: Composite({{name: f, …}})")
    return lines or [f"no installed oracle supplies {every} of '{term.name}'"]


def _oracle_of_a_slot(matcher: Matcher, name: str) -> PlanError | None:
    """The oracle that was named for a slot and that cannot serve it, if this is why."""
    for slot in matcher.slots:
        whole = matcher.named.get(f"slot:{slot.name}")
        if whole is None:
            continue
        terms = [term for term in matcher.terms if slot in matcher.places(term)]
        lifts = {}
        for term in terms:
            ways = matcher.options[term.name][slot.name]
            assert isinstance(ways, list)
            lifts[term.name] = ways[0]
        lifted = matcher.lift_sum(slot, whole, terms, lifts)
        if isinstance(lifted, Missing):
            return PlanError(f"{name}: oracle {whole.name} cannot serve slot '{slot.name}': it {lifted.why}")
    return None


def _crowded(matcher: Matcher, name: str) -> PlanError:
    """Every term fits somewhere, but not all at once."""
    for slot in matcher.slots:
        only = [term for term in matcher.terms if matcher.places(term) == [slot]]
        if slot.at_most is not None and slot.count(matcher.problem, only) > slot.at_most:
            sets = [term for term in only if term.role == "constraint"]
            extra = ""
            if len(sets) > 1:
                extra = "; the nearest point of an intersection is not had by projecting on one set after the other"
            return PlanError(
                f"{name}: {names([term.name for term in only])} each fit only slot '{slot.name}', "
                f"which takes at most {slot.at_most}{extra}"
            )
        lifts = {term.name: matcher.options[term.name][slot.name][0] for term in only}  # type: ignore[index]
        if only and not matcher.together(slot, only, lifts):
            return PlanError(
                f"{name}: slot '{slot.name}' would hold the sum of {names([term.name for term in only])}, "
                f"and the sum has no {' and '.join(slot.needs)} although each of them does"
            )
    places = "; ".join(
        f"slot '{slot.name}' takes {_count(slot)} with {' and '.join(slot.needs)}" for slot in matcher.slots
    )
    terms = names([term.name for term in matcher.terms])
    return PlanError(f"{name} has no place for {terms} together: {places}")


def _count(slot: Slot) -> str:
    if slot.at_most is None:
        return f"{slot.at_least} or more terms" if slot.at_least else "any number of terms"
    if slot.at_least == slot.at_most:
        return f"exactly {slot.at_most}"
    return f"at most {slot.at_most}"

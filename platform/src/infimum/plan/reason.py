"""One reason per refusal: the sentence that says why a problem does not fit a solver, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infimum.errors import PlanError
from infimum.plan.derive import derive
from infimum.plan.match import Choice, Matcher, Missing, names, offers_in
from infimum.problem import Problem, Term
from infimum.solver import Slot, Solver


def wrong_family(problem: Problem, solver: Solver, name: str) -> PlanError | None:
    """The refusal of a solver that takes other families, or None."""
    if problem.family in solver.families:
        return None
    return PlanError(
        f"{name} takes problems of family {names(solver.families, 'or')}; "
        f"{problem.describe()} is of family '{problem.family}'"
    )


def refusal(matcher: Matcher, name: str, installed: Sequence[Choice]) -> PlanError:
    """Why no assignment is complete: the first cause in the order term, oracle, slot, number of places."""
    for term in matcher.terms:
        ways = matcher.options[term.name]
        misses = {slot: way for slot, way in ways.items() if isinstance(way, Missing)}
        if len(misses) == len(ways):
            return _unplaceable(matcher, term, misses, name, installed)
    for slot in matcher.slots:
        fits = [t for t in matcher.terms if not isinstance(matcher.options[t.name][slot.name], Missing)]
        if len(fits) < slot.at_least:
            needs = " and ".join(slot.needs)
            return PlanError(f"{name} needs a term with {needs} for slot '{slot.name}'; no term has it")
    return _crowded(matcher, name)


def _unplaceable(
    matcher: Matcher, term: Term, misses: Mapping[str, Missing], name: str, installed: Sequence[Choice]
) -> PlanError:
    what = "constraint" if term.role == "constraint" else "term"
    named = matcher.named.get(term.name)
    wrong = [miss for miss in misses.values() if not miss.capabilities]
    if named is not None or (wrong and len(wrong) == len(misses)):
        why = "; ".join(dict.fromkeys(f"in slot '{slot}' it {miss.why}" for slot, miss in misses.items()))
        remedies = [f"without the oracle: remove  {term.name}  from oracles"] if named is not None else []
        return PlanError(f"{name} cannot take {what} '{term.name}': {why}", remedies)
    offers = offers_in(matcher.slots[0], matcher.bodies[term.name])
    open_slots = [slot for slot in matcher.slots if misses[slot.name].capabilities]
    needs = " or ".join(
        f"{' and '.join(misses[slot.name].capabilities)} (slot {slot.name})" if len(open_slots) > 1 else (
            " and ".join(misses[slot.name].capabilities)
        )
        for slot in _distinct(open_slots, misses)
    )
    reason = f"{name} needs {needs} of {what} '{term.name}', which offers only {', '.join(sorted(offers)) or 'nothing'}"
    return PlanError(reason + ".", list(_oracles_that_help(matcher, term, open_slots, misses, installed)))


def _distinct(slots: Sequence[Slot], misses: Mapping[str, Missing]) -> list[Slot]:
    seen: dict[tuple[str, ...], Slot] = {}
    for slot in slots:
        seen.setdefault(misses[slot.name].capabilities, slot)
    return list(seen.values())


def _oracles_that_help(
    matcher: Matcher, term: Term, slots: Sequence[Slot], misses: Mapping[str, Missing], installed: Sequence[Choice]
) -> list[str]:
    lines = []
    for slot in _distinct(slots, misses):
        wanted = misses[slot.name].capabilities
        offers = offers_in(slot, matcher.bodies[term.name])
        body = matcher.bodies[term.name]
        helping = [
            one
            for one in installed
            if set(wanted) <= set(one.oracle.supplies)
            and all(derive(need, offers) is not None for need in one.oracle.needs)
            and one.oracle.refuses(body) is None
        ]
        good = [one for one in helping if one.oracle.exactness <= slot.accepts]
        if good:
            listed = ", ".join(f"{one.name} ({one.oracle.exactness})" for one in good)
            lines.append(
                f"installed oracles that supply {' and '.join(wanted)}: {listed}      "
                f"add  oracles: {{{term.name}: {good[0].name}}}"
            )
        elif helping:
            listed = ", ".join(f"{one.name} ({one.oracle.exactness})" for one in helping)
            lines.append(f"{listed} would supply {' and '.join(wanted)}, but slot '{slot.name}' accepts {slot.accepts}")
        else:
            lines.append(f"no installed oracle supplies {' and '.join(wanted)} of '{term.name}'")
    return lines


def _crowded(matcher: Matcher, name: str) -> PlanError:
    """Every term fits somewhere, but not all at once."""
    for slot in matcher.slots:
        only = [
            term
            for term in matcher.terms
            if [s for s, way in matcher.options[term.name].items() if not isinstance(way, Missing)] == [slot.name]
        ]
        if slot.at_most is not None and matcher.problem.units(only) > slot.at_most:
            sets = [term for term in only if term.role == "constraint"]
            extra = ""
            if len(sets) > 1:
                extra = "; the nearest point of an intersection is not had by projecting on one set after the other"
            return PlanError(
                f"{name}: {names([t.name for t in only])} each fit only slot '{slot.name}', "
                f"which takes at most {slot.at_most}{extra}"
            )
        if len(only) > 1 and not slot.each:
            return PlanError(
                f"{name}: slot '{slot.name}' would hold the sum of {names([t.name for t in only])}, "
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

"""The plan: terms in slots, oracles in gaps, facts and exactness; it prints itself and binds parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infimum.errors import InputError, did_you_mean
from infimum.exactness import Exactness
from infimum.oracle import Resume
from infimum.plan.match import Assignment, Choice, Lift, Matcher, inner
from infimum.plan.reason import refusal, wrong_family
from infimum.problem import Problem, Term
from infimum.solver import Metric, Slot, Solver

_RESUME_ORDER: tuple[Resume, ...] = ("exact", "replay", "none")


@dataclass(frozen=True, slots=True)
class Placement:
    """One line of a plan: a term (or the sum in a slot) and how it gets what the slot needs."""

    slot: str
    term: str
    gets: tuple[str, ...]
    """What the slot needs, each with the rules behind it: `"prox (scaling)"`."""
    oracle: str | None
    exactness: Exactness
    dimension: int | None
    replaces: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f"  by oracle {self.oracle}" if self.oracle else ""
        size = f" in dimension {self.dimension}" if self.oracle and self.dimension is not None else ""
        note = f"  (in place of its own {', '.join(self.replaces)})" if self.replaces else ""
        return f"{self.slot:<10} {self.term:<16} {', '.join(self.gets):<34} {self.exactness}{by}{size}{note}"


@dataclass(frozen=True)
class Plan:
    """What a run will do, without running it.

    Attributes
    ----------
    problem, solver : Problem, Solver
    solver_name : str
    slots : tuple of Slot
    assignment : Assignment
    placements : tuple of Placement
        What `print(plan)` shows, one a term.
    exactness : Exactness
        The worst of the parts.
    resume : {"exact", "replay", "none"}
        The weakest of the components.
    metrics : mapping of str to Metric
        Those of the solver's metrics that what stands in the slots makes possible, and those of the oracles.
    """

    problem: Problem
    solver: Solver
    solver_name: str
    slots: tuple[Slot, ...]
    assignment: Assignment
    placements: tuple[Placement, ...]
    exactness: Exactness
    resume: Resume
    metrics: Mapping[str, Metric] = field(default_factory=dict)

    @property
    def oracles(self) -> int:
        """Number of oracles in the plan."""
        return sum(1 for one in self.placements if one.oracle is not None)

    def __str__(self) -> str:
        lines = [f"plan: {self.solver_name} on {self.problem.describe()}"]
        lines += [f"  slot {placement}" for placement in self.placements]
        empty = [slot.name for slot in self.slots if not self.assignment.terms[slot.name]]
        if empty:
            lines.append(f"  empty slots: {', '.join(empty)}")
        loop = f", stops {self.solver.stops} (a loop of its own)" if self.solver.drives else ""
        lines.append(f"  exactness {self.exactness}, resume {self.resume}{loop}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, for results and `--json`."""
        return {
            "solver": self.solver_name,
            "problem": self.problem.describe(),
            "placements": [
                {
                    "slot": one.slot,
                    "term": one.term,
                    "gets": list(one.gets),
                    "oracle": one.oracle,
                    "exactness": str(one.exactness),
                    "dimension": one.dimension,
                    "replaces": list(one.replaces),
                }
                for one in self.placements
            ],
            "exactness": str(self.exactness),
            "resume": self.resume,
            "stops": self.solver.stops,
            "metrics": sorted(self.metrics),
            "sense": self.problem.sense,
            "merit": self.problem.merit,
        }


def make_plan(
    problem: Problem,
    solver: Solver,
    *,
    solver_name: str = "",
    oracles: Mapping[str, Choice] | None = None,
    allowed: Sequence[Choice] = (),
    installed: Sequence[Choice] | Callable[[], Sequence[Choice]] = (),
    assign: Mapping[str, str] | None = None,
) -> Plan:
    """Match a problem's terms to a solver's slots.

    Parameters
    ----------
    problem, solver
    solver_name : str
        How messages call the solver; its class name by default.
    oracles : mapping of str to Choice
        Named oracles: per term, or per `slot:NAME`.
    allowed : sequence of Choice
        Oracles that may fill gaps unasked (`oracles: auto`).
    installed : sequence of Choice, or callable that gives one
        Oracles that a refusal may recommend; called when there is one.
    assign : mapping of str to str
        Term name to slot name, where the user decides.

    Raises
    ------
    PlanError
        If no complete assignment exists; says why and what would help.
    InputError
        If `oracles` or `assign` name things that the problem or the solver does not have.
    """
    name = solver_name or type(solver).__name__
    if (error := wrong_family(problem, solver, name)) is not None:
        raise error
    slots, named = tuple(solver.slots()), dict(oracles or {})
    _check_names(problem, slots, named, assign or {}, name)
    ordered = sorted(allowed, key=lambda one: (one.oracle.exactness, -one.oracle.preference, one.name))
    matcher = Matcher(problem, slots, named, ordered, assign)
    assignment = matcher.search()
    if assignment is None:
        raise refusal(matcher, name, installed() if callable(installed) else installed)
    placements = tuple(_placements(matcher, assignment))
    exactness = max((one.exactness for one in placements), default=Exactness.exact)
    return Plan(
        problem=problem,
        solver=solver,
        solver_name=name,
        slots=slots,
        assignment=assignment,
        placements=placements,
        exactness=exactness,
        resume=_weakest(problem, solver, assignment),
        metrics=_available(solver, slots, problem, assignment),
    )


def _check_names(
    problem: Problem, slots: Sequence[Slot], named: Mapping[str, Choice], assign: Mapping[str, str], name: str
) -> None:
    terms = [term.name for term in problem.terms]
    places = {slot.name: slot for slot in slots}
    for key in named:
        slot = key.removeprefix("slot:")
        if key.startswith("slot:") and slot not in places:
            raise InputError(f"oracles: {name} has no slot '{slot}'; {did_you_mean(slot, places)}")
        if key.startswith("slot:") and (places[slot].each or places[slot].takes_map):
            raise InputError(f"oracles: slot '{slot}' of {name} keeps its terms apart; name terms in place of '{key}'")
        if not key.startswith("slot:") and key not in terms:
            hint = f"for the sum in a slot write 'slot:{key}'" if key in places else did_you_mean(key, terms)
            raise InputError(f"oracles: the problem has no term '{key}'; {hint}")
    for term, slot in assign.items():
        if slot not in places:
            raise InputError(f"assign: {name} has no slot '{slot}'; {did_you_mean(slot, places)}")
        if term not in terms:
            raise InputError(f"assign: the problem has no term '{term}'; {did_you_mean(term, terms)}")


def _placements(matcher: Matcher, assignment: Assignment) -> list[Placement]:
    lines = []
    for slot in matcher.slots:
        whole = assignment.slot_lifts.get(slot.name)
        oracle = whole.choice.oracle if whole is not None and whole.choice is not None else None
        show = slot.needs if oracle is None else (*oracle.needs, *oracle.wants)
        for term in assignment.terms[slot.name]:
            seen = inner(slot, matcher.bodies[term.name])
            size = _dimension(matcher.problem, slot, term, matcher.bodies[term.name])
            lines.append(_line(slot, term.name, assignment.lifts[term.name], seen, show, size))
        if whole is not None:
            lines.append(_line(slot, f"slot:{slot.name}", whole, None, slot.needs, matcher.problem.dimension()))
    return lines


def _line(slot: Slot, term: str, lift: Lift, body: Any, show: Sequence[str], dimension: int | None) -> Placement:
    how = getattr(body, "how", {}) if lift.choice is None else {}
    gets = []
    for name in dict.fromkeys(show):
        if name not in lift.derivations:
            continue
        derivation = lift.derivations[name]
        labels = [*(how[leaf] for leaf in sorted(derivation.leaves) if leaf in how), *derivation.labels]
        gets.append(f"{name} ({', '.join(labels)})" if labels else name)
    return Placement(
        slot=slot.name,
        term=term,
        gets=tuple(gets),
        oracle=lift.choice.name if lift.choice else None,
        exactness=lift.exactness,
        dimension=dimension,
        replaces=tuple(sorted(lift.replaced)),
    )


def _dimension(problem: Problem, slot: Slot, term: Term, body: Any) -> int | None:
    """Number of variables that an oracle works in: those of f where the slot takes the map."""
    seen = inner(slot, body)
    if seen is body:
        return problem.dimension(term)
    if seen.shape is not None:
        return int(math.prod(seen.shape))
    return None if body.map.shape is None else int(body.map.shape[0])


def _weakest(problem: Problem, solver: Solver, assignment: Assignment) -> Resume:
    lifts = (*assignment.lifts.values(), *assignment.slot_lifts.values())
    all_of = [problem.resume, solver.resume, *(one.choice.oracle.resume for one in lifts if one.choice)]
    return max(all_of, key=_RESUME_ORDER.index)


def _available(solver: Solver, slots: Sequence[Slot], problem: Problem, assignment: Assignment) -> dict[str, Metric]:
    """The oracles' metrics, and those of the solver whose requirements are met by what stands in the slots."""
    offered = {slot.name: _standing(slot, problem, assignment) for slot in slots}
    lifts = (*assignment.lifts.values(), *assignment.slot_lifts.values())
    of_oracles = {name: Metric() for one in lifts if one.choice for name in one.choice.oracle.metrics}
    return of_oracles | {
        name: metric
        for name, metric in solver.metrics.items()
        if (not metric.families or problem.family in metric.families)
        and all(
            all(any(one in offers for one in anyof) for offers in offered.get(slot, []))
            for slot, anyof in metric.requires.items()
        )
    }


def _standing(slot: Slot, problem: Problem, assignment: Assignment) -> list[frozenset[str]]:
    """What each part in a slot offers; empty where none stands there."""
    terms = assignment.terms[slot.name]
    each = [frozenset(assignment.lifts[term.name].derivations) for term in terms]
    if slot.name in assignment.slot_lifts:
        return [frozenset(assignment.slot_lifts[slot.name].derivations)]
    return each if slot.each or slot.takes_map or not terms else [problem.joined(terms, each)]

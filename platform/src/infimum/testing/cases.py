"""Solvers and oracles with problems that they take: what the conformance tests are run on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from infimum import api
from infimum.errors import InfimumError, PlanError
from infimum.explanation import installed_oracles
from infimum.inputs import as_problem
from infimum.plan.match import Choice
from infimum.plan.plan import Plan, make_plan
from infimum.plugins.build import build
from infimum.plugins.options import describe_options, json_schema
from infimum.plugins.records import Component
from infimum.plugins.registry import get_registry
from infimum.problem import Composite, Problem
from infimum.run.run import Run
from infimum.solver import Solver
from infimum.testing.examples import built, examples
from infimum.testing.reference import REFERENCES

STEPS = 12
"""Iterations of a run of the kit."""


@dataclass(frozen=True)
class SolverCase:
    """A solver with options, on a problem that it takes."""

    component: Component
    options: Mapping[str, Any]
    reference: str
    make: Callable[[], Problem]
    oracles: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    """Which of the component's examples this is."""

    @property
    def name(self) -> str:
        """The solver, the problem, and the number of the example where there are several."""
        return f"{self.component.name}-{self.reference}" + (f"-{self.number}" if self.number else "")

    def solver(self) -> Solver:
        """A new object."""
        return built(self.component, self.options).instance  # type: ignore[no-any-return]

    def prepare(self, problem: Problem | None = None, *, solver: Solver | None = None, **more: Any) -> Run:
        """A run of `STEPS` iterations with seed 7, unless told otherwise."""
        arguments = {"stopping": f"max_iter({STEPS})", "seed": 7, **more}
        chosen = dict(self.oracles) or None
        return api.prepare(
            self.make() if problem is None else problem, solver=solver or self.solver(), oracles=chosen, **arguments
        )


@functools.cache
def solver_cases(component: Component) -> list[SolverCase]:
    """At most three cases for the first example of a solver, one for each further example and each turned switch.

    The first reference problem that it takes as it is, the one that fills the most slots, and the first that needs an
    oracle. A solver for problems of its own family names some: attribute `reference_problems`, a sequence of
    specifications as in a run file.
    """
    registry = get_registry()
    oracles = installed_oracles(registry)
    problems = {**_own_problems(component), **REFERENCES}
    found: list[SolverCase] = []
    given = examples(component)
    for number, options in enumerate([*given, *_variants(component, given[0])]):
        try:
            solver = built(component, options, registry).instance
        except InfimumError:
            if number < len(given):
                raise
            # Not every switch can be turned alone.
            continue
        plain, lifted = _able(component, solver, problems, oracles)
        chosen: list[tuple[str, Mapping[str, str]]] = []
        if plain:
            richest = max(plain, key=_filled)[0]
            chosen += [(name, {}) for name in dict.fromkeys((richest, plain[0][0]))]
        if lifted:
            name, plan = lifted[0]
            chosen.append((name, {one.term: one.oracle for one in plan.placements if one.oracle is not None}))
        for name, named in chosen[:1] if number else chosen:
            found.append(SolverCase(component, options, name, problems[name], named, number))
    return found


def _variants(component: Component, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The options with one switch turned, or one word exchanged for another: each is a method of its own."""
    found: list[dict[str, Any]] = []
    if hasattr(component.load(), "examples") or built(component, options).instance.drives:
        return found
    properties = json_schema(component)["properties"]
    for option in describe_options(component):
        if isinstance(option.default, bool):
            found.append({**options, option.name: not option.default})
        for word in properties[option.name].get("enum", ()):
            if word != option.default:
                found.append({**options, option.name: word})
    return found


def _own_problems(component: Component) -> dict[str, Callable[[], Problem]]:
    own = getattr(component.load(), "reference_problems", ())
    specs = own() if callable(own) else own

    def maker(spec: Any) -> Callable[[], Problem]:
        return lambda: as_problem(build(spec, "problem").instance)

    return {f"own{number or ''}": maker(spec) for number, spec in enumerate(specs)}


Planned = tuple[str, Plan]


def _able(
    component: Component, solver: Solver, problems: Mapping[str, Callable[[], Problem]], oracles: Sequence[Choice]
) -> tuple[list[Planned], list[Planned]]:
    """Problems that a solver takes as they are, and those that it takes with an oracle."""
    plain: list[Planned] = []
    lifted: list[Planned] = []
    for name, make in problems.items():
        problem = make()
        try:
            plain.append((name, make_plan(problem, solver, solver_name=component.name)))
        except PlanError:
            try:
                lifted.append((name, make_plan(problem, solver, solver_name=component.name, allowed=oracles)))
            except InfimumError:
                continue
        except InfimumError:
            continue
    return [one for one in plain if _starts(one[1])], [one for one in lifted if _starts(one[1])]


def _starts(plan: Plan) -> bool:
    """Whether a run can be made: some demands, such as a known constant, are made of what stands in the slots."""
    try:
        Run(plan, seed=7)
    except InfimumError:
        return False
    return True


def _filled(planned: Planned) -> tuple[int, int]:
    """How much of a solver a plan uses: slots that are filled, and terms with a map that the solver takes."""
    plan = planned[1]
    terms = plan.assignment.terms
    mapped = [one for slot in plan.slots if slot.takes_map for one in terms[slot.name] if hasattr(one.body, "map")]
    return sum(1 for slot in plan.slots if terms[slot.name]), len(mapped)


def is_composite(case: SolverCase) -> bool:
    """Whether the case's problem is of the host's own family, whose terms the kit can watch."""
    return type(case.make()) is Composite

"""What fits what: the plan of one solver, or of every installed one, without solving."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from infimum.counters import Counters
from infimum.errors import InfimumError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum.plan.bind import Bound, streams
from infimum.plan.match import Choice
from infimum.plan.plan import Plan, make_plan
from infimum.plugins.build import build
from infimum.plugins.registry import Registry, get_registry
from infimum.problem import Problem
from infimum.solver import Solver

Verdict = Literal["as it is", "with oracles", "with options", "cannot"]
TITLES: dict[Verdict, str] = {
    "as it is": "takes it as it is",
    "with oracles": "takes it with an oracle",
    "with options": "takes it once an option is set",
    "cannot": "cannot take it",
}
"""What stands over the solvers of a verdict, from the best to the worst."""


@dataclass(frozen=True)
class Row:
    """One solver's answer."""

    solver: str
    verdict: Verdict
    plan: Plan | None
    reason: str
    summary: str = ""


@dataclass(frozen=True)
class Explanation:
    """Which solvers take a problem as it is, which with an oracle, which cannot, and why.

    Attributes
    ----------
    problem : str
    terms : tuple of (str, str)
        Every term with what it offers.
    rows : tuple of Row
        Sorted: as it is (most exact first), with oracles, with options, cannot.
    """

    problem: str
    terms: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        lines = [self.problem, *(f"  term {name:<14} {offers}" for name, offers in self.terms)]
        for verdict, title in TITLES.items():
            rows = [row for row in self.rows if row.verdict == verdict]
            if not rows:
                continue
            lines.append(f"{title}:")
            for row in rows:
                lines += _lines(row)
        if not self.rows:
            lines.append("no solver is installed; see  infimum plugins")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "problem": self.problem,
            "terms": dict(self.terms),
            "solvers": [
                {
                    "solver": row.solver,
                    "verdict": row.verdict,
                    "plan": row.plan.to_dict() if row.plan else None,
                    "reason": row.reason,
                }
                for row in self.rows
            ],
        }


def _lines(row: Row) -> list[str]:
    lifted = [one for one in row.plan.placements if one.oracle] if row.plan is not None else []
    oracles = ", ".join(f"{one.term}: {one.oracle} ({one.exactness})" for one in lifted)
    if row.reason:
        first, *rest = row.reason.splitlines()
        named = first if first.startswith(row.solver) else f"{row.solver}: {first}"
        lines = [f"  {named}", *(f"    {line}" for line in rest)]
        return [*lines, f"      and with {oracles}"] if oracles else lines
    assert row.plan is not None, "a row without a reason has a plan"
    by = f"  with {oracles}" if oracles else ""
    return [f"  {row.solver:<32} {row.plan.exactness}{by}", *(f"      {one}" for one in row.plan.placements)]


def explain_all(
    problem: Problem, *, oracles: Mapping[str, Choice] | None = None, registry: Registry | None = None
) -> Explanation:
    """Try every installed solver, with its default options, on `problem`.

    Parameters
    ----------
    problem : Problem
    oracles : mapping of str to Choice, optional
        Oracles that the user named; they stay named in every plan.
    registry : Registry, optional
        By default that of the process.
    """
    registry = registry or get_registry()
    installed = installed_oracles(registry)
    rows = [_row(problem, component, oracles, installed, registry) for component in registry.components("solver")]
    order = list(TITLES)
    rows.sort(key=lambda row: (order.index(row.verdict), row.plan.exactness if row.plan else 0, row.solver))
    terms = tuple((term.name, ", ".join(sorted(term.body.capabilities))) for term in problem.terms)
    return Explanation(problem.describe(), terms, tuple(rows))


def _row(
    problem: Problem,
    component: Any,
    oracles: Mapping[str, Choice] | None,
    installed: Sequence[Choice],
    registry: Registry,
) -> Row:
    name = component.name
    try:
        solver = build(name, "solver", registry=registry).instance
    except InfimumError as error:
        return Row(name, "cannot", None, f"cannot be made with default options: {error}")
    try:
        plan = make_plan(problem, solver, solver_name=name, oracles=oracles, installed=installed)
    except InfimumError as error:
        refused = error
        try:
            plan = make_plan(problem, solver, solver_name=name, oracles=oracles, allowed=installed)
        except InfimumError:
            return Row(name, "cannot", None, str(refused), component.summary)
    if (missing := objection(plan)) is not None:
        return Row(name, "with options", plan, missing, component.summary)
    return Row(name, "with oracles" if plan.oracles else "as it is", plan, "", component.summary)


def objection(plan: Plan) -> str | None:
    """Why the solver's options do not fit what stands in its slots (an automatic step without a constant), or None.

    Binds the plan at the problem's own start; nothing is evaluated.
    """
    stream = streams(0)
    try:
        point = plan.problem.prepare(plan.problem.start(stream("start")))
        bound = Bound(plan, point, stream, Counters())
    except InfimumError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            plan.solver.check(bound.parts)
        except InfimumError as error:
            return str(error)
    return None


def installed_oracles(registry: Registry) -> list[Choice]:
    """Every installed oracle that can be made with default options, most exact first, then by `preference`."""
    out = []
    for component in registry.components("oracle"):
        try:
            oracle = build(component.name, "oracle", registry=registry).instance
        except InfimumError:
            continue
        if isinstance(oracle, Oracle):
            out.append(Choice(component.name, oracle, named=False))
    return sorted(out, key=lambda one: (one.oracle.exactness, -one.oracle.preference, one.name))


def able(
    problem: Problem,
    registry: Registry,
    *,
    oracles: Mapping[str, Choice] | None = None,
    allowed: Sequence[Choice] = (),
    but: str = "",
) -> list[str]:
    """Names of the installed solvers that take `problem`, without further ado or with the given oracles.

    Fewest oracles first, then most exact, then by the solvers' own `preference`, then fewest empty slots.
    """
    found: list[tuple[int, Exactness, int, int, str]] = []
    for component in registry.components("solver"):
        if component.name == but:
            continue
        try:
            solver: Solver = build(component.name, "solver", registry=registry).instance
            plan = make_plan(problem, solver, solver_name=component.name, oracles=oracles, allowed=allowed)
        except InfimumError:
            continue
        if objection(plan) is not None:
            continue
        idle = sum(1 for slot in plan.slots if not plan.assignment.terms[slot.name])
        found.append((plan.oracles, plan.exactness, -solver.preference, idle, component.name))
    return [name for *_, name in sorted(found)]

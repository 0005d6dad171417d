"""What a run decides or notes for the user: what ends it, and what an oracle replaces."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from infimum.plan.plan import Plan
from infimum.stopping.base import StoppingRule
from infimum.stopping.combine import unconditional_limit
from infimum.stopping.rules import GradNorm, MaxIter, Residual

DEFAULT_LIMIT = 10_000
"""Iterations after which a run ends when its rule names no limit of its own."""
DEFAULT_TOLERANCE = 1e-6
"""Of the solver's own optimality measure, when no rule is given at all."""


OPTIMALITY: Mapping[str, type[GradNorm | Residual]] = {"grad_norm": GradNorm, "residual": Residual}
"""Metrics in which solvers say how far from a solution they are, with the rules on them; the first one counts."""


def optimality(metrics: Collection[str], tolerance: float = DEFAULT_TOLERANCE) -> StoppingRule | None:
    """The rule on the solver's own optimality measure, or None where it has none."""
    return next((rule(tolerance) for name, rule in OPTIMALITY.items() if name in metrics), None)


def complete(rule: StoppingRule | None, metrics: Collection[str]) -> tuple[StoppingRule, str]:
    """The user's rule, with a default where there is none and a limit where it has none; a note on what was added.

    `metrics` are those of the solver.
    """
    limit: StoppingRule = MaxIter(DEFAULT_LIMIT)
    if rule is None:
        own = optimality(metrics)
        rule = limit if own is None else own | limit
        return rule, f"no stopping rule was given: {rule}"
    if not unconditional_limit(rule):
        return rule | limit, f"the stopping rule has no limit of its own: {limit} was added"
    return rule, ""


def replacements(plan: Plan) -> list[str]:
    """A note for every named oracle that stands in place of what the function itself offers."""
    return [
        f"oracle {one.oracle} was named for '{one.term}', which needs none: "
        f"it replaces its own {', '.join(one.replaces)}"
        for one in plan.placements
        if one.replaces
    ]

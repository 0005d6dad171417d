"""What ends a run where the user does not say."""

from __future__ import annotations

from collections.abc import Collection

from infimum.stopping.base import StoppingRule
from infimum.stopping.combine import unconditional_limit
from infimum.stopping.rules import GradNorm, MaxIter, Residual

DEFAULT_LIMIT = 10_000
"""Iterations after which a run ends when its rule names no limit of its own."""
DEFAULT_TOLERANCE = 1e-6
"""Of the solver's own optimality measure, when no rule is given at all."""


def complete(rule: StoppingRule | None, metrics: Collection[str]) -> tuple[StoppingRule, str]:
    """The user's rule, with a default where there is none and a limit where it has none; a note on what was added.

    `metrics` are those of the solver.
    """
    limit: StoppingRule = MaxIter(DEFAULT_LIMIT)
    if rule is None:
        own = {"grad_norm": GradNorm, "residual": Residual}
        name = next((one for one in own if one in metrics), None)
        rule = limit if name is None else own[name](DEFAULT_TOLERANCE) | limit
        return rule, f"no stopping rule was given: {rule}"
    if not unconditional_limit(rule):
        return rule | limit, f"the stopping rule has no limit of its own: {limit} was added"
    return rule, ""

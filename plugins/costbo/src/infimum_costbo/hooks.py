"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from infimum.plugins import hook

_RULES = {
    "stop": ("Stop", "cost-aware", "no point is worth its cost: expected improvement per expected cost at most lam"),
    "ucb_lcb": ("UcbLcb", "model-based", "upper and lower confidence bounds of the optimum are close"),
    "srgap_median": (
        "SrgapMedian",
        "model-based",
        "the expected minimum regret hardly changes any more",
    ),
    "log_eipc_median": ("LogEipcMedian", "cost-aware", "the gain per cost is small beside its first values"),
    "convergence": ("Convergence", "values", "the best value is the same as some evaluations ago"),
    "gss": ("Gss", "values", "the best value improved little beside its interquartile range"),
}


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    register(
        "gp",
        "infimum_costbo.solver:GP",
        kind="model-based",
        summary="Bayesian optimization that weighs the expected improvement against the expected cost",
    )


@hook
def infimum_stopping_rules(register: Callable[..., None]) -> None:
    for name, (target, kind, summary) in _RULES.items():
        register(name, f"infimum_costbo.rules:{target}", kind=kind, summary=summary)


@hook
def infimum_report_sections(result: Any) -> Iterable[Any]:
    if not any(name.startswith("costbo.") for name in result.extras):
        return ()
    from infimum_costbo.report import sections

    return tuple(sections(result.extras))

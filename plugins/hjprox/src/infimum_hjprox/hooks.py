"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

SCHEDULES = (
    ("power_law", "PowerLaw", "a power of the iteration between a floor and a ceiling"),
    ("geometric", "Geometric", "a geometric sequence between a floor and a ceiling"),
    ("ess_adaptive", "EssAdaptive", "follows the effective sample size of the prox before"),
)


@hook
def infimum_oracles(register: Callable[..., None]) -> None:
    register(
        "prox",
        "infimum_hjprox.oracle:HJProx",
        kind="proximal",
        summary="prox from values at random points, weighted by exp(-f/delta)",
    )


@hook
def infimum_stopping_rules(register: Callable[..., None]) -> None:
    register(
        "noise_floor",
        "infimum_hjprox.rules:NoiseFloor",
        kind="noise",
        summary="the solver's residual is no larger than the sampling error of the prox",
    )


@hook
def infimum_components(register: Callable[..., None]) -> None:
    for name, target, summary in SCHEDULES:
        register(name, f"infimum_hjprox.schedules:{target}", kind="schedule", summary=summary)

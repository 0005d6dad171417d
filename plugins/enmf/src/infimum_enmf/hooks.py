"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from infimum.plugins import hook

_PROBLEMS = {
    "nmf": ("NMF", "a nonnegative matrix of yours and a rank"),
    "synthetic": ("synthetic", "|WH + N| of low rank at a signal-to-noise ratio"),
    "separable": ("separable", "exact separable data with zeros"),
    "digits": ("digits", "parts of the 1797 digits of scikit-learn"),
    "china": ("china", "4240 patches of a photograph"),
}


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    for name, (target, summary) in _PROBLEMS.items():
        register(name, f"infimum_enmf.problem:{target}", kind="nonnegative factorization", summary=summary)


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    kind = "nonnegative factorization"
    register(
        "exterior",
        "infimum_enmf.solver:Exterior",
        kind=kind,
        summary="SVD, rotation towards the orthant, entry walk, HALS; with a lower bound and a certificate",
    )
    register("hals", "infimum_enmf.solver:HALS", kind=kind, summary="hierarchical alternating least squares")
    register(
        "sklearn",
        "infimum_enmf.peers:SklearnNMF",
        kind=kind,
        summary="scikit-learn's coordinate descent or multiplicative update",
    )


@hook
def infimum_components(register: Callable[..., None]) -> None:
    register(
        "start",
        "infimum_enmf.stages:ExteriorStart",
        kind="initializer",
        summary="the exterior method without its descent, as a start for any NMF solver",
    )


@hook
def infimum_report_sections(result: Any) -> Iterable[Any]:
    if not any(name.partition(" ")[0] == "enmf.exterior" for name in result.extras):
        return ()
    from infimum_enmf.report import sections

    return sections(result)

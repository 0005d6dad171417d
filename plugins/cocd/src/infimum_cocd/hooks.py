"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook


@hook
def infimum_oracles(register: Callable[..., None]) -> None:
    register(
        "coherent",
        "infimum_cocd.coherent:Coherent",
        kind="zeroth-order",
        summary="gradient of which a block of coordinates is refreshed at each call, B + 1 or 2 B values",
    )


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    register(
        "descent",
        "infimum_cocd.descent:Descent",
        kind="zeroth-order",
        summary="descent along a buffered difference gradient, a block of coordinates refreshed at each step",
    )

"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook


@hook
def infimum_oracles(register: Callable[..., None]) -> None:
    register(
        "forward_difference",
        "infimum_zeroth.forward_difference:ForwardDifference",
        kind="zeroth-order",
        summary="gradient by forward differences, n + 1 values each",
    )

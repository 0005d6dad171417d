"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    register(
        "gradient_descent",
        "infimum_splitting.gradient_descent:GradientDescent",
        kind="first-order",
        summary="gradient steps on a smooth function",
    )
    register(
        "proximal_gradient",
        "infimum_splitting.proximal_gradient:ProximalGradient",
        kind="proximal",
        summary="gradient step on the smooth terms, prox of the rest; FISTA with acceleration",
    )
    register(
        "douglas_rachford",
        "infimum_splitting.douglas_rachford:DouglasRachford",
        kind="proximal",
        summary="proxes of two functions in turn; no smoothness needed",
    )

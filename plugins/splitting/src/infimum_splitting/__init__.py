"""Proximal splitting algorithms: gradient descent, proximal gradient (FISTA) and Douglas–Rachford."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_splitting.douglas_rachford import DouglasRachford
    from infimum_splitting.gradient_descent import GradientDescent
    from infimum_splitting.proximal_gradient import ProximalGradient

__all__ = ["DouglasRachford", "GradientDescent", "ProximalGradient"]

_HOMES = {
    "DouglasRachford": "douglas_rachford",
    "GradientDescent": "gradient_descent",
    "ProximalGradient": "proximal_gradient",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

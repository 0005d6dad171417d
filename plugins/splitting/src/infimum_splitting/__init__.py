"""Proximal splitting algorithms, from gradient descent to primal-dual methods."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_splitting.admm import ADMM
    from infimum_splitting.condat_vu import CondatVu
    from infimum_splitting.davis_yin import DavisYin
    from infimum_splitting.douglas_rachford import DouglasRachford
    from infimum_splitting.gradient_descent import GradientDescent
    from infimum_splitting.pdhg import PDHG
    from infimum_splitting.proximal_gradient import ProximalGradient
    from infimum_splitting.proximal_point import ProximalPoint

__all__ = [
    "ADMM",
    "PDHG",
    "CondatVu",
    "DavisYin",
    "DouglasRachford",
    "GradientDescent",
    "ProximalGradient",
    "ProximalPoint",
]

_HOMES = {
    "ADMM": "admm",
    "PDHG": "pdhg",
    "CondatVu": "condat_vu",
    "DavisYin": "davis_yin",
    "DouglasRachford": "douglas_rachford",
    "GradientDescent": "gradient_descent",
    "ProximalGradient": "proximal_gradient",
    "ProximalPoint": "proximal_point",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

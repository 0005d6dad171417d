"""Derivatives from values: classical zeroth-order oracles."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_zeroth.central_difference import CentralDifference
    from infimum_zeroth.complex_step import ComplexStep
    from infimum_zeroth.forward_difference import ForwardDifference
    from infimum_zeroth.mezo import Mezo
    from infimum_zeroth.random_block import RandomBlock
    from infimum_zeroth.random_directions import RandomDirections
    from infimum_zeroth.spsa import Spsa
    from infimum_zeroth.torch_mezo import MeZO, mezo_gradient

__all__ = [
    "CentralDifference",
    "ComplexStep",
    "ForwardDifference",
    "MeZO",
    "Mezo",
    "RandomBlock",
    "RandomDirections",
    "Spsa",
    "mezo_gradient",
]

_HOMES = {
    "CentralDifference": "central_difference",
    "ComplexStep": "complex_step",
    "ForwardDifference": "forward_difference",
    "MeZO": "torch_mezo",
    "Mezo": "mezo",
    "RandomBlock": "random_block",
    "RandomDirections": "random_directions",
    "Spsa": "spsa",
    "mezo_gradient": "torch_mezo",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

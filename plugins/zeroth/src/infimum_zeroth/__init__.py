"""Derivatives from values: classical zeroth-order oracles."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_zeroth.forward_difference import ForwardDifference

__all__ = ["ForwardDifference"]

_HOMES = {
    "ForwardDifference": "forward_difference",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

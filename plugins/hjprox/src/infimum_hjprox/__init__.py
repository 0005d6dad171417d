"""Proximal operators from function values alone: Hamilton–Jacobi sampling (HJ-Prox)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_hjprox.estimate import Estimate, hj_prox
    from infimum_hjprox.functions import Separable
    from infimum_hjprox.limits import l1_limit, nonnegative_limit
    from infimum_hjprox.oracle import HJProx
    from infimum_hjprox.rules import NoiseFloor
    from infimum_hjprox.sampling import ProxSamplingError
    from infimum_hjprox.schedules import EssAdaptive, Geometric, PowerLaw

__all__ = [
    "EssAdaptive",
    "Estimate",
    "Geometric",
    "HJProx",
    "NoiseFloor",
    "PowerLaw",
    "ProxSamplingError",
    "Separable",
    "hj_prox",
    "l1_limit",
    "nonnegative_limit",
]

_HOMES = {
    "EssAdaptive": "schedules",
    "Estimate": "estimate",
    "Geometric": "schedules",
    "HJProx": "oracle",
    "NoiseFloor": "rules",
    "PowerLaw": "schedules",
    "ProxSamplingError": "sampling",
    "Separable": "functions",
    "hj_prox": "estimate",
    "l1_limit": "limits",
    "nonnegative_limit": "limits",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

"""Cost-aware Bayesian optimization: which trial is worth its cost, and when none is any more."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_costbo.acquisition import log_ei, log_ei_gradient, log_ei_per_cost, pbgi, pbgi_gradient
    from infimum_costbo.normal import inverse_log_h, log_h
    from infimum_costbo.sampler import CostAwareGPSampler
    from infimum_costbo.stopper import CostAwareStopper

__all__ = [
    "CostAwareGPSampler",
    "CostAwareStopper",
    "inverse_log_h",
    "log_ei",
    "log_ei_gradient",
    "log_ei_per_cost",
    "log_h",
    "pbgi",
    "pbgi_gradient",
]

_HOMES = {
    "CostAwareGPSampler": "sampler",
    "CostAwareStopper": "stopper",
    "inverse_log_h": "normal",
    "log_ei": "acquisition",
    "log_ei_gradient": "acquisition",
    "log_ei_per_cost": "acquisition",
    "log_h": "normal",
    "pbgi": "acquisition",
    "pbgi_gradient": "acquisition",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

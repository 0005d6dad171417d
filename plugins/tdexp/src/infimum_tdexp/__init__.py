"""Policy evaluation by temporal differences, with step sizes that need no knowledge of the chain."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_tdexp.environment import Environment, from_gymnasium, record
    from infimum_tdexp.estimator import TDPolicyEvaluator
    from infimum_tdexp.generators import baird, boyan_chain, garnet, random_walk, refresh_chain
    from infimum_tdexp.grids import Grid, grid
    from infimum_tdexp.lstd import LSTD
    from infimum_tdexp.model import MRP
    from infimum_tdexp.problem import PolicyEvaluation
    from infimum_tdexp.recorded import Stream
    from infimum_tdexp.schedules import Doubling, Exponential, Theory
    from infimum_tdexp.td import TD0

__all__ = [
    "LSTD",
    "MRP",
    "TD0",
    "Doubling",
    "Environment",
    "Exponential",
    "Grid",
    "PolicyEvaluation",
    "Stream",
    "TDPolicyEvaluator",
    "Theory",
    "baird",
    "boyan_chain",
    "from_gymnasium",
    "garnet",
    "grid",
    "random_walk",
    "record",
    "refresh_chain",
]

_HOMES = {
    "LSTD": "lstd",
    "MRP": "model",
    "TD0": "td",
    "Doubling": "schedules",
    "Environment": "environment",
    "Exponential": "schedules",
    "Grid": "grids",
    "PolicyEvaluation": "problem",
    "Stream": "recorded",
    "TDPolicyEvaluator": "estimator",
    "Theory": "schedules",
    "baird": "generators",
    "boyan_chain": "generators",
    "from_gymnasium": "environment",
    "garnet": "generators",
    "grid": "grids",
    "random_walk": "generators",
    "record": "environment",
    "refresh_chain": "generators",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if name == "TDPolicyEvaluator" and (error.name or "").partition(".")[0] == "sklearn":
            raise ImportError(
                "infimum_tdexp.TDPolicyEvaluator needs scikit-learn, which is not installed: "
                "pip install 'infimum-tdexp[sklearn]'"
            ) from error
        raise

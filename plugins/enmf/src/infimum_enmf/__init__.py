"""Nonnegative matrix factorization from outside: SVD, rotation, entry, descent, with a lower bound on the error."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_enmf.diagnostics import Matching, kkt_residual, match_factors
    from infimum_enmf.estimator import ExteriorNMF
    from infimum_enmf.peers import SklearnNMF
    from infimum_enmf.pictures import save_parts
    from infimum_enmf.problem import NMF
    from infimum_enmf.solver import HALS, Exterior
    from infimum_enmf.stages import exterior_start

__all__ = [
    "HALS",
    "NMF",
    "Exterior",
    "ExteriorNMF",
    "Matching",
    "SklearnNMF",
    "exterior_start",
    "kkt_residual",
    "match_factors",
    "save_parts",
]

_HOMES = {
    "HALS": "solver",
    "NMF": "problem",
    "Exterior": "solver",
    "ExteriorNMF": "estimator",
    "Matching": "diagnostics",
    "SklearnNMF": "peers",
    "exterior_start": "stages",
    "kkt_residual": "diagnostics",
    "match_factors": "diagnostics",
    "save_parts": "pictures",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == "sklearn":
            raise ImportError(
                f"infimum_enmf.{name} needs scikit-learn, which is not installed: pip install 'infimum-enmf[sklearn]'"
            ) from error
        raise

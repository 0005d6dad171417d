"""Optimization under orthogonality constraints that hold at all times."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_pogo.geometry import determinant_signs, gaps, polar, relative_gradient
    from infimum_pogo.landing import best_lambda
    from infimum_pogo.minimize import minimize_stiefel
    from infimum_pogo.optimizer import POGO, conv_rows
    from infimum_pogo.rival_optimizers import Landing, RiemannianSGD
    from infimum_pogo.stiefel import Stiefel

__all__ = [
    "POGO",
    "Landing",
    "RiemannianSGD",
    "Stiefel",
    "best_lambda",
    "conv_rows",
    "determinant_signs",
    "gaps",
    "minimize_stiefel",
    "polar",
    "relative_gradient",
]

_HOMES = {
    "POGO": "optimizer",
    "Landing": "rival_optimizers",
    "RiemannianSGD": "rival_optimizers",
    "Stiefel": "stiefel",
    "best_lambda": "landing",
    "conv_rows": "optimizer",
    "determinant_signs": "geometry",
    "gaps": "geometry",
    "minimize_stiefel": "minimize",
    "polar": "geometry",
    "relative_gradient": "geometry",
}
_TORCH = ("POGO", "Landing", "RiemannianSGD", "conv_rows")


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if name in _TORCH and error.name == "torch":
            raise ImportError(
                f"infimum_pogo.{name} needs PyTorch, which is not installed: pip install 'infimum-pogo[torch]'"
            ) from error
        raise

"""Problem instances on real data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_problems.classification import sparse_logistic
    from infimum_problems.groups import OverlappingGroupNorm, overlapping_group_lasso
    from infimum_problems.regression import lasso

__all__ = ["OverlappingGroupNorm", "lasso", "overlapping_group_lasso", "sparse_logistic"]

_HOMES = {
    "OverlappingGroupNorm": "groups",
    "lasso": "regression",
    "overlapping_group_lasso": "groups",
    "sparse_logistic": "classification",
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

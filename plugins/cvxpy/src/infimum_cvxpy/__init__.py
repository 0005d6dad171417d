"""CVXPY for infimum: problems from it, a proximal oracle, its solvers, and the way back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_cvxpy.problem import from_cvxpy
    from infimum_cvxpy.prox import Prox
    from infimum_cvxpy.solve import Solve, reference
    from infimum_cvxpy.terms import CvxFunction, CvxSet
    from infimum_cvxpy.translate import to_cvxpy

__all__ = ["CvxFunction", "CvxSet", "Prox", "Solve", "from_cvxpy", "reference", "to_cvxpy"]

_HOMES = {
    "problem": ("from_cvxpy",),
    "prox": ("Prox",),
    "solve": ("Solve", "reference"),
    "terms": ("CvxFunction", "CvxSet"),
    "translate": ("to_cvxpy",),
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

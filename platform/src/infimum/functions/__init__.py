"""Functions with capabilities, closed forms, linear maps and blocks."""

from __future__ import annotations

from infimum.functions.base import Function, Zero
from infimum.functions.losses import LeastSquares, Logistic
from infimum.functions.maps import BlockMap, LinearMap, Map, ScaledIdentity
from infimum.functions.penalties import L1, L2, SquaredL2

__all__ = [
    "L1",
    "L2",
    "BlockMap",
    "Function",
    "LeastSquares",
    "LinearMap",
    "Logistic",
    "Map",
    "ScaledIdentity",
    "SquaredL2",
    "Zero",
]

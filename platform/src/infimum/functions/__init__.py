"""Functions with capabilities, closed forms, linear maps and blocks."""

from __future__ import annotations

from infimum.functions.base import Function, Zero
from infimum.functions.entropies import KL, Entropy
from infimum.functions.linear import Linear, Residuals
from infimum.functions.losses import Hinge, LeastSquares, Logistic
from infimum.functions.maps import BlockMap, LinearMap, Map, ScaledIdentity
from infimum.functions.norms import L21, GroupLasso, Linf, NuclearNorm
from infimum.functions.operators import finite_difference
from infimum.functions.penalties import L1, L2, ElasticNet, Huber, SquaredL2
from infimum.functions.quadratic import Quadratic
from infimum.functions.total_variation import TV1D, total_variation

__all__ = [
    "KL",
    "L1",
    "L2",
    "L21",
    "TV1D",
    "BlockMap",
    "ElasticNet",
    "Entropy",
    "Function",
    "GroupLasso",
    "Hinge",
    "Huber",
    "LeastSquares",
    "Linear",
    "LinearMap",
    "Linf",
    "Logistic",
    "Map",
    "NuclearNorm",
    "Quadratic",
    "Residuals",
    "ScaledIdentity",
    "SquaredL2",
    "Zero",
    "finite_difference",
    "total_variation",
]

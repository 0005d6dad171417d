"""Sets of points: the contract and closed forms."""

from __future__ import annotations

from infimum.constraints.affine import Affine
from infimum.constraints.balls import L1Ball, L2Ball, LinfBall, Simplex
from infimum.constraints.base import Constraint
from infimum.constraints.cones import PSD, SecondOrderCone
from infimum.constraints.linear import LinearConstraint
from infimum.constraints.nonlinear import NonlinearConstraint
from infimum.constraints.sets import Box, Nonnegative

__all__ = [
    "PSD",
    "Affine",
    "Box",
    "Constraint",
    "L1Ball",
    "L2Ball",
    "LinearConstraint",
    "LinfBall",
    "NonlinearConstraint",
    "Nonnegative",
    "SecondOrderCone",
    "Simplex",
]

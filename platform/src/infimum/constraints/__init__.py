"""Sets of points: the contract and closed forms."""

from __future__ import annotations

from infimum.constraints.base import Constraint
from infimum.constraints.sets import Box, Nonnegative

__all__ = ["Box", "Constraint", "Nonnegative"]

"""Problems: the contract of families, and the host's own family `Composite`."""

from __future__ import annotations

from infimum.problem.base import START_WORDS, Cadence, PointMetric, Problem, Sense, Term, start_by
from infimum.problem.composite import Composite, free_name

__all__ = ["START_WORDS", "Cadence", "Composite", "PointMetric", "Problem", "Sense", "Term", "free_name", "start_by"]

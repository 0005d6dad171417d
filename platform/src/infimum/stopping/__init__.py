"""Stopping rules: what ends a run, as objects, as text and as plain data.

>>> from infimum.stopping import max_iter, grad_norm, parse
>>> rule = max_iter(100) | grad_norm(1e-6)
>>> rule == parse("max_iter(100) | grad_norm(1e-6)")
True
"""

from __future__ import annotations

from infimum.stopping.base import UNKNOWN, Calls, NoCalls, Progress, Reason, StoppingRule, Tracker, Unknown
from infimum.stopping.combine import AllOf, AnyOf, Not, require_positive, unconditional_limit
from infimum.stopping.grammar import GrammarError, parse
from infimum.stopping.mapping import MappingError, from_mapping
from infimum.stopping.rules import (
    BUILT_IN,
    AbsChange,
    Feasibility,
    Gap,
    GradNorm,
    MaxCalls,
    MaxIter,
    MaxSolverTime,
    MaxTime,
    RelChange,
    Residual,
    Stall,
    Target,
    abs_change,
    feasibility,
    gap,
    grad_norm,
    max_calls,
    max_iter,
    max_solver_time,
    max_time,
    rel_change,
    residual,
    stall,
    target,
)

__all__ = [
    "BUILT_IN",
    "UNKNOWN",
    "AbsChange",
    "AllOf",
    "AnyOf",
    "Calls",
    "Feasibility",
    "Gap",
    "GradNorm",
    "GrammarError",
    "MappingError",
    "MaxCalls",
    "MaxIter",
    "MaxSolverTime",
    "MaxTime",
    "NoCalls",
    "Not",
    "Progress",
    "Reason",
    "RelChange",
    "Residual",
    "Stall",
    "StoppingRule",
    "Target",
    "Tracker",
    "Unknown",
    "abs_change",
    "feasibility",
    "from_mapping",
    "gap",
    "grad_norm",
    "max_calls",
    "max_iter",
    "max_solver_time",
    "max_time",
    "parse",
    "rel_change",
    "require_positive",
    "residual",
    "stall",
    "target",
    "unconditional_limit",
]

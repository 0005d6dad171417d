"""The built-in stopping rules. Patience counts iterations, not checks; NaN never counts as met.

Each rule has its class name and, for reading like the text form, its grammar name: `max_iter(1000) | grad_norm(1e-6)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from infimum.status import Status
from infimum.stopping.base import StoppingRule, Tracker
from infimum.stopping.options import COUNT, IDENTIFIER, NUMBER, POSITIVE_COUNT, TOLERANCE
from infimum.stopping.trackers import (
    CallsTracker,
    IterationTracker,
    SolverTimeTracker,
    StallTracker,
    TargetTracker,
    ThresholdTracker,
    TimeTracker,
    WindowTracker,
)


@dataclass(frozen=True, repr=False)
class MaxIter(StoppingRule):
    """Stop after `n` iterations; status `limit`.

    Parameters
    ----------
    n : int
        Number of iterations, 0 or more; `1e4` is accepted.
    """

    n: int = field(metadata=COUNT)

    status = Status.limit
    limit = True

    def start(self) -> Tracker:
        return IterationTracker(self)


@dataclass(frozen=True, repr=False)
class MaxTime(StoppingRule):
    """Stop after `seconds` of wall clock, summed over resumed pieces of the run; status `limit`.

    Parameters
    ----------
    seconds : float
        Seconds, 0 or more. Tested between steps, so a run ends with the step in which the time is up.
    """

    seconds: float = field(metadata=TOLERANCE)

    status = Status.limit
    limit = True

    def start(self) -> Tracker:
        return TimeTracker(self)


@dataclass(frozen=True, repr=False)
class MaxSolverTime(MaxTime):
    """Stop after `seconds` of wall clock without evaluations for the record and observers; status `limit`.

    It makes runs that are watched at different cost comparable: the time is that of the column `time` of the trace.

    Parameters
    ----------
    seconds : float
        Seconds, 0 or more. Tested between steps.
    """

    def start(self) -> Tracker:
        return SolverTimeTracker(self)


@dataclass(frozen=True, repr=False)
class MaxCalls(StoppingRule):
    """Stop after `n` evaluations of a capability of the user's functions; status `limit`.

    Parameters
    ----------
    n : int
        Number of evaluations in points (a batch of m counts m), 0 or more. Tested between steps; the reason says by how
        many the last step went over.
    of : str, default "value"
        The capability that is counted, summed over the functions.
    """

    n: int = field(metadata=COUNT)
    of: str = field(default="value", metadata=IDENTIFIER)

    status = Status.limit
    limit = True

    def start(self) -> Tracker:
        return CallsTracker(self)


@dataclass(frozen=True, repr=False)
class Target(StoppingRule):
    """Stop when the value is as good as `value`: at most it, or at least it when maximizing; `target_reached`.

    Parameters
    ----------
    value : float
        The value to reach, in the user's sense.
    """

    value: float = field(metadata=NUMBER)

    needs = ("value",)
    status = Status.target_reached

    def start(self) -> Tracker:
        return TargetTracker(self)


@dataclass(frozen=True, repr=False)
class _Threshold(StoppingRule):
    tol: float = field(metadata=TOLERANCE)

    def start(self) -> Tracker:
        return ThresholdTracker(self, self.needs[0], self.tol)


@dataclass(frozen=True, repr=False)
class GradNorm(_Threshold):
    """Stop when the norm of the gradient is at most `tol`; status `converged`.

    Parameters
    ----------
    tol : float
        Tolerance, 0 or more.
    """

    needs = ("grad_norm",)
    status = Status.converged


@dataclass(frozen=True, repr=False)
class Residual(_Threshold):
    """Stop when the solver's optimality residual is at most `tol`; status `converged`.

    Parameters
    ----------
    tol : float
        Tolerance, 0 or more.
    """

    needs = ("residual",)
    status = Status.converged


@dataclass(frozen=True, repr=False)
class Gap(_Threshold):
    """Stop when the gap (to a bound or to a known optimal value) is at most `tol`; status `converged`.

    Parameters
    ----------
    tol : float
        Tolerance, 0 or more.
    """

    needs = ("gap",)
    status = Status.converged


@dataclass(frozen=True, repr=False)
class Feasibility(_Threshold):
    """Stop when the violation of the constraints is at most `tol`; status `target_reached`.

    Parameters
    ----------
    tol : float
        Tolerance, 0 or more.
    """

    needs = ("violation",)
    status = Status.target_reached


@dataclass(frozen=True, repr=False)
class _Window(StoppingRule):
    tol: float = field(metadata=TOLERANCE)
    patience: int = field(default=1, metadata=POSITIVE_COUNT)

    status = Status.stalled

    def start(self) -> Tracker:
        return WindowTracker(self, self.needs[0], self.tol, self.patience)


@dataclass(frozen=True, repr=False)
class RelChange(_Window):
    """Stop when the relative change of the iterate stays at most `tol`; status `stalled`.

    Parameters
    ----------
    tol : float
        Tolerance, 0 or more.
    patience : int, default 1
        Number of iterations in a row for which it must hold, 1 or more.
    """

    needs = ("rel_change",)


@dataclass(frozen=True, repr=False)
class AbsChange(_Window):
    """Stop when the change of the iterate stays at most `tol`; status `stalled`.

    Parameters
    ----------
    tol : float
        Tolerance, 0 or more.
    patience : int, default 1
        Number of iterations in a row for which it must hold, 1 or more.
    """

    needs = ("abs_change",)


@dataclass(frozen=True, repr=False)
class Stall(StoppingRule):
    """Stop when the value has not improved by more than `min_delta` over `patience` iterations; status `stalled`.

    Parameters
    ----------
    patience : int
        Number of iterations without improvement, 1 or more.
    min_delta : float, default 0.0
        What an improvement must exceed to count, 0 or more, in units of the value.
    """

    patience: int = field(metadata=POSITIVE_COUNT)
    min_delta: float = field(default=0.0, metadata=TOLERANCE)

    needs = ("value",)
    status = Status.stalled

    def start(self) -> Tracker:
        return StallTracker(self)


BUILT_IN: Final[Mapping[str, type[StoppingRule]]] = MappingProxyType(
    {
        rule.grammar_name(): rule
        for rule in (
            MaxIter,
            MaxTime,
            MaxSolverTime,
            MaxCalls,
            Target,
            GradNorm,
            Residual,
            RelChange,
            AbsChange,
            Gap,
            Feasibility,
            Stall,
        )
    }
)
"""The built-in rules by grammar name."""

max_iter = MaxIter
max_time = MaxTime
max_solver_time = MaxSolverTime
max_calls = MaxCalls
target = Target
grad_norm = GradNorm
residual = Residual
rel_change = RelChange
abs_change = AbsChange
gap = Gap
feasibility = Feasibility
stall = Stall

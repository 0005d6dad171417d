"""The best point, and the guard against what is not finite or runs away."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from infimum.errors import InputError
from infimum.run.stop import Stop
from infimum.status import Status
from infimum.trace import NAN, number, scalars

DIVERGENCE = 1e15
"""A run has diverged when ||x|| passes this times max(1, ||x0||), or the objective, in its better direction, this
times max(1, |f(x0)|)."""


FEASIBILITY = 1e-6
"""Violation up to which a point counts as feasible: a usual tolerance, which iterative methods can reach."""


@dataclass(slots=True)
class Best:
    """The best point so far, with the check that it belongs to."""

    point: Any = None
    value: float = math.inf
    """In the internal sense: smaller is better."""
    violation: float = math.inf
    iteration: int = -1
    time: float = NAN
    metrics: Mapping[str, Any] = field(default_factory=dict)


class Keeper:
    """Looks at every check's point and merit.

    Parameters
    ----------
    merit : str, optional
        Metric that ranks points; without it there is no best point.
    maximize : bool, default False
    constrained : bool, default False
        Whether points are ranked by the metric `violation` first; a check without it ranks nothing then.
    square, size : callable, optional
        Cheap sum of squares of a point, and its exact norm: what is not below a bound by the first is confirmed by
        the second.
    copy : callable, optional
        Copies a point before it is kept; None where points are never changed in place.
    feasibility_tol : float, default 1e-6
        Violation up to which a point counts as feasible.
    divergence : float, default 1e15

    Raises
    ------
    InputError
        For a tolerance or a bound that is no number >= 0.
    """

    def __init__(
        self,
        merit: str | None = None,
        *,
        maximize: bool = False,
        constrained: bool = False,
        square: Callable[[Any], Any] | None = None,
        size: Callable[[Any], float | None] | None = None,
        copy: Callable[[Any], Any] | None = None,
        feasibility_tol: float = FEASIBILITY,
        divergence: float = DIVERGENCE,
    ) -> None:
        for name, given in (("feasibility_tol", feasibility_tol), ("divergence", divergence)):
            if not isinstance(given, Real) or isinstance(given, bool) or not given >= 0:
                raise InputError(f"{name}={given!r}: expected a number >= 0")
        self.merit, self.maximize = merit, maximize
        self.square, self.size, self.copy = square, size, copy
        self.feasibility_tol, self.divergence = feasibility_tol, divergence
        self.best = Best()
        self.broken = False
        """Whether a point or its merit was not finite."""
        self.constrained = constrained
        self.turned = -1
        """Iteration at which points last became feasible or ceased to be."""
        self._feasible: bool | None = None
        self._bound = -1.0
        """Square of `_limit`, above which a point is looked at again; negative before the first check."""
        self._limit = math.inf
        """Norm above which a point has diverged."""
        self._floor = math.inf
        """Value below which the objective is looked at again; inf before the first check."""

    def look(self, iteration: int, time: float, metrics: Mapping[str, Any], point: Any) -> Stop | None:
        """Remember the point if it is the best; a stop if something is not finite or has diverged."""
        # `not a < b` rather than `a >= b`: NaN must be looked at again.
        if point is not None and self.square is not None and not self.square(point) < self._bound:
            stop = self._size(iteration, point)
            if stop is not None:
                return stop
        if self.merit is None or (value := metrics.get(self.merit)) is None:
            return None
        if self.maximize:
            value = -value
        if not value > self._floor:
            stop = self._value(iteration, float(value))
            if stop is not None:
                return stop
        best = self.best
        violation: Any = 0.0
        if self.constrained:
            violation = metrics.get("violation")
            if violation is None:
                return None
            if violation <= self.feasibility_tol:
                violation = 0.0
            elif violation != violation:
                return self._break(f"violation is NaN at iteration {iteration}")
            if (violation == 0.0) is not self._feasible:
                self._feasible, self.turned = violation == 0.0, iteration
            better = violation < best.violation or (value < best.value and violation == best.violation)
        else:
            better = value < best.value or best.iteration < 0
        if better:
            best.point = point if self.copy is None or point is None else self.copy(point)
            best.value, best.violation = value, violation
            best.iteration, best.time, best.metrics = iteration, time, metrics
        return None

    def _break(self, message: str) -> Stop:
        self.broken = True
        return Stop(Status.nonfinite, message)

    def _size(self, iteration: int, point: Any) -> Stop | None:
        size = self.size(point) if self.size is not None else None
        if size is None:
            return None
        if not size < math.inf:
            kind = "NaN" if size != size else "inf"
            return self._break(f"the iterate holds {kind} at iteration {iteration}")
        if self._bound < 0:
            self._limit = self.divergence * max(1.0, size)
            self._bound = self._limit * self._limit
        elif size > self._limit:
            return Stop(
                Status.diverged, f"||x|| = {size:.3g} passed the bound {self._limit:.3g} at iteration {iteration}"
            )
        return None

    def _value(self, iteration: int, value: float) -> Stop | None:
        if value != value:
            return self._break(f"{self.merit} is NaN at iteration {iteration}")
        if self._floor == math.inf:
            if value < math.inf:
                self._floor = -self.divergence * max(1.0, abs(value))
        elif value < self._floor:
            sign = -1.0 if self.maximize else 1.0
            shown, bound = sign * value, sign * self._floor
            return Stop(
                Status.diverged, f"{self.merit} = {shown:.3g} passed the bound {bound:.3g} at iteration {iteration}"
            )
        return None

    def state_dict(self) -> dict[str, Any]:
        """Plain data, without the point itself."""
        best = self.best
        return {
            "value": number(best.value),
            "violation": number(best.violation),
            "iteration": best.iteration,
            "time": best.time,
            "metrics": scalars(best.metrics),
            "bound": self._bound,
            "limit": self._limit,
            "floor": self._floor,
            "feasible": self._feasible,
            "turned": self.turned,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.best = Best(None, state["value"], state["violation"], state["iteration"], state["time"], state["metrics"])
        self._bound, self._limit, self._floor = state["bound"], state["limit"], state["floor"]
        self._feasible, self.turned = state["feasible"], int(state["turned"])

"""What the traces of members say: best value so far against a cost, first hits of a level, bands over repetitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.errors import InputError
from infimum.many.members import Member

FEASIBILITY = 1e-6
"""Violation up to which a point counts, as in a run."""
AXES = {"iterations": "iteration", "seconds": "time"}
"""Costs that are no capability, with their columns of the trace."""

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Curve:
    """One member: cost, and the best value that it had by then.

    Attributes
    ----------
    x, best : ndarray, shape (rows,)
        `x` does not fall. `best` is NaN until a feasible value was recorded.
    first : float
        The first recorded feasible value; NaN without one.
    """

    x: Array
    best: Array
    first: float

    def reach(self, level: float, *, maximize: bool) -> float:
        """The cost at which a level was reached; inf where it never was."""
        with np.errstate(invalid="ignore"):
            there = self.best >= level if maximize else self.best <= level
        return float(self.x[int(np.argmax(there))]) if there.any() else math.inf

    def at(self, grid: Array, column: Array | None = None) -> Array:
        """Values on a grid of costs: the last one not beyond each; NaN before the first.

        After its end a run keeps its last value.
        """
        values = self.best if column is None else column
        place = np.searchsorted(self.x, grid, side="right") - 1
        return np.where(place >= 0, values[np.maximum(place, 0)], np.nan) if len(values) else np.full(len(grid), np.nan)


def axis_column(axis: str) -> str:
    """The trace's column of a cost: iterations, seconds, or a capability such as gradient."""
    return AXES.get(axis, f"calls.{axis}")


def maximizes(member: Member) -> bool:
    """Whether larger values are better."""
    result = member.result
    return result is not None and result.details.get("sense") == "max"


def curve(member: Member, axis: str) -> Curve | None:
    """The curve of a member; None without a trace of values.

    Raises
    ------
    InputError
        If the trace does not hold this cost.
    """
    trace = member.result.trace if member.result is not None else None
    if trace is None or "value" not in trace:
        return None
    column = axis_column(axis)
    if column not in trace:
        if axis not in AXES:
            # This run has no such capability, so it spent nothing of it.
            costs = np.zeros(trace.rows)
        else:
            raise InputError(f"the trace of {member.name} has no column '{column}'")
    else:
        costs = trace[column]
    values = trace["value"].copy()
    if "violation" in trace:
        values[~(trace["violation"] <= FEASIBILITY)] = np.nan
    known = values[np.isfinite(values)]
    gather: Any = np.fmax if maximizes(member) else np.fmin
    best = gather.accumulate(values) if len(values) else values
    return Curve(rising(costs), best, float(known[0]) if len(known) else math.nan)


def rising(costs: Array) -> Array:
    """Costs without gaps: rows that do not know theirs take that of the row before."""
    return np.maximum.accumulate(np.where(np.isnan(costs), 0.0, costs)) if len(costs) else costs


@dataclass(frozen=True, eq=False)
class Band:
    """Median and quantiles of a metric over the repetitions of one method on one problem.

    Attributes
    ----------
    problem, solver : str
    x, median, low, high : ndarray, shape (points,)
    runs : int
        Members that the band is made of.
    lost : int
        Members of this method and problem that have no trace.
    """

    problem: str
    solver: str
    x: Array
    median: Array
    low: Array
    high: Array
    runs: int
    lost: int = 0


def band(members: Sequence[Member], axis: str, metric: str, quantiles: tuple[float, float], points: int) -> Band | None:
    """The band of members of one method on one problem; `metric` "value" is the best value so far."""
    found = []
    for member in members:
        one = curve(member, axis)
        trace = member.result.trace if member.result is not None else None
        if one is None or trace is None or metric not in trace:
            continue
        column = one.best if metric == "value" else _filled(trace[metric])
        found.append((one, column))
    if not found:
        return None
    grid = _grid([one.x for one, _ in found], points)
    table = np.stack([one.at(grid, column) for one, column in found])
    known = ~np.isnan(table).all(axis=0)
    low, median, high = np.full((3, len(grid)), np.nan)
    if known.any():
        low[known], median[known], high[known] = np.nanquantile(
            table[:, known], (quantiles[0], 0.5, quantiles[1]), axis=0, method="linear"
        )
    first = members[0]
    return Band(first.problem, first.solver, grid, median, low, high, len(found), len(members) - len(found))


def _filled(column: Array) -> Array:
    """A column whose gaps keep the value before."""
    place = np.maximum.accumulate(np.where(np.isnan(column), 0, np.arange(len(column))))
    filled: Array = column[place] if len(column) else column
    return filled


def _grid(costs: Sequence[Array], points: int) -> Array:
    """Costs at which something happens, thinned to at most `points`."""
    every = np.unique(np.concatenate(costs))
    if len(every) <= points:
        return every
    picked: Array = every[np.unique(np.linspace(0, len(every) - 1, points).round().astype(int))]
    return picked

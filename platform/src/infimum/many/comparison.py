"""Comparisons: several methods on the same problems at an equal budget, with targets, profiles, bands and wins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from infimum.errors import InputError, did_you_mean
from infimum.many.curves import AXES, Band, Curve, band, curve, maximizes
from infimum.many.members import Member, Runs
from infimum.many.profiles import Profile, data_profiles, performance_profiles
from infimum.vocabulary import CAPABILITIES

TARGETS = (1e-1, 1e-3, 1e-5)
"""Shares of the initial gap that must remain at most: the accuracies of Moré and Wild's tests."""
MEASURES = ("decrease", "gap", "value")
"""How a target becomes a level of the value; see `Comparison.levels`."""


@dataclass(frozen=True, eq=False)
class Hit:
    """When a member reached a target.

    Attributes
    ----------
    name, problem, solver, repetition
        Of the member.
    target : float
        As stated.
    level : float
        The value that this means on this problem.
    cost : float
        In units of the axis; inf where it was never reached.
    """

    name: str
    problem: str
    solver: str
    repetition: int
    target: float
    level: float
    cost: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Runs):
    """Runs of several methods on the same problems at an equal budget; what `infimum.compare` returns.

    Attributes
    ----------
    budget : str
        "iterations", "seconds", or the capability whose evaluations were limited.
    amount : float
        How much of it each run had.
    targets : tuple of float
        From loose to strict.
    measure : {"decrease", "gap", "value"}
        What a target means.
    references : dict
        Problem to its known best value, where one was given, or a solver to find it.
    origins : dict
        Problem to where that value is from, if a solver found it.
    """

    kind: ClassVar[str] = "compare"

    budget: str = "iterations"
    amount: float = 0.0
    targets: tuple[float, ...] = TARGETS
    measure: str = "decrease"
    references: dict[str, float] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    _curves: dict[tuple[str, str], Curve | None] = field(default_factory=dict, repr=False)

    def header(self) -> dict[str, Any]:
        more = {"budget": self.budget, "amount": self.amount, "targets": list(self.targets), "measure": self.measure}
        return super().header() | more | {"references": self.references, "origins": self.origins}

    @staticmethod
    def read(header: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that `header` wrote beside those of all runs."""
        names = ("budget", "amount", "measure", "references", "origins")
        return {name: header[name] for name in names} | {"targets": tuple(header["targets"])}

    @property
    def problems(self) -> tuple[str, ...]:
        """Labels of the problems, in their order."""
        return tuple(dict.fromkeys(member.problem for member in self))

    @property
    def solvers(self) -> tuple[str, ...]:
        """Labels of the methods, in their order."""
        return tuple(dict.fromkeys(member.solver for member in self))

    def group(self, problem: str | None = None, solver: str | None = None) -> list[Member]:
        """The members of a problem, of a method, or of both."""
        return [
            one
            for one in self
            if (problem is None or one.problem == problem) and (solver is None or one.solver == solver)
        ]

    def curve(self, member: Member, x: str | None = None) -> Curve | None:
        """Best value so far of a member against a cost (the budget's by default); None without a trace."""
        key = (member.id or member.name, self._axis(x))
        if key not in self._curves:
            self._curves[key] = curve(member, key[1])
        return self._curves[key]

    def maximizes(self, problem: str) -> bool:
        """Whether larger values are better on this problem."""
        return any(maximizes(member) for member in self.group(problem))

    def best(self, problem: str) -> tuple[float, str]:
        """The reference value of a problem, and its origin: "given", "by SOLVER", "known" (of the problem itself) or
        "best found"; NaN for none."""
        if problem in self.references:
            return self.references[problem], self.origins.get(problem, "given")
        stated = {one.result.reference for one in self.group(problem) if one.result is not None}
        (own,) = stated if len(stated) == 1 else (None,)
        if own is not None and math.isfinite(own):
            return own, "known"
        found = [one.best[-1] for member in self.group(problem) if (one := self.curve(member)) and len(one.best)]
        known = [value for value in found if math.isfinite(value)]
        if not known:
            return math.nan, "best found"
        return float(max(known) if self.maximizes(problem) else min(known)), "best found"

    def first(self, problem: str) -> float:
        """The value at the start: the median over the members; NaN without any."""
        found = [one.first for member in self.group(problem) if (one := self.curve(member)) is not None]
        known = [value for value in found if math.isfinite(value)]
        return float(np.median(known)) if known else math.nan

    def level(self, problem: str, target: float) -> float:
        """The value at which a target is reached.

        With f* the reference and f0 the value at the start: "decrease" f* + target (f0 - f*), the test of Moré and Wild
        (2009), equation (2.2); "gap" f* + target max(1, |f*|); "value" the target itself.
        """
        if self.measure == "value":
            return target
        best, _ = self.best(problem)
        if self.measure == "gap":
            return best + (-target if self.maximizes(problem) else target) * max(1.0, abs(best))
        return best + target * (self.first(problem) - best)

    def describe_targets(self) -> str:
        """In one sentence, what the targets mean and against which values."""
        means = {
            "decrease": "the share of the gap at the start that is left",
            "gap": "(f - f*) / max(1, |f*|)",
            "value": "the value itself",
        }[self.measure]
        listed = ", ".join(f"{one:g}" for one in self.targets)
        if self.measure == "value":
            return f"targets {listed}: {means}"
        from_ = "; ".join(f"{one}: {self.best(one)[0]:.10g} ({self.best(one)[1]})" for one in self.problems)
        return f"targets {listed}: {means}; f* of {from_}"

    def time_to_target(self, x: str | None = None) -> list[Hit]:
        """When each member reached each target.

        Parameters
        ----------
        x : str, optional
            "iterations", "seconds" or a capability; the budget by default. Seconds are those of the solver: evaluations
            for the record are not in them.
        """
        hits = []
        levels = {(one, target): self.level(one, target) for one in self.problems for target in self.targets}
        sense = {one: self.maximizes(one) for one in self.problems}
        for member in self:
            path = self.curve(member, x)
            for target in self.targets:
                level = levels[member.problem, target]
                cost = math.inf if path is None else path.reach(level, maximize=sense[member.problem])
                hits.append(Hit(member.name, member.problem, member.solver, member.repetition, target, level, cost))
        return hits

    def costs(self, target: float | None = None, x: str | None = None) -> dict[str, list[float]]:
        """Method to its cost on each instance (problem and repetition), inf where the target was not reached.

        With several targets and none named, each (instance, target) counts as one.
        """
        wanted = self.targets if target is None else (self._target(target),)
        table: dict[tuple[str, str, int, float], float] = {
            (hit.solver, hit.problem, hit.repetition, hit.target): hit.cost for hit in self.time_to_target(x)
        }
        cases = dict.fromkeys((one.problem, one.repetition) for one in self)
        return {
            solver: [table.get((solver, *case, one), math.inf) for one in wanted for case in cases]
            for solver in self.solvers
        }

    def performance_profile(self, target: float | None = None, x: str | None = None) -> list[Profile]:
        """Dolan and Moré's performance profiles: the share of instances within a ratio of the best method's cost.

        Parameters
        ----------
        target : float, optional
            One of `targets`; all of them together by default.
        x : str, optional
            The cost; the budget by default.
        """
        return performance_profiles(self.costs(target, x))

    def data_profile(self, target: float | None = None, x: str | None = None) -> list[Profile]:
        """Moré and Wild's data profiles: the share of instances solved within a cost.

        For the cost "value" the unit is n + 1 evaluations, one simplex gradient in n variables.
        """
        wanted = self.targets if target is None else (target,)
        cases = dict.fromkeys((one.problem, one.repetition) for one in self)
        unit = {one: self._dimension(one) + 1.0 if self._axis(x) == "value" else 1.0 for one in self.problems}
        return data_profiles(self.costs(target, x), [unit[problem] for _ in wanted for problem, _ in cases])

    def bands(
        self,
        metric: str = "value",
        x: str | None = None,
        quantiles: tuple[float, float] = (0.25, 0.75),
        points: int = 500,
    ) -> list[Band]:
        """Median and quantiles of a metric over the repetitions, for each problem and method that has any trace.

        Parameters
        ----------
        metric : str, default "value"
            A column of the traces; "value" is the best one so far among feasible points.
        x : str, optional
            "iterations", "seconds" or a capability; the budget by default.
        quantiles : tuple of float, default (0.25, 0.75)
        points : int, default 500
            At most so many points on the axis.
        """
        if not 0 <= quantiles[0] <= quantiles[1] <= 1:
            raise InputError(f"quantiles={quantiles}: expected two numbers from 0 to 1, the smaller one first")
        known, axis = self._columns, self._axis(x)
        if known and metric not in known:
            raise InputError(f"no run recorded '{metric}'; {did_you_mean(metric, known)}")
        found = []
        for problem in self.problems:
            for solver in self.solvers:
                members = self.group(problem, solver)
                one = band(members, axis, metric, quantiles, points) if members else None
                if one is not None:
                    found.append(one)
        return found

    def wins(self, target: float | None = None) -> dict[str, float]:
        """Method to the number of instances that it won.

        The winner reaches the strictest target that anybody reaches (or the one named) at the least cost; without any,
        it has the best value at the end. Those that are equal share the win.
        """
        if target is not None:
            self._target(target)
        points = dict.fromkeys(self.solvers, 0.0)
        hits = self.time_to_target()
        for case in dict.fromkeys((one.problem, one.repetition) for one in self):
            for name in (winners := self._winners(case, hits, target)):
                points[name] += 1.0 / len(winners)
        return points

    def _winners(self, case: tuple[str, int], hits: Sequence[Hit], target: float | None) -> list[str]:
        here = [hit for hit in hits if (hit.problem, hit.repetition) == case]
        order = [hit.target for hit in here]
        for wanted in [target] if target is not None else reversed(dict.fromkeys(order)):
            costs = {hit.solver: hit.cost for hit in here if hit.target == wanted}
            least = min(costs.values(), default=math.inf)
            if least < math.inf:
                return [name for name, cost in costs.items() if cost == least]
        sign = -1.0 if self.maximizes(case[0]) else 1.0
        last = {}
        for member in self.group(case[0]):
            path = self.curve(member) if member.repetition == case[1] else None
            if path is not None and len(path.best) and math.isfinite(path.best[-1]):
                last[member.solver] = sign * path.best[-1]
        least = min(last.values(), default=math.nan)
        return [name for name, value in last.items() if value == least]

    def summary(self) -> list[dict[str, Any]]:
        """One row for each problem and method: runs, lost ones, statuses, median value and gap, costs, wins."""
        hits, wins = self.time_to_target(), self.wins()
        return [
            self._summary(problem, solver, members, hits, wins)
            for problem in self.problems
            for solver in self.solvers
            if (members := self.group(problem, solver))
        ]

    def _summary(
        self, problem: str, solver: str, members: Sequence[Member], hits: Sequence[Hit], wins: Mapping[str, float]
    ) -> dict[str, Any]:
        ends = [one.best[-1] for member in members if (one := self.curve(member)) is not None and len(one.best)]
        known = [value for value in ends if math.isfinite(value)]
        best, _ = self.best(problem)
        value = float(np.median(known)) if known else None
        row: dict[str, Any] = {"problem": problem, "solver": solver, "runs": len(members)}
        row["lost"] = sum(member.lost for member in members)
        row["status"] = ", ".join(
            f"{sum(one.status == status for one in members)} {status}" if len(members) > 1 else status
            for status in dict.fromkeys(member.status for member in members)
        )
        row["value"] = value
        row["gap"] = None if value is None else abs(value - best) / max(1.0, abs(best))
        row["iterations"] = _median([m.result.iterations for m in members if m.result is not None])
        row["seconds"] = _median([member.seconds for member in members if member.result is not None])
        for target in self.targets:
            costs = [hit.cost for hit in hits if (hit.problem, hit.solver, hit.target) == (problem, solver, target)]
            row[f"to {target:g}"] = float(np.median(costs)) if costs else math.inf
        row["wins"] = wins[solver]
        row["error"] = next((member.error for member in members if member.error), None)
        return row

    def table(self, form: str = "text") -> str:
        """The summary as a table: medians over the repetitions; `to T` is the budget spent until target T.

        Parameters
        ----------
        form : {"text", "markdown", "html"}
        """
        from infimum.many.tables import render, summary_table

        return render(*summary_table(self.summary()), form)

    def __str__(self) -> str:
        said = f"equal budget: {self.amount:g} {self.unit()}; {self.describe_targets()}"
        return f"{self!r}\n{said}\n{self.table()}"

    def unit(self) -> str:
        """The budget in words."""
        return self.budget if self.budget in ("iterations", "seconds") else f"evaluations of {self.budget}"

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        """Columns of the traces; none where no run has a trace."""
        traces = [one.result.trace for one in self if one.result is not None and one.result.trace is not None]
        return tuple(dict.fromkeys(name for trace in traces for name in trace))

    def _axis(self, x: str | None) -> str:
        """A cost by name, the budget by default; a capability that a run makes no use of costs it nothing."""
        if x is None or x in AXES or x in CAPABILITIES or not self._columns:
            return x or self.budget
        counted = [name.removeprefix("calls.") for name in self._columns if name.startswith("calls.")]
        if x not in counted:
            raise InputError(f"no run counted '{x}'; {did_you_mean(x, [*AXES, *counted, *CAPABILITIES])}")
        return x

    def _target(self, target: float) -> float:
        if target not in self.targets:
            listed = [f"{one:g}" for one in self.targets]
            raise InputError(f"no target {target:g} was compared; {did_you_mean(f'{target:g}', listed)}")
        return target

    def _dimension(self, problem: str) -> int:
        """Number of variables, as far as the results say."""
        for member in self.group(problem):
            x = member.result.x if member.result is not None else None
            if x is not None:
                return sum(int(np.size(one)) for one in (x.values() if isinstance(x, Mapping) else (x,)))
        return 1


def _median(numbers: Sequence[float]) -> float | None:
    return float(np.median(numbers)) if numbers else None

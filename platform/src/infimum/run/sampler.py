"""Compiles the metrics that rules and trace ask for: from the solver's state, or from points at a stated cadence."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from infimum.counters import Cell, Counters
from infimum.errors import InputError, did_you_mean
from infimum.plan.bind import Bound
from infimum.plan.plan import Plan
from infimum.problem import PointMetric
from infimum.stopping.base import StoppingRule
from infimum.vocabulary import counts_as

VALUE_EVERY = 10
"""Iterations between evaluations of the objective for the record, where the solver does not have it anyway."""

Sample = Callable[[int, Any, Any, Any], dict[str, Any]]

CHANGES = frozenset({"rel_change", "abs_change"})
"""Metrics of two consecutive points: they cost no evaluation, so they are taken at every check."""


class Sampler:
    """Makes the metrics of one check.

    Parameters
    ----------
    plan : Plan
    point_metrics : mapping of str to callable
        Those that the family computes from points.
    rule : StoppingRule
        Its metrics are taken at every check.
    bound : Bound
        What the plan was bound to: counters, and the metrics of oracles' parts.
    record : sequence of str
        Further metrics for the trace.
    value_every : int, optional
        Cadence of point metrics that cost evaluations and that no rule reads; by default that of the metric (a
        `Cadence`), else 10.
    check_every : int, default 1
        Iterations between checks: what falls due between two of them is taken at the later one.

    Raises
    ------
    InputError
        For a name in `record` that nobody supplies.
    """

    def __init__(
        self,
        plan: Plan,
        point_metrics: Mapping[str, PointMetric],
        rule: StoppingRule,
        bound: Bound,
        *,
        record: Sequence[str] = (),
        value_every: int | None = None,
        check_every: int = 1,
    ) -> None:
        solver_metrics = plan.metrics
        supplied = {*solver_metrics, *point_metrics}
        for name in record:
            if name not in supplied:
                raise InputError(f"trace: no metric '{name}'; {did_you_mean(name, supplied)}")
        merit = plan.problem.merit
        ruled = rule.metrics()
        always = [one for one in (merit, "violation", *plan.problem.recorded) if one is not None and one in supplied]
        self.names = tuple(dict.fromkeys([*always, *sorted(ruled), *record]))
        self.supplied = frozenset(supplied)
        self._point_metrics, self._bound = point_metrics, bound
        self.maximize = plan.problem.sense == "max"
        self.check_every = check_every
        self.from_state: list[tuple[str, Callable[[Any], Any]]] = []
        self.changes: list[tuple[str, PointMetric]] = []
        self.at_every: list[tuple[str, PointMetric, Cell]] = []
        self.at_cadence: list[tuple[str, PointMetric, Cell, int]] = []
        """With the iterations between two evaluations."""
        for name in self.names:
            if name in bound.metrics:
                self.from_state.append((name, _largest(bound.metrics[name])))
                continue
            if name in solver_metrics:
                get = solver_metrics[name].get
                self.from_state.append((name, _flipped(get) if self.maximize and name == merit else get))
                continue
            if name in CHANGES:
                self.changes.append((name, point_metrics[name]))
                continue
            measure, cell = point_metrics[name], bound.counters.watch("problem", name)
            own = getattr(measure, "every", None)
            if name in ruled and value_every is None and own is None:
                self.at_every.append((name, measure, cell))
            else:
                self.at_cadence.append((name, measure, cell, value_every or own or VALUE_EVERY))
        self._cheap = _display(self.from_state, self.changes)
        self.sample: Sample = self._full if self.at_every or self.at_cadence else self._cheap
        """`(iteration, state, point, previous) -> metrics` of a check."""
        self.spent = 0.0
        """Seconds spent on point metrics so far."""

    def _full(self, iteration: int, state: Any, point: Any, previous: Any) -> dict[str, Any]:
        metrics = self._cheap(iteration, state, point, previous)
        self.add(metrics, iteration, point)
        return metrics

    def value(self, merit: str | None, point: Any) -> float | None:
        """The merit at a point that is no iterate, counted as the monitor's."""
        measure = self._point_metrics.get(merit) if merit is not None else None
        if measure is None or merit is None:
            return None
        self._bound.counters.watch("problem", merit).n += 1
        return measure(point, None)

    def add(self, metrics: dict[str, Any], iteration: int, point: Any, *, full: bool = False) -> None:
        """Add what costs evaluations and is due (all of it with `full`), where it is not there yet.

        One measure under two names (a merit that is also a metric of the user's) is taken once.
        """
        taken: dict[int, float | None] = {}
        for name, measure, cell in self.at_every:
            self._measure(metrics, name, measure, cell, point, taken)
        for name, measure, cell, every in self.at_cadence:
            if full or iteration % every < self.check_every:
                self._measure(metrics, name, measure, cell, point, taken)

    def _measure(
        self,
        metrics: dict[str, Any],
        name: str,
        measure: PointMetric,
        cell: Cell,
        point: Any,
        taken: dict[int, float | None],
    ) -> None:
        if metrics.get(name) is not None:
            return
        if id(measure) not in taken:
            began = time.perf_counter()
            cell.n += 1
            taken[id(measure)] = measure(point, None)
            self.spent += time.perf_counter() - began
        metrics[name] = taken[id(measure)]

    def describe(self) -> list[str]:
        """Lines for the plan: where the values come from."""
        lines = []
        for name, _, _, every in self.at_cadence:
            lines.append(f"{name}: from the terms, every {every} iterations, counted as monitor")
        for name, _, _ in self.at_every:
            lines.append(f"{name}: from the terms, at every check (a rule reads it), counted as monitor")
        return lines


def _display(
    from_state: Sequence[tuple[str, Callable[[Any], Any]]], changes: Sequence[tuple[str, PointMetric]]
) -> Sample:
    """`(iteration, state, point, previous) -> {name: number}` as one dictionary display, which costs half of a loop."""
    names: dict[str, Any] = {}
    items = []
    for k, (name, get) in enumerate((*from_state, *changes)):
        names[f"get{k}"] = get
        items.append(f"{name!r}: get{k}({'state' if k < len(from_state) else 'point, previous'})")
    made: Sample = eval(f"lambda iteration, state, point, previous: {{{', '.join(items)}}}", names)
    return made


def _largest(calls: Sequence[Callable[[], Any]]) -> Callable[[Any], Any]:
    """A metric of oracles' parts: the largest that is known."""

    def get(state: Any) -> Any:
        return max((one for call in calls if (one := call()) is not None), default=None)

    return get


def _flipped(get: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def flipped(state: Any) -> Any:
        value = get(state)
        return None if value is None else -value

    return flipped


def counted_cells(plan: Plan, counters: Counters) -> dict[str, list[Cell]]:
    """Capabilities whose evaluations the trace counts: those that the plan can call, with their cells."""
    found: dict[str, list[Cell]] = {}
    for term, lift in plan.assignment.lifts.items():
        used = {leaf for one in lift.derivations.values() for leaf in one.leaves}
        if lift.choice is not None:
            used |= {*lift.choice.oracle.needs, *lift.choice.oracle.wants}
        for capability in sorted(used):
            cell = counters.evaluations.get((term, capability))
            for name in counts_as(capability) if cell is not None else ():
                found.setdefault(name, []).append(cell)  # type: ignore[arg-type]
    return found

"""One monitor for every loop, ours or foreign: numbers the checks, asks the rules, keeps the best, records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from operator import attrgetter
from typing import Any

from infimum.counters import Cell
from infimum.errors import InputError
from infimum.run.keeper import Keeper
from infimum.run.stop import Stop
from infimum.status import Status
from infimum.stopping.base import Calls, NoCalls, Progress, Reason, StoppingRule, Unknown
from infimum.stopping.combine import AnyOf
from infimum.stopping.grammar import parse
from infimum.stopping.rules import MaxCalls, MaxIter, MaxTime
from infimum.trace import Recorder, Trace

_COUNT = attrgetter("n")


@dataclass(slots=True)
class Observer:
    """A plain callable that is told of the progress every `every` iterations. Returning True asks for a stop."""

    call: Callable[[Progress], Any]
    every: int = 1
    name: str = "observer"

    def __post_init__(self) -> None:
        if not callable(self.call):
            raise InputError(f"{self.name}: expected a callable that takes the progress, got {self.call!r}")
        if isinstance(self.every, bool) or not isinstance(self.every, Integral) or self.every < 1:
            raise InputError(f"{self.name}: every={self.every!r}; expected an integer >= 1")


class Monitor:
    """Feed it once per iteration; it says when to stop.

    Use it alone in a loop of your own, or inside a library that only has callbacks:

    >>> from infimum import Monitor
    >>> monitor = Monitor("max_iter(100) | target(0.5)", metrics=["value"])
    >>> for value in (2.0, 1.0, 0.4):
    ...     stop = monitor.tick({"value": value})
    >>> str(stop.status)
    'target_reached'

    Parameters
    ----------
    rule : StoppingRule or str
        A rule, or its text.
    metrics : sequence of str
        What the loop will supply. A rule that reads anything else is refused here.
    calls : Calls, optional
        Evaluation counts for `max_calls`.
    maximize : bool, default False
    recorder : Recorder, optional
        Gets rows of `iteration, time, *metrics, *counted`.
    counted : mapping of str to sequence of Cell, optional
        Counts for the recorder, by capability.
    observers : sequence of Observer, optional
    keeper : Keeper, optional
        Best point, finiteness and divergence; foreign loops may leave it out.
    check_every : int, default 1
        Iterations between checks: an observer whose turn falls between two of them is told at the later one.

    Raises
    ------
    InputError
        If the rule reads a metric that is not in `metrics`.

    Notes
    -----
    `tick` is safe under threads: ticks are numbered under a lock, and after a stop it keeps returning that stop.
    """

    def __init__(
        self,
        rule: StoppingRule | str,
        metrics: Sequence[str] = (),
        *,
        calls: Calls | None = None,
        maximize: bool = False,
        recorder: Recorder | None = None,
        counted: Mapping[str, Sequence[Cell]] | None = None,
        observers: Sequence[Observer] = (),
        keeper: Keeper | None = None,
        check_every: int = 1,
    ) -> None:
        if isinstance(rule, str):
            rule = parse(rule)
        self.rule = rule
        check_metrics(rule, metrics)
        self.names = tuple(metrics)
        self.progress = Progress(iteration=-1, calls=calls or NoCalls(), maximize=maximize)
        self.tracker = rule.start()
        self.recorder, self.counted = recorder, dict(counted or {})
        self.observers, self.keeper = tuple(observers), keeper
        self.stop: Stop | None = None
        self.request: Status | None = None
        """Set from a signal handler to end the run after the present iteration."""
        self.observing = 0.0
        """Seconds spent on evaluating for the record, taken out of the column `time`."""
        self.check_every = check_every
        self._cells = tuple(tuple(cells) for cells in self.counted.values())
        alone = all(len(cells) == 1 for cells in self._cells)
        self._single = tuple(cells[0] for cells in self._cells) if alone else None
        self._checks = 0
        self._zero = time.perf_counter()
        self._paused: float | None = None
        self._lock = threading.RLock()
        self._update = self.tracker.update
        self._limits = [one.start().update for one in _leaves(rule) if isinstance(one, MaxTime | MaxCalls)]
        self._constrained = keeper is not None and keeper.constrained
        self._look = keeper.look if keeper is not None else None

    @property
    def iteration(self) -> int:
        """Number of the last check: -1 before any, 0 at the start."""
        return self.progress.iteration

    @property
    def elapsed(self) -> float:
        """Seconds of wall clock, summed over resumed pieces."""
        return time.perf_counter() - self._zero if self._paused is None else self._paused

    def restart_clock(self) -> None:
        """Go on counting from what has been counted."""
        self._zero = time.perf_counter() - (self._paused or 0.0)
        self._paused = None

    def pause_clock(self) -> None:
        """Stop counting, until `restart_clock`."""
        self._paused = self.elapsed

    def begin(self, metrics: Mapping[str, Any], point: Any = None) -> Stop | None:
        """The check at iteration 0, before any step. Loops that have no start leave it out."""
        with self._lock:
            return self.check(0, metrics, point)

    def tick(self, metrics: Mapping[str, Any], point: Any = None, advance: int = 1) -> Stop | None:
        """One check, `advance` iterations after the last one; the first tick is iteration 1.

        Parameters
        ----------
        metrics : mapping of str to number
            In the user's sense; a metric that is not known now is absent or None.
        point : object, optional
            The iterate that the metrics belong to.
        advance : int, default 1

        Returns
        -------
        Stop or None
        """
        with self._lock:
            if self.stop is not None:
                return self.stop
            before = self.progress.iteration
            if before < 0 and (unknown := set(metrics) - set(self.names)):
                raise InputError(
                    f"tick got {', '.join(sorted(map(repr, unknown)))}, which this monitor was not told of; "
                    f"it knows {', '.join(map(repr, self.names)) or 'no metric'}: name it in Monitor(rule, metrics=[…])"
                )
            return self.check(before + advance if before > 0 else advance, metrics, point)

    def poll(self) -> Stop | None:
        """Between two checks: whether time or evaluations are over, or the user asked to stop. No rule is updated."""
        with self._lock:
            if self.stop is None and self.iteration >= 0:
                self.progress.elapsed = time.perf_counter() - self._zero
                self.progress.observed = self.observing
                answers = [update(self.progress) for update in self._limits]
                reasons = [one for one in answers if isinstance(one, Reason)]
                if self.request is not None:
                    self.stop = Stop(self.request, "interrupted by the user between two evaluations")
                elif reasons:
                    self.stop = Stop(reasons[0].status, "; ".join(r.message for r in reasons), tuple(reasons))
            return self.stop

    def check(self, iteration: int, metrics: Mapping[str, Any], point: Any) -> Stop | None:
        """The check at `iteration`, without the lock: for a loop that is alone with its monitor.

        The host's cost per iteration is here and in `Keeper.look`.
        """
        progress = self.progress
        progress.iteration, progress.metrics, progress.point = iteration, metrics, point
        progress.elapsed = elapsed = time.perf_counter() - self._zero
        progress.observed = self.observing
        stop = self._look(iteration, elapsed - self.observing, metrics, point) if self._look is not None else None
        if (recorder := self.recorder) is not None:
            if self._checks == recorder.due:
                recorder.add(self._checks, self.row())
            # A row that is due may be thinned out later.
            if self._constrained and self.keeper.turned == iteration:  # type: ignore[union-attr]
                recorder.mark(self.row())
            self._checks += 1
        answer = self._update(progress)
        asked = self._tell(progress) if self.observers else False
        if stop is not None or answer or asked or self.request is not None:
            self.stop = stop = self._settle(stop, answer, asked)
        return stop

    def _settle(self, stop: Stop | None, answer: Reason | Unknown | None, asked: bool) -> Stop:
        """The first by rank of what ends the run at this check, with every rule that fired."""
        fired: tuple[Reason, ...] = ()
        found = [] if stop is None else [stop]
        if isinstance(answer, Reason):
            fired = answer.leaves()
            found.append(Stop(answer.status, answer.message))
        if asked:
            found.append(Stop(Status.interrupted, "a callback asked to stop"))
        if self.request is not None:
            found.append(Stop(self.request, "interrupted by the user; the iteration was finished"))
        first = min(found, key=lambda one: one.status.rank)
        return Stop(first.status, first.message, fired)

    def amend(self, metrics: Mapping[str, Any], point: Any = None) -> None:
        """Complete the last check with metrics that were not taken then."""
        with self._lock:
            progress = self.progress
            progress.metrics = metrics
            if self._look is not None:
                stop = self._look(progress.iteration, progress.elapsed - self.observing, metrics, point)
                if stop is not None:
                    self.overrule(stop)
            if self.recorder is not None:
                self.recorder.amend(self.row())

    def overrule(self, stop: Stop) -> None:
        """Stop for a reason found after the last check, unless one that ranks before it stands already."""
        if self.stop is None or stop.status.rank < self.stop.status.rank:
            self.stop = Stop(stop.status, stop.message, self.stop.fired if self.stop is not None else ())

    def row(self) -> list[Any]:
        """The present check as a row of the trace; None where a metric was not taken."""
        progress = self.progress
        row = [progress.iteration, progress.elapsed - self.observing, *map(progress.metrics.get, self.names)]
        if self._single is not None:
            row += map(_COUNT, self._single)
        else:
            row += [sum(map(_COUNT, cells)) for cells in self._cells]
        return row

    def trace(self) -> Trace:
        """What was recorded, with the last check and the best one in their places.

        Raises
        ------
        InputError
            If this monitor records nothing.
        """
        if self.recorder is None:
            raise InputError("this monitor records nothing: give it recorder=Recorder(columns)")
        extra = [self.row()] if self.iteration >= 0 else []
        best = self.keeper.best if self.keeper is not None else None
        if best is not None and best.iteration >= 0:
            extra.append([best.iteration, best.time, *map(best.metrics.get, self.names), *[None] * len(self.counted)])
        return self.recorder.finish(extra)

    def _tell(self, progress: Progress) -> bool:
        asked = False
        for observer in self.observers:
            if progress.iteration % observer.every < self.check_every:
                try:
                    asked = observer.call(progress) is True or asked
                except StopIteration:
                    asked = True
        return asked

    def state_dict(self) -> dict[str, Any]:
        """Plain data, taken between ticks. Kept points are dumped by the run, which knows how."""
        return {
            "iteration": self.iteration,
            "elapsed": self.elapsed,
            "observing": self.observing,
            "checks": self._checks,
            "stop": self._ended(),
            "tracker": self.tracker.state_dict(),
            "recorder": self.recorder.state_dict() if self.recorder is not None else None,
            "keeper": self.keeper.state_dict() if self.keeper is not None else None,
        }

    def _ended(self) -> dict[str, Any] | None:
        """The stop that a run taken up from here would come to again; an interrupt or a failure ends only this one."""
        stop = self.stop
        if stop is not None and stop.status in (Status.interrupted, Status.failed):
            rules = sorted(stop.fired, key=lambda one: one.status.rank)
            stop = Stop(rules[0].status, "; ".join(one.message for one in stop.fired), stop.fired) if rules else None
        return None if stop is None else stop.to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`, with the same rule, metrics and recording.

        Raises
        ------
        InputError
            If the state was recorded otherwise.
        """
        if (state["recorder"] is None) != (self.recorder is None):
            was, now = ("with", "without") if self.recorder is None else ("without", "with")
            raise InputError(f"the state is of a run {was} a trace, this one is {now}; give it the same max_rows")
        self.progress.iteration, self._checks = int(state["iteration"]), int(state["checks"])
        self._paused, self.observing = float(state["elapsed"]), float(state["observing"])
        self.stop = None if state["stop"] is None else Stop.from_dict(state["stop"])
        self.tracker.load_state_dict(state["tracker"])
        if self.recorder is not None:
            self.recorder.load_state_dict(state["recorder"])
        if self.keeper is not None:
            self.keeper.load_state_dict(state["keeper"])


def columns(metrics: Sequence[str], counted: Collection[str]) -> tuple[str, ...]:
    """Names of a trace's columns: iteration, time, the metrics, and evaluation counts as `calls.NAME`."""
    return ("iteration", "time", *metrics, *(f"calls.{name}" for name in counted))


def iteration_limit(rule: StoppingRule) -> int | None:
    """The number of iterations after which the rule surely ends a run, or None."""
    return min((one.n for one in _leaves(rule) if isinstance(one, MaxIter)), default=None)


def _leaves(rule: StoppingRule) -> Iterator[StoppingRule]:
    """The rules each of which ends a run alone."""
    if isinstance(rule, AnyOf):
        for one in rule.rules:
            yield from _leaves(one)
    else:
        yield rule


def check_metrics(rule: StoppingRule, supplied: Collection[str], who: str = "this loop") -> None:
    """Refuse a rule that reads a metric which nobody supplies."""
    missing = sorted(rule.metrics() - set(supplied))
    if missing:
        has = ", ".join(sorted(supplied)) or "no metric"
        what = "metric" if len(missing) == 1 else "metrics"
        listed = ", ".join(f"'{one}'" for one in missing)
        raise InputError(f"stopping rule {rule} reads {what} {listed}, which {who} does not supply; it supplies {has}")

"""A run: a plan, a stopping rule, a seed, and what to record. It can be advanced, dumped and taken up again."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from infimum.arrays import is_array
from infimum.counters import Counters
from infimum.errors import InputError, NonFiniteError
from infimum.exactness import Exactness
from infimum.plan.bind import Bound, streams
from infimum.plan.plan import Plan
from infimum.problem import start_by
from infimum.result import Result
from infimum.run.arguments import as_seed, require_same_kind, require_whole
from infimum.run.average import TailAverage
from infimum.run.defaults import complete, replacements
from infimum.run.ending import blame, close, failed, keep_between_checks
from infimum.run.feed import Feed
from infimum.run.keeper import DIVERGENCE, FEASIBILITY, Keeper
from infimum.run.monitor import Monitor, Observer, check_metrics, columns, iteration_limit
from infimum.run.outcome import make_result
from infimum.run.sampler import Sampler, counted_cells
from infimum.run.saver import Saver
from infimum.run.signals import Interrupts
from infimum.run.state import dump_run, load_run
from infimum.run.stop import Stop
from infimum.solver import Finished
from infimum.status import Status
from infimum.stopping.base import StoppingRule
from infimum.trace import DEFAULT_ROWS, Recorder

log = logging.getLogger("infimum")


class Run:
    """One solve, ready to start.

    Parameters
    ----------
    plan : Plan
    stopping : StoppingRule, optional
        Without one: `grad_norm(1e-6)` or `residual(1e-6)` where the solver supplies it, and `max_iter(10000)`, which
        is also added to any rule that has no limit of its own. Both are logged and stand in the result.
    x0 : object, optional
        Start in the user's form, or "zeros" or "random"; `problem.start` otherwise. Copied.
    seed : int, optional
        Drawn, logged and stored when not given.
    repetition : int, default 0
        Number of this run among those of one seed; each has random numbers of its own.
    check_every : int, default 1
        Steps between checks. More than 1 saves transfers on a device; a stop is then found up to that much later, but
        an iteration limit is met exactly. Where `advance` ends between two checks, there is one more. A solver that
        brings an `advance` of its own takes the steps between two checks in one call.
    value_every : int, optional
        Iterations between evaluations of the objective for the record where the solver does not compute it (10; at
        every check when a rule reads it).
    record : sequence of str
        Further metrics for the trace.
    max_rows : int, default 4096
        Rows that the trace keeps at most; 0 records nothing.
    observers : sequence of Observer
    feasibility_tol : float, default 1e-6
        Violation up to which a point counts as feasible.
    divergence : float, default 1e15
        The run ends as `diverged` when ||x|| passes this times max(1, ||x0||), or the objective in its better
        direction this times max(1, |f(x0)|).
    average : bool, optional
        Whether to keep the mean of the late points (`result.tail_x`, `result.tail_value`); by default where the plan
        is stochastic.
    """

    def __init__(
        self,
        plan: Plan,
        stopping: StoppingRule | None = None,
        *,
        x0: Any = None,
        seed: int | None = None,
        repetition: int = 0,
        check_every: int = 1,
        value_every: int | None = None,
        record: Sequence[str] = (),
        max_rows: int = DEFAULT_ROWS,
        observers: Sequence[Observer] = (),
        feasibility_tol: float = FEASIBILITY,
        divergence: float = DIVERGENCE,
        average: bool | None = None,
    ) -> None:
        require_whole("check_every", check_every)
        require_whole("max_rows", max_rows, least=0)
        require_whole("repetition", repetition, least=0)
        if value_every is not None:
            require_whole("value_every", value_every)
        self.plan, self.problem, self.solver = plan, plan.problem, plan.solver
        self.seed = as_seed(seed)
        self.repetition, self.check_every = repetition, check_every
        self.notes: list[str] = []
        self._stream = streams(self.seed, repetition)
        start = self.problem.start(self._stream("start")) if x0 is None else x0
        if isinstance(start, str):
            start = start_by(start, self.problem, self._stream("start"))
        self.point = self.problem.prepare(start)
        self.counters = Counters()
        self.bound = Bound(plan, self.point, self._stream, self.counters)
        self.solver.check(self.bound.parts)
        point_metrics = self.problem.metrics(self.point) if self.solver.maps_points else {}
        self.rule, note = complete(stopping, plan.metrics)
        for text in (note, *replacements(plan)):
            if text:
                self.note(text)
        check_metrics(self.rule, {*plan.metrics, *point_metrics}, plan.solver_name)
        self.sampler = Sampler(
            plan,
            point_metrics,
            self.rule,
            self.bound,
            record=(record,) if isinstance(record, str) else record,
            value_every=value_every,
            check_every=check_every,
        )
        self.keeper = self._keeper(feasibility_tol, divergence)
        self.monitor = self._monitor(observers, max_rows)
        wanted = plan.exactness is Exactness.stochastic if average is None else average
        possible = self.solver.maps_points and not self.solver.drives and is_array(self.point)
        self.tail = TailAverage() if wanted and possible else None
        self._not_started()

    def _not_started(self) -> None:
        """What a run has beside what it is made of, before its first step."""
        self.tail_value: float | None = None
        self.state: Any = None
        self.started: list[Callable[[Run], None]] = []
        self.finished: list[Callable[[Run, Result], None]] = []
        self.closing: list[Callable[[], None]] = []
        """Called when `solve` ends, by an exception too."""
        self.folder: Path | None = None
        """Folder that the run is kept in, where it is kept in one."""
        self.saver: Saver | None = None
        """Writes checkpoints while the run goes on."""
        self.ahead = 0
        """Steps that the state is ahead of the last check, in a run taken up between two checks."""
        self.error: BaseException | None = None
        self.unclosed: dict[str, Any] | None = None
        """State of an interrupted run before it was checked or evaluated where it would not have been otherwise."""
        self.metrics: Mapping[str, Any] = {}
        """Metrics of the last check."""
        self.previous: Any = None
        """Point of the last check, where a metric compares two."""
        self.last: Any = None
        """Last point that a loop of the solver's own reported."""

    def _keeper(self, feasibility_tol: float, divergence: float) -> Keeper:
        problem, supplied, points = self.problem, self.sampler.supplied, self.solver.maps_points
        return Keeper(
            problem.merit if problem.merit in supplied else None,
            maximize=self.sampler.maximize,
            constrained="violation" in supplied,
            square=problem.square if points else None,
            size=problem.size if points else None,
            copy=problem.copy if self.solver.inplace else None,
            feasibility_tol=feasibility_tol,
            divergence=divergence,
        )

    def _monitor(self, observers: Sequence[Observer], max_rows: int) -> Monitor:
        counted = counted_cells(self.plan, self.counters)
        names = self.sampler.names
        return Monitor(
            self.rule,
            names,
            calls=self.counters,
            maximize=self.sampler.maximize,
            recorder=Recorder(columns(names, tuple(counted)), max_rows) if max_rows else None,
            counted=counted,
            observers=observers,
            keeper=self.keeper,
            check_every=self.check_every,
        )

    def __repr__(self) -> str:
        where = f"iteration {self.monitor.iteration}"
        return f"Run({self.plan.solver_name} on {self.problem.describe(self.point)}, {where})"

    def describe(self) -> str:
        """The plan with the stopping rule, the seed and where the values come from."""
        lines = [str(self.plan), *(f"  {line}" for line in self.sampler.describe())]
        lines += [f"  stopping {self.rule}", *(f"  {note}" for note in self.notes), f"  seed {self.seed}"]
        return "\n".join(lines)

    def solve(self) -> Result:
        """Run until a rule fires, a limit is hit, something fails or the user interrupts.

        Returns
        -------
        Result
            Always, once iteration 0 has been reached: an exception in a later step ends the run as `failed` with
            the best point kept and the exception in `result.error`.
        """
        for tell in self.started:
            tell(self)
        self.monitor.restart_clock()
        try:
            with Interrupts(self.monitor), quiet():
                if self.solver.drives:
                    self._drive()
                else:
                    self._advance(None)
                close(self)
                if self.saver is not None:
                    self.saver.last()
        finally:
            self.monitor.pause_clock()
            for tell_end in self.closing:
                try:
                    tell_end()
                except Exception as error:
                    log.error("something that watched the run could not be closed: %s", error, exc_info=error)
        result = make_result(self)
        for finish in self.finished:
            finish(self, result)
        return result

    def advance(self, steps: int) -> Stop | None:
        """At most `steps` further iterations; then the run can be dumped, or gone on with.

        Raises
        ------
        InputError
            For a solver that brings its own loop.
        """
        require_whole("steps", steps)
        if self.solver.drives:
            raise InputError(f"{self.plan.solver_name} runs a loop of its own and cannot be advanced step by step")
        self.monitor.restart_clock()
        try:
            with quiet():
                self._advance(steps)
        finally:
            self.monitor.pause_clock()
        return self.monitor.stop

    def _advance(self, steps: int | None) -> None:
        """The loop. Everything that it needs at each iteration is looked up before it."""
        if self.state is None and self.monitor.stop is None:
            self._begin()
        monitor, sampler, parts = self.monitor, self.sampler, self.bound.parts
        step, solution, sample, check = self.solver.step, self.solver.solution, sampler.sample, monitor.check
        every, copies = self.check_every, bool(sampler.changes) and self.solver.inplace
        state, iteration, metrics = self.state, monitor.iteration + self.ahead, self.metrics
        end, first = None if steps is None else iteration + steps, iteration == 0
        stop, point, tail, saver = monitor.stop, self.previous, self.tail, self.saver
        count, clock = (math.inf, math.inf) if saver is None else saver.due()
        progress, self.ahead = monitor.progress, 0
        try:
            while stop is None and iteration != end:
                iteration += 1
                if every == 1:
                    state = step(parts, state)
                elif self.solver.advances:
                    goal = self._next_check(iteration, end)
                    state = self.solver.advance(parts, state, goal - iteration + 1)
                    iteration = goal
                else:
                    goal = self._next_check(iteration, end)
                    state = step(parts, state)
                    while iteration < goal and monitor.request is None:
                        iteration += 1
                        try:
                            state = step(parts, state)
                        except Finished:
                            goal = iteration = iteration - 1  # Checked first; the next step says it again.
                            break
                    if iteration < goal:
                        keep_between_checks(self, state, iteration)
                previous, point = point, solution(state)
                if first:
                    require_same_kind(self.plan.solver_name, self.point, point)
                    first = False
                metrics = sample(iteration, state, point, previous)
                monitor.observing = sampler.spent
                stop = check(iteration, metrics, point)
                if stop is not None and self.keeper.broken:
                    blame(self, stop)
                    break
                self.state, self.metrics = state, metrics
                if tail is not None:
                    tail.add(point)
                if copies:
                    point = self.problem.copy(point)
                self.previous = point
                if saver is not None and (iteration >= count or progress.elapsed >= clock):
                    count, clock = saver.write()
        except Exception as error:
            if metrics is progress.metrics and metrics is not self.metrics:
                # The step itself was complete; a rule or an observer failed after it.
                self.state, self.metrics, self.previous = state, metrics, point
            failed(self, error, iteration)

    def _next_check(self, iteration: int, end: int | None) -> int:
        """The next multiple of `check_every`, unless an iteration limit or `end` comes first."""
        goals = (iteration + -iteration % self.check_every, end, iteration_limit(self.rule))
        return min(one for one in goals if one is not None)

    def _begin(self) -> None:
        """`init` and the check at iteration 0."""
        try:
            state = self.solver.init(self.bound.parts, self.problem.copy(self.point), self._stream("solver"))
            point = self.solver.solution(state)
            metrics = self.sampler.sample(0, state, point, None)
            self.monitor.observing = self.sampler.spent
            stop = self.monitor.begin(metrics, point)
        except NonFiniteError as error:
            self.monitor.progress.iteration = 0
            self.monitor.stop = Stop(Status.nonfinite, f"{error}, at iteration 0 (the start)")
            return
        self.state, self.metrics = state, metrics
        if self.sampler.changes:
            self.previous = self.problem.copy(point) if self.solver.inplace else point
        if stop is not None and self.keeper.broken:
            blame(self, stop)

    def _drive(self) -> None:
        """Hand over to a loop that is not ours."""
        self.last = self.point
        try:
            rng = self._stream("solver")
            start = self.problem.copy(self.point)
            self.state = self.solver.drive(self.bound.parts, start, rng, Feed(self))
            if self.monitor.stop is None:
                self.monitor.stop = Stop(Status.stalled, "the solver's own loop ended without saying why")
        except Exception as error:
            failed(self, error, self.monitor.iteration + 1)

    @property
    def current(self) -> Any:
        """The present iterate, in the solver's form; None before the start."""
        if self.solver.drives:
            return self.last if self.state is None or self.keeper.broken else self.solver.solution(self.state)
        return None if self.state is None else self.solver.solution(self.state)

    def note(self, text: str) -> None:
        """Log a sentence and keep it for the result."""
        self.notes.append(text)
        log.info(text)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the run needs to go on, as plain data. Take it between steps.

        Raises
        ------
        InputError
            If the run has not started, or a component cannot be resumed.
        """
        return dump_run(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> Run:
        """Take up a run where `state_dict` left it; returns itself. The run must be made from the same inputs.

        Raises
        ------
        InputError
            If the state is of another format, plan, start, options, rule, seed or recording.
        """
        load_run(self, state)
        return self


def quiet() -> Any:
    """Overflow and NaN inside a run are found by the monitor, which says more than NumPy's warning."""
    return np.errstate(over="ignore", invalid="ignore")

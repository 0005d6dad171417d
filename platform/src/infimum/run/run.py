"""A run: a plan, a stopping rule, a seed, and what to record. It can be advanced, stopped, dumped and taken up again."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from infimum.checkpoint import freeze, thaw
from infimum.counters import Cell, Counters
from infimum.errors import InfimumError, InputError, NonFiniteError
from infimum.plan.bind import Bound, streams
from infimum.plan.plan import Plan
from infimum.result import Result, make_result
from infimum.run.keeper import DIVERGENCE, Keeper
from infimum.run.monitor import Monitor, Observer, check_metrics, columns
from infimum.run.sampler import Sampler
from infimum.run.signals import Interrupts
from infimum.run.stop import Stop
from infimum.status import Status
from infimum.stopping.base import StoppingRule
from infimum.stopping.combine import unconditional_limit
from infimum.stopping.rules import GradNorm, MaxIter, Residual
from infimum.trace import DEFAULT_ROWS, Recorder
from infimum.vocabulary import counts_as

log = logging.getLogger("infimum")

DEFAULT_LIMIT = 10_000
"""Iterations after which a run ends when its rule names no limit of its own."""
DEFAULT_TOLERANCE = 1e-6
"""Of the solver's own optimality measure, when no rule is given at all."""
STATE_FORMAT = 1


class Run:
    """One solve, ready to start.

    Parameters
    ----------
    plan : Plan
    stopping : StoppingRule, optional
        Without one: `grad_norm(1e-6)` or `residual(1e-6)` where the solver supplies it, and `max_iter(10000)`, which
        is also added to any rule that has no limit of its own. Both are logged and stand in the result.
    x0 : object, optional
        Start in the user's form; `problem.start` otherwise. Copied.
    seed : int, optional
        Drawn, logged and stored when not given.
    check_every : int, default 1
        Steps between checks. More than 1 saves transfers on a device; a stop is then found up to that much later.
    value_every : int, optional
        Iterations between evaluations of the objective for the record where the solver does not compute it (10; at
        every check when a rule reads it).
    record : sequence of str
        Further metrics for the trace.
    max_rows : int, default 4096
        Rows that the trace keeps at most; 0 records nothing.
    observers : sequence of Observer
    feasibility_tol : float, default 1e-8
        Violation up to which a point counts as feasible.
    divergence : float, default 1e15
        The run ends as `diverged` when ||x|| passes this times max(1, ||x0||), or the objective in its better
        direction this times max(1, |f(x0)|).
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
        feasibility_tol: float = 1e-8,
        divergence: float = DIVERGENCE,
    ) -> None:
        _positive("check_every", check_every)
        if value_every is not None:
            _positive("value_every", value_every)
        self.plan, self.problem, self.solver = plan, plan.problem, plan.solver
        self.seed = _seed(seed)
        self.repetition, self.check_every = repetition, check_every
        self.notes: list[str] = []
        self._stream = streams(self.seed, repetition)
        start = self.problem.start(self._stream("start")) if x0 is None else x0
        self.point = self.problem.prepare(start)
        self.counters = Counters()
        self.bound = Bound(plan, self.point, self._stream, self.counters)
        self.solver.check(self.bound.parts)
        point_metrics = self.problem.metrics(self.point) if self.solver.maps_points else {}
        self.rule = self._complete(stopping, {*plan.metrics, *point_metrics})
        check_metrics(self.rule, {*plan.metrics, *point_metrics}, plan.solver_name)
        self.sampler = Sampler(
            plan, point_metrics, self.rule, self.counters, record=record, value_every=value_every
        )
        counted = _counted(plan, self.counters)
        self.keeper = Keeper(
            self.problem.merit if self.problem.merit in self.sampler.supplied else None,
            maximize=self.sampler.maximize,
            square=self.problem.square if self.solver.maps_points else None,
            size=self.problem.size if self.solver.maps_points else None,
            copy=self.problem.copy if self.solver.inplace else None,
            feasibility_tol=feasibility_tol,
            divergence=divergence,
        )
        self.monitor = Monitor(
            self.rule,
            self.sampler.names,
            calls=self.counters,
            maximize=self.sampler.maximize,
            recorder=Recorder(columns(self.sampler.names, tuple(counted)), max_rows) if max_rows else None,
            counted=counted,
            observers=observers,
            keeper=self.keeper,
        )
        self.state: Any = None
        self.started: list[Callable[[Run], None]] = []
        self.finished: list[Callable[[Run, Result], None]] = []
        self.error: BaseException | None = None
        self._previous: Any = None
        self._last: Any = None
        self._metrics: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        return f"Run({self.plan.solver_name} on {self.problem.describe(self.point)}, iteration {self.monitor.iteration})"

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
        with Interrupts(self.monitor), quiet():
            if self.solver.drives:
                self._drive()
            else:
                self._advance(None)
        self._close()
        self.monitor.pause_clock()
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
        _positive("steps", steps)
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
        if self.state is None:
            self._begin()
        monitor, sampler, parts = self.monitor, self.sampler, self.bound.parts
        step, solution, sample, check = self.solver.step, self.solver.solution, sampler.sample, monitor.check
        every, needs_previous, inplace = self.check_every, bool(sampler.changes), self.solver.inplace
        state, iteration, first = self.state, monitor.iteration, monitor.iteration == 0
        end = None if steps is None else iteration + steps
        stop = monitor.stop
        point = self._previous
        try:
            while stop is None and iteration != end:
                chunk = every if end is None else min(every, end - iteration)
                state = step(parts, state)
                if chunk > 1:
                    for _ in range(chunk - 1):
                        state = step(parts, state)
                iteration += chunk
                previous, point = point, solution(state)
                metrics = sample(iteration, state, point, previous)
                monitor.observing = sampler.spent
                stop = check(iteration, metrics, point)
                if first:
                    self._same_kind(point)
                    first = False
                if stop is not None and stop.status is Status.nonfinite:
                    self._nonfinite(stop)
                    break
                self.state, self._metrics = state, metrics
                if inplace and needs_previous:
                    point = self.problem.copy(point)
                self._previous = point
        except Exception as error:
            self._failed(error)

    def _begin(self) -> None:
        """`init` and the check at iteration 0."""
        try:
            rng = self._stream("solver")
            self.state = self.solver.init(self.bound.parts, self.problem.copy(self.point), rng)
            point = self.solver.solution(self.state)
            self._metrics = self.sampler.sample(0, self.state, point, None)
        except NonFiniteError as error:
            self.monitor.progress.iteration = 0
            self.monitor.stop = Stop(Status.nonfinite, f"{error}, at iteration 0 (the start)")
            return
        if self.sampler.changes:
            self._previous = self.problem.copy(point) if self.solver.inplace else point
        stop = self.monitor.begin(self._metrics, point)
        if stop is not None and stop.status is Status.nonfinite:
            self._nonfinite(stop)

    def _drive(self) -> None:
        """Hand over to a loop that is not ours."""
        self._last = self.point
        try:
            rng = self._stream("solver")
            start = self.problem.copy(self.point)
            self.state = self.solver.drive(self.bound.parts, start, rng, Feed(self))
            if self.monitor.stop is None:
                self.monitor.stop = Stop(Status.stalled, "the solver's own loop ended without saying why")
        except Exception as error:
            self._failed(error)

    def _nonfinite(self, stop: Stop) -> None:
        culprit = self.counters.culprit()
        message = stop.message if culprit is None else f"{stop.message}: {culprit}"
        self.monitor.stop = Stop(Status.nonfinite, message, stop.fired)

    def _failed(self, error: Exception) -> None:
        """What an exception in a step means; the step is discarded, the state before it stays."""
        iteration = self.monitor.iteration
        if self.monitor.stop is not None and isinstance(error, StopIteration):
            return
        if isinstance(error, NonFiniteError):
            self.monitor.stop = Stop(Status.nonfinite, f"{error}, in iteration {iteration + 1}")
            return
        if isinstance(error, InfimumError) or iteration < 0:
            raise error
        self.error = error
        log.error("the run failed in iteration %d", iteration + 1, exc_info=error)
        self.monitor.stop = Stop(
            Status.failed, f"{type(error).__name__} in iteration {iteration + 1}: {error}"
        )

    def _close(self) -> None:
        """Metrics at cadence belong to the last point too."""
        if not self.sampler.at_cadence or self.monitor.iteration < 0 or not self.solver.maps_points:
            return
        point = self.current
        if point is None or self.monitor.stop is not None and self.monitor.stop.status is Status.nonfinite:
            return
        metrics = dict(self._metrics)
        try:
            self.sampler.add(metrics, self.monitor.iteration, point, full=True)
        except Exception as error:
            log.warning("the objective could not be evaluated at the last point: %s", error)
            return
        self._metrics = metrics
        self.monitor.amend(metrics, point)

    @property
    def current(self) -> Any:
        """The present iterate, in the solver's form; None before the start."""
        if self.solver.drives:
            return self._last if self.state is None else self.solver.solution(self.state)
        return None if self.state is None else self.solver.solution(self.state)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The metrics of the last check."""
        return self._metrics

    def _same_kind(self, point: Any) -> None:
        """Catch at the first step what would silently change shape or dtype."""
        if not hasattr(self.point, "dtype") or not hasattr(point, "dtype"):
            return
        if point.dtype != self.point.dtype or tuple(point.shape) != tuple(self.point.shape):
            raise InputError(
                f"{self.plan.solver_name} turned x0, {tuple(self.point.shape)} {self.point.dtype}, into "
                f"{tuple(point.shape)} {point.dtype} in its first step; a function of the problem returns another "
                "shape or dtype than its argument"
            )

    def _complete(self, rule: StoppingRule | None, supplied: set[str]) -> StoppingRule:
        """The user's rule, with a default where it has none and a limit where it has no limit."""
        if rule is None:
            limit: StoppingRule = MaxIter(DEFAULT_LIMIT)
            own = {"grad_norm": GradNorm, "residual": Residual}
            name = next((one for one in own if one in self.plan.metrics), None)
            rule = limit if name is None else own[name](DEFAULT_TOLERANCE) | limit
            self._note(f"no stopping rule was given: {rule}")
        elif not unconditional_limit(rule):
            rule = rule | MaxIter(DEFAULT_LIMIT)
            self._note(f"the stopping rule has no limit of its own: max_iter({DEFAULT_LIMIT}) was added")
        return rule

    def _note(self, text: str) -> None:
        self.notes.append(text)
        log.info(text)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the run needs to go on, as plain data. Take it between steps.

        Raises
        ------
        InputError
            If the run has not started, or a component cannot be resumed.
        """
        if self.plan.resume == "none" or self.solver.drives:
            raise InputError(f"{self.plan.solver_name}: this run cannot be resumed (resume = none), so it has no state")
        if self.state is None:
            raise InputError("the run has not started; call advance() or solve() first")
        dump = self.problem.dump
        best = self.keeper.best.point
        return freeze(
            {
                "format": STATE_FORMAT,
                "plan": str(self.plan),
                "rule": str(self.rule),
                "seed": self.seed,
                "repetition": self.repetition,
                "solver": self.solver.dump(self.state),
                "bound": self.bound.state_dict(),
                "counters": self.counters.state_dict(),
                "monitor": self.monitor.state_dict(),
                "best": None if best is None else dump(best),
                "previous": None if self._previous is None else dump(self._previous),
                "metrics": {k: v for k, v in self._metrics.items() if isinstance(v, int | float)},
                "spent": self.sampler.spent,
            }
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> Run:
        """Take up a run where `state_dict` left it; returns itself. The run must be made from the same inputs.

        Raises
        ------
        InputError
            If the state is of another format, plan, rule or seed.
        """
        if state.get("format") != STATE_FORMAT:
            raise InputError(f"state format {state.get('format')!r}: this version of infimum reads {STATE_FORMAT}")
        for what, mine in (("plan", str(self.plan)), ("rule", str(self.rule)), ("seed", self.seed)):
            if state[what] != mine:
                raise InputError(f"the state belongs to another {what}:\n{state[what]}\nthis run has:\n{mine}")
        tree = thaw(state)
        load = self.problem.load
        self.bound.load_state_dict(tree["bound"])
        self.counters.load_state_dict(tree["counters"])
        self.monitor.load_state_dict(tree["monitor"])
        self.keeper.best.point = None if tree["best"] is None else load(tree["best"])
        self._previous = None if tree["previous"] is None else load(tree["previous"])
        self._metrics, self.sampler.spent = tree["metrics"], tree["spent"]
        self.state = self.solver.load(tree["solver"], self.problem.copy(self.point))
        return self


class Feed:
    """The monitor as a driven loop sees it: metrics in the internal sense go in, a stop comes out."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def stop(self) -> Stop | None:
        """The stop, once there is one; it must end the loop."""
        return self._run.monitor.stop

    def tick(self, metrics: Mapping[str, Any], point: Any = None) -> Stop | None:
        """Call it once per iteration, first for the start (iteration 0).

        Parameters
        ----------
        metrics : mapping of str to number
            What the loop knows, smaller values being better; the family adds what it computes from points.
        point : object, optional
            The iterate; it is copied.

        Returns
        -------
        Stop or None
            A stop must end the loop.
        """
        run, full = self._run, dict(metrics)
        merit = run.problem.merit
        if run.sampler.maximize and merit is not None and full.get(merit) is not None:
            full[merit] = -full[merit]
        iteration = run.monitor.iteration + 1
        if point is not None:
            point = run.problem.copy(point)
            for name, change in run.sampler.changes:
                full.setdefault(name, change(point, run._previous))
            run.sampler.add(full, iteration, point)
            run._previous = run._last = point
        run._metrics = full
        run.monitor.observing = run.sampler.spent
        return run.monitor.begin(full, point) if iteration == 0 else run.monitor.tick(full, point)


    def finish(self, status: Status, message: str) -> None:
        """Say why the loop ended by itself; a stop that a rule gave before stays."""
        if self._run.monitor.stop is None:
            self._run.monitor.stop = Stop(Status(status), message)


def quiet() -> Any:
    """Overflow and NaN inside a run are found by the monitor, which says more than NumPy's warning."""
    return np.errstate(over="ignore", invalid="ignore")


def _counted(plan: Plan, counters: Counters) -> dict[str, list[Cell]]:
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


def _positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name}={value!r}: expected an integer >= 1")


def _seed(seed: int | None) -> int:
    if seed is None:
        drawn = secrets.randbits(32)
        log.info("no seed was given: drew %d", drawn)
        return drawn
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed={seed!r}: expected an integer >= 0")
    return int(seed)

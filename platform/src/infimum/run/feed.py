"""The monitor as a loop that is not ours sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from infimum.run.ending import blame
from infimum.run.stop import Stop
from infimum.status import Status

if TYPE_CHECKING:
    from infimum.run.run import Run


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
        run = self._run
        if run.monitor.stop is not None:
            return run.monitor.stop
        full = self._in_users_sense(metrics)
        iteration = run.monitor.iteration + 1
        if point is not None:
            point = run.problem.copy(point)
            for name, change in run.sampler.changes:
                full.setdefault(name, change(point, run.previous))
            run.sampler.add(full, iteration, point)
        monitor = run.monitor
        monitor.observing = run.sampler.spent
        stop = monitor.begin(full, point) if iteration == 0 else monitor.tick(full, point)
        if stop is not None and run.keeper.broken:
            blame(run, stop)
            return monitor.stop
        run.metrics = full
        if point is not None:
            run.previous = run.last = point
        return stop

    def poll(self) -> Stop | None:
        """Call it before an evaluation: a stop when time or evaluations are over, or the user asks for it."""
        return self._run.monitor.poll()

    def seen(self, metrics: Mapping[str, Any], point: Any) -> None:
        """A point evaluated in the iteration that did not end, for the best; `metrics` hold value and violation."""
        run, monitor = self._run, self._run.monitor
        if monitor.iteration >= 0:
            now = monitor.elapsed - monitor.observing
            run.keeper.look(monitor.iteration + 1, now, self._in_users_sense(metrics), run.problem.copy(point))
            run.keeper.broken = False

    def note(self, text: str) -> None:
        """A sentence for the result: what was decided for the user."""
        self._run.note(text)

    def finish(self, status: Status, message: str, metrics: Mapping[str, Any] | None = None, point: Any = None) -> None:
        """Say why the loop ended by itself; a stop that a rule gave before stays.

        `metrics` and `point`, where the loop returns another point than that of its last tick, replace those of the
        last check.
        """
        run = self._run
        if run.monitor.stop is None:
            run.monitor.stop = Stop(Status(status), message)
        if metrics is not None:
            run.metrics, run.last = self._in_users_sense(metrics), run.problem.copy(point)
            run.monitor.amend(run.metrics, run.last)

    def _in_users_sense(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        out, merit = dict(metrics), self._run.problem.merit
        if self._run.sampler.maximize and merit is not None and out.get(merit) is not None:
            out[merit] = -out[merit]
        return out

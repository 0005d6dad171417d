"""How a run ends: its last point evaluated, a failure put into words, the state between two checks kept."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from infimum.errors import InfimumError, InputError, NonFiniteError
from infimum.run.state import dump_run
from infimum.run.stop import Stop
from infimum.solver import Finished
from infimum.status import Status

if TYPE_CHECKING:
    from infimum.run.run import Run

log = logging.getLogger("infimum")


def blame(run: Run, stop: Stop) -> None:
    """Name the evaluation behind a non-finite iterate."""
    culprit = run.counters.culprit()
    if stop.status is Status.nonfinite and culprit is not None:
        run.monitor.stop = Stop(stop.status, f"{stop.message}: {culprit}", stop.fired)


def failed(run: Run, error: Exception, iteration: int) -> None:
    """What an exception in a step means; the step is discarded, the state before it stays."""
    monitor = run.monitor
    if monitor.stop is not None and isinstance(error, StopIteration):
        return
    if isinstance(error, Finished):
        monitor.stop = Stop(error.status, str(error))
        return
    if isinstance(error, NonFiniteError):
        # What a function made of NaN is no news: an evaluation before may have returned it.
        culprit = run.counters.culprit()
        message = f"{error}, in iteration {iteration}" + ("" if culprit is None else f": {culprit}")
        monitor.stop = Stop(Status.nonfinite, message)
        return
    known = isinstance(error, InfimumError)
    if monitor.iteration < (1 if known else 0):
        raise error
    run.error = error
    log.error("the run failed in iteration %d", iteration, exc_info=None if known else error)
    kind = "" if known else f"{type(error).__name__} "
    monitor.stop = Stop(Status.failed, f"{kind}in iteration {iteration}: {error}")


def keep_between_checks(run: Run, state: Any, iteration: int) -> None:
    """Keep the state of a run that was interrupted between two checks, before the check that it would not have made."""
    run.state, run.ahead = state, iteration - run.monitor.iteration
    with suppress(InputError):
        run.unclosed = dump_run(run)
    run.ahead = 0


def close(run: Run) -> None:
    """Metrics at cadence belong to the last point too."""
    monitor, stop = run.monitor, run.monitor.stop
    if not (run.sampler.at_cadence or run.tail) or monitor.iteration < 0 or not run.solver.maps_points:
        return
    point = run.current
    if point is None or run.keeper.broken or (stop is not None and stop.status is Status.nonfinite):
        return
    if stop is not None and stop.status in (Status.interrupted, Status.failed) and run.unclosed is None:
        # Taken up again, the run must not know of an evaluation that it would not have made.
        with suppress(InputError):
            run.unclosed = dump_run(run)
    metrics = dict(run.metrics)
    try:
        if run.tail is not None and run.tail.mean is not None:
            run.tail_value = run.sampler.value(run.problem.merit, run.tail.mean)
        run.sampler.add(metrics, monitor.iteration, point, full=True)
    except NonFiniteError as error:
        monitor.overrule(Stop(Status.nonfinite, f"{error}, at the last point (iteration {monitor.iteration})"))
        return
    except Exception as error:
        log.warning("the objective could not be evaluated at the last point: %s", error)
        return
    run.metrics = metrics
    monitor.amend(metrics, point)

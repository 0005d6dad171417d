"""The result of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infimum.problem import Problem
from infimum.result import Result, versions
from infimum.run.extras import collect_extras
from infimum.status import Status
from infimum.trace import number, scalars

if TYPE_CHECKING:
    from infimum.run.run import Run


def make_result(run: Run) -> Result:
    """The result of a run that has stopped (or of one that was advanced so far)."""
    monitor, problem = run.monitor, run.problem
    stop, best = monitor.stop, run.keeper.best
    sign = -1.0 if problem.sense == "max" else 1.0
    point = run.current
    if point is None:
        point = run.point if run.solver.maps_points else None
    unpack = problem.unpack if run.solver.maps_points else (lambda x: x)
    ranked = problem.merit is not None and best.iteration >= 0
    table = run.counters.table()
    metrics = scalars(run.metrics)
    return Result(
        x=None if point is None else unpack(problem.copy(point) if run.solver.maps_points else point),
        best_x=unpack(problem.copy(best.point)) if ranked and best.point is not None else None,
        value=metrics.get(problem.merit) if problem.merit is not None else None,
        best_value=sign * number(best.value) if ranked else None,
        violation=metrics.get("violation"),
        status=stop.status if stop is not None else Status.interrupted,
        message=stop.message if stop is not None else "the run was advanced by hand and has not stopped",
        fired=stop.fired if stop is not None else (),
        iterations=max(monitor.iteration, 0),
        elapsed=monitor.elapsed,
        evaluations=table["evaluations"],
        calls=table["calls"],
        monitored=table["monitor"],
        exactness=str(run.plan.exactness),
        trace=monitor.trace() if monitor.recorder is not None else None,
        metrics=metrics,
        plan=run.describe(),
        details=run.plan.to_dict(),
        seed=run.seed,
        versions=versions(type(run.solver).__module__, type(problem).__module__),
        best_iteration=best.iteration if ranked else None,
        tail_x=None if run.tail is None or run.tail.mean is None else unpack(run.tail.mean),
        tail_value=run.tail_value,
        reference=None if problem.reference is None else number(problem.reference),
        extras=collect_extras(run),
        notes=list(run.notes),
        error=run.error,
        dump=problem.dump if run.solver.maps_points and type(problem).dump is not Problem.dump else None,
    )

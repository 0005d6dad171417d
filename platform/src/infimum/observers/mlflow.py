"""MLflow: parameters, metrics and the outcome of a run, in a local folder or on a server."""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit

from annotated_types import Ge

from infimum.observers.base import Row, RunObserver, Watch
from infimum.observers.place import needed
from infimum.observers.thin import DENSE, Thinning
from infimum.stopping.base import Progress

if TYPE_CHECKING:
    from infimum.result import Result
    from infimum.run.run import Run

_BATCH = 1000
"""MLflow takes at most so many metrics in one call."""
_FLUSH = 5.0
"""Seconds after which points are sent although the batch is not full."""
_LONG = 500
"""Characters of a parameter that every store takes."""


@dataclass(frozen=True)
class Mlflow(RunObserver):
    """Track a run with MLflow (extra `mlflow`).

    Parameters
    ----------
    uri : str, default "mlruns"
        A folder (MLflow's file store), or the address of a server or database (`http://…`, `sqlite:///…`). The folder
        needs nothing but the library; to look at it, MLflow 3 wants `MLFLOW_ALLOW_FILE_STORE=true mlflow ui`.
    experiment : str, default "infimum"
        Made where it does not exist.
    run_name : str, optional
        By default the name of the solver.
    every : int, default 1
        Iterations between points.
    dense : int, default 1000
        So many points are written at that cadence, as many again at twice the distance, and so on. The last check is
        always written.

    Notes
    -----
    MLflow's global state (active run, tracking address) is neither read nor changed. Parameters: problem, solver and
    its options, oracles, exactness, stopping rule, seed. The status of the run is the tag `infimum.status`.
    """

    uri: str = "mlruns"
    experiment: str = "infimum"
    run_name: str | None = None
    every: Annotated[int, Ge(1)] = 1
    dense: Annotated[int, Ge(1)] = DENSE

    def start(self, run: Run) -> Watch:
        return _Tracked(run, self, needed("mlflow.tracking", "mlflow"), needed("mlflow.entities", "mlflow"))


class _Tracked(Watch):
    def __init__(self, run: Run, options: Mlflow, tracking: Any, entities: Any) -> None:
        self.run, self.options, self.tracking, self.entities = run, options, tracking, entities
        self.row, self.thinning = Row(run), Thinning(options.dense, options.every)
        self.client: Any = None
        self.id: str | None = None
        self.waiting: list[Any] = []
        self.due = 0.0

    def open(self) -> None:
        if self.id is not None:
            self.client.update_run(self.id, "RUNNING")
            return
        uri = self.options.uri
        if "://" not in uri:
            uri = Path(uri).absolute().as_uri()
        with _file_store(uri) if uri.startswith("file:") else nullcontext():
            self.client = self.tracking.MlflowClient(tracking_uri=uri)
            experiment = self.client.get_experiment_by_name(self.options.experiment)
            number = experiment.experiment_id if experiment else self.client.create_experiment(self.options.experiment)
        name = self.options.run_name or self.run.plan.solver_name
        self.id = self.client.create_run(number, run_name=name).info.run_id
        params = [self.entities.Param(key, value[:_LONG]) for key, value in parameters(self.run).items()]
        self.client.log_batch(self.id, params=params)
        self.due = time.monotonic() + _FLUSH

    def tell(self, progress: Progress) -> None:
        if self.thinning.wants(progress.iteration):
            self._take()
            if len(self.waiting) > _BATCH - len(self.row.names) or time.monotonic() >= self.due:
                self._send()

    def close(self) -> None:
        if self.id is not None:
            if self.run.monitor.iteration >= 0:
                self._take()
            self._send()
            self.client.set_terminated(self.id, "KILLED")  # until `finish` knows better

    def finish(self, result: Result) -> None:
        if self.id is None:
            return
        self.client.set_tag(self.id, "infimum.status", str(result.status))
        self.client.set_tag(self.id, "infimum.message", result.message)
        last = {"final.value": result.value, "final.best_value": result.best_value}
        now = int(time.time() * 1000)
        metrics = [
            self.entities.Metric(name, value, now, result.iterations)
            for name, value in last.items()
            if value is not None and math.isfinite(value)
        ]
        self.client.log_batch(self.id, metrics=metrics)
        state = {"failed": "FAILED", "interrupted": "KILLED"}.get(str(result.status), "FINISHED")
        self.client.set_terminated(self.id, state)

    def _take(self) -> None:
        row, now = self.row.now(), int(time.time() * 1000)
        step = row.pop("iteration")
        self.waiting += [
            self.entities.Metric(name, float(value), now, step) for name, value in row.items() if math.isfinite(value)
        ]

    def _send(self) -> None:
        waiting, self.waiting = self.waiting, []
        self.due = time.monotonic() + _FLUSH
        if waiting:
            self.client.log_batch(self.id, metrics=waiting)


@contextmanager
def _file_store(uri: str) -> Iterator[None]:
    """Allowed, and for one process at a time where the system can: two that make one experiment make it twice."""
    folder = Path(unquote(urlsplit(uri).path))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _allowed(), (folder.parent / f".{folder.name}.lock").open("w") as file:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _allowed() -> Iterator[None]:
    """MLflow 3 opens a folder only where this variable says that a folder is meant."""
    name = "MLFLOW_ALLOW_FILE_STORE"
    before = os.environ.get(name)
    os.environ[name] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def parameters(run: Run) -> dict[str, str]:
    """What a run was put together from, as short texts."""
    found = {"problem": run.problem.describe(run.point), "solver": run.plan.solver_name}
    if dataclasses.is_dataclass(run.solver):
        for one in dataclasses.fields(run.solver):
            if one.init:
                found[f"solver.{one.name}"] = repr(getattr(run.solver, one.name, None))
    for placement in run.plan.placements:
        if placement.oracle is not None:
            found[f"oracle.{placement.term.replace(':', '.')}"] = placement.oracle
    found["exactness"] = str(run.plan.exactness)
    found["stopping"] = str(run.rule)
    found["seed"] = str(run.seed)
    if run.repetition:
        found["repetition"] = str(run.repetition)
    return found

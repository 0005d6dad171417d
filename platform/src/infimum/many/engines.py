"""Where members run: in this process, in processes by joblib, on a Dask or Ray cluster; outcomes as they come."""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infimum.errors import InputError, did_you_mean
from infimum.many.guard import end_all, follow_parent, work
from infimum.many.outcomes import outcome
from infimum.many.task import Task, run_task

log = logging.getLogger("infimum")

ENGINES = ("loky", "threading", "dask", "ray")
"""Names of engines: back ends of joblib, but for Dask, whose own futures tell which task is lost."""
RETRIES = 3
"""So often a broken pool of workers is made anew without a member having come to an end in between."""
Told = tuple[Task, dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """How members are run.

    Attributes
    ----------
    jobs : int
        Members at a time; 1 (and no time limit, and no engine) runs them in this process.
    engine : str or None
        `loky` (the default), `threading`, `dask`, `dask:ADDRESS` or `ray`.
    timeout : float or None
        Seconds after which a member is ended.
    threads : int
        Threads of BLAS and OpenMP in each member.
    here : bool
        Run in this process, one after the other.
    """

    jobs: int = 1
    engine: str | None = None
    timeout: float | None = None
    threads: int = 1
    here: bool = False

    def __post_init__(self) -> None:
        name = (self.engine or ENGINES[0]).partition(":")[0]
        if name not in ENGINES:
            raise InputError(f"engine '{self.engine}': {did_you_mean(name, ENGINES)}")
        if self.engine is not None and ":" in self.engine and name != "dask":
            raise InputError(f"engine '{self.engine}': only dask takes an address, dask:tcp://HOST:8786")
        for what, value in (("jobs", self.jobs), ("threads", self.threads)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{what}={value!r}: expected a whole number >= 1")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError(f"timeout={self.timeout!r}: expected seconds > 0")


def cores() -> int:
    """Processors that this process may use: by affinity and by the quota of its control group."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        count = min(count, math.ceil(int(quota) / int(period)))
    return max(1, count)


def run_all(tasks: Sequence[Task], settings: Settings) -> Iterator[Told]:
    """Outcomes of all tasks, as they come. Closing the iterator ends what still runs."""
    if not tasks:
        return iter(())
    if settings.here:
        return _here(tasks, settings)
    name, _, address = (settings.engine or ENGINES[0]).partition(":")
    if name == "dask":
        return _dask(tasks, settings, address or None)
    return _joblib(tasks, settings, name)


def _here(tasks: Sequence[Task], settings: Settings) -> Iterator[Told]:
    from threadpoolctl import threadpool_limits

    for task in tasks:
        with threadpool_limits(settings.threads):
            told = run_task(task)
        yield task, told


def _blob(task: Task) -> bytes:
    return pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)


def _joblib(tasks: Sequence[Task], settings: Settings, backend: str) -> Iterator[Told]:
    """A pool that breaks is made anew for what is left."""
    left = dict(enumerate(tasks))
    failures = 0
    while left:
        before = len(left)
        try:
            for number, told in _pool(left, settings, backend):
                yield left.pop(number), told
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except Exception as error:
            failures = failures + 1 if len(left) == before else 1
            log.warning("the workers broke (%s: %s); %d runs are left", type(error).__name__, error, len(left))
            if failures >= RETRIES:
                for task in left.values():
                    yield task, outcome("crashed", f"its worker broke: {type(error).__name__}: {error}")
                return


def _pool(left: dict[int, Task], settings: Settings, backend: str) -> Iterator[tuple[int, dict[str, Any]]]:
    import joblib

    more: dict[str, Any] = {}
    if backend == "loky":
        more = {"inner_max_num_threads": settings.threads, "initializer": follow_parent}
    if backend == "ray":
        _register_ray()
    unordered = backend != "ray"  # its back end gives lists only
    ship = backend == "ray"
    options = (settings.timeout, settings.threads, list(sys.path), None if ship else os.getcwd())
    blobs = {k: _blob(replace(task, folder=None) if ship else task) for k, task in left.items()}
    with joblib.parallel_config(backend=backend, n_jobs=min(settings.jobs, len(left)), **more):
        parallel = joblib.Parallel(
            return_as="generator_unordered" if unordered else "list", batch_size=1, pre_dispatch="3*n_jobs"
        )
        calls = (joblib.delayed(work)(number, blob, *options) for number, blob in blobs.items())
        found = parallel(calls)
        try:
            yield from found
        except BaseException:
            if unordered:
                with contextlib.suppress(Exception):
                    found.close()
            if backend == "threading":
                end_all()
            raise


def _register_ray() -> None:
    try:
        from ray.util.joblib import register_ray
    except ImportError:
        raise InputError("engine ray needs Ray: pip install 'ray[default]'") from None
    register_ray()


def _dask(tasks: Sequence[Task], settings: Settings, address: str | None) -> Iterator[Told]:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise InputError("engine dask needs Dask: pip install 'infimum[dask]'") from None
    with contextlib.ExitStack() as stack:
        try:
            if address is None:
                cluster: Any = stack.enter_context(
                    distributed.LocalCluster(n_workers=settings.jobs, threads_per_worker=1, dashboard_address=None)
                )
                client = stack.enter_context(distributed.Client(cluster))
            else:
                client = stack.enter_context(distributed.Client(address, timeout="20s"))
            client.wait_for_workers(1, timeout=120)
        except (OSError, TimeoutError, ValueError) as error:
            where = address or "on this machine"
            raise InputError(f"engine dask: no cluster with a worker was reached at {where}: {error}") from None
        _same_versions(client)
        path = list(sys.path) if address is None else None
        yield from _futures(client, distributed.as_completed, tasks, settings, path)


def _futures(client: Any, as_completed: Any, tasks: Sequence[Task], settings: Settings, path: Any) -> Iterator[Told]:
    """One future a member; it is told which of them are lost with their workers."""
    options = (settings.timeout, settings.threads, path, None)
    futures = {
        client.submit(work, number, _blob(replace(task, folder=None)), *options, pure=False, retries=0): task
        for number, task in enumerate(tasks)
    }
    try:
        for future in as_completed(list(futures)):
            task = futures[future]
            error = future.exception()
            if error is not None:
                yield task, outcome("crashed", f"its worker died: {type(error).__name__}: {error}")
            else:
                yield task, future.result()[1]
            future.release()
    finally:
        client.cancel(list(futures), force=True)


def _same_versions(client: Any) -> None:
    """The workers must have the same infimum."""
    import infimum

    try:
        found = client.run(_version)
    except Exception as error:
        raise InputError(f"engine dask: the workers cannot import infimum ({error}); install it there") from None
    other = {where: version for where, version in found.items() if version != infimum.__version__}
    for where, version in other.items():
        raise InputError(f"engine dask: worker {where} has infimum {version}, this is {infimum.__version__}")


def _version() -> str:
    import infimum

    return infimum.__version__

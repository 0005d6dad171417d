"""One member as something to do: solved in this process, its run folder written, its outcome told as plain data."""

from __future__ import annotations

import errno
import json
import logging
import os
import pickle
import shutil
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infimum.checkpoint import relaxed, write_whole
from infimum.errors import InfimumError
from infimum.many.outcomes import outcome
from infimum.many.store import PARTIAL
from infimum.status import Status

OUTCOME = "member.json"
"""In a member's run folder: its outcome, written last. A folder that has it is complete."""
log = logging.getLogger("infimum")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
_ATTEMPTS = 5
_warm: set[str] = set()
"""Methods that this process has solved with before."""


@dataclass(frozen=True, eq=False)
class Task:
    """What a worker needs to solve one member.

    Attributes
    ----------
    id : str
    config : dict or None
        A resolved run file; None for a member that is stated by objects.
    path : str
        The run file, for messages.
    stated : dict, bytes or None
        Keyword arguments of `infimum.solve`, pickled where they go to another process.
    repetition : int
    folder : str or None
        Where its run folder goes; None makes one that is sent back instead.
    key : str or None
        In the cache.
    warm : str or None
        Solve a few iterations first, unless this process has done so under the same word.
    line : dict
        What is known of the member before: its name, labels and values.
    """

    id: str
    config: dict[str, Any] | None
    path: str
    stated: dict[str, Any] | bytes | None = None
    repetition: int = 0
    folder: str | None = None
    key: str | None = None
    warm: str | None = None
    line: dict[str, Any] = field(default_factory=dict)


def run_task(task: Task) -> dict[str, Any]:
    """Solve one member; whatever goes wrong is its outcome.

    Returns
    -------
    dict
        status, error, traceback, seconds, notes and more facts for the cache; `files` with the run folder's contents
        where the task names no folder; `unsaved` where the folder cannot be written.
    """
    if task.folder is None:
        with tempfile.TemporaryDirectory(prefix="infimum-") as above:
            folder = Path(above) / task.id
            found = _run_into(task, folder)
            if folder.is_dir():
                inside = [one for one in folder.rglob("*") if one.is_file()]
                found["files"] = {one.relative_to(folder).as_posix(): one.read_bytes() for one in inside}
            return found
    return _run_into(task, Path(task.folder))


def _run_into(task: Task, folder: Path) -> dict[str, Any]:
    """Solve into a folder beside, and rename it when it is complete."""
    beside = folder.with_name(f"{folder.name}.{os.getpid()}{PARTIAL}")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        with relaxed():
            found = _solved(task, folder, beside)
    except OSError as error:
        found = outcome("failed", f"the run folder cannot be written: {error.strerror or error}", unsaved=True)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return found


def _solved(task: Task, folder: Path, beside: Path) -> dict[str, Any]:
    found = _taken_up(folder)
    if found is not None:
        write_whole(folder / OUTCOME, json.dumps({**found, "key": task.key}, default=str) + "\n")
        return found
    found = _told(task, beside)
    if beside.is_dir() and not found.get("unsaved"):
        finish(beside, folder, {**found, "key": task.key})
    return found


def _taken_up(folder: Path) -> dict[str, Any] | None:
    """An interrupted member gone on with from its checkpoint; None where there is none that serves."""
    if not (folder / "checkpoints").is_dir():
        return None
    from infimum.records import resume

    try:
        return told(resume(folder))
    except InfimumError as error:
        log.info("%s is run anew: %s", folder, error)
        return None


def finish(beside: Path, folder: Path, found: Mapping[str, Any]) -> None:
    """Put a complete run folder into its place."""
    if found["status"] == Status.interrupted and _is_done(folder):
        # Of a worker that was killed, whose member another one has run again in the meantime.
        return
    write_whole(beside / OUTCOME, json.dumps(found, default=str) + "\n")
    for attempt in range(_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            os.replace(beside, folder)
        except OSError as error:
            # Another worker has put the same member there since.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _is_done(folder: Path) -> bool:
    """Whether a folder holds a member that came to its end."""
    try:
        status = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))["status"]
    except (OSError, ValueError, KeyError):
        return False
    return bool(status != Status.interrupted)


def _told(task: Task, folder: Path) -> dict[str, Any]:
    """The outcome of the solve."""
    try:
        _warm_up(task)
        result = _solve(task, folder)
    except OSError as error:
        if error.errno in _FULL:
            raise
        return outcome("failed", f"{type(error).__name__}: {error}", traceback.format_exc())
    except InfimumError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, OSError) and cause.errno in _FULL:
                raise cause from None
            cause = cause.__cause__
        return outcome("invalid", str(error), traceback.format_exc())
    except (Exception, SystemExit) as error:
        return outcome("failed", f"{type(error).__name__}: {error}", traceback.format_exc())
    if folder.is_dir() and not (folder / "result.json").is_file():
        said = result.notes[-1] if result.notes else "the result is not there"
        return outcome("failed", said, unsaved=True)
    return told(result)


def told(result: Any) -> dict[str, Any]:
    """The outcome of a run that has a result."""
    status = str(result.status)
    bad = status in ("interrupted", "failed", "nonfinite", "diverged", "infeasible")
    trace = None
    if result.error is not None:
        trace = "".join(traceback.format_exception(result.error))
    seconds = result.elapsed
    if result.trace is not None and result.trace.rows:
        seconds = float(result.trace["time"][-1])
    timed = any("time" in reason.rule for reason in result.fired if str(reason.status) == "limit")
    return outcome(
        status, result.message if bad else None, trace, seconds=seconds, notes=list(result.notes), time_limited=timed
    )


def _solve(task: Task, folder: Path) -> Any:
    """The run itself, with its whole folder."""
    if task.config is not None:
        from infimum.records import solve_to_folder
        from infimum.runfile import RunFile

        run_file = RunFile.of(task.config, task.path)
        return solve_to_folder(run_file, folder, repetition=task.repetition)
    from infimum.records import solve_into

    assert task.stated is not None
    return solve_into(folder, **load_stated(task.stated), repetition=task.repetition)


def _warm_up(task: Task) -> None:
    """Imports, first calls and caches before a run that is timed."""
    if task.warm is None or task.warm in _warm:
        return
    few = "max_iter(2) | max_solver_time(2)"
    if task.config is not None:
        from infimum.runfile import RunFile

        quiet = {name: value for name, value in task.config.items() if name != "observers"}
        RunFile.of({**quiet, "stopping": few}, task.path).prepare(max_rows=0).solve()
    else:
        import infimum

        assert task.stated is not None
        infimum.solve(**{**load_stated(task.stated), "stopping": few, "max_rows": 0})
    _warm.add(task.warm)


def load_stated(stated: dict[str, Any] | bytes) -> dict[str, Any]:
    """Keyword arguments, perhaps pickled."""
    found: dict[str, Any] = pickle.loads(stated) if isinstance(stated, bytes) else stated
    return found

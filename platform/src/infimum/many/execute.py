"""Runs members: what is known is taken over, the rest is solved, and every outcome is on the disk before the next."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from infimum.many.cache import Cache, leaves_all_in_folder
from infimum.many.engines import Settings, run_all
from infimum.many.members import LOST
from infimum.many.store import PARTIAL, StorageError, Store
from infimum.many.task import OUTCOME, Task, finish
from infimum.result import Result
from infimum.run.signals import Interrupts
from infimum.status import Status

log = logging.getLogger("infimum")
Line = dict[str, Any]
Tell = Callable[[Line], None]


@dataclass(eq=False)
class Job:
    """Members to run, in the order in which they are to be run.

    Attributes
    ----------
    tasks : sequence of Task
    keys : mapping of str to str
        Member to its key in the cache; those without one are not cached.
    store : Store
    settings : Settings
    cache : Cache or None
    retry : bool
        Whether lost members of an earlier process are run again.
    fresh : bool
        Whether to run what the cache knows.
    tell : callable
        Told of each line as it is written.
    results : dict or None
        Where results are put as they come, for a folder that does not stay: workers are waited for anyway.
    """

    tasks: Sequence[Task]
    store: Store
    settings: Settings
    keys: Mapping[str, str] = field(default_factory=dict)
    cache: Cache | None = None
    retry: bool = False
    fresh: bool = False
    tell: Tell = lambda line: None
    notes: list[str] = field(default_factory=list)
    results: dict[str, Result] | None = None

    def run(self) -> bool:
        """Run them; False if the user interrupted, or a run was stopped by a signal.

        Raises
        ------
        StorageError
            If the folder cannot be written; what is finished is kept.
        """
        self.store.clean()
        left = self._not_done()
        left = [task for task in left if not (self._adopted(task) or self._known(task))]
        if not left:
            return True
        with Asked() as asked:
            found = run_all(left, self.settings)
            try:
                for task, told in found:
                    if told["status"] == Status.interrupted and asked.count:
                        break
                    self._finish(task, told)
                    if asked.count:
                        break
            except KeyboardInterrupt:
                asked.count += 1
            finally:
                with contextlib.suppress(RuntimeError, AttributeError):
                    found.close()  # type: ignore[attr-defined]
        return not asked.count

    def _not_done(self) -> list[Task]:
        """Tasks that an earlier process has not finished, or that have changed since."""
        lines = self.store.lines()
        left, changed = [], 0
        for task in self.tasks:
            line = lines.get(task.id)
            if line is None or line["status"] == Status.interrupted or self._gone(line):
                left.append(task)
                continue
            old = line.get("key") != self.keys.get(task.id, line.get("key"))
            if old or (self.retry and line["status"] in LOST):
                changed += old
                left.append(task)
                shutil.rmtree(self.store.member_folder(task.id), ignore_errors=True)
        if changed:
            text = f"{changed} finished runs are of an older state of the code or the data and are run again"
            log.warning(text)
            self.notes.append(text)
        return left

    def _gone(self, line: Line) -> bool:
        """Whether the result that a line tells of is not there, as after a power cut."""
        path = self.store.member_folder(line["id"]) / "result.json"
        expected = line["status"] not in LOST
        return expected and not (path.is_file() and path.stat().st_size)

    def _adopted(self, task: Task) -> bool:
        """A complete folder whose line was not written."""
        path = self.store.member_folder(task.id) / OUTCOME
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        same = told.get("key") == self.keys.get(task.id)
        if not same or told["status"] == Status.interrupted:
            # An interrupted member is gone on with, if it left a checkpoint.
            if not same:
                shutil.rmtree(path.parent, ignore_errors=True)
            return False
        self._write(task, told)
        return True

    def _known(self, task: Task) -> bool:
        """Taken from the cache."""
        key = self.keys.get(task.id)
        if key is None or self.cache is None or self.fresh or not leaves_all_in_folder(task.config or {}):
            return False
        told = self.cache.take(key, self.store.member_folder(task.id))
        if told is None:
            return False
        notes = list(told["notes"])
        if told.get("time_limited"):
            notes.append("ended by a time limit when it was run; another machine or hour may come further")
        self._write(task, {**told, "notes": notes, "cached": True})
        return True

    def _finish(self, task: Task, told: Line) -> None:
        folder = self.store.member_folder(task.id)
        if told.pop("unsaved", False):
            raise StorageError(
                f"{self.store.folder} cannot be written: {told['error']}; what is finished is kept, "
                "make room and go on with --resume"
            )
        files = told.pop("files", None)
        if files is not None:
            self._unpack(folder, files, told)
        if told["status"] in LOST and not folder.is_dir() and told["traceback"]:
            self._note_loss(folder, told)
        key = self.keys.get(task.id)
        if key is not None and self.cache is not None and leaves_all_in_folder(task.config or {}):
            self.cache.put(key, folder, told, task.line)
        self._write(task, told)

    def _unpack(self, folder: Path, files: Mapping[str, bytes], told: Line) -> None:
        """A run folder that was sent."""
        beside = folder.with_name(f"{folder.name}.{os.getpid()}{PARTIAL}")
        try:
            beside.mkdir(parents=True)
            for name, data in files.items():
                path = beside / name
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_bytes(data)
            finish(beside, folder, told)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise self.store.unwritable(error) from error

    def _note_loss(self, folder: Path, told: Line) -> None:
        """What a lost member said last, as its log."""
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "log.txt").write_text(f"{told['error']}\n\n{told['traceback']}\n", encoding="utf-8")

    def _write(self, task: Task, told: Line) -> None:
        line = {**task.line, "id": task.id, "key": self.keys.get(task.id), **told}
        self.store.add(line)
        folder = self.store.member_folder(task.id)
        if self.results is not None and (folder / "result.json").is_file():
            self.results[task.id] = Result.load(folder)
        self.tell(line)


class Asked(Interrupts):
    """Ctrl-C and SIGTERM while members run: the first ends what runs, the second everything.

    A member that is solved in this process ends after its iteration; workers are ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __enter__(self) -> Asked:
        super().__enter__()
        return self

    def _ask(self, number: int, frame: Any) -> None:
        self.count += 1
        # From the handler of a run in this process: that one ends by itself.
        inner = signal.getsignal(number) if threading.current_thread() is threading.main_thread() else None
        if inner == self._ask or self.count > 1:
            raise KeyboardInterrupt


def stated_line(task: Task) -> Line:
    """The line of a member that could not start."""
    return {**task.line, "id": task.id}


def with_folder(tasks: Sequence[Task], store: Store) -> list[Task]:
    """The tasks with the run folders that they write."""
    return [replace(task, folder=str(store.member_folder(task.id).resolve())) for task in tasks]


def interleaved(tasks: Sequence[Task]) -> Iterator[Task]:
    """One of each method in turn, a different one first each time: for runs whose time is compared."""
    groups: dict[tuple[int, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.repetition, task.line["problem"]), []).append(task)
    for number, group in enumerate(groups.values()):
        cut = number % len(group)
        yield from (*group[cut:], *group[:cut])

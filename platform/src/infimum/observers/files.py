"""Observers that write rows to a file as the run goes on: CSV and JSON lines."""

from __future__ import annotations

import csv
import json
import math
import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar

from annotated_types import Ge

from infimum.errors import InputError
from infimum.observers.base import Row, RunObserver, Watch
from infimum.observers.place import in_folder, is_inside
from infimum.stopping.base import Progress

if TYPE_CHECKING:
    from infimum.run.run import Run

FLUSH = 1.0
"""Seconds after which buffered rows go to the disk, so that the file can be followed and a crash loses little."""


@dataclass(frozen=True)
class _Rows(RunObserver):
    """What the observers of this module have in common; `watch` writes."""

    watch: ClassVar[type[_Lines]]

    path: str
    every: Annotated[int, Ge(1)] = 1
    overwrite: bool = False

    def start(self, run: Run) -> Watch:
        return self.watch(run, in_folder(run, self.path), self.overwrite)

    @property
    def stays_in_folder(self) -> bool:
        return is_inside(self.path)


@dataclass(frozen=True)
class Csv(_Rows):
    """Write the columns of the trace to a CSV file, a row a check, without the trace's bound on rows.

    Parameters
    ----------
    path : str, default "progress.csv"
        Relative to the run's folder, or to the present one where the run has none.
    every : int, default 1
        Iterations between rows; the last check is always written.
    overwrite : bool, default False
        Whether a file that is there may be replaced.

    Notes
    -----
    Numbers are written so that reading them gives the same bits; what was not computed at a check is empty. A run that
    is taken up again goes on in its file: rows after the state that it resumes from are dropped first.
    """

    path: str = "progress.csv"


@dataclass(frozen=True)
class JsonLines(_Rows):
    """Write the columns of the trace as one JSON object a line, a line a check, and the outcome as the last line.

    Parameters
    ----------
    path : str, default "progress.jsonl"
        Relative to the run's folder, or to the present one where the run has none.
    every : int, default 1
        Iterations between lines; the last check is always written.
    overwrite : bool, default False
        Whether a file that is there may be replaced.

    Notes
    -----
    JSON has no NaN and no infinity: both are null. The last line has the keys `status`, `message`, `value`,
    `best_value`, `iterations` and `elapsed`.
    """

    path: str = "progress.jsonl"


class _Lines(Watch):
    """Holds back the last row: the run may complete it when it ends."""

    def __init__(self, run: Run, path: Path, overwrite: bool) -> None:
        self.run, self.path, self.overwrite = run, path, overwrite
        self.row = Row(run)
        self._file: IO[str] | None = None
        self._waiting: dict[str, Any] | None = None
        self._due = 0.0
        self._written = False

    def open(self) -> None:
        done = self.run.monitor.iteration
        goes_on = self.path.exists() and (self._written or done >= 0)
        if self.path.exists() and not goes_on and not self.overwrite:
            raise InputError(f"{self.path} exists; give the observer another path, or overwrite: true")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if goes_on:
            self._drop_after(done)
        self._file = open(self.path, "a" if goes_on else "w", newline="", encoding="utf-8")  # noqa: SIM115
        if not goes_on:
            self._head(self._file)
        self._due = time.monotonic() + FLUSH
        self._written = True

    def _drop_after(self, iteration: int) -> None:
        """Leave only rows before `iteration`, which the run is about to go on from or to write again."""
        with open(self.path, newline="", encoding="utf-8") as file:
            kept = [line for line in file if line.endswith("\n") and self._before(line, iteration)]
        part = self.path.with_name(self.path.name + ".part")
        with open(part, "w", newline="", encoding="utf-8") as file:
            file.writelines(kept)
            if not kept:
                self._head(file)
        part.replace(self.path)
        self._waiting = self.row.now() if self.run.monitor.iteration >= 0 else None

    def tell(self, progress: Progress) -> None:
        self._push()
        self._waiting = self.row.now()

    def close(self) -> None:
        file = self._file
        if file is None:
            return
        try:
            if self.run.monitor.iteration >= 0:
                last = self.row.now()
                if self._waiting is not None and self._waiting["iteration"] != last["iteration"]:
                    self._push()
                self._waiting = last
            self._push()
        finally:
            self._file = None
            file.close()

    def _push(self) -> None:
        if self._waiting is None or self._file is None:
            return
        self._write(self._file, self._waiting)
        self._waiting = None
        if time.monotonic() >= self._due:
            self._file.flush()
            self._due = time.monotonic() + FLUSH

    @abstractmethod
    def _head(self, file: IO[str]) -> None: ...

    @abstractmethod
    def _write(self, file: IO[str], row: dict[str, Any]) -> None: ...

    @abstractmethod
    def _before(self, line: str, iteration: int) -> bool: ...


class _CsvWatch(_Lines):
    def _head(self, file: IO[str]) -> None:
        csv.writer(file, lineterminator="\n").writerow(self.row.names)

    def _write(self, file: IO[str], row: dict[str, Any]) -> None:
        file.write(",".join("" if one != one else repr(one) for one in row.values()) + "\n")

    def _before(self, line: str, iteration: int) -> bool:
        first = line.partition(",")[0].strip()
        return not first.isdigit() or int(first) < iteration


class _JsonWatch(_Lines):
    def _head(self, file: IO[str]) -> None:
        """There is none."""

    def _write(self, file: IO[str], row: dict[str, Any]) -> None:
        file.write(json.dumps(dict(_finite(row))) + "\n")

    def _before(self, line: str, iteration: int) -> bool:
        try:
            row = json.loads(line)
        except ValueError:
            return False
        return isinstance(row, dict) and isinstance(row.get("iteration"), int) and row["iteration"] < iteration

    def finish(self, result: Any) -> None:
        names = ("message", "value", "best_value", "iterations", "elapsed")
        row = {"status": str(result.status), **{name: getattr(result, name) for name in names}}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(dict(_finite(row)), ensure_ascii=False) + "\n")


Csv.watch, JsonLines.watch = _CsvWatch, _JsonWatch


def _finite(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, one in row.items():
        yield name, None if isinstance(one, float) and not math.isfinite(one) else one

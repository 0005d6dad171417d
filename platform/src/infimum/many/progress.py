"""A bar on a terminal over many runs; nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any


class Bar:
    """Counts members as they come to an end, and how they ended.

    Parameters
    ----------
    total : int
    name : str
    shown : bool
        Shown on standard error, if that is a terminal.
    """

    def __init__(self, total: int, name: str, *, shown: bool) -> None:
        self.total, self.name = total, name
        self.counts: dict[str, int] = {}
        self.cached = 0
        self._bar: Any = None
        self._task: Any = None
        if shown and sys.stderr.isatty():
            self._make()

    def _make(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[said]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self.name, total=self.total, said="")

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, line: Mapping[str, Any]) -> None:
        """One more member has ended."""
        self.counts[line["status"]] = self.counts.get(line["status"], 0) + 1
        self.cached += bool(line.get("cached"))
        if self._bar is not None:
            said = ", ".join(f"{n} {status}" for status, n in self.counts.items())
            done = sum(self.counts.values())
            self._bar.update(self._task, completed=done, said=said + (f", {self.cached} cached" * bool(self.cached)))

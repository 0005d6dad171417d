"""`log.txt` of a run: what the logger `infimum` says while it lasts, whatever the user sees of it."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_LOGGER = logging.getLogger("infimum")
_LINE = "%(asctime)s %(levelname)s %(message)s"


class RunLog:
    """Writes what is logged in this thread to a file, from INFO up.

    Parameters
    ----------
    path : path
        Appended to.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._thread = path, threading.get_ident()
        self._formatter = logging.Formatter(_LINE, "%Y-%m-%dT%H:%M:%SZ")
        self._formatter.converter = time.gmtime

    def __enter__(self) -> RunLog:
        _tap.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _tap.remove(self)

    def write(self, record: logging.LogRecord) -> None:
        """One record; a log that cannot be written must not cost the run."""
        if record.thread != self._thread:
            return
        with suppress(OSError, ValueError, TypeError), self._path.open("a", encoding="utf-8") as file:
            file.write(self._formatter.format(record) + "\n")


class _Tap(logging.Filter):
    """Hands records to the open logs before any handler sees them.

    It is a filter rather than a handler: records that the user would not have seen without it are held back from the
    handlers, and a program without handlers still sees warnings on its standard error.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logs: list[RunLog] = []
        self._level = self._effective = logging.NOTSET
        self._lock = threading.Lock()

    def add(self, log: RunLog) -> None:
        with self._lock:
            if not self._logs:
                self._level, self._effective = _LOGGER.level, _LOGGER.getEffectiveLevel()
                _LOGGER.setLevel(min(logging.INFO, self._effective))
                _LOGGER.addFilter(self)
            self._logs = [*self._logs, log]

    def remove(self, log: RunLog) -> None:
        with self._lock:
            self._logs = [one for one in self._logs if one is not log]
            if not self._logs:
                _LOGGER.removeFilter(self)
                _LOGGER.setLevel(self._level)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.INFO:
            for log in self._logs:
                log.write(record)
        return record.levelno >= self._effective


_tap = _Tap()

"""Runs members in a process of its own and survives it: a crash or a time-out is told, the process is replaced."""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from typing import Any, BinaryIO, cast

from infimum.many.child import read_frame, write_frame

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
START = 300.0
"""Seconds that a process has to import what it needs: a machine may be busy."""
GRACE = (5.0, 30.0)
"""Least and most seconds between asking a member that has run out of time to end and killing it."""
_TAIL = 4000
_lock = threading.Lock()
_idle: list[Child] = []
"""Processes without work; they end by themselves after a while."""
_children: weakref.WeakSet[Child] = weakref.WeakSet()


class Died(Exception):
    """The process ended; `code` is its exit code, negative for a signal."""

    def __init__(self, code: int, said: str) -> None:
        self.code, self.said = code, said
        super().__init__(how(code))


class Late(Exception):
    """The member did not end in time and was killed."""


def how(code: int) -> str:
    """In words, how a process ended."""
    if code >= 0:
        return f"its process ended with exit code {code}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-code).name
        why = " (out of memory, or killed by somebody)" if name == "SIGKILL" else ""
        return f"its process was killed by {name}{why}"
    return f"its process was killed by signal {-code}"


class Child:
    """A process that solves members, and the thread that reads its answers."""

    def __init__(self, threads: int, path: list[str] | None, cwd: str | None) -> None:
        environment = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
        self.made_for = threads, path, cwd
        path = list(sys.path) if path is None else path
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; from infimum.many.child import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environment,
            # Ctrl-C in a terminal is for the process that waits; it decides what becomes of this one.
            start_new_session=True,
        )
        self.answers: queue.Queue[Any] = queue.Queue()
        _children.add(self)
        threading.Thread(target=self._read, daemon=True).start()
        self._send({"path": path, "cwd": cwd})
        self._wait(time.monotonic() + START)

    def run(self, task: bytes, timeout: float | None) -> dict[str, Any]:
        """Solve one member.

        Raises
        ------
        Died, Late
        """
        began = time.monotonic()
        self._send(task)
        if timeout is None:
            return self._wait(None)
        with contextlib.suppress(queue.Empty):
            return self._wait(began + timeout)
        # It may end after its iteration, with a result that is kept.
        self.process.terminate()
        try:
            answer = self._wait(time.monotonic() + min(max(0.1 * timeout, GRACE[0]), GRACE[1]))
        except (queue.Empty, Died):
            self.kill()
            raise Late from None
        # A signal that came after its end is still on its way to the process.
        self.kill()
        return {**answer, "late": True}

    def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(OSError):
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        with contextlib.suppress(OSError):
            cast(BinaryIO, self.process.stdin).close()
        self.log.close()

    def said(self) -> str:
        """The end of what the process wrote."""
        with contextlib.suppress(OSError, ValueError):
            end = self.log.seek(0, os.SEEK_END)
            self.log.seek(max(0, end - _TAIL))
            return self.log.read().decode(errors="replace").strip()
        return ""

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def _send(self, message: Any) -> None:
        try:
            write_frame(cast(BinaryIO, self.process.stdin), message)
        except (OSError, ValueError):
            self._died()

    def _wait(self, until: float | None) -> dict[str, Any]:
        left = None if until is None else max(0.0, until - time.monotonic())
        answer = self.answers.get(timeout=left)
        if answer is None:
            self._died()
        found: dict[str, Any] = answer
        return found

    def _died(self) -> None:
        self.process.wait()
        raise Died(self.process.returncode, self.said())

    def _read(self) -> None:
        pipe = cast(BinaryIO, self.process.stdout)
        with contextlib.suppress(EOFError, OSError, ValueError), pipe:
            while True:
                self.answers.put(read_frame(pipe))
        self.answers.put(None)


def guarded(
    task: bytes, timeout: float | None, threads: int, path: list[str] | None, cwd: str | None
) -> dict[str, Any]:
    """Solve one member in a process of its own; whatever happens to that is the outcome."""
    from infimum.many.outcomes import outcome

    for attempt in (1, 2):
        try:
            return _once(task, timeout, threads, path, cwd)
        except Late:
            return outcome("timeout", f"it took more than {timeout:g} s and did not end when asked")
        except Died as error:
            # A member that was killed from outside gets one more try.
            if error.code not in (-signal.SIGKILL, -signal.SIGTERM) or attempt == 2:
                return outcome("crashed", str(error), error.said or None)
    raise AssertionError


def work(number: int, task: bytes, *settings: Any) -> tuple[int, dict[str, Any]]:
    """What a worker of an engine does, with the member's number."""
    return number, guarded(task, *settings)


def follow_parent() -> None:
    """Let this worker of loky end when the process that it works for is gone, rather than some minutes later."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        end_all()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _once(task: bytes, timeout: float | None, threads: int, path: list[str] | None, cwd: str | None) -> dict[str, Any]:
    child = _take((threads, path, cwd)) or Child(threads, path, cwd)
    try:
        answer = child.run(task, timeout)
    except BaseException:
        child.kill()
        raise
    with _lock:
        _idle.append(child)
    if answer.pop("late", False) and answer["status"] == "interrupted":
        answer |= {"status": "timeout", "error": f"it took more than {timeout:g} s; ended after its iteration"}
    return answer


def _take(wanted: tuple[int, list[str] | None, str | None]) -> Child | None:
    """A process without work that was started in the same way; those that have ended are forgotten."""
    with _lock:
        ended = [one for one in _idle if not one.alive]
        found = next((one for one in _idle if one.alive and one.made_for == wanted), None)
        _idle[:] = [one for one in _idle if one is not found and one not in ended]
    for one in ended:
        one.kill()
    return found


def end_all() -> None:
    """End every process that this one has started for members."""
    for child in list(_children):
        child.kill()


atexit.register(end_all)
__all__ = ["Child", "Died", "Late", "end_all", "follow_parent", "guarded", "work"]

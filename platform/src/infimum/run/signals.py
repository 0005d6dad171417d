"""Ctrl-C and SIGTERM: the first asks to end after the present iteration, a second Ctrl-C stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from infimum.status import Status

if TYPE_CHECKING:
    from infimum.run.monitor import Monitor


class Interrupts:
    """Installs handlers for the time of a run, in the main thread only, and puts the old ones back.

    A signal that is ignored stays ignored, and one that something outside of Python handles is left to it. A run
    inside another one (in an oracle, say) hands the request on, so that both end.
    """

    def __init__(self, monitor: Monitor | None = None) -> None:
        self.monitor = monitor
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._old[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        assert self.monitor is not None
        if self.monitor.request is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.monitor.request = Status.interrupted
        outer = self._old.get(number)
        if callable(outer) and isinstance(getattr(outer, "__self__", None), Interrupts):
            outer(number, frame)

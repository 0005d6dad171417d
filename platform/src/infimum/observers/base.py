"""The contract of observers: frozen options, and for each run something that is told of its progress and closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from infimum.run.monitor import columns
from infimum.stopping.base import Progress
from infimum.trace import number

if TYPE_CHECKING:
    from infimum.result import Result
    from infimum.run.run import Run


class Watch(ABC):
    """What watches one run. It is told of progress, of the end, and is closed whatever happens.

    An exception in any of these is logged, noted in the result, and ends the watch; the run goes on.
    """

    def open(self) -> None:  # noqa: B027  there may be nothing to open
        """Called before the first `tell`, and again if the run goes on after `close`."""

    @abstractmethod
    def tell(self, progress: Progress) -> None:
        """A check of the run. The progress is one object that is used again: copy what you keep."""

    def finish(self, result: Result) -> None:  # noqa: B027  most have nothing to add
        """The run has ended with this result; called after `close`."""

    def close(self) -> None:  # noqa: B027
        """The run stops here, with or without a result; write what is still held back."""


class RunObserver(ABC):
    """A component of kind `observer`: a frozen dataclass of options.

    Attributes
    ----------
    every : int
        Iterations between two calls of `tell`.
    stays_in_folder : bool
        Whether all that it writes stands below the run's folder, so that a copy of that is whole. If not, a run that
        it watches is not taken from the cache.
    """

    every: int = 1

    @property
    def stays_in_folder(self) -> bool:
        return False

    @abstractmethod
    def start(self, run: Run) -> Watch:
        """A watch for a run that is made but has not started; nothing may be written yet.

        Raises
        ------
        InputError
            If something that it needs is not installed.
        """


class Row:
    """The columns of a run's trace, as they stand at a check: what the host knows anyway, so nothing is evaluated."""

    def __init__(self, run: Run) -> None:
        self._monitor = run.monitor
        self.names = columns(run.monitor.names, tuple(run.monitor.counted))
        self._whole = frozenset({"iteration", *(f"calls.{name}" for name in run.monitor.counted)})

    def now(self) -> dict[str, Any]:
        """Name to int (iteration, counts) or float; NaN where a metric was not taken."""
        row = zip(self.names, self._monitor.row(), strict=True)
        return {name: int(one) if name in self._whole else number(one) for name, one in row}

"""From what a user writes under `observers` to callables of the run's monitor that cannot hurt the run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infimum.errors import InfimumError, InputError
from infimum.observers.base import RunObserver, Watch
from infimum.plugins.build import Built, build
from infimum.plugins.registry import Registry
from infimum.run.monitor import Observer
from infimum.stopping.base import Progress

if TYPE_CHECKING:
    from infimum.result import Result
    from infimum.run.run import Run

log = logging.getLogger("infimum")


class Guard:
    """A callable for the monitor around one that watches: its exceptions and its time are kept from the run.

    The first exception is logged and noted in the result, and the observer is told nothing more. `StopIteration` and
    returning True ask for a stop as in a callback.
    """

    def __init__(self, run: Run, name: str, call: Callable[[Progress], Any]) -> None:
        self.run, self.name, self._call = run, name, call
        self.lost = False

    def __call__(self, progress: Progress) -> Any:
        if self.lost:
            return None
        began = time.perf_counter()
        try:
            return self._call(progress)
        except StopIteration:
            raise
        except Exception as error:
            self.detach(error)
            return None
        finally:
            self.run.sampler.spent += time.perf_counter() - began

    def attempt(self, call: Callable[[], Any]) -> None:
        """Something else that the observer does, outside the loop."""
        try:
            call()
        except Exception as error:
            self.detach(error)

    def detach(self, error: Exception) -> None:
        """Say that the observer failed, and forget it."""
        if self.lost:
            return
        self.lost = True
        monitor = self.run.monitor
        where = f"at iteration {monitor.iteration}" if monitor.iteration >= 0 else "before the first step"
        said = str(error) if isinstance(error, InfimumError) else f"{type(error).__name__}: {error}"
        self.run.notes.append(f"{self.name} failed {where} and was detached: {said}")
        log.error("%s", self.run.notes[-1])
        log.debug("%s", self.name, exc_info=error)
        monitor.observers = tuple(one for one in monitor.observers if one.call is not self)


class _Watching:
    """The life of one watch: opened at its first check, closed with the run, told the result."""

    def __init__(self, run: Run, name: str, watch: Watch) -> None:
        self.watch, self.is_open = watch, False
        self.guard = Guard(run, name, self.tell)
        run.started.append(self.started)
        run.closing.append(self.close)
        run.finished.append(self.finished)

    def started(self, run: Run) -> None:
        # Here, unlike in the loop, an error reaches the user before anything is lost.
        self.open()

    def open(self) -> None:
        if not self.is_open and not self.guard.lost:
            self.watch.open()
            self.is_open = True

    def tell(self, progress: Progress) -> None:
        self.open()
        self.watch.tell(progress)

    def close(self) -> None:
        # Also after a failure: what was written until then is to be kept.
        if self.is_open:
            self.is_open = False
            self.guard.attempt(self.watch.close)

    def finished(self, run: Run, result: Result) -> None:
        if not self.guard.lost:
            before = len(run.notes)
            self.guard.attempt(lambda: self.watch.finish(result))
            result.notes.extend(run.notes[before:])


def attach(run: Run, observers: Sequence[Any]) -> None:
    """Let them watch a run.

    Parameters
    ----------
    run : Run
    observers : sequence of RunObserver, Observer, callable, or pair (every, callable)

    Raises
    ------
    InputError
        If one is none of these, or what it needs is not installed.
    """
    made = []
    for one in observers:
        if isinstance(one, RunObserver):
            name = f"observer {type(one).__name__}"
            watching = _Watching(run, name, _started(one, run, name))
            made.append(Observer(watching.guard, one.every, name))
            continue
        if isinstance(one, tuple):
            if len(one) != 2:
                raise InputError(f"observers: expected a pair (every, callable), got {one!r}")
            one = Observer(one[1], one[0])
        elif not isinstance(one, Observer):
            if not callable(one):
                raise InputError(f"observers: expected an observer or a callable, got {type(one).__name__} {one!r:.60}")
            one = Observer(one)
        called = one.name if one.name != "observer" else f"observer {getattr(one.call, '__qualname__', one.call)!s:.60}"
        made.append(Observer(Guard(run, called, one.call), one.every, called))
    run.monitor.observers = (*run.monitor.observers, *made)


def _started(one: RunObserver, run: Run, name: str) -> Watch:
    try:
        return one.start(run)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def as_observers(observers: Any, base: Path | None, registry: Registry) -> list[Any]:
    """What `solve(observers=…)` takes, with names and mappings built.

    Raises
    ------
    InputError
        If one is no observer.
    """
    if observers is None:
        return []
    if isinstance(observers, str | Mapping | RunObserver | Observer | Built) or callable(observers):
        observers = [observers]
    if not isinstance(observers, Sequence):
        raise InputError(f"observers: expected a list of observers, got {type(observers).__name__} {observers!r:.60}")
    made = []
    for one in observers:
        if isinstance(one, str | Mapping | Built):
            built = build(one, "observer", base=base, registry=registry)
            if not (isinstance(built.instance, RunObserver) or callable(built.instance)):
                raise InputError(f"observers: {built.name} is {type(built.instance).__name__}, which is no RunObserver")
            one = built.instance
        made.append(one)
    return made

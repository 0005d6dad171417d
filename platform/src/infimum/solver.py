"""The contract of solvers: frozen options, slots, metrics, and pure `init` and `step` (or `drive`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from infimum.exactness import Exactness
from infimum.functions.base import Zero
from infimum.oracle import Resume


class Ticker(Protocol):
    """What a driven loop reports to, once per iteration; a stop that comes back must end it."""

    def tick(self, metrics: Mapping[str, Any], point: Any = None) -> Any: ...
    def finish(self, status: Any, message: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a solver for terms of the problem.

    Attributes
    ----------
    name : str
        Attribute of `parts` under which the solver finds it.
    needs : tuple of str
        Capabilities that what stands here must have.
    wants : tuple of str
        Capabilities that the solver uses where they come without an oracle (ask `part.offers(name)`).
    at_least, at_most : int, int or None
        How many terms the slot takes; None means any number. Terms on disjoint blocks count as one.
    each : bool
        False: the terms are joined (summed, or separable on disjoint blocks) into one part. True: a tuple of parts.
    takes_map : bool
        True: a term f∘A stands here as f with `map(x)`, `adjoint(y)` and `norm` beside it. False: as f∘A.
    accepts : Exactness
        The worst exactness that the solver can live with.
    empty : object
        What stands here when no term does; the zero function unless a family has none.
    """

    name: str
    needs: tuple[str, ...]
    wants: tuple[str, ...] = ()
    at_least: int = 0
    at_most: int | None = None
    each: bool = False
    takes_map: bool = False
    accepts: Exactness = Exactness.stochastic
    empty: Any = field(default_factory=Zero)


def _not_from_state(state: Any) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a solver knows of its state.

    Attributes
    ----------
    get : callable
        `get(state) -> float or None`; None means "not known at this iteration". Must not change the state and must
        not call a part. Solvers that drive a foreign loop leave it out and hand their metrics to `tick`.
    requires : mapping of str to tuple of str
        Slot name to capabilities of which what stands there must offer at least one; otherwise the metric is absent.
    """

    get: Callable[[Any], Any] = _not_from_state
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Solver:
    """Base of all solvers. Subclasses are frozen dataclasses that never print, time, stop or loop.

    A loop that infimum does not own (SciPy, CVXPY) overrides `drive` instead of `step`.
    """

    families: ClassVar[tuple[str, ...]] = ("composite",)
    metrics: ClassVar[Mapping[str, Metric]] = {}
    State: ClassVar[type | None] = None
    """Dataclass of the state; None when the state is a dict or brings its own `dump` and `load`."""
    inplace: ClassVar[bool] = False
    """True when `step` returns the same object; the host then copies what it keeps."""
    resume: ClassVar[Resume] = "exact"
    maps_points: ClassVar[bool] = True
    """False for a solver whose solution is no point of the problem (a policy, a model)."""

    def slots(self) -> tuple[Slot, ...]:
        """What the solver needs of the problem; may depend on its options."""
        raise NotImplementedError

    def check(self, parts: Any) -> None:
        """Validate options against what stands in the slots (steps against Lipschitz constants), before the run."""

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        """The state at iteration 0, whose solution is `start`."""
        raise NotImplementedError

    def step(self, parts: Any, state: Any) -> Any:
        """One iteration: a new state from the old one and the parts, which it must not keep in itself."""
        raise NotImplementedError

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Ticker) -> Any:
        """For a loop that the solver does not own: run it, feed `monitor.tick`, stop when that says so."""
        raise NotImplementedError

    @property
    def drives(self) -> bool:
        """Whether this solver brings its own loop."""
        return type(self).drive is not Solver.drive

    def solution(self, state: Any) -> Any:
        """What the solver reports of a state. Says in its docstring which iterate that is."""
        return state["x"] if isinstance(state, dict) else state.x

    def dump(self, state: Any) -> Any:
        """The state as a tree of dict / list / scalar / str / array / generator."""
        if dataclasses.is_dataclass(state):
            return {one.name: getattr(state, one.name) for one in dataclasses.fields(state)}
        return state

    def load(self, tree: Any, start: Any) -> Any:
        """The state from what `dump` gave; `start` is a fresh copy of the start, to be filled by in-place solvers."""
        return self.State(**tree) if self.State is not None else tree

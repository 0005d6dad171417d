"""The contract of solvers: frozen options, slots, metrics, and pure `init` and `step` (or `drive`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.functions.base import Zero
from infimum.oracle import Resume
from infimum.problem.base import Problem, Term
from infimum.status import Status


class Ticker(Protocol):
    """What a driven loop reports to, once per iteration; a stop that comes back must end it."""

    def tick(self, metrics: Mapping[str, Any], point: Any = None) -> Any: ...
    def poll(self) -> Any: ...
    def seen(self, metrics: Mapping[str, Any], point: Any) -> None: ...
    def note(self, text: str) -> None: ...
    def finish(
        self, status: Any, message: str, metrics: Mapping[str, Any] | None = None, point: Any = None
    ) -> None: ...


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
        Capabilities that the solver uses where they come along (ask `part.offers(name)`): from the function, or from
        an oracle that stands here for the needs. No oracle is ever chosen for them.
    at_least, at_most : int, int or None
        How many terms the slot takes; None means any number. Terms on disjoint blocks that are joined count as one.
    each : bool
        False: the terms are joined (summed, or separable on disjoint blocks) into one part. True: a tuple of parts.
    takes_map : bool
        True: a term f∘A stands here as f with `map(x)`, `adjoint(y)` and `norm` beside it. False: as f∘A. What is
        joined has no map: such a slot has `each`, or takes at most one term.
    accepts : Exactness
        The worst exactness that the solver can live with.
    empty : object
        What stands here when no term does; the zero function unless a family has none.
    refuses : callable, optional
        `refuses(function) -> str or None`: a reason why a function cannot stand here although it has what is needed,
        for a solver that reads functions (translates them) instead of evaluating them: `part.origin`.
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
    refuses: Callable[[Any], str | None] | None = None

    def __post_init__(self) -> None:
        if not self.needs:
            raise InputError(f"slot '{self.name}' needs nothing; name at least one capability")
        if self.at_least < 0 or (self.at_most is not None and self.at_most < max(1, self.at_least)):
            raise InputError(f"slot '{self.name}': at_least={self.at_least}, at_most={self.at_most} admit no term")
        if self.takes_map and not self.each and self.at_most != 1:
            raise InputError(f"slot '{self.name}' takes maps, which sums do not have: set each=True or at_most=1")

    def count(self, problem: Problem, terms: Sequence[Term]) -> int:
        """How many of the terms that it takes these are."""
        return len(terms) if self.each or self.takes_map else problem.units(terms)


class Finished(Exception):
    """Raised by `step` where there is no further iteration (every point of a grid was tried): the run ends as it is.

    Parameters
    ----------
    message : str
    status : Status, default converged
    """

    def __init__(self, message: str, status: Status = Status.converged) -> None:
        super().__init__(message)
        self.status = status


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
    families : tuple of str
        Families on whose problems the solver has the metric; empty for all that it takes.
    """

    get: Callable[[Any], Any] = _not_from_state
    requires: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    families: tuple[str, ...] = ()


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
    stops: ClassVar[Literal["evaluation", "iteration", "never"]] = "iteration"
    """Where a run can end: limits also between two evaluations, everything at the end of an iteration, or only where
    the solver's own loop ends by itself."""
    preference: ClassVar[int] = 0
    """Among solvers that take a problem equally well, the larger one is chosen when the user names none."""
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

    def advance(self, parts: Any, state: Any, steps: int) -> Any:
        """The state after `steps` iterations, at least one.

        Override it where many iterations at once cost less than one by one (a compiled loop, a device). The host
        calls it in place of `step` when a run checks every `check_every > 1` iterations; it must give the same bits
        as that many calls of `step`, and Ctrl-C waits for its end.
        """
        for _ in range(steps):
            state = self.step(parts, state)
        return state

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Ticker) -> Any:
        """For a loop that the solver does not own: run it, feed `monitor.tick`, stop when that says so."""
        raise NotImplementedError

    @property
    def advances(self) -> bool:
        """Whether this solver brings its own way of taking many steps at once."""
        return type(self).advance is not Solver.advance

    @property
    def drives(self) -> bool:
        """Whether this solver brings its own loop."""
        return type(self).drive is not Solver.drive

    def solution(self, state: Any) -> Any:
        """What the solver reports of a state. Says in its docstring which iterate that is."""
        return state["x"] if self.State is None else state.x

    def extras(self, state: Any) -> dict[str, Any]:
        """What to tell beyond the solution and the metrics, as a plain tree: it stands in `result.extras` under the
        solver's name and is saved with the result. Called once, with the last state; {} by default."""
        return {}

    def dump(self, state: Any) -> Any:
        """The state as a tree of dict / list / scalar / str / array / generator."""
        if dataclasses.is_dataclass(state):
            return {one.name: getattr(state, one.name) for one in dataclasses.fields(state)}
        return state

    def load(self, tree: Any, start: Any) -> Any:
        """The state from what `dump` gave; `start` is a fresh copy of the start, to be filled by in-place solvers."""
        return self.State(**tree) if self.State is not None else tree

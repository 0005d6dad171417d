"""Coherent coordinate descent as a solver."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.arrays import Array, like, norm
from infimum.errors import InfimumWarning, InputError
from infimum.schedule import Schedule
from infimum.solver import Metric, Slot, Solver
from infimum_cocd import buffer as buffers
from infimum_cocd.buffer import Buffer, Buffering
from infimum_cocd.checks import check_decay, check_positive
from infimum_cocd.coherent import Block, Difference, Init, Memory, Order, Positive, Unit
from infimum_cocd.theory import unstable

NAME = "cocd.descent"
Rate = Annotated[float, Gt(0)] | Literal["auto"] | Schedule


@dataclass(slots=True)
class DescentState:
    """A point, the buffer that was refreshed there, the step size of the next step, and what diagnostics say."""

    x: Array
    memory: Buffer
    lr: float
    k: int
    staleness: float
    bound: float | None
    slope: float | None
    effective: float


@dataclass(frozen=True, init=False, repr=False)
class Descent(Solver):
    """Minimize by values alone: descend along a gradient of which each step refreshes a block of B coordinates.

    `x+ = (1 - lr weight_decay) x - lr g`, where g is the buffer of `cocd.coherent`: decayed by `gamma`, B entries
    refreshed at x, the others reused as they are. gamma = 0 is block coordinate descent, B = n descent along the
    plain difference gradient. Reports `x`; the buffer has been refreshed at that same point, so B + 1 (forward) or
    2 B (central) values are spent at the start and at each step.

    With gamma = 1 an entry serves n/B steps, so the effective step is (n/B) lr. Comparing gamma = 1 with gamma = 0 at
    the same lr therefore compares unlike steps; tuned separately, neither wins everywhere.

    Metrics: `step` (lr), `effective_step`, `staleness`, `coherence`, `estimate_change`, `staleness_bound` as those of
    `cocd.coherent`; with forward differences `value`, which comes with them; with gamma = 1 and all entries kept
    `grad_norm`, the norm of the buffer, from the first full cycle on: before, it is no estimate of the gradient.

    Parameters
    ----------
    lr : float, "auto" or a schedule, default "auto"
        Step size. "auto" is 1/(L G) with a declared Lipschitz constant L of the gradient and the gain G =
        (1 - gamma^K)/(1 - gamma) by reuse, K for gamma = 1; K = n/B. A schedule is asked at k = 0, 1, …
    block : int or "auto", default "auto"
        Coordinates refreshed at each step, from 1 to n. "auto" is the square root of n, rounded.
    gamma : float, default 1.0
        Decay of the buffer at each step, from 0 (no reuse) to 1.
    memory : int, optional
        Only the entries of the last so many refreshes count; other coordinates are not moved. None keeps all n.
    order : {"cyclic", "shuffled cycle"}, default "cyclic"
        Coordinates in turn, or in a new random order in each cycle.
    difference : {"central", "forward"}, default "central"
        See `cocd.coherent`.
    eps : float, default 0.1
        Distance of the points, above 0.
    init : {"zeros", "full"} or list of n numbers, default "zeros"
        What the buffer holds at first. "full" refreshes all n coordinates at the start.
    weight_decay : float, default 0.0
        Decoupled decay of the coordinates that the buffer covers.

    Raises
    ------
    InputError
        Naming the option that does not fit and its value; for "auto" where no L is known.

    Warns
    -----
    InfimumWarning
        If the effective step exceeds 2/L, for a declared L; if eps is so small that rounding of f spoils differences.
    """

    lr: Rate
    buffering: Buffering
    weight_decay: float

    metrics: ClassVar[Mapping[str, Metric]] = {
        "step": Metric(attrgetter("lr")),
        "effective_step": Metric(attrgetter("effective")),
        "value": Metric(attrgetter("memory.value")),
        "grad_norm": Metric(attrgetter("slope")),
        "staleness": Metric(attrgetter("staleness")),
        "coherence": Metric(attrgetter("memory.cosine")),
        "estimate_change": Metric(attrgetter("memory.change")),
        "staleness_bound": Metric(attrgetter("bound")),
    }
    State: ClassVar[type] = DescentState
    preference: ClassVar[int] = -3
    """For those who name it: with values alone, methods that model or compare them need fewer."""

    def __init__(
        self,
        lr: Rate = "auto",
        block: Block = "auto",
        gamma: Unit = 1.0,
        memory: Memory = None,
        order: Order = "cyclic",
        difference: Difference = "central",
        eps: Positive = 0.1,
        init: Init = "zeros",
        weight_decay: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        if lr != "auto" and not callable(lr):
            check_positive(lr, "lr", NAME)
        check_decay(weight_decay, NAME)
        first = init if isinstance(init, str) else tuple(map(float, init))
        object.__setattr__(self, "lr", lr)
        object.__setattr__(self, "buffering", Buffering(block, gamma, memory, order, difference, eps, first, NAME))
        object.__setattr__(self, "weight_decay", weight_decay)
        object.__setattr__(self, "metrics", self._known())

    def _known(self) -> dict[str, Metric]:
        """The metrics that these options have."""
        whole, cyclic = self.buffering.whole(), self.buffering.order == "cyclic"
        absent = {
            *(() if self._forward else ("value",)),
            *(() if whole else ("grad_norm",)),
            *(() if whole and cyclic else ("staleness_bound",)),
        }
        return {name: one for name, one in type(self).metrics.items() if name not in absent}

    def __repr__(self) -> str:
        o = self.buffering
        names = ("block", "gamma", "memory", "order", "difference", "eps", "init")
        shown = ", ".join(f"{name}={getattr(o, name)!r}" for name in names)
        return f"Descent(lr={self.lr!r}, {shown}, weight_decay={self.weight_decay!r})"

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Options that the conformance kit tries."""
        return [
            {"lr": 0.05},
            {"lr": 0.05, "gamma": 0.0, "weight_decay": 0.1},
            {"lr": 0.05, "difference": "forward", "eps": 1e-6, "order": "shuffled cycle"},
            {"lr": 0.05, "memory": 3, "block": 2},
        ]

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("objective", needs=("value",), wants=("values",), at_least=1),)

    def check(self, parts: Any) -> None:
        shape = parts.objective.shape
        if shape is None:
            return
        n = math.prod(shape)
        block, memory = self.buffering.sizes(n)
        lr, constant = self._rate(parts, n), parts.objective.lipschitz
        text = unstable(n, block, self.buffering.gamma, memory, lr, constant)
        if text is not None:
            warnings.warn(f"{NAME}: {text}", InfimumWarning, stacklevel=2)

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> DescentState:
        seed = int(rng.integers(2**63))
        first = buffers.start(self.buffering, parts.objective, start, seed, self._forward)
        return self._state(parts, start, first, self._rate(parts, math.prod(start.shape)), 0)

    def step(self, parts: Any, state: DescentState) -> DescentState:
        lr, old = state.lr, state.memory
        x = (-lr) * old.estimate
        x += self._shrunk(state.x, old, lr)
        new = buffers.refresh(self.buffering, parts.objective, old, x, self._forward)
        k = state.k + 1
        return self._state(parts, x, new, float(self.lr(k)) if callable(self.lr) else lr, k)

    @property
    def _forward(self) -> bool:
        return self.buffering.difference == "forward"

    def _rate(self, parts: Any, n: int) -> float:
        """The first step size as a number."""
        if callable(self.lr):
            return float(self.lr(0))
        if not isinstance(self.lr, str):
            return float(self.lr)
        constant = parts.objective.lipschitz
        if constant is None:
            raise InputError(
                f"{NAME}: lr='auto' is 1/(L G), but no Lipschitz constant L of the gradient of what stands in slot "
                "'objective' is known; declare it on the function (lipschitz=L) or give a number as lr"
            )
        return 1.0 / (constant * self.buffering.gain(n)) if constant > 0 else 1.0

    def _shrunk(self, x: Array, memory: Buffer, lr: float) -> Array:
        """x after weight decay; the same array where there is none."""
        if not self.weight_decay:
            return x
        factor = 1.0 - lr * self.weight_decay
        held = buffers.covered(self.buffering, memory)
        if held is None:
            return factor * x
        weight = np.reshape(np.where(held, factor, 1.0), tuple(x.shape))
        return x * like(weight, x)

    def _state(self, parts: Any, x: Array, memory: Buffer, lr: float, k: int) -> DescentState:
        o = self.buffering
        n = memory.serial.size
        whole = o.whole() and buffers.cycled(memory)
        return DescentState(
            x,
            memory,
            lr,
            k,
            buffers.oldest(o, memory),
            buffers.bound(o, memory, parts.objective.lipschitz),
            norm(memory.estimate) if whole else None,
            o.gain(n) * lr,
        )

    def dump(self, state: DescentState) -> Any:
        tree = {one.name: getattr(state, one.name) for one in dataclasses.fields(state)}
        kept = state.memory
        return {**tree, "memory": {one.name: getattr(kept, one.name) for one in dataclasses.fields(kept)}}

    def load(self, tree: Any, start: Any) -> Any:
        return DescentState(**{**tree, "memory": Buffer(**tree["memory"])})

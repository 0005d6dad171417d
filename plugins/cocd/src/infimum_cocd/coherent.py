"""The coherent gradient as an oracle."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Le

from infimum.arrays import Array, copy
from infimum.errors import InfimumWarning
from infimum.oracle import Oracle
from infimum_cocd import buffer as buffers
from infimum_cocd.buffer import Buffer, Buffering

NAME = "cocd.coherent"

Block = Annotated[int, Ge(1)] | Literal["auto"]
Unit = Annotated[float, Ge(0), Le(1)]
Memory = Annotated[int, Ge(1)] | None
Order = Literal["cyclic", "shuffled cycle"]
Difference = Literal["central", "forward"]
Positive = Annotated[float, Gt(0)]
Init = Literal["zeros", "full"] | tuple[float, ...]


@dataclass(frozen=True)
class Coherent(Oracle):
    """Gradient of which each call refreshes one block of B coordinates; the others are reused from earlier points.

    At each call at a point x the buffer g is multiplied by `gamma`, then its next B entries become difference
    quotients at x, and all of g is the gradient. With gamma = 1 an entry is used for K = n/B calls, so a step of
    length t acts like one of length K t: a part that knows n and a Lipschitz constant L of its function passes
    (1 - gamma^K)/(1 - gamma) L on (K L for gamma = 1), so that the steps that solvers derive from L fit. B = n is the
    plain difference gradient, gamma = 0 block coordinate descent.

    `central` asks for 2 B values a call (one more if the solver wants the value at x too), `forward` for B + 1 of
    which one is the value at x. Central differences are exact for quadratics at any eps and see f averaged over
    [-eps, eps] along each axis, which smooths ripples that are short beside eps; forward differences are off by
    about eps/2 times the curvature, so give them a small eps. Where the function offers `values`, points go to it in
    batches of at most 32 MiB.

    Metrics: `staleness` (age in calls of the oldest entry), `coherence` (cosine of the last two estimates),
    `estimate_change` (norm of their difference), `staleness_bound` (Theorem 5.3: the 1-norm of the error against
    differences at x is at most this; with the declared L, else the largest one measured on the way, which is then an
    estimate; from the first full cycle on, with gamma = 1, all entries kept and cyclic order only).

    Parameters
    ----------
    block : int or "auto", default "auto"
        Coordinates refreshed at each call, from 1 to n. "auto" is the square root of n, rounded.
    gamma : float, default 1.0
        Decay of the buffer at each call, from 0 (no reuse) to 1.
    memory : int, optional
        Only the entries of the last so many refreshes count, the others are 0. None keeps all n.
    order : {"cyclic", "shuffled cycle"}, default "cyclic"
        Coordinates in turn, or in a new random order in each cycle.
    difference : {"central", "forward"}, default "central"
        From 2 B values or from B + 1.
    eps : float, default 0.1
        Distance of the points, above 0, the same for all coordinates.
    init : {"zeros", "full"} or list of n numbers, default "zeros"
        What the buffer holds at first. "full" refreshes all n coordinates at the first call.

    Raises
    ------
    InputError
        Naming the option that does not fit and its value.

    Warns
    -----
    InfimumWarning
        If eps is so small that rounding of f spoils the differences; if L is known but not the shape of x.

    References
    ----------
    C. Liang, X. Sun, Q. Wang, D. Rakita, "Turning stale gradients into stable gradients: coherent coordinate descent
    with implicit landscape smoothing for lightweight zeroth-order optimization", ICML 2026, arXiv 2605.14373.
    """

    block: Block = "auto"
    gamma: Unit = 1.0
    memory: Memory = None
    order: Order = "cyclic"
    difference: Difference = "central"
    eps: Positive = 0.1
    init: Init = "zeros"

    kind: ClassVar[str] = "zeroth-order"
    preference: ClassVar[int] = -1
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient", "value_and_gradient")
    metrics: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "staleness": attrgetter("staleness"),
        "coherence": attrgetter("coherence"),
        "estimate_change": attrgetter("estimate_change"),
        "staleness_bound": attrgetter("staleness_bound"),
    }

    def __post_init__(self) -> None:
        if not isinstance(self.init, str):
            object.__setattr__(self, "init", tuple(map(float, self.init)))
        options = self._checked()
        if not options.whole() or options.order != "cyclic":
            known = {name: get for name, get in type(self).metrics.items() if name != "staleness_bound"}
            object.__setattr__(self, "metrics", known)

    def _checked(self) -> Buffering:
        given = (self.block, self.gamma, self.memory, self.order, self.difference, self.eps, self.init)
        return Buffering(*given, NAME)

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Options that the conformance kit tries."""
        return [
            {},
            {"difference": "forward", "eps": 1e-6, "block": 2, "order": "shuffled cycle"},
            {"gamma": 1.0, "block": 5, "init": "full"},
        ]

    def bind(self, function: Any, rng: np.random.Generator) -> CoherentPart:
        return CoherentPart(self._checked(), function, int(rng.integers(2**63)))


class CoherentPart:
    """A function with a coherent gradient; `buffer` is None before the first call."""

    def __init__(self, options: Buffering, function: Any, seed: int) -> None:
        self.options, self.function, self.seed = options, function, seed
        self.buffer: Buffer | None = None
        self._declared: float | None = getattr(function, "lipschitz", None)
        shape = getattr(function, "shape", None)
        self._shape: tuple[int, ...] | None = None if shape is None else tuple(shape)

    @property
    def lipschitz(self) -> float | None:
        """The function's constant times the gain by reuse, or None where one of them is not known."""
        if self._declared is None or self._shape is None:
            return None
        return self._declared * self.options.gain(math.prod(self._shape))

    def gradient(self, x: Array) -> Array:
        """The estimate after a refresh at x, in the shape and dtype of x."""
        return copy(self._refresh(x, False).estimate)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The value at x and the estimate after a refresh there."""
        new = self._refresh(x, True)
        assert new.value is not None
        return new.value, copy(new.estimate)

    def _refresh(self, x: Array, with_value: bool) -> Buffer:
        x = copy(x)
        if self.buffer is None:
            new = buffers.start(self.options, self.function, x, self.seed, with_value)
            self._warn_of_steps(math.prod(x.shape))
        else:
            new = buffers.refresh(self.options, self.function, self.buffer, x, with_value)
        # Kept only now: a query that failed leaves the buffer as it was.
        self.buffer = new
        return new

    def _warn_of_steps(self, n: int) -> None:
        factor = self.options.gain(n)
        if self._declared and self._shape is None and factor > 1.0:
            warnings.warn(
                f"{NAME}: the function declares lipschitz={self._declared:.4g} but no shape, so a step taken from it "
                f"is {factor:.3g} times too long for entries that are reused; declare shape=({n},)",
                InfimumWarning,
                stacklevel=4,
            )

    @property
    def staleness(self) -> float | None:
        """Age in calls of the oldest entry that counts; never refreshed ones date from before the first call."""
        return None if self.buffer is None else buffers.oldest(self.options, self.buffer)

    @property
    def ages(self) -> np.ndarray | None:
        """Age in calls of every entry, shape (n,)."""
        if self.buffer is None:
            return None
        return buffers.age(self.buffer, self.options.sizes(self.buffer.serial.size)[0])

    @property
    def coherence(self) -> float | None:
        """Cosine between the last two estimates."""
        return None if self.buffer is None else self.buffer.cosine

    @property
    def estimate_change(self) -> float | None:
        """Norm of the difference of the last two estimates."""
        return None if self.buffer is None else self.buffer.change

    @property
    def staleness_bound(self) -> float | None:
        """Theorem 5.3 at the last call, or None where it does not hold."""
        return None if self.buffer is None else buffers.bound(self.options, self.buffer, self._declared)

    def state_dict(self) -> dict[str, Any]:
        kept = self.buffer
        tree = None if kept is None else {one.name: getattr(kept, one.name) for one in dataclasses.fields(kept)}
        return {"seed": self.seed, "buffer": tree}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seed = int(state["seed"])
        self.buffer = None if state["buffer"] is None else Buffer(**state["buffer"])

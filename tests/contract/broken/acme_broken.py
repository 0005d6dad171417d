"""Small components, each with one fault; those called sound have none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from infimum import Composite, Exactness, Metric, Oracle, Problem, Slot, Solver, Status, StoppingRule, Term
from infimum.arrays import norm
from infimum.constraints import Constraint
from infimum.functions import Function
from infimum.stopping import Reason

CALLS = {"n": 0}
BUFFER: dict[str, Any] = {}


@dataclass(frozen=True)
class Sound(Solver):
    """Gradient descent with momentum.

    Parameters
    ----------
    step_size : float, default 0.05
        Step.
    """

    step_size: float = 0.05

    metrics: ClassVar = {"grad_norm": Metric(lambda state: norm(state["g"]))}

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", needs=("gradient",), at_least=1),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "g": parts.smooth.gradient(start), "v": 0.0 * start, "rng": rng}

    def step(self, parts: Any, state: Any) -> Any:
        v = 0.5 * state["v"] - self.step_size * state["g"]
        x = state["x"] + v
        return {**state, "x": x, "v": v, "g": parts.smooth.gradient(x)}


class MutatesStart(Sound):
    """Moves the array of its state, which is x0, in place."""

    def step(self, parts: Any, state: Any) -> Any:
        x = state["x"]
        x -= self.step_size * state["g"]
        return {**state, "x": x, "g": parts.smooth.gradient(x)}


class GlobalState(Sound):
    """Counts its steps in the module."""

    def step(self, parts: Any, state: Any) -> Any:
        CALLS["n"] += 1
        new = super().step(parts, state)
        return {**new, "x": new["x"] + 1e-9 * (CALLS["n"] % 7)}


@dataclass(frozen=True)
class OwnState(Sound):
    """Counts its steps in the object."""

    memory: dict = field(default_factory=lambda: {"n": 0}, init=False)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        self.memory["n"] = 0
        return super().init(parts, start, rng)

    def step(self, parts: Any, state: Any) -> Any:
        self.memory["n"] += 1
        new = super().step(parts, state)
        return {**new, "x": new["x"] + 1e-9 * self.memory["n"]}


class Forgets(Sound):
    """Leaves its momentum out of what it dumps."""

    def dump(self, state: Any) -> Any:
        return {name: one for name, one in state.items() if name != "v"}

    def load(self, tree: Any, start: Any) -> Any:
        return {**tree, "v": 0.0 * tree["x"]}


class GlobalDraws(Sound):
    """Draws from NumPy's global generator."""

    def step(self, parts: Any, state: Any) -> Any:
        new = super().step(parts, state)
        return {**new, "x": new["x"] + 1e-9 * np.random.standard_normal()}


class VectorMetric(Sound):
    """Has a metric that is an array."""

    metrics: ClassVar = {"grad_norm": Metric(lambda state: state["g"])}


class StepsWithoutState(Sound):
    """Keeps its generator out of reach of a checkpoint's copy: draws change the old state."""

    def step(self, parts: Any, state: Any) -> Any:
        new = super().step(parts, state)
        return {**new, "x": new["x"] + 1e-9 * float(state["rng"].standard_normal())}


class Deaf(Sound):
    """A loop of its own that hears no stop."""

    metrics: ClassVar = {"value": Metric()}
    resume = "none"

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Any) -> Any:
        x = start
        for _ in range(30):
            monitor.tick({"value": float((x * x).sum())}, x)
            x = x - self.step_size * parts.smooth.gradient(x)
        return {"x": x}


class Countdown(Problem):
    """A family of its own, whose points are numbers of stones."""

    family = "acme countdown"

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term("stones", Stones()),)

    def start(self, rng: np.random.Generator) -> int:
        return 9


class Stones:
    """Takes a stone away."""

    capabilities = frozenset({"fewer"})

    def fewer(self, n: int) -> int:
        return max(n - 1, 0)


@dataclass(frozen=True)
class SoundCounter(Solver):
    """Counts down to zero; says on which problem the kit may try it."""

    families = ("acme countdown",)
    metrics: ClassVar = {"residual": Metric(lambda state: float(state["x"]))}
    reference_problems = ("acme.countdown",)

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("stones", needs=("fewer",), at_least=1, empty=None),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start}

    def step(self, parts: Any, state: Any) -> Any:
        return {"x": parts.stones.fewer(state["x"])}


class NeverSeen(Sound):
    """Wants what no problem of the kit has."""

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", needs=("acme_magic",), at_least=1),)


@dataclass(frozen=True)
class SoundOracle(Oracle):
    """Central differences.

    Parameters
    ----------
    width : float, default 1e-5
        Step.
    """

    width: float = 1e-5

    supplies = ("gradient",)
    supports = ("numpy", "float32")
    part = None

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return (self.part or Differences)(function, self.width)


class Differences:
    def __init__(self, function: Any, width: float) -> None:
        self.function, self.width = function, width

    def gradient(self, x: Any) -> Any:
        g = np.empty_like(x)
        for i in range(x.size):
            d = np.zeros_like(x)
            d[i] = self.width
            g[i] = (float(self.function.value(x + d)) - float(self.function.value(x - d))) / (2 * self.width)
        return g


class SharedDifferences(Differences):
    def gradient(self, x: Any) -> Any:
        old = BUFFER.get("g", 0.0)
        BUFFER["g"] = super().gradient(x)
        return BUFFER["g"] + 1e-3 * old


class SharedBuffer(SoundOracle):
    """All of its parts average over one buffer of the module."""

    part = SharedDifferences


class ReusedDifferences(Differences):
    out = None

    def gradient(self, x: Any) -> Any:
        g = super().gradient(x)
        if self.out is None:
            self.out = g
        self.out[:] = g
        return self.out


class ReusedArray(SoundOracle):
    """Returns the same array each time."""

    part = ReusedDifferences


class RememberingDifferences(Differences):
    old: Any = 0.0

    def gradient(self, x: Any) -> Any:
        g = super().gradient(x)
        mixed = g + 1e-3 * self.old
        self.old = g
        return mixed


class HiddenMemory(SoundOracle):
    """Has state that no checkpoint sees."""

    part = RememberingDifferences


class Eager(SoundOracle):
    """Evaluates when it is bound."""

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        function.value(np.zeros(5))
        return super().bind(function, rng)


class DoubledDifferences(Differences):
    def gradient(self, x: Any) -> Any:
        return 2.0 * super().gradient(x)


class Doubled(SoundOracle):
    """Twice the gradient."""

    part = DoubledDifferences


class HalfProxPart:
    def __init__(self, function: Any) -> None:
        self.function = function

    def prox(self, v: Any, t: float) -> Any:
        x = v.copy()
        for _ in range(400):
            # Where the definition has (x - v) / t.
            x = x - 0.02 * (2.0 * (x - v) / t + self.function.gradient(x))
        return x


class HalfProx(SoundOracle):
    """The prox by gradient steps, with the quadratic counted twice."""

    needs = ("gradient",)
    supplies = ("prox",)
    exactness = Exactness.tolerance

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return HalfProxPart(function)


@dataclass(frozen=True)
class LooseBall(Constraint):
    """The unit ball, with projections that end outside of it."""

    provides = ("violation", "project")
    convex = True

    def violation(self, x: Any) -> float:
        return max(norm(x) - 1.0, 0.0)

    def project(self, x: Any) -> Any:
        return x * (1.1 / max(norm(x), 1.1))


def wrong_prox() -> Composite:
    """The l1 norm with a prox of twice the step."""

    def prox(v: Any, t: float) -> Any:
        return np.sign(v) * np.maximum(np.abs(v) - 2.0 * t, 0.0)

    return Composite({"l1": Function(lambda x: float(np.abs(x).sum()), prox=prox, convex=True)}, start=np.ones(3))


class Moving(Composite):
    """A start from a global counter."""

    def start(self, rng: np.random.Generator) -> Any:
        CALLS["n"] += 1
        return np.full(3, float(CALLS["n"]))


def moving_start() -> Composite:
    """Squares, from a start that differs at every call."""
    return Moving(Function(lambda x: float(x @ x), gradient=lambda x: 2.0 * x))


@dataclass(frozen=True, repr=False)
class SharedTracker(StoppingRule):
    """Fires at the n-th check of all runs together.

    Parameters
    ----------
    n : int
        Number of checks.
    """

    n: int

    status = Status.limit
    limit = True
    seen: ClassVar = {"n": 0}

    def start(self) -> SharedTracker:
        return self

    def update(self, progress: Any) -> Any:
        self.seen["n"] += 1
        return Reason(str(self), Status.limit, "enough", {}) if self.seen["n"] % 5 == 0 else None

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


@dataclass(frozen=True)
class Level:
    """A constant."""

    number: float = 1.0

    def __call__(self, k: int) -> float:
        return self.number


def open_options(**options: float) -> Level:
    """A constant, whatever is asked for."""
    return Level()


def bare(number: float = 1.0) -> Level:
    """A constant."""
    return Level(number)

"""Small solvers and oracles that show what the plan hands them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from infimum import Exactness, Function, Metric, Oracle, Slot, Solver
from infimum.plan.match import Choice
from infimum.plugins.records import Component, PluginRecord
from infimum.plugins.registry import Registry

# Functions: 1/2 ||x||^2 in pieces.
HALF_SQUARE: dict[str, Any] = {
    "value": lambda x: 0.5 * float(x @ x),
    "values": lambda X: 0.5 * np.sum(X * X, axis=1),
    "gradient": lambda x: 1.0 * x,
    "value_and_gradient": lambda x: (0.5 * float(x @ x), 1.0 * x),
    "hvp": lambda x, v: 1.0 * v,
    "prox": lambda v, t: v / (1.0 + t),
    "prox_conjugate": lambda v, s: v / (1.0 + s),
    "subgradient": lambda x: 1.0 * x,
    "residual": lambda x: 1.0 * x,
}


def half_square(*capabilities: str, **facts: Any) -> Function:
    """1/2 ||x||^2, offering just these capabilities."""
    return Function(**{name: HALF_SQUARE[name] for name in capabilities}, **facts)


# Oracles.
@dataclass(frozen=True)
class Lifting(Oracle):
    """Supplies what it is told to, for 1/2 ||x||^2, and remembers what it was bound to."""

    needs: tuple[str, ...] = ("value",)
    supplies: tuple[str, ...] = ("gradient",)
    exactness: Exactness = Exactness.approximate
    wants: tuple[str, ...] = ()
    refusal: str | None = None
    resume: str = "exact"
    lipschitz: float | None = None
    bound: list[Any] = field(default_factory=list, compare=False)

    def refuses(self, function: Any) -> str | None:
        return self.refusal

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        self.bound.append(function)
        return LiftingPart(self, function, rng)


class LiftingPart:
    def __init__(self, oracle: Lifting, function: Any, rng: np.random.Generator) -> None:
        self.function, self.rng, self.sizes = function, rng, []
        if oracle.lipschitz is not None:
            self.lipschitz = oracle.lipschitz
        for name in oracle.supplies:
            setattr(self, name, self._supply(name, oracle.needs))

    def _supply(self, name: str, needs: tuple[str, ...]) -> Any:
        def supplied(x: Any, *more: Any) -> Any:
            self.sizes.append(np.shape(x))
            for need in needs:
                getattr(self.function, need)(x)
            return HALF_SQUARE[name](x, *more)

        return supplied


@dataclass(frozen=True)
class ToGradient(Oracle):
    """An approximate gradient from values, by central differences."""

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)
    exactness: ClassVar[Exactness] = Exactness.approximate

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return _Differences(function)


class _Differences:
    def __init__(self, function: Any) -> None:
        self.function = function

    def gradient(self, x: Any) -> Any:
        h, eye = 1e-5, np.eye(x.size)
        return np.array([(self.function.value(x + h * e) - self.function.value(x - h * e)) / (2 * h) for e in eye])


@dataclass(frozen=True)
class ToProx(Oracle):
    """A stochastic prox from values."""

    kind: ClassVar[str] = "proximal"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ("prox",)
    exactness: ClassVar[Exactness] = Exactness.stochastic

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return _Sampled(function, rng)


class _Sampled:
    def __init__(self, function: Any, rng: np.random.Generator) -> None:
        self.function, self.rng = function, rng

    def prox(self, v: Any, t: float) -> Any:
        points = [v, *(v + np.sqrt(t) * self.rng.standard_normal((20, v.size)))]
        return min(points, key=lambda u: self.function.value(u) + float((u - v) @ (u - v)) / (2 * t))


def choice(oracle: Oracle, name: str = "toy.oracle", named: bool = True) -> Choice:
    return Choice(name, oracle, named)


# Solvers.
@dataclass(frozen=True)
class Slots(Solver):
    """Any slots; takes no step that changes anything."""

    given: tuple[Slot, ...] = ()

    def slots(self) -> tuple[Slot, ...]:
        return self.given

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start}

    def step(self, parts: Any, state: Any) -> Any:
        return state


@dataclass(frozen=True)
class Descent(Solver):
    """Gradient steps; reports the value where it comes along."""

    step_size: float = 0.1

    metrics: ClassVar[dict[str, Metric]] = {
        "value": Metric(lambda state: state["value"], {"smooth": ("value_and_gradient",)}),
        "grad_norm": Metric(lambda state: float(np.linalg.norm(state["gradient"]))),
    }

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", needs=("gradient",), wants=("value_and_gradient",), at_least=1),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return self._at(parts, start)

    def step(self, parts: Any, state: Any) -> Any:
        return self._at(parts, state["x"] - self.step_size * state["gradient"])

    @staticmethod
    def _at(parts: Any, x: Any) -> Any:
        if parts.smooth.offers("value_and_gradient"):
            value, gradient = parts.smooth.value_and_gradient(x)
            return {"x": x, "value": value, "gradient": gradient}
        return {"x": x, "value": None, "gradient": parts.smooth.gradient(x)}


@dataclass(frozen=True)
class ForwardBackward(Solver):
    """A gradient step on the smooth terms, then the prox of the rest."""

    step_size: float | None = None

    metrics: ClassVar[dict[str, Metric]] = {"residual": Metric(lambda state: state["moved"])}

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", needs=("gradient",), at_least=1), Slot("rest", needs=("prox",), at_most=1))

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "moved": None, "t": self.step_size or 1.0 / parts.smooth.lipschitz}

    def step(self, parts: Any, state: Any) -> Any:
        t, old = state["t"], state["x"]
        x = parts.rest.prox(old - t * parts.smooth.gradient(old), t)
        return {"x": x, "moved": float(np.linalg.norm(x - old)) / t, "t": t}


@dataclass(frozen=True)
class TwoProxes(Solver):
    """Douglas-Rachford."""

    step_size: float = 1.0
    accepts: Exactness = Exactness.stochastic

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("first", needs=("prox",), at_least=1, at_most=1, accepts=self.accepts),
            Slot("second", needs=("prox",), at_most=1, accepts=self.accepts),
        )

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "z": start}

    def step(self, parts: Any, state: Any) -> Any:
        x = parts.first.prox(state["z"], self.step_size)
        y = parts.second.prox(2.0 * x - state["z"], self.step_size)
        return {"x": x, "z": state["z"] + y - x}


@dataclass(frozen=True)
class PrimalDual(Solver):
    """Chambolle-Pock: the prox of one term, and any number of f(A x) by the prox of f* and the map A."""

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("primal", needs=("prox",), at_most=1),
            Slot("dual", needs=("prox_conjugate",), each=True, takes_map=True),
        )

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        size = np.sqrt(sum(part.norm**2 for part in parts.dual)) or 1.0
        return {"x": start, "ahead": start, "y": [0.0 * part.map(start) for part in parts.dual], "t": 0.99 / size}

    def step(self, parts: Any, state: Any) -> Any:
        x, t, y = state["x"], state["t"], []
        for part, dual in zip(parts.dual, state["y"], strict=True):
            y.append(part.prox_conjugate(dual + t * part.map(state["ahead"]), t))
        back = sum((part.adjoint(dual) for part, dual in zip(parts.dual, y, strict=True)), 0.0 * x)
        new = parts.primal.prox(x - t * back, t)
        return {"x": new, "ahead": 2.0 * new - x, "y": y, "t": t}


@dataclass(frozen=True)
class Broken(Solver):
    """Cannot be made without an option."""

    must: float

    def slots(self) -> tuple[Slot, ...]:
        return ()


def make_registry(*more: Component) -> Registry:
    """A registry of the toys: three solvers, two oracles, two sets and the stopping rules of the host."""
    from infimum.plugins.registry import build_registry

    core = list(build_registry([]).components())
    table = {
        "solver": {"descent": "Descent", "forward_backward": "ForwardBackward", "two_proxes": "TwoProxes"},
        "oracle": {"to_gradient": "ToGradient", "to_prox": "ToProx"},
    }
    toys = [
        Component(f"toy.{name}", kind, f"toys:{target}", plugin="toy", distribution="infimum-toy")
        for kind, names in table.items()
        for name, target in names.items()
    ]
    return Registry([PluginRecord("toy", "infimum-toy", "1.0", "active", components=(*toys, *core, *more))])

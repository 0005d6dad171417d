"""Six very different plugins, each as small as can be: a special case for one in the host means a wrong contract."""

from __future__ import annotations

import copy
import fnmatch
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from infimum import Exactness, Metric, Oracle, Problem, Slot, Solver, Status, StoppingRule, Term
from infimum.stopping import UNKNOWN, Progress, Reason


# 1. A stochastic proximal oracle with random state of its own.
@dataclass(frozen=True)
class SampledProx(Oracle):
    """Proximal point by weighted sampling around v."""

    samples: int = 50
    delta: float = 0.1

    kind: ClassVar[str] = "proximal"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ("prox",)
    exactness: ClassVar[Exactness] = Exactness.stochastic

    def bind(self, function: Any, rng: np.random.Generator) -> SampledProxPart:
        return SampledProxPart(self, function, rng)


class SampledProxPart:
    def __init__(self, options: SampledProx, function: Any, rng: np.random.Generator) -> None:
        self.options, self.function, self.rng = options, function, rng
        self.draws = 0

    def prox(self, v: np.ndarray, t: float) -> np.ndarray:
        o = self.options
        points = v + np.sqrt(o.delta * t) * self.rng.standard_normal((o.samples, v.size))
        scores = np.array([-self.function.value(one) / o.delta for one in points])
        weights = np.exp(scores - scores.max())
        self.draws += o.samples
        return weights @ points / weights.sum()

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng, "draws": self.draws}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng, self.draws = state["rng"], state["draws"]


# 2. A zeroth-order oracle whose buffer lives from call to call.
@dataclass(frozen=True)
class Buffered(Oracle):
    """Refreshes `block` coordinates of a remembered gradient at each call."""

    block: int = 2
    eps: float = 1e-6

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)

    def bind(self, function: Any, rng: np.random.Generator) -> BufferedPart:
        return BufferedPart(self, function)


class BufferedPart:
    def __init__(self, options: Buffered, function: Any) -> None:
        self.options, self.function = options, function
        self.buffer: np.ndarray | None = None
        self.cursor = 0

    def gradient(self, x: np.ndarray) -> np.ndarray:
        o = self.options
        buffer = np.zeros_like(x) if self.buffer is None else self.buffer.copy()
        base = self.function.value(x)
        for k in range(self.cursor, self.cursor + o.block):
            shifted = x.copy()
            shifted[k % x.size] += o.eps
            buffer[k % x.size] = (self.function.value(shifted) - base) / o.eps
        self.buffer, self.cursor = buffer, (self.cursor + o.block) % x.size
        return buffer

    def state_dict(self) -> dict[str, Any]:
        return {"buffer": self.buffer, "cursor": self.cursor}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.buffer, self.cursor = state["buffer"], state["cursor"]


# 3. An in-place optimizer over many torch parameters, with constraints by parameter pattern.
class ModuleLoss:
    """Mean squared error of a module; `backward` fills the gradients and returns the loss."""

    capabilities = frozenset({"backward"})

    def __init__(self, inputs: Any, targets: Any) -> None:
        self.inputs, self.targets = inputs, targets

    def backward(self, module: Any) -> float:
        module.zero_grad(set_to_none=True)
        loss = ((module(self.inputs) - self.targets) ** 2).mean()
        loss.backward()
        return loss.item()


class UnitRows:
    """Rows of unit norm, as a feasible step in place."""

    capabilities = frozenset({"step"})

    def step(self, x: Any, d: Any) -> Any:
        moved = x + d
        return moved / moved.norm(dim=1, keepdim=True)


class Training(Problem):
    family = "citizen training"

    def __init__(self, module: Any, loss: ModuleLoss, sets: dict[str, UnitRows]) -> None:
        self.module = module
        names = [name for name, _ in module.named_parameters()]
        for pattern in sets:
            if not fnmatch.filter(names, pattern):
                raise ValueError(f"pattern {pattern!r} matches no parameter of {names}")
        self._terms = (
            Term("loss", loss),
            *(Term(f"set {pattern}", one, on=pattern, role="constraint") for pattern, one in sets.items()),
        )

    @property
    def terms(self) -> tuple[Term, ...]:
        return self._terms

    @property
    def merit(self) -> str:
        return "value"

    def start(self, rng: np.random.Generator) -> Any:
        return self.module

    def prepare(self, start: Any) -> Any:
        return copy.deepcopy(start)

    def copy(self, point: Any) -> Any:
        return copy.deepcopy(point)

    def dump(self, point: Any) -> Any:
        return dict(point.state_dict())

    def load(self, tree: Any) -> Any:
        module = copy.deepcopy(self.module)
        module.load_state_dict(tree)
        return module


@dataclass(frozen=True)
class InPlaceSGD(Solver):
    lr: float = 0.1

    families: ClassVar[tuple[str, ...]] = ("citizen training",)
    metrics: ClassVar[dict[str, Metric]] = {"value": Metric(lambda state: state["value"])}
    inplace: ClassVar[bool] = True

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("loss", needs=("backward",), at_least=1, at_most=1, empty=None),
            Slot("sets", needs=("step",), each=True, empty=None),
        )

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "value": parts.loss.backward(start)}

    def step(self, parts: Any, state: Any) -> Any:
        import torch

        with torch.no_grad():
            for name, parameter in state["x"].named_parameters():
                delta = -self.lr * parameter.grad
                held = [one for one in parts.sets if fnmatch.fnmatch(name, one.on)]
                parameter.copy_(held[0].step(parameter, delta) if held else parameter + delta)
        state["value"] = parts.loss.backward(state["x"])
        return state

    def dump(self, state: Any) -> Any:
        gradients = {name: one.grad for name, one in state["x"].named_parameters()}
        return {"x": dict(state["x"].state_dict()), "gradients": gradients, "value": state["value"]}

    def load(self, tree: Any, start: Any) -> Any:
        start.load_state_dict(tree["x"])
        for name, parameter in start.named_parameters():
            parameter.grad = tree["gradients"][name]
        return {"x": start, "value": tree["value"]}


# 4. A stopping rule that also runs inside a foreign loop that only has callbacks.
@dataclass(frozen=True, repr=False)
class Plateau(StoppingRule):
    """Fires when the metric `value` has moved by less than `tol` for `window` iterations."""

    window: int
    tol: float = 1e-3

    needs: ClassVar[tuple[str, ...]] = ("value",)
    status: ClassVar[Status] = Status.stalled

    def start(self) -> PlateauTracker:
        return PlateauTracker(self)


class PlateauTracker:
    def __init__(self, rule: Plateau) -> None:
        self.rule = rule
        self.recent: list[float] = []

    def update(self, progress: Progress) -> Any:
        value = progress.metrics.get("value")
        if value is None:
            return UNKNOWN
        self.recent = [*self.recent, float(value)][-self.rule.window :]
        spread = max(self.recent) - min(self.recent)
        if len(self.recent) < self.rule.window or spread >= self.rule.tol:
            return None
        return Reason(str(self.rule), Status.stalled, f"value moved by {spread:.3g}", {"spread": spread})

    def state_dict(self) -> dict[str, Any]:
        return {"recent": self.recent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.recent = list(state["recent"])


# 5. A loop that is not ours.
@dataclass(frozen=True)
class Minimize(Solver):
    """`scipy.optimize.minimize` under our monitor."""

    method: str = "L-BFGS-B"

    metrics: ClassVar[dict[str, Metric]] = {"value": Metric()}
    resume: ClassVar[str] = "none"

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", needs=("value_and_gradient",), at_least=1),)

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Any) -> Any:
        from scipy.optimize import minimize

        if monitor.tick({"value": parts.smooth.value_and_gradient(start)[0]}, start):
            return {"x": start}

        def tell(intermediate_result: Any) -> None:
            if monitor.tick({"value": float(intermediate_result.fun)}, intermediate_result.x):
                raise StopIteration

        out = minimize(parts.smooth.value_and_gradient, start, jac=True, method=self.method, callback=tell)
        monitor.finish(Status.converged if out.success else Status.stalled, out.message)
        return {"x": out.x}


# 6. A solver without any x to minimize over: roots, a policy, a value.
class Nim:
    """Take one or two stones; who takes the last wins. A state is the number of stones."""

    capabilities = frozenset({"transition", "evaluate"})

    def transition(self, stones: int) -> list[int]:
        return [stones - k for k in (1, 2) if k <= stones]

    def evaluate(self, stones: int) -> float:
        return -1.0 if stones == 0 else 0.0


class Game(Problem):
    family = "citizen game"
    name = "nim"

    def __init__(self, stones: int) -> None:
        self.stones = stones

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term("rules", Nim()),)

    def start(self, rng: np.random.Generator) -> int:
        return self.stones


@dataclass(frozen=True)
class DepthSearch(Solver):
    """Negamax, one ply deeper at each step."""

    families: ClassVar[tuple[str, ...]] = ("citizen game",)
    metrics: ClassVar[dict[str, Metric]] = {"residual": Metric(lambda state: state["moved"])}
    maps_points: ClassVar[bool] = False

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("rules", needs=("transition", "evaluate"), at_least=1, at_most=1, empty=None),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"root": start, "depth": 0, "value": 0.0, "policy": [], "moved": 1.0}

    def step(self, parts: Any, state: Any) -> Any:
        depth = state["depth"] + 1
        scores = [-self._value(parts.rules, one, depth - 1) for one in parts.rules.transition(state["root"])]
        best = max(scores)
        policy = [float(score == best) / scores.count(best) for score in scores]
        # Settled once the whole tree has been seen.
        moved = 0.0 if depth >= state["root"] else 1.0
        return {"root": state["root"], "depth": depth, "value": best, "policy": policy, "moved": moved}

    def _value(self, rules: Any, stones: int, depth: int) -> float:
        moves = rules.transition(stones)
        if not moves or depth == 0:
            return rules.evaluate(stones)
        return max(-self._value(rules, one, depth - 1) for one in moves)

    def solution(self, state: Any) -> Any:
        return {"policy": state["policy"], "value": state["value"]}

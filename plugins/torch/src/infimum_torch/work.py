"""What a torch optimizer works on: an array of a `Composite`, or the module of a training problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import numpy as np
import torch

from infimum.arrays import Array, norm
from infimum_torch import modules
from infimum_torch.batches import Stream, rows_of
from infimum_torch.derivatives import as_tensor
from infimum_torch.dice import Dice

Uses = Literal["gradient", "values"]


class Work(Protocol):
    """One run's parameters, and the loss as a function of them."""

    dice: Dice
    point: Any
    epoch: float
    samples: int

    def parameters(self) -> dict[str, torch.Tensor]:
        """The tensors that optimizers change in place, by name."""
        ...

    def begin(self, parts: Any) -> None:
        """A step begins."""
        ...

    def loss(self, parts: Any, uses: Uses) -> torch.Tensor:
        """The loss at the present parameters; with "gradient" their `grad` is filled."""
        ...

    def end(self, parts: Any) -> None:
        """A step is over."""
        ...

    def through(self, call: Callable[[Any], Any], tensor: torch.Tensor) -> torch.Tensor:
        """A function of arrays of the start's kind, at a parameter."""
        ...

    def dump(self) -> dict[str, Any]: ...


class ArrayWork:
    """An array, NumPy or torch, whose copy in a torch tensor an optimizer changes.

    Value and gradient are taken at the new point when a step is over, for metrics and for the next step: the count is
    that of a bare loop plus one. Functions get arrays that nobody changes.
    """

    def __init__(self, start: Array, seed: int) -> None:
        self.numpy = isinstance(start, np.ndarray)
        tensor = as_tensor(start) if self.numpy else start.detach().clone()
        self.tensor = tensor.requires_grad_()
        self.point: Array = start
        self.value: float | None = None
        self.gradient: Array | None = None
        self.dice = Dice(seed, self.tensor.device)
        self.epoch, self.samples = math.nan, 0
        self._fresh = False

    @classmethod
    def start(cls, parts: Any, start: Array, seed: int, uses: Uses) -> ArrayWork:
        work = cls(start, seed)
        work._evaluate(parts, uses)
        work._fresh = True
        return work

    def parameters(self) -> dict[str, torch.Tensor]:
        return {"x": self.tensor}

    def _evaluate(self, parts: Any, uses: Uses) -> None:
        point = self._here()
        if uses == "gradient":
            value, gradient = parts.smooth.value_and_gradient(point)
        else:
            value, gradient = parts.smooth.value(point), None
        self.point, self.value, self.gradient = point, float(value), gradient

    def _here(self) -> Array:
        now = self.tensor.detach().clone()
        return now.numpy() if self.numpy else now

    def begin(self, parts: Any) -> None: ...

    def loss(self, parts: Any, uses: Uses) -> torch.Tensor:
        if self._fresh:
            self._fresh = False
        else:
            self._evaluate(parts, uses)
        if uses == "gradient":
            self.tensor.grad = torch.as_tensor(self.gradient).clone()
        return torch.as_tensor(self.value, dtype=torch.float64)

    def end(self, parts: Any) -> None:
        self._evaluate(parts, "gradient" if self.gradient is not None else "values")
        self._fresh = True

    def through(self, call: Callable[[Any], Any], tensor: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(call(tensor.numpy().copy() if self.numpy else tensor.clone()))

    def grad_norm(self) -> float | None:
        return None if self.gradient is None else norm(self.gradient)

    def dump(self) -> dict[str, Any]:
        return {"x": self.point, "value": self.value, "gradient": self.gradient, "dice": self.dice.state_dict()}

    @classmethod
    def load(cls, tree: Mapping[str, Any]) -> ArrayWork:
        work = cls(tree["x"], 0)
        work.value, work.gradient, work._fresh = tree["value"], tree["gradient"], True
        work.dice.load_state_dict(tree["dice"])
        return work


class ModuleWork:
    """A module whose parameters an optimizer changes, on batches from a stream."""

    def __init__(self, module: torch.nn.Module, seed: int, stream_seed: int) -> None:
        self.point = module
        self.dice = Dice(seed, next(iter(module.parameters())).device)
        self.samples = 0
        self.batch: Any = None
        self._seed = stream_seed
        self._stream: Stream | None = None
        self._pending: Mapping[str, Any] | None = None

    @property
    def epoch(self) -> float:
        if self._stream is not None:
            return self._stream.epoch
        return 0.0 if self._pending is None else float(self._pending["epoch"])

    def parameters(self) -> dict[str, torch.Tensor]:
        return {name: one for name, one in self.point.named_parameters() if one.requires_grad}

    def _attached(self, parts: Any) -> Stream:
        """The stream; a checkpoint that was loaded is taken up where it is needed."""
        if self._stream is None:
            stream: Stream = parts.loss.make_stream(self._seed)
            if self._pending is not None:
                stream.load_state_dict(self._pending["stream"])
            self._stream = stream
        return self._stream

    def begin(self, parts: Any) -> None:
        self.batch = self._attached(parts).next()
        m = rows_of(self.batch)
        parts.loss.samples(m)
        self.samples += m

    def loss(self, parts: Any, uses: Uses) -> torch.Tensor:
        call = parts.loss.backward if uses == "gradient" else parts.loss.forward
        loss: torch.Tensor = call(self.point, self.batch)
        return loss

    def end(self, parts: Any) -> None:
        self.batch = None

    def through(self, call: Callable[[Any], Any], tensor: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = call(tensor)
        return found

    def dump(self) -> dict[str, Any]:
        if self._stream is not None:
            stream: Any = {"stream": self._stream.state_dict(), "epoch": self.epoch}
        else:
            stream = self._pending
        return {
            "x": modules.dump(self.point),
            "dice": self.dice.state_dict(),
            "samples": self.samples,
            "seed": self._seed,
            "data": stream,
        }

    @classmethod
    def load(cls, tree: Mapping[str, Any], module: torch.nn.Module) -> ModuleWork:
        work = cls(modules.fill(module, tree["x"], "state"), 0, int(tree["seed"]))
        work.dice.load_state_dict(tree["dice"])
        work.samples, work._pending = int(tree["samples"]), tree["data"]
        return work

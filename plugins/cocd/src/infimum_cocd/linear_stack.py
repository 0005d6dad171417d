"""Stacks of linear layers, where changing one weight moves one column of one layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

ELEMENTWISE = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish),
    *(nn.Sigmoid, nn.LogSigmoid, nn.Tanh, nn.Softplus, nn.Softsign, nn.Identity, nn.Dropout),
)
"""Layers that act entry by entry; dropout only reaches this place in evaluation mode."""


def linear_stack(module: nn.Module, inputs: tuple[Any, ...]) -> LinearStack | None:
    """The module as a stack, or None if it does more than linear layers and elementwise functions, or has hooks."""
    layers: list[nn.Module] | None = _layers(module)
    if layers is None or len(inputs) != 1 or not isinstance(inputs[0], torch.Tensor):
        return None
    x = inputs[0]
    while layers and type(layers[0]) is nn.Flatten and (layers[0].start_dim, layers[0].end_dim) == (1, -1):
        x, layers = x.flatten(1) if x.ndim > 1 else x, layers[1:]
    linear = [one for one in layers if type(one) is nn.Linear]
    fits = bool(linear) and all(type(one) in (nn.Linear, *ELEMENTWISE) for one in layers)
    owned = [p for one in linear for p in one.parameters()]
    tied = len({id(p) for p in owned}) < len(owned)
    if not fits or tied or x.ndim != 2:
        return None
    return LinearStack(layers, x)


def _layers(module: nn.Module) -> list[nn.Module] | None:
    """Layers in order, nested sequences opened; None for anything else than sequences, and where hooks look on."""
    if module._forward_hooks or module._forward_pre_hooks:
        return None
    if type(module) is not nn.Sequential:
        return [module]
    found: list[nn.Module] = []
    for one in module:
        below = _layers(one)
        if below is None:
            return None
        found += below
    return found


class LinearStack:
    """Linear layers, each with what follows it up to the next: `h -> act(h W^T + b)`.

    `forward` keeps the input and the pre-activation of each layer; queries start from these.
    """

    def __init__(self, layers: list[nn.Module], x: torch.Tensor) -> None:
        first = next(k for k, one in enumerate(layers) if type(one) is nn.Linear)
        self.x, self.before = x, layers[:first]
        self.linear: list[nn.Linear] = []
        self.after: list[list[nn.Module]] = []
        for one in layers[first:]:
            if isinstance(one, nn.Linear):
                self.linear.append(one)
                self.after.append([])
            else:
                self.after[-1].append(one)
        self._owner = {id(p): k for k, one in enumerate(self.linear) for p in one.parameters()}
        self._inputs: list[torch.Tensor] = []
        self._sums: list[torch.Tensor] = []
        self._versions: list[int] = []

    def forward(self) -> torch.Tensor:
        """Outputs at the present parameters; what queries start from is kept."""
        h = _through(self.before, self.x)
        self._inputs, self._sums = [], []
        for one, after in zip(self.linear, self.after, strict=True):
            z = one(h)
            self._inputs.append(h)
            self._sums.append(z)
            h = _through(after, z)
        self._versions = self._now()
        return h

    def _now(self) -> list[int]:
        return [p._version for one in self.linear for p in one.parameters()]

    def rows(self, parameter: torch.Tensor, limit: int) -> int:
        """Queries whose largest layer takes at most `limit` bytes."""
        k = self._owner[id(parameter)]
        widest = max(one.out_features for one in self.linear[min(k + 1, len(self.linear) - 1) :])
        return max(1, limit // (self.x.shape[0] * widest * self.x.element_size()))

    def perturbed(self, parameter: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Outputs (m, batch, out) with one entry of a weight or a bias replaced, one at a time."""
        if self._versions != self._now():
            self.forward()
        k = self._owner[id(parameter)]
        delta = values - parameter.detach().reshape(-1)[index]
        z, width = self._sums[k], self.linear[k].in_features
        if parameter is self.linear[k].weight:
            column, shift = index // width, delta[:, None] * self._inputs[k].T[index % width]
        else:
            column, shift = index, delta[:, None].expand(-1, z.shape[0])
        moved = z.T[column] + shift
        if k == len(self.linear) - 1:
            sums = z.expand(len(index), *z.shape).clone()
            sums[torch.arange(len(index), device=index.device), :, column] = moved
            return _through(self.after[k], sums)
        change = _through(self.after[k], moved) - _through(self.after[k], z.T[column])
        outgoing = self.linear[k + 1].weight.T[column]
        sums = torch.baddbmm(self._sums[k + 1].expand(len(index), -1, -1), change[:, :, None], outgoing[:, None, :])
        h = _through(self.after[k + 1], sums)
        for one, after in zip(self.linear[k + 2 :], self.after[k + 2 :], strict=True):
            h = _through(after, one(h))
        return h


def _through(layers: list[nn.Module], x: torch.Tensor) -> torch.Tensor:
    for one in layers:
        # What queries start from is kept, so nothing may happen in place.
        x = one(x.clone() if getattr(one, "inplace", False) else x)
    return x

"""Progression of diabetes from ten measurements, by a small network."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from torch import nn

HELD_OUT = 100


class Net(nn.Module):
    """Ten inputs, one output."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(10, 4)
        self.outer = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.outer(torch.tanh(self.inner(x)))


def _all() -> tuple[torch.Tensor, torch.Tensor]:
    inputs, targets = (torch.as_tensor(one) for one in load_diabetes(return_X_y=True))
    targets = (targets - targets.mean()) / targets.std()
    return 20 * inputs, targets[:, None]


def data() -> tuple[torch.Tensor, ...]:
    """What is trained on."""
    return tuple(one[HELD_OUT:] for one in _all())


def held_out() -> tuple[torch.Tensor, ...]:
    """What the loss is recorded on."""
    return tuple(one[:HELD_OUT] for one in _all())


def r2(module: nn.Module) -> float:
    """Share of the variance that is explained, on what is held out."""
    inputs, targets = held_out()
    return 1.0 - float(((module(inputs) - targets) ** 2).sum() / ((targets - targets.mean()) ** 2).sum())

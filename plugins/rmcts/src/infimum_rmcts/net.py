"""A small network for board games, in torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class PolicyValueNet(nn.Module):
    """A perceptron with one hidden layer, logits over the actions and a value in [-1, 1].

    Parameters
    ----------
    inputs : int
        Length of `game.encode(S)[0]`.
    num_actions : int
    hidden : int, default 64
    seed : int, default 0
        Of the first weights; the global generator is not touched.
    """

    def __init__(self, inputs: int, num_actions: int, hidden: int = 64, seed: int = 0) -> None:
        super().__init__()
        self.body = nn.Linear(inputs, hidden)
        self.policy = nn.Linear(hidden, num_actions)
        self.value = nn.Linear(hidden, 1)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for layer in (self.body, self.policy, self.value):
                layer.weight.normal_(0.0, layer.in_features**-0.5, generator=generator)
                layer.bias.zero_()

    def forward(self, x: torch.Tensor) -> Any:
        h = torch.relu(self.body(x))
        return self.policy(h), torch.tanh(self.value(h)).squeeze(-1)


def example() -> PolicyValueNet:
    """An untrained network for tic-tac-toe."""
    return PolicyValueNet(18, 9, 16)

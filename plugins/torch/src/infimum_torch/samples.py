"""Small problems that show, and test, what the options of this plugin take."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from infimum_torch.training import Training


def small_module() -> nn.Module:
    """Three inputs, one output, dropout in between."""
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))


def small_data() -> tuple[torch.Tensor, torch.Tensor]:
    """48 points of a smooth function of three variables."""
    rng = torch.Generator().manual_seed(3)
    inputs = torch.randn(48, 3, generator=rng)
    return inputs, (inputs[:, :1] * inputs[:, 1:2] + torch.sin(inputs[:, 2:])).float()


def matrix_problem(batch_size: int = 16) -> Training:
    """A network whose parameters are matrices.

    Parameters
    ----------
    batch_size : int, default 16
        Rows of a batch.
    """
    inputs, targets = small_data()

    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 8, bias=False), nn.Tanh(), nn.Linear(8, 1, bias=False))

    return Training(make, "mse_loss", (inputs, targets), batch_size=batch_size, name="matrices")


def sparse_problem(batch_size: int = 8) -> Training:
    """An embedding with sparse gradients.

    Parameters
    ----------
    batch_size : int, default 8
        Rows of a batch.
    """
    rng = torch.Generator().manual_seed(5)
    words = torch.randint(0, 20, (32,), generator=rng)

    def make() -> nn.Module:
        return nn.Embedding(20, 2, sparse=True)

    targets = torch.stack([words.float().sin(), words.float().cos()], 1)
    return Training(make, "mse_loss", (words, targets), batch_size=batch_size, name="embedding")


def loader() -> Any:
    """The small data behind a `DataLoader`."""
    data = torch.utils.data.TensorDataset(*small_data())
    return torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)

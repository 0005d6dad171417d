"""A small training problem under a Stiefel constraint, for the conformance kit."""

from __future__ import annotations

from typing import Any

from infimum_pogo.stiefel import Stiefel


def orthogonal() -> Any:
    """A bilinear fit: one matrix with orthonormal rows, 24 samples in batches of 8."""
    import torch

    from infimum_torch import Training

    def make() -> torch.nn.Module:
        layer = torch.nn.Linear(5, 3, bias=False, dtype=torch.float64)
        torch.nn.init.orthogonal_(layer.weight)
        return layer

    inputs = torch.linspace(-1.0, 1.0, 120, dtype=torch.float64).reshape(24, 5).sin()
    targets = inputs[:, :3].cos() * inputs[:, 2:]
    data = (inputs, targets)
    held = {"stiefel": Stiefel()}
    return Training(make, "mse_loss", data, batch_size=8, constraints=held, on={"stiefel": "weight"}, name="bilinear")

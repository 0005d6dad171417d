"""PyTorch in infimum: autograd as an oracle, torch.optim as solvers, training of modules as a problem."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_torch.autograd import Autograd
    from infimum_torch.batches import Tensors
    from infimum_torch.function import TorchFunction
    from infimum_torch.groups import Groups
    from infimum_torch.rules import MaxEpochs
    from infimum_torch.schedules import ScheduleLR, TorchSchedule
    from infimum_torch.solver import ParameterGroup, TorchSolver
    from infimum_torch.training import Training

__all__ = [
    "Autograd",
    "Groups",
    "MaxEpochs",
    "ParameterGroup",
    "ScheduleLR",
    "Tensors",
    "TorchFunction",
    "TorchSchedule",
    "TorchSolver",
    "Training",
]

_HOMES = {
    "autograd": ("Autograd",),
    "batches": ("Tensors",),
    "function": ("TorchFunction",),
    "groups": ("Groups",),
    "rules": ("MaxEpochs",),
    "schedules": ("ScheduleLR", "TorchSchedule"),
    "solver": ("ParameterGroup", "TorchSolver"),
    "training": ("Training",),
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

"""Optuna under infimum: black-box problems, its samplers as solvers, stopping rules as its callbacks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_optuna.callback import StopWhen, stop_when
    from infimum_optuna.history import History
    from infimum_optuna.problem import BlackBox, Outcome
    from infimum_optuna.report import result_of, results_of
    from infimum_optuna.samplers import (
        GP,
        NSGAII,
        NSGAIII,
        QMC,
        TPE,
        BruteForce,
        CmaEs,
        Grid,
        Random,
        Sampler,
    )
    from infimum_optuna.seeded import Seeded
    from infimum_optuna.space import Space
    from infimum_optuna.storage import open_storage

__all__ = [
    "GP",
    "NSGAII",
    "NSGAIII",
    "QMC",
    "TPE",
    "BlackBox",
    "BruteForce",
    "CmaEs",
    "Grid",
    "History",
    "Outcome",
    "Random",
    "Sampler",
    "Seeded",
    "Space",
    "StopWhen",
    "open_storage",
    "result_of",
    "results_of",
    "stop_when",
]

_HOMES = {
    "callback": ("StopWhen", "stop_when"),
    "history": ("History",),
    "problem": ("BlackBox", "Outcome"),
    "report": ("result_of", "results_of"),
    "samplers": ("GP", "NSGAII", "NSGAIII", "QMC", "TPE", "BruteForce", "CmaEs", "Grid", "Random", "Sampler"),
    "seeded": ("Seeded",),
    "space": ("Space",),
    "storage": ("open_storage",),
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

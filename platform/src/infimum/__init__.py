"""infimum: state a problem once, mix oracles, solvers, constraints and stopping rules, and compare honestly."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "solve": "api",
    "prepare": "api",
    "explain": "api",
    "path": "paths",
    "as_scipy": "scipy_method",
    "Composite": "problem",
    "Problem": "problem",
    "Term": "problem",
    "Function": "functions",
    "Constraint": "constraints",
    "Solver": "solver",
    "Slot": "solver",
    "Metric": "solver",
    "Oracle": "oracle",
    "Exactness": "exactness",
    "Monitor": "run.monitor",
    "Run": "run.run",
    "Result": "result",
    "Status": "status",
    "StoppingRule": "stopping",
    "InfimumError": "errors",
    "InfimumWarning": "errors",
    "InputError": "errors",
    "PlanError": "errors",
    "show_versions": "versions",
}
_MODULES = ("functions", "constraints", "stopping", "testing")

__all__ = ["__version__", *_PUBLIC, *_MODULES]


def __getattr__(name: str) -> Any:
    # Everything is imported at first use: `infimum list` must not wait for NumPy, SciPy and pydantic.
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f"infimum.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"infimum.{name}")
    raise AttributeError(f"module 'infimum' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)

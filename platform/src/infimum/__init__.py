"""infimum: state a problem once, mix oracles, solvers, constraints and stopping rules, and compare honestly."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "solve": "api",
    "prepare": "api",
    "explain": "api",
    "resume": "records",
    "rerun": "records",
    "RunFolder": "records",
    "path": "paths",
    "sweep": "many.sweeping",
    "compare": "many.comparing",
    "Runs": "many.members",
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
    "Monitor": "inputs",
    "Run": "run.run",
    "Result": "result",
    "Status": "status",
    "StoppingRule": "stopping",
    "report": "reporting.write",
    "InfimumError": "errors",
    "InfimumWarning": "errors",
    "InputError": "errors",
    "PlanError": "errors",
    "show_versions": "versions",
}
_UPWARD = {"solve_into": "records"}
"""What a lower layer reaches through this front, at first use."""
_MODULES = ("functions", "constraints", "stopping", "observers", "reporting", "testing")

__all__ = ["__version__", *_PUBLIC, *_MODULES]


def __getattr__(name: str) -> Any:
    # Everything is imported at first use: `infimum list` must not wait for NumPy, SciPy and pydantic.
    if name in _PUBLIC or name in _UPWARD:
        value = getattr(importlib.import_module(f"infimum.{_PUBLIC.get(name) or _UPWARD[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"infimum.{name}")
    if not name.startswith("_"):
        from infimum.plugins.registry import get_registry

        # What plugins bring for objects of another library: infimum.from_cvxpy(problem).
        for component in get_registry().components("converter"):
            if component.bare == name:
                return component.load()
    raise AttributeError(f"module 'infimum' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Runs kept in folders: what they were made of, checkpoints, results; how they are taken up and repeated.

Names are looked up at first use: many runs that are all known are read without what a run needs.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "Rerun": "rerunning",
    "RunFolder": "folder",
    "manifest": "manifests",
    "rerun": "rerunning",
    "resume": "resuming",
    "solve_into": "solving",
    "solve_to_folder": "solving",
}

__all__ = ["Rerun", "RunFolder", "manifest", "rerun", "resume", "solve_into", "solve_to_folder"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f"infimum.records.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'infimum.records' has no attribute '{name}'")

"""Many runs: sweeps and comparisons, on one machine or a cluster, whose members fail alone; the cache of finished runs.

Names are looked up at first use: the processes that only start members import little.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "Member": "members",
    "Runs": "members",
    "Sweep": "sweeping",
    "sweep": "sweeping",
    "Comparison": "comparison",
    "compare": "comparing",
    "Cache": "cache",
}

__all__ = ["Cache", "Comparison", "Member", "Runs", "Sweep", "compare", "sweep"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f"infimum.many.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'infimum.many' has no attribute '{name}'")

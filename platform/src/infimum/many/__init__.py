"""Many runs: sweeps and comparisons, on one machine or a cluster, whose members fail alone; the cache of finished runs.

Names are looked up at first use: the processes that only start members import little.
"""

from __future__ import annotations

from typing import Any

from infimum.lazy import look_up

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
    return look_up(__name__, _PUBLIC, name)

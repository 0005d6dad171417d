"""Runs kept in folders: what they were made of, checkpoints, results; how they are taken up and repeated.

Names are looked up at first use: many runs that are all known are read without what a run needs.
"""

from __future__ import annotations

from typing import Any

from infimum.lazy import look_up

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
    return look_up(__name__, _PUBLIC, name)

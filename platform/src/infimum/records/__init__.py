"""Runs kept in folders: what they were made of, checkpoints, results; how they are taken up and repeated."""

from __future__ import annotations

from infimum.records.folder import RunFolder
from infimum.records.manifest import manifest
from infimum.records.rerunning import Rerun, rerun
from infimum.records.resuming import resume
from infimum.records.solving import solve_into, solve_to_folder

__all__ = ["Rerun", "RunFolder", "manifest", "rerun", "resume", "solve_into", "solve_to_folder"]

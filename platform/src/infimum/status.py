"""Status words of a run, in the order in which one wins over another."""

from __future__ import annotations

import enum


class Status(enum.StrEnum):
    """Why a run ended. The earlier word wins when several apply; `success` is true for two of them only."""

    interrupted = "interrupted"
    failed = "failed"
    nonfinite = "nonfinite"
    diverged = "diverged"
    infeasible = "infeasible"
    target_reached = "target_reached"
    converged = "converged"
    stalled = "stalled"
    limit = "limit"

    @property
    def success(self) -> bool:
        return self in (Status.converged, Status.target_reached)

    @property
    def rank(self) -> int:
        """Position in the order; 0 wins."""
        return _RANK[self]


_RANK = {status: rank for rank, status in enumerate(Status)}

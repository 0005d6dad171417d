"""The mean of the late iterates: what a run with a stochastic part is better judged by than its last point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infimum import arrays
from infimum.arrays import Array

FIRST = 16
"""Points in the first block."""


class TailAverage:
    """Mean of the points of the last half to three quarters of the checks, in the memory of two points.

    Points are summed in blocks of doubling size; the mean is over the last full block and the present one.
    """

    def __init__(self) -> None:
        self.size = FIRST
        self._older: Array | None = None
        self._newer: Array | None = None
        self._older_n = self._newer_n = 0

    def add(self, point: Array) -> None:
        """Take in the point of one check."""
        if self._newer is None:
            self._newer = arrays.copy(point)
        else:
            self._newer += point
        self._newer_n += 1
        if self._newer_n == self.size:
            self._older, self._older_n = self._newer, self._newer_n
            self._newer, self._newer_n = None, 0
            self.size *= 2

    @property
    def count(self) -> int:
        """Number of points in the mean."""
        return self._older_n + self._newer_n

    @property
    def mean(self) -> Array | None:
        """The mean, or None before any point."""
        sums = [one for one in (self._older, self._newer) if one is not None]
        if not sums:
            return None
        total = sums[0] if len(sums) == 1 else sums[0] + sums[1]
        return total / self.count

    def state_dict(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "older": self._older,
            "older_n": self._older_n,
            "newer": self._newer,
            "newer_n": self._newer_n,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.size = int(state["size"])
        self._older, self._older_n = state["older"], int(state["older_n"])
        self._newer, self._newer_n = state["newer"], int(state["newer_n"])

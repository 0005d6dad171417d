"""Fewer and fewer points: what a store that keeps everything is given of a long run."""

from __future__ import annotations

DENSE = 1000
"""Points before the distance doubles: as fine as a plot can show."""


class Thinning:
    """Says which iterations to write: `dense` of them at distance `every`, then as many at twice that, and so on."""

    def __init__(self, dense: int = DENSE, every: int = 1) -> None:
        self.dense, self.stride, self._start, self._count = dense, every, 0, 0

    def wants(self, iteration: int) -> bool:
        """Whether this iteration is to be written; they must come in order."""
        if iteration < self._start:
            return False
        self._count += 1
        if self._count >= self.dense:
            self._count, self.stride = 0, 2 * self.stride
        self._start = iteration + self.stride
        return True

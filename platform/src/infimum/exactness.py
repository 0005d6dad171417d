"""How true a supplied capability is: exact < tolerance < approximate < stochastic."""

from __future__ import annotations

import enum


class Exactness(enum.IntEnum):
    """Ordered from best to worst; a result carries the worst of its parts."""

    exact = 0
    tolerance = 1
    approximate = 2
    stochastic = 3

    def __str__(self) -> str:
        return self.name

"""What the torch optimizer remembers for its diagnostics; its steps do not depend on any of it."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Diagnostics:
    """What is known after a step.

    Attributes
    ----------
    queries : int
        Loss evaluations so far.
    staleness : int
        Age in steps of the oldest entry that counts.
    cosine, change : float or None
        Cosine between the last two gradient estimates, and the norm of their difference.
    curvature : float or None
        The largest second difference along a coordinate in the last cycle: a lower bound of the Lipschitz constant of
        the gradient. None for forward differences, which do not show it.
    staleness_bound : float or None
        Theorem 5.3 with that curvature for the constant, hence an estimate: the 1-norm of what staleness does to the
        gradient on a fixed batch. None without curvature, before the first full cycle, and for gamma < 1 or
        memory < n.
    effective_step : float
        The largest lr of a group times its gain by reuse: (n/block) lr for gamma = 1.
    """

    queries: int
    staleness: int
    cosine: float | None
    change: float | None
    curvature: float | None
    staleness_bound: float | None
    effective_step: float


class History:
    """Way and curvature over the last cycle, and how the last two estimates compare."""

    def __init__(self) -> None:
        self.travel: collections.deque[float] = collections.deque([0.0])
        self.curved: collections.deque[float] = collections.deque()
        self.cosine: float | None = None
        self.change: float | None = None
        self.full = False

    def measured(self, curvature: float, cycle: int) -> None:
        """The curvature along the coordinates of this step."""
        self.curved.append(curvature)
        while len(self.curved) > cycle:
            self.curved.popleft()
        self.full = len(self.curved) == cycle

    def moved(self, length: float, cycle: int) -> None:
        """The parameters moved by `length`."""
        self.travel.append(self.travel[-1] + length)
        while len(self.travel) > cycle + 2:
            self.travel.popleft()

    def compared(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """The last two estimates, tensor by tensor."""
        dot = old = new = change = 0.0
        for before, after in pairs:
            a, b = before.double(), after.double()
            dot, change = dot + float((a * b).sum()), change + float((b - a).square().sum())
            old, new = old + float(a.square().sum()), new + float(b.square().sum())
        self.cosine = dot / math.sqrt(old * new) if old * new > 0 else None
        self.change = math.sqrt(change)

    def curvature(self) -> float | None:
        """The largest one of the last cycle, None where nothing was measured."""
        return max(self.curved, default=0.0) or None

    def longest(self, steps: int) -> float:
        """The longest of the last steps."""
        points = list(self.travel)[-(steps + 1) :]
        return max((after - before for before, after in itertools.pairwise(points)), default=0.0)

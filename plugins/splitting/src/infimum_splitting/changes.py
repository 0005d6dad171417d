"""By how much an iteration moves a method whose reported point may stand still while its other variables move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infimum.solver import Metric

Moved = Callable[[Any], tuple[float, float] | None]
"""`moved(state)`: the norm of the change and of what changed; None at iteration 0."""


def change_metrics(moved: Moved) -> dict[str, Metric]:
    """`abs_change` and `rel_change` of all that the method iterates, in place of those of the reported point alone."""

    def absolute(state: Any) -> float | None:
        found = moved(state)
        return None if found is None else found[0]

    def relative(state: Any) -> float | None:
        found = moved(state)
        return None if found is None else found[0] / max(1.0, found[1])

    return {"abs_change": Metric(absolute), "rel_change": Metric(relative)}

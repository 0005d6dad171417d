"""What Douglas–Rachford and Davis–Yin share: a state with the results of two proxes, and how far they are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infimum.arrays import Array, norm
from infimum.solver import Metric
from infimum_splitting.changes import change_metrics
from infimum_splitting.steps import certain


@dataclass(slots=True)
class TwoPointState:
    """`x` and `y` are the results of the two proxes (`y` None at iteration 0); `z` is the governing point."""

    x: Array
    y: Array | None
    z: Array
    t: float


def _moved(state: TwoPointState) -> tuple[float, float] | None:
    return None if state.y is None else (norm(state.y - state.x), norm(state.x))


def _residual(state: TwoPointState) -> float | None:
    return None if state.y is None else certain(max(1.0, 1.0 / state.t) * norm(state.y - state.x), state.x, state.t)


METRICS: Mapping[str, Metric] = {"residual": Metric(_residual), **change_metrics(_moved)}

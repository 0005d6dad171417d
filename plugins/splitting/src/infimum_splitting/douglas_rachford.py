"""Douglas–Rachford splitting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Lt

from infimum.arrays import Array, norm
from infimum.errors import InputError
from infimum.solver import Metric, Slot
from infimum_splitting.steps import Stepping, refuse_bad

NAME = "splitting.douglas_rachford"


@dataclass(slots=True)
class DouglasRachfordState:
    """`x` and `y` are the results of the two proxes (`y` None at iteration 0); `z` is the governing point."""

    x: Array
    y: Array | None
    z: Array
    t: float


def _residual(state: DouglasRachfordState) -> float | None:
    return None if state.y is None else norm(state.y - state.x)


@dataclass(frozen=True, init=False, repr=False)
class DouglasRachford(Stepping):
    """Minimize `f + g`, both with a prox, by Douglas–Rachford splitting.

    Each step computes `x = prox_f(z, t)`, `y = prox_g(2 x - z, t)` and `z += relaxation (y - x)`. Reports `x`, never
    the governing point z, which is no approximate minimizer. Iteration 0 is the start. `residual = ||y - x||` is None
    there and 0 exactly at a solution. Needs no smoothness, so either function may be an indicator.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Step size t > 0. Every t converges; it only decides how fast. "auto" is 1/L if one of the two declares the
        Lipschitz constant L > 0 of its gradient (the curvature sets the scale of the proxes), else 1.0 (nothing is
        known that could set a scale).
    relaxation : float, default 1.0
        Between 0 and 2, both excluded; above 1 is over-relaxation.

    Raises
    ------
    InputError
        For a step that is not positive and finite or a relaxation outside of (0, 2).

    References
    ----------
    P.-L. Lions, B. Mercier, "Splitting algorithms for the sum of two nonlinear operators", SIAM J. Numerical Analysis
    16(6), 1979.
    """

    step_size: float | Literal["auto"]
    relaxation: float

    metrics: ClassVar[Mapping[str, Metric]] = {"residual": Metric(_residual)}
    State: ClassVar[type] = DouglasRachfordState

    def __init__(
        self,
        step: Annotated[float, Gt(0)] | Literal["auto"] = "auto",
        relaxation: Annotated[float, Gt(0), Lt(2)] = 1.0,
    ) -> None:
        refuse_bad(step, NAME, schedules=False)
        if not 0 < relaxation < 2:
            raise InputError(f"{NAME}: relaxation={relaxation!r}; expected a number above 0 and below 2")
        object.__setattr__(self, "step_size", step)
        object.__setattr__(self, "relaxation", relaxation)

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("first", needs=("prox",), at_least=1, at_most=1),
            Slot("second", needs=("prox",), at_most=1),
        )

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> DouglasRachfordState:
        return DouglasRachfordState(start, None, start, self._step_size(parts))

    def step(self, parts: Any, state: DouglasRachfordState) -> DouglasRachfordState:
        x = parts.first.prox(state.z, state.t)
        y = parts.second.prox(2.0 * x - state.z, state.t)
        z = state.z + (y - x) if self.relaxation == 1.0 else state.z + self.relaxation * (y - x)
        return DouglasRachfordState(x, y, z, state.t)

    def _step_size(self, parts: Any) -> float:
        if self.step_size != "auto":
            return float(self.step_size)
        constants = [part.lipschitz for part in (parts.first, parts.second) if part.lipschitz]
        return 1.0 / constants[0] if constants else 1.0

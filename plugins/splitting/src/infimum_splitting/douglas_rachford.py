"""Douglas–Rachford splitting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from infimum.arrays import Array
from infimum.solver import Metric, Slot
from infimum_splitting.steps import FixedStep, Stepping, prox_step, refuse_bad, refuse_relaxation
from infimum_splitting.two_points import METRICS, TwoPointState

NAME = "splitting.douglas_rachford"


@dataclass(frozen=True, init=False, repr=False)
class DouglasRachford(Stepping):
    """Minimize `f + g`, both with a prox, by Douglas–Rachford splitting.

    Each step computes `x = prox_f(z, t)`, `y = prox_g(2 x - z, t)` and `z += relaxation (y - x)`. Reports `x`, never
    the governing point z, which is no approximate minimizer. Iteration 0 is the start. Needs no smoothness, so either
    function may be an indicator.

    `residual = max(1, 1/t) ||y - x||`, None at iteration 0, certifies a solution. The proxes give
    `(z - x)/t ∈ ∂f(x)` and `(2 x - z - y)/t ∈ ∂g(y)`, hence

        `(x - y)/t ∈ ∂f(x) + ∂g(y)`,

    so both the distance of the two points (in units of x) and the subgradient that is left (in units of the gradient)
    are at most `residual`, whatever the step. Two sets without a common point keep it above their distance.
    `abs_change` and `rel_change` are `||y - x||`, by which z moves: x may stand still while z is still far from its
    place.

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

    step_size: FixedStep
    relaxation: float

    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    State: ClassVar[type] = TwoPointState

    def __init__(
        self,
        step: FixedStep = "auto",
        relaxation: Annotated[float, Gt(0), Lt(2)] = 1.0,
    ) -> None:
        refuse_bad(step, NAME, schedules=False)
        refuse_relaxation(relaxation, NAME)
        object.__setattr__(self, "step_size", step)
        object.__setattr__(self, "relaxation", relaxation)

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("first", needs=("prox",), at_least=1, at_most=1),
            Slot("second", needs=("prox",), at_most=1),
        )

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> TwoPointState:
        return TwoPointState(start, None, start, prox_step(self.step_size, (parts.first, parts.second)))

    def step(self, parts: Any, state: TwoPointState) -> TwoPointState:
        z, t = state.z, state.t
        x = parts.first.prox(z, t)
        mirrored = 2.0 * x
        mirrored -= z
        y = parts.second.prox(mirrored, t)
        move = y - x
        if self.relaxation != 1.0:
            move *= self.relaxation
        move += z
        return TwoPointState(x, y, move, t)

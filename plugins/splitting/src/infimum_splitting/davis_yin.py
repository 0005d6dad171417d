"""Davis–Yin three-operator splitting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt, Lt

from infimum.arrays import Array
from infimum.errors import InputError
from infimum.solver import Metric, Slot
from infimum_splitting.steps import FixedStep, Stepping, first_step, refuse_bad, refuse_relaxation
from infimum_splitting.two_points import METRICS, TwoPointState

NAME = "splitting.davis_yin"


@dataclass(frozen=True, init=False, repr=False)
class DavisYin(Stepping):
    """Minimize `h + f + g`, h smooth, f and g with a prox, by Davis–Yin splitting.

    Each step computes `x = prox_f(z, t)`, `y = prox_g(2 x - z - t grad h(x), t)` and `z += relaxation (y - x)`: one
    gradient and two proxes. Reports `x` (so it lies in the domain of f), never the governing point z. Iteration 0 is
    the start. Without h this is Douglas–Rachford, without f or g proximal gradient.

    `residual = max(1, 1/t) ||y - x||`, None at iteration 0, certifies a solution. The proxes give `(z - x)/t ∈ ∂f(x)`
    and `(2 x - z - t grad h(x) - y)/t ∈ ∂g(y)`, hence

        `(x - y)/t ∈ grad h(x) + ∂f(x) + ∂g(y)`,

    so both the distance of the two points (in units of x) and the subgradient that is left (in units of the gradient)
    are at most `residual`, whatever the step. `abs_change` and `rel_change` are `||y - x||`, by which z moves: x may
    stand still while z is still far from its place.

    Parameters
    ----------
    step : float or "auto", default "auto"
        Step size t with 0 < t < 2/L for the Lipschitz constant L of grad h. "auto" is 1/L, and 1.0 for L = 0.
    relaxation : float, default 1.0
        Above 0 and below 2 - t L/2, which is 1.5 for "auto".

    Raises
    ------
    InputError
        For a step or a relaxation outside of these bounds, with the numbers; for "auto" where no L is known.

    References
    ----------
    D. Davis, W. Yin, "A three-operator splitting scheme and its optimization applications", Set-Valued and Variational
    Analysis 25, 2017.
    """

    step_size: FixedStep
    relaxation: float

    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    State: ClassVar[type] = TwoPointState

    def __init__(self, step: FixedStep = "auto", relaxation: Annotated[float, Gt(0), Lt(2)] = 1.0) -> None:
        refuse_bad(step, NAME, schedules=False)
        refuse_relaxation(relaxation, NAME)
        object.__setattr__(self, "step_size", step)
        object.__setattr__(self, "relaxation", relaxation)

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("smooth", needs=("gradient",), at_least=1),
            Slot("first", needs=("prox",), at_most=1),
            Slot("second", needs=("prox",), at_most=1),
        )

    def check(self, parts: Any) -> None:
        constant = parts.smooth.lipschitz
        t = first_step(self.step_size, constant, NAME)
        if not constant:
            return
        if t >= 2.0 / constant:
            raise InputError(
                f"{NAME}: step {t:.4g} >= 2/L = {2.0 / constant:.4g} (L = {constant:.4g}): the iterates need not "
                f"converge; take a step below that, or 'auto' (1/L = {1.0 / constant:.4g})"
            )
        bound = 2.0 - 0.5 * t * constant
        if self.relaxation >= bound:
            raise InputError(
                f"{NAME}: relaxation {self.relaxation:.4g} >= 2 - t L/2 = {bound:.4g} (t = {t:.4g}, "
                f"L = {constant:.4g}): the iterates need not converge; take a smaller relaxation or step"
            )

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> TwoPointState:
        return TwoPointState(start, None, start, first_step(self.step_size, parts.smooth.lipschitz, NAME))

    def step(self, parts: Any, state: TwoPointState) -> TwoPointState:
        z, t = state.z, state.t
        x = parts.first.prox(z, t)
        v = (-t) * parts.smooth.gradient(x)
        v += 2.0 * x
        v -= z
        y = parts.second.prox(v, t)
        move = y - x
        if self.relaxation != 1.0:
            move *= self.relaxation
        move += z
        return TwoPointState(x, y, move, t)

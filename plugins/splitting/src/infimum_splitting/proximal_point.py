"""The proximal point method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from infimum.arrays import Array
from infimum.solver import Metric, Slot
from infimum_splitting.steps import Step, Stepping, moved, prox_step, refuse_bad, scheduled

NAME = "splitting.proximal_point"
STRIDE = 10.0
"""Steps of `auto` in units of 1/L: an exact prox is no dearer for a long step."""


@dataclass(slots=True)
class ProximalPointState:
    """`x` was made from `origin` (None at iteration 0) with step `t`."""

    x: Array
    origin: Array | None
    t: float
    k: int


def _subgradient_norm(state: ProximalPointState) -> float | None:
    return None if state.origin is None else moved(state.origin, state.x, state.t)


@dataclass(frozen=True, init=False, repr=False)
class ProximalPoint(Stepping):
    """Minimize one function with a prox by `x+ = prox_f(x, t)`.

    Reports `x+`, the result of the prox. `grad_norm = ||x - x+|| / t`, None at iteration 0, is the norm of a
    subgradient of f at `x+`: the prox gives `(x - x+)/t ∈ ∂f(x+)`. So it bounds the distance of zero from `∂f(x+)`,
    whatever the step.

    Parameters
    ----------
    step : float, "auto" or a schedule, default "auto"
        Step size t > 0. Every t converges for convex f, and with an exact prox a longer one takes fewer iterations; an
        approximate prox may want short ones. "auto" is 10/L if f declares the Lipschitz constant L > 0 of its
        gradient, else 1.0. A schedule is asked for t at k = 0, 1, …; the steps must sum to infinity.

    Raises
    ------
    InputError
        For a step that is not positive and finite.

    References
    ----------
    R. T. Rockafellar, "Monotone operators and the proximal point algorithm", SIAM J. Control and Optimization 14(5),
    1976.
    """

    step_size: Step

    metrics: ClassVar[Mapping[str, Metric]] = {"grad_norm": Metric(_subgradient_norm)}
    State: ClassVar[type] = ProximalPointState

    def __init__(self, step: Step = "auto") -> None:
        refuse_bad(step, NAME)
        object.__setattr__(self, "step_size", step)

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("objective", needs=("prox",), at_least=1, at_most=1),)

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> ProximalPointState:
        step = self.step_size
        t = scheduled(step, 0, NAME) if callable(step) else prox_step(step, (parts.objective,), STRIDE)
        return ProximalPointState(start, None, t, 0)

    def step(self, parts: Any, state: ProximalPointState) -> ProximalPointState:
        t = scheduled(self.step_size, state.k, NAME) if callable(self.step_size) else state.t
        return ProximalPointState(parts.objective.prox(state.x, t), state.x, t, state.k + 1)

"""Gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from infimum.arrays import Array, norm
from infimum.exactness import Exactness
from infimum.solver import Metric, Slot
from infimum_splitting.backtracking import backtrack, first_trial
from infimum_splitting.steps import Step, Stepping, check_step, first_step, refuse_bad, scheduled

NAME = "splitting.gradient_descent"


@dataclass(slots=True)
class GradientDescentState:
    """A point with its own gradient and value (None where the problem offers none); `t` is the last step taken."""

    x: Array
    gradient: Array
    value: float | None
    t: float
    k: int


@dataclass(frozen=True, init=False, repr=False)
class GradientDescent(Stepping):
    """Minimize a smooth function by `x+ = x - t grad f(x)`.

    Reports `x`; the recorded value and gradient norm belong to that same point. One evaluation a step, and one at
    the start (two with backtracking and "auto").

    Parameters
    ----------
    step : float, "auto" or a schedule, default "auto"
        Step size t > 0. "auto" is 1/L with the Lipschitz constant L of the gradient, and 1.0 for L = 0 (a linear f:
        every step size is safe). Convergence for convex f needs t < 2/L. A schedule is asked for t at k = 0, 1, …
    backtracking : bool, default False
        Halve the step whenever it does not decrease f by t/2 ||grad f||^2, and go on with the shorter one; `step` is
        the first trial. No L is needed: "auto" then measures the curvature along the first gradient. Every trial is
        one evaluation of value and gradient. The metric `step` shows the step that was taken.

    Raises
    ------
    InputError
        For a step that is not positive and finite, "auto" where no L is known, or a schedule with backtracking.

    Warns
    -----
    InfimumWarning
        If the first step exceeds 2/L.
    """

    step_size: Step
    backtracking: bool

    metrics: ClassVar[Mapping[str, Metric]] = {
        "grad_norm": Metric(lambda state: norm(state.gradient)),
        "value": Metric(attrgetter("value"), {"smooth": ("value", "value_and_gradient")}),
        "step": Metric(attrgetter("t")),
    }
    State: ClassVar[type] = GradientDescentState

    def __init__(self, step: Step = "auto", backtracking: bool = False) -> None:
        refuse_bad(step, NAME, schedules=not backtracking)
        object.__setattr__(self, "step_size", step)
        object.__setattr__(self, "backtracking", backtracking)

    def slots(self) -> tuple[Slot, ...]:
        if self.backtracking:
            return (Slot("smooth", needs=("value_and_gradient",), at_least=1, accepts=Exactness.approximate),)
        return (Slot("smooth", needs=("gradient",), wants=("value_and_gradient",), at_least=1),)

    def check(self, parts: Any) -> None:
        if not self.backtracking:
            why = "the iterates may diverge; take a smaller step"
            check_step(self.step_size, parts.smooth.lipschitz, 2.0, NAME, why)

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> GradientDescentState:
        value, gradient = _evaluate(parts.smooth, start)
        if self.backtracking and self.step_size == "auto":
            return GradientDescentState(start, gradient, value, first_trial(parts.smooth, start, gradient), 0)
        return GradientDescentState(start, gradient, value, first_step(self.step_size, parts.smooth.lipschitz, NAME), 0)

    def step(self, parts: Any, state: GradientDescentState) -> GradientDescentState:
        if self.backtracking:
            return self._backtrack(parts, state)
        t = scheduled(self.step_size, state.k, NAME) if callable(self.step_size) else state.t
        x = (-t) * state.gradient
        x += state.x
        if state.value is None:
            return GradientDescentState(x, parts.smooth.gradient(x), None, t, state.k + 1)
        value, gradient = parts.smooth.value_and_gradient(x)
        return GradientDescentState(x, gradient, value, t, state.k + 1)

    @staticmethod
    def _backtrack(parts: Any, state: GradientDescentState) -> GradientDescentState:
        assert state.value is not None
        new = backtrack(parts.smooth, None, state.x, state.value, state.gradient, state.t, reuse=True)
        return GradientDescentState(new.x, new.gradient, new.value, new.t, state.k + 1)


def _evaluate(smooth: Any, x: Array) -> tuple[float | None, Array]:
    if smooth.offers("value_and_gradient"):
        value, gradient = smooth.value_and_gradient(x)
        return float(value), gradient
    return None, smooth.gradient(x)

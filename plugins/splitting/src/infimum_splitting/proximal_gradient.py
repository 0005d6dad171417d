"""Proximal gradient (forward-backward splitting), plain and accelerated (FISTA)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from infimum.arrays import Array, inner
from infimum.errors import InfimumWarning, InputError
from infimum.exactness import Exactness
from infimum.solver import Metric, Slot
from infimum_splitting.backtracking import backtrack, first_trial
from infimum_splitting.steps import Step, Stepping, check_step, first_step, moved, refuse_bad, scheduled

NAME = "splitting.proximal_gradient"


@dataclass(slots=True)
class ProximalGradientState:
    """`x` was made from `origin` (None at iteration 0) with step `t`; the next step starts at `y`.

    `theta` is the momentum number of `y`; 1 without momentum. `value` and `gradient` are those of the smooth part at
    `y` where they are known already (with backtracking).
    """

    x: Array
    y: Array
    origin: Array | None
    t: float
    theta: float
    k: int
    value: float | None = None
    gradient: Array | None = None


def _mapping_norm(state: ProximalGradientState) -> float | None:
    return None if state.origin is None else moved(state.origin, state.x, state.t)


@dataclass(frozen=True, init=False, repr=False)
class ProximalGradient(Stepping):
    """Minimize `F = f + g`, f smooth and g with a prox, by `x+ = prox_g(y - t grad f(y), t)`.

    Without acceleration `y = x`. With it `y` is the extrapolated point of FISTA. Reports `x+`, the result of the prox
    (so it lies in the domain of g). One gradient and one prox a step, none at the start; with backtracking one prox and
    one value a trial.

    `grad_norm` is the norm of the gradient mapping, `G = ||y - x+|| / t`, and None at iteration 0. It certifies the
    point that is reported. The prox gives `(y - x+)/t - grad f(y) ∈ ∂g(x+)`, hence

        `s = [(y - t grad f(y)) - (x+ - t grad f(x+))] / t ∈ ∂F(x+)`

    and `dist(0, ∂F(x+)) <= ||s|| <= (1 + t L) G`, that is 2 G for t <= 1/L. For convex f even `||s|| <= G` as long as
    t <= 2/L, since then `I - t grad f` is nonexpansive.

    Parameters
    ----------
    step : float, "auto" or a schedule, default "auto"
        Step size t > 0. "auto" is 1/L with the Lipschitz constant L of grad f, and 1.0 for L = 0 (a linear f: every
        step size is safe). Convergence for convex f needs t < 2/L, and t <= 1/L with acceleration. A schedule is asked
        for t at k = 0, 1, …
    acceleration : bool, default False
        FISTA momentum: O(1/k^2) instead of O(1/k) in F. Noise adds up in it, so a stochastic gradient or prox is
        refused unless `allow_stochastic`.
    restart : bool, default False
        Forget the momentum whenever it points uphill, `<y - x+, x+ - x> > 0` (adaptive restart by the gradient): the
        linear rate of strongly convex problems without knowing their modulus. Needs `acceleration`.
    backtracking : bool, default False
        Halve the step whenever f at `x+` exceeds its quadratic model with curvature 1/t, and go on with the shorter
        one; `step` is the first trial. No L is needed: "auto" then measures the curvature along the first gradient.
        1/t ends at no more than 2 L. The metric `step` shows the step that was taken.
    allow_stochastic : bool, default False
        Take a stochastic gradient or prox together with acceleration all the same, with a warning.

    Raises
    ------
    InputError
        For a step that is not positive and finite, "auto" where no L is known, restart without acceleration, or a
        schedule with backtracking.

    Warns
    -----
    InfimumWarning
        If the first step exceeds the bound above, or momentum is to meet noise.

    References
    ----------
    A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse problems", SIAM J.
    Imaging Sciences 2(1), 2009. B. O'Donoghue, E. Candès, "Adaptive restart for accelerated gradient schemes",
    Foundations of Computational Mathematics 15, 2015.
    """

    step_size: Step
    acceleration: bool
    restart: bool
    backtracking: bool
    allow_stochastic: bool

    metrics: ClassVar[Mapping[str, Metric]] = {
        "grad_norm": Metric(_mapping_norm),
        "step": Metric(attrgetter("t")),
    }
    State: ClassVar[type] = ProximalGradientState

    def __init__(
        self,
        step: Step = "auto",
        acceleration: bool = False,
        restart: bool = False,
        backtracking: bool = False,
        allow_stochastic: bool = False,
    ) -> None:
        refuse_bad(step, NAME, schedules=not backtracking)
        if restart and not acceleration:
            raise InputError(f"{NAME}: restart=True restarts the momentum, but acceleration=False; turn it on as well")
        object.__setattr__(self, "step_size", step)
        object.__setattr__(self, "acceleration", acceleration)
        object.__setattr__(self, "restart", restart)
        object.__setattr__(self, "backtracking", backtracking)
        object.__setattr__(self, "allow_stochastic", allow_stochastic)

    def slots(self) -> tuple[Slot, ...]:
        careful, noisy = Exactness.approximate, Exactness.stochastic
        needs = ("value_and_gradient", "value") if self.backtracking else ("gradient",)
        rest = careful if self.acceleration and not self.allow_stochastic else noisy
        return (
            Slot("smooth", needs=needs, at_least=1, accepts=careful if self.backtracking else rest),
            Slot("rest", needs=("prox",), at_most=1, accepts=rest),
        )

    def check(self, parts: Any) -> None:
        if self.acceleration:
            _warn_of_noise(parts)
        if self.backtracking:
            return
        factor, why = (1.0, "accelerated steps need t <= 1/L") if self.acceleration else (2.0, "steps need t < 2/L")
        why += " to converge; take a smaller step or 'auto'"
        check_step(self.step_size, parts.smooth.lipschitz, factor, NAME, why)

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> ProximalGradientState:
        if not self.backtracking:
            t = first_step(self.step_size, parts.smooth.lipschitz, NAME)
            return ProximalGradientState(start, start, None, t, 1.0, 0)
        value, gradient = parts.smooth.value_and_gradient(start)
        if self.step_size == "auto":
            t = first_trial(parts.smooth, start, gradient)
        else:
            t = first_step(self.step_size, None, NAME)
        return ProximalGradientState(start, start, None, t, 1.0, 0, float(value), gradient)

    def step(self, parts: Any, state: ProximalGradientState) -> ProximalGradientState:
        y = state.y
        if self.backtracking:
            x, t, value, gradient = self._trial(parts, state)
        else:
            t = scheduled(self.step_size, state.k, NAME) if callable(self.step_size) else state.t
            v = (-t) * parts.smooth.gradient(y)
            v += y
            x, value, gradient = parts.rest.prox(v, t), None, None
        if not self.acceleration:
            return ProximalGradientState(x, x, y, t, 1.0, state.k + 1, value, gradient)
        move = x - state.x
        if self.restart and inner(y - x, move) > 0:
            return ProximalGradientState(x, x, y, t, 1.0, state.k + 1, value, gradient)
        theta = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * state.theta**2))
        move *= (state.theta - 1.0) / theta
        move += x
        return ProximalGradientState(x, move, y, t, theta, state.k + 1)

    def _trial(self, parts: Any, state: ProximalGradientState) -> tuple[Array, float, float | None, Array | None]:
        value, gradient = state.value, state.gradient
        if value is None or gradient is None:
            value, gradient = parts.smooth.value_and_gradient(state.y)
        new = backtrack(
            parts.smooth, parts.rest.prox, state.y, float(value), gradient, state.t, reuse=not self.acceleration
        )
        return new.x, new.t, new.value if new.gradient is not None else None, new.gradient


def _warn_of_noise(parts: Any) -> None:
    for slot in ("smooth", "rest"):
        if getattr(getattr(parts, slot), "exactness", Exactness.exact) is Exactness.stochastic:
            warnings.warn(
                f"{NAME}: what stands in slot '{slot}' is stochastic, and acceleration amplifies its noise: expect a "
                "larger error than without; compare with acceleration=False",
                InfimumWarning,
                stacklevel=3,
            )

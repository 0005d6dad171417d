"""The primal-dual hybrid gradient method of Chambolle and Pock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from infimum.arrays import Array
from infimum.errors import InputError
from infimum.solver import Metric, Slot, Solver
from infimum_splitting.primal_dual import DUAL, METRICS, PRIMAL, SAFETY, PrimalDualState, advance, begin, norm_squared
from infimum_splitting.steps import FixedStep, curvature, prox_step, refuse_bad

NAME = "splitting.pdhg"


@dataclass(frozen=True)
class PDHG(Solver):
    """Minimize `f(x) + sum_i g_i(A_i x)`, f with a prox, each g_i with a prox and a linear map, which is not inverted.

    Each step computes, with A the maps stacked and `ahead = 2 x - (the x before)`,

        `y+ = prox_{sigma g*}(y + sigma A ahead)`,  `x+ = prox_{tau f}(x - tau A^T y+)`:

    every map, every adjoint and every prox once. Reports `x+` (so it lies in the domain of f). Iteration 0 is the
    start, with y = 0.

    `residual`, the larger of `primal_residual` and `dual_residual`, None at iteration 0, certifies a solution. The
    proxes give `(x - x+)/tau - A^T y+ ∈ ∂f(x+)` and `(y - y+)/sigma + A ahead ∈ ∂g*(y+)`, hence

        `p = (x - x+)/tau ∈ ∂f(x+) + A^T y+`  and  `d = (y - y+)/sigma + A (ahead - x+) ∈ ∂g*(y+) - A x+`.

    For `p = 0` and `d = 0` these are the optimality conditions of x+ and y+. `primal_residual = ||p||`, in units of the
    gradient, bounds the distance of zero from the first set; `dual_residual = ||d||`, in units of A x, that from the
    second: y+ is a subgradient of g at `A x+ + d`. Neither shrinks with the step sizes.

    Parameters
    ----------
    tau, sigma : float or "auto", default "auto"
        Primal and dual step size, with `tau sigma ||A||^2 < 1`, where ||A||^2 is the sum of the squared norms of all
        maps. "auto" makes that product 0.99, with `sigma / tau = ratio`, or by the other one if that is given.
    ratio : float or "auto", default "auto"
        `sigma / tau` of the automatic steps: a large one makes dual steps long and primal ones short. Every ratio
        converges; it only decides how fast. "auto" is (L / ||A||)^2 if f declares the Lipschitz constant L > 0 of its
        gradient, so that tau is about 1/L, else 1. A number needs tau="auto" and sigma="auto".

    Raises
    ------
    InputError
        For a step or ratio that is not positive and finite, a ratio beside a given step, or steps that are too long,
        with the numbers.

    References
    ----------
    A. Chambolle, T. Pock, "A first-order primal-dual algorithm for convex problems with applications to imaging",
    J. Mathematical Imaging and Vision 40, 2011.
    """

    tau: FixedStep = "auto"
    sigma: FixedStep = "auto"
    ratio: FixedStep = "auto"

    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    State: ClassVar[type] = PrimalDualState

    def __post_init__(self) -> None:
        refuse_steps(self.tau, self.sigma, self.ratio, NAME)

    def slots(self) -> tuple[Slot, ...]:
        return (PRIMAL, DUAL)

    def steps(self, parts: Any) -> tuple[float, float]:
        """`(tau, sigma)` as numbers."""
        square = norm_squared(parts.dual)
        if self.tau != "auto":
            tau = float(self.tau)
            return tau, float(self.sigma) if self.sigma != "auto" else SAFETY / (tau * square) if square else 1.0
        if self.sigma != "auto":
            sigma = float(self.sigma)
            return (SAFETY / (sigma * square) if square else 1.0), sigma
        if not square:
            return prox_step("auto", (parts.primal,)), 1.0
        ratio = balanced(self.ratio, curvature(parts.primal), square)
        tau = math.sqrt(SAFETY / (ratio * square))
        return tau, ratio * tau

    def check(self, parts: Any) -> None:
        check_product(*self.steps(parts), norm_squared(parts.dual), NAME)

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> PrimalDualState:
        return begin(parts, start, None, *self.steps(parts))

    def step(self, parts: Any, state: PrimalDualState) -> PrimalDualState:
        return advance(parts, state, None)


def refuse_steps(tau: Any, sigma: Any, ratio: Any, what: str) -> None:
    """Raise `InputError` for options that no problem could make good."""
    for option, given in (("tau", tau), ("sigma", sigma), ("ratio", ratio)):
        refuse_bad(given, what, schedules=False, option=option)
    if ratio != "auto" and not tau == sigma == "auto":
        raise InputError(
            f"{what}: ratio={ratio:g} sets sigma / tau of the automatic steps, but tau={tau!r} and sigma={sigma!r}; "
            "leave out the ratio or both steps"
        )


def balanced(ratio: Any, constant: float | None, square: float) -> float:
    """`sigma / tau` as a number."""
    if ratio != "auto":
        return float(ratio)
    return constant**2 / square if constant and square else 1.0


def check_product(tau: float, sigma: float, square: float, what: str) -> None:
    """Refuse `tau sigma ||A||^2 >= 1`, with the numbers."""
    product = tau * sigma * square
    if product >= 1.0:
        raise InputError(
            f"{what}: tau*sigma*||A||^2 = {product:.4g} >= 1 (tau = {tau:.4g}, sigma = {sigma:.4g}, "
            f"||A||^2 = {square:.4g}): the iterates need not converge; with this tau take sigma < "
            f"{1.0 / (tau * square):.4g}, or leave one of them 'auto'"
        )

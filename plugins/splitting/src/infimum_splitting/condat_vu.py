"""The primal-dual method of Condat and Vũ: PDHG with a smooth term."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from infimum.arrays import Array
from infimum.errors import InputError
from infimum.solver import Metric, Slot, Solver
from infimum_splitting.pdhg import balanced, check_product, refuse_steps
from infimum_splitting.primal_dual import DUAL, METRICS, PRIMAL, SAFETY, PrimalDualState, advance, begin, norm_squared
from infimum_splitting.steps import FixedStep

NAME = "splitting.condat_vu"


@dataclass(frozen=True)
class CondatVu(Solver):
    """Minimize `h(x) + f(x) + sum_i g_i(A_i x)`: h smooth, f with a prox, each g_i with a prox and a linear map.

    Each step computes, with A the maps stacked and `ahead = 2 x - (the x before)`,

        `y+ = prox_{sigma g*}(y + sigma A ahead)`,  `x+ = prox_{tau f}(x - tau (grad h(x) + A^T y+))`:

    every map, every adjoint, every prox and the gradient once. Reports `x+` (so it lies in the domain of f). Iteration
    0 is the start, with y = 0. Without h this is `splitting.pdhg`, without any g_i proximal gradient.

    `residual`, the larger of `primal_residual` and `dual_residual`, None at iteration 0, certifies a solution. The
    proxes give `(x - x+)/tau - grad h(x) - A^T y+ ∈ ∂f(x+)` and `(y - y+)/sigma + A ahead ∈ ∂g*(y+)`, hence

        `p = (x - x+)/tau + grad h(x+) - grad h(x) ∈ grad h(x+) + ∂f(x+) + A^T y+`  and
        `d = (y - y+)/sigma + A (ahead - x+) ∈ ∂g*(y+) - A x+`.

    For `p = 0` and `d = 0` these are the optimality conditions of x+ and y+. `primal_residual = ||p||`, in units of the
    gradient, bounds the distance of zero from the first set; `dual_residual = ||d||`, in units of A x, that from the
    second. Neither shrinks with the step sizes.

    Parameters
    ----------
    tau, sigma : float or "auto", default "auto"
        Primal and dual step size, with `1/tau - sigma ||A||^2 > L/2` for the Lipschitz constant L of grad h and ||A||^2
        the sum of the squared norms of all maps (with equality and no map this is t = 2/L, where gradient steps may
        run back and forth). "auto" makes `1/tau = L + sigma ||A||^2 / 0.99`.
    ratio : float or "auto", default "auto"
        `sigma / tau` of the automatic steps: a large one makes dual steps long and primal ones short. "auto" is
        (L / ||A||)^2, which gives both halves of the condition the same weight, or 1 for L = 0. A number needs
        tau="auto" and sigma="auto".

    Raises
    ------
    InputError
        For a step or ratio that is not positive and finite, a ratio beside a given step, steps that are too long, with
        the numbers, or "auto" where no L is known.

    References
    ----------
    L. Condat, "A primal-dual splitting method for convex optimization involving Lipschitzian, proximable and linear
    composite terms", J. Optimization Theory and Applications 158, 2013. B. C. Vũ, "A splitting algorithm for dual
    monotone inclusions involving cocoercive operators", Advances in Computational Mathematics 38, 2013.
    """

    tau: FixedStep = "auto"
    sigma: FixedStep = "auto"
    ratio: FixedStep = "auto"

    metrics: ClassVar[Mapping[str, Metric]] = METRICS
    State: ClassVar[type] = PrimalDualState

    def __post_init__(self) -> None:
        refuse_steps(self.tau, self.sigma, self.ratio, NAME)

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", needs=("gradient",), at_least=1), PRIMAL, DUAL)

    def steps(self, parts: Any) -> tuple[float, float]:
        """`(tau, sigma)` as numbers."""
        constant, square = parts.smooth.lipschitz, norm_squared(parts.dual)
        if self.tau != "auto" and self.sigma != "auto":
            return float(self.tau), float(self.sigma)
        if constant is None:
            raise InputError(
                f"{NAME}: tau and sigma 'auto' rest on the Lipschitz constant L of the gradient of what stands in slot "
                "'smooth', which is not known; declare it on the function (lipschitz=L) or give both as numbers"
            )
        if self.tau != "auto":
            return float(self.tau), self._sigma(float(self.tau), constant, square)
        if self.sigma != "auto":
            total = constant + float(self.sigma) * square / SAFETY
            return (1.0 / total if total else 1.0), float(self.sigma)
        # The positive root of  ratio ||A||^2 tau^2 / 0.99 + L tau = 1.
        ratio = balanced(self.ratio, constant, square)
        root = constant + math.sqrt(constant**2 + 4.0 * ratio * square / SAFETY)
        tau = 2.0 / root if root else 1.0
        return tau, ratio * tau

    @staticmethod
    def _sigma(tau: float, constant: float, square: float) -> float:
        left = 1.0 / tau - 0.5 * constant
        if left <= 0.0:
            raise InputError(
                f"{NAME}: 1/tau = {1.0 / tau:.4g} <= L/2 = {0.5 * constant:.4g} (tau = {tau:.4g}, L = "
                f"{constant:.4g}): no sigma makes up for that; take tau < 2/L = {2.0 / constant:.4g}, or 'auto'"
            )
        return SAFETY * left / square if square else 1.0

    def check(self, parts: Any) -> None:
        tau, sigma = self.steps(parts)
        constant, square = parts.smooth.lipschitz, norm_squared(parts.dual)
        if not constant:
            check_product(tau, sigma, square, NAME)
            return
        left = 1.0 / tau - sigma * square
        if left <= 0.5 * constant:
            raise InputError(
                f"{NAME}: 1/tau - sigma*||A||^2 = {left:.4g} <= L/2 = {0.5 * constant:.4g} (tau = {tau:.4g}, sigma = "
                f"{sigma:.4g}, ||A||^2 = {square:.4g}, L = {constant:.4g}): the iterates need not converge; take a "
                "smaller tau or sigma, or leave one of them 'auto'"
            )

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> PrimalDualState:
        return begin(parts, start, parts.smooth.gradient(start), *self.steps(parts))

    def step(self, parts: Any, state: PrimalDualState) -> PrimalDualState:
        return advance(parts, state, parts.smooth.gradient)

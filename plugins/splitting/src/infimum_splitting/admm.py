"""The alternating direction method of multipliers with two blocks, x and z = A x."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np

from infimum.arrays import Array, norm, zeros_like
from infimum.errors import InputError
from infimum.solver import Metric, Slot, Solver
from infimum_splitting.changes import change_metrics
from infimum_splitting.primal_dual import all_moved, norm_squared
from infimum_splitting.steps import FixedStep, certain, curvature, moved, refuse_bad

NAME = "splitting.admm"
BALANCE_EVERY = 10
BALANCE_UNTIL = 1000
UNEVEN = 10.0
"""How many times larger than the other one of the residuals may be before rho changes."""
ROUNDED = 1.0 + 1e-9


@dataclass(slots=True)
class ADMMState:
    """`x`, the multipliers `y` (one array a part) and `pull` = A^T y, with those of the iteration before.

    `x_from` is None at iteration 0. `image` is A x. `leap` is by how much `pull` was extrapolated for `x`, and
    `rho_from` the penalty that `x` and `y` were made with; `rho` and `tau` are those of the next iteration.
    """

    x: Array
    y: list[Array]
    image: list[Array]
    pull: Array
    x_from: Array | None
    y_from: list[Array]
    pull_from: Array
    pull_before: Array
    leap: float
    rho_from: float
    tau_from: float
    rho: float
    tau: float
    k: int


def _primal(state: ADMMState) -> float | None:
    if state.x_from is None:
        return None
    return math.hypot(*(moved(before, y, state.rho_from) for before, y in zip(state.y_from, state.y, strict=True)))


def _dual(state: ADMMState) -> float | None:
    if state.x_from is None:
        return None
    used = state.pull_from + state.leap * (state.pull_from - state.pull_before)
    return certain(norm((state.x_from - state.x) / state.tau_from + (state.pull - used)), state.x, state.tau_from)


def _residual(state: ADMMState) -> float | None:
    primal, dual = _primal(state), _dual(state)
    return None if primal is None or dual is None else max(primal, dual)


@dataclass(frozen=True)
class ADMM(Solver):
    """Minimize `f(x) + sum_i g_i(A_i x)` as `f(x) + g(z)` with `A x - z = 0`, f and each g_i with a prox.

    Each step computes, with A the maps stacked,

        `x+ = prox_{tau f}(x - tau A^T (y + rho (A x - z)))`,
        `z+ = prox_{g/rho}(A x+ + y/rho)`,  `y+ = y + rho (A x+ - z+)`:

    every map, every adjoint and every prox once. This is linearized ADMM: the quadratic term of the x step is replaced
    by its bound `||x - x+||^2 / (2 tau)`. Where `A^T A` is a multiple of the identity (no map at all, say) and
    tau = "auto" the bound is the term itself, and this is ADMM as in the textbooks. A general `A x + B z = c` on two
    blocks is a set under a map from both blocks in slot `second`.

    Reports `x+` (so it lies in the domain of f); z is the same up to `primal_residual`. Iteration 0 is the start, with
    z = A x and y = 0.

    `residual`, the larger of the two below, None at iteration 0, certifies a solution. The z step gives
    `y+ ∈ ∂g(z+)`, and the x step, with v = y + rho (A x - z),

        `s = (x - x+)/tau + A^T (y+ - v) ∈ ∂f(x+) + A^T y+`.

    With `s = 0` and `A x+ = z+` these are the optimality conditions of x+ and y+. `primal_residual = ||A x+ - z+||` is
    in units of A x, `dual_residual = ||s||` in units of the gradient.

    Parameters
    ----------
    rho : float or "auto", default "auto"
        Penalty on A x - z. Every rho > 0 converges. "auto" is L / ||A||^2 if f declares the Lipschitz constant L > 0 of
        its gradient, else 1/||A||, with ||A||^2 the sum of the squared norms of all maps.
    tau : float or "auto", default "auto"
        Step of x, with `tau rho ||A||^2 <= 1`; "auto" makes it 1.
    balance : bool, default False
        Double or halve rho (and tau the other way) when one residual, relative to `||A x||` and `||A^T y||`, is 10
        times the other. Looked at every 10 iterations up to iteration 1000; then rho stays, which convergence asks for.

    Raises
    ------
    InputError
        For rho or tau that are not positive and finite, or too long a tau, with the numbers.

    References
    ----------
    S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein, "Distributed optimization and statistical learning via the
    alternating direction method of multipliers", Foundations and Trends in Machine Learning 3(1), 2011.
    """

    rho: FixedStep = "auto"
    tau: FixedStep = "auto"
    balance: bool = False

    metrics: ClassVar[Mapping[str, Metric]] = {
        "residual": Metric(_residual),
        "primal_residual": Metric(_primal),
        "dual_residual": Metric(_dual),
        "rho": Metric(attrgetter("rho")),
        **change_metrics(all_moved),
    }
    State: ClassVar[type] = ADMMState

    def __post_init__(self) -> None:
        refuse_bad(self.rho, NAME, schedules=False, option="rho")
        refuse_bad(self.tau, NAME, schedules=False, option="tau")

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("first", needs=("prox",), at_most=1),
            Slot("second", needs=("prox",), at_least=1, each=True, takes_map=True),
        )

    def steps(self, parts: Any) -> tuple[float, float]:
        """`(rho, tau)` as numbers."""
        square, constant = norm_squared(parts.second), curvature(parts.first)
        if self.rho != "auto":
            rho = float(self.rho)
        elif not square:
            rho = 1.0
        else:
            rho = constant / square if constant else 1.0 / math.sqrt(square)
        if self.tau != "auto":
            return rho, float(self.tau)
        return rho, 1.0 / (rho * square) if square else 1.0

    def check(self, parts: Any) -> None:
        square = norm_squared(parts.second)
        rho, tau = self.steps(parts)
        product = tau * rho * square
        if product > ROUNDED:
            raise InputError(
                f"{NAME}: tau*rho*||A||^2 = {product:.4g} > 1 (tau = {tau:.4g}, rho = {rho:.4g}, ||A||^2 = "
                f"{square:.4g}): the iterates need not converge; take tau <= {1.0 / (rho * square):.4g}, or 'auto'"
            )

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> ADMMState:
        rho, tau = self.steps(parts)
        image = [part.map(start) for part in parts.second]
        y, pull = [zeros_like(one) for one in image], zeros_like(start)
        return ADMMState(start, y, image, pull, None, y, pull, pull, 0.0, rho, tau, rho, tau, 0)

    def step(self, parts: Any, old: ADMMState) -> ADMMState:
        rho, tau = old.rho, old.tau
        # v = y + rho (A x - z) is y + (rho/rho_from) (y - y_from), since y = y_from + rho_from (A x - z): z and A^T of
        # it are not needed.
        leap = rho / old.rho_from
        v = old.pull - old.pull_from
        v *= leap
        v += old.pull
        v *= -tau
        v += old.x
        x = parts.first.prox(v, tau)
        y, images, pull = [], [], None
        for part, before in zip(parts.second, old.y, strict=True):
            image = part.map(x)
            target = before / rho
            target += image
            moved = target - part.prox(target, 1.0 / rho)
            moved *= rho
            y.append(moved)
            images.append(image)
            back = part.adjoint(moved)
            pull = back if pull is None else pull + back
        new = ADMMState(x, y, images, pull, old.x, old.y, old.pull, old.pull_from, leap, rho, tau, rho, tau, old.k + 1)
        return _balanced(new) if self.balance and new.k % BALANCE_EVERY == 0 and new.k <= BALANCE_UNTIL else new


def _balanced(state: ADMMState) -> ADMMState:
    """The same state with another rho for the next iteration, where the residuals are uneven."""
    primal, dual = _primal(state), _dual(state)
    size, pull = math.hypot(*map(norm, state.image)), norm(state.pull)
    if not primal or not dual or not size or not pull:
        return state
    uneven = (primal / size) / (dual / pull)
    if 1.0 / UNEVEN <= uneven <= UNEVEN:
        return state
    factor = 2.0 if uneven > UNEVEN else 0.5
    return replace(state, rho=factor * state.rho, tau=state.tau / factor)

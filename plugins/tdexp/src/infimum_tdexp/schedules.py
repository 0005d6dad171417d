"""Exponential step sizes: from large to small within a horizon, known or doubling. They serve any solver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, Lt

from infimum.errors import InputError
from infimum_tdexp import checks, theory

BETA = 10.0
"""Of the steps that TD(0) takes by default: in benchmarks/tdexp.py it leads to smaller errors than 1 in nearly all
settings, and where eta0 is too small for the horizon to much smaller ones."""

Whole = Annotated[int, Ge(1)]
Positive = Annotated[float, Gt(0)]


@dataclass(frozen=True)
class Exponential:
    """Falls by a constant factor: `eta0 (beta/T)^(t/T)` at step t = k + 1 of T, from eta0 down to `eta0 beta/T`.

    Large at first, so that the start is forgotten; small in the end, so that the noise is averaged out; in between at
    every scale for an equal share of the steps, which is why one eta0 fits problems of unlike curvature. After T steps
    it stays at `eta0 beta/T`.

    Parameters
    ----------
    horizon : int
        T, the planned number of steps. Not known? `tdexp.doubling`.
    eta0 : float, default 1.0
        The step size before the first factor. For TD(0) with features of norm <= 1, err on the large side: 1, or 2
        unless features are one-hot (see the table in the README).
    beta : float, default 1.0
        The last step is `eta0 beta/T`; above 0, at most T.

    Raises
    ------
    InputError
        Without a horizon, or for an option out of range.

    References
    ----------
    Li, Schmidt, Babanezhad, Vaswani, "Towards parameter-free temporal difference learning", arXiv 2603.02577,
    Section 3; Li, Zhuang, Orabona, ICML 2021.
    """

    horizon: Whole
    eta0: Positive = 1.0
    beta: Positive = 1.0

    examples: ClassVar[Sequence[Any]] = ({"horizon": 50}, {"horizon": 12, "eta0": 0.3, "beta": 10.0})

    def __init__(self, horizon: Whole | None = None, eta0: Positive = 1.0, beta: Positive = 1.0) -> None:
        if horizon is None:
            raise InputError(
                "the exponential schedule needs horizon=T, the number of steps that are planned; where it is not "
                "known, take tdexp.doubling"
            )
        T = checks.whole(horizon, "horizon", "the exponential schedule")
        object.__setattr__(self, "horizon", T)
        object.__setattr__(self, "eta0", checks.positive(eta0, "eta0", "the exponential schedule"))
        object.__setattr__(self, "beta", checks.positive(beta, "beta", "the exponential schedule"))
        if self.beta > T:
            raise InputError(f"the exponential schedule: beta = {self.beta:g} must be at most the horizon, {T}")

    def __call__(self, k: int) -> float:
        return decayed(self.eta0, self.beta, self.horizon, k + 1)


@dataclass(frozen=True)
class Doubling:
    """Exponential steps over `first` steps, then anew over twice as many, and so on: for an unknown horizon.

    Each round starts at eta0 again, from the last iterate of the one before; look at the iterate at the end of a
    round, after `first (2^j - 1)` steps.

    Parameters
    ----------
    first : int, default 1024
        Steps of the first round.
    eta0 : float, default 1.0
        First step size of each round.
    beta : float, default 1.0
        The last step of a round of T is `eta0 beta/T`; at most `first`.

    Raises
    ------
    InputError
        For an option out of range.
    """

    first: Whole = 1024
    eta0: Positive = 1.0
    beta: Positive = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", checks.whole(self.first, "first", "the doubling schedule"))
        for name in ("eta0", "beta"):
            object.__setattr__(self, name, checks.positive(getattr(self, name), name, "the doubling schedule"))
        if self.beta > self.first:
            raise InputError(f"the doubling schedule: beta = {self.beta:g} must be at most first, {self.first}")

    def __call__(self, k: int) -> float:
        round_ = (k // self.first + 1).bit_length() - 1
        horizon = self.first << round_
        return decayed(self.eta0, self.beta, horizon, k - (horizon - self.first) + 1)


@dataclass(frozen=True)
class Theory:
    """Exponential steps with the eta0 of the theorems: a proof's constant, far too small to learn with in practice.

    Parameters
    ----------
    horizon : int
        T, at least 2.
    gamma : float
        Discount, in [0, 1).
    sampling : {"iid", "markov"}, default "iid"
        Independent states: eta0 = (1 - gamma)/8. One trajectory: eta0 of Theorem 4.10, which needs omega, or with
        `regularized` of Theorem 4.12, which needs T only.
    omega : float, optional
        Smallest eigenvalue of E[phi phi'] under the stationary distribution.
    regularized : bool, default False
        For TD(0) with lam = 1/sqrt(T).
    beta : float, default 1.0
        As in `tdexp.exponential`.

    Raises
    ------
    InputError
        For an option out of range, or a trajectory without `omega` and `regularized`.
    """

    horizon: Annotated[int, Ge(2)]
    gamma: Annotated[float, Ge(0), Lt(1)]
    sampling: Literal["iid", "markov"] = "iid"
    omega: Positive | None = None
    regularized: bool = False
    beta: Positive = 1.0

    examples: ClassVar[Sequence[Any]] = (
        {"horizon": 100, "gamma": 0.9},
        {"horizon": 100, "gamma": 0.9, "sampling": "markov", "omega": 0.01},
        {"horizon": 100, "gamma": 0.9, "sampling": "markov", "regularized": True},
    )

    def __post_init__(self) -> None:
        what = "the theory schedule"
        object.__setattr__(self, "horizon", checks.whole(self.horizon, "horizon", what, least=2))
        object.__setattr__(self, "beta", checks.positive(self.beta, "beta", what))
        object.__setattr__(self, "gamma", checks.discount(self.gamma, what))
        checks.sampling(self.sampling, what)
        if self.beta > self.horizon:
            raise InputError(f"{what}: beta = {self.beta:g} must be at most the horizon, {self.horizon}")
        if self.omega is not None:
            object.__setattr__(self, "omega", checks.positive(self.omega, "omega", what))
        elif self.sampling == "markov" and not self.regularized:
            raise InputError(
                f"{what}: eta0 for one trajectory needs omega, the smallest eigenvalue of E[phi phi']; give omega=, "
                "or take the regularized form (lam = 1/sqrt(T)), which needs T only"
            )

    @cached_property
    def eta0(self) -> float:
        """The initial step size."""
        if self.sampling == "iid":
            return theory.iid_step(self.gamma)
        if self.regularized or self.omega is None:
            return theory.regularized_step(self.horizon)
        return theory.markov_step(self.gamma, self.omega, self.horizon)

    def __call__(self, k: int) -> float:
        return decayed(self.eta0, self.beta, self.horizon, k + 1)


def usual(horizon: int | None, eta0: float = 1.0, beta: float = BETA) -> Exponential | Doubling:
    """Exponential steps over a horizon, doubling ones without; with a smaller beta where the horizon is shorter."""
    if horizon is None:
        return Doubling(max(1024, math.ceil(beta)), eta0, beta)
    return Exponential(horizon, eta0, min(beta, horizon))


def decayed(eta0: float, beta: float, horizon: int, t: int) -> float:
    """`eta0 (beta/T)^(t/T)`, without the drift of a running product; exactly `eta0 beta/T` from t = T on."""
    if t >= horizon:
        return eta0 * beta / horizon
    return eta0 * math.exp(t / horizon * math.log(beta / horizon))

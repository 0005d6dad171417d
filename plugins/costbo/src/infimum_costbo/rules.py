"""Stopping rules of infimum: the cost-aware one, and those that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from infimum.status import Status
from infimum.stopping import StoppingRule
from infimum.stopping.base import Tracker
from infimum.stopping.options import COUNT, POSITIVE_COUNT, number
from infimum_costbo import rivals

Warping = Literal["auto", "log"] | None


def _positive(value: object) -> float:
    converted = number(value)
    if converted <= 0.0:
        raise ValueError(f"must be a positive number, got {value}")
    return converted


def _lam(value: object) -> float:
    try:
        return _positive(value)
    except ValueError as error:
        raise ValueError(f"is objective units per cost unit and {error}") from None


def _count_or_none(value: object) -> int | None:
    return None if value is None else COUNT["check"](value)


def _warp(value: object) -> Any:
    if value not in ("auto", "log", None):
        raise ValueError(f"must be 'auto', 'log' or None, got {value!r}")
    return value


def _cost(value: object) -> Any:
    if value not in ("paid", "uniform"):
        raise ValueError(f"must be 'paid' (the cost that the trials carry) or 'uniform', got {value!r}")
    return value


LEAST = {"check": _count_or_none}
LAM = {"check": _lam}
POSITIVE = {"check": _positive}
WARP = {"check": _warp}
COST = {"check": _cost}


@dataclass(frozen=True, repr=False)
class Stop(StoppingRule):
    """Stop when no point of the space is worth its cost; status `converged`.

    At each check, of all points that could be evaluated next, the largest expected improvement per expected cost is
    compared with `lam`. Whoever proposes the points: any `optuna.*` solver, `costbo.gp`, or a study of Optuna's under
    `infimum_optuna.stop_when`.

    Parameters
    ----------
    lam : float
        Worth of a unit of cost in units of the objective, positive.
    cost : {"paid", "uniform"}, default "paid"
        "paid": the cost that the trials carry (attribute "cost" in a run, or what `stop_when` was told), modeled by a
        second Gaussian process unless it is a known function of the parameters. "uniform": one unit each.
    warp : {"auto", "log", None}, default "auto"
        Model the logarithm of the objective: "auto" for one that is minimized, positive and spreads over a factor
        of 3.
    min_trials : int, optional
        Evaluations before it may stop; 2 (d + 1) by default, d the number of parameters.
    window : int, default 1
        Average the gain per cost over the last evaluations.
    calibrate : bool, default False
        Multiply the predicted gain by r_t, the share of earlier predictions that came true.
    measures : bool, default True
        Also compute what other rules would need, for the report.
    seed : int, default 0
        Of the search for the best point.

    References
    ----------
    Xie et al., "Cost-aware Stopping for Bayesian Optimization", arXiv 2507.12453, section 3.
    """

    lam: float = field(metadata=LAM)
    cost: Literal["paid", "uniform"] = field(default="paid", metadata=COST, kw_only=True)
    warp: Warping = field(default="auto", metadata=WARP, kw_only=True)
    min_trials: int | None = field(default=None, metadata=LEAST, kw_only=True)
    window: int = field(default=1, metadata=POSITIVE_COUNT, kw_only=True)
    calibrate: bool = field(default=False, kw_only=True)
    measures: bool = field(default=True, kw_only=True)
    seed: int = field(default=0, metadata=COUNT, kw_only=True)

    word: ClassVar[str] = "costbo.stop"
    needs: ClassVar[tuple[str, ...]] = ("history",)
    status: ClassVar[Status] = Status.converged
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"lam": 0.01},
        {"lam": 0.5, "cost": "uniform", "calibrate": True, "window": 3, "min_trials": 4},
    )

    def start(self) -> Tracker:
        from infimum_costbo.trackers import StopTracker

        return StopTracker(self)


@dataclass(frozen=True, repr=False, kw_only=True)
class _OnModel(StoppingRule):
    """Looks at one number of a model of the objective.

    Parameters
    ----------
    cost, warp, min_trials, seed
        See `costbo.stop`.
    """

    cost: Literal["paid", "uniform"] = field(default="uniform", metadata=COST)
    warp: Warping = field(default="auto", metadata=WARP)
    min_trials: int | None = field(default=None, metadata=LEAST)
    seed: int = field(default=0, metadata=COUNT)

    needs: ClassVar[tuple[str, ...]] = ("history",)
    status: ClassVar[Status] = Status.stalled

    def start(self) -> Tracker:
        from infimum_costbo.trackers import ModelTracker

        return ModelTracker(self)

    def fires(self, columns: rivals.Columns) -> bool:
        """Whether to stop, from what was recorded so far."""
        raise NotImplementedError

    column: ClassVar[str] = ""
    """What the rule looks at."""


@dataclass(frozen=True, repr=False, kw_only=True)
class _OnFirstValues(_OnModel):
    """Compares that number with its own first values.

    Parameters
    ----------
    eta : float, default 0.01
        Share of the median of the first values.
    first : int, default 20
        Evaluations whose median is the yardstick.
    """

    eta: float = field(default=0.01, metadata=POSITIVE)
    first: int = field(default=20, metadata=POSITIVE_COUNT)


@dataclass(frozen=True, repr=False, kw_only=True)
class UcbLcb(_OnModel):
    """Stop when the least upper and the least lower confidence bound are close; status `stalled`. Blind to cost.

    Parameters
    ----------
    tol : float, default 0.01
        In units of the objective, or of its logarithm under the log warp.

    References
    ----------
    Makarova et al., "Automatic Termination for Hyperparameter Optimization", AutoML 2022.
    """

    tol: float = field(default=0.01, metadata=POSITIVE)

    word: ClassVar[str] = "costbo.ucb_lcb"
    column: ClassVar[str] = "ucb_lcb"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"tol": 0.1})

    def fires(self, columns: rivals.Columns) -> bool:
        return rivals.ucb_lcb(columns, self.tol)


@dataclass(frozen=True, repr=False, kw_only=True)
class SrgapMedian(_OnFirstValues):
    """Stop when the expected minimum simple regret hardly changes any more; status `stalled`. Blind to cost.

    References
    ----------
    Ishibashi et al., "A stopping criterion for Bayesian optimization by the gap of expected minimum simple regrets",
    AISTATS 2023.
    """

    word: ClassVar[str] = "costbo.srgap_median"
    column: ClassVar[str] = "regret_gap"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"eta": 0.1, "first": 5})

    def fires(self, columns: rivals.Columns) -> bool:
        return rivals.srgap_median(columns, self.eta, self.first)


@dataclass(frozen=True, repr=False, kw_only=True)
class LogEipcMedian(_OnFirstValues):
    """Stop when the largest expected improvement per cost is small beside its first values; status `stalled`.

    Parameters
    ----------
    cost : {"paid", "uniform"}, default "paid"
        See `costbo.stop`.
    """

    cost: Literal["paid", "uniform"] = field(default="paid", metadata=COST)

    word: ClassVar[str] = "costbo.log_eipc_median"
    column: ClassVar[str] = "log_eipc"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"eta": 0.1, "first": 5})

    def fires(self, columns: rivals.Columns) -> bool:
        return rivals.log_eipc_median(columns, self.eta, self.first)


@dataclass(frozen=True, repr=False)
class _OnValues(StoppingRule):
    patience: int = field(default=5, metadata=POSITIVE_COUNT)

    needs: ClassVar[tuple[str, ...]] = ("value",)
    status: ClassVar[Status] = Status.stalled

    def start(self) -> Tracker:
        from infimum_costbo.trackers import ValueTracker

        return ValueTracker(self)

    def fires(self, columns: rivals.Columns) -> bool:
        """Whether to stop, from the best values so far."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Convergence(_OnValues):
    """Stop when the best value has not changed for `patience` evaluations; status `stalled`.

    Parameters
    ----------
    patience : int, default 5
        Evaluations without a new best value.
    """

    word: ClassVar[str] = "costbo.convergence"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"patience": 3})

    def fires(self, columns: rivals.Columns) -> bool:
        return rivals.convergence(columns, self.patience)


@dataclass(frozen=True, repr=False)
class Gss(_OnValues):
    """Stop when `patience` evaluations improved the best value little beside its interquartile range; `stalled`.

    Parameters
    ----------
    patience : int, default 5
        Evaluations over which the improvement is looked at.
    share : float, default 0.01
        Of the interquartile range of the best value so far.
    """

    share: float = field(default=0.01, metadata=POSITIVE)

    word: ClassVar[str] = "costbo.gss"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"patience": 3, "share": 0.1})

    def fires(self, columns: rivals.Columns) -> bool:
        return rivals.gss(columns, self.patience, self.share)

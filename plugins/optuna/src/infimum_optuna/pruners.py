"""Optuna's pruners as components: `pruner: {use: optuna.median_pruner, n_startup_trials: 5}`.

They act where the function reports intermediate values and asks `trial.should_prune()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge, Gt, Lt

from infimum.errors import InputError

if TYPE_CHECKING:
    from optuna.pruners import BasePruner

Count = Annotated[int, Ge(0)]
Positive = Annotated[int, Ge(1)]


def median(
    n_startup_trials: Count = 5, n_warmup_steps: Count = 0, interval_steps: Positive = 1, n_min_trials: Positive = 1
) -> BasePruner:
    """Prune a trial whose best intermediate value is worse than the median of the earlier ones at the same step.

    Parameters
    ----------
    n_startup_trials : int, default 5
        Complete trials before any is pruned.
    n_warmup_steps : int, default 0
        Steps of a trial before it is pruned.
    interval_steps : int, default 1
        Steps between two checks.
    n_min_trials : int, default 1
        Trials that must have reached the step.
    """
    from optuna.pruners import MedianPruner

    return MedianPruner(n_startup_trials, n_warmup_steps, interval_steps, n_min_trials=n_min_trials)


def percentile(
    percentile: Annotated[float, Ge(0), Lt(100.000001)] = 25.0,
    n_startup_trials: Count = 5,
    n_warmup_steps: Count = 0,
    interval_steps: Positive = 1,
    n_min_trials: Positive = 1,
) -> BasePruner:
    """Prune a trial whose best intermediate value is not among the best `percentile` percent at the same step.

    Parameters
    ----------
    percentile : float, default 25
        In [0, 100]; Optuna's own examples use 25.
    n_startup_trials : int, default 5
        Complete trials before any is pruned.
    n_warmup_steps : int, default 0
        Steps of a trial before it is pruned.
    interval_steps : int, default 1
        Steps between two checks.
    n_min_trials : int, default 1
        Trials that must have reached the step.
    """
    from optuna.pruners import PercentilePruner

    return PercentilePruner(percentile, n_startup_trials, n_warmup_steps, interval_steps, n_min_trials=n_min_trials)


def successive_halving(
    min_resource: Positive | Literal["auto"] = "auto",
    reduction_factor: Annotated[int, Ge(2)] = 4,
    min_early_stopping_rate: Count = 0,
    bootstrap_count: Count = 0,
) -> BasePruner:
    """Asynchronous successive halving: only the best 1 / `reduction_factor` of the trials go on at each rung.

    Parameters
    ----------
    min_resource : int or "auto", default "auto"
        Steps of the first rung; "auto" takes 1 / 100 of the steps of the first complete trial.
    reduction_factor : int, default 4
        At least 2.
    min_early_stopping_rate : int, default 0
        Rungs that are left out at the beginning.
    bootstrap_count : int, default 0
        Trials that must have reached a rung before any is promoted; 0 with "auto".
    """
    from optuna.pruners import SuccessiveHalvingPruner

    if bootstrap_count and min_resource == "auto":
        raise InputError(f"bootstrap_count={bootstrap_count} goes with a number in min_resource, not with 'auto'")
    return SuccessiveHalvingPruner(min_resource, reduction_factor, min_early_stopping_rate, bootstrap_count)


def hyperband(
    min_resource: Positive = 1,
    max_resource: Positive | Literal["auto"] = "auto",
    reduction_factor: Annotated[int, Ge(2)] = 3,
    bootstrap_count: Count = 0,
) -> BasePruner:
    """Hyperband: brackets of successive halving with different first rungs; trials are dealt to them by number.

    Parameters
    ----------
    min_resource : int, default 1
        Steps of the first rung of the most eager bracket.
    max_resource : int or "auto", default "auto"
        Steps of a whole trial; "auto" takes those of the first complete one.
    reduction_factor : int, default 3
        At least 2.
    bootstrap_count : int, default 0
        Trials that must have reached a rung before any is promoted; 0 with "auto".
    """
    from optuna.pruners import HyperbandPruner

    if bootstrap_count and max_resource == "auto":
        raise InputError(f"bootstrap_count={bootstrap_count} goes with a number in max_resource, not with 'auto'")
    return HyperbandPruner(min_resource, max_resource, reduction_factor, bootstrap_count)


def threshold(
    lower: float | None = None,
    upper: float | None = None,
    n_warmup_steps: Count = 0,
    interval_steps: Positive = 1,
) -> BasePruner:
    """Prune a trial as soon as an intermediate value lies outside of limits, or is NaN.

    Parameters
    ----------
    lower, upper : float, optional
        At least one of them.
    n_warmup_steps : int, default 0
        Steps of a trial before it is pruned.
    interval_steps : int, default 1
        Steps between two checks.
    """
    from optuna.pruners import ThresholdPruner

    if lower is None and upper is None:
        raise InputError("threshold_pruner: give lower, upper or both")
    if lower is not None and upper is not None and lower > upper:
        raise InputError(f"threshold_pruner: lower={lower:g} is above upper={upper:g}")
    return ThresholdPruner(lower, upper, n_warmup_steps, interval_steps)


def patient(patience: Count, wrapped: BasePruner | None = None, min_delta: Annotated[float, Ge(0)] = 0.0) -> BasePruner:
    """Ask another pruner only after a trial has not improved for `patience` steps.

    Parameters
    ----------
    patience : int
        Steps without improvement.
    wrapped : pruner, optional
        `{use: optuna.median_pruner}`; without one a trial is pruned once its patience is over.
    min_delta : float, default 0
        What an improvement must exceed.
    """
    from optuna.pruners import PatientPruner

    from infimum_optuna.storage import quiet

    with quiet():
        return PatientPruner(wrapped, patience, min_delta)


def wilcoxon(p_threshold: Annotated[float, Gt(0), Lt(1)] = 0.1, n_startup_steps: Count = 2) -> BasePruner:
    """Signed-rank test against the best trial, for a function that averages over instances and reports each.

    Parameters
    ----------
    p_threshold : float, default 0.1
        Prune below this p-value; in (0, 1).
    n_startup_steps : int, default 2
        Instances before the first test.
    """
    from optuna.pruners import WilcoxonPruner

    from infimum_optuna.storage import quiet

    with quiet():
        return WilcoxonPruner(p_threshold=p_threshold, n_startup_steps=n_startup_steps)


patient.examples = ({"patience": 3},)  # type: ignore[attr-defined]
threshold.examples = ({"upper": 10.0},)  # type: ignore[attr-defined]

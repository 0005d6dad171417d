"""What is known of a study at one time: finished points with value and cost, and those that are being evaluated."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from infimum.errors import InputError
from infimum_costbo.cost import CostSource
from infimum_costbo.normal import Array

_ENDED: Final = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


@dataclass(frozen=True)
class Record:
    """One finished evaluation.

    Attributes
    ----------
    number : int
    params : mapping of str to object
    value : float
        In minimization sense.
    cost : float
    """

    number: int
    params: Mapping[str, Any]
    value: float
    cost: float


@dataclass(frozen=True)
class Observations:
    """Finished evaluations in the order of their numbers.

    Attributes
    ----------
    distributions : mapping of str to BaseDistribution
        The search space that all of them share.
    records : sequence of Record
    sign : float
        -1 when the user maximizes.
    other_cost : float
        Paid for evaluations that gave no value.
    """

    distributions: Mapping[str, BaseDistribution]
    records: Sequence[Record]
    sign: float = 1.0
    other_cost: float = 0.0
    costs: Array = field(init=False)
    values: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", np.array([one.cost for one in self.records]))
        object.__setattr__(self, "values", _bounded(np.array([one.value for one in self.records], dtype=float)))

    def __len__(self) -> int:
        return len(self.records)

    @property
    def paid(self) -> float:
        return float(self.costs.sum()) + self.other_cost

    @property
    def numbers(self) -> list[int]:
        return [one.number for one in self.records]

    def until(self, numbers: set[int]) -> Observations:
        """Only the records with these numbers."""
        kept = [one for one in self.records if one.number in numbers]
        return Observations(self.distributions, kept, self.sign, self.other_cost)


def _bounded(values: Array) -> Array:
    """Infinite values replaced by the worst or the best finite one: that a point failed is worth knowing."""
    finite = np.isfinite(values)
    if finite.all() or not finite.any():
        return values
    return np.clip(values, values[finite].min(), values[finite].max())


def single_objective(study: Study) -> float:
    """1 for a study that minimizes, -1 for one that maximizes.

    Raises
    ------
    InputError
        If it has several objectives.
    """
    if not hasattr(study, "directions"):
        raise InputError(f"expected a study of Optuna's, got {study!r:.60}")
    if len(study.directions) > 1:
        raise InputError(
            f"study {study.study_name!r} has {len(study.directions)} objectives; cost-aware optimization and its "
            "stopping rule are for one. Make it one number, or use another sampler"
        )
    return -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0


def of_study(study: Study, source: CostSource, distributions: Mapping[str, BaseDistribution]) -> Observations:
    """What a study knows; see `of_trials`."""
    sign = single_objective(study)
    return of_trials(study.get_trials(deepcopy=False, states=_ENDED), sign, source, distributions)


def of_trials(
    trials: Iterable[FrozenTrial], sign: float, source: CostSource, distributions: Mapping[str, BaseDistribution]
) -> Observations:
    """What finished trials tell. FAIL trials and PRUNED ones give no value, only their cost where it can be read.

    Raises
    ------
    InputError
        If the cost of a complete trial is missing or not positive.
    """
    records, lost = [], 0.0
    for trial in trials:
        if trial.state == TrialState.COMPLETE and trial.value is not None:
            value = float(trial.value)
            if not math.isnan(value) and all(name in trial.params for name in distributions):
                records.append(Record(trial.number, trial.params, sign * value, source.of_trial(trial)))
        elif trial.state in _ENDED:
            lost += _cost_if_any(trial, source)
    return Observations(distributions, records, sign, lost)


def _cost_if_any(trial: FrozenTrial, source: CostSource) -> float:
    try:
        return source.of_trial(trial)
    except (InputError, LookupError):
        return 0.0

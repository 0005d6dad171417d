"""A sampler that is made afresh for every trial, so that what it suggests depends on the seed and the trials only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.samplers import BaseSampler

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState

    from infimum_optuna.space import Space


class Seeded(BaseSampler):
    """Suggests for trial k what a fresh sampler with the k-th seed suggests.

    Optuna's samplers keep what they learn in the study; only their random numbers and some caches live in the object.
    Made afresh, they can be taken up bit for bit, and workers on one storage never draw the same numbers.

    Parameters
    ----------
    make : callable
        `make(space, study_seed, trial_seed) -> optuna.samplers.BaseSampler`; `study_seed` is the same in all trials.
    seed : int
        0 or more.
    space : Space, optional
        What `make` is given; may be set later.
    """

    def __init__(
        self, make: Callable[[Space | None, int, int], BaseSampler], seed: int, space: Space | None = None
    ) -> None:
        self._make, self._seed, self.space = make, seed, space
        self._fixed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._inner: dict[int, BaseSampler] = {}

    def __str__(self) -> str:
        return f"Seeded({self._make(self.space, 0, 0)}, seed={self._seed})"

    def _of(self, trial: FrozenTrial) -> BaseSampler:
        found = self._inner.get(trial.number)
        if found is None:
            own = np.random.SeedSequence(self._seed, spawn_key=(trial.number,)).generate_state(1)
            found = self._inner[trial.number] = self._make(self.space, self._fixed, int(own[0]))
        return found

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._of(trial).before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._of(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._of(trial).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        self._of(trial).after_trial(study, trial, state, values)
        self._inner.pop(trial.number, None)

    def reseed_rng(self) -> None:
        """Nothing: every trial has a seed of its own already."""

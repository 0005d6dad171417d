"""A sampler for Optuna that weighs what it may gain against what a trial costs."""

from __future__ import annotations

import inspect
import logging
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from infimum.errors import InputError, did_you_mean
from infimum_costbo.cost import Cost, CostSource, check_lam
from infimum_costbo.model import Acquisition, Hypers, Model, build
from infimum_costbo.observations import of_study, single_objective
from infimum_costbo.search import best_point, candidates
from infimum_costbo.stopper import CostAwareStopper, check_options, check_seed


@dataclass
class _Memory:
    """What the sampler remembers of one study."""

    space: IntersectionSearchSpace
    numbers: tuple[int, ...] = ()
    model: Model | None = None
    hypers: Hypers | None = None


class CostAwareGPSampler(BaseSampler):
    """Bayesian optimization by a Gaussian process, with the cost of a trial in the acquisition function.

    Parameters
    ----------
    lam : float
        Worth of a unit of cost in units of the objective.
    acquisition : {"pbgi", "logeipc"}, default "pbgi"
        The Pandora's box Gittins index, or the log expected improvement per expected cost, which does not use lam.
    cost : {"user_attr:NAME", "duration"}, callable or None, default None
        See `CostAwareStopper`. A cost that is only observed is modeled by a second process on its logarithm.
    n_startup_trials : int, optional
        Trials at random before the first model; 2 (d + 1) by default, d the number of parameters.
    warp : {"auto", "log", None}, default "auto"
        See `CostAwareStopper`.
    seed : int, optional
        Drawn when not given.
    independent_sampler : optuna.samplers.BaseSampler, optional
        For the trials at random and for parameters that not every trial has (conditional ones); a `RandomSampler`
        with the same seed by default.

    Raises
    ------
    InputError
        If an option does not fit; while sampling, if the study has several objectives, or the cost of a complete
        trial is missing or not positive.

    Notes
    -----
    Float, integer (both with log and step) and categorical parameters. Trials that are running are taken to come out
    as expected, so that parallel ones (`n_jobs > 1`) do not all go to the same place. Points that were evaluated are
    not proposed again. Built on Optuna's public interface only.

    References
    ----------
    Xie et al., arXiv 2507.12453, section 3.
    """

    def __init__(
        self,
        lam: float,
        acquisition: Acquisition = "pbgi",
        cost: Cost = None,
        n_startup_trials: int | None = None,
        warp: Literal["auto", "log"] | None = "auto",
        seed: int | None = None,
        *,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        if acquisition not in ("pbgi", "logeipc"):
            raise InputError(f"acquisition={acquisition!r}; expected 'pbgi' or 'logeipc'")
        check_options(warp, n_startup_trials, 1, "n_startup_trials")
        if seed is not None:
            check_seed(seed)
        if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
            raise InputError(f"independent_sampler={independent_sampler!r:.60}; expected a sampler of Optuna's")
        self._lam, self._acquisition, self._warp = check_lam(lam), acquisition, warp
        self._cost, self._startup = CostSource(cost), n_startup_trials
        self._rng = np.random.default_rng(seed)
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._studies: weakref.WeakKeyDictionary[Study, _Memory] = weakref.WeakKeyDictionary()
        self._pending: dict[tuple[str, int], dict[str, Any]] = {}
        self._warned: set[str] = set()
        self._lock = threading.RLock()

    def stopper(self, **options: Any) -> CostAwareStopper:
        """The stopping rule with the same lam, cost, warp and number of trials to start with.

        Parameters
        ----------
        **options
            Further options of `CostAwareStopper`, or others in place of these.
        """
        known = inspect.signature(CostAwareStopper).parameters
        for name in options:
            if name not in known:
                raise InputError(f"stopper: no option {name!r}; {did_you_mean(name, known)}")
        own = {"cost": self._cost.given, "warp": self._warp, "min_trials": self._startup}
        return CostAwareStopper(options.pop("lam", self._lam), **(own | options))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Parameters that every complete trial has, with the same distribution and more than one value."""
        single_objective(study)
        with self._lock:
            space = self._memory(study).space.calculate(study)
        return {name: one for name, one in space.items() if not one.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point where the acquisition function is best; empty while trials are drawn at random."""
        if not search_space:
            return {}
        with self._lock:
            model = self._model(study, search_space)
            if model is None:
                return {}
            running = self._running(study, trial, model)
            model = model.believing(running)
            chosen = self._choose(model, parallel=bool(len(running)))
            if chosen is None:
                return {}
            params = model.space.decode(chosen[0])
            self._pending[study.study_name, trial.number] = params
            return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter that not every trial has, and all of them in the trials at random."""
        memory = self._studies.get(study)
        if memory is not None and memory.model is not None and not param_distribution.single():
            self._say_once(param_name, modeled=param_name in memory.model.space.names)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        with self._lock:
            self._pending.pop((study.study_name, trial.number), None)
        self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        self._rng = np.random.default_rng()
        self._independent.reseed_rng()

    def _memory(self, study: Study) -> _Memory:
        if study not in self._studies:
            self._studies[study] = _Memory(IntersectionSearchSpace())
        return self._studies[study]

    def _model(self, study: Study, search_space: Mapping[str, BaseDistribution]) -> Model | None:
        """The model of the complete trials, made anew only when there are new ones."""
        memory = self._memory(study)
        observed = of_study(study, self._cost, search_space)
        startup = 2 * (len(search_space) + 1) if self._startup is None else self._startup
        if len(observed) < startup:
            memory.model = None
            return None
        numbers = tuple(observed.numbers)
        same = memory.model is not None and set(memory.model.space.names) == set(search_space)
        if not same or numbers != memory.numbers:
            memory.model = build(observed, self._cost, self._warp, memory.hypers)
            memory.numbers = numbers
            memory.hypers = memory.model.hypers if memory.model else None
        return memory.model

    def _choose(self, model: Model, *, parallel: bool) -> tuple[Any, float] | None:
        """The next point. Where, beside trials that run, none is worth its cost, the index only points at these."""
        found = candidates(model, self._rng)
        acquisition = self._acquisition
        if parallel and acquisition == "pbgi" and len(found):
            gains = model.score("logeipc", found.beliefs, self._lam)
            acquisition = "pbgi" if gains.max() > np.log(self._lam) else "logeipc"
        return best_point(model, found, acquisition, self._lam)

    def _running(self, study: Study, trial: FrozenTrial, model: Model) -> Any:
        """Where trials are being evaluated, as far as their parameters are known."""
        points = []
        for one in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            point = self._pending.get((study.study_name, one.number), {}) | one.params
            if one.number != trial.number and all(name in point for name in model.space.names):
                points.append(point)
        return model.space.snap(model.space.encode(points))

    def _say_once(self, name: str, *, modeled: bool) -> None:
        # A modeled parameter gets here when sample_relative found no point that is left.
        who = "" if modeled else name
        if who in self._warned:
            return
        self._warned.add(who)
        drawn = f"drawn by {type(self._independent).__name__}"
        logging.getLogger("infimum").warning(
            f"CostAwareGPSampler: every point of the space is evaluated or running, so further trials are {drawn}"
            if modeled
            else f"CostAwareGPSampler: not every trial has parameter {name!r}, or its range changed, so it is {drawn} "
            "and not modeled"
        )

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        for name in ("_lock", "_studies", "_pending"):
            del kept[name]
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._pending, self._studies = threading.RLock(), {}, weakref.WeakKeyDictionary()

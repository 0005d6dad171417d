"""What all solvers of black boxes share: one trial is one iteration, asked and told through a study of Optuna's."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from infimum.errors import InputError, NonFiniteError
from infimum.plugins.build import build
from infimum.solver import Finished, Metric, Slot, Solver
from infimum.status import Status
from infimum_optuna.history import COST, History, checked_cost
from infimum_optuna.problem import EVALUATE, Outcome
from infimum_optuna.session import NAME, Session, enqueue, finite_or_worst, make_study, where
from infimum_optuna.space import Space
from infimum_optuna.storage import open_storage, quiet

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

    from infimum_optuna.seeded import Seeded


def _history(session: Session) -> History:
    return session.history


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampling(Solver):
    """Base of the solvers: one iteration is one trial. Reports the parameters of the last trial that was evaluated.

    `best_x` is the best one. Iteration 0 is the user's x0, evaluated; without x0 it is the best trial of a study that
    was there before, or nothing yet.

    Parameters
    ----------
    storage : str, path or optuna storage, optional
        Where trials are kept (see `infimum_optuna.open_storage`); in memory by default. Several processes may work on
        one. A run on a storage is not resumed by infimum: started again, it goes on with the study.
    study : str, default "infimum"
        Name of the study in the storage; one that is there is gone on with.
    pruner : pruner, str or mapping, optional
        `{use: optuna.median_pruner}`, or an object of Optuna's.
    enqueue : list of mappings, optional
        Points to try first; what they leave out is sampled. Those that are in the study already are left out.
    fixed : mapping, optional
        Parameters that are held at a value.
    on_failure : {"stop", "continue"}, default "stop"
        What an exception or a value of NaN does after its trial was marked FAIL: end the run (as `failed` or
        `nonfinite`), or go on.
    """

    storage: Any = None
    study: str = NAME
    pruner: Any = None
    enqueue: Sequence[Mapping[str, Any]] = ()
    fixed: Mapping[str, Any] | None = None
    on_failure: Literal["stop", "continue"] = "stop"

    families: ClassVar[tuple[str, ...]] = ("black box",)
    metrics: ClassVar[Mapping[str, Metric]] = {
        "value": Metric(lambda session: session.loss),
        "best": Metric(lambda session: session.best),
        "cost": Metric(lambda session: session.cost),
        "total_cost": Metric(lambda session: session.total_cost),
        "history": Metric(_history),
    }
    inplace: ClassVar[bool] = True
    experimental: ClassVar[bool] = False
    """Whether Optuna warns that this sampler is experimental."""
    requires: ClassVar[tuple[str, str] | None] = None
    """A package that Optuna needs for this sampler, and what to install."""
    reference_problems: ClassVar[tuple[dict[str, Any], ...]] = (
        {
            "use": "optuna.black_box",
            "evaluate": "python:infimum_optuna.examples:priced",
            "space": {"x": {"low": -2.0, "high": 2.0, "step": 0.125}, "kind": ["round", "flat"]},
            "direction": "maximize",
        },
    )

    def __post_init__(self) -> None:
        if isinstance(self.pruner, str | Mapping):
            object.__setattr__(self, "pruner", build(self.pruner, "pruner").instance)
        if not isinstance(self.study, str) or not self.study:
            raise InputError(f"study={self.study!r}: expected the name of a study")
        if self.on_failure not in ("stop", "continue"):
            raise InputError(f"on_failure={self.on_failure!r}: expected 'stop' or 'continue'")
        if self.storage is not None:
            # The study outlives the run and may be ahead of any checkpoint.
            object.__setattr__(self, "resume", "none")

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("objective", needs=(EVALUATE,), at_least=1, at_most=1, empty=None),)

    def make(self, space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
        """A sampler of Optuna's for one trial: `study_seed` is the same for all trials, `trial_seed` is its own."""
        raise NotImplementedError

    def check(self, parts: Any) -> None:
        space: Space | None = parts.objective.space
        if self.requires is not None:
            _require(*self.requires)
        if self.pruner is not None:
            _require_pruner(self.pruner)
        if space is not None:
            space.check_some(self.fixed or {}, "fixed")
        try:
            with quiet():
                self.make(space, 0, 0)
        except (ValueError, TypeError) as error:
            raise InputError(str(error)) from None

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Session:
        objective = parts.objective
        seed = int(rng.integers(2**32))
        storage = open_storage(self.storage)
        sampler = self._sampler(seed)
        study = make_study(storage, self.study, objective.direction == "maximize", sampler, self.pruner)
        session = Session(study, storage, sampler, seed)
        session.adopt()
        if start is not None:
            self._first(study, start)
        enqueue(study, self.enqueue, lambda params: _known(params, objective.space))
        return session if start is None else self._trial(objective, session)

    def step(self, parts: Any, state: Session) -> Session:
        return self._trial(parts.objective, state)

    def solution(self, state: Session) -> dict[str, Any] | None:
        """The parameters of the last trial."""
        return state.x

    def dump(self, state: Session) -> Any:
        return state.dump()

    def load(self, tree: Any, start: Any) -> Session:
        return Session.load(tree, self._sampler(int(tree["seed"])), self.pruner)

    def _sampler(self, seed: int) -> Seeded:
        from optuna.samplers import PartialFixedSampler

        from infimum_optuna.seeded import Seeded

        def made(space: Space | None, study_seed: int, trial_seed: int) -> BaseSampler:
            with quiet():
                inner = self.make(space, study_seed, trial_seed)
                return PartialFixedSampler(dict(self.fixed), inner) if self.fixed else inner

        # Only what Optuna warns of needs to be kept quiet, which costs more than making a sampler.
        return Seeded(made if self.fixed or self.experimental else self.make, seed)

    def _first(self, study: Any, start: Mapping[str, Any]) -> None:
        from optuna.trial import TrialState

        if study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
            raise InputError(
                f"x0 and the points that wait in study '{study.study_name}' of {where(self.storage)} cannot both come "
                "first; leave out x0 (those that wait are evaluated first), or put it into enqueue"
            )
        study.enqueue_trial(dict(start))

    def _trial(self, objective: Any, session: Session) -> Session:
        """One trial, from asking to telling."""
        from optuna.exceptions import TrialPruned
        from optuna.trial import TrialState

        if session.ended:
            raise Finished("every point of the space has been tried", Status.converged)
        session.sampler.space = objective.space
        trial = session.study.ask()
        began = time.perf_counter()
        try:
            params = _ask(objective.space, trial)
            began = time.perf_counter()
            outcome: Outcome = objective.evaluate_params(trial, params)
        except TrialPruned:
            cost = self._told(objective, session, trial, TrialState.PRUNED, time.perf_counter() - began)
        except BaseException as error:
            cost = self._told(objective, session, trial, TrialState.FAIL, time.perf_counter() - began)
            if self.on_failure == "stop" or isinstance(error, InputError) or not isinstance(error, Exception):
                session.total_cost += cost if cost == cost else 0.0
                raise
        else:
            return self._tell(session, trial, trial.params if params is None else params, outcome)
        session.saw(trial.params, None, cost)
        return session

    def _tell(self, session: Session, trial: Trial, params: Mapping[str, Any], outcome: Outcome) -> Session:
        from optuna.trial import TrialState

        cost = _paid(trial, outcome.cost)
        for name, value in outcome.more.items():
            trial.set_user_attr(name, _plain(value))
        if finite_or_worst(outcome.value, session.maximize):
            session.study.tell(trial, outcome.value)
            session.saw(params, outcome.value, cost)
            return session
        session.study.tell(trial, state=TrialState.FAIL)
        if self.on_failure == "stop":
            session.total_cost += cost if cost == cost else 0.0
            kind = "NaN" if outcome.value != outcome.value else f"{outcome.value}"
            raise NonFiniteError(f"term 'objective' (trial {trial.number})", "value", kind)
        session.saw(params, None, cost)
        return session

    def _told(self, objective: Any, session: Session, trial: Trial, state: Any, seconds: float) -> float:
        """A trial that was pruned or failed; its cost was paid all the same."""
        cost = _paid(trial, objective.paid(trial.params, seconds) if trial.params else math.nan)
        session.study.tell(trial, state=state)
        return cost


def _paid(trial: Trial, cost: float) -> float:
    """Keep the cost with the trial; one that the function set itself as a user attribute serves where there is none."""
    if cost == cost:
        trial.set_user_attr(COST, cost)
        return cost
    own = trial.user_attrs.get(COST)
    return math.nan if own is None else checked_cost(own, f"trial {trial.number}", f"its user attribute '{COST}'")


def _ask(space: Space | None, trial: Trial) -> dict[str, Any] | None:
    """Ask for the parameters of a space; what a sampler cannot give is the user's input, not the function's fault."""
    if space is None:
        return None
    try:
        return space.suggest(trial)
    except ValueError as error:
        raise InputError(f"trial {trial.number}: {error}") from error


def _known(params: Mapping[str, Any], space: Space | None) -> None:
    if not isinstance(params, Mapping):
        raise InputError(f"enqueue: expected a list of mappings of parameters to values, got {params!r}")
    if space is not None:
        space.check_some(params, "enqueue")


def _require(package: str, hint: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise InputError(f"this sampler of Optuna needs the package {package}; {hint}")


def _require_pruner(pruner: Any) -> None:
    from optuna.pruners import BasePruner

    if not isinstance(pruner, BasePruner):
        raise InputError(f"pruner={pruner!r}: expected a pruner, such as {{use: optuna.median_pruner}}")


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own, which storages can keep."""
    return value.item() if isinstance(value, np.generic) else value

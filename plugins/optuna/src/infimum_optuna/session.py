"""The state of a run: a study, its storage, and what is known of its trials. It changes in place."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from infimum.errors import InputError
from infimum_optuna.callback import require_single
from infimum_optuna.history import History, cost_of
from infimum_optuna.storage import hidden, open_storage, quiet

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from infimum_optuna.seeded import Seeded

NAME = "infimum"
"""Name of a study that the user did not name. Fixed, since Hyperband deals its brackets by it."""


class Session:
    """A study under our run loop.

    Attributes
    ----------
    study : optuna.Study
    sampler : Seeded
    seed : int
        All random numbers of the samplers follow from it.
    x, value, cost : dict or None, float or None
        Of the last trial; the value in the user's sense, None where it was pruned or failed.
    best : float or None
        The best value so far, earlier pieces of a stored study included.
    total_cost : float
        Sum of all known costs.
    ended : bool
        Whether a sampler has said that nothing is left to try.
    """

    def __init__(self, study: Study, storage: BaseStorage, sampler: Seeded, seed: int) -> None:
        self.study, self.storage, self.sampler, self.seed = study, storage, sampler, seed
        self.maximize = study.direction.name == "MAXIMIZE"
        self.x: dict[str, Any] | None = None
        self.value: float | None = None
        self.cost: float | None = None
        self.best: float | None = None
        self.total_cost = 0.0
        self.ended = False
        # Samplers and pruners that are done stop the study, which Optuna allows within `optimize` only.
        study.stop = self._end  # type: ignore[method-assign]

    def _end(self) -> None:
        self.ended = True

    @property
    def loss(self) -> float | None:
        """The value of the last trial with smaller being better."""
        return -self.value if self.maximize and self.value is not None else self.value

    @property
    def history(self) -> History:
        """All trials of the study as they are now."""
        return History(self.study.get_trials(deepcopy=False), maximize=self.maximize, study=self.study)

    def saw(self, params: Mapping[str, Any], value: float | None, cost: float) -> None:
        """Take in a finished trial."""
        self.x, self.value, self.cost = dict(params), value, cost if cost == cost else None
        if cost == cost:
            self.total_cost += cost
        if value is not None and (self.best is None or (value > self.best if self.maximize else value < self.best)):
            self.best = value

    def adopt(self) -> int:
        """Take in the trials that the study had before; the point is the best of them. Returns their number."""
        finished = [one for one in self.study.get_trials(deepcopy=False) if one.state.is_finished()]
        complete = [one for one in finished if one.state.name == "COMPLETE"]
        for one in finished:
            cost = cost_of(one)
            self.total_cost += cost if cost == cost else 0.0
        if complete:
            best = (max if self.maximize else min)(complete, key=lambda one: one.value or 0.0)
            self.x, self.value, self.best = dict(best.params), best.value, best.value
            own = cost_of(best)
            self.cost = own if own == own else None
        return len(finished)

    def dump(self) -> dict[str, Any]:
        """Plain data."""
        found = self.storage.get_study_system_attrs(self.storage.get_study_id_from_name(self.study.study_name))
        return {
            "name": self.study.study_name,
            "seed": self.seed,
            "maximize": self.maximize,
            "trials": [_as_text(one) for one in self.study.get_trials(deepcopy=False)],
            "attributes": json.dumps(found),
            "x": None if self.x is None else dict(self.x),
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    @classmethod
    def load(cls, tree: Mapping[str, Any], sampler: Seeded, pruner: BasePruner | None) -> Session:
        """From what `dump` gave, with a study in memory."""
        storage = open_storage(None)
        study = make_study(storage, tree["name"], tree["maximize"], sampler, pruner)
        study.add_trials([_as_trial(text) for text in tree["trials"]])
        number = storage.get_study_id_from_name(study.study_name)
        for key, value in json.loads(tree["attributes"]).items():
            storage.set_study_system_attr(number, key, value)
        made = cls(study, storage, sampler, int(tree["seed"]))
        made.x = tree["x"]
        for name in _NUMBERS:
            setattr(made, name, tree[name])
        return made


_NUMBERS = ("value", "cost", "best", "total_cost", "ended")
_TIMES = ("datetime_start", "datetime_complete")
_PLAIN = ("params", "user_attrs", "system_attrs", "number")


def _as_text(trial: FrozenTrial) -> str:
    """A trial as JSON, floats to the last bit."""
    from optuna.distributions import distribution_to_json

    times = {name: None if (t := getattr(trial, name)) is None else t.isoformat() for name in _TIMES}
    return json.dumps(
        {
            **{name: getattr(trial, name) for name in _PLAIN},
            **times,
            "state": trial.state.name,
            "values": trial.values,
            "distributions": {name: distribution_to_json(one) for name, one in trial.distributions.items()},
            "steps": list(trial.intermediate_values.items()),
        }
    )


def _as_trial(text: str) -> FrozenTrial:
    from optuna.distributions import json_to_distribution
    from optuna.trial import FrozenTrial, TrialState

    data = json.loads(text)
    plain: dict[str, Any] = {name: data[name] for name in _PLAIN}
    for name in _TIMES:
        plain[name] = None if data[name] is None else datetime.datetime.fromisoformat(data[name])
    return FrozenTrial(
        **plain,
        state=TrialState[data["state"]],
        value=None,
        values=data["values"],
        distributions={name: json_to_distribution(one) for name, one in data["distributions"].items()},
        intermediate_values={int(step): value for step, value in data["steps"]},
        trial_id=data["number"],
    )


def make_study(
    storage: BaseStorage, name: str, maximize: bool, sampler: BaseSampler | None, pruner: BasePruner | None
) -> Study:
    """A study by name: made, or the one that is there already.

    Raises
    ------
    InputError
        If the one that is there has several objectives or the other direction.
    """
    import optuna

    direction: Literal["maximize", "minimize"] = "maximize" if maximize else "minimize"
    with quiet():
        study = optuna.create_study(
            storage=storage,
            sampler=sampler,
            pruner=pruner or optuna.pruners.NopPruner(),
            study_name=name,
            direction=direction,
            load_if_exists=True,
        )
    require_single(study, "storage")
    if study.direction.name != direction.upper():
        raise InputError(
            f"study '{name}' is there already and is to {study.direction.name.lower()}, the problem says "
            f"{direction}; correct the problem's direction or choose another name in study="
        )
    return study


def where(storage: Any) -> str:
    """A storage in words, without passwords."""
    return hidden(storage) if isinstance(storage, str) else type(storage).__name__


def enqueue(study: Study, queue: Sequence[Mapping[str, Any]], check: Callable[[Mapping[str, Any]], Any]) -> None:
    """Put points first that are not in the study yet; each may leave parameters to the sampler."""
    for params in queue:
        check(params)
        study.enqueue_trial(dict(params), skip_if_exists=True)


def finite_or_worst(value: float, maximize: bool) -> bool:
    """Whether a value can be told: finite, or infinite in the worse direction."""
    return math.isfinite(value) or value == (-math.inf if maximize else math.inf)

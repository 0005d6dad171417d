"""What a stopping rule sees of a study: the metric `history`, the same in our run loop and in a study of the user's."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from infimum.errors import InputError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial

Cost = str | Callable[[Mapping[str, Any]], float] | None
"""Where the cost of a trial is: "user_attr:NAME", "duration" (seconds from start to end), a function of the
parameters, or None (nowhere)."""

COST = "cost"
"""User attribute in which our run loop keeps the cost of a trial."""
ATTRIBUTE = "user_attr:"
DEFAULT_COST = f"{ATTRIBUTE}{COST}"


class History:
    """The trials of a single-objective study as they are at one check. Nobody changes it; copy what you keep.

    A rule with `needs = ("history",)` gets one as `progress.metrics["history"]`, from a run of an `optuna.*` solver
    as well as from `stop_when` on a study of the user's. Arrays are in the order of the trials' numbers, are computed
    at first use, and hold the n complete trials only.

    Parameters
    ----------
    trials : sequence of optuna.trial.FrozenTrial
        All trials so far, of every state, by number.
    maximize : bool
        Whether larger values are better.
    cost : str, callable or None, default "user_attr:cost"
        Where the cost of a trial is found.
    study : optuna.Study, optional
        The study itself, for its sampler, pruner and attributes. It may be ahead of `trials`.

    Raises
    ------
    InputError
        For what is no list of trials, or says no cost; from the attributes that read it, for a wrong cost.

    Attributes
    ----------
    trials : tuple of FrozenTrial
        All of them: complete, pruned, failed, running, waiting.
    complete, pruned, failed, running : tuple of FrozenTrial
        Those in a state. A running trial has the parameters that it was given so far.
    numbers : array, shape (n,), int
    values : array, shape (n,)
        In the user's sense; an infinite one may be among them, NaN never (Optuna makes such a trial FAIL).
    losses : array, shape (n,)
        The same with smaller being better.
    costs : array, shape (n,)
        0 or more; NaN where the cost is missing.
    params : tuple of dict, length n
        Of a conditional space, trials may have different names.
    distributions : tuple of dict, length n
        Name to `optuna.distributions.BaseDistribution`, for each trial.
    space : dict
        The distributions that all complete trials share, by sorted names (`optuna.search_space`).
    best : FrozenTrial or None
        The complete trial with the best value, the first among equal ones.
    total_cost : float
        Sum of the known costs of all finished trials, the pruned and the failed ones too: they were paid for.
    """

    def __init__(
        self,
        trials: Sequence[FrozenTrial],
        *,
        maximize: bool = False,
        cost: Cost = DEFAULT_COST,
        study: Study | None = None,
    ) -> None:
        try:
            self.trials = tuple(trials)
        except TypeError:
            raise InputError(f"History: expected a list of frozen trials, got {trials!r:.60}") from None
        if self.trials and not hasattr(self.trials[0], "state"):
            raise InputError(f"History: expected frozen trials of Optuna's, got {self.trials[0]!r:.60}")
        self.maximize, self.cost = maximize, as_cost(cost)
        # Weak: who keeps a history must not keep a study and its storage.
        self._study = None if study is None else weakref.ref(study)

    @property
    def study(self) -> Study | None:
        """The study, where there is one and it still exists."""
        return None if self._study is None else self._study()

    @property
    def direction(self) -> str:
        """ "minimize" or "maximize"."""
        return "maximize" if self.maximize else "minimize"

    def __len__(self) -> int:
        return len(self.complete)

    def __repr__(self) -> str:
        return f"History({len(self)} complete of {len(self.trials)} trials, {self.direction})"

    def _of(self, state: str) -> tuple[FrozenTrial, ...]:
        return tuple(one for one in self.trials if one.state.name == state)

    @cached_property
    def complete(self) -> tuple[FrozenTrial, ...]:
        return self._of("COMPLETE")

    @cached_property
    def pruned(self) -> tuple[FrozenTrial, ...]:
        return self._of("PRUNED")

    @cached_property
    def failed(self) -> tuple[FrozenTrial, ...]:
        return self._of("FAIL")

    @cached_property
    def running(self) -> tuple[FrozenTrial, ...]:
        return self._of("RUNNING")

    @cached_property
    def numbers(self) -> np.ndarray:
        return np.array([one.number for one in self.complete], dtype=int)

    @cached_property
    def values(self) -> np.ndarray:
        return np.array([one.value for one in self.complete], dtype=float)

    @cached_property
    def losses(self) -> np.ndarray:
        return -self.values if self.maximize else self.values

    @cached_property
    def costs(self) -> np.ndarray:
        return np.array([cost_of(one, self.cost) for one in self.complete], dtype=float)

    @cached_property
    def params(self) -> tuple[dict[str, Any], ...]:
        return tuple(one.params for one in self.complete)

    @cached_property
    def distributions(self) -> tuple[dict[str, BaseDistribution], ...]:
        return tuple(one.distributions for one in self.complete)

    @cached_property
    def space(self) -> dict[str, BaseDistribution]:
        from optuna.search_space import intersection_search_space

        return dict(intersection_search_space(list(self.complete)))

    @cached_property
    def best(self) -> FrozenTrial | None:
        return self.complete[int(np.argmin(self.losses))] if self.complete else None

    @cached_property
    def total_cost(self) -> float:
        paid = (cost_of(one, self.cost) for one in self.trials if one.state.is_finished())
        return math.fsum(one for one in paid if one == one)


def cost_of(trial: FrozenTrial, cost: Cost = DEFAULT_COST) -> float:
    """The cost of a trial, NaN where it is missing.

    Raises
    ------
    InputError
        If it is negative, infinite or no number, naming the trial and where the cost came from.
    """
    if cost is None:
        return math.nan
    found: Any
    if callable(cost):
        found, where = cost(trial.params), f"the cost function {getattr(cost, '__name__', cost)!r}"
    elif cost == "duration":
        found = None if trial.duration is None else trial.duration.total_seconds()
        where = "its duration"
    else:
        name = cost.removeprefix(ATTRIBUTE)
        found, where = trial.user_attrs.get(name), f"its user attribute '{name}'"
    return math.nan if found is None else checked_cost(found, f"trial {trial.number}", where)


def checked_cost(cost: Any, who: str, where: str) -> float:
    """A cost as a float: 0 or more, or NaN (missing)."""
    number = isinstance(cost, Real | np.number) and not isinstance(cost, bool)
    if not number or (cost == cost and not 0 <= float(cost) < math.inf):
        raise InputError(f"{who}: the cost by {where} is {cost!r}; expected a finite number >= 0")
    return float(cost)


def as_cost(cost: Any) -> Cost:
    """A cost specification, checked.

    Raises
    ------
    InputError
        For anything else than those that `Cost` lists.
    """
    known = cost is None or callable(cost) or cost == "duration"
    if known or (isinstance(cost, str) and cost.startswith(ATTRIBUTE) and len(cost) > len(ATTRIBUTE)):
        return cost  # type: ignore[no-any-return]
    raise InputError(
        f"cost={cost!r}: expected 'user_attr:NAME', 'duration', a function of the parameters, or None for no cost"
    )

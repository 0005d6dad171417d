"""The memory of the stopping rules in one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from infimum.errors import InputError
from infimum.stopping import UNKNOWN, Progress, Reason
from infimum.stopping.base import Unknown
from infimum_costbo.cost import CostSource
from infimum_costbo.judge import Judge, Judgment, Terms
from infimum_costbo.observations import Observations, of_trials
from infimum_optuna import History

if TYPE_CHECKING:
    from infimum_costbo.rules import Stop, _OnModel, _OnValues


def source_of(history: History, cost: str, who: str) -> CostSource:
    """Where the costs of a history are.

    Raises
    ------
    InputError
        If it has none and the rule wants what was paid.
    """
    if cost == "uniform":
        return CostSource(None)
    if history.cost is None:
        raise InputError(f"{who}: the trials carry no cost (cost=None); say cost='uniform' for one unit each")
    given: Any = history.cost
    return CostSource(given)


class _Judging:
    """A judge that is asked at each check, and taken up when its first history comes."""

    def __init__(self, name: str, terms: Terms, cost: str, *, measures: bool) -> None:
        self._name, self._cost = name, cost
        self.judge = Judge(terms, measures=measures)
        self.maximize = False
        self._saved: Mapping[str, Any] | None = None

    def _look(self, progress: Progress) -> Judgment | None:
        history = progress.metrics.get("history")
        if not isinstance(history, History) or not len(history):
            return None
        self.judge.source = source_of(history, self._cost, self._name)
        self.maximize = history.maximize
        observed = self._observed(history)
        if self._saved is not None:
            self.judge.load_state_dict(self._saved["judge"], observed)
            self._saved = None
        return self.judge.look(observed)

    def _observed(self, history: History) -> Observations:
        space = {name: one for name, one in history.space.items() if not one.single()}
        return of_trials(history.trials, -1.0 if history.maximize else 1.0, self.judge.source, space)

    def state_dict(self) -> dict[str, Any]:
        if self._saved is not None:
            return dict(self._saved)
        return {"judge": self.judge.state_dict(), "maximize": self.maximize}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._saved, self.maximize = dict(state), bool(state["maximize"])


class StopTracker(_Judging):
    """Of `costbo.stop`."""

    def __init__(self, rule: Stop) -> None:
        terms = Terms(rule.lam, None, rule.warp, rule.min_trials, rule.window, rule.calibrate, rule.seed)
        super().__init__(rule.word, terms, rule.cost, measures=rule.measures)
        self.rule = rule

    def update(self, progress: Progress) -> Reason | Unknown | None:
        seen = self._look(progress)
        if seen is None or seen.log_eipc != seen.log_eipc:
            return UNKNOWN
        if not seen.stop:
            return None
        values = {"log_eipc": seen.log_eipc, "gain": seen.gain, "calibration": seen.calibration}
        return Reason(str(self.rule), self.rule.status, seen.reason, values)

    def extras(self) -> dict[str, Any]:
        """What a result keeps for its report: what was seen at each check."""
        if self._saved is not None:
            self.judge.load_state_dict(self._saved["judge"], None)
        judge = self.judge
        if not judge.history:
            return {}
        return {
            "lam": self.rule.lam,
            "cost": self.rule.cost,
            "warp": judge.model.warp if judge.model is not None else None,
            "calibrate": self.rule.calibrate,
            "calibration": judge.calibration,
            "maximize": self.maximize,
            "columns": judge.columns(),
            "reason": judge.history[-1].reason,
        }


class ModelTracker(_Judging):
    """Of the rules that look at a model of the objective."""

    def __init__(self, rule: _OnModel) -> None:
        super().__init__(
            rule.word, Terms(1.0, None, rule.warp, rule.min_trials, seed=rule.seed), rule.cost, measures=True
        )
        self.rule = rule

    def update(self, progress: Progress) -> Reason | Unknown | None:
        seen = self._look(progress)
        if seen is None:
            return UNKNOWN
        number = float(getattr(seen, self.rule.column))
        if number != number:
            return UNKNOWN
        if not self.rule.fires(self.judge.columns()):
            return None
        message = f"{self.rule.column} is {number:.4g} after {seen.n} evaluations"
        return Reason(str(self.rule), self.rule.status, message, {self.rule.column: number})


class ValueTracker:
    """Of the rules that look at values alone."""

    def __init__(self, rule: _OnValues) -> None:
        self.rule = rule
        self.best: list[float] = []

    def update(self, progress: Progress) -> Reason | Unknown | None:
        value = progress.metrics.get("value")
        if value is None or value != value:
            return UNKNOWN
        better = max if progress.maximize else min
        self.best.append(better([float(value), *self.best[-1:]]))
        if not self.rule.fires({"best": self.best}):
            return None
        message = f"the best value {self.best[-1]:.6g} was {self.best[-1 - self.rule.patience]:.6g} "
        message += f"{self.rule.patience} evaluations ago"
        return Reason(str(self.rule), self.rule.status, message, {"best": self.best[-1]})

    def extras(self) -> dict[str, Any]:
        """The curve that the rule saw, for the report."""
        return {"best": np.asarray(self.best), "rule": str(self.rule)}

    def state_dict(self) -> dict[str, Any]:
        return {"best": list(self.best)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best = [float(one) for one in state["best"]]

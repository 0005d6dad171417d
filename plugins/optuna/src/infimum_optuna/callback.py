"""Stopping rules as Optuna callbacks: `study.optimize(f, callbacks=[stop_when("stall(20) | max_iter(100)")])`."""

from __future__ import annotations

import datetime
import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from infimum.errors import InputError
from infimum.inputs import as_rule
from infimum.run.monitor import Monitor, check_metrics, columns
from infimum.status import Status
from infimum.stopping import StoppingRule
from infimum.trace import Recorder, Trace
from infimum_optuna.history import DEFAULT_COST, Cost, History, as_cost, cost_of

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from infimum.run.stop import Stop

log = logging.getLogger("infimum")

METRICS = ("value", "best", "cost", "total_cost", "history")
"""What a study supplies to a rule."""

Measure = Callable[["FrozenTrial"], Any]


def stop_when(
    rule: StoppingRule | str | Mapping[str, Any] | Sequence[Any],
    *,
    cost: Cost = DEFAULT_COST,
    metrics: Sequence[str] | Mapping[str, Measure] = (),
) -> StopWhen:
    """A stopping rule of infimum as a callback of `optuna.Study.optimize`.

    Parameters
    ----------
    rule : StoppingRule, str, mapping or list
        As in `infimum.solve`: `"stall(20) | max_iter(100)"`. Names of installed rules are looked up. An iteration is
        a finished trial of any state, `max_calls` counts them too; seconds are counted from the start of the first
        trial that ends under the callback.
    cost : str, callable or None, default "user_attr:cost"
        Where the cost of a trial is found: `"user_attr:NAME"`, `"duration"`, or a function of the parameters. A
        missing one is NaN in `history.costs`; a negative one is refused when a rule asks for it.
    metrics : sequence of str, or mapping of str to callable, optional
        Further numbers for rules: names of user attributes, or functions of the frozen trial that return a number or
        None.

    Returns
    -------
    StopWhen

    Raises
    ------
    InputError
        If the rule cannot be read, or needs a metric that a study does not have.

    Examples
    --------
    >>> import optuna
    >>> from infimum_optuna import stop_when
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    >>> study.optimize(lambda t: t.suggest_float("x", -1, 1) ** 2, n_trials=99, callbacks=[stop_when("max_iter(7)")])
    >>> len(study.trials)
    7
    """
    return StopWhen(rule, cost=cost, metrics=metrics)


class StopWhen:
    """What `stop_when` returns: call it as a callback, or ask `should_stop(study)` in a loop of `ask` and `tell`.

    One object serves any number of studies, threads (`n_jobs`) and, pickled, processes: every study has a memory of
    its own, made from the study's trials when it is first seen. So trials of an earlier piece of a resumed study, or
    of another process on the same storage, count once each.

    Of the trials that were there before, a rule that was true in between and is not any more does not stop the
    study, except for `target_reached`.
    """

    def __init__(
        self,
        rule: StoppingRule | str | Mapping[str, Any] | Sequence[Any],
        *,
        cost: Cost = DEFAULT_COST,
        metrics: Sequence[str] | Mapping[str, Measure] = (),
    ) -> None:
        made = as_rule(rule)
        if made is None:
            raise InputError("stop_when: no rule was given; write one such as 'stall(20) | max_iter(100)'")
        self.rule, self.cost = made, as_cost(cost)
        self.extra = _measures(metrics)
        check_metrics(self.rule, (*METRICS, *self.extra), "an Optuna study")
        self._watches: weakref.WeakKeyDictionary[Study, _Watch] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"stop_when({str(self.rule)!r})"

    def __getstate__(self) -> dict[str, Any]:
        """Without the memories: the process that gets it makes them anew from the studies."""
        return {"rule": self.rule, "cost": self.cost, "extra": self.extra}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _watches=weakref.WeakKeyDictionary(), _lock=threading.Lock())

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """What `study.optimize` calls after every trial.

        Raises
        ------
        InputError
            For a study with several objectives, or outside of `study.optimize`, where Optuna cannot be stopped.
        """
        if self._watch(study).update(study, trial) is None:
            return
        try:
            study.stop()
        except RuntimeError:
            raise InputError(
                "stop_when was called outside of study.optimize, where a study cannot be stopped; in a loop of ask "
                "and tell write  if stopper.should_stop(study): break"
            ) from None

    def should_stop(self, study: Study) -> bool:
        """Whether the rule is true, all trials that are finished by now considered. For loops of `ask` and `tell`."""
        return self._watch(study).update(study) is not None

    def stop(self, study: Study) -> Stop | None:
        """Why the study was stopped (`.status`, `.message`, `.fired`); None where it was not."""
        return self._watch(study).monitor.stop

    def trace(self, study: Study) -> Trace:
        """Columns over the trials that were seen: iteration, time, value, best, cost, total_cost and `metrics`."""
        found = self._watch(study).monitor.trace()
        return Trace({name: column for name, column in found.items() if name != "history"})

    def forget(self, study: Study) -> None:
        """Drop the memory of a study; it is made anew from its trials when the study is seen again."""
        with self._lock:
            self._watches.pop(study, None)

    def _watch(self, study: Study) -> _Watch:
        with self._lock:
            found = self._watches.get(study) if hasattr(study, "directions") else None
            if found is None:
                found = self._watches[study] = _Watch(self, study)
            return found


def _measures(metrics: Any) -> dict[str, Measure]:
    """Further metrics as functions of a frozen trial."""
    if isinstance(metrics, str):
        raise InputError(f"metrics={metrics!r}: expected a list of names of user attributes, such as ['{metrics}']")
    if not isinstance(metrics, Sequence | Set | Mapping) or not all(isinstance(name, str) for name in metrics):
        raise InputError(f"metrics={metrics!r}: expected a list of names of user attributes, or a mapping of names")
    if isinstance(metrics, Mapping):
        wrong = [name for name, call in metrics.items() if not callable(call)]
        if wrong:
            raise InputError(f"metrics: '{wrong[0]}' is {metrics[wrong[0]]!r}; expected a function of the frozen trial")
        found = dict(metrics)
    else:
        found = {name: _Attribute(name) for name in metrics}
    taken = sorted(set(found) & set(METRICS))
    if taken:
        raise InputError(f"metrics: '{taken[0]}' is a metric that every study has; choose another name")
    return found


class _Attribute:
    """A user attribute as a metric."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, trial: FrozenTrial) -> Any:
        return trial.user_attrs.get(self.name)


class _Finished:
    """Counts for `max_calls`: an evaluation is a finished trial."""

    n = 0

    def total(self, of: str) -> int:
        if of not in ("value", "evaluate"):
            raise InputError(f"max_calls: an Optuna study counts 'evaluate' (and 'value', the same), not '{of}'")
        return self.n


class _Watch:
    """The memory of one rule for one study."""

    def __init__(self, owner: StopWhen, study: Study) -> None:
        require_single(study, "stop_when")
        self.owner, self.maximize = owner, study.direction.name == "MAXIMIZE"
        self.asked = owner.rule.metrics()
        names = (*METRICS, *owner.extra)
        self.calls = _Finished()
        self.monitor = Monitor(
            owner.rule, names, calls=self.calls, maximize=self.maximize, recorder=Recorder(columns(names, ()))
        )
        self.fresh = True
        self.done: set[int] = set()
        self.start = 0
        """All trials with smaller numbers are done."""
        self.best: float | None = None
        self.total_cost = 0.0
        self._lock = threading.RLock()

    def update(self, study: Study, trial: FrozenTrial | None = None) -> Stop | None:
        """Take in every trial that has finished since the last time, in the order of their ends."""
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            found = [one for one in trials[self.start :] if one.number not in self.done and one.state.is_finished()]
            found.sort(key=_end)
            if self.fresh and trial is not None:
                self._start_clock(trial)
            for k, one in enumerate(found):
                last = k == len(found) - 1
                self._take(one, study, trials, past=self.fresh and not last)
            self.fresh = self.fresh and not found
            return self.monitor.stop

    def _take(self, one: FrozenTrial, study: Study, trials: Sequence[FrozenTrial], *, past: bool) -> None:
        self.done.add(one.number)
        while self.start in self.done:
            self.done.discard(self.start)
            self.start += 1
        stopped = self.monitor.stop is not None
        self.calls.n += 1
        stop = self.monitor.tick(self._metrics(one, study, trials, past))
        if stop is None or stopped:
            return
        if past and stop.status is not Status.target_reached:
            self.monitor.stop = None
        else:
            log.info("study '%s': %s: %s", study.study_name, stop.status, stop.message)

    def _metrics(self, one: FrozenTrial, study: Study, trials: Sequence[FrozenTrial], past: bool) -> dict[str, Any]:
        complete = one.state.name == "COMPLETE"
        value = one.value if complete else None
        if value is not None and (self.best is None or (value > self.best if self.maximize else value < self.best)):
            self.best = value
        out: dict[str, Any] = {"value": value, "best": self.best, **self._costs(one)}
        for name, measure in self.owner.extra.items():
            out[name] = measure(one)
        if "history" in self.asked:
            out["history"] = None if past else self._history(study, trials)
        return out

    def _costs(self, one: FrozenTrial) -> dict[str, Any]:
        """Costs for the trace; a wrong one is an error only where a rule reads it."""
        try:
            cost = cost_of(one, self.owner.cost)
        except InputError:
            if self.asked & {"cost", "total_cost"}:
                raise
            cost = float("nan")
        known = cost == cost
        if known:
            self.total_cost += cost
        return {"cost": cost if known else None, "total_cost": self.total_cost}

    def _history(self, study: Study, trials: Sequence[FrozenTrial]) -> History:
        """The trials up to the present one's end; those that ended later are not in it."""
        seen = [one for one in trials if self._is_done(one.number) or not one.state.is_finished()]
        return History(seen, maximize=self.maximize, cost=self.owner.cost, study=study)

    def _is_done(self, number: int) -> bool:
        return number < self.start or number in self.done

    def _start_clock(self, trial: FrozenTrial) -> None:
        """Seconds run from the start of the first trial that ended under the callback."""
        began = trial.datetime_start
        spent = 0.0 if began is None else (datetime.datetime.now() - began).total_seconds()
        self.monitor.load_state_dict({**self.monitor.state_dict(), "elapsed": max(0.0, spent)})
        self.monitor.restart_clock()


def _end(trial: FrozenTrial) -> tuple[datetime.datetime, int]:
    return (trial.datetime_complete or datetime.datetime.min, trial.number)


def require_single(study: Study, who: str) -> None:
    """Refuse a study with several objectives, and what is no study.

    Raises
    ------
    InputError
    """
    if not hasattr(study, "directions"):
        raise InputError(f"{who}: expected a study of Optuna's, got {study!r:.60}")
    if len(study.directions) > 1:
        raise InputError(
            f"{who}: study '{study.study_name}' has {len(study.directions)} objectives, and no trial of it is the "
            "best one; a study with one objective is needed, such as a weighted sum of them"
        )

"""Stopping rules as callbacks of Optuna: each trial counts once, whoever ran it and whatever became of it."""

from __future__ import annotations

import gc
import math
import pickle
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState, create_trial

import infimum
from infimum.errors import InputError
from infimum.status import Status
from infimum.stopping import UNKNOWN, Progress, Reason, StoppingRule
from infimum_optuna import BlackBox, History, result_of, results_of, stop_when


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


def study_of(**options: Any) -> optuna.Study:
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), **options)


def square(trial: optuna.Trial) -> float:
    return float(trial.suggest_float("x", -1, 1) ** 2)


def done(value: float | None, state: TrialState = TrialState.COMPLETE, **more: Any) -> Any:
    x = optuna.distributions.FloatDistribution(0, 1)
    return create_trial(state=state, value=value, params={"x": 0.5}, distributions={"x": x}, **more)


@dataclass(frozen=True, repr=False)
class Remember(StoppingRule):
    """Stops at `n` complete trials and keeps what it saw in `seen`."""

    n: int
    seen: tuple[list[Any], ...] = ([],)

    needs = ("history",)
    status = Status.converged

    def start(self) -> Any:
        return RememberTracker(self)


class RememberTracker:
    def __init__(self, rule: Remember) -> None:
        self.rule = rule

    def update(self, progress: Progress) -> Any:
        history = progress.metrics.get("history")
        self.rule.seen[0].append(None if history is None else len(history))
        if history is None:
            return UNKNOWN
        return Reason("remember", Status.converged, f"{len(history)}") if len(history) >= self.rule.n else None

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def test_a_limit_is_exact_and_the_stop_says_why() -> None:
    stopper, study = stop_when("max_iter(7) | target(-1)"), study_of()
    study.optimize(square, n_trials=50, callbacks=[stopper])
    assert len(study.trials) == 7
    stop = stopper.stop(study)
    assert stop is not None and stop.status is Status.limit and stop.fired[0].values == {"iteration": 7}
    trace = stopper.trace(study)
    assert trace["value"].tolist() == [one.value for one in study.trials]
    assert trace["best"][-1] == study.best_value and "history" not in trace


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.floats(-5, 5)), min_size=1, max_size=25),
    st.sampled_from(["stall(3)", "target(0.5)", "max_iter(6) | stall(2, min_delta=0.5)", "stall(2) & ~max_iter(5)"]),
    st.booleans(),
)
def test_a_study_stops_where_a_monitor_stops(values: list[float | None], rule: str, maximize: bool) -> None:
    """Also through pruned trials, whose values a rule does not know."""
    monitor, expected = infimum.Monitor(rule, metrics=["value"], maximize=maximize), len(values)
    for k, value in enumerate(values, 1):
        if monitor.tick({"value": value}):
            expected = k
            break
    stream = iter(values)

    def objective(trial: optuna.Trial) -> float:
        value = next(stream)
        if value is None:
            raise optuna.TrialPruned
        return value

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = study_of(direction="maximize" if maximize else "minimize")
    study.optimize(objective, n_trials=len(values), callbacks=[stop_when(rule)])
    optuna.logging.set_verbosity(level)
    assert len(study.trials) == expected


def test_maximize_is_in_the_users_sense() -> None:
    study, stopper = study_of(direction="maximize"), stop_when("target(0.9)")
    values = iter([0.2, 0.5, 0.95, 0.99])
    study.optimize(lambda trial: next(values), n_trials=4, callbacks=[stopper])
    assert [one.value for one in study.trials] == [0.2, 0.5, 0.95]
    assert stopper.trace(study)["best"].tolist() == [0.2, 0.5, 0.95]


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    with pytest.raises(InputError, match="has 2 objectives"):
        study.optimize(lambda trial: (0.0, 1.0), n_trials=1, callbacks=[stop_when("max_iter(3)")])
    with pytest.raises(InputError, match="has 2 objectives"):
        stop_when("max_iter(3)").should_stop(study)


def test_pruned_and_failed_trials_are_iterations_without_a_value() -> None:
    stopper, study = stop_when("max_iter(6)"), study_of()

    def objective(trial: optuna.Trial) -> float:
        if trial.number == 1:
            raise optuna.TrialPruned
        if trial.number == 2:
            raise ValueError("no")
        return math.nan if trial.number == 3 else 1.0 + trial.number

    study.optimize(objective, n_trials=30, catch=(ValueError,), callbacks=[stopper])
    states = [one.state.name for one in study.trials]
    assert states == ["COMPLETE", "PRUNED", "FAIL", "FAIL", "COMPLETE", "COMPLETE"]
    values = stopper.trace(study)["value"]
    assert [value if value == value else None for value in values] == [1.0, None, None, None, 5.0, 6.0]


def test_running_and_enqueued_trials_count_when_they_end() -> None:
    stopper, study = stop_when("max_iter(3)"), study_of()
    running = study.ask()
    study.enqueue_trial({"x": 0.25})
    study.enqueue_trial({"x": 0.5})
    assert not stopper.should_stop(study)
    study.optimize(square, n_trials=2, callbacks=[stopper])
    assert [one.value for one in study.trials[1:]] == [0.0625, 0.25] and not stopper.should_stop(study)
    study.tell(running, 1.0)
    assert stopper.should_stop(study)
    assert stopper.trace(study)["value"].tolist() == [0.0625, 0.25, 1.0]


def test_ask_and_tell() -> None:
    stopper, study = stop_when("max_iter(4)"), study_of()
    while not stopper.should_stop(study):
        study.tell(study.ask(), 1.0)
    assert len(study.trials) == 4
    assert stopper.should_stop(study), "asking again changes nothing"
    assert len(stopper.trace(study)["value"]) == 4
    with pytest.raises(InputError, match="should_stop"):
        stopper(study, study.trials[-1])


@pytest.mark.parametrize("again", ["the same object", "a new one", "pickled"])
def test_a_resumed_study_does_not_count_twice(again: str) -> None:
    study, stopper = study_of(), stop_when("max_iter(8)")
    study.optimize(square, n_trials=5, callbacks=[stopper])
    if again == "a new one":
        stopper = stop_when("max_iter(8)")
    elif again == "pickled":
        stopper = pickle.loads(pickle.dumps(stopper))
    study.optimize(square, n_trials=50, callbacks=[stopper])
    assert len(study.trials) == 8
    assert stopper.trace(study)["iteration"].tolist() == list(range(1, 9))


def test_what_was_true_of_the_past_only_does_not_stop() -> None:
    """A stall in the past that an improvement has ended; a target that was reached stays reached."""
    past = [1.0, 1.0, 1.0, 1.0, 0.5]
    study = study_of()
    study.add_trials([done(value) for value in past])
    study.optimize(lambda trial: 0.5, n_trials=20, callbacks=[stop_when("stall(3)")])
    assert len(study.trials) == 8, "three more without improvement on 0.5"
    study = study_of()
    study.add_trials([done(value) for value in (1.0, 0.1, 1.0)])
    study.optimize(lambda trial: 0.5, n_trials=20, callbacks=[stop_when("target(0.2)")])
    assert len(study.trials) == 4


def test_one_object_on_two_studies() -> None:
    stopper = stop_when("max_iter(5) | stall(3)")
    one, other = study_of(), study_of()
    for k in range(6):
        for study, value in ((one, -float(k)), (other, 1.0)):
            if not stopper.should_stop(study):
                study.tell(study.ask(), value)
    assert len(one.trials) == 5 and len(other.trials) == 4
    assert stopper.stop(one).status is Status.limit and stopper.stop(other).status is Status.stalled  # type: ignore[union-attr]


def test_a_stop_stays_until_it_is_forgotten() -> None:
    stopper, study = stop_when("stall(2)"), study_of()
    study.optimize(lambda trial: 1.0, n_trials=9, callbacks=[stopper])
    assert len(study.trials) == 3
    study.optimize(lambda trial: 0.0, n_trials=9, callbacks=[stopper])
    assert len(study.trials) == 4
    stopper.forget(study)
    study.optimize(lambda trial: 0.0, n_trials=9, callbacks=[stopper])
    assert len(study.trials) == 6, "a new best at trial 4, two without another"


def test_threads_count_each_trial_once() -> None:
    stopper, study = stop_when("max_iter(12)"), study_of()

    def slow(trial: optuna.Trial) -> float:
        time.sleep(0.005 * (trial.number % 3))
        return square(trial)

    study.optimize(slow, n_trials=200, n_jobs=4, callbacks=[stopper])
    assert 12 <= len(study.trials) <= 15, "those that were running end"
    assert all(one.state.is_finished() for one in study.trials)
    trace = stopper.trace(study)
    assert trace["iteration"].tolist() == list(range(1, 13))


def test_costs_missing_zero_and_negative() -> None:
    study, seen = study_of(), []
    costs = iter([None, 0.0, 2.5])

    def objective(trial: optuna.Trial) -> float:
        cost = next(costs)
        if cost is not None:
            trial.set_user_attr("cost", cost)
        return 1.0

    stopper = stop_when(Remember(3, (seen,)))
    study.optimize(objective, n_trials=3, callbacks=[stopper])
    trace = stopper.trace(study)
    assert trace["total_cost"].tolist() == [0.0, 0.0, 2.5] and math.isnan(trace["cost"][0])
    history = History(study.trials)
    assert math.isnan(history.costs[0]) and history.costs[1:].tolist() == [0.0, 2.5]
    assert history.total_cost == 2.5 and seen == [1, 2, 3]
    for wrong in (-1.0, math.inf, "much", True):
        bad = History([*study.trials, done(1.0, user_attrs={"cost": wrong})])
        with pytest.raises(InputError, match=r"user attribute 'cost' is .* expected a finite number >= 0"):
            _ = bad.costs


def test_a_wrong_cost_matters_only_where_a_rule_reads_it() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("cost", -1.0)
        return 1.0

    study = study_of()
    study.optimize(objective, n_trials=9, callbacks=[stop_when("max_iter(2)")])
    assert len(study.trials) == 2

    @dataclass(frozen=True, repr=False)
    class Spent(Remember):
        needs = ("total_cost",)

    with pytest.raises(InputError, match=r"is -1\.0"):
        study_of().optimize(objective, n_trials=9, callbacks=[stop_when(Spent(1))])


def test_costs_by_duration_function_and_attribute() -> None:
    study = study_of()
    study.optimize(lambda trial: trial.set_user_attr("flops", 3.0) or square(trial), n_trials=2)
    assert History(study.trials, cost="user_attr:flops").costs.tolist() == [3.0, 3.0]
    assert History(study.trials, cost=lambda params: 1.0 + params["x"] ** 2).total_cost > 2.0
    durations = History(study.trials, cost="duration").costs
    assert durations.tolist() == [one.duration.total_seconds() for one in study.trials]
    with pytest.raises(InputError, match="user_attr:NAME"):
        stop_when("max_iter(1)", cost="flops")


def test_history_is_the_same_object_in_our_loop_and_in_a_study() -> None:
    """One rule on one function: in a study of the user's, in a loop of ask and tell, and under `infimum.solve`."""
    foreign: list[Any] = []
    study = study_of()
    study.optimize(square, n_trials=50, callbacks=[stop_when(Remember(6, (foreign,)))])
    assert len(study.trials) == 6 and foreign == [1, 2, 3, 4, 5, 6]
    own: list[Any] = []
    box = BlackBox(lambda p: p["x"] ** 2, {"x": {"low": -1.0, "high": 1.0}})
    result = infimum.solve(box, solver="optuna.random", stopping=Remember(6, (own,)), seed=0)
    assert result.status is Status.converged and result.iterations == 6 and own == [0, 1, 2, 3, 4, 5, 6]


def test_history_shows_what_was_known_at_each_check() -> None:
    seen: list[Any] = []
    study, stopper = study_of(), stop_when(Remember(99, (seen,)))
    study.add_trials([done(1.0), done(2.0), done(3.0)])
    assert not stopper.should_stop(study)
    assert seen == [None, None, 3], "of earlier trials only the last shows it"
    study.add_trials([done(4.0), done(5.0)])
    stopper.should_stop(study)
    assert seen[3:] == [4, 5]


def test_history_arrays() -> None:
    study = study_of(direction="maximize")
    study.add_trials([done(1.0), done(None, TrialState.FAIL), done(3.0), done(0.5, TrialState.PRUNED)])
    running = study.ask()
    history = History(study.get_trials(), maximize=True, study=study)
    assert history.numbers.tolist() == [0, 2] and history.values.tolist() == [1.0, 3.0]
    assert history.losses.tolist() == [-1.0, -3.0] and history.best is not None and history.best.number == 2
    assert (len(history), len(history.pruned), len(history.failed), len(history.running)) == (2, 1, 1, 1)
    assert history.running[0].number == running.number and list(history.space) == ["x"] and history.study is study
    empty = History([])
    assert empty.best is None and empty.values.shape == (0,) and empty.total_cost == 0.0 and empty.space == {}


def test_a_study_is_not_kept_alive() -> None:
    stopper, study = stop_when(Remember(99, ([],))), study_of()
    study.optimize(square, n_trials=3, callbacks=[stopper])
    gone = weakref.ref(study)
    del study
    gc.collect()
    assert gone() is None


def test_user_attributes_and_functions_as_metrics() -> None:
    @dataclass(frozen=True, repr=False)
    class Accurate(Remember):
        needs = ("accuracy",)

        def start(self) -> Any:
            return AccurateTracker(self)

    class AccurateTracker(RememberTracker):
        def update(self, progress: Progress) -> Any:
            self.rule.seen[0].append(progress.metrics["accuracy"])
            return Reason("accurate", Status.converged, "yes") if progress.metrics["accuracy"] >= 3 else None

    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("accuracy", trial.number + 1)
        return 1.0

    for metrics in (["accuracy"], {"accuracy": lambda trial: trial.user_attrs["accuracy"]}):
        study = study_of()
        study.optimize(objective, n_trials=9, callbacks=[stop_when(Accurate(0, ([],)), metrics=metrics)])
        assert len(study.trials) == 3
    with pytest.raises(InputError, match="reads metric 'accuracy'"):
        stop_when(Accurate(0))
    with pytest.raises(InputError, match="metric that every study has"):
        stop_when("max_iter(3)", metrics=["value"])
    with pytest.raises(InputError, match="list of names"):
        stop_when("max_iter(3)", metrics="accuracy")


@pytest.mark.parametrize(
    ("rule", "said"),
    [("grad_norm(1e-3)", "which an Optuna study does not supply"), ("", "no rule was given"), ("stal(3)", "stall")],
)
def test_rules_that_do_not_fit_are_refused_when_made(rule: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        stop_when(rule)


def test_calls_are_finished_trials_and_others_are_refused() -> None:
    study = study_of()
    study.optimize(square, n_trials=9, callbacks=[stop_when("max_calls(4, of='evaluate')")])
    assert len(study.trials) == 4
    with pytest.raises(InputError, match="not 'gradient'"):
        study.optimize(square, n_trials=9, callbacks=[stop_when("max_calls(4, of='gradient')")])


def test_seconds_run_from_the_start_of_the_first_trial() -> None:
    stopper, study = stop_when("max_time(0.2)"), study_of()
    study.add_trials([done(1.0)] * 3)
    time.sleep(0.25)
    study.optimize(lambda trial: time.sleep(0.06) or 1.0, n_trials=50, callbacks=[stopper])
    assert 3 + 2 <= len(study.trials) <= 3 + 4
    stop = stopper.stop(study)
    assert stop is not None and 0.2 <= stop.fired[0].values["elapsed"] < 0.5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: stop_when("max_iter(3)", metrics=3), "metrics=3: expected a list of names"),  # type: ignore[arg-type]
        (lambda: stop_when("max_iter(3)", metrics=[3]), r"metrics=\[3\]: expected a list of names"),  # type: ignore[list-item]
        (lambda: stop_when("max_iter(3)").should_stop(3), "expected a study of Optuna's, got 3"),  # type: ignore[arg-type]
        (lambda: stop_when("max_iter(3)").should_stop(None), "expected a study of Optuna's, got None"),  # type: ignore[arg-type]
        (lambda: History(None), "expected a list of frozen trials"),  # type: ignore[arg-type]
        (lambda: History([1]), "expected frozen trials of Optuna's, got 1"),  # type: ignore[list-item]
        (lambda: History([], cost="flops"), "cost='flops': expected"),
        (lambda: result_of(None), "report: expected a study"),  # type: ignore[arg-type]
        (lambda: results_of(None), "None is neither the URL"),  # type: ignore[arg-type]
    ],
)
def test_what_is_of_another_kind_is_named(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()

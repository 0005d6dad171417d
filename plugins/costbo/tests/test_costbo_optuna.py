"""The sampler and the stopper as plain Optuna objects."""

from __future__ import annotations

import csv
import logging
import math
import pickle
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from infimum.errors import InputError
from infimum_costbo import CostAwareGPSampler, CostAwareStopper
from infimum_costbo.cost import CostSource
from infimum_costbo.model import build
from infimum_costbo.observations import of_study
from infimum_costbo.search import best_point, candidates
from infimum_costbo.space import Space

ACQUISITIONS = pytest.mark.parametrize("acquisition", ["pbgi", "logeipc"])


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def mixed(trial: optuna.Trial) -> float:
    x, k = trial.suggest_float("x", -2, 2), trial.suggest_int("k", 1, 20)
    rate, kind = trial.suggest_float("rate", 1e-4, 1.0, log=True), trial.suggest_categorical("kind", ["a", "b", None])
    trial.suggest_float("constant", 3.0, 3.0)
    trial.set_user_attr("seconds", 0.1 + 0.1 * k)
    return 1 + (x - 0.3) ** 2 + (math.log10(rate) + 2) ** 2 + 0.01 * (k - 7) ** 2 + 0.5 * (kind != "b")


def line(values: list[float], costs: list[Any] | None = None, direction: str = "minimize") -> optuna.Study:
    """A study with given values at points of [0, 1]."""
    study = optuna.create_study(direction=direction)
    space = {"x": FloatDistribution(0.0, 1.0)}
    for k, value in enumerate(values):
        attributes = {} if costs is None or costs[k] is None else {"c": costs[k]}
        x = (0.5 + 0.618 * k) % 1.0
        study.add_trial(create_trial(params={"x": x}, distributions=space, value=value, user_attrs=attributes))
    return study


@pytest.mark.parametrize("acquisition", ["pbgi", pytest.param("logeipc", marks=pytest.mark.slow)])
def test_a_mixed_space_with_a_cost_that_is_only_observed(acquisition: Any) -> None:
    sampler = CostAwareGPSampler(0.02, acquisition, "user_attr:seconds", seed=1)
    stopper = sampler.stopper()
    study = optuna.create_study(sampler=sampler)
    study.optimize(mixed, n_trials=45, callbacks=[stopper])
    assert 10 <= len(study.trials) < 45
    assert study.best_value < 1.35
    assert stopper.last_log_eipc <= math.log(0.02) and 0.0 < stopper.ei_calibration <= 1.0
    seen = stopper.history[-1]
    assert seen.stop and seen.n == len(study.trials) and seen.best == study.best_value
    assert seen.paid == pytest.approx(sum(one.user_attrs["seconds"] for one in study.trials))
    assert stopper.predicted_gain == pytest.approx(math.exp(seen.log_eipc) * seen.price)
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    random.optimize(mixed, n_trials=len(study.trials))
    assert study.best_value < random.best_value


def test_a_seed_repeats_and_the_first_trials_are_random() -> None:
    def params(seed: int) -> list[Any]:
        study = optuna.create_study(sampler=CostAwareGPSampler(0.1, n_startup_trials=6, seed=seed))
        study.optimize(mixed, n_trials=9)
        return [one.params for one in study.trials]

    first = params(3)
    assert params(3) == first and params(4) != first
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    random.optimize(mixed, n_trials=6)
    assert [one.params for one in random.trials] == first[:6]


def test_maximizing_is_minimizing_the_negative() -> None:
    def run(direction: str, sign: float) -> tuple[Any, Any]:
        sampler = CostAwareGPSampler(0.05, warp=None, seed=0)
        stopper = sampler.stopper()
        study = optuna.create_study(direction=direction, sampler=sampler)
        study.optimize(lambda t: sign * (t.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=12, callbacks=[stopper])
        return [one.params["x"] for one in study.trials], [one.log_eipc for one in stopper.history]

    down, up = run("minimize", 1.0), run("maximize", -1.0)
    assert down[0] == up[0] and np.array_equal(down[1], up[1], equal_nan=True)


def test_a_known_cost_is_taken_from_the_function() -> None:
    asked: list[Any] = []

    def cost(params: dict[str, Any]) -> float:
        asked.append(params)
        return 0.01 if params["x"] < 0.5 else 100.0

    study = optuna.create_study(sampler=CostAwareGPSampler(0.05, "logeipc", cost, n_startup_trials=4, seed=2))
    study.optimize(lambda t: math.cos(9 * t.suggest_float("x", 0, 1)), n_trials=10)
    assert all(set(one) == {"x"} for one in asked)
    assert all(one.params["x"] < 0.5 for one in study.trials[4:])


def test_expensive_points_are_left_for_later() -> None:
    """The same objective everywhere by symmetry, half of the space a hundred times as expensive (modeled)."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1, 1)
        trial.set_user_attr("c", 0.1 if x < 0 else 10.0)
        return abs(x) - 0.3 * math.cos(20 * abs(x))

    cheap = 0
    for acquisition in ("pbgi", "logeipc"):
        sampler = CostAwareGPSampler(0.5, acquisition, "user_attr:c", n_startup_trials=6, seed=5)  # type: ignore[arg-type]
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=14)
        cheap += sum(one.params["x"] < 0 for one in study.trials[6:])
    assert cheap >= 12


def test_conditional_parameters_are_drawn_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.suggest_categorical("deep", [True, False]):
            return x + trial.suggest_float("width", 0, 1)
        return x + 0.5

    study = optuna.create_study(sampler=CostAwareGPSampler(0.01, n_startup_trials=4, seed=0))
    with caplog.at_level(logging.WARNING, logger="infimum"):
        study.optimize(objective, n_trials=14)
    assert sum("'width'" in one.message for one in caplog.records) == 1
    assert set(study.trials[-1].params) >= {"x", "deep"}


def test_parallel_trials_spread() -> None:
    sampler = CostAwareGPSampler(0.001, n_startup_trials=5, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: (t.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=6)
    space = {"x": FloatDistribution(0.0, 1.0)}
    asked = [study.ask(space).params["x"] for _ in range(4)]
    assert min(abs(a - b) for k, a in enumerate(asked) for b in asked[:k]) > 1e-3
    alone = optuna.create_study(sampler=CostAwareGPSampler(0.001, n_startup_trials=5, seed=9))
    for one in study.get_trials(states=(TrialState.COMPLETE,)):
        alone.add_trial(one)
    first = alone.ask(space)
    alone.tell(first, state=TrialState.FAIL)
    # Without the trials that run, the second suggestion goes where the first went.
    assert abs(alone.ask(space).params["x"] - first.params["x"]) < 0.05


def test_threads() -> None:
    sampler = CostAwareGPSampler(0.05, cost="user_attr:seconds", n_startup_trials=6, seed=0)
    stopper = sampler.stopper()
    study = optuna.create_study(sampler=sampler)
    study.optimize(mixed, n_trials=40, n_jobs=2, callbacks=[stopper])
    assert 10 <= len(study.trials) <= 40
    assert stopper.history[-1].n == len(study.trials) or stopper.history[-1].stop


def test_a_finite_space_is_searched_once_and_then_over(caplog: pytest.LogCaptureFixture) -> None:
    sampler = CostAwareGPSampler(1e-9, n_startup_trials=4, seed=0)
    stopper = sampler.stopper()
    study = optuna.create_study(sampler=sampler)
    table = {(k, c): math.sin(3 * k) + (c == "b") for k in range(5) for c in "ab"}

    def objective(trial: optuna.Trial) -> float:
        return table[trial.suggest_int("k", 0, 4), trial.suggest_categorical("c", ["a", "b"])]

    study.optimize(objective, n_trials=60, callbacks=[stopper])
    later = [(one.params["k"], one.params["c"]) for one in study.trials[4:]]
    assert len(set(later)) == len(later) and len(study.trials) <= 14
    assert study.best_value == min(table.values()) and stopper.history[-1].reason == "every point is evaluated"
    with caplog.at_level(logging.WARNING, "infimum"):
        study.optimize(objective, n_trials=2)
    assert [one.getMessage().partition(",")[0] for one in caplog.records] == [
        "CostAwareGPSampler: every point of the space is evaluated or running"
    ]


def test_a_study_that_others_sample_is_stopped() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -2, 2)
        trial.set_user_attr("seconds", 1.0 + x * x)
        return (x - 0.3) ** 2

    stopper = CostAwareStopper(0.02, cost="user_attr:seconds", min_trials=6)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=60, callbacks=[stopper])
    assert 6 <= len(study.trials) < 60
    asked = CostAwareStopper(0.02, cost="user_attr:seconds", min_trials=6)
    again = optuna.create_study()
    for k, one in enumerate(study.trials, 1):
        again.add_trial(one)
        assert asked.should_stop(again) == (k == len(study.trials))
    assert repr(asked.history) == repr(stopper.history)
    # Nothing new: the same answer, and nothing counted twice.
    assert asked.should_stop(again) and len(asked.history) == len(study.trials)


def test_one_object_serves_two_studies_and_travels() -> None:
    good, bad = line([1.0, 0.2, 0.9, 0.3, 0.8, 0.7]), line([5.0, 4.0, 3.0, 2.0, 1.0, 0.1])
    stopper = CostAwareStopper(0.2, warp=None)
    answers = [stopper.should_stop(good), stopper.should_stop(bad), stopper.should_stop(good)]
    assert answers[0] == answers[2]
    assert answers[0] == CostAwareStopper(0.2, warp=None).should_stop(good)
    assert answers[1] == pickle.loads(pickle.dumps(stopper)).should_stop(bad)
    sampler = pickle.loads(pickle.dumps(CostAwareGPSampler(0.1, n_startup_trials=2, seed=0)))
    good.sampler = sampler
    good.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2)


def test_calibration_and_window_only_make_the_rule_more_cautious_about_going_on() -> None:
    values = [3.0, 2.9, 3.1, 2.95, 3.05, 3.0, 2.99, 3.2, 2.97]
    plain, damped = CostAwareStopper(1e-3, warp=None), CostAwareStopper(1e-3, warp=None, calibrate=True)
    wide = CostAwareStopper(1e-3, warp=None, window=3)
    for n in range(2, len(values) + 1):
        study = line(values[:n])
        for one in (plain, damped, wide):
            # One memory over a growing study: the object is the same for all lengths.
            one._judges[study] = one._last
            one.judge(study)
    assert [a.log_eipc for a in plain.history] == pytest.approx([b.log_eipc for b in damped.history], nan_ok=True)
    assert all(b.stop or not a.stop for a, b in zip(plain.history, damped.history, strict=True))
    assert damped.ei_calibration < 1.0
    assert not any(one.stop for one in wide.history[:4])


def test_the_log_warp_is_chosen_where_it_fits() -> None:
    def warp(values: list[float], asked: str | None = "auto", direction: str = "minimize") -> Any:
        study = line(values, direction=direction)
        observed = of_study(study, CostSource(None), {"x": FloatDistribution(0.0, 1.0)})
        model = build(observed, CostSource(None), asked)
        assert model is not None
        return model.warp

    assert warp([1.0, 2.0, 3.5, 2.2]) == "log"
    assert warp([1.0, 2.0, 2.9, 2.2]) is None
    assert warp([-1.0, 2.0, 3.5, 2.2]) is None
    assert warp([1.0, 2.0, 3.5, 2.2], None) is None
    assert warp([1.0, 1.1, 1.2, 1.05], "log") == "log"
    assert warp([1.0, 2.0, 3.5, 2.2], "auto", "maximize") is None


def test_failed_pruned_and_infinite_trials() -> None:
    study = line([1.0, 0.5, 0.8, 0.6, 0.9], [1.0, 2.0, 1.0, 1.0, 1.0])
    space = {"x": FloatDistribution(0.0, 1.0)}
    for state, cost in ((TrialState.FAIL, 4.0), (TrialState.PRUNED, 3.0)):
        study.add_trial(create_trial(state=state, params={"x": 0.3}, distributions=space, user_attrs={"c": cost}))
    study.add_trial(create_trial(state=TrialState.FAIL))
    study.add_trial(create_trial(params={"x": 0.95}, distributions=space, value=math.inf, user_attrs={"c": 1.0}))
    seen = CostAwareStopper(0.01, cost="user_attr:c").judge(study)
    assert seen.n == 6 and seen.paid == 14.0 and seen.best == 0.5 and math.isfinite(seen.log_eipc)
    study.sampler = CostAwareGPSampler(0.01, cost="user_attr:c", seed=0)
    assert 0.0 <= study.ask(space).params["x"] <= 1.0


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0, 2.0, 2.0], [math.inf] * 5])
def test_nothing_to_learn_from_yet(values: list[float]) -> None:
    study = line(values)
    study.sampler = CostAwareGPSampler(0.1, n_startup_trials=0, seed=0)
    stopper = CostAwareStopper(1e9, min_trials=0)
    assert not stopper.should_stop(study)
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)


def test_parameters_that_no_two_trials_share(caplog: pytest.LogCaptureFixture) -> None:
    stopper = CostAwareStopper(1e9)
    study = optuna.create_study()
    for k in range(8):
        study.add_trial(
            create_trial(params={f"x{k}": 0.5}, distributions={f"x{k}": FloatDistribution(0, 1)}, value=float(k))
        )
    with caplog.at_level(logging.WARNING, logger="infimum"):
        assert not stopper.should_stop(study) and not stopper.should_stop(study)
    assert sum("no parameter" in one.message for one in caplog.records) == 1


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: CostAwareStopper(0.0), "lam is objective units per cost unit, a positive number; got 0.0"),
    (lambda: CostAwareStopper(math.nan), "got nan"),
    (lambda: CostAwareStopper("much"), "got 'much'"),  # type: ignore[arg-type]
    (lambda: CostAwareGPSampler(-1.0), "got -1.0"),
    (lambda: CostAwareGPSampler(1.0, "ei"), "acquisition='ei'"),  # type: ignore[arg-type]
    (lambda: CostAwareGPSampler(1.0, cost="seconds"), "cost='seconds'"),
    (lambda: CostAwareGPSampler(1.0, n_startup_trials=-1), "n_startup_trials=-1"),
    (lambda: CostAwareGPSampler(1.0, seed=-1), "seed=-1; expected a whole number of 0 or more"),
    (lambda: CostAwareStopper(1.0, seed="a"), "seed='a'"),  # type: ignore[arg-type]
    (lambda: CostAwareGPSampler(1.0, independent_sampler=3), "independent_sampler=3"),  # type: ignore[arg-type]
    (lambda: CostAwareGPSampler(1.0).stopper(windows=3), "no option 'windows'; did you mean 'window'"),
    (lambda: CostAwareStopper(1.0, calibrate="no"), "calibrate='no'"),  # type: ignore[arg-type]
    (lambda: CostAwareStopper("0.1"), "got '0.1'"),  # type: ignore[arg-type]
    (lambda: CostAwareStopper(1.0).should_stop(3), "expected a study of Optuna's, got 3"),  # type: ignore[arg-type]
    (lambda: CostAwareStopper(1.0, cost="user_attr:c").should_stop(line([1.0, 2.0], [1.0, "3"])), "'3'.*positive"),
    (lambda: CostAwareStopper(1.0, cost="user_attr:c").should_stop(line([1.0, 2.0], [1.0, True])), "True.*positive"),
    (
        lambda: CostAwareStopper(1.0, min_trials=2).should_stop(line([1.0, -1e200, 3.0, 4.0])),
        "trial 1 has the value -1e.200, too large for a model",
    ),
    (lambda: CostAwareStopper(1.0, warp="sqrt"), "warp='sqrt'"),  # type: ignore[arg-type]
    (lambda: CostAwareStopper(1.0, window=0), "window=0"),
    (lambda: CostAwareStopper(1.0, cost="user_attr:c").should_stop(line([1.0, 2.0], [1.0, None])), "trial 1 .*'c'"),
    (lambda: CostAwareStopper(1.0, cost="user_attr:c").should_stop(line([1.0, 2.0], [1.0, 0.0])), "trial 1 is 0.0"),
    (lambda: CostAwareStopper(1.0, cost="user_attr:c").should_stop(line([1.0, 2.0], [1.0, "x"])), "'x'.*positive"),
    (lambda: CostAwareStopper(1.0, cost=lambda p: -p["x"]).should_stop(line([1.0])), "cost function at"),
    (lambda: CostAwareStopper(1.0, warp="log").should_stop(line([1.0, -2.0, 3.0, 4.0])), "trial 1 has -2"),
]


@pytest.mark.parametrize(("call", "word"), BAD)
def test_bad_input(call: Callable[[], Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        call()


def test_cached_objectives_have_no_duration() -> None:
    study = optuna.create_study()
    trial = study.ask({"x": FloatDistribution(0, 1)})
    study.tell(trial, 1.0)
    seen = CostAwareStopper(1.0, cost="duration").judge(study)
    assert seen.paid > 0.0
    frozen = study.trials[0]
    frozen.datetime_complete = frozen.datetime_start
    other = optuna.create_study()
    other.add_trial(frozen)
    with pytest.raises(InputError, match="cached objective"):
        CostAwareStopper(1.0, cost="duration").judge(other)


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=CostAwareGPSampler(1.0, seed=0))
    with pytest.raises(InputError, match="2 objectives"):
        CostAwareStopper(1.0).should_stop(study)
    with pytest.raises(InputError, match="2 objectives"):
        study.ask({"x": FloatDistribution(0, 1)})


def test_a_changed_choice_is_optunas_own_error() -> None:
    study = optuna.create_study(sampler=CostAwareGPSampler(0.1, n_startup_trials=1, seed=0))
    study.optimize(lambda t: float(len(t.suggest_categorical("c", ["a", "bb"]))), n_trials=2)
    with pytest.raises(ValueError, match="dynamic value space"):
        study.optimize(lambda t: float(len(t.suggest_categorical("c", ["a", "ccc"]))), n_trials=1)


def test_units_and_back() -> None:
    space = Space(
        {
            "a": FloatDistribution(1e-3, 1.0, log=True),
            "b": IntDistribution(1, 100, log=True),
            "c": CategoricalDistribution(["x", None, 3]),
            "d": FloatDistribution(0.0, 1.0, step=0.25),
            "e": IntDistribution(7, 7),
            "f": IntDistribution(-4, 4, step=2),
        }
    )
    rng = np.random.default_rng(0)
    units = np.stack([one.sample(rng, 300) for one in space.columns], axis=1)
    params = [space.decode(row) for row in units]
    assert np.allclose(space.encode(params), units, atol=1e-12) and np.array_equal(space.snap(units), units)
    assert {one["c"] for one in params} == {"x", None, 3} and {one["d"] for one in params} == {0, 0.25, 0.5, 0.75, 1}
    assert {one["f"] for one in params} == {-4, -2, 0, 2, 4} and all("e" not in one for one in params)
    near = space.around(units[:3], rng, 50)
    assert np.allclose(space.snap(near), near, atol=1e-12)
    features = space.features(units)
    assert np.allclose((features**2).sum(1) - (units[:, [0, 1, 3, 4]] ** 2).sum(1), 0.5)
    with pytest.raises(InputError, match="no parameter 'a'"):
        space.encode([{}])


@ACQUISITIONS
def test_the_search_finds_the_best_point(acquisition: Any) -> None:
    """Against 40,000 points of a grid, and of a space with discrete parameters."""
    rng = np.random.default_rng(0)
    study = optuna.create_study()
    space = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1), "k": IntDistribution(0, 40)}
    for _ in range(14):
        p = {"x": rng.random(), "y": rng.random(), "k": int(rng.integers(41))}
        value = math.sin(5 * p["x"]) + (p["y"] - 0.4) ** 2 + 0.01 * (p["k"] - 30) ** 2 / 9
        study.add_trial(create_trial(params=p, distributions=space, value=value, user_attrs={"c": 1 + p["x"]}))
    source = CostSource("user_attr:c")
    model = build(of_study(study, source, space), source, None)
    assert model is not None
    found = best_point(model, candidates(model, rng), acquisition, 0.01)
    assert found is not None
    every = np.stack([one.sample(rng, 40000) for one in model.space.columns], axis=1)
    assert found[1] >= model.score(acquisition, model.beliefs(every), 0.01).max()


class Recorded:
    """Error (%) and measured fit seconds of extremely randomized trees on digits, for 224 settings."""

    def __init__(self) -> None:
        with Path(__file__).with_name("digits_trees.csv").open() as file:
            rows = list(csv.DictReader(file))
        self.levels = {n: list(dict.fromkeys(r[n] for r in rows)) for n in list(rows[0])[:4]}
        self.cells = {tuple(r[n] for n in self.levels): (float(r["error"]), float(r["seconds"])) for r in rows}

    def __call__(self, trial: optuna.Trial) -> float:
        key = []
        for name, levels in self.levels.items():
            if name == "criterion":
                key.append(trial.suggest_categorical(name, levels))
            else:
                key.append(levels[trial.suggest_int(name, 0, len(levels) - 1)])
        error, seconds = self.cells[tuple(key)]
        trial.set_user_attr("seconds", seconds)
        return error

    def score(self, lam: float, sampler: Any, stopper: Any = None) -> float:
        study = optuna.create_study(sampler=sampler)
        study.optimize(self, n_trials=40, callbacks=[stopper] if stopper else [])
        return study.best_value + lam * sum(one.user_attrs["seconds"] for one in study.trials)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_the_log_warp_more_is_promised_than_there_is(seed: int) -> None:
    recorded = Recorded()
    least = min(error for error, _ in recorded.cells.values())
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    study.optimize(recorded, n_trials=16)
    warped, plain = (
        CostAwareStopper(1.0, cost="user_attr:seconds", warp=warp).judge(study)  # type: ignore[arg-type]
        for warp in ("auto", None)
    )
    assert plain.gain > study.best_value - least
    assert warped.gain < 0.5 * plain.gain


@pytest.mark.parametrize("lam", [1.0, pytest.param(0.1, marks=pytest.mark.slow)])
def test_recorded_trainings_cost_less_than_forty_trials(lam: float) -> None:
    recorded = Recorded()
    for acquisition in ("pbgi", "logeipc"):
        ours, others = [], []
        for seed in range(2):
            sampler = CostAwareGPSampler(lam, acquisition, "user_attr:seconds", seed=seed)  # type: ignore[arg-type]
            ours.append(recorded.score(lam, sampler, sampler.stopper()))
            others.append(recorded.score(lam, optuna.samplers.TPESampler(seed=seed)))
        assert statistics.fmean(ours) < statistics.fmean(others)


@pytest.mark.slow
@pytest.mark.parametrize("lam", [1.0, 0.1])
def test_recorded_trainings_against_optunas_gaussian_process(lam: float) -> None:
    pytest.importorskip("torch")
    recorded = Recorded()
    ours, others = [], []
    for seed in range(5):
        sampler = CostAwareGPSampler(lam, "pbgi", "user_attr:seconds", seed=seed)
        ours.append(recorded.score(lam, sampler, sampler.stopper()))
        others.append(recorded.score(lam, optuna.samplers.GPSampler(seed=seed)))
    assert statistics.fmean(ours) < statistics.fmean(others)

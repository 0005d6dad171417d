"""Black boxes under our run loop: every sampler, x0, failures, pruning, costs, resuming, run files."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import infimum
from infimum.errors import InputError, PlanError
from infimum.runfile import RunFile, RunFileError
from infimum.status import Status
from infimum_optuna import TPE, BlackBox, Outcome, Random, Seeded
from infimum_optuna.examples import priced, random_sampler

SPACE = {"x": {"low": -2.0, "high": 2.0}, "n": {"low": 1, "high": 5}, "kind": ["round", "flat"]}
FINITE = {"x": {"low": -1.0, "high": 1.0, "step": 0.5}, "kind": ["round", "flat"]}
SAMPLERS = ["tpe", "cma_es", "random", "qmc", "nsga_ii", "nsga_iii"]


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


def bowl(params: dict[str, Any]) -> float:
    return float((params["x"] - 0.5) ** 2 + 0.1 * (params["n"] - 2) ** 2 + (0.3 if params["kind"] == "flat" else 0.0))


def solve(box: Any, solver: Any = "optuna.random", stopping: str = "max_iter(10)", **options: Any) -> infimum.Result:
    return infimum.solve(box, solver=solver, stopping=stopping, **{"seed": 3, **options})


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_sampler_finds_the_bowl_and_counts(name: str) -> None:
    if name == "cma_es":
        pytest.importorskip("cmaes")
    result = solve(BlackBox(bowl, SPACE), f"optuna.{name}", "max_iter(60)")
    assert result.status is Status.limit and result.iterations == 60
    assert result.best_value == pytest.approx(bowl(result.best_x)) and result.value == pytest.approx(bowl(result.x))
    assert result.best_value < 0.5, "the mean over the space is 1.9"
    assert result.evaluations == {"objective": {"evaluate": 60, "value": 60}}
    assert result.trace["calls.evaluate"].tolist() == list(range(61))
    column = result.trace["value"][1:]
    assert result.best_value == column.min() and result.best_iteration == 1 + int(column.argmin())


@pytest.mark.slow
def test_the_gaussian_process_finds_the_bowl() -> None:
    pytest.importorskip("torch")
    result = solve(BlackBox(bowl, SPACE), {"use": "optuna.gp", "n_startup_trials": 8}, "max_iter(25)")
    assert result.best_value < 0.05


@pytest.mark.parametrize(("name", "space", "size"), [("grid", FINITE, 10), ("brute_force", FINITE, 10)])
def test_what_is_exhaustive_ends_when_all_has_been_tried(name: str, space: Any, size: int) -> None:
    seen: list[tuple[Any, ...]] = []
    box = BlackBox(lambda p: seen.append(tuple(p.values())) or (p["x"] - 0.5) ** 2, space)
    result = solve(box, f"optuna.{name}", "max_iter(100)")
    assert result.status is Status.converged and "every point" in result.message
    assert result.iterations == size == len(set(seen)) == len(seen) and result.best_value == 0.0


def test_brute_force_takes_a_conditional_space_and_grid_values_of_its_own() -> None:
    space = {"a": [1, 2], "b": {"low": 1, "high": 3, "when": {"a": 2}}}
    assert solve(BlackBox(lambda p: p["a"] + p.get("b", 0), space), "optuna.brute_force").iterations == 4
    with pytest.raises(InputError, match="conditional"):
        solve(BlackBox(lambda p: 0.0, space), "optuna.grid")
    box = BlackBox(lambda p: p["x"] ** 2, {"x": {"low": 0.0, "high": 1.0}})
    assert solve(box, {"use": "optuna.grid", "grid": {"x": [0.1, 0.5, 0.9]}}).iterations == 3
    for name in ("grid", "brute_force"):
        with pytest.raises(InputError, match="'x' is continuous"):
            solve(box, f"optuna.{name}")
    with pytest.raises(InputError, match="no parameter 'y'"):
        solve(box, {"use": "optuna.grid", "grid": {"x": [0.1], "y": [1]}})


def test_the_loop_adds_nothing_to_the_sampler() -> None:
    """The same suggestions as `study.optimize` with the same seeded sampler."""
    seen: list[float] = []
    box = BlackBox(lambda p: seen.append(p["x"]) or p["x"] ** 2, {"x": {"low": -1.0, "high": 1.0}})
    made = []

    def make(space: Any, study_seed: int, trial_seed: int) -> Any:
        made.append(trial_seed)
        return optuna.samplers.TPESampler(seed=trial_seed, n_startup_trials=5)

    run = infimum.prepare(box, solver=TPE(n_startup_trials=5), stopping="max_iter(20)", seed=3)
    run.solve()
    study = optuna.create_study(sampler=Seeded(make, run.state.seed), study_name="infimum")
    study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=20)
    assert [one.params["x"] for one in study.trials] == seen
    assert len(set(made)) == 20, "a seed for each trial"


@pytest.mark.parametrize(
    "solver",
    [
        {"use": "optuna.cma_es", "with_margin": True},
        {"use": "optuna.cma_es", "use_separable_cma": True, "consider_pruned_trials": True},
        {"use": "optuna.cma_es", "lr_adapt": True, "popsize": 4},
        {"use": "optuna.tpe", "multivariate": True, "n_ei_candidates": 8, "n_startup_trials": 2},
        {"use": "optuna.qmc", "qmc_type": "halton", "scramble": False},
        {"use": "optuna.nsga_ii", "population_size": 3, "mutation_prob": 0.5, "crossover_prob": 0.0},
        {"use": "optuna.nsga_iii", "population_size": 3, "dividing_parameter": 2, "fixed": {"n": 2}},
    ],
    ids=lambda one: "-".join([one["use"], *list(one)[1:2]]),
)
def test_options_reach_the_samplers(solver: dict[str, Any]) -> None:
    """Also those that Optuna calls experimental, which were asked for by name: no warning."""
    if solver["use"] == "optuna.cma_es":
        pytest.importorskip("cmaes")
    assert solve(BlackBox(bowl, SPACE), solver, "max_iter(8)").best_value < 3.5


def test_seeds_decide() -> None:
    box = BlackBox(bowl, SPACE)
    first, again, other = (solve(box, "optuna.tpe", seed=seed) for seed in (1, 1, 2))
    assert first.x == again.x and first.trace["value"][1:].tolist() == again.trace["value"][1:].tolist()
    assert first.x != other.x


@pytest.mark.parametrize("name", ["tpe", "cma_es", "qmc", "nsga_ii", "grid"])
def test_a_run_is_taken_up_bit_for_bit(name: str, tmp_path: Path) -> None:
    """Through files, with pruned and failed trials, with a queue that is not empty yet, and a pruner."""
    if name == "cma_es":
        pytest.importorskip("cmaes")
    from infimum.checkpoint import load_tree, save_tree

    def noisy(params: dict[str, Any], trial: Any) -> float:
        if params["n"] == 1:
            raise ValueError("one")
        for step in range(3):
            trial.report(bowl(params) + step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return bowl(params)

    def prepare() -> Any:
        queue = [{"x": 0.1}, {"x": 0.25, "n": 3}, {"x": 0.5, "n": 4, "kind": "flat"}]
        grid: dict[str, Any] = {"grid": {"x": list(np.linspace(-1, 1, 5))}} if name == "grid" else {"enqueue": queue}
        solver = {
            "use": f"optuna.{name}",
            **grid,
            "on_failure": "continue",
            "pruner": {"use": "optuna.median_pruner", "n_startup_trials": 2},
            **({"population_size": 4} if name == "nsga_ii" else {}),
        }
        return infimum.prepare(BlackBox(noisy, SPACE), solver=solver, stopping="max_iter(24)", seed=5)

    whole = prepare()
    expected = whole.solve()
    states = {one.state.name for one in whole.state.study.trials}
    assert {"COMPLETE", "PRUNED"} <= states and "FAIL" in states
    for split in (2, 13):
        first = prepare()
        first.advance(split)
        save_tree(tmp_path / f"{split}", "state", first.state_dict())
        second = prepare().load_state_dict(load_tree(tmp_path / f"{split}", "state"))
        result = second.solve()
        assert result.x == expected.x and result.best_x == expected.best_x
        np.testing.assert_array_equal(result.trace["value"], expected.trace["value"])
        old, new = (run.state.study.trials for run in (whole, second))
        assert [(one.state, one.values, one.params, one.intermediate_values) for one in old] == [
            (one.state, one.values, one.params, one.intermediate_values) for one in new
        ]


def test_x0_is_iteration_0_and_is_evaluated() -> None:
    start = {"x": 1.5, "n": 2, "kind": "flat"}
    result = solve(BlackBox(bowl, SPACE), x0=start, stopping="max_iter(4)")
    assert result.trace["value"][0] == bowl(start) and result.evaluations["objective"]["evaluate"] == 5
    again = solve(BlackBox(bowl, SPACE), x0=result, stopping="max_iter(0)")
    assert again.x == result.best_x and again.value == result.best_value
    with pytest.raises(InputError, match="'kind' is missing"):
        solve(BlackBox(bowl, SPACE), x0={"x": 1.5, "n": 2})
    with pytest.raises(InputError, match=r"n = 9 is not in"):
        solve(BlackBox(bowl, SPACE), x0={**start, "n": 9})
    with pytest.raises(InputError, match="mapping of parameters"):
        solve(BlackBox(bowl, SPACE), x0=np.zeros(3))


def test_enqueued_points_come_first_and_fixed_ones_stay() -> None:
    seen: list[dict[str, Any]] = []
    box = BlackBox(lambda p: seen.append(p) or bowl(p), SPACE)
    solve(box, {"use": "optuna.random", "enqueue": [{"x": 0.5, "n": 2}, {"x": 1.0}], "fixed": {"kind": "flat"}})
    assert [seen[0]["x"], seen[0]["n"], seen[1]["x"]] == [0.5, 2, 1.0] and {one["kind"] for one in seen} == {"flat"}
    for option in ("enqueue", "fixed"):
        for value, said in (({"y": 1}, "the space has no parameter 'y'"), ({"n": 7}, "n = 7 is not in")):
            with pytest.raises(InputError, match=f"{option}: {said}"):
                solve(box, {"use": "optuna.random", option: [value] if option == "enqueue" else value})


def test_maximize() -> None:
    result = solve(BlackBox(priced, FINITE, direction="maximize"), "optuna.brute_force", "max_iter(50)")
    assert result.best_value == 0.0 and result.best_x == {"x": 0.5, "kind": "round"}
    assert result.trace["value"][1:].max() == 0.0 and result.trace["value"][1:].min() < -2
    assert solve(BlackBox(priced, FINITE, direction="maximize"), stopping="target(-1) | max_iter(99)").value >= -1
    with pytest.raises(InputError, match="contradicts"):
        solve(BlackBox(priced, FINITE, direction="maximize"), maximize=False)


def test_costs_are_metrics_and_attributes_of_the_trials() -> None:
    run = infimum.prepare(
        BlackBox(priced, FINITE, direction="maximize"),
        solver=Random(),
        stopping="max_iter(6)",
        seed=0,
        record=["cost", "total_cost", "best"],
    )
    result = run.solve()
    trials = run.state.study.trials
    costs = [one.user_attrs["cost"] for one in trials]
    assert costs == [1.0 + abs(one.params["x"]) for one in trials] == result.trace["cost"][1:].tolist()
    assert result.trace["total_cost"][-1] == pytest.approx(sum(costs)) and run.state.history.total_cost == sum(costs)
    assert result.trace["best"][-1] == result.best_value
    assert [one.user_attrs["double"] for one in trials] == [2 * one.value for one in trials]


def test_measured_and_known_costs() -> None:
    def slow(params: dict[str, Any]) -> float:
        time.sleep(0.02)
        return bowl(params)

    result = solve(BlackBox(slow, SPACE, cost="seconds"), stopping="max_iter(3)", record=["cost"])
    assert all(0.02 <= one < 0.5 for one in result.trace["cost"][1:])
    known = solve(BlackBox(bowl, SPACE, cost=lambda p: p["n"]), stopping="max_iter(3)", record=["cost"])
    assert known.trace["cost"][-1] == known.x["n"]
    with pytest.raises(InputError, match=r"cost function is -1.* expected a finite number >= 0"):
        solve(BlackBox(bowl, SPACE, cost=lambda p: -1))
    with pytest.raises(InputError, match="second result is -2"):
        solve(BlackBox(lambda p: (1.0, -2), SPACE))


def test_a_cost_that_the_function_sets_itself_counts() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("cost", 2.0)
        if trial.number == 1:
            raise optuna.TrialPruned
        return trial.suggest_float("x", 0, 1)

    result = solve(BlackBox(objective), record=["cost", "total_cost"], stopping="max_iter(3)")
    assert result.trace["cost"][1:].tolist() == [2.0, 2.0, 2.0] and result.trace["total_cost"][-1] == 6.0
    assert math.isnan(result.trace["value"][2])


@pytest.mark.parametrize(("worst", "status"), [(math.nan, "nonfinite"), (-math.inf, "nonfinite"), (math.inf, "limit")])
def test_what_is_not_finite_follows_the_host(worst: float, status: str) -> None:
    count = iter(range(99))
    box = BlackBox(lambda p: worst if next(count) == 3 else 1.0 + p["x"] ** 2, SPACE)
    run = infimum.prepare(box, solver="optuna.random", stopping="max_iter(8)", seed=0)
    result = run.solve()
    assert str(result.status) == status and result.best_value >= 1.0 and math.isfinite(result.best_value)
    states = [one.state.name for one in run.state.study.trials]
    assert states[3] == ("COMPLETE" if status == "limit" else "FAIL")
    if status == "nonfinite":
        assert "trial 3" in result.message and result.iterations == 3
        assert result.x == run.state.study.trials[2].params, "the step that failed is discarded"


def test_failures_end_the_run_or_are_passed_over() -> None:
    def breaks(params: dict[str, Any]) -> float:
        if params["n"] == 4:
            raise ValueError("four")
        return math.nan if params["n"] == 5 else bowl(params)

    run = infimum.prepare(BlackBox(breaks, SPACE), solver="optuna.random", stopping="max_iter(30)", seed=0)
    result = run.solve()
    assert result.status in (Status.failed, Status.nonfinite) and result.best_x is not None
    assert run.state.study.trials[-1].state.name == "FAIL"
    run = infimum.prepare(
        BlackBox(breaks, SPACE), solver=Random(on_failure="continue"), stopping="max_iter(30)", seed=0
    )
    result = run.solve()
    failed = [one for one in run.state.study.trials if one.state.name == "FAIL"]
    assert result.status is Status.limit and {one.params["n"] for one in failed} == {4, 5}
    assert int(np.isnan(result.trace["value"][1:]).sum()) == len(failed)


def test_pruners_act() -> None:
    def learning(params: dict[str, Any], trial: optuna.Trial) -> float:
        for step in range(5):
            trial.report(params["x"] ** 2, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return params["x"] ** 2

    for name in ("median", "percentile", "successive_halving", "hyperband", "patient", "wilcoxon"):
        wrapped = {"wrapped": {"use": "optuna.median_pruner"}, "patience": 1} if name == "patient" else {}
        run = infimum.prepare(
            BlackBox(learning, {"x": {"low": -1.0, "high": 1.0}}),
            solver={"use": "optuna.random", "pruner": {"use": f"optuna.{name}_pruner", **wrapped}},
            stopping="max_iter(25)",
            seed=0,
        )
        run.solve()
        assert len(run.state.history) + len(run.state.history.pruned) == 25
        assert run.state.history.pruned or name in ("patient", "hyperband", "wilcoxon"), name
    run = infimum.prepare(
        BlackBox(learning, {"x": {"low": -1.0, "high": 1.0}}),
        solver={"use": "optuna.random", "pruner": {"use": "optuna.threshold_pruner", "upper": 0.25}},
        stopping="max_iter(25)",
        seed=0,
    )
    run.solve()
    assert run.state.history.pruned and run.state.history.values.max() <= 0.25
    with pytest.raises(InputError, match="expected a pruner"):
        solve(BlackBox(bowl, SPACE), {"use": "optuna.random", "pruner": 3})
    with pytest.raises(InputError, match="lower, upper or both"):
        solve(BlackBox(bowl, SPACE), {"use": "optuna.random", "pruner": "optuna.threshold_pruner"})


def test_define_by_run() -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return trial.suggest_float("x", -1, 1) ** 2 + (1.0 if kind == "b" else trial.suggest_float("y", 0, 1))

    result = solve(BlackBox(objective), "optuna.tpe", "max_iter(40)")
    assert result.best_value < 0.4 and set(result.best_x) == {"kind", "x", "y"}
    group = solve(BlackBox(objective), {"use": "optuna.tpe", "multivariate": True, "group": True}, "max_iter(20)")
    assert group.iterations == 20
    assert BlackBox(objective).body.evaluate_params({"kind": "a", "x": 0.5, "y": 0.25}) == Outcome(0.5)


def test_which_arguments_the_function_gets() -> None:
    space = {"x": {"low": 0.0, "high": 1.0}}
    assert BlackBox(lambda p: 1.0, space).body.takes == ("params",)
    assert BlackBox(lambda params, trial: 1.0, space).body.takes == ("params", "trial")
    assert BlackBox(lambda trial, params: 1.0, space).body.takes == ("trial", "params")
    assert BlackBox(lambda trial: 1.0, space).body.takes == ("trial",)
    assert BlackBox(lambda p, extra=3: 1.0, space).body.takes == ("params",)
    assert BlackBox(lambda t: 1.0).body.takes == ("trial",)
    result = solve(BlackBox(lambda trial: trial.params["x"], space), stopping="max_iter(3)")
    assert 0 <= result.value <= 1


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ((1.0, 2.0, 3.0), "several objectives"),
        ({"loss": 1.0}, "'value' is missing"),
        (None, "returned None as the value"),
        ("1", "returned '1' as the value"),
        ((1.0, "x"), "second result is 'x'"),
        (np.zeros(2), "as the value"),
        (10**400, "integer beyond 1e308"),
    ],
)
def test_what_a_function_may_not_return(out: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        solve(BlackBox(lambda p: out, SPACE))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"evaluate": 3}, "evaluate=3: expected a function"),
        ({"evaluate": bowl, "direction": "down"}, "direction='down'"),
        ({"evaluate": bowl, "cost": "minutes"}, "cost='minutes'"),
        ({"evaluate": bowl, "space": {}}, "not empty"),
    ],
)
def test_a_box_that_cannot_be_made(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        BlackBox(**{"space": SPACE, **options})


def test_a_sampler_of_ones_own() -> None:
    result = solve(BlackBox(bowl, SPACE), {"use": "optuna.sampler", "make_sampler": random_sampler})
    assert result.iterations == 10
    with pytest.raises(InputError, match="expected a sampler of Optuna"):
        solve(BlackBox(bowl, SPACE), {"use": "optuna.sampler", "make_sampler": lambda seed: seed})


@pytest.mark.slow
def test_a_box_without_a_solver_takes_tpe_and_other_families_are_refused() -> None:
    """Slow, because both look at all installed solvers."""
    assert "optuna.tpe was chosen" in " ".join(infimum.solve(BlackBox(bowl, SPACE), stopping="max_iter(2)").notes)
    with pytest.raises(PlanError):
        infimum.explain(lambda x: float(x @ x), "optuna.tpe")


def test_rules_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="reads metric 'grad_norm'"):
        solve(BlackBox(bowl, SPACE), stopping="grad_norm(1e-3)")


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "cmaes" else real(name, *a))
    with pytest.raises(InputError, match=r"needs the package cmaes; pip install 'infimum-optuna\[cmaes\]'"):
        solve(BlackBox(bowl, SPACE), "optuna.cma_es")


def test_a_run_file_with_a_function_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(params):\n    return (params['x'] - 1) ** 2\n", encoding="utf-8")
    text = (
        'problem:\n  use: optuna.black_box\n  evaluate: "python:mine:f"\n  space: {x: {low: -2.0, high: 2.0}}\n'
        "solver: {use: optuna.tpe, pruner: {use: optuna.median_pruner}}\nstopping: max_iter(20)\nseed: 1\n"
    )
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    loaded = RunFile.load(tmp_path / "run.yaml")
    assert loaded.prepare().solve().best_value < 0.5
    (tmp_path / "run.yaml").write_text(text.replace("mine:f", "mine:g"), encoding="utf-8")
    with pytest.raises(RunFileError, match="has no 'g'"):
        RunFile.load(tmp_path / "run.yaml").prepare()


def test_a_saved_result_comes_back(tmp_path: Path) -> None:
    result = solve(BlackBox(bowl, SPACE))
    loaded = infimum.Result.load(result.save(tmp_path / "out"))
    assert loaded.best_x == result.best_x and loaded.best_value == result.best_value


def test_time_and_a_callback_end_a_run() -> None:
    box = BlackBox(lambda p: time.sleep(0.01) or 1.0, SPACE)
    result = solve(box, stopping="max_time(0.1)")
    assert result.status is Status.limit and 2 <= result.iterations <= 12
    assert solve(box, callback=lambda progress: progress.iteration >= 3).iterations == 3
    assert (
        solve(box, stopping="max_calls(4)").evaluations
        == solve(box, stopping="max_calls(4, of='evaluate')").evaluations
    )


def test_only_the_public_interface_of_optuna_is_used() -> None:
    """No private module or attribute, and nothing of the deprecated `optuna.terminator`."""
    import infimum_optuna

    private = re.compile(r"\boptuna\.(\w+\.)*_|from optuna\S* import _|\b(study|trial|storage)\._|terminator")
    files = sorted(Path(infimum_optuna.__path__[0]).glob("*.py"))
    assert len(files) > 10
    found = [f"{one.name}: {m.group()}" for one in files for m in private.finditer(one.read_text(encoding="utf-8"))]
    assert found == []
    assert private.search("optuna._gp.x") and private.search("study._storage") and not private.search("optuna.study.x")

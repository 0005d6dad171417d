"""The rules and the solver under infimum's own run loop, on user studies, and in reports."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
import pytest

import infimum
from infimum.errors import InfimumError
from infimum.status import Status
from infimum.stopping import Progress
from infimum_costbo import rivals
from infimum_costbo.hooks import infimum_report_sections
from infimum_costbo.report import sections
from infimum_costbo.rules import Convergence, Gss, Stop, UcbLcb
from infimum_optuna import BlackBox, History, stop_when

SPACE = {"x": {"low": -2.0, "high": 2.0}, "k": {"low": 1, "high": 20}}


def priced(params: dict[str, Any]) -> tuple[float, float]:
    return 1 + (params["x"] - 0.3) ** 2 + 0.01 * (params["k"] - 7) ** 2, 0.1 + 0.1 * params["k"]


def solve(**options: Any) -> Any:
    given = {"solver": {"use": "costbo.gp", "lam": 0.02}, "stopping": "costbo.stop(0.02) | max_iter(40)", "seed": 1}
    return infimum.solve(BlackBox(priced, SPACE), **(given | options))


@pytest.fixture(scope="module")
def result() -> Any:
    return solve()


def test_a_run_ends_when_nothing_is_worth_its_cost(result: Any) -> None:
    assert result.status is Status.converged and "<= lam = 0.02" in result.message
    assert result.nit < 40 and result.best_value < 1.1
    tree = result.extras["costbo.stop"]
    assert tree["columns"]["n"][-1] == result.nit
    assert tree["columns"]["log_eipc"][-1] <= math.log(0.02) and 0.0 < tree["calibration"] <= 1.0
    again = solve()
    assert again.nit == result.nit and again.best_x == result.best_x


def test_the_report_has_the_stop_curve(result: Any) -> None:
    (section,) = sections(result.extras)
    assert "It stopped" in section.text and "r_t" in section.text
    assert [one.title for one in section.figures] == ["Best value", "Cost paid", "Predicted remaining gain"]
    rows = {row[0]: row for row in section.tables[0].rows}
    assert {"cost-aware", "cost-aware, calibrated", *rivals.RULES, "at once", "hindsight"} <= set(rows)
    assert rows["cost-aware"][1] == result.nit
    scores = [row[4] for row in rows.values() if row[4] is not None]
    assert rows["hindsight"][4] == min(scores)
    n, best, paid = (result.extras["costbo.stop"]["columns"][name] for name in ("n", "best", "paid"))
    at = n.index(rows["hindsight"][1])
    assert rows["hindsight"][4] == pytest.approx(best[at] + 0.02 * paid[at])


def test_the_hook_leaves_other_results_alone(result: Any) -> None:
    assert len(list(infimum_report_sections(result))) == 1
    other = solve(solver="optuna.random", stopping="max_iter(2)")
    assert list(infimum_report_sections(other)) == []


def test_resume_is_bit_for_bit() -> None:
    def prepared() -> Any:
        rules = "costbo.stop(0.003, calibrate=True, window=2) | costbo.ucb_lcb(tol=1e-9) | max_iter(11)"
        solver = {"use": "costbo.gp", "lam": 0.003}
        return infimum.prepare(BlackBox(priced, SPACE), solver=solver, stopping=rules, seed=3)

    whole = prepared()
    expected = whole.solve()
    first = prepared()
    first.advance(8)
    second = prepared()
    second.load_state_dict(first.state_dict())
    result = second.solve()
    assert result.best_x == expected.best_x and result.nit == expected.nit
    ours, theirs = (one.extras["costbo.stop"]["columns"] for one in (result, expected))
    assert all(np.array_equal(ours[name], theirs[name], equal_nan=True) for name in ours)


def test_any_solver_and_direction_can_be_stopped() -> None:
    def flipped(params: dict[str, Any]) -> tuple[float, float]:
        value, cost = priced(params)
        return -value, cost

    box = BlackBox(flipped, SPACE, direction="maximize")
    result = infimum.solve(box, solver="optuna.random", stopping="costbo.stop(0.3) | max_iter(60)", seed=0)
    assert result.status is Status.converged and result.extras["costbo.stop"]["maximize"]
    (section,) = sections(result.extras)
    assert section.tables[0].columns[-1] == "best - lam cost"


def test_a_study_of_the_users_own() -> None:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        value, cost = priced({"x": trial.suggest_float("x", -2, 2), "k": trial.suggest_int("k", 1, 20)})
        trial.set_user_attr("seconds", cost)
        return value

    try:
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        callback = stop_when("costbo.stop(0.1)", cost="user_attr:seconds")
        study.optimize(objective, n_trials=80, callbacks=[callback])
        known = stop_when("costbo.stop(0.1)", cost=lambda p: 0.1 + 0.1 * p["k"])
        other = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        other.optimize(objective, n_trials=80, callbacks=[known])
    finally:
        optuna.logging.set_verbosity(before)
    stop = callback.stop(study)
    assert stop is not None and stop.status is Status.converged and 6 <= len(study.trials) < 80
    assert 6 <= len(other.trials) < 80


def test_rules_of_the_values_alone() -> None:
    def stops(rule: Any, values: list[float], maximize: bool = False) -> int:
        tracker = rule.start()
        for k, value in enumerate(values):
            if tracker.update(Progress(k, metrics={"value": value}, maximize=maximize)):
                return k
        return -1

    values = [5.0, 3.0, 4.0, 2.0, 2.5, 3.0, 2.2, 2.1, 2.0, 1.0]
    assert stops(Convergence(3), values) == 6
    assert stops(Convergence(3), [-v for v in values], maximize=True) == 6
    assert stops(Gss(3), values) == 6
    slow = [10.0, 5.0, 2.0, 1.999, 1.998, 1.997, 1.996]
    assert stops(Convergence(3), slow) == -1 and stops(Gss(3, share=0.1), slow) == 5


def test_rules_from_recorded_columns() -> None:
    gaps = [math.nan, *[1.0] * 20, 0.5, 0.009, 0.5]
    columns = {"regret_gap": gaps, "log_eipc": [math.log(g) for g in gaps], "n": list(range(24)), "ucb_lcb": gaps}
    assert rivals.first_stop(columns, rivals.srgap_median) == 22
    assert rivals.first_stop(columns, rivals.log_eipc_median) == 22
    assert rivals.first_stop(columns, rivals.ucb_lcb) == 22
    assert rivals.first_stop(columns, lambda c: rivals.fixed(c, 7)) == 7
    assert rivals.hindsight({"best": [3.0, 1.0, 0.9], "paid": [0.0, 1.0, 9.0]}, 0.1) == 1
    assert rivals.hindsight({"best": [-3.0, -1.0, -0.9], "paid": [0.0, 1.0, 9.0]}, 0.1, -1.0) == 1


def test_model_rules_in_a_run() -> None:
    rules = "costbo.ucb_lcb(tol=10) | costbo.srgap_median(eta=5, first=2) | costbo.log_eipc_median(eta=5, first=2)"
    result = solve(solver="optuna.random", stopping=f"({rules}) | max_iter(14)")
    assert result.status is Status.stalled and result.nit < 14


def test_costs_that_are_not_there() -> None:
    box = BlackBox(lambda p: p["x"] ** 2, {"x": {"low": -1.0, "high": 1.0}})
    failed = infimum.solve(box, solver="optuna.random", stopping="costbo.stop(0.1) | max_iter(9)", seed=0)
    assert failed.status is Status.failed and "has no user attribute 'cost'" in failed.message
    rule = "costbo.stop(0.1, cost='uniform') | max_iter(30)"
    assert infimum.solve(box, solver="optuna.random", stopping=rule, seed=0).status is Status.converged
    tracker = Stop(0.1).start()
    history = History(_trials(), cost=None)
    with pytest.raises(InfimumError, match="cost='uniform'"):
        tracker.update(Progress(1, metrics={"history": history}))


def _trials() -> list[Any]:
    study = optuna.create_study()
    study.add_trial(
        optuna.trial.create_trial(
            params={"x": 0.5}, distributions={"x": optuna.distributions.FloatDistribution(0, 1)}, value=1.0
        )
    )
    return study.trials


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ("costbo.stop(0)", "objective units per cost unit"),
        ("costbo.stop(-2)", "positive number"),
        ("costbo.stop(0.1, cost='free')", "'paid'"),
        ("costbo.stop(0.1, warp='sqrt')", "'auto'"),
        ("costbo.stop(0.1, window=0)", "window"),
        ("costbo.stop()", "lam"),
        ("costbo.ucb_lcb(tol=-1)", "tol"),
    ],
)
def test_bad_options(rule: str, word: str) -> None:
    with pytest.raises(InfimumError, match=word):
        solve(stopping=rule)


def test_rules_need_a_history() -> None:
    f = infimum.Composite({"f": infimum.functions.L1()}, start=np.ones(2))
    with pytest.raises(InfimumError, match="history"):
        infimum.solve(f, solver="splitting.proximal_point", stopping="costbo.stop(0.1) | max_iter(3)", seed=0)
    assert UcbLcb(tol=0.5) == UcbLcb(tol=0.5)


def test_the_solver_refuses_wrong_options() -> None:
    for options, word in (({"lam": -1.0}, "lam"), ({"lam": 1.0, "acquisition": "ucb"}, "acquisition"), ({}, "lam")):
        with pytest.raises(InfimumError, match=word):
            solve(solver={"use": "costbo.gp"} | options)


def test_a_rule_on_values_brings_its_stop_curve_to_the_report() -> None:
    problem = infimum.Composite(infimum.functions.SquaredL2(), start=np.ones(3))
    solver = {"use": "splitting.gradient_descent", "step": 0.5}
    result = infimum.solve(problem, solver=solver, stopping="costbo.convergence(3) | max_iter(30)", seed=0)
    (name,) = result.extras
    assert name.startswith("costbo.convergence")
    best = np.asarray(result.extras[name]["best"])
    assert (np.diff(best) <= 0).all() and len(best) == result.iterations + 1
    (section,) = infimum_report_sections(result)
    rows = {(row[0], row[1]): row[2] for row in section.tables[0].rows}
    assert rows["Convergence", 5] is None or rows["Convergence", 5] >= 5

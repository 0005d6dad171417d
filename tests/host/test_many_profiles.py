"""Costs to targets, performance and data profiles, bands and wins, against what they are by hand and by definition."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import infimum
from infimum.errors import InputError
from infimum.many.comparison import Comparison
from infimum.many.curves import curve
from infimum.many.members import Member
from infimum.many.profiles import data_profiles, performance_profiles
from infimum.result import Result
from infimum.status import Status
from infimum.trace import Trace


def result(values, times=None, gradients=None, violation=None, sense="min") -> Result:
    rows = len(values)
    columns = {"iteration": np.arange(rows), "time": np.arange(rows) if times is None else times, "value": values}
    if gradients is not None:
        columns["calls.gradient"] = gradients
    if violation is not None:
        columns["violation"] = violation
    return Result(
        x=np.zeros(3), best_x=None, value=values[-1], best_value=None, violation=None, status=Status.limit, message="",
        fired=(), iterations=rows - 1, elapsed=1.0, evaluations={"f": {"gradient": rows}}, calls={}, monitored={},
        exactness="exact", trace=Trace(columns), metrics={}, plan="plan: x on y", details={"sense": sense}, seed=0,
        versions={},
    )  # fmt: skip


def member(problem, solver, kept, repetition=0, status="limit", **more) -> Member:
    name = f"{problem} / {solver} #{repetition}"
    return Member(name, problem, solver, {}, repetition, {}, status, kept=kept, id=name, **more)


def comparison(*members, **more) -> Comparison:
    return Comparison("c", members, **{"budget": "iterations", "amount": 4, "targets": (0.5, 0.1), **more})


@pytest.fixture
def two() -> Comparison:
    return comparison(
        member("p", "a", result([10.0, 6.0, 4.0, 1.0, 0.5])),
        member("p", "b", result([10.0, 3.0, 2.0, 2.0, 2.0])),
        member("q", "a", result([4.0, 3.0, 1.0, 0.0, 0.0])),
        member("q", "b", None, status="crashed", error="it died"),
    )


def test_levels_and_costs_are_those_of_more_and_wild(two) -> None:
    assert two.best("p") == (0.5, "best found") and two.first("p") == 10.0
    assert two.level("p", 0.1) == pytest.approx(0.5 + 0.1 * 9.5)
    hits = {(one.problem, one.solver, one.target): one.cost for one in two.time_to_target()}
    assert hits == {
        ("p", "a", 0.5): 2, ("p", "a", 0.1): 3, ("p", "b", 0.5): 1, ("p", "b", 0.1): math.inf,
        ("q", "a", 0.5): 2, ("q", "a", 0.1): 3, ("q", "b", 0.5): math.inf, ("q", "b", 0.1): math.inf,
    }  # fmt: skip


def test_what_a_problem_knows_goes_before_what_was_found_and_after_what_is_given() -> None:
    def known(value):
        return replace(result([10.0, 6.0, 4.0]), reference=value)

    one = comparison(member("p", "a", known(1.0)), member("p", "b", known(1.0)), member("q", "a", known(None)))
    assert one.best("p") == (1.0, "known") and one.level("p", 0.5) == 5.5
    assert one.best("q") == (4.0, "best found") and "p: 1 (known)" in one.describe_targets()
    assert comparison(*one, references={"p": 0.0}).best("p") == (0.0, "given")
    # Members whose problems differ under one label have no value in common.
    assert comparison(member("p", "a", known(1.0)), member("p", "b", known(2.0))).best("p") == (4.0, "best found")


def test_a_comparison_of_a_problem_that_knows_its_optimum(tmp_path) -> None:
    found = infimum.compare(
        "problems.rosenbrock",
        solvers={"descent": {"use": "splitting.gradient_descent", "backtracking": True}},
        budget={"iterations": 20},
        seed=0,
        jobs=1,
        cache=False,
        folder=tmp_path / "c",
    )
    (label,) = found.problems
    assert found.best(label) == (0.0, "known")
    assert Comparison.load(tmp_path / "c").best(label) == (0.0, "known")


def test_references_gaps_and_values_as_targets(two) -> None:
    given_ = comparison(*two, measure="gap", targets=(1.0,), references={"p": 0.0})
    assert given_.best("p") == (0.0, "given") and given_.level("p", 1.0) == 1.0
    assert [one.cost for one in given_.time_to_target()][:2] == [3, math.inf]
    assert "p: 0 (given)" in given_.describe_targets() and "q: 0 (best found)" in given_.describe_targets()
    values = comparison(*two, measure="value", targets=(3.0,))
    assert [one.cost for one in values.time_to_target()] == [3, 1, 1, math.inf]


def test_other_axes(two) -> None:
    one = comparison(member("p", "a", result([4.0, 2.0, 0.0], times=[0.0, 0.3, 0.9], gradients=[0, 5, np.nan])))
    assert [hit.cost for hit in one.time_to_target("seconds")] == [0.3, 0.9]
    assert [hit.cost for hit in one.time_to_target("gradient")] == [5, 5]
    assert [hit.cost for hit in one.time_to_target("prox")] == [0, 0]


def test_maximizing_turns_everything_round() -> None:
    found = comparison(
        member("p", "a", result([0.0, 5.0, 9.0], sense="max")), member("p", "b", result([0.0, 8.0, 8.0], sense="max"))
    )
    assert found.best("p") == (9.0, "best found") and found.level("p", 0.5) == 4.5
    assert [one.cost for one in found.time_to_target()] == [1, 2, 1, math.inf]
    assert found.wins() == {"a": 1.0, "b": 0.0}


def test_values_at_points_that_are_not_feasible_do_not_count() -> None:
    one = member("p", "a", result([1.0, 0.0, 5.0, 4.0], violation=[1.0, 0.5, 0.0, 1e-9]))
    path = curve(one, "iterations")
    assert path is not None
    np.testing.assert_array_equal(path.best, [np.nan, np.nan, 5.0, 4.0])
    assert path.first == 5.0 and path.reach(4.5, maximize=False) == 3


def test_profiles_of_a_table_by_hand(two) -> None:
    a, b = two.performance_profile(0.5)
    # Instance p: a 2, b 1; instance q: a 2, b never.
    assert (a.at(1), a.at(1.9), a.at(2), b.at(1), b.at(100)) == (0.5, 0.5, 1.0, 0.5, 0.5)
    a, b = two.data_profile(0.5)
    assert (a.at(1), a.at(2), b.at(0.5), b.at(1)) == (0.0, 1.0, 0.0, 0.5)
    evaluations = comparison(member("p", "a", result([4.0, 0.0])), budget="value", targets=(0.5,))
    (only,) = evaluations.data_profile(x="iterations")
    assert only.x.tolist() == [0, 1]


def test_a_simplex_gradient_is_the_unit_of_value_counts() -> None:
    kept = result([4.0, 0.0])
    kept.trace = Trace({**kept.trace, "calls.value": [1.0, 12.0]})
    (profile,) = comparison(member("p", "a", kept), budget="value", targets=(0.5,)).data_profile()
    assert profile.x.tolist() == [0.0, 3.0]  # 12 evaluations in three variables


costs = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(st.one_of(st.just(math.inf), st.floats(0, 1e6)), min_size=5, max_size=5),
    min_size=1,
)


@given(costs, st.floats(1, 1e3))
def test_performance_profiles_are_shares_of_ratios(table, alpha) -> None:
    for profile in performance_profiles(table):
        row = table[profile.solver]
        best = [min(other[k] for other in table.values()) for k in range(5)]
        within = [
            row[k] < math.inf and (row[k] == best[k] or (best[k] > 0 and row[k] / best[k] <= alpha)) for k in range(5)
        ]
        assert profile.at(alpha) == pytest.approx(sum(within) / 5)
        assert (np.diff(profile.y) >= 0).all() and (np.diff(profile.x) > 0).all() and profile.x[0] == 1


@given(costs, st.floats(0, 1e6))
def test_data_profiles_are_shares_within_a_cost(table, budget) -> None:
    for profile in data_profiles(table, [1, 2, 3, 4, 5]):
        within = [cost / unit <= budget for cost, unit in zip(table[profile.solver], [1, 2, 3, 4, 5], strict=True)]
        assert profile.at(budget) == pytest.approx(sum(within) / 5)


def test_bands_are_quantiles_of_the_best_value_so_far() -> None:
    runs = [[8.0, 4.0, 6.0], [8.0, 2.0, 1.0], [8.0, 7.0, 3.0], [8.0, 8.0, 0.0]]
    found = comparison(*(member("p", "a", result(row), k) for k, row in enumerate(runs)), member("p", "a", None, 4))
    (one,) = found.bands(quantiles=(0.0, 1.0))
    best = np.minimum.accumulate(runs, axis=1)
    np.testing.assert_array_equal(one.x, [0, 1, 2])
    np.testing.assert_allclose(one.median, np.median(best, axis=0))
    np.testing.assert_allclose([one.low, one.high], [best.min(axis=0), best.max(axis=0)])
    assert (one.runs, one.lost) == (4, 1)
    (thin,) = comparison(member("p", "a", result(list(range(1000, 0, -1))))).bands(points=50)
    assert len(thin.x) == 50 and thin.x[0] == 0 and thin.x[-1] == 999


def test_the_winner_reaches_the_strictest_target_first_or_has_the_best_value(two) -> None:
    assert two.wins() == {"a": 2.0, "b": 0.0}
    assert two.wins(0.5) == {"a": 1.0, "b": 1.0}
    never = comparison(*two, measure="value", targets=(-1.0,))
    assert never.wins() == {"a": 2.0, "b": 0.0}
    same = comparison(member("p", "a", result([4.0, 1.0])), member("p", "b", result([4.0, 1.0])))
    assert same.wins() == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda runs: runs.time_to_target(x="gradiant"), "no run counted 'gradiant'; did you mean 'gradient'?"),
        (lambda runs: runs.curve(runs[0], "iteration"), "no run counted 'iteration'; did you mean 'iterations'?"),
        (lambda runs: runs.performance_profile(x="proxx"), "no run counted 'proxx'; did you mean 'prox'?"),
        (lambda runs: runs.data_profile(x="proxx"), "no run counted 'proxx'"),
        (lambda runs: runs.bands(x="proxx"), "no run counted 'proxx'"),
        (lambda runs: runs.bands("valeu"), "no run recorded 'valeu'; did you mean 'value'?"),
        (lambda runs: runs.wins(3), "no target 3 was compared"),
    ],
)
def test_what_was_not_recorded_is_refused(two, ask, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        ask(two)


def test_lost_members_are_rows(two) -> None:
    rows = {(row["problem"], row["solver"]): row for row in two.summary()}
    assert rows["q", "b"]["status"] == "crashed" and rows["q", "b"]["lost"] == 1 and rows["q", "b"]["value"] is None
    text = two.table()
    assert "crashed" in text and "it died" in text and "never" in text
    assert two.table("markdown").startswith("| problem |") and "<table>" in two.table("html")


def test_frames_hold_one_row_a_member(two) -> None:
    pandas = pytest.importorskip("pandas")
    frame = two.to_frame()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 4
    assert frame["status"].tolist() == ["limit", "limit", "limit", "crashed"]
    assert frame["calls.gradient"].tolist()[:3] == [5, 5, 5]


def test_a_comparison_is_saved_and_read_again(two, tmp_path) -> None:
    two.save(tmp_path / "c")
    found = Comparison.load(tmp_path / "c")
    assert isinstance(found, Comparison)
    assert [one.name for one in found] == [one.name for one in two]
    assert found.summary() == two.summary() and found.targets == two.targets
    assert found["p / a #0"].result is not None and found["q / b #0"].error == "it died"

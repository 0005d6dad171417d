"""Each built-in rule: where exactly it fires, what it never takes for met, what it says, and how it resumes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infimum.errors import InputError
from infimum.status import Status
from infimum.stopping import (
    BUILT_IN,
    UNKNOWN,
    Progress,
    Reason,
    abs_change,
    feasibility,
    gap,
    grad_norm,
    max_calls,
    max_iter,
    max_time,
    parse,
    rel_change,
    residual,
    stall,
    target,
)

THRESHOLDS = [
    (grad_norm, "grad_norm", Status.converged),
    (residual, "residual", Status.converged),
    (gap, "gap", Status.converged),
    (feasibility, "violation", Status.target_reached),
    (rel_change, "rel_change", Status.stalled),
    (abs_change, "abs_change", Status.stalled),
]


def at(iteration: int = 0, *, elapsed: float = 0.0, maximize: bool = False, calls=None, **metrics) -> Progress:
    progress = Progress(iteration=iteration, elapsed=elapsed, metrics=metrics, maximize=maximize)
    if calls is not None:
        progress.calls = SimpleNamespace(total=calls.__getitem__)
    return progress


def once(rule, progress: Progress):
    return rule.start().update(progress)


def series(rule, values, metric: str = "value", *, stride: int = 1, **options) -> list:
    tracker = rule.start()
    return [tracker.update(at(k * stride, **{metric: value}, **options)) for k, value in enumerate(values)]


def fired_at(answers) -> list[int]:
    return [k for k, answer in enumerate(answers) if isinstance(answer, Reason)]


def test_max_iter_fires_at_n_and_stays() -> None:
    assert [bool(once(max_iter(3), at(k))) for k in range(2)] == [False, False]
    assert once(max_iter(3), at(2)) is None
    reason = once(max_iter(3), at(3))
    assert (reason.rule, reason.status, reason.message) == ("max_iter(3)", Status.limit, "iteration 3 >= 3")
    assert reason.values == {"iteration": 3}
    assert isinstance(once(max_iter(3), at(9)), Reason)
    assert isinstance(once(max_iter(0), at(0)), Reason)


def test_max_time_fires_when_the_seconds_are_over() -> None:
    rule = max_time(60)
    assert once(rule, at(elapsed=math.nextafter(60, 0))) is None
    reason = once(rule, at(elapsed=60.0))
    assert (reason.status, reason.message, reason.values) == (
        Status.limit,
        "elapsed 60 s >= 60 s",
        {"elapsed": 60.0},
    )


def test_max_calls_counts_what_it_was_asked_for_and_says_the_overshoot() -> None:
    calls = {"value": 9, "gradient": 100}
    assert once(max_calls(10), at(calls=calls)) is None
    calls["value"] = 10
    assert once(max_calls(10), at(calls=calls)).message == "evaluations of value 10 >= 10"
    calls["value"] = 14
    reason = once(max_calls(10), at(calls=calls))
    assert reason.message == "evaluations of value 14 >= 10 (4 over)"
    assert reason.values == {"value_calls": 14}
    assert once(max_calls(101, of="gradient"), at(calls=calls)) is None
    assert isinstance(once(max_calls(100, of="gradient"), at(calls=calls)), Reason)


def test_max_calls_without_counts_never_fires() -> None:
    assert once(max_calls(1), at(5)) is None


@pytest.mark.parametrize(("rule", "metric", "status"), THRESHOLDS)
def test_thresholds_fire_exactly_at_the_tolerance(rule, metric: str, status: Status) -> None:
    assert once(rule(1e-6), at(**{metric: math.nextafter(1e-6, 1)})) is None
    reason = once(rule(1e-6), at(**{metric: 1e-6}))
    assert (reason.status, reason.message) == (status, f"{metric} 1e-06 <= 1e-06")
    assert reason.values == {metric: 1e-6}
    assert isinstance(once(rule(0), at(**{metric: 0.0})), Reason)
    assert once(rule(0), at(**{metric: 5e-324})) is None
    assert once(rule(1e-6), at(**{metric: math.inf})) is None
    assert rule(1).metrics() == {metric}


def test_the_message_shows_the_numbers() -> None:
    assert once(grad_norm(1e-6), at(grad_norm=8.1e-7)).message == "grad_norm 8.1e-07 <= 1e-06"


@pytest.mark.parametrize(("maximize", "short", "good"), [(False, 2.0000001, 1.5), (True, 1.9999999, 2.5)])
def test_target_follows_the_sense(maximize: bool, short: float, good: float) -> None:
    rule = target(2)
    assert once(rule, at(value=short, maximize=maximize)) is None
    assert isinstance(once(rule, at(value=2.0, maximize=maximize)), Reason)
    reason = once(rule, at(value=good, maximize=maximize))
    assert (reason.status, reason.values) == (Status.target_reached, {"value": good})
    assert reason.message == f"value {good:g} {'>=' if maximize else '<='} 2"


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "grad_norm(1e300)",
        "residual(1e300)",
        "gap(1e300)",
        "feasibility(1e300)",
        "rel_change(1e300)",
        "abs_change(1e300)",
        "target(0)",
        "stall(1)",
    ],
)
def test_a_missing_metric_or_nan_is_unknown(text: str, maximize: bool) -> None:
    rule = parse(text)
    (metric,) = rule.metrics()
    tracker = rule.start()
    for k, metrics in enumerate([{}, {metric: None}, {metric: math.nan}] * 4):
        assert tracker.update(at(k, maximize=maximize, **metrics)) is UNKNOWN


@pytest.mark.parametrize("rule", [rel_change, abs_change])
def test_patience_counts_iterations_in_a_row(rule) -> None:
    metric = rule(1).needs[0]
    assert fired_at(series(rule(1, patience=3), [1, 1, 2, 1, 1, 1, 1], metric)) == [5, 6]
    assert fired_at(series(rule(1, patience=3), [1, 1, math.nan, 1, 1, 1], metric)) == [5]
    reason = series(rule(1, patience=3), [1, 1, 0.5], metric)[-1]
    assert reason.message == f"{metric} 0.5 <= 1 for 3 iterations"


def test_patience_counts_iterations_not_checks() -> None:
    answers = series(rel_change(1, patience=10), [1] * 6, "rel_change", stride=5)
    assert fired_at(answers) == [2, 3, 4, 5]
    assert answers[:2] == [None, None]
    assert fired_at(series(stall(10), [1] * 6, stride=5)) == [2, 3, 4, 5]


def test_a_check_without_the_metric_keeps_the_row() -> None:
    answers = series(rel_change(1, patience=4), [1, None, None, 1], "rel_change")
    assert answers[1:3] == [UNKNOWN, UNKNOWN]
    assert fired_at(answers) == [3]


def test_a_second_check_of_the_same_iteration_adds_nothing() -> None:
    tracker = rel_change(1, patience=2).start()
    assert [tracker.update(at(4, rel_change=0.0)) for _ in range(5)] == [None] * 5
    assert isinstance(tracker.update(at(5, rel_change=0.0)), Reason)


def test_stall_fires_after_patience_iterations_without_improvement() -> None:
    answers = series(stall(3), [5, 4, 4, 4, 4, 3, 3])
    assert fired_at(answers) == [4]
    assert answers[4].status is Status.stalled
    assert answers[4].message == "value 4 has not improved on 4 for 3 iterations"
    assert answers[4].values == {"value": 4.0, "best": 4.0, "iterations_without_improvement": 3}


def test_stall_respects_the_sense() -> None:
    assert fired_at(series(stall(2), [1, 2, 3, 4], maximize=True)) == []
    assert fired_at(series(stall(2), [1, 2, 3, 4])) == [2, 3]
    assert fired_at(series(stall(2), [4, 3, 2, 1], maximize=True)) == [2, 3]


def test_stall_counts_only_what_exceeds_min_delta_and_small_steps_add_up() -> None:
    assert fired_at(series(stall(2, min_delta=1), [10, 9, 9, 8.5])) == [2]
    assert fired_at(series(stall(4, min_delta=1), [10, 9.6, 9.2, 8.8, 8.4, 8.0, 7.6, 7.2])) == []
    assert "by more than 1 for 2" in series(stall(2, min_delta=1), [10, 9, 9])[-1].message


def test_stall_does_not_take_nan_for_progress_or_for_its_end() -> None:
    answers = series(stall(3), [5, math.nan, None, math.nan, 5])
    assert answers[1:4] == [UNKNOWN] * 3
    assert fired_at(answers) == [4]
    assert fired_at(series(stall(2), [math.nan, 5, 4, 3, 2])) == []
    assert fired_at(series(stall(2), [math.inf, math.inf, 3, 2])) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: max_iter(-3), "max_iter: n must be a whole number >= 0, got -3"),
        (lambda: max_iter(2.5), "max_iter: n must be a whole number, got 2.5"),
        (lambda: max_iter(math.inf), "max_iter: n must be a whole number, got inf"),
        (lambda: max_iter(True), "max_iter: n must be a whole number, got True"),
        (lambda: max_iter("9"), "max_iter: n must be a whole number, got '9'"),
        (lambda: max_iter(10**30), "max_iter: n must be at most 9223372036854775807, got an integer of 31 digits"),
        (lambda: max_time(-1), "max_time: seconds must be >= 0, got -1"),
        (lambda: max_time(math.inf), "max_time: seconds must be a finite number, got inf"),
        (lambda: max_calls(5, of="two words"), "max_calls: of must be a name such as"),
        (lambda: max_calls(5, of=3), "max_calls: of must be a name such as 'value' or 'gradient', got 3"),
        (lambda: target(math.nan), "target: value must be a finite number, got nan"),
        (lambda: target(None), "target: value must be a number, got None"),
        (lambda: grad_norm(-1e-6), "grad_norm: tol must be >= 0, got -1e-06"),
        (lambda: gap(math.nan), "gap: tol must be a finite number, got nan"),
        (lambda: residual("1e-6"), "residual: tol must be a number, got '1e-6'"),
        (lambda: feasibility(10**400), "feasibility: tol must be a finite number, got an integer beyond 1e308"),
        (lambda: rel_change(1, patience=0), "rel_change: patience must be a whole number >= 1, got 0"),
        (lambda: abs_change(1, patience=1.5), "abs_change: patience must be a whole number, got 1.5"),
        (lambda: stall(0), "stall: patience must be a whole number >= 1, got 0"),
        (lambda: stall(5, min_delta=-1), "stall: min_delta must be >= 0, got -1"),
    ],
)
def test_bad_options_are_named_with_their_value(make, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)


def test_options_become_plain_numbers() -> None:
    np = pytest.importorskip("numpy")
    rule = max_iter(np.float64(1e4))
    assert type(rule.n) is int
    assert rule == max_iter(10000)
    assert type(grad_norm(np.float32(0.5)).tol) is float
    assert type(rel_change(1, patience=np.int64(3)).patience) is int


def test_array_scalars_serve_as_metrics() -> None:
    np = pytest.importorskip("numpy")
    reason = once(grad_norm(1e-3), at(grad_norm=np.float32(1e-4)))
    assert type(reason.values["grad_norm"]) is float
    tracker = stall(2).start()
    tracker.update(at(0, value=np.float64(3)))
    assert json.loads(json.dumps(tracker.state_dict())) == {"best": 3.0, "at": 0}


def test_limits_and_needs_are_declared() -> None:
    assert {name for name, rule in BUILT_IN.items() if rule.limit} == {
        "max_iter",
        "max_time",
        "max_solver_time",
        "max_calls",
    }
    assert {name: rule.needs for name, rule in BUILT_IN.items() if rule.needs} == {
        "target": ("value",),
        "grad_norm": ("grad_norm",),
        "residual": ("residual",),
        "gap": ("gap",),
        "feasibility": ("violation",),
        "rel_change": ("rel_change",),
        "abs_change": ("abs_change",),
        "stall": ("value",),
    }


def test_one_rule_serves_many_runs() -> None:
    rule = stall(2)
    assert fired_at(series(rule, [1, 1, 1])) == fired_at(series(rule, [1, 1, 1])) == [2]


NUMBERS = st.one_of(st.none(), st.just(math.nan), st.integers(-3, 3).map(float), st.floats(-2, 2), st.just(math.inf))
LEAVES = [
    "max_iter(7)",
    "max_time(4)",
    "max_calls(5)",
    "target(0)",
    "grad_norm(0.5)",
    "residual(0.5)",
    "gap(0.5)",
    "feasibility(0.5)",
    "rel_change(1, patience=3)",
    "abs_change(1, patience=2)",
    "stall(3, min_delta=0.25)",
    "max_iter(3) & ~stall(2) | rel_change(1, patience=2) & ~(grad_norm(1) | abs_change(2, patience=4))",
]


@pytest.mark.parametrize("text", LEAVES)
@given(
    values=st.lists(NUMBERS, min_size=1, max_size=12),
    cut=st.integers(0, 12),
    stride=st.integers(1, 3),
    maximize=st.booleans(),
)
def test_resuming_is_the_same_as_not_stopping(text, values, cut, stride, maximize) -> None:
    rule = parse(text)
    checks = [
        at(k * stride, elapsed=float(k), maximize=maximize, calls={"value": k}, **dict.fromkeys(rule.metrics(), value))
        for k, value in enumerate(values)
    ]
    whole = rule.start()
    expected = [whole.update(check) for check in checks]
    first, second = rule.start(), rule.start()
    answers = [first.update(check) for check in checks[:cut]]
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    answers += [second.update(check) for check in checks[cut:]]
    assert answers == expected
    assert second.state_dict() == whole.state_dict()


def test_a_state_of_another_rule_is_refused() -> None:
    with pytest.raises(InputError, match=r"saved state of stall\(2\) holds \['since'\], expected \['at', 'best'\]"):
        stall(2).start().load_state_dict(rel_change(1).start().state_dict())


def test_stopping_rules_need_no_array_library() -> None:
    code = "import sys, infimum.stopping, infimum.schedule; assert 'numpy' not in sys.modules, 'numpy is imported'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

"""Every stopping rule and every schedule: pure options, trackers of their own, state that round-trips."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infimum.checkpoint import freeze, thaw
from infimum.plugins.records import Component
from infimum.plugins.registry import get_registry
from infimum.stopping import Progress, Reason, parse
from infimum.stopping.base import Unknown
from infimum.testing.conformance.selection import components, load, parametrize
from infimum.testing.examples import built, examples


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "rule", components(metafunc.config, "stopping_rule"), "stopping rule")
    parametrize(metafunc, "schedule", components(metafunc.config, "schedule"), "schedule")


class Metrics(Mapping[str, Any]):
    """Metrics that remember which of them were read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values_, self.read = dict(values), set[str]()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self.values_[name]

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return self.values_.get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


class Calls:
    """Evaluation counts that grow with the iteration."""

    def __init__(self, n: int) -> None:
        self.n = n

    def total(self, of: str) -> int:
        return self.n


def _rules(component: Component) -> list[Any]:
    load(component)
    return [built(component, options).instance for options in examples(component)]


def _progress(rule: Any, k: int, number: float | None = None) -> Progress:
    value = 1.0 / (1.0 + k) if number is None else number
    return Progress(k, 0.1 * k, Calls(3 * k), Metrics(dict.fromkeys(rule.metrics(), value)))


def _said(answer: Any) -> Any:
    return (str(answer), dict(answer.values)) if isinstance(answer, Reason) else bool(answer)


def test_a_tracker_answers_with_a_reason_or_nothing(rule: Component) -> None:
    for one in _rules(rule):
        tracker = one.start()
        for k in range(30):
            answer = tracker.update(_progress(one, k))
            assert answer is None or isinstance(answer, Reason | Unknown), f"{one} answered {answer!r}"
            if isinstance(answer, Reason):
                assert answer.message and all(math.isfinite(v) or v == v for v in answer.values.values())


def test_it_reads_the_metrics_that_it_names(rule: Component) -> None:
    for one in _rules(rule):
        tracker = one.start()
        for k in range(5):
            metrics = Metrics(dict.fromkeys(["value", "grad_norm", "residual", *one.metrics()], 1.0 / (1.0 + k)))
            tracker.update(Progress(k, 0.1 * k, Calls(k), metrics))
            assert metrics.read <= set(one.metrics()), f"{one} reads {sorted(metrics.read - set(one.metrics()))}"


def test_a_missing_or_nan_metric_never_fires(rule: Component) -> None:
    for one in _rules(rule):
        if not one.metrics():
            pytest.skip("it reads no metric")
        for number in (None, math.nan):
            tracker = one.start()
            for k in range(5):
                metrics = {} if number is None else dict.fromkeys(one.metrics(), number)
                answer = tracker.update(Progress(k, 0.0, Calls(0), metrics))
                assert not isinstance(answer, Reason), (
                    f"{one} fired on {'a missing metric' if number is None else 'NaN'}"
                )


def test_trackers_share_nothing_and_their_state_round_trips(rule: Component) -> None:
    for one in _rules(rule):
        alone, first, second = one.start(), one.start(), one.start()
        expected = [_said(alone.update(_progress(one, k))) for k in range(12)]
        for k in range(6):
            assert _said(first.update(_progress(one, k))) == expected[k]
            second.update(_progress(one, 20 - k))
        taken_up = one.start()
        taken_up.load_state_dict(thaw(freeze(first.state_dict())))
        for k in range(6, 12):
            answer = _said(taken_up.update(_progress(one, k)))
            assert answer == expected[k], f"{one}, taken up at check 6, answered otherwise at check {k}"


def test_its_text_is_read_back(rule: Component) -> None:
    for one in _rules(rule):
        again = parse(str(one), resolve=lambda name: get_registry().find(name, "stopping_rule").load())
        assert again == one, f"'{one}' is read back as {again!r}"


def test_a_schedule_is_a_pure_function_of_the_iteration(schedule: Component) -> None:
    load(schedule)
    for options in examples(schedule):
        call = built(schedule, options).instance
        numbers = [call(k) for k in range(20)]
        assert all(isinstance(one, float) and math.isfinite(one) for one in numbers)
        assert [call(k) for k in reversed(range(20))] == numbers[::-1]

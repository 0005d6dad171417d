"""Every problem: a valid start that repeats, a finite value there, and terms that are what they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from infimum import arrays
from infimum.inputs import as_problem
from infimum.plan.bind import streams
from infimum.plugins.records import Component
from infimum.problem import Composite
from infimum.testing import check_problem
from infimum.testing.compare import difference
from infimum.testing.conformance.selection import components, load, parametrize
from infimum.testing.examples import built, examples


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "component", components(metafunc.config, "problem"), "problem")


def _problems(component: Component) -> list[Any]:
    load(component)
    return [as_problem(built(component, options).instance) for options in examples(component)]


def _start(problem: Any) -> Any:
    start = problem.start(streams(7)("start"))
    if start is None:
        pytest.skip("the problem brings no start; a user gives one")
    return start


def test_its_terms_are_what_they_say(component: Component) -> None:
    for problem in _problems(component):
        for report in check_problem(problem, _start(problem)):
            assert report.ok, report


def test_its_start_is_valid_and_repeats(component: Component) -> None:
    for problem, again in zip(_problems(component), _problems(component), strict=True):
        first, second = problem.prepare(_start(problem)), again.prepare(_start(again))
        assert difference(problem.dump(first), again.dump(second), "the start of the same seed") is None
        size = problem.size(first)
        assert size is None or math.isfinite(size)
        if arrays.is_array(first):
            copied = problem.copy(first)
            copied *= 0.0
            copied += 17.0
            fresh = problem.prepare(_start(problem))
            assert difference(first, fresh, "the start") is None, "copy shares memory, or the start is not repeated"


def test_its_value_at_the_start_is_finite(component: Component) -> None:
    for problem in _problems(component):
        if not isinstance(problem, Composite) or problem.merit is None:
            pytest.skip("the problem ranks no points by a value")
        with np.errstate(all="ignore"):
            value = problem.value(_start(problem))
        assert math.isfinite(value)
        if problem.reference is not None:
            feasible = problem.violation(_start(problem)) <= 1e-6
            better = value < problem.reference if problem.sense == "min" else value > problem.reference
            slack = 1e-6 * max(1.0, abs(problem.reference))
            assert not (feasible and better and abs(value - problem.reference) > slack), (
                f"value {value:g} at the start is better than reference {problem.reference:g}"
            )


def test_two_objects_share_nothing(component: Component) -> None:
    """Terms read one problem's data after another one's were used."""
    for problem, other in zip(_problems(component), _problems(component), strict=True):
        if not isinstance(problem, Composite) or problem.merit is None:
            pytest.skip("the problem ranks no points by a value")
        start = _start(problem)
        first = problem.value(start)
        other.value(other.start(streams(8)("start")))
        assert problem.value(start) == first

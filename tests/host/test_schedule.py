"""Schedules: values, validation, and what counts as one."""

from __future__ import annotations

import math

import pytest

from infimum.errors import InputError
from infimum.schedule import Constant, Power, Schedule


def test_constant_is_the_same_at_every_iteration() -> None:
    schedule = Constant(1)
    assert [schedule(k) for k in (0, 7, 10**9)] == [1.0, 1.0, 1.0]
    assert isinstance(schedule(0), float)


def test_power_follows_its_formula() -> None:
    schedule = Power(2.0, 0.5, offset=4)
    assert schedule(0) == 1.0
    assert schedule(12) == 0.5
    assert Power(3, 1)(0) == 3.0
    assert Power(3, 1)(2) == 1.0
    assert Power(0.7, 0)(123) == 0.7


def test_power_stays_finite_far_out() -> None:
    assert 0 < Power(1.0, 10)(10**9) < 1e-89


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(0.0), "Constant schedule: value must be above 0, got 0.0"),
        (lambda: Constant(math.nan), "value must be a finite number, got nan"),
        (lambda: Constant("1"), "value must be a finite number, got '1'"),
        (lambda: Constant(True), "value must be a finite number, got True"),
        (lambda: Power(-1, 1), "Power schedule: initial must be above 0, got -1"),
        (lambda: Power(1, -0.5), "exponent must lie between 0 and 10, got -0.5"),
        (lambda: Power(1, 11), "exponent must lie between 0 and 10, got 11"),
        (lambda: Power(1, 1, 0), "offset must be above 0, got 0"),
        (lambda: Power(1, math.inf), "exponent must be a finite number, got inf"),
        (lambda: Power(1, 10, 1e-300), "offset must leave the first number"),
        (lambda: Power(1, 10, 1e300), "offset must leave the first number"),
    ],
)
def test_bad_options_are_named_with_their_value(make, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)


def test_schedules_are_plain_values() -> None:
    assert Power(1, 0.5) == Power(1.0, 0.5, 1.0)
    assert {Constant(1.0), Constant(1)} == {Constant(1.0)}
    with pytest.raises(AttributeError):
        Constant(1.0).value = 2.0  # type: ignore[misc]
    assert isinstance(Power(1, 1), Schedule)
    assert not isinstance(0.1, Schedule)

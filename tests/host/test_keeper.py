"""The best point, the finiteness guard and the bounds of divergence."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum import Status, arrays
from infimum.checkpoint import freeze
from infimum.run.keeper import DIVERGENCE, Keeper

NUMBER = st.floats(-1e6, 1e6)


def keeper(**options: Any) -> Keeper:
    # vdot does not warn when the square overflows, which is not what these tests are about.
    square = lambda x: np.vdot(x, x) if isinstance(x, np.ndarray) else x.dot(x)  # noqa: E731
    return Keeper("value", square=square, size=arrays.norm, **options)


class TestBest:
    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(st.tuples(NUMBER, st.one_of(st.just(0.0), st.floats(0, 10))), min_size=1, max_size=20),
        st.booleans(),
        st.sampled_from([0.0, 1e-8, 1.0]),
    )
    def test_law(self, checks: list[tuple[float, float]], maximize: bool, tol: float) -> None:
        one = Keeper("value", constrained=True, maximize=maximize, feasibility_tol=tol)
        for k, (value, violation) in enumerate(checks):
            assert one.look(k, 0.1 * k, {"value": value, "violation": violation}, k) is None
        sign = -1.0 if maximize else 1.0
        ranked = [(0.0 if v <= tol else v, sign * value, k) for k, (value, v) in enumerate(checks)]
        # The first of equal ones stays.
        violation, value, k = min(ranked)
        assert (one.best.violation, one.best.value, one.best.iteration, one.best.point) == (violation, value, k, k)
        assert one.best.time == 0.1 * k and one.best.metrics["value"] == checks[k][0]

    def test_without_merit_there_is_none(self) -> None:
        one = Keeper()
        assert one.look(0, 0.0, {"value": 1.0}, "x") is None and one.best.iteration == -1

    def test_checks_without_the_merit_rank_nothing(self) -> None:
        one = Keeper("value")
        for metrics in ({}, {"value": None}):
            one.look(0, 0.0, metrics, "x")
        assert one.best.iteration == -1
        one.look(3, 0.0, {"value": 1.0}, "y")
        assert one.best.point == "y"

    def test_checks_without_the_violation_rank_nothing_where_there_are_constraints(self) -> None:
        one, free = Keeper("value", constrained=True), Keeper("value")
        for k in (one, free):
            k.look(1, 0.0, {"value": 1.0}, "x")
            k.look(2, 0.0, {"value": 0.0, "violation": None}, "x")
        assert one.best.iteration == -1 and free.best.iteration == 2

    def test_an_infinite_value_is_better_than_nothing_and_worse_than_any_other(self) -> None:
        one = Keeper("value")
        one.look(0, 0.0, {"value": math.inf}, "a")
        assert one.best.point == "a"
        one.look(1, 0.0, {"value": 1e300}, "b")
        assert one.best.point == "b"

    def test_points_are_copied_only_when_asked_and_only_when_kept(self) -> None:
        copies: list[int] = []

        def copy(x: Any) -> Any:
            copies.append(1)
            return x.copy()

        x, values = np.ones(2), [3.0, 4.0, 2.0, 5.0]
        one = Keeper("value", copy=copy)
        for k, value in enumerate(values):
            x[:] = value
            one.look(k, 0.0, {"value": value}, x)
        assert len(copies) == 2
        np.testing.assert_array_equal(one.best.point, [2.0, 2.0])
        same = Keeper("value")
        same.look(0, 0.0, {"value": 1.0}, x)
        assert same.best.point is x


class TestFinite:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("where", [0, 4])
    def test_iterates(self, bad: float, dtype: Any, where: int) -> None:
        x = np.ones(5, dtype)
        one = keeper()
        assert one.look(0, 0.0, {"value": 1.0}, x) is None
        x = x.copy()
        x[where] = bad
        stop = one.look(7, 0.0, {"value": 0.0}, x)
        assert stop.status is Status.nonfinite and f"{'NaN' if bad != bad else 'inf'} at iteration 7" in stop.message
        assert one.best.iteration == 0 and one.broken

    @pytest.mark.parametrize("first", [True, False])
    def test_values(self, first: bool) -> None:
        one = keeper()
        if not first:
            one.look(0, 0.0, {"value": 1.0}, np.ones(2))
        stop = one.look(1, 0.0, {"value": math.nan}, np.ones(2))
        assert stop.status is Status.nonfinite and "value is NaN at iteration 1" in stop.message and one.broken

    def test_violations(self) -> None:
        one = Keeper("value", constrained=True)
        stop = one.look(1, 0.0, {"value": 1.0, "violation": math.nan}, np.ones(2))
        assert stop.status is Status.nonfinite and "violation is NaN" in stop.message

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
    def test_a_square_that_overflows_is_no_infinite_point(self, entries: list[float]) -> None:
        x = np.array(entries, np.float32)
        one = keeper(divergence=math.inf)
        with np.errstate(over="ignore", under="ignore"):
            assert one.look(0, 0.0, {}, np.ones(1, np.float32)) is None
            assert one.look(1, 0.0, {}, x) is None
        assert not one.broken

    def test_a_norm_beyond_the_largest_float_is_not_finite(self) -> None:
        one = keeper()
        one.look(0, 0.0, {}, np.ones(2))
        with np.errstate(over="ignore"):
            stop = one.look(1, 0.0, {}, np.full(2, 1.7e308))
        assert stop.status in (Status.nonfinite, Status.diverged)

    def test_torch(self) -> None:
        torch = pytest.importorskip("torch")
        one = keeper()
        assert one.look(0, 0.0, {"value": torch.tensor(1.0)}, torch.ones(3)) is None
        assert one.look(1, 0.0, {"value": torch.tensor(0.5)}, torch.ones(3)) is None
        assert one.best.iteration == 1
        stop = one.look(2, 0.0, {"value": torch.tensor(math.nan)}, torch.ones(3))
        assert stop.status is Status.nonfinite
        assert one.look(3, 0.0, {}, torch.tensor([1.0, math.inf, 0.0])).status is Status.nonfinite


class TestDivergence:
    @settings(max_examples=60, deadline=None)
    @given(start=st.floats(0, 1e30), factor=st.floats(0.5, 2.0))
    def test_norm(self, start: float, factor: float) -> None:
        one = keeper(divergence=1e3)
        bound = 1e3 * max(1.0, start)
        assert one.look(0, 0.0, {}, np.array([start])) is None
        stop = one.look(1, 0.0, {}, np.array([bound * factor]))
        if abs(factor - 1) > 1e-9:
            assert (stop is not None and stop.status is Status.diverged) == (factor > 1)

    @settings(max_examples=60, deadline=None)
    @given(start=NUMBER, factor=st.floats(0.5, 2.0), maximize=st.booleans())
    def test_value(self, start: float, factor: float, maximize: bool) -> None:
        one = Keeper("value", divergence=1e3, maximize=maximize)
        sign = 1.0 if maximize else -1.0
        assert one.look(0, 0.0, {"value": start}, None) is None
        stop = one.look(1, 0.0, {"value": sign * factor * 1e3 * max(1.0, abs(start))}, None)
        if abs(factor - 1) > 1e-9:
            assert (stop is not None and stop.status is Status.diverged) == (factor > 1)
        # The worse direction is no divergence.
        assert Keeper("value", maximize=maximize).look(0, 0.0, {"value": -sign * 1e300}, None) is None

    def test_the_first_finite_value_sets_the_bound(self) -> None:
        one = Keeper("value")
        one.look(0, 0.0, {"value": math.inf}, None)
        one.look(1, 0.0, {"value": -5.0}, None)
        assert one.look(2, 0.0, {"value": -4.9 * DIVERGENCE}, None) is None
        assert one.look(3, 0.0, {"value": -5.1 * DIVERGENCE}, None).status is Status.diverged

    @pytest.mark.parametrize("size", [1e140, 1e155, 1e170, 1e300])
    def test_huge_numbers_do_not_overflow_the_test_itself(self, size: float) -> None:
        one = keeper()
        assert one.look(0, 0.0, {}, np.array([size])) is None
        assert one.look(1, 0.0, {}, np.array([size])) is None
        other = keeper()
        other.look(0, 0.0, {}, np.ones(1))
        assert other.look(1, 0.0, {}, np.array([size])).status is Status.diverged


class TestState:
    def test_round_trip_as_plain_data(self) -> None:
        one = keeper(constrained=True)
        for k, value in enumerate((3.0, 1.0, 2.0)):
            one.look(k, k * 0.5, {"value": np.float64(value), "violation": 0.0, "model": object()}, np.array([value]))
        state = freeze(one.state_dict())
        json.dumps(state)
        other = keeper(constrained=True)
        other.load_state_dict(state)
        other.best.point = one.best.point
        for k in (one, other):
            assert k.look(3, 2.0, {"value": 1.5, "violation": 0.0}, np.array([1.0])) is None
            assert (k.best.value, k.best.iteration, k.best.time) == (1.0, 1, 0.5)
            assert k.look(4, 2.0, {"value": 1.5, "violation": 0.0}, np.array([1e17])).status is Status.diverged
            assert k.look(4, 2.0, {"value": -1e17, "violation": 0.0}, np.array([1.0])).status is Status.diverged

    def test_scalars_of_other_libraries_become_numbers(self) -> None:
        torch = pytest.importorskip("torch")
        one = Keeper("value")
        one.look(0, 0.0, {"value": torch.tensor(2.0)}, None)
        state = one.state_dict()
        assert type(state["value"]) is float and state["metrics"] == {"value": 2.0}

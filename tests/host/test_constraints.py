"""Boxes and the nonnegative orthant: projections, distances, bounds, and crossed or missing bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from infimum.constraints import Box, Constraint, Nonnegative
from infimum.errors import InputError

SETS = {
    "box": Box(-1.0, 2.0),
    "box of arrays": Box([-1.0, -np.inf, 0.0, 1.0, -3.0], np.array([0.0, 1.0, np.inf, 1.0, 5.0])),
    "lower": Box(lower=0.5),
    "upper": Box(upper=[0.0, 1.0, 2.0, 3.0, 4.0]),
    "mixed": Box(lower=[-1.0, 0.0, 0.0, 0.0, 0.0], upper=1.0),
    "nonnegative": Nonnegative(),
}
every = pytest.mark.parametrize
points = arrays(float, 5, elements=st.floats(-10, 10, allow_subnormal=False))


@every("name", SETS)
@settings(max_examples=30, deadline=None)
@given(x=points, other=points)
def test_projection_is_the_nearest_point(name, x, other):
    one = SETS[name]
    p, inside = one.project(x), one.project(other)
    assert one.violation(p) == 0.0
    assert np.array_equal(one.project(p), p)
    assert float((x - p) @ (inside - p)) <= 1e-12
    assert one.violation(x) == pytest.approx(np.linalg.norm(x - p))
    assert (one.violation(x) == 0.0) == bool(np.all(x == p))


@every("name", SETS)
def test_a_step_ends_in_the_set(name):
    one, x, d = SETS[name], np.zeros(5), np.array([-3.0, 3.0, 0.1, -9.0, 9.0])
    assert np.array_equal(one.step(x, d), one.project(d))
    assert x.tolist() == [0.0] * 5


@every("name", SETS)
@every("dtype", [np.float32, np.float64])
def test_bounds_have_the_shape_and_dtype_of_the_point(name, dtype):
    x = np.linspace(-4, 4, 5).astype(dtype)
    one = SETS[name].to(x)
    lower, upper = one.bounds(x)
    assert lower.shape == upper.shape == x.shape
    assert lower.dtype == upper.dtype == one.project(x).dtype == dtype
    assert np.array_equal(np.clip(x, lower, upper), one.project(x))


def test_a_free_side_has_infinite_bounds():
    lower, upper = Box(lower=0.0).bounds(np.ones(2))
    assert lower.tolist() == [0.0, 0.0]
    assert upper.tolist() == [np.inf, np.inf]
    assert Box(upper=1.0).bounds(np.ones(1))[0].tolist() == [-np.inf]


@every("name", SETS)
def test_torch_agrees_with_numpy(name):
    torch = pytest.importorskip("torch")
    x = torch.linspace(-4, 4, 5)
    one = SETS[name].to(x)
    assert np.allclose(one.project(x).numpy(), SETS[name].project(x.numpy()))
    assert one.project(x).dtype == torch.float32
    assert one.violation(x) == pytest.approx(SETS[name].violation(x.numpy().astype(float)))
    assert [bound.dtype for bound in one.bounds(x)] == [torch.float32] * 2


def test_nan_is_passed_on():
    assert np.isnan(Box(0.0, 1.0).project(np.array([np.nan]))[0])
    assert np.isnan(Nonnegative().violation(np.array([np.nan, 1.0])))


def test_sets_say_what_they_can():
    for one in SETS.values():
        assert one.capabilities == {"violation", "project", "step", "bounds"}
        assert one.convex
        assert isinstance(one, Constraint)
    assert repr(SETS["mixed"]) == "Box(lower is (5,), upper=1)"
    assert repr(Nonnegative()) == "Nonnegative()"


def test_a_box_takes_what_a_run_file_holds():
    box = Box(lower=[0, 0], upper=1)
    assert box.project(np.array([-1.0, 3.0])).tolist() == [0.0, 1.0]
    assert box.to(np.ones(2)) is box
    with pytest.raises(AttributeError):
        box.lower = 3.0


@every(
    ("make", "message"),
    [
        (lambda: Box(), r"bounds nothing: give lower, upper or both"),
        (lambda: Box(2.0, 1.0), r"cross: lower = 2 > upper = 1"),
        (lambda: Box([0.0, 3.0, 5.0], [1.0, 2.0, 1.0]), r"cross: lower\[1\] = 3 > upper\[1\] = 2"),
        (lambda: Box(0.0, [[1.0, -2.0]]), r"cross: lower\[0, 1\] = 0 > upper\[0, 1\] = -2"),
        (lambda: Box([0.0, 1.0], [1.0, 2.0, 3.0]), r"lower of the box is \(2,\), upper is \(3,\)"),
        (lambda: Box(lower=np.nan), r"lower of the box is nan; expected a number or -inf"),
        (lambda: Box(upper=[0.0, np.nan]), r"upper of the box\[1\] is nan; expected a number or inf"),
        (lambda: Box(lower=np.inf), r"lower of the box is inf"),
        (lambda: Box(lower=[]), r"lower of the box is empty"),
        (lambda: Box(lower=["a"]), r"lower of the box holds <U1 entries"),
        (lambda: Box(lower=1j), r"lower of the box holds complex128 entries"),
        (lambda: Box(lower=[0.0, 0.0]).check(np.ones(3)), r"lower of the box is \(2,\), x0 is \(3,\)"),
        (lambda: Nonnegative().check(np.ones(3) * 1j), r"Nonnegative\(\) is a set of real points, x0 is complex"),
    ],
)
def test_bad_bounds_are_named_with_their_numbers(make, message):
    with pytest.raises(InputError, match=message):
        make()

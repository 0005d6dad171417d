"""Forward differences: accuracy, exact counts, batches, the noise floor, NumPy and torch alike."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import infimum
import infimum_zeroth.queries as module
from infimum.errors import InfimumWarning, InputError
from infimum.exactness import Exactness
from infimum.functions.base import Function
from infimum_zeroth import ForwardDifference

RNG = np.random.default_rng(0)


def cubic(x):
    return float((x**3 + 2 * x).sum() / 3 + x.reshape(-1)[0] * x.reshape(-1)[-1])


def cubic_gradient(x):
    flat = x.reshape(-1)
    out = flat**2 + 2 / 3
    out[0] += flat[-1]
    out[-1] += flat[0]
    return out.reshape(x.shape)


class Counted(Function):
    """A function that counts its points, one by one or in batches."""

    def __init__(self, value, batched):
        self.points, self.calls = 0, 0
        capabilities = {"values": self._many(value)} if batched else {}
        super().__init__(self._one(value), **capabilities)

    def _one(self, value):
        def one(x):
            self.points += 1
            self.calls += 1
            return value(x)

        return one

    def _many(self, value):
        def many(points):
            self.points += points.shape[0]
            self.calls += 1
            return np.array([value(x) for x in points], dtype=points.dtype)

        return many


def bind(function, **options):
    return ForwardDifference(**options).bind(function, np.random.default_rng(0))


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("shape", [(5,), (2, 3), (1,)])
def test_the_gradient_of_a_smooth_function(shape, batched):
    x = RNG.standard_normal(shape)
    value, gradient = bind(Counted(cubic, batched)).value_and_gradient(x)
    assert value == cubic(x)
    assert gradient.shape == shape
    np.testing.assert_allclose(gradient, cubic_gradient(x), atol=2e-7)


@pytest.mark.parametrize("batched", [False, True])
def test_the_error_falls_like_eps(batched):
    x = RNG.standard_normal(6)
    errors = [
        np.abs(bind(Counted(cubic, batched), eps=eps).gradient(x) - cubic_gradient(x)).max() / eps
        for eps in (1e-2, 1e-3, 1e-4, 1e-5)
    ]
    np.testing.assert_allclose(errors, errors[-1], rtol=2e-2)
    assert errors[-1] > 0.1


def test_steps_grow_with_the_entry_only_if_relative():
    seen = []

    def record(x):
        seen.append(x.copy())
        return float(x.sum())

    x = np.array([1000.0, 0.5])
    bind(Function(record), eps=1e-3).gradient(x)
    assert [seen[1][0] - 1000.0, seen[2][1] - 0.5] == pytest.approx([1.0, 1e-3])
    del seen[:]
    bind(Function(record), eps=1e-3, relative=False).gradient(x)
    assert [seen[1][0] - 1000.0, seen[2][1] - 0.5] == pytest.approx([1e-3, 1e-3])


def test_a_linear_function_is_exact_since_the_step_is_what_was_added():
    x = np.array([3.0, -7.0, 0.1])
    gradient = bind(Function(lambda x: float(2.0 * x[0])), eps=1e-9).gradient(x)
    np.testing.assert_array_equal(gradient, [2.0, 0.0, 0.0])


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("name", ["gradient", "value_and_gradient"])
def test_n_plus_one_values_an_evaluation(batched, name):
    function = Counted(cubic, batched)
    getattr(bind(function), name)(RNG.standard_normal((3, 2)))
    assert (function.points, function.calls) == ((7, 2) if batched else (7, 7))


def test_batches_stay_below_the_memory_bound(monkeypatch):
    x = RNG.standard_normal(10)
    whole = bind(Counted(cubic, True)).gradient(x)
    monkeypatch.setattr(module, "BATCH_BYTES", 3 * x.nbytes + 1)
    function = Counted(cubic, True)
    np.testing.assert_array_equal(bind(function).gradient(x), whole)
    assert (function.points, function.calls) == (11, 5)
    monkeypatch.setattr(module, "BATCH_BYTES", 1)
    function = Counted(cubic, True)
    np.testing.assert_array_equal(bind(function).gradient(x), whole)
    assert function.calls == 11


@pytest.mark.parametrize("batched", [False, True])
def test_points_are_fresh_and_x_is_untouched(batched):
    kept = []

    def spoil(x):
        out = cubic(x)
        kept.append(x)
        x[...] = np.nan
        return out

    x = RNG.standard_normal(4)
    before = x.copy()
    gradient = bind(Counted(spoil, batched)).gradient(x)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_allclose(gradient, cubic_gradient(x), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batched", [False, True])
def test_torch_agrees_with_numpy_and_the_dtype_stays(dtype, batched):
    torch = pytest.importorskip("torch")

    def value(x):
        return (x**2).sum() + x[..., 0].sum()

    def values(points):
        return (points**2).sum(1) + points[:, 0]

    more = {"values": values} if batched else {}
    x = RNG.standard_normal(5).astype(dtype)
    f = Function(lambda x: float(value(x)), **more)
    ours, theirs = bind(f).gradient(x), bind(f).gradient(torch.as_tensor(x))
    assert ours.dtype == dtype
    assert str(theirs.dtype) == f"torch.{dtype}"
    tolerance = 5e-3 if dtype == "float32" else 5e-7
    expected = 2 * x + np.eye(5)[0]
    np.testing.assert_allclose(ours, expected, atol=tolerance)
    np.testing.assert_allclose(theirs.numpy(), expected, atol=tolerance)


@pytest.mark.parametrize("batched", [False, True])
def test_an_eps_below_the_noise_floor_warns_once_with_the_numbers(batched):
    part = bind(Counted(lambda x: 1e3 + float(x @ x), batched), eps=1e-14)
    with pytest.warns(InfimumWarning, match=r"steps down to 1e-14 rounding drowns .* = 1e\+03 .* about 9\.4e-07"):
        part.gradient(np.array([0.3, 0.4]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part.gradient(np.array([0.3, 0.4]))


def test_the_default_step_grows_with_the_value_up_to_a_bound():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient = bind(Function(lambda x: 1e6 + float(x @ x))).gradient(np.ones(3))
    np.testing.assert_allclose(gradient, 2.0, atol=1e-4)
    with pytest.warns(InfimumWarning, match=r"steps down to 0\.00012 rounding drowns the gradient"):
        bind(Function(lambda x: 1e14 + float(x @ x))).gradient(np.ones(3))


def test_a_gradient_that_becomes_small_is_no_noise():
    part = bind(Function(lambda x: 1.0 + float(x @ x)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part.gradient(np.ones(3))
        part.gradient(np.full(3, 1e-12))


def test_non_finite_values_are_not_hidden():
    for batched in (False, True):
        f = Counted(lambda x: math.inf if x[0] > 1 else float(x.sum()), batched)
        assert bind(f).gradient(np.array([1.0, 0.0]))[0] == math.inf
        f = Counted(lambda x: math.inf, batched)
        assert np.isnan(bind(f).gradient(np.array([1.0, 0.0]))).all()


def test_an_eps_that_vanishes_is_refused_with_the_entry():
    part = bind(Function(lambda x: float(x.sum())), eps=1e-8, relative=False)
    with pytest.raises(InputError, match=r"eps=1e-08 vanishes beside x\[1\] = 1e\+12 in float64; .* or relative=True"):
        part.gradient(np.array([0.0, 1e12]))


@pytest.mark.parametrize("eps", [0.0, -1e-6, math.nan, math.inf])
def test_an_eps_that_is_no_positive_number_is_refused(eps):
    with pytest.raises(InputError, match=rf"eps={eps!r}; expected a positive finite number"):
        ForwardDifference(eps=eps)


def test_what_the_plan_reads():
    oracle = ForwardDifference()
    assert oracle.exactness is Exactness.approximate
    assert (oracle.needs, oracle.wants) == (("value",), ("values",))
    assert set(oracle.supplies) == {"gradient", "value_and_gradient"}


@pytest.mark.parametrize("batched", [False, True])
def test_the_host_counts_every_point_as_a_value_of_the_function(batched):
    function = Counted(lambda x: float((x - 1) @ (x - 1)), batched)
    function.lipschitz = 2.0
    result = infimum.solve(
        function,
        np.zeros(4),
        solver={"use": "splitting.gradient_descent", "step": 0.25},
        oracles={"objective": "zeroth.forward_difference"},
        stopping="max_iter(40)",
    )
    np.testing.assert_allclose(result.x, 1.0, atol=1e-7)
    assert result.evaluations == {"objective": {"value": 5 * 41}}
    assert str(result.exactness) == "approximate"


@pytest.mark.parametrize("batched", [False, True])
def test_a_nan_ends_the_run_as_nonfinite(batched):
    result = infimum.solve(
        Counted(lambda x: float(x @ x) if x @ x > 0.1 else math.nan, batched),
        np.ones(2),
        solver={"use": "splitting.gradient_descent", "step": 0.1},
        oracles={"objective": "zeroth.forward_difference"},
        stopping="max_iter(200)",
    )
    assert str(result.status) == "nonfinite"
    assert "objective" in result.message
    assert result.best_x @ result.best_x > 0.1

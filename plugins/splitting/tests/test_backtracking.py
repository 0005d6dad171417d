"""Backtracking of gradient descent and proximal gradient: what it asks for, how short steps become, and rounding."""

from __future__ import annotations

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.functions import L1, Function, LeastSquares, Logistic
from infimum.schedule import Power
from infimum_splitting import GradientDescent, ProximalGradient

MAKES = [
    lambda **options: GradientDescent(backtracking=True, **options),
    lambda **options: ProximalGradient(backtracking=True, **options),
    lambda **options: ProximalGradient(acceleration=True, backtracking=True, **options),
]
IDS = ["gradient_descent", "proximal_gradient", "accelerated"]


def quadratic(diagonal, **facts):
    """1/2 sum d_i x_i^2, without a declared constant."""
    d = np.asarray(diagonal, dtype=float)
    return Function(
        value=lambda x: 0.5 * float(x @ (d * x)),
        gradient=lambda x: d * x,
        value_and_gradient=lambda x: (0.5 * float(x @ (d * x)), d * x),
        shape=d.shape,
        **facts,
    )


def final(problem, solver, rule="max_iter(2000) | grad_norm(1e-9)", **options):
    run = infimum.prepare(problem, solver=solver, stopping=rule, seed=0, **options)
    return run.solve(), run.state


@pytest.mark.parametrize("make", MAKES, ids=IDS)
@pytest.mark.parametrize("first", ["auto", 1e3, 0.01])
def test_no_constant_is_needed_and_steps_end_within_a_factor_of_the_true_one(make, first):
    problem = infimum.Composite(quadratic([0.5, 4.0, 25.0]), start=np.array([1.0, -2.0, 0.5]))
    result, state = final(problem, make(step=first), "max_iter(20000) | grad_norm(1e-9)")
    assert result.success
    assert np.linalg.norm(result.x) < 1e-8
    # 1/t <= 2 L, unless the user began below 1/L.
    assert 1.0 / state.t <= max(2.0 * 25.0, 100.0 if first == 0.01 else 0.0) * (1 + 1e-12)


@pytest.mark.parametrize("make", MAKES, ids=IDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_true_constant_is_not_exceeded_by_more_than_the_factor_on_data(make, seed):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((40, 6)) * [1, 3, 1, 0.1, 1, 10], np.sign(rng.standard_normal(40))
    loss = Logistic(A, y)
    _, state = final(infimum.Composite(loss), make(), "max_iter(300)")
    assert 0 < 1.0 / state.t <= 2.0 * loss.lipschitz


@pytest.mark.parametrize("make", MAKES, ids=IDS)
def test_a_long_first_trial_is_halved_to_the_first_step_that_the_model_bounds(make):
    """Along an axis of curvature 8 the trials 1, 1/2, 1/4 fail and 1/8 passes with equality."""
    calls = []

    def pair(x):
        calls.append(float(x[0]))
        return 4.0 * float(x[0]) ** 2, 8.0 * x

    f = Function(value=lambda x: pair(x)[0], value_and_gradient=pair)
    run = infimum.prepare(infimum.Composite(f, start=np.array([1.0])), solver=make(step=1.0), stopping="max_iter(1)")
    run.solve()
    assert run.state.t == 0.125
    assert run.state.x[0] == 0.0
    assert [one for one in calls if one not in (1.0, 0.0)] == [-7.0, -3.0, -1.0]
    assert run.plan.metrics["step"].get(run.state) == 0.125


@pytest.mark.parametrize("make", MAKES, ids=IDS)
@pytest.mark.parametrize(("dtype", "offset"), [("float64", 0.0), ("float64", 1e6), ("float32", 0.0), ("float32", 1e3)])
def test_rounding_near_the_optimum_does_not_shorten_the_step(make, dtype, offset):
    """Values of f agree in all digits there, so a naive test would refuse at random and halve the step to nothing."""
    rng = np.random.default_rng(1)
    A, b = rng.standard_normal((30, 8)).astype(dtype), rng.standard_normal(30).astype(dtype)
    loss = LeastSquares(A, b, reduction="sum")
    shifted = Function(
        value=lambda x: loss.value(x) + offset,
        gradient=loss.gradient,
        value_and_gradient=lambda x: (loss.value(x) + offset, loss.gradient(x)),
    )
    problem = infimum.Composite(shifted, start=np.zeros(8, dtype))
    result, state = final(problem, make(), "max_iter(3000)")
    assert str(result.x.dtype) == dtype
    assert 1.0 / state.t <= 2.0 * loss.lipschitz * (1 + 1e-5)
    best = np.linalg.lstsq(A.astype(float), b.astype(float), rcond=None)[0]
    np.testing.assert_allclose(result.x, best, atol=1e-7 if dtype == "float64" else 1e-4)


def test_one_evaluation_a_trial_and_none_twice():
    rng = np.random.default_rng(2)
    A, b = rng.standard_normal((20, 5)), rng.standard_normal(20)
    problem = infimum.Composite({"loss": LeastSquares(A, b), "penalty": 0.1 * L1()})
    run = infimum.prepare(problem, solver=ProximalGradient(step=1e-3, backtracking=True), stopping="max_iter(50)")
    result = run.solve()
    # The start and one trial a step; 1e-3 is short enough, so none is refused.
    assert run.state.t == 1e-3
    assert result.evaluations["loss"] == {"value": 51, "gradient": 51}
    fast = ProximalGradient(step=1e-3, acceleration=True, backtracking=True)
    result = infimum.solve(problem, solver=fast, stopping="max_iter(50)")
    # Value and gradient where a step begins, the value alone where it ends.
    assert result.evaluations["loss"] == {"value": 100, "gradient": 50}


def test_a_trial_that_overflows_is_a_long_trial_but_nan_ends_the_run():
    def value(x):
        return float(np.exp(x[0])) - float(x[0])

    f = Function(value=value, value_and_gradient=lambda x: (value(x), np.exp(x) - 1.0))
    problem = infimum.Composite(f, start=np.array([-3.0]))
    result, _ = final(problem, GradientDescent(step=1e4, backtracking=True))
    assert result.success
    assert abs(result.x[0]) < 1e-8

    def broken(x):
        return (float("nan"), np.ones(1)) if x[0] < -5 else (float(x[0]), np.ones(1))

    problem = infimum.Composite(Function(value_and_gradient=broken), start=np.zeros(1))
    result, _ = final(problem, GradientDescent(step=1.0, backtracking=True))
    assert result.status == "nonfinite"


def test_a_gradient_that_does_not_fit_the_value_is_named():
    f = Function(value_and_gradient=lambda x: (float(x @ x), -2 * x))
    result, _ = final(infimum.Composite(f, start=np.ones(2)), GradientDescent(step=1.0, backtracking=True))
    assert result.status == "failed"
    assert "backtracking found no step" in result.message
    assert "the gradient does not fit the value" in result.message


@pytest.mark.parametrize("make", MAKES, ids=IDS)
def test_a_start_without_slope_takes_the_declared_constant_else_one(make):
    for facts, t in (({"lipschitz": 4.0}, 0.25), ({}, 1.0)):
        run = infimum.prepare(
            infimum.Composite(quadratic([4.0], **facts), start=np.zeros(1)), solver=make(), stopping="max_iter(3)"
        )
        assert run.solve().x[0] == 0.0
        assert run.state.t == t


@pytest.mark.parametrize("make", MAKES, ids=IDS)
def test_a_start_where_nothing_curves_takes_the_scale_of_the_point(make):
    """Huber's function with threshold 1 is linear at 40 with slope 1 and says nothing of its curvature there."""

    def pair(x):
        size = abs(float(x[0]))
        return (0.5 * size**2, 1.0 * x) if size < 1 else (size - 0.5, np.sign(x))

    f = Function(value=lambda x: pair(x)[0], value_and_gradient=pair)
    run = infimum.prepare(
        infimum.Composite(f, start=np.array([40.5])), solver=make(), stopping="max_iter(500) | grad_norm(1e-9)"
    )
    assert run.solve().success
    assert abs(run.state.x[0]) < 1e-8


@pytest.mark.parametrize("make", MAKES, ids=IDS)
def test_what_backtracking_asks_for(make):
    slot = make().slots()[0]
    assert "value_and_gradient" in slot.needs
    assert slot.accepts is Exactness.approximate
    with pytest.raises(InputError, match=r"step=Power.*expected a positive finite number, or 'auto'"):
        make(step=Power(1.0, 0.5))
    blind = infimum.Composite(Function(gradient=lambda x: x), start=np.ones(2))
    with pytest.raises(infimum.errors.PlanError, match="value"):
        infimum.prepare(blind, solver=make())


@pytest.mark.parametrize("make", [GradientDescent, ProximalGradient])
def test_a_refused_automatic_step_names_it(make):
    problem = infimum.Composite(quadratic([1.0, 2.0]), start=np.ones(2))
    with pytest.raises(InputError, match=r"lipschitz=L\), give a number as step, or set backtracking: true$"):
        infimum.prepare(problem, solver=make())

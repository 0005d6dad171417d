"""Solvers of infimum as methods of `scipy.optimize.minimize`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize as so

import infimum
from infimum import InputError, PlanError

TARGET = np.array([2.0, -1.0])


def f(x: np.ndarray) -> float:
    return float((x - TARGET) @ (x - TARGET))


def slope(x: np.ndarray) -> np.ndarray:
    return 2 * (x - TARGET)


def method(**options: Any) -> Any:
    return infimum.as_scipy("splitting.proximal_gradient", step=0.1, seed=0, **options)


def test_a_smooth_function() -> None:
    x0 = np.zeros(2)
    out = so.minimize(f, x0, jac=slope, method=method(), tol=1e-9)
    assert isinstance(out, so.OptimizeResult)
    assert out.success
    assert (out.status, out.status_word) == (0, "converged")
    assert np.allclose(out.x, TARGET)
    assert np.array_equal(x0, np.zeros(2))
    assert out.nit == out.result.iterations > 10
    assert out.njev == out.result.njev
    assert "grad_norm" in out.message
    assert out.best_fun <= out.fun == f(out.x)
    assert out.exactness == "exact"


def test_bounds_constraints_and_args() -> None:
    out = so.minimize(
        lambda x, a: a * f(x), np.zeros(2), args=(3.0,), jac=lambda x, a: a * slope(x), bounds=[(0, 1), (None, None)],
        method=method(), options={"maxiter": 500},
    )  # fmt: skip
    assert np.allclose(out.x, [1.0, -1.0], atol=1e-6)
    assert out.maxcv == 0
    again = so.minimize(f, np.zeros(2), jac=slope, bounds=so.Bounds([0, -3], [1, 3]), method=method())
    assert np.allclose(again.x, [1.0, -1.0], atol=1e-6)


def test_calls_are_all_counted() -> None:
    calls = []

    def counted(x: np.ndarray) -> float:
        calls.append(x)
        return f(x)

    out = so.minimize(counted, np.zeros(2), jac=slope, method=method())
    assert out.nfev == len(calls)


def test_limits() -> None:
    by_iteration = so.minimize(f, np.zeros(2), jac=slope, method=method(), options={"maxiter": 3})
    assert (by_iteration.nit, by_iteration.success, by_iteration.status_word) == (3, False, "limit")
    assert by_iteration.status != 0
    powell = infimum.as_scipy("scipy.powell")
    assert so.minimize(f, np.zeros(2), method=powell, options={"maxfev": 9}).nfev == 9
    own = so.minimize(f, np.zeros(2), jac=slope, method=method(stopping="target(0.5)"))
    assert own.status_word == "target_reached"


def test_both_kinds_of_callback() -> None:
    points: list[np.ndarray] = []
    so.minimize(f, np.zeros(2), jac=slope, method=method(), options={"maxiter": 4}, callback=points.append)
    assert len(points) == 4
    assert f(points[-1]) < f(points[0])
    values: list[float] = []

    def tell(intermediate_result: so.OptimizeResult) -> None:
        values.append(intermediate_result.fun)
        if len(values) == 3:
            raise StopIteration

    out = so.minimize(f, np.zeros(2), jac=slope, method=method(), callback=tell)
    assert out.nit == 3
    assert values[-1] == f(out.x)
    assert not out.success


def test_scipys_constraints_come_through() -> None:
    given = [
        {"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x},
        so.LinearConstraint([[1.0, 1.0]], -10, 10),
        so.NonlinearConstraint(lambda x: x[0], -np.inf, 0.5, jac=lambda x: np.array([[1.0, 0.0]])),
    ]
    out = so.minimize(f, np.zeros(2), jac=slope, constraints=given, method=infimum.as_scipy("scipy.slsqp"))
    expected = so.minimize(f, np.zeros(2), jac=slope, constraints=given, method="slsqp")
    assert np.allclose(out.x, expected.x, atol=1e-6)
    with pytest.raises(InputError, match="LinearConstraint, NonlinearConstraint"):
        so.minimize(f, np.zeros(2), jac=slope, constraints=[3], method=infimum.as_scipy("scipy.slsqp"))


def test_what_a_solver_cannot_take_is_refused() -> None:
    with pytest.raises(PlanError, match="needs gradient"):
        so.minimize(f, np.zeros(2), method=method())
    with pytest.raises(PlanError, match="linearconstraint"):
        so.minimize(f, np.zeros(2), jac=slope, method=method(), constraints=so.LinearConstraint([[1, 1]], 0, 1))
    with pytest.raises(InputError, match="'maxiters' is none of"):
        so.minimize(f, np.zeros(2), jac=slope, method=method(), options={"maxiters": 3})
    with pytest.raises(InputError, match="no option 'stepp'"):
        so.minimize(f, np.zeros(2), jac=slope, method=infimum.as_scipy("splitting.proximal_gradient", stepp=1))


def test_an_oracle_stands_in_for_the_gradient() -> None:
    out = so.minimize(f, np.zeros(2), method=method(oracles={"objective": "zeroth.forward_difference"}), tol=1e-5)
    assert np.allclose(out.x, TARGET, atol=1e-4)
    assert out.exactness == "approximate"

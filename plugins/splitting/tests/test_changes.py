"""Rules on small changes do not end a method whose reported point stands still at first."""

from __future__ import annotations

import numpy as np
import pytest

import infimum
from infimum.constraints import Affine, Box
from infimum.functions import L1, LeastSquares

A, B = np.eye(3), np.array([3.0, 0.5, -2.0])
SOLVERS = ("douglas_rachford", "davis_yin", "pdhg", "condat_vu", "admm")


@pytest.mark.parametrize("rule", ["rel_change(1e-10)", "abs_change(1e-10)"])
@pytest.mark.parametrize("name", SOLVERS)
def test_least_squares_with_l1_in_a_box(name: str, rule: str) -> None:
    loss = LeastSquares(A, B, reduction="sum")
    sets = [] if name == "douglas_rachford" else [Box(lower=0.0, upper=1.0)]
    problem = infimum.Composite({"loss": loss, "penalty": L1(1.0)}, constraints=sets)
    result = infimum.solve(problem, solver=f"splitting.{name}", stopping=f"{rule} | max_iter(5000)", seed=0)
    expected = [1.0, 0.0, 0.0] if sets else [2.0, 0.0, -1.0]
    np.testing.assert_allclose(result.x, expected, atol=1e-6)
    assert str(result.status) == "stalled"


@pytest.mark.parametrize("name", ["douglas_rachford", "pdhg", "admm"])
def test_least_l1_norm_under_equations(name: str) -> None:
    problem = infimum.Composite({"norm": L1()}, constraints=[Affine(np.array([[2.0, 1.0]]), np.array([2.0]))])
    stopping = "rel_change(1e-10) | max_iter(5000)"
    result = infimum.solve(problem, np.zeros(2), solver=f"splitting.{name}", stopping=stopping, seed=0)
    np.testing.assert_allclose(result.x, [1.0, 0.0], atol=1e-6)


def test_a_converged_result_is_a_warm_start_from_its_solution() -> None:
    problem = infimum.Composite({"norm": L1()}, constraints=[Affine(np.array([[2.0, 1.0]]), np.array([2.0]))])
    first = infimum.solve(problem, [0.0, 2.0], solver="splitting.admm", stopping="residual(1e-4)", seed=0)
    second = infimum.solve(problem, first, solver="splitting.admm", stopping="max_iter(0)", seed=0)
    np.testing.assert_array_equal(second.x, first.x)

"""Warm starts: from a result, and along a path of problems."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum.functions import L1, LeastSquares

RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((60, 40)), RNG.standard_normal(60)
LOSS = LeastSquares(A, B)
LARGEST = float(np.abs(A.T @ B).max()) / 60
OPTIONS = {"solver": "splitting.proximal_gradient", "stopping": "max_iter(1e5) | grad_norm(1e-4)", "seed": 1}


def lasso(penalty: float) -> infimum.Composite:
    return infimum.Composite({"loss": LOSS, "penalty": L1(penalty)})


def test_a_path_ends_where_cold_starts_end_and_takes_fewer_iterations() -> None:
    values = np.geomspace(LARGEST, 0.2 * LARGEST, 30)
    path = infimum.path(lasso, values, **OPTIONS)
    cold = [infimum.solve(lasso(value), **OPTIONS) for value in values]
    assert [str(one.status) for one in path] == ["converged"] * 30
    assert [one.value for one in path] == pytest.approx([one.value for one in cold], rel=1e-7)
    np.testing.assert_allclose(path[0].x, 0.0, atol=1e-9)
    assert sum(one.iterations for one in path) < 0.75 * sum(one.iterations for one in cold)
    np.testing.assert_array_equal(path[0].x, cold[0].x)


def test_each_start_is_the_best_point_before() -> None:
    starts: list[np.ndarray] = []

    def factory(value: float) -> infimum.Composite:
        problem = lasso(value)
        prepare = problem.prepare
        problem.prepare = lambda start: starts.append(np.array(start)) or prepare(start)
        return problem

    path = infimum.path(factory, [0.5, 0.4, 0.3], np.ones(40), **OPTIONS)
    np.testing.assert_array_equal(starts[0], np.ones(40))
    for before, start in zip(path, starts[1:], strict=False):
        np.testing.assert_array_equal(start, before.best_x)


def test_a_seed_that_is_not_given_is_drawn_once_and_values_are_plain_numbers() -> None:
    seen: list[object] = []

    def factory(value: float) -> infimum.Composite:
        seen.append(value)
        return lasso(value)

    values = np.array([0.5, 0.25], dtype=np.float32)
    path = infimum.path(factory, values, solver="splitting.proximal_gradient", stopping="max_iter(3)")
    assert len({one.seed for one in path}) == 1
    assert [(type(one), one) for one in seen] == [(float, 0.5), (float, 0.25)]


def test_a_result_that_blew_up_is_no_start() -> None:
    def factory(scale: float) -> infimum.Composite:
        return infimum.Composite(
            infimum.Function(lambda x: scale * float(x @ x), gradient=lambda x: 2 * scale * x, lipschitz=2.0)
        )

    path = infimum.path(factory, [1.0, float("nan"), 1.0], np.ones(3), solver="splitting.gradient_descent", seed=0)
    assert [str(one.status) for one in path] == ["converged", "nonfinite", "converged"]
    assert np.abs(path[2].x).max() <= 1e-6


def test_the_interrupted_result_is_the_last() -> None:
    def stop(progress: object) -> None:
        signal.raise_signal(signal.SIGINT)

    path = infimum.path(lasso, [0.3, 0.2], callback=stop, **OPTIONS)
    assert [str(one.status) for one in path] == ["interrupted"]


def test_a_path_that_cannot_be_walked_is_refused() -> None:
    with pytest.raises(InputError, match="there are no values"):
        infimum.path(lasso, [])
    with pytest.raises(InputError, match=r"expected a callable value -> problem, got str; .*lambda value"):
        infimum.path("problems.lasso", [1.0])
    with pytest.raises(InputError, match="weights is -1") as caught:
        infimum.path(lasso, [0.3, -1.0], **OPTIONS)
    assert caught.value.__notes__ == ["at value 1 of the path: -1.0"]


def test_an_earlier_result_is_a_start() -> None:
    first = infimum.solve(lasso(0.1), **OPTIONS)
    again = infimum.solve(lasso(0.1), first, **OPTIONS)
    assert again.iterations <= 1
    assert again.value == pytest.approx(first.value, rel=1e-8)


def test_an_earlier_result_with_blocks_is_a_start() -> None:
    problem = infimum.Composite(
        {"loss": LeastSquares(np.eye(3), np.ones(3)) @ {"a": 1.0, "b": 2.0}}, blocks={"a": (3,), "b": (3,)}
    )
    options = {"solver": "splitting.gradient_descent", "stopping": "max_iter(1000) | grad_norm(1e-9)", "seed": 0}
    first = infimum.solve(problem, **options)
    again = infimum.solve(problem, x0=first, **options)
    assert sorted(first.x) == ["a", "b"]
    assert again.iterations == 0

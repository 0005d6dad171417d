"""Tail averages, and metrics that oracles supply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import infimum
from infimum import Composite, Exactness, InputError, Oracle, Status
from infimum.checkpoint import load_tree, save_tree
from infimum.functions import L1, LeastSquares
from infimum.run.average import FIRST, TailAverage

A = np.random.default_rng(0).standard_normal((40, 5))
B = A @ np.arange(5.0)


@dataclass(frozen=True)
class Shaky(Oracle):
    """The exact prox with noise on it, and how much."""

    size: float = 0.1

    kind: ClassVar[str] = "proximal"
    supplies: ClassVar[tuple[str, ...]] = ("prox",)
    exactness: ClassVar[Exactness] = Exactness.stochastic
    metrics: ClassVar[Mapping[str, Callable[[Any], Any]]] = {"prox_error": lambda part: part.error}

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return ShakyPart(self.size, rng)


class ShakyPart:
    def __init__(self, size: float, rng: np.random.Generator) -> None:
        self.size, self.rng, self.error = size, rng, None

    def prox(self, v: np.ndarray, t: float) -> np.ndarray:
        noise = self.size * t * self.rng.standard_normal(v.shape)
        self.error = float(np.linalg.norm(noise))
        return np.sign(v) * np.maximum(np.abs(v) - 0.1 * t, 0) + noise

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng, "error": self.error}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng, self.error = state["rng"], state["error"]


def make(stopping: str = "max_iter(300)", **options: Any) -> infimum.Run:
    problem = Composite({"loss": LeastSquares(A, B), "penalty": 0.1 * L1()})
    return infimum.prepare(
        problem,
        solver="splitting.proximal_gradient",
        oracles={"penalty": Shaky()},
        stopping=stopping,
        seed=3,
        **options,
    )


@given(st.integers(1, 400))
def test_the_mean_is_that_of_a_late_piece_of_at_least_half(n: int) -> None:
    tail = TailAverage()
    points = np.random.default_rng(n).standard_normal((n, 2))
    for point in points:
        tail.add(point)
    assert n / 2 <= tail.count <= n
    assert tail.count <= 0.75 * n + FIRST
    np.testing.assert_allclose(tail.mean, points[-tail.count :].mean(axis=0), rtol=1e-9, atol=1e-12)


def test_it_beats_the_last_point_of_a_noisy_run_and_changes_no_iterate() -> None:
    result, without = make().solve(), make(average=False).solve()
    exact = infimum.solve(
        Composite({"loss": LeastSquares(A, B), "penalty": 0.1 * L1()}),
        solver="splitting.proximal_gradient",
        stopping="grad_norm(1e-10) | max_iter(5000)",
        seed=0,
    )
    assert result.tail_value - exact.value < 0.2 * (result.value - exact.value)
    np.testing.assert_array_equal(result.x, without.x)
    assert without.tail_x is None and without.tail_value is None
    assert "tail value" in str(result)


def test_exact_runs_keep_none_unless_asked() -> None:
    problem = Composite({"loss": LeastSquares(A, B)})
    options = {"solver": "splitting.gradient_descent", "stopping": "max_iter(50)", "seed": 0}
    assert infimum.solve(problem, **options).tail_x is None
    asked = infimum.solve(problem, average=True, **options)
    assert asked.tail_value == pytest.approx(problem.value(asked.tail_x))


def test_it_is_saved_and_survives_a_checkpoint(tmp_path: Path) -> None:
    whole = make().solve()
    first = make()
    first.advance(111)
    save_tree(tmp_path, "state", first.state_dict())
    second = make().load_state_dict(load_tree(tmp_path, "state")).solve()
    np.testing.assert_array_equal(whole.tail_x, second.tail_x)
    assert whole.tail_value == second.tail_value and whole.monitored == second.monitored
    loaded = infimum.Result.load(whole.save(tmp_path / "out"))
    np.testing.assert_array_equal(loaded.tail_x, whole.tail_x)


def test_oracle_metrics_reach_the_trace_and_rules() -> None:
    result = make(record=["prox_error"]).solve()
    errors = result.trace["prox_error"]
    # The solver's `init` calls no prox: nothing is known yet at the start.
    assert np.isnan(errors[0]) and (errors[1:] > 0).all()
    assert "prox_error" in result.details["metrics"]


def test_a_metric_without_its_oracle_is_refused() -> None:
    with pytest.raises(InputError, match="prox_error"):
        infimum.solve(
            Composite({"loss": LeastSquares(A, B), "penalty": 0.1 * L1()}),
            solver="splitting.proximal_gradient",
            record=["prox_error"],
        )


def test_statuses_are_untouched() -> None:
    assert make("max_iter(3)").solve().status is Status.limit

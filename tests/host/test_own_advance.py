"""A solver that takes many iterations in one call: the host uses it between checks, and nothing else changes."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

import infimum
from infimum import Composite, Function, Slot, Solver, Status


@dataclass(slots=True)
class Point:
    x: np.ndarray


@dataclass(frozen=True)
class Plain(Solver):
    """Gradient steps of length 0.1."""

    State: ClassVar[type] = Point

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", ("gradient",)),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Point:
        return Point(start)

    def step(self, parts: Any, state: Point) -> Point:
        return Point(state.x - 0.1 * parts.smooth.gradient(state.x))


@dataclass(frozen=True)
class Chunked(Plain):
    """The same, with a loop of its own over the steps between two checks."""

    chunks: list[int] = field(default_factory=list, compare=False, repr=False)
    raises_in: int = 0

    def advance(self, parts: Any, state: Point, steps: int) -> Point:
        self.chunks.append(steps)
        if len(self.chunks) == self.raises_in:
            raise ValueError("lost")
        x = state.x
        for _ in range(steps):
            x = x - 0.1 * parts.smooth.gradient(x)
        return Point(x)


def problem(gradient: Any = lambda x: 2.0 * x) -> Composite:
    return Composite(Function(lambda x: float(x @ x), gradient=gradient, shape=(3,)), start=np.array([1.0, -2.0, 3.0]))


def prepare(solver: Solver, n: int = 23, m: int = 5, **options: Any) -> infimum.Run:
    return infimum.prepare(problem(), solver=solver, stopping=f"max_iter({n})", check_every=m, seed=0, **options)


def test_it_is_called_once_between_two_checks() -> None:
    solver = Chunked()
    result = prepare(solver).solve()
    assert solver.chunks == [5, 5, 5, 5, 3]
    assert result.iterations == 23 and result.trace["iteration"].tolist() == [0, 5, 10, 15, 20, 23]
    plain = prepare(Plain()).solve()
    np.testing.assert_array_equal(result.x, plain.x)
    assert result.evaluations == plain.evaluations


def test_checks_at_every_iteration_take_step() -> None:
    solver = Chunked()
    assert prepare(solver, m=1).solve().iterations == 23 and solver.chunks == []


def test_a_run_cut_between_checks_goes_on_with_the_same_bits() -> None:
    first = prepare(Chunked())
    first.advance(7)
    assert first.monitor.iteration == 7
    solver = Chunked()
    second = prepare(solver).load_state_dict(first.state_dict()).solve()
    assert solver.chunks == [3, 5, 5, 3]
    np.testing.assert_array_equal(second.x, prepare(Plain()).solve().x)


def test_an_exception_discards_the_chunk() -> None:
    result = prepare(Chunked(raises_in=3)).solve()
    assert result.status is Status.failed and result.iterations == 10
    assert result.message == "ValueError in iteration 11: lost"
    np.testing.assert_array_equal(result.x, prepare(Plain(), n=10).solve().x)


def test_nan_inside_a_chunk_ends_it_at_the_next_check() -> None:
    calls = 0

    def gradient(x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        return np.full(3, np.nan) if calls == 12 else 2.0 * x

    result = infimum.solve(
        problem(gradient), solver=Chunked(), stopping="max_iter(100)", check_every=5, value_every=1, seed=0
    )
    assert result.status is Status.nonfinite and "gradient of term 'objective'" in result.message
    assert calls <= 15 and np.isfinite(result.best_x).all()


def test_ctrl_c_waits_for_the_end_of_a_chunk() -> None:
    def gradient(x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 7:
            signal.raise_signal(signal.SIGINT)
        return 2.0 * x

    calls = 0
    result = infimum.solve(problem(gradient), solver=Chunked(), stopping="max_iter(100)", check_every=5, seed=0)
    assert result.status is Status.interrupted and result.iterations == 10


def test_what_the_base_class_gives_is_plain_steps() -> None:
    run = prepare(Plain())
    state = Plain().advance(run.bound.parts, Point(np.ones(3)), 4)
    np.testing.assert_allclose(state.x, 0.8**4)
    assert not Plain().advances and Chunked().advances

"""Run-level hooks of plugins in a real solve: told once, watched at their cadence, in an order of their own."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, InputError, Status
from infimum.functions import L1, LeastSquares
from infimum.plugins import hook, registry
from infimum.plugins.loader import new_manager
from infimum.plugins.registry import Registry, get_registry

A = np.random.default_rng(4).standard_normal((12, 3))
PG = "splitting.proximal_gradient"


class Watching:
    """A plugin that writes down what it is told."""

    def __init__(self, name: str, log: list[Any], every: Any = 10, answer: Any = None) -> None:
        self.name, self.log, self.every, self.answer = name, log, every, answer

    @hook
    def infimum_run_started(self, run: Any) -> None:
        self.log.append((self.name, "started", run.monitor.iteration))

    @hook
    def infimum_observers(self, run: Any) -> Any:
        return [(self.every, self.watch)]

    @hook
    def infimum_run_finished(self, run: Any, result: Any) -> None:
        self.log.append((self.name, "finished", result.iterations, str(result.status)))

    def watch(self, progress: Any) -> Any:
        self.log.append((self.name, progress.iteration))
        return self.answer


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the process-wide registry one with these plugins beside the installed ones."""

    def plugins(*objects: Any) -> None:
        manager = new_manager()
        for one in objects:
            manager.register(one, one.name)
        monkeypatch.setattr(registry, "_registry", Registry(get_registry().plugins, manager))

    return plugins


def solve(stopping: str = "max_iter(25)", **options: Any) -> infimum.Result:
    problem = Composite({"loss": LeastSquares(A, np.ones(12)), "penalty": 0.1 * L1()})
    return infimum.solve(problem, solver=PG, stopping=stopping, seed=0, **options)


def test_told_once_and_watched_at_its_cadence(install: Any) -> None:
    log: list[Any] = []
    install(Watching("a", log))
    solve()
    assert log == [("a", "started", -1), ("a", 0), ("a", 10), ("a", 20), ("a", "finished", 25, "limit")]


def test_the_order_of_installation_does_not_matter(install: Any) -> None:
    logs: list[list[Any]] = []
    for names in ("abc", "cba", "bac"):
        logs.append([])
        install(*(Watching(name, logs[-1]) for name in names))
        solve()
    assert logs[0] == logs[1] == logs[2]
    assert [one[0] for one in logs[0]] == list("abc") * 5


def test_watching_leaves_the_bits_alone(install: Any) -> None:
    plain = solve()
    install(Watching("a", [], every=1), Watching("b", [], every=3))
    np.testing.assert_array_equal(solve().x, plain.x)


def test_an_observer_may_ask_for_a_stop(install: Any) -> None:
    log: list[Any] = []
    install(Watching("a", log, answer=True))
    assert solve().status is Status.interrupted
    assert log[-1] == ("a", "finished", 0, "interrupted")


def test_the_end_is_told_of_a_run_that_failed_too(install: Any) -> None:
    log: list[Any] = []
    install(Watching("a", log))

    def broken(progress: Any) -> None:
        if progress.iteration == 3:
            raise ValueError("no more")

    assert solve(callback=broken).status is Status.failed
    assert log[-1] == ("a", "finished", 3, "failed")


@pytest.mark.parametrize("every", [0, "often", 1.5])
def test_observers_that_are_none_are_logged_and_left_out(
    install: Any, every: Any, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[Any] = []
    install(Watching("a", log, every=every), Watching("b", log))
    with caplog.at_level(logging.ERROR, logger="infimum"):
        assert solve().status is Status.limit
    assert f"every={every!r}; expected an integer >= 1" in caplog.text
    assert ("b", 10) in log and ("a", 10) not in log


def test_an_answer_that_is_no_pairs_is_logged(install: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        name = "odd"

        @hook
        def infimum_observers(self, run: Any) -> Any:
            return 3

    install(Odd())
    with caplog.at_level(logging.ERROR, logger="infimum"):
        assert solve().status is Status.limit
    assert "an infimum_observers hook gave 3; expected pairs (every, callable)" in caplog.text


def test_hand_made_steps_tell_nothing_until_solve(install: Any) -> None:
    log: list[Any] = []
    install(Watching("a", log))
    problem = Composite({"loss": LeastSquares(A, np.ones(12))})
    run = infimum.prepare(problem, solver="splitting.gradient_descent", stopping="max_iter(12)", seed=0)
    run.advance(5)
    assert log == [("a", 0)]
    run.solve()
    assert log == [("a", 0), ("a", "started", 5), ("a", 10), ("a", "finished", 12, "limit")]


def test_a_run_that_is_refused_tells_nothing(install: Any) -> None:
    log: list[Any] = []
    install(Watching("a", log))
    with pytest.raises(InputError):
        solve("gap(1e-3)")
    assert log == []

"""Ctrl-C and SIGTERM in child processes of their own session; handlers are put back and left alone elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, Function, Result, Status
from infimum.run.monitor import Monitor
from infimum.run.signals import Interrupts

GD = {"use": "splitting.gradient_descent", "step": 0.1}

CHILD = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
import numpy as np, infimum
from infimum import Composite, Function

def both(x):
    if both.count == 5:
        print("ready", flush=True)
    both.count += 1
    begin = time.monotonic()
    while time.monotonic() - begin < {seconds}:
        time.sleep(0.01)
    return float(x @ x), 2 * x

both.count = 0
run = infimum.prepare(
    Composite(Function(value_and_gradient=both)), np.ones(3), stopping="max_iter(100000)", seed=0,
    solver={{"use": "splitting.gradient_descent", "step": 0.1}},
)
try:
    result = run.solve()
except KeyboardInterrupt:
    print("at once", run.monitor.iteration, flush=True)
    sys.exit(9)
result.save(sys.argv[1])
from infimum.checkpoint import save_tree
from pathlib import Path
save_tree(Path(sys.argv[1]), "state", run.state_dict())
handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
back = handlers == (signal.default_int_handler, signal.SIG_DFL)
print("written", both.count, back, flush=True)
"""


@pytest.fixture
def child(tmp_path: Path) -> Any:
    started: list[subprocess.Popen[str]] = []

    def start(seconds: float) -> subprocess.Popen[str]:
        script = tmp_path / "child.py"
        script.write_text(textwrap.dedent(CHILD.format(seconds=seconds)), encoding="utf8")
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / "out")],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_iteration_is_finished_and_the_result_written(child: Any, number: int, tmp_path: Path) -> None:
    process = child(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=20)
    word, count, back = out.split()
    assert process.returncode == 0 and word == "written" and back == "True"
    result = Result.load(tmp_path / "out")
    assert result.status is Status.interrupted and not result.success
    assert "interrupted by the user; the iteration was finished" in result.message
    # Every evaluation that was begun belongs to an iteration that counts.
    assert result.iterations == int(count) - 1
    np.testing.assert_allclose(result.x, 0.8**result.iterations * np.ones(3))


def test_what_was_interrupted_can_be_taken_up(child: Any, tmp_path: Path) -> None:
    process = child(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    from infimum.checkpoint import load_tree

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(x @ x), 2 * x

    def make() -> infimum.Run:
        problem = Composite(Function(value_and_gradient=both))
        return infimum.prepare(problem, np.ones(3), solver=GD, stopping="max_iter(100000)", seed=0)

    run = make().load_state_dict(load_tree(tmp_path / "out", "state"))
    before = run.monitor.iteration
    assert before >= 5 and run.advance(7) is None and run.monitor.iteration == before + 7
    whole = make()
    whole.advance(before + 7)
    np.testing.assert_array_equal(run.current, whole.current)


def test_a_second_ctrl_c_does_not_wait_for_the_iteration(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    # The sixth evaluation takes a minute.
    text = CHILD.format(seconds="(60 if both.count == 6 else 0)")
    script.write_text(textwrap.dedent(text), encoding="utf8")
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "out")], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        for _ in range(4):
            # Two signals that come before the first is handled are one, so one more may be needed.
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
        out, _ = process.communicate(timeout=5)
        assert process.returncode == 9 and out.startswith("at once")
        assert not (tmp_path / "out").exists()
    finally:
        process.kill()
        process.communicate()


def slow(callback: Callable[[Any], Any] | None = None, **options: Any) -> infimum.Run:
    problem = Composite(Function(value_and_gradient=lambda x: (float(x @ x), 2 * x)))
    defaults: dict[str, Any] = {"solver": GD, "stopping": "max_iter(50)", "seed": 0}
    return infimum.prepare(problem, np.ones(2), callback=callback, **{**defaults, **options})


def interrupt_at(iteration: int, times: int = 1) -> Callable[[Any], None]:
    def tell(progress: Any) -> None:
        if progress.iteration == iteration:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return tell


class TestInProcess:
    @pytest.fixture(autouse=True)
    def _default(self) -> Any:
        old = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, old)

    def test_at_the_check_itself(self) -> None:
        result = slow(interrupt_at(4)).solve()
        assert result.status is Status.interrupted and result.iterations == 4

    def test_at_the_start(self) -> None:
        result = slow(interrupt_at(0)).solve()
        assert result.status is Status.interrupted and result.iterations == 0
        np.testing.assert_array_equal(result.x, np.ones(2))

    def test_twice_at_once(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            slow(interrupt_at(4, times=2)).solve()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_a_chunk_is_cut_short(self) -> None:
        count = 0

        def both(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal count
            count += 1
            if count == 8:
                signal.raise_signal(signal.SIGINT)
            return float(x @ x), 2 * x

        result = infimum.solve(
            Composite(Function(value_and_gradient=both)),
            np.ones(2),
            solver=GD,
            stopping="max_iter(1000)",
            check_every=100,
            seed=0,
        )
        assert result.status is Status.interrupted and result.iterations == 7 and count == 8

    def test_a_rule_that_fired_at_the_same_check_is_reported(self) -> None:
        result = slow(interrupt_at(50)).solve()
        assert result.status is Status.interrupted and [one.rule for one in result.fired] == ["max_iter(50)"]

    @pytest.mark.parametrize("how", ["solve", "raise"])
    def test_handlers_are_put_back(self, how: str) -> None:
        def mine(number: int, frame: Any) -> None:
            raise AssertionError("not during the run")

        old = signal.signal(signal.SIGTERM, mine)
        seen: list[Any] = []

        def tell(progress: Any) -> None:
            seen.append(signal.getsignal(signal.SIGTERM))
            if how == "raise":
                raise KeyboardInterrupt

        try:
            if how == "solve":
                slow(tell).solve()
            else:
                with pytest.raises(KeyboardInterrupt):
                    slow(tell).solve()
            assert signal.getsignal(signal.SIGTERM) is mine and seen[0] is not mine
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        finally:
            signal.signal(signal.SIGTERM, old)

    def test_an_ignored_signal_stays_ignored(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        result = slow(interrupt_at(3)).solve()
        assert result.status is Status.limit
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def test_other_threads_are_left_alone(self) -> None:
        seen: list[Any] = []
        results: list[infimum.Result] = []
        run = slow(lambda progress: seen.append(signal.getsignal(signal.SIGINT)))
        thread = threading.Thread(target=lambda: results.append(run.solve()))
        thread.start()
        thread.join()
        assert set(seen) == {signal.default_int_handler} and results[0].status is Status.limit

    def test_a_run_inside_a_run_hands_the_request_on(self) -> None:
        inner_status: list[Status] = []

        def both(x: np.ndarray) -> tuple[float, np.ndarray]:
            if len(inner_status) == 3:
                inner_status.append(slow(interrupt_at(5)).solve().status)
            elif len(inner_status) < 3:
                inner_status.append(slow().solve().status)
            return float(x @ x), 2 * x

        problem = Composite(Function(value_and_gradient=both))
        result = infimum.solve(problem, np.ones(2), solver=GD, stopping="max_iter(20)", seed=0)
        assert inner_status == [Status.limit] * 3 + [Status.interrupted]
        assert result.status is Status.interrupted and result.iterations == 3

    def test_the_context_alone(self) -> None:
        monitor = Monitor("max_iter(3)")
        with Interrupts(monitor):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            assert monitor.request is Status.interrupted
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

"""Checkpoints while a run goes on: when they are due, how many stay, and disks that are full."""

from __future__ import annotations

import errno
import json
import math
import os
import pkgutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, Function, InputError, Run, Status
from infimum.checkpoint import load_tree
from infimum.run.cadence import Cadence, checkpoints
from infimum.run.saver import Saver
from infimum.testing.compare import result_difference

GD = {"use": "splitting.gradient_descent", "step": 0.1}


def make(callback: Any = None, **options: Any) -> Run:
    problem = Composite(Function(value_and_gradient=lambda x: (float(x @ x), 2 * x)))
    defaults: dict[str, Any] = {"solver": GD, "stopping": "max_iter(50)", "seed": 0}
    return infimum.prepare(problem, np.ones(2), callback=callback, **{**defaults, **options})


def saving(folder: Path, cadence: Any, callback: Any = None, **options: Any) -> Run:
    run = make(callback, **options)
    run.saver = Saver(run, folder, Cadence.of(cadence))
    return run


class TestCadence:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"every": "30s"}, Cadence(seconds=30.0)),
            ({"every": "1.5 min", "keep": 3}, Cadence(seconds=90.0, keep=3)),
            ({"every": "250ms"}, Cadence(seconds=0.25)),
            ({"every": "2h"}, Cadence(seconds=7200.0)),
            ({"every": "1e-2s"}, Cadence(seconds=0.01)),
            ({"every": 500}, Cadence(iterations=500)),
            ("5s", Cadence(seconds=5.0)),
            (7, Cadence(iterations=7)),
            (None, Cadence()),
            (Cadence(iterations=3), Cadence(iterations=3)),
        ],
    )
    def test_forms(self, given: Any, expected: Cadence) -> None:
        assert Cadence.of(given) == expected

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"every": "30"}, r"every='30': expected a number of iterations \(500\) or a time with its unit"),
            ({"every": "0s"}, "every='0s'"),
            ({"every": "soon"}, "every='soon'"),
            ({"every": 0}, "every=0"),
            ({"every": 1.5}, "every=1.5"),
            ({"every": True}, "every=True"),
            ({"every": 5, "keep": 0}, "keep=0: expected an integer >= 1"),
            ({"keep": 2}, "'every' is missing"),
            ({"evry": 2}, "no option 'evry'; did you mean 'every'"),
        ],
    )
    def test_refusals(self, given: Any, words: str) -> None:
        with pytest.raises(InputError, match=words):
            Cadence.of(given)


class TestWhen:
    def test_by_iterations_and_the_last_ones_stay(self, tmp_path: Path) -> None:
        seen: list[list[int]] = []
        saving(tmp_path, {"every": 8, "keep": 3}, lambda p: seen.append(checkpoints(tmp_path))).solve()
        assert seen[8] == [] and seen[9] == [8] and seen[33] == [16, 24, 32]
        assert checkpoints(tmp_path) == [32, 40, 48]
        assert sorted(os.listdir(tmp_path)) == [f"{k}.{s}" for k in (32, 40, 48) for s in ("json", "npz")]

    def test_by_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0.0]
        monkeypatch.setattr("infimum.run.monitor.time.perf_counter", lambda: now[0])

        def tick(progress: Any) -> None:
            now[0] += 1.0

        saving(tmp_path, {"every": "7s", "keep": 100}, tick).solve()
        gaps = np.diff(checkpoints(tmp_path))
        assert len(gaps) >= 4 and set(gaps.tolist()) <= {7, 8}

    def test_not_at_the_end_and_not_without_a_cadence(self, tmp_path: Path) -> None:
        saving(tmp_path, 50).solve()
        saving(tmp_path, None).solve()
        assert checkpoints(tmp_path) == []

    @pytest.mark.parametrize("every", [1, 4])
    def test_checks_are_not_moved(self, every: int, tmp_path: Path) -> None:
        plain, kept = make(check_every=every), saving(tmp_path, {"every": 6, "keep": 9}, check_every=every)
        assert result_difference(plain.solve(), kept.solve()) is None
        assert checkpoints(tmp_path) == (
            [6, 12, 18, 24, 30, 36, 42, 48] if every == 1 else [8, 12, 20, 24, 32, 36, 44, 48]
        )

    def test_what_cannot_be_resumed_has_none(self, tmp_path: Path) -> None:
        run = saving(tmp_path, 2, solver="scipy.l_bfgs_b", callback=lambda p: p.iteration == 1)
        assert run.solve().status is Status.interrupted
        assert run.saver is not None and run.saver.due() == (math.inf, math.inf)
        assert checkpoints(tmp_path) == []


class TestInterrupted:
    @pytest.fixture(autouse=True)
    def _default(self) -> Any:
        old = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, old)

    @pytest.mark.parametrize("every", [1, 5])
    @pytest.mark.parametrize("at", [0, 3, 10, 13])
    @pytest.mark.parametrize("value_every", [None, 7])
    def test_bit_for_bit_wherever_it_is_cut(self, every: int, at: int, value_every: int | None, tmp_path: Path) -> None:
        options: dict[str, Any] = {"check_every": every, "value_every": value_every, "stopping": "max_iter(40)"}
        problem = Composite(Function(lambda x: float(x @ x), gradient=lambda x: 2 * x))
        whole = infimum.prepare(problem, np.ones(2), solver=GD, seed=0, average=True, **options).solve()
        calls = 0

        def gradient(x: np.ndarray) -> np.ndarray:
            nonlocal calls
            calls += 1
            if calls == at + 1:
                signal.raise_signal(signal.SIGINT)
            return 2 * x

        cut = Composite(Function(lambda x: float(x @ x), gradient=gradient))
        first = infimum.prepare(cut, np.ones(2), solver=GD, seed=0, average=True, **options)
        first.saver = Saver(first, tmp_path, Cadence())
        stopped = first.solve()
        assert stopped.status is Status.interrupted and checkpoints(tmp_path) == [stopped.iterations]
        second = infimum.prepare(problem, np.ones(2), solver=GD, seed=0, average=True, **options)
        second.load_state_dict(load_tree(tmp_path, str(stopped.iterations)))
        result = second.solve()
        assert result_difference(whole, result) is None
        np.testing.assert_array_equal(whole.tail_x, result.tail_x)
        assert whole.tail_value == result.tail_value

    def test_in_place_between_two_checks(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")

        def run(at: int = -1) -> Run:
            calls = 0

            def gradient(x: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == at:
                    signal.raise_signal(signal.SIGINT)
                return 2 * x

            problem = Composite(Function(lambda x: (x * x).sum(), gradient=gradient))
            start = torch.ones(3, dtype=torch.float32)
            return infimum.prepare(problem, start, solver=GD, stopping="max_iter(30)", check_every=7, seed=1)

        whole = run().solve()
        first = run(12)
        first.saver = Saver(first, tmp_path, Cadence())
        first.solve()
        (there,) = checkpoints(tmp_path)
        assert there % 7
        assert result_difference(whole, run().load_state_dict(load_tree(tmp_path, str(there))).solve()) is None


CALLS = {
    "write": "numpy.lib.format.write_array",
    "fsync": "os.fsync",
    "folder": "infimum.checkpoint.sync_folder",
    "replace": "pathlib.Path.replace",
    "make": "pathlib.Path.mkdir",
}


class TestFullDisks:
    def fail(self, monkeypatch: pytest.MonkeyPatch, name: str, when: Any, number: int = errno.ENOSPC) -> list[int]:
        original, calls = pkgutil.resolve_name(CALLS[name]), [0]

        def failing(*args: Any, **options: Any) -> Any:
            calls[0] += 1
            if when(calls[0]):
                raise OSError(number, os.strerror(number))
            return original(*args, **options)

        monkeypatch.setattr(CALLS[name], failing)
        return calls

    @pytest.mark.parametrize(
        ("name", "nth"),
        [(name, nth) for name in CALLS for nth in range(1, 4 if name in ("write", "make", "folder") else 7)],
    )
    def test_one_failure_costs_one_checkpoint_at_most(
        self, name: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        whole = make().solve()
        calls = self.fail(monkeypatch, name, lambda k: k == nth, errno.EIO)
        result = saving(tmp_path, 10).solve()
        monkeypatch.undo()
        assert calls[0] >= nth
        assert result_difference(whole, result) is None
        (note,) = [one for one in result.notes if "checkpoint" in one]
        assert "could not be written" in note and "Input/output error" in note and "could not be written" in caplog.text
        # The last is whole, and nothing torn is left beside those that are kept.
        assert checkpoints(tmp_path)[-1] == 40
        for iteration in checkpoints(tmp_path)[-1:]:
            second = make().load_state_dict(load_tree(tmp_path, str(iteration)))
            assert result_difference(whole, second.solve()) is None
        assert not [one for one in os.listdir(tmp_path) if one.endswith(".part")]

    def test_a_disk_that_stays_full(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail(monkeypatch, "fsync", lambda k: k > 6)
        result = saving(tmp_path, 10, stopping="max_iter(99)").solve()
        monkeypatch.undo()
        assert result.status is Status.limit
        (note,) = [one for one in result.notes if "checkpoint" in one]
        assert "the last one is of iteration 20" in note
        assert checkpoints(tmp_path)[-1] == 20 and load_tree(tmp_path, "20")["monitor"]["iteration"] == 20

    def test_the_oldest_makes_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fail(monkeypatch, "write", lambda k: len(checkpoints(tmp_path)) > 1)
        result = saving(tmp_path, 10).solve()
        monkeypatch.undo()
        assert not [one for one in result.notes if "checkpoint" in one]
        assert checkpoints(tmp_path) == [30, 40]

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        result = saving(tmp_path / "file", 10).solve()
        assert result.status is Status.limit and any("there is none before it" in one for one in result.notes)

    def test_an_error_of_any_kind(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run = saving(tmp_path, 10)
        monkeypatch.setattr(type(run.bound), "state_dict", lambda self: {"bad": object()})
        result = run.solve()
        assert result.status is Status.limit and any("holds a object" in one for one in result.notes)


class TestFiles:
    def test_what_a_killed_process_left_is_swept_up(self, tmp_path: Path) -> None:
        for name in ("3.npz", "7.npz.123.part", "7.json.123.part"):
            (tmp_path / name).write_text("torn")
        saving(tmp_path, 20).solve()
        assert sorted(os.listdir(tmp_path)) == ["20.json", "20.npz", "40.json", "40.npz"]

    def test_they_are_plain_data_with_checksums(self, tmp_path: Path) -> None:
        saving(tmp_path, 20).solve()
        content = json.loads((tmp_path / "40.json").read_text())
        assert set(content) == {"format", "sha256", "files", "data"} and set(content["files"]) == {"40.npz"}
        with np.load(tmp_path / "40.npz", allow_pickle=False) as stored:
            np.testing.assert_allclose(stored["solver/x"], 0.8**40 * np.ones(2))

    def test_writing_is_not_the_solver_s_time(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import time

        def slowly(folder: Path, name: str, tree: Any) -> None:
            time.sleep(0.05)

        monkeypatch.setattr("infimum.run.saver.save_tree", slowly)
        result = saving(tmp_path, 10).solve()
        assert result.elapsed > 0.2 and result.trace["time"][-1] < result.elapsed - 0.19

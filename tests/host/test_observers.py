"""Observers: what they write, that they cannot hurt a run, and that files are whole whatever ends it."""

from __future__ import annotations

import csv
import importlib.util
import json
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, InputError, Status
from infimum.functions import L1, Function, LeastSquares
from infimum.observers import Csv, JsonLines, Mlflow, RunObserver, TensorBoard, Watch
from infimum.observers.thin import Thinning
from infimum.plugins import hook, registry
from infimum.plugins.loader import new_manager
from infimum.plugins.registry import Registry, get_registry
from infimum.run.monitor import Observer

A = np.random.default_rng(4).standard_normal((12, 3))
PG, GD = "splitting.proximal_gradient", "{use: splitting.gradient_descent, step: 1e-3}"


def problem() -> Composite:
    return Composite({"loss": LeastSquares(A, np.ones(12)), "penalty": 0.1 * L1()})


def solve(stopping: str = "max_iter(25)", **options: Any) -> infimum.Result:
    return infimum.solve(problem(), solver=PG, stopping=stopping, seed=0, **options)


def read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class TestFiles:
    def test_csv_holds_the_trace_to_the_bit(self, tmp_path: Path) -> None:
        result = solve(observers=Csv(str(tmp_path / "a.csv")))
        rows = read_csv(tmp_path / "a.csv")
        assert result.trace is not None and list(rows[0]) == list(result.trace)
        for name, column in result.trace.items():
            if name != "time":
                written = [float(row[name]) if row[name] else np.nan for row in rows]
                np.testing.assert_array_equal(written, column, err_msg=name)

    def test_json_lines_end_with_the_outcome(self, tmp_path: Path) -> None:
        result = solve(observers=[JsonLines(str(tmp_path / "a.jsonl"), every=10)])
        *rows, last = read_lines(tmp_path / "a.jsonl")
        assert [row["iteration"] for row in rows] == [0, 10, 20, 25]
        assert rows[-1]["value"] == result.value
        assert last["status"] == "limit" and last["value"] == result.value and last["iterations"] == 25

    def test_numbers_that_json_does_not_know_are_null(self, tmp_path: Path) -> None:
        f = Function(value=lambda x: float("nan") if x[0] < 0.5 else float(x @ x), gradient=lambda x: 2 * x)
        infimum.solve(
            f,
            np.ones(2),
            solver={"use": "splitting.gradient_descent", "step": 0.1},
            stopping="max_iter(20) | rel_change(1e-9)",
            value_every=1,
            observers=JsonLines(str(tmp_path / "a.jsonl")),
        )
        lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line, parse_constant=pytest.fail) for line in lines]
        assert rows[-1]["status"] == "nonfinite" and rows[1]["rel_change"] is not None and len(rows) > 3

    def test_a_file_that_is_there_is_refused_before_the_first_step(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_text("mine", encoding="utf-8")
        with pytest.raises(InputError, match=r"a\.csv exists; give the observer another path, or overwrite: true"):
            solve(observers=Csv(str(path)))
        assert path.read_text(encoding="utf-8") == "mine"
        solve(observers=Csv(str(path), overwrite=True))
        assert len(read_csv(path)) == 26

    def test_nothing_is_written_before_the_run_starts(self, tmp_path: Path) -> None:
        infimum.prepare(problem(), solver=PG, seed=0, observers=Csv(str(tmp_path / "a.csv")))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("how", ["fails", "raises", "interrupted"])
    def test_the_file_is_whole_whatever_ends_the_run(self, tmp_path: Path, how: str) -> None:
        def end(progress: Any) -> Any:
            if progress.iteration == 7:
                if how == "fails":
                    raise ValueError("no more")
                if how == "raises":
                    raise KeyboardInterrupt
                return True
            return None

        run = infimum.prepare(
            problem(), solver=PG, stopping="max_iter(25)", seed=0, callback=end, observers=Csv(str(tmp_path / "a.csv"))
        )
        if how == "raises":
            with pytest.raises(KeyboardInterrupt):
                run.solve()
        else:
            assert run.solve().status is (Status.failed if how == "fails" else Status.interrupted)
        assert [int(row["iteration"]) for row in read_csv(tmp_path / "a.csv")] == list(range(8))

    @pytest.mark.parametrize("kind", [Csv, JsonLines])
    def test_a_run_taken_up_again_goes_on_in_its_file(self, tmp_path: Path, kind: Any) -> None:
        path = tmp_path / "progress"
        first = infimum.prepare(problem(), solver=PG, stopping="max_iter(20)", seed=0, observers=kind(str(path)))
        first.advance(6)
        state = first.state_dict()
        first.advance(6)
        for close in first.closing:
            close()
        second = infimum.prepare(problem(), solver=PG, stopping="max_iter(20)", seed=0, observers=kind(str(path)))
        second.load_state_dict(state).solve()
        rows = read_csv(path) if kind is Csv else [row for row in read_lines(path) if "iteration" in row]
        assert [int(row["iteration"]) for row in rows] == list(range(21))

    def test_a_disk_that_is_full_costs_the_file_and_not_the_run(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full on this system")
        plain = solve("max_iter(3000)")
        with caplog.at_level(logging.ERROR, logger="infimum"):
            full = solve("max_iter(3000)", observers=Csv("/dev/full", overwrite=True))
        np.testing.assert_array_equal(full.x, plain.x)
        assert any("No space left" in note and "Csv failed at iteration" in note for note in full.notes)

    def test_a_relative_path_is_inside_the_runs_folder(self, tmp_path: Path) -> None:
        solve(observers=["core.csv"], folder=tmp_path / "kept")
        assert (tmp_path / "kept" / "progress.csv").is_file()


class TestDetached:
    """One that raises is logged and noted, is told nothing more, and the run goes on."""

    @pytest.fixture(autouse=True)
    def _plain(self) -> None:
        self.plain = solve()

    def check(self, result: infimum.Result, told: list[int], caplog: pytest.LogCaptureFixture) -> None:
        np.testing.assert_array_equal(result.x, self.plain.x)
        assert result.status is Status.limit and told == [0, 1, 2, 3]
        assert any("failed at iteration 3 and was detached: ValueError: no ink" in note for note in result.notes)
        assert "no ink" in caplog.text

    def broken(self, told: list[int]) -> Any:
        def watch(progress: Any) -> None:
            told.append(progress.iteration)
            if progress.iteration == 3:
                raise ValueError("no ink")

        return watch

    @pytest.mark.parametrize("form", ["callable", "pair", "observer"])
    def test_of_the_user(self, form: str, caplog: pytest.LogCaptureFixture) -> None:
        told: list[int] = []
        call = self.broken(told)
        given = {"callable": call, "pair": (1, call), "observer": Observer(call)}[form]
        self.check(solve(observers=[given]), told, caplog)

    def test_of_a_plugin(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        told: list[int] = []
        call = self.broken(told)

        class Plugin:
            @hook
            def infimum_observers(self, run: Any) -> Any:
                return [(1, call)]

        manager = new_manager()
        manager.register(Plugin(), "acme")
        monkeypatch.setattr(registry, "_registry", Registry(get_registry().plugins, manager))
        self.check(solve(), told, caplog)

    def test_of_a_component(self, caplog: pytest.LogCaptureFixture) -> None:
        told: list[int] = []
        closed: list[str] = []
        call = self.broken(told)

        class Mine(RunObserver):
            def start(self, run: Any) -> Watch:
                class Seen(Watch):
                    def tell(self, progress: Any) -> None:
                        call(progress)

                    def close(self) -> None:
                        closed.append("closed")

                    def finish(self, result: Any) -> None:
                        closed.append("finished")

                return Seen()

        self.check(solve(observers=Mine()), told, caplog)
        assert closed == ["closed"]

    def test_when_it_is_closed_or_told_the_result(self, caplog: pytest.LogCaptureFixture) -> None:
        class Mine(RunObserver):
            def __init__(self, where: str) -> None:
                self.where = where

            def start(self, run: Any) -> Watch:
                where = self.where

                class Seen(Watch):
                    def tell(self, progress: Any) -> None: ...

                    def close(self) -> None:
                        if where == "close":
                            raise OSError("gone")

                    def finish(self, result: Any) -> None:
                        if where == "finish":
                            raise OSError("gone")

                return Seen()

        for where in ("close", "finish"):
            result = solve(observers=Mine(where))
            assert result.status is Status.limit
            assert any("gone" in note for note in result.notes), where

    def test_something_that_cannot_be_closed_does_not_lose_the_result(self, caplog: pytest.LogCaptureFixture) -> None:
        run = infimum.prepare(problem(), solver=PG, stopping="max_iter(5)", seed=0)
        run.closing.append(lambda: 1 / 0)
        assert run.solve().iterations == 5
        assert "could not be closed" in caplog.text

    def test_a_callback_still_ends_the_run(self) -> None:
        assert solve(callback=self.broken([])).status is Status.failed

    def test_a_stop_may_be_asked_for(self) -> None:
        result = solve(observers=[lambda progress: progress.iteration == 4])
        assert result.status is Status.interrupted and result.iterations == 4


def test_watching_changes_nothing(tmp_path: Path) -> None:
    plain = solve("max_iter(60)")
    watched = solve(
        "max_iter(60)",
        observers=[Csv(str(tmp_path / "a.csv")), JsonLines(str(tmp_path / "b.jsonl"), every=7), lambda p: None],
    )
    np.testing.assert_array_equal(plain.x, watched.x)
    assert plain.evaluations == watched.evaluations and plain.monitored == watched.monitored
    assert plain.trace is not None and watched.trace is not None
    for name in plain.trace:
        if name != "time":
            np.testing.assert_array_equal(plain.trace[name], watched.trace[name], err_msg=name)


def test_the_time_of_observers_is_not_the_solvers() -> None:
    import time

    result = solve("max_iter(20)", observers=[lambda progress: time.sleep(0.01)])
    assert result.trace is not None
    assert result.elapsed > 0.2 > 0.15 > result.trace["time"][-1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "expected a list of observers"),
        (["core.cvs"], "did you mean 'core.csv'"),
        ([{"use": "core.csv", "every": 0}], "every"),
        ([(1, 2, 3)], "pair"),
        ([3], "expected an observer or a callable"),
        ([(0, print)], "every=0"),
        (["core.box"], "core.box is a constraint"),
    ],
)
def test_what_is_no_observer_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(observers=given)


class TestRunFile:
    def write(self, tmp_path: Path, observers: str) -> Path:
        path = tmp_path / "run.yaml"
        path.write_text(
            f"problem: problems.rosenbrock\nsolver: {GD}\nstopping: max_iter(5)\nseed: 1\nobservers: {observers}\n",
            encoding="utf-8",
        )
        return path

    def test_they_are_built_and_resolved(self, tmp_path: Path) -> None:
        from infimum.runfile import RunFile

        target = tmp_path / "out.csv"
        loaded = RunFile.load(self.write(tmp_path, f"[{{use: csv, path: {target}, every: 2}}]"))
        expected = {"use": "core.csv", "path": str(target), "every": 2, "overwrite": False}
        assert loaded.resolved()["observers"] == [expected]
        loaded.prepare().solve()
        assert [row["iteration"] for row in read_csv(target)] == ["0", "2", "4", "5"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("core.csv", "observers: expected a list of observers"),
            ("[core.cvs]", "did you mean 'core.csv'"),
            ("[{use: core.csv, evry: 2}]", "has no option 'evry'; did you mean 'every'"),
        ],
    )
    def test_mistakes_are_placed(self, tmp_path: Path, text: str, message: str) -> None:
        from infimum.runfile import RunFile, RunFileError

        with pytest.raises(RunFileError, match=message) as caught:
            RunFile.load(self.write(tmp_path, text))
        assert "run.yaml:5:" in str(caught.value)

    def test_what_is_not_installed_is_placed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from infimum.runfile import RunFile, RunFileError

        monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
        with pytest.raises(RunFileError, match=r"run\.yaml:5:.*infimum\[mlflow\]"):
            RunFile.load(self.write(tmp_path, "[core.mlflow]")).prepare()


@pytest.mark.parametrize(
    ("observer", "stays"),
    [
        (Csv(), True),
        (JsonLines("deep/b.jsonl"), True),
        (Csv("../b.csv"), False),
        (JsonLines("/tmp/b.jsonl"), False),
        (TensorBoard(), True),
        (TensorBoard("/tmp/events"), False),
        (Mlflow(), False),
    ],
)
def test_who_writes_into_the_run_folder_alone(observer: RunObserver, stays: bool) -> None:
    assert observer.stays_in_folder is stays


def test_thinning_doubles_the_distance() -> None:
    thinning = Thinning(dense=4)
    assert [k for k in range(40) if thinning.wants(k)] == [0, 1, 2, 3, 5, 7, 9, 11, 15, 19, 23, 27, 35]
    many = Thinning()
    assert sum(many.wants(k) for k in range(1_000_000)) < 11_000


class TestTensorBoard:
    def test_scalars_of_the_trace(self, tmp_path: Path) -> None:
        pytest.importorskip("tensorboard")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        result = solve(
            "max_iter(25) | grad_norm(1e-30)", observers={"use": "core.tensorboard", "dir": str(tmp_path / "tb")}
        )
        found = EventAccumulator(str(tmp_path / "tb"), {"tensors": 0}).Reload()
        assert set(found.Tags()["tensors"]) >= {"value", "grad_norm", "calls/gradient", "time"}
        from tensorboard.util.tensor_util import make_ndarray

        points = {one.step: float(make_ndarray(one.tensor_proto)) for one in found.Tensors("value")}
        assert points[25] == pytest.approx(result.value, rel=1e-6) and set(points) == {0, 10, 20, 25}

    def test_without_it_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
        with pytest.raises(InputError, match=r"pip install 'infimum\[tensorboard\]'"):
            solve(observers=["core.tensorboard"])

    def test_nothing_heavy_is_imported_for_the_names(self) -> None:
        import subprocess

        code = (
            "import sys, infimum.observers as o; o.TensorBoard(); o.Mlflow(); "
            "print([m for m in ('tensorboard', 'mlflow', 'torch') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == "[]", done.stderr


class TestMlflow:
    def test_a_run_in_the_file_store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tracking = pytest.importorskip("mlflow.tracking")
        result = solve(
            "max_iter(25) | grad_norm(1e-30)", observers={"use": "core.mlflow", "uri": str(tmp_path / "mlruns")}
        )
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        client = tracking.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
        experiment = client.get_experiment_by_name("infimum")
        (run,) = client.search_runs([experiment.experiment_id])
        assert run.info.status == "FINISHED" and run.data.tags["infimum.status"] == "limit"
        assert run.data.params["solver"] == PG and run.data.params["seed"] == "0"
        assert run.data.metrics["final.value"] == result.value
        history = client.get_metric_history(run.info.run_id, "grad_norm")
        assert history[-1].step == 25 and len({one.step for one in history}) == 25

    def test_without_it_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
        if importlib.util.find_spec("mlflow") is None:
            monkeypatch.setitem(sys.modules, "mlflow", None)
        with pytest.raises(InputError, match=r"pip install 'infimum\[mlflow\]'"):
            solve(observers=["core.mlflow"])

"""A run's folder: what stands in it, taken up and repeated from it, and what is refused."""

from __future__ import annotations

import csv
import getpass
import json
import logging
import os
import platform
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, Function, InputError, Result, RunFolder, Status
from infimum.records import Rerun, manifest, solve_to_folder
from infimum.records.differences import code_differences, result_differences, surroundings_differences
from infimum.records.export import export_trace
from infimum.records.log import RunLog
from infimum.runfile import RunFile, RunFileError
from infimum.testing.compare import result_difference
from infimum.trace import Trace

MODULE = """
import os, signal
import numpy as np
from infimum.functions import Function
from infimum.problem import Composite
from records_helper import slope

def cut(at: int = 0, size: int = 3) -> Composite:
    calls = 0
    def gradient(x):
        nonlocal calls
        calls += 1
        if calls == at and not os.path.exists("go on"):
            signal.raise_signal(signal.SIGINT)
        return slope(x)
    return Composite(Function(lambda x: 0.5 * float(x @ x), gradient=gradient), start=np.ones(size))
"""
CONFIG = """\
name: cut
problem: {use: "python:records_cut:cut", at: 15}
solver: {use: splitting.gradient_descent, step: 0.1}
stopping: max_iter(30)
checkpoint: {every: 4, keep: 2}
seed: 3
"""
GD = {"use": "splitting.gradient_descent", "step": 0.1}
STATED: dict[str, Any] = {"problem": {"use": "problems.rosenbrock"}, "solver": GD | {"step": 1e-3}, "seed": 1}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "records_cut.py").write_text(MODULE)
    (tmp_path / "records_helper.py").write_text("def slope(x):\n    return 1.0 * x\n")
    (tmp_path / "run.yaml").write_text(CONFIG)
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield tmp_path
    signal.signal(signal.SIGINT, old)


def whole() -> Result:
    return RunFile.load("run.yaml", ["problem.at=0"]).prepare().solve()


def begun(folder: str = "out", *overrides: str, repetition: int = 0) -> Result:
    return solve_to_folder(RunFile.load("run.yaml", overrides), folder, repetition=repetition)


def go_on() -> None:
    Path("go on").touch()


class TestFolder:
    def test_what_stands_in_it(self) -> None:
        result = begun("out", "problem.at=0")
        assert sorted(os.listdir("out")) == [
            *("log.txt", "manifest.json", "result.json", "run.yaml", "trace.npz", "x.npz"),
        ]
        kept = RunFolder.existing("out")
        assert kept.is_finished and kept.status == "limit" and kept.checkpoint() is None
        assert result_difference(kept.result(), result) is None
        assert kept.config == RunFile.load("run.yaml", ["problem.at=0"]).resolved()
        assert kept.manifest["seed"] == 3 and kept.manifest["name"] == "cut"
        assert "limit: iteration 30 >= 30" in kept.log

    def test_after_an_interrupt(self) -> None:
        result = begun()
        kept = RunFolder.existing("out")
        assert result.status is Status.interrupted and not kept.is_finished and kept.status == "interrupted"
        assert kept.checkpoints() == [12, result.iterations]
        found = kept.checkpoint()
        assert found is not None and found[0] == result.iterations
        assert f"interrupted at iteration {result.iterations}: the state was kept" in kept.log

    def test_new_ones_never_meet(self, tmp_path: Path) -> None:
        made = [RunFolder.create(tmp_path / "runs", "a").path for _ in range(3)]
        assert len(set(made)) == 3 and all(re.fullmatch(r"\d{8}T\d{6}Z(-\d)?", one.name) for one in made)

    def test_a_folder_with_a_run_is_left_alone(self) -> None:
        begun("out", "problem.at=0")
        before = {path: path.read_bytes() for path in Path("out").iterdir()}
        with pytest.raises(InputError, match=r"already holds a run\.yaml; choose another folder"):
            begun("out")
        assert before == {path: path.read_bytes() for path in Path("out").iterdir()}

    def test_a_run_that_cannot_be_made_leaves_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(RunFileError):
            begun("deep/out", "oracles.none=zeroth.forward_difference")
        assert not (tmp_path / "deep").exists()

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: None, "there is no such folder"),
            (lambda: Path("no").mkdir(), r"holds no manifest\.json, so it is not the folder of a run"),
            (
                lambda: (Path("no").mkdir(), Path("no/many.json").touch()),
                "folder of many runs; name one of its members",
            ),
        ],
    )
    def test_folders_of_something_else(self, make: Any, words: str) -> None:
        make()
        for ask in (infimum.resume, infimum.rerun):
            with pytest.raises(InputError, match=words):
                ask("no")

    def test_a_damaged_manifest(self) -> None:
        begun()
        Path("out/manifest.json").write_text("{")
        with pytest.raises(InputError, match=r"manifest\.json: cannot be read"):
            infimum.resume("out")


class TestManifest:
    def test_it_names_what_took_part_and_nobody(self, tmp_path: Path) -> None:
        begun("out", "problem.at=0")
        facts = RunFolder("out").manifest
        assert set(facts["plugins"]) == {"core", "splitting"}
        for row in facts["plugins"].values():
            assert re.fullmatch("[0-9a-f]{64}", row["sha256"]) and row["version"]
        assert set(facts["files"]) == {"records_cut.py", "records_helper.py"}
        assert facts["versions"]["numpy"] == np.__version__ and facts["versions"]["python"] == platform.python_version()
        assert any(row["user_api"] == "blas" and row["num_threads"] for row in facts["threads"])
        assert facts["machine"]["processors"] == os.cpu_count()
        text = Path("out/manifest.json").read_text()
        hidden = {platform.node(), str(tmp_path), str(Path.home()), os.path.dirname(infimum.__file__)}
        hidden |= {getpass.getuser()} - {"root"}
        assert not [one for one in hidden if one and one in text]

    def test_variables_of_numerical_libraries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
        monkeypatch.setenv("MY_SECRET", "word")
        run_file = RunFile.load("run.yaml")
        facts = manifest(run_file, run_file.prepare())
        assert facts["environment"]["OPENBLAS_CORETYPE"] == "Haswell" and "MY_SECRET" not in facts["environment"]

    def test_data_files_count(self) -> None:
        np.save("start.npy", np.ones(3))
        run_file = RunFile.load("run.yaml", ["x0={file: start.npy}"])
        one = manifest(run_file, run_file.prepare())
        np.save("start.npy", np.zeros(3))
        other = manifest(run_file, run_file.prepare())
        assert code_differences(one, other) == ["file start.npy has changed"]


class TestResume:
    def test_bit_for_bit(self) -> None:
        begun()
        go_on()
        result = infimum.resume("out")
        assert result_difference(whole(), result) is None and result.notes == whole().notes
        kept = RunFolder("out")
        assert kept.is_finished and not kept.checkpoint_folder.exists()
        (entry,) = kept.manifest["resumed"]
        assert entry["iteration"] == 14 and entry["differences"] == []
        assert kept.log.count("resumed at iteration 14") == 1

    def test_again_and_again_with_a_repetition(self) -> None:
        begun("out", "problem.at=4", repetition=5)
        for _ in range(3):
            assert infimum.resume("out").status is Status.interrupted
        go_on()
        result = infimum.resume("out")
        expected = RunFile.load("run.yaml", ["problem.at=0"]).prepare(repetition=5).solve()
        assert result_difference(expected, result) is None
        assert len(RunFolder("out").manifest["resumed"]) == 4

    def test_one_that_has_ended(self) -> None:
        done = begun("out", "problem.at=0")
        before = Path("out/result.json").read_bytes()
        assert result_difference(infimum.resume("out"), done) is None
        assert Path("out/result.json").read_bytes() == before

    @pytest.mark.parametrize("suffix", ["json", "npz"])
    @pytest.mark.parametrize("how", ["truncated", "empty", "gone", "changed"])
    def test_a_damaged_checkpoint_costs_one_interval(
        self, suffix: str, how: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        begun()
        path = Path(f"out/checkpoints/14.{suffix}")
        content = path.read_bytes()
        if how == "gone":
            path.unlink()
        else:
            half = len(content) // 2
            flipped = content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]
            path.write_bytes({"truncated": content[:half], "empty": b"", "changed": flipped}[how])
        go_on()
        assert result_difference(whole(), infimum.resume("out")) is None
        assert RunFolder("out").manifest["resumed"][0]["iteration"] == 12
        if suffix == "npz" or how != "gone":
            assert "the checkpoint at iteration 14 is passed over" in caplog.text
            assert "resumed at iteration 12; what came after it is computed again" in RunFolder("out").log

    def test_without_any_it_begins_at_the_start(self, caplog: pytest.LogCaptureFixture) -> None:
        begun()
        for path in Path("out/checkpoints").iterdir():
            path.write_bytes(b"")
        go_on()
        assert result_difference(whole(), infimum.resume("out")) is None
        assert "none of its checkpoints can be read, so the run begins at its start" in caplog.text

    def test_a_failed_run_goes_on_from_its_last_checkpoint(self) -> None:
        text = Path("records_cut.py").read_text()
        Path("records_cut.py").write_text(text.replace("signal.raise_signal(signal.SIGINT)", "raise OSError('gone')"))
        assert begun().status is Status.failed
        assert RunFolder("out").checkpoints() == [8, 12]
        go_on()
        assert result_difference(whole(), infimum.resume("out")) is None

    def test_changed_code_is_refused_unless_forced(self) -> None:
        begun()
        Path("records_helper.py").write_text("def slope(x):\n    return 1.0 * x  # the same\n")
        go_on()
        with pytest.raises(
            InputError, match=r"has changed, so it would(.|\n)*file records_helper\.py has changed(.|\n)*--force"
        ):
            infimum.resume("out")
        result = infimum.resume("out", force=True)
        assert result.iterations == 30
        assert RunFolder("out").manifest["resumed"][0]["differences"] == ["file records_helper.py has changed"]

    def test_other_plugins_are_refused(self) -> None:
        begun()
        facts = RunFolder("out").manifest
        facts["plugins"]["splitting"]["version"] = "0.0.9"
        facts["machine"]["processor"] = "another"
        RunFolder("out").write_manifest(facts)
        go_on()
        with pytest.raises(InputError, match=r"plugin splitting: infimum-splitting 0\.0\.9 then, \S+ now"):
            infimum.resume("out")
        infimum.resume("out", force=True)
        assert "machine: processor was 'another'" in RunFolder("out").log

    def test_what_keeps_no_state_is_refused_with_the_reason(self) -> None:
        problem = Composite(Function(value_and_gradient=lambda x: (float(x @ x), 2 * x)))
        stated: dict[str, Any] = {"solver": "scipy.l_bfgs_b", "seed": 0}
        infimum.solve(problem, np.ones(2), **stated, callback=lambda p: p.iteration == 1, folder="out")
        with pytest.raises(InputError, match=r"cannot be resumed: scipy\.l_bfgs_b keeps no state(.|\n)*infimum rerun"):
            infimum.resume("out", problem, np.ones(2), **stated)

    def test_replay_runs_again_from_the_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from infimum_splitting import GradientDescent

        monkeypatch.setattr(GradientDescent, "resume", "replay")
        begun()
        assert RunFolder("out").checkpoints() == []
        go_on()
        result = infimum.resume("out")
        assert result_difference(whole(), result) is None
        assert "is resumed by running again from the start (resume = replay)" in RunFolder("out").log

    def test_two_at_once(self) -> None:
        begun()
        kept = RunFolder("out")
        with kept.locked(), pytest.raises(InputError, match="another process is at this run"):
            infimum.resume("out")
        go_on()
        assert infimum.resume("out").iterations == 30

    def test_two_that_begin_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begun()
        before = {path.name: path.read_bytes() for path in Path("out").iterdir() if path.is_file()}
        # The second one has looked at the folder before the first one wrote its files.
        monkeypatch.setattr(RunFolder, "at", classmethod(lambda cls, path: cls(path)))
        with RunFolder("out").locked(), pytest.raises(InputError, match="another process is at this run"):
            begun()
        assert {path.name: path.read_bytes() for path in Path("out").iterdir() if path.is_file()} == before


class TestFromPython:
    def closure(self, at: int = 0) -> Composite:
        calls = 0

        def gradient(x: np.ndarray) -> np.ndarray:
            nonlocal calls
            calls += 1
            if calls == at:
                signal.raise_signal(signal.SIGINT)
            return 2 * x

        return Composite(Function(lambda x: float(x @ x), gradient=gradient))

    def test_plain_data_state_the_whole_run(self) -> None:
        options = {**STATED, "stopping": "max_iter(40)", "checkpoint": {"every": 10}, "x0": np.array([0.1, -0.7])}
        result = infimum.solve(**options, folder="out")
        kept = RunFolder("out")
        assert kept.has_config and kept.config["problem"]["use"] == "problems.rosenbrock"
        assert kept.config["x0"] == [0.1, -0.7] and kept.manifest["python_arguments"] == []
        assert infimum.rerun("out").same
        assert result_difference(infimum.resume("out"), result) is None

    def test_objects_have_to_be_given_again(self) -> None:
        stated: dict[str, Any] = {"solver": GD, "stopping": "max_iter(30)"}
        first = infimum.solve(self.closure(at=9), np.ones(2), **stated, folder="out", checkpoint={"every": 3})
        assert first.status is Status.interrupted and not RunFolder("out").has_config
        words = r"from objects that no file holds \(problem\); give the arguments of its infimum\.solve again"
        for ask in (infimum.resume, infimum.rerun):
            with pytest.raises(InputError, match=words):
                ask("out")
        result = infimum.resume("out", self.closure(), np.ones(2), **stated)
        whole = infimum.solve(self.closure(), np.ones(2), **stated, seed=first.seed)
        assert result_difference(whole, result) is None
        again = infimum.rerun("out", self.closure(), np.ones(2), **stated, output="again")
        assert again.same and (RunFolder("again").manifest["seed"] == first.seed)

    def test_other_objects_are_refused(self) -> None:
        infimum.solve(self.closure(at=9), np.ones(2), solver=GD, seed=0, folder="out")
        with pytest.raises(InputError, match=r"checkpoint at iteration 8 is of another run(.|\n)*another options"):
            infimum.resume("out", self.closure(), np.ones(2), solver=GD | {"step": 0.2})
        with pytest.raises(InputError, match="another rule"):
            infimum.resume("out", self.closure(), np.ones(2), solver=GD, stopping="max_iter(3)")

    @pytest.mark.parametrize(
        ("more", "missing"),
        [
            ({"callback": lambda p: None}, "callback"),
            ({"average": True}, "average"),
            ({"x0": {"u": np.ones(2)}}, "x0"),
            ({"divergence": 1e9}, "divergence"),
            ({"solver": object()}, "solver"),
        ],
    )
    def test_which_arguments_no_file_holds(self, more: dict[str, Any], missing: str) -> None:
        from infimum.records.stated import stated_config

        run = infimum.prepare(**STATED)
        options = {**STATED, **more}
        problem, x0 = options.pop("problem"), options.pop("x0", None)
        config, text, named = stated_config(run, problem, x0, options)
        assert (config, text, named) == ({}, "", [missing])

    def test_python_references_and_every_option_that_a_file_has(self) -> None:
        options: dict[str, Any] = {
            "problem": {"use": "python:records_cut:cut"},
            "solver": GD,
            "assign": {"smooth": "objective"},
            "stopping": "max_iter(12)",
            "check_every": 2,
            "value_every": 4,
            "record": ["rel_change"],
            "max_rows": 64,
            "constraints": [],
            "seed": 4,
        }
        infimum.solve(**options, folder="out")
        assert RunFolder("out").has_config
        done = infimum.rerun("out")
        assert done.same and done.before is not None and "rel_change" in (done.before.trace or ())

    def test_checkpoints_need_a_folder(self) -> None:
        with pytest.raises(InputError, match=r"needs a folder to write to: give folder="):
            infimum.solve(**STATED, checkpoint={"every": 5})
        with pytest.raises(InputError, match="every='soon'"):
            infimum.solve(**STATED, checkpoint={"every": "soon"}, folder="out")
        assert not Path("out").exists()

    def test_the_folder_states_its_run_itself(self) -> None:
        begun()
        with pytest.raises(InputError, match="leave out x0, solver"):
            infimum.resume("out", x0=np.ones(3), solver=GD)


class TestRerun:
    def test_the_same(self) -> None:
        begun("out", "problem.at=0")
        done = infimum.rerun("out")
        assert done.same and isinstance(done, Rerun) and done.repeated.parent == Path("runs/cut")
        assert "since then nothing has changed" in str(done) and "the same, bit for bit" in str(done)
        assert RunFolder(done.repeated).is_finished

    def test_what_differs_is_said(self) -> None:
        begun("out", "problem.at=0")
        Path("records_helper.py").write_text("def slope(x):\n    return 1.01 * x\n")
        import sys

        for name in ("records_cut", "records_helper"):
            sys.modules.pop(name, None)
        done = infimum.rerun("out")
        text = str(done)
        assert not done.same and done.made_of == ["file records_helper.py has changed"]
        assert "x differs in 3 of 3 entries, by at most" in text and "trace column value differs from iteration" in text
        assert re.search(r"value was \S+, is \S+ \(", text)

    def test_of_an_interrupted_one(self) -> None:
        begun()
        go_on()
        done = infimum.rerun("out")
        assert not done.same and "the original was interrupted at iteration 14" in str(done)

    def test_of_a_killed_one(self) -> None:
        begun()
        Path("out/result.json").unlink()
        go_on()
        done = infimum.rerun("out")
        assert done.before is None and not done.same and "no result to compare with" in str(done)

    def test_differences_of_results(self) -> None:
        one, other = whole(), whole()
        assert result_differences(one, other) == []
        other.x = other.x + np.array([0.0, 1e-9, 0.0])
        other.evaluations = {"objective": {"gradient": 1}}
        other.best_x = None
        said = "\n".join(result_differences(one, other))
        assert "x differs in 1 of 3 entries, by at most 1e-09" in said
        assert "evaluations: objective was" in said and "best_x was ndarray, is NoneType" in said

    def test_threads_of_libraries_that_are_loaded_in_one_case_only(self) -> None:
        blas = {"user_api": "blas", "internal_api": "openblas", "version": "1", "num_threads": 1}
        other = {**blas, "version": "2"}
        assert surroundings_differences({"threads": [blas]}, {"threads": [blas, other]}) == []
        (said,) = surroundings_differences({"threads": [blas]}, {"threads": [{**blas, "num_threads": 2}]})
        assert "1 threads" in said and "2 threads" in said


class TestLog:
    def test_handlers_see_what_they_would_have_seen(self, tmp_path: Path) -> None:
        logger, seen = logging.getLogger("infimum"), []

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                seen.append(record.getMessage())

        handler, level = Handler(), logger.level
        logger.addHandler(handler)
        try:
            with RunLog(tmp_path / "one.txt"), RunLog(tmp_path / "two.txt"):
                logger.info("quiet")
                logger.warning("loud")
            logger.info("after")
        finally:
            logger.removeHandler(handler)
        assert seen == ["loud"] and logger.level == level
        for name in ("one.txt", "two.txt"):
            lines = (tmp_path / name).read_text().splitlines()
            assert [line.split(" ", 1)[1] for line in lines] == ["INFO quiet", "WARNING loud"]

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
    def test_a_log_on_a_full_disk_costs_nothing(self) -> None:
        Path("out").mkdir()
        os.symlink("/dev/full", "out/log.txt")
        result = begun("out", "problem.at=0")
        assert result_difference(whole(), result) is None and RunFolder("out").is_finished

    def test_a_result_that_cannot_be_written_comes_back(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def full(*args: Any, **options: Any) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("infimum.result.save_tree", full)
            result = begun("out", "problem.at=0")
        assert result.iterations == 30 and any("could not be written to out" in note for note in result.notes)
        assert "No space left" in caplog.text
        kept = RunFolder("out")
        # What was kept on the way is there still, and leads to the same.
        assert kept.checkpoints() == [24, 28] and not kept.is_finished
        assert result_difference(infimum.resume("out"), whole()) is None


class TestExport:
    def test_csv_reads_back(self) -> None:
        result = begun("out", "problem.at=0")
        assert result.trace is not None
        path = export_trace("out")
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert path == Path("out/trace.csv") and list(rows[0]) == list(result.trace)
        for name in ("iteration", "value", "time"):
            column = [float(row[name] or "nan") for row in rows]
            np.testing.assert_array_equal(column, result.trace[name])
        assert rows[3]["iteration"] == "3" and rows[3]["calls.gradient"] == "4"

    def test_what_was_not_computed_is_empty(self, tmp_path: Path) -> None:
        run = RunFile.load("run.yaml", ["problem.at=0"]).prepare()
        run.solve()
        result = run.solve()
        result.trace = Trace({"iteration": np.array([0.0, 7.0]), "value": np.array([np.nan, 0.1])})
        begun("out", "problem.at=0")
        result.save("out", replace=True)
        assert export_trace("out").read_text().splitlines() == ["iteration,value", "0,", "7,0.1"]

    def test_parquet_reads_back(self, tmp_path: Path) -> None:
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        result = begun("out", "problem.at=0")
        assert result.trace is not None
        frame = pd.read_parquet(export_trace("out", "parquet", tmp_path / "t.parquet"))
        assert frame["iteration"].dtype == "Int64" and list(frame) == list(result.trace)
        np.testing.assert_array_equal(frame["value"].to_numpy(float), result.trace["value"])

    def test_refusals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        begun("out", "problem.at=0", "trace.max_rows=0")
        with pytest.raises(InputError, match=r"recorded no trace"):
            export_trace("out")
        with pytest.raises(InputError, match="expected one of csv, parquet"):
            export_trace("out", "xls")
        begun("two", "problem.at=0")
        import sys

        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(InputError, match=r"needs pandas and pyarrow(.|\n)*infimum\[export\]"):
            export_trace("two", "parquet")


def test_results_are_json_that_others_read() -> None:
    begun("out", "problem.at=0")
    content = json.loads(Path("out/result.json").read_text())
    assert content["data"]["status"] == "limit" and set(content["files"]) == {"x.npz", "trace.npz"}

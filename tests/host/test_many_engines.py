"""Members that crash, hang, raise or cannot be sent; interrupts, kills, full disks: nothing finished is lost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum.many import guard
from infimum.many.engines import Settings
from infimum.many.execute import Job
from infimum.many.planning import from_path
from infimum.many.store import Store
from infimum.many.task import Task

MODULE = """
import os, signal, time
import numpy as np
from infimum import Composite, Function

def make(how: str = "good", nap: float = 0.0, noise: bool = False) -> Composite:
    def gradient(x):
        if nap: time.sleep(nap)
        if how == "exit": os._exit(3)
        if how == "segfault": os.kill(os.getpid(), signal.SIGSEGV)
        if how == "raise": raise RuntimeError("no luck")
        if how == "nan": return x * np.nan
        if how == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        if how == "say": print("a word from a member")
        return x
    if how == "leave": raise SystemExit(4)
    return Composite(Function(lambda x: 0.5 * float(x @ x), gradient=gradient), start=np.full(3, 2.0))
"""
RUN = """
problem: {use: "python:x_engine_own:make"}
solver: {use: splitting.gradient_descent, step: 0.1}
stopping: max_iter(20)
seed: 1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INFIMUM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "x_engine_own.py").write_text(MODULE)
    (tmp_path / "run.yaml").write_text(RUN)
    (tmp_path / "slow.yaml").write_text(RUN + "repeat: 12\n")
    return tmp_path


def test_every_way_to_fail_is_a_result_of_its_member(folder) -> None:
    ways = ["good", "exit", "segfault", "raise", "nan", "hang", "say"]
    runs = infimum.sweep("run.yaml", product={"problem.how": ways}, jobs=2, timeout=5.0, folder="out")
    found = {one.values["problem.how"]: one for one in runs}
    assert {how: one.status for how, one in found.items()} == {
        "good": "limit", "exit": "crashed", "segfault": "crashed", "raise": "failed", "nan": "nonfinite",
        "hang": "timeout", "say": "limit",
    }  # fmt: skip
    assert found["exit"].error == "its process ended with exit code 3"
    assert "SIGSEGV" in found["segfault"].error and "no luck" in found["raise"].error
    assert "RuntimeError" in found["raise"].traceback and "5 s" in found["hang"].error
    assert found["nan"].result.status == "nonfinite" and found["exit"].result is None
    # What is on the disk says the same.
    again = infimum.Runs.load("out")
    assert [(one.name, one.status, one.error) for one in again] == [(one.name, one.status, one.error) for one in runs]
    np.testing.assert_array_equal(again["how=good"].result.x, found["good"].result.x)
    # On demand the lost ones are run again, and only they.
    before = (folder / "out" / "members.jsonl").read_text().count("\n")
    infimum.sweep("run.yaml", product={"problem.how": ways}, jobs=2, timeout=1.0, folder="out", resume=True)
    assert (folder / "out" / "members.jsonl").read_text().count("\n") == before
    infimum.sweep(
        "run.yaml", product={"problem.how": ways}, jobs=2, timeout=1.0, folder="out", resume=True, retry_failed=True
    )
    assert (folder / "out" / "members.jsonl").read_text().count("\n") == before + 5


def test_one_job_runs_here_and_gives_the_same_bits_as_workers(folder) -> None:
    varied = {"solver.step": [0.1, 0.2]}
    here = infimum.sweep("run.yaml", product=varied, repeat=2, jobs=1, cache=False)
    there = infimum.sweep("run.yaml", product=varied, repeat=2, jobs=2, cache=False, engine="threading")
    assert [one.name for one in here] == [one.name for one in there]
    for one, other in zip(here, there, strict=True):
        np.testing.assert_array_equal(one.result.x, other.result.x)
        assert one.result.evaluations == other.result.evaluations


def test_a_member_that_leaves_or_raises_here_is_a_result_too(folder) -> None:
    runs = infimum.sweep("run.yaml", product={"problem.how": ["raise", "good"]}, jobs=1)
    assert [one.status for one in runs] == ["failed", "limit"]


def test_a_time_limit_keeps_what_a_member_has_by_then(folder) -> None:
    (folder / "run.yaml").write_text(RUN.replace("max_iter(20)", "max_iter(100000)"))
    (only,) = infimum.sweep("run.yaml", product={"problem.nap": [0.02]}, timeout=3.0)
    assert only.status == "timeout" and only.error.endswith("ended after its iteration")
    assert only.result.iterations >= 1


def test_objects_and_closures_go_to_workers_by_value(folder) -> None:
    shift = np.arange(3.0)

    def objective(x):
        return float((x - shift) @ (x - shift))

    objective.__module__ = "__main__"
    runs = infimum.sweep(objective, x0=np.zeros(3), solver="scipy.nelder_mead", seed=1, repeat=2, jobs=2)
    assert {one.status for one in runs} <= {"converged", "stalled"}
    np.testing.assert_allclose(runs[0].result.x, shift, atol=1e-3)
    assert [one.config for one in runs] == [{}, {}]


def test_processes_are_used_again_in_the_folder_where_the_sweep_is_made(folder, monkeypatch) -> None:
    def objective(x):
        return float(x @ x) + len(os.path.basename(os.getcwd()))

    objective.__module__ = "__main__"
    found, before = {}, set(guard._children)
    for name in ("one", "three", "one"):
        (folder / name).mkdir(exist_ok=True)
        monkeypatch.chdir(folder / name)
        (run,) = infimum.sweep(
            objective, x0=np.zeros(2), solver="scipy.nelder_mead", seed=1, engine="threading", jobs=1
        )
        found[name] = run.result.value
    assert round(found["three"] - found["one"]) == 2
    assert len({one for one in guard._children if one.alive} - before) == 2


def test_what_cannot_be_sent_is_refused_with_the_reason(folder) -> None:
    import threading

    lock = threading.Lock()

    def objective(x):
        with lock:
            return float(x @ x)

    with pytest.raises(InputError, match=r"cannot be sent to another process.*give jobs=1"):
        infimum.sweep(objective, x0=np.ones(2), solver="scipy.nelder_mead", repeat=2, jobs=2)
    assert len(infimum.sweep(objective, x0=np.ones(2), solver="scipy.nelder_mead", repeat=2, jobs=1)) == 2


def test_at_equal_seconds_time_for_the_record_is_not_counted_and_runs_take_turns(folder) -> None:
    found = infimum.compare(
        {"use": "python:x_engine_own:make", "nap": 0.005},
        {name: {"use": "splitting.gradient_descent", "step": step} for name, step in (("a", 0.1), ("b", 0.2))},
        budget={"seconds": 0.1}, seed=1, repeat=2, jobs=1,
    )  # fmt: skip
    assert {one.status for one in found} == {"limit"}
    for one in found:
        assert 0.1 <= one.seconds <= 0.2 and "the solver took" in one.result.message
        assert one.seconds <= one.result.elapsed
    order = [line["name"] for line in Store(found.folder).lines().values()] if found.folder else None
    assert order is None
    with pytest.raises(InputError, match="one at a time"):
        infimum.compare("problems.rosenbrock", ["scipy.bfgs"], budget={"seconds": 1}, jobs=2)


def test_values_may_be_arrays_and_ranges() -> None:
    for values in (np.array([2, 4]), range(2, 5, 2), (2, 4)):
        runs = infimum.sweep(
            "problems.rosenbrock", solver="scipy.bfgs", seed=1, jobs=1, cache=False, product={"problem.n": values}
        )
        assert [one.values for one in runs] == [{"problem.n": 2}, {"problem.n": 4}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"jbos": 2}, "sweep has no option 'jbos'; did you mean 'jobs'?"),
        ({"stoping": "max_iter(3)"}, "sweep has no option 'stoping'; did you mean 'stopping'?"),
        ({"cache": 3}, "cache=3: expected True, False or a folder"),
    ],
)
def test_options_are_checked(options, said: str) -> None:
    with pytest.raises(InputError) as caught:
        infimum.sweep("problems.rosenbrock", solver="scipy.bfgs", seed=1, repeat=2, **{"jobs": 1, **options})
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "lokky"}, "did you mean 'loky'"),
        ({"engine": "loky:8"}, "only dask takes an address"),
        ({"jobs": 0}, "jobs=0"),
        ({"timeout": 0.0}, "timeout=0.0"),
        ({"threads": 0}, "threads=0"),
    ],
)
def test_settings_are_checked(options, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Settings(**options)


def script(folder, body: str):
    (folder / "script.py").write_text(textwrap.dedent(body))
    return [sys.executable, "script.py"]


def finished(folder) -> dict[str, str]:
    """Lines on the disk that are complete, and the folders they tell of."""
    try:
        lines = (folder / "out" / "members.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return {}
    return {one["id"]: one["status"] for one in map(json.loads, lines)}


SLOW = """
import signal
import infimum
# A shell starts what goes on in the background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
runs = infimum.sweep("slow.yaml", overrides=["problem.nap=0.01"], jobs={jobs}, folder="out", resume=True, cache=False)
print(runs.complete)
"""


@pytest.mark.parametrize(
    ("number", "jobs"),
    [(signal.SIGINT, 1), pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow), (signal.SIGKILL, 2)],
)
def test_what_is_finished_outlives_interrupts_and_kills(folder, number, jobs: int) -> None:
    command = script(folder, SLOW.format(jobs=jobs))
    kept: dict[str, str] = {}
    rng = np.random.default_rng(int(number) + jobs)
    for _ in range(2):
        # Workers may outlive a process that is killed by a second, and would hold a pipe open.
        with open("said.txt", "wb") as said:
            child = subprocess.Popen(command, start_new_session=True, stdout=said, stderr=said)
        goal = len(kept) + 1
        until = time.monotonic() + 120
        while len(finished(folder)) < goal and child.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0, 0.3)))
        os.kill(child.pid, number)
        child.wait(60)
        out = (folder / "said.txt").read_text()
        if number == signal.SIGINT and child.returncode == 0:
            assert "False" in out or len(finished(folder)) == 12, out
        now = finished(folder)
        assert set(kept) <= set(now) and now
        assert all((folder / "out" / "members" / one / "result.json").is_file() for one in now)
        kept = now
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "True" in done.stdout, done.stderr
    lines = (folder / "out" / "members.jsonl").read_text().splitlines()
    assert len(finished(folder)) == 12 and len(lines) == 12, "a finished run was run again"
    left = [one.name for one in (folder / "out" / "members").iterdir()]
    assert not [name for name in left if name.endswith(".partial")] and len(left) == 12


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are found in /proc")
def test_a_worker_that_is_killed_neither_hangs_the_sweep_nor_loses_a_run(folder) -> None:
    command = script(folder, SLOW.format(jobs=2))
    child = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until, killed = time.monotonic() + 120, 0
    while not killed and child.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
        for worker in workers(child.pid) if finished(folder) else ():
            os.kill(worker, signal.SIGKILL)
            killed += 1
            break
    kept = finished(folder)
    out, err = child.communicate(timeout=180)
    assert killed == 1 and child.returncode == 0 and "True" in out, err
    assert "the workers broke" in err and kept
    assert set(finished(folder).values()) == {"limit"} and len(finished(folder)) == 12
    lines = (folder / "out" / "members.jsonl").read_text().splitlines()
    assert len(lines) == 12, "a finished run was run again"
    runs = infimum.Runs.load("out")
    assert {one.result.status for one in runs} == {"limit"}


def workers(parent: int) -> list[int]:
    """Loky's workers of a process."""
    found = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            above = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if above == parent and b"popen_loky" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def test_a_full_disk_ends_the_sweep_with_what_is_finished(folder) -> None:
    body = """
    import errno, infimum
    from infimum.errors import InfimumError
    from infimum.many import store
    true, count = store.os.fsync, 0
    def full(handle):
        global count
        count += 1
        if count > 6: raise OSError(errno.ENOSPC, "No space left on device")
        true(handle)
    store.os.fsync = full
    try:
        infimum.sweep("slow.yaml", jobs=1, folder="out", cache=False)
    except InfimumError as error:
        print("told:", error)
    """
    done = subprocess.run(script(folder, body), capture_output=True, text=True, timeout=120)
    assert "No space left on device" in done.stdout and "--resume" in done.stdout, done.stderr
    before = finished(folder)
    assert 1 <= len(before) < 12 and set(before.values()) == {"limit"}
    runs = infimum.sweep("slow.yaml", jobs=1, folder="out", cache=False, resume=True)
    assert runs.complete and set(before) <= set(finished(folder))
    assert len((folder / "out" / "members.jsonl").read_text().splitlines()) == 12


def test_a_run_folder_that_cannot_be_written_ends_the_sweep(folder) -> None:
    body = """
    import resource, signal, infimum
    from infimum.errors import InfimumError
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    try:
        infimum.sweep("slow.yaml", overrides=["trace.max_rows=4096"], jobs=1, folder="out", cache=False)
    except (InfimumError, OSError) as error:
        print("told:", error)
    """
    done = subprocess.run(script(folder, body), capture_output=True, text=True, timeout=120)
    assert "told:" in done.stdout and "too large" in done.stdout, (done.stdout, done.stderr)


def test_a_line_that_was_cut_off_is_no_line(folder) -> None:
    runs = infimum.sweep("run.yaml", repeat=3, jobs=1, folder="out", cache=False)
    path = folder / "out" / "members.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert [one.status for one in infimum.Runs.load("out")].count("interrupted") == 1
    # Its folder is complete: it is taken over without a run.
    again = infimum.sweep("run.yaml", repeat=3, jobs=1, folder="out", cache=False, resume=True)
    assert [one.status for one in again] == ["limit"] * 3 and len(runs) == 3
    assert len(path.read_text().splitlines()) == 3


def test_finished_runs_of_older_code_are_run_again_and_that_is_said(folder, caplog) -> None:
    infimum.sweep("run.yaml", repeat=2, jobs=1, folder="out", cache=False)
    (folder / "x_engine_own.py").write_text(MODULE + "\n# changed\n")
    runs = infimum.sweep("run.yaml", repeat=2, jobs=1, folder="out", cache=False, resume=True)
    assert "2 finished runs are of an older state" in caplog.text
    assert any("older state" in note for note in runs.notes)


def test_folders_inside_a_run_folder_travel(folder) -> None:
    watched = "observers: [{use: core.csv, path: a/b.csv}]\n"
    (folder / "watched.yaml").write_text((folder / "run.yaml").read_text() + watched)
    (folder / "out" / "members").mkdir(parents=True)
    (planned,) = from_path("watched.yaml", repeat=1).members
    # Without a folder, as for a worker on another machine: the files come back with the outcome.
    task = Task(planned.id, planned.config, "watched.yaml", line=planned.line)
    Job([task], Store(folder / "out"), Settings(here=True)).run()
    written = folder / "out" / "members" / planned.id / "a" / "b.csv"
    assert written.read_text().startswith("iteration,")


@pytest.mark.slow
def test_dask_runs_the_same_sweep_and_survives_crashes(folder) -> None:
    pytest.importorskip("distributed")
    body = """
    import infimum
    if __name__ == "__main__":
        runs = infimum.sweep("run.yaml", product={"problem.how": ["good", "exit", "raise", "say"]}, jobs=2,
                             engine="dask", folder="out")
        print([one.status for one in runs])
    """
    done = subprocess.run(script(folder, body), capture_output=True, text=True, timeout=280)
    assert "['limit', 'crashed', 'failed', 'limit']" in done.stdout, done.stderr
    assert (folder / "out" / "members.jsonl").read_text().count("\n") == 4
    here = infimum.sweep("run.yaml", product={"problem.how": ["good"]}, jobs=1, cache=False)
    np.testing.assert_array_equal(infimum.Runs.load("out")["how=good"].result.x, here[0].result.x)


@pytest.mark.slow
def test_ray_runs_through_joblib(folder) -> None:
    pytest.importorskip("ray", reason="Ray is optional and not in CI")
    runs = infimum.sweep("run.yaml", product={"problem.how": ["good", "exit"]}, jobs=2, engine="ray")
    assert [one.status for one in runs] == ["limit", "crashed"]

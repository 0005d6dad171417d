"""Studies in files and databases: taken up, shared by processes, reported. SQLite and the journal always, PostgreSQL
where its server is found."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest

import infimum
from infimum.errors import InputError
from infimum.plugins.registry import get_registry
from infimum.status import Status
from infimum_optuna import BlackBox, History, Random, open_storage, result_of, results_of, stop_when
from infimum_optuna.storage import hidden, is_storage

PROGRAMS = ("/usr/local/bin", "/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/15/bin")


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *PROGRAMS]))


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """Address of a server of this module's own, in a folder of its own, reached by a socket there."""
    server, setup = _program("postgres"), _program("initdb")
    if server is None or setup is None:
        pytest.skip("PostgreSQL is not found: no programs postgres and initdb")
    pytest.importorskip("psycopg2", reason="PostgreSQL is found, its driver psycopg2 is not")
    folder = tempfile.mkdtemp(prefix="pg", dir="/tmp")  # The path of a socket must be short.
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # The server refuses to run as root.
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    data = f"{folder}/data"
    options = ["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]
    subprocess.run([setup, "-D", data, *options], check=True, capture_output=True, cwd=folder, **user)
    with open(f"{folder}/log", "w", encoding="utf-8") as log:
        switches = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=40"]
        process = subprocess.Popen(
            [server, "-D", data, "-k", folder, *switches], stdout=log, stderr=log, cwd=folder, **user
        )
    try:
        _wait_for(folder, process)
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        process.send_signal(signal.SIGINT)  # SIGTERM would wait for the pools of connections to be closed.
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(folder: str, process: subprocess.Popen[bytes]) -> None:
    import psycopg2

    for _ in range(300):
        try:
            psycopg2.connect(host=folder, user="postgres", dbname="postgres").close()
            return
        except psycopg2.OperationalError:
            if process.poll() is not None:
                break
            time.sleep(0.1)
    pytest.fail(f"PostgreSQL did not start: {Path(folder, 'log').read_text(encoding='utf-8')[-500:]}")


@pytest.fixture(params=["sqlite", "journal", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A storage for one test."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/study.db"
    if request.param == "journal":
        return f"{tmp_path}/study.log"
    return str(request.getfixturevalue("postgres"))


LESS_POSTGRES = ["sqlite", "journal", pytest.param("postgresql", marks=pytest.mark.slow)]


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name


def square(params: dict[str, Any]) -> tuple[float, float]:
    return params["x"] ** 2, 1.0


SPACE = {"x": {"low": -1.0, "high": 1.0}}


def test_a_stored_study_is_gone_on_with(address: str, name: str) -> None:
    """A second run sees the first one's trials, starts at their best, and its own seeds go on."""

    def solve(n: int) -> infimum.Result:
        solver = Random(storage=address, study=name)
        return infimum.solve(BlackBox(square, SPACE), solver=solver, stopping=f"max_iter({n})", seed=1, record=["best"])

    first, second = solve(6), solve(4)
    study = optuna.load_study(study_name=name, storage=open_storage(address))
    assert len(study.trials) == 10 and len({one.params["x"] for one in study.trials}) == 10
    assert second.trace["value"][0] == first.best_value and second.best_value <= first.best_value
    assert second.best_value == study.best_value and History(study.trials).total_cost == 10.0
    assert second.trace["best"].tolist()[0] == first.best_value
    whole = infimum.solve(BlackBox(square, SPACE), solver="optuna.random", stopping="max_iter(10)", seed=1)
    assert whole.best_value == study.best_value, "the same trials as of one run in memory"


@pytest.mark.parametrize("address", LESS_POSTGRES, indirect=True)
def test_a_study_of_the_other_direction_or_with_several_objectives_is_refused(address: str, name: str) -> None:
    storage = open_storage(address)
    optuna.create_study(storage=storage, study_name=name, direction="maximize")
    optuna.create_study(storage=storage, study_name=f"{name} two", directions=["minimize", "minimize"])
    for study, said in ((name, "is to maximize, the problem says minimize"), (f"{name} two", "has 2 objectives")):
        with pytest.raises(InputError, match=said):
            infimum.solve(BlackBox(square, SPACE), solver=Random(storage=address, study=study), stopping="max_iter(1)")


def test_a_resumed_study_does_not_count_twice(address: str, name: str) -> None:
    """Two pieces in two storages objects, the second with all that was said in the first one to be read again."""
    for piece in (5, 50):
        study = optuna.create_study(storage=open_storage(address), study_name=name, load_if_exists=True)
        stopper = stop_when("max_iter(8)")
        study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=piece, callbacks=[stopper])
    assert len(study.trials) == 8 and stopper.trace(study)["iteration"].tolist() == list(range(1, 9))


WORKER = """
import sys, time, optuna, infimum
from infimum_optuna import BlackBox, Random, open_storage, stop_when
optuna.logging.set_verbosity(optuna.logging.ERROR)
address, name, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])

study = optuna.load_study(study_name=name, storage=open_storage(address))
stopper = stop_when("max_iter(12)")
def objective(trial):
    time.sleep(0.02)
    return trial.suggest_float("x", 0, 1)
study.optimize(objective, n_trials=500, n_jobs=jobs, callbacks=[stopper])
print(stopper.stop(study).status, len(stopper.trace(study)["iteration"]))

box = BlackBox(lambda p: p["x"] ** 2, {"x": {"low": -1.0, "high": 1.0}})
solver = Random(storage=address, study=name + " ours")
print(infimum.solve(box, solver=solver, stopping="max_iter(6)", seed=4).iterations)
"""


@pytest.mark.parametrize(
    "address",
    ["journal", *(pytest.param(one, marks=pytest.mark.slow) for one in ("sqlite", "postgresql"))],
    indirect=True,
)
def test_several_processes_work_on_one_storage(address: str, name: str) -> None:
    """Callbacks stop their own process when the study as a whole is done; runs of one seed draw no number twice."""
    for study in (name, f"{name} ours"):
        optuna.create_study(storage=open_storage(address), study_name=study)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, address, name, jobs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for jobs in ("1", "2")
    ]
    said = [worker.communicate(timeout=200) for worker in workers]
    assert [out.split()[0] for out, _ in said] == ["limit", "limit"], said
    assert all(int(out.split()[1]) >= 12 for out, _ in said), "each counted the trials of the other, too"
    trials = optuna.load_study(study_name=name, storage=open_storage(address)).trials
    assert 12 <= len(trials) <= 12 + 3 and all(one.state.is_finished() for one in trials)
    assert [out.split()[2] for out, _ in said] == ["6", "6"], said
    trials = optuna.load_study(study_name=f"{name} ours", storage=open_storage(address)).trials
    assert sorted(one.number for one in trials) == list(range(12))
    assert len({one.params["x"] for one in trials}) == 12


@pytest.mark.parametrize("address", LESS_POSTGRES, indirect=True)
def test_a_run_on_a_storage_cannot_be_resumed_but_one_in_memory_can(address: str, name: str) -> None:
    run = infimum.prepare(
        BlackBox(square, SPACE), solver=Random(storage=address, study=name), stopping="max_iter(3)", seed=0
    )
    assert run.plan.resume == "none"
    run.solve()
    with pytest.raises(InputError, match="cannot be resumed"):
        run.state_dict()
    assert infimum.prepare(BlackBox(square, SPACE), solver="optuna.random", seed=0).plan.resume == "exact"


@pytest.mark.parametrize("address", LESS_POSTGRES, indirect=True)
def test_studies_are_reported_whoever_made_them(address: str, name: str) -> None:
    storage = open_storage(address)
    study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
    optuna.create_study(storage=storage, study_name=f"{name} two", directions=["minimize", "minimize"])

    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("cost", 2.0)
        if trial.number == 2:
            raise optuna.TrialPruned
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=5)
    study.ask()
    (label, result), *more = results_of(f"{address}#{name}")
    assert label == name and not more and result.status is Status.interrupted
    assert result.best_value == study.best_value and result.best_x == study.best_params and result.iterations == 5
    assert result.trace is not None and result.trace["total_cost"].tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert result.trace["value"][result.best_iteration - 1] == study.best_value
    assert "4 complete, 1 pruned, 1 running" in result.message
    assert result.extras["optuna"]["trials"] == {"COMPLETE": 4, "PRUNED": 1, "RUNNING": 1}
    assert name in [label for label, _ in results_of(address)]
    assert [one for one, _ in results_of(address) if one.endswith("two")] == [], "left out, with a warning in the log"
    with pytest.raises(InputError, match="has 2 objectives"):
        results_of(f"{address}#{name} two")
    with pytest.raises(InputError, match="has no study 'nobody'"):
        results_of(f"{address}#nobody")
    found = [one for one in get_registry().call_hook("infimum_report_source", source=f"{address}#{name}") if one]
    assert [label for label, _ in found[0]] == [name]
    with pytest.raises(InputError, match="has no study 'nobody'"):  # reaches the user of a report, and no log
        [list(one) for one in get_registry().call_hook("infimum_report_source", source=f"{address}#nobody")]


def test_a_reported_result_is_saved_and_read(tmp_path: Path) -> None:
    study = optuna.create_study()
    assert result_of(study).best_x is None and result_of(study).iterations == 0
    study.optimize(lambda trial: trial.suggest_categorical("k", ["a", None]) == "a", n_trials=3)
    loaded = infimum.Result.load(result_of(study).save(tmp_path / "out"))
    assert loaded.best_x == study.best_params


def test_what_is_a_storage(tmp_path: Path) -> None:
    journal = tmp_path / "any.name"
    study = optuna.create_study(storage=open_storage(f"journal:{journal}"), study_name="one")
    study.optimize(lambda trial: 1.0, n_trials=1)
    for source in (
        str(journal),
        f"journal:{journal}",
        "sqlite:///x.db",
        "postgresql+psycopg2://a@b/c",
        "mysql://a/b#c",
    ):
        assert is_storage(source), source
    (tmp_path / "text.log").write_text("no journal\n", encoding="utf-8")
    for source in (str(tmp_path), "runs/one", str(tmp_path / "text.log"), "https://a.b/c", "", 3):
        assert not is_storage(source), source
    assert results_of(str(journal))[0][0] == "one"
    assert [one for one in get_registry().call_hook("infimum_report_source", source=str(tmp_path)) if one] == []


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ("redis://localhost", "expected a URL such as sqlite:///study.db"),
        (3, "expected a URL such as"),
        ("journal:/no/such/folder/study.log", "there is no folder"),
        ("sqlite:////no/such/folder/study.db", "cannot be opened"),
        ("postgresql://me:secret@localhost:1/none", "cannot be opened|no driver"),
        ("mysql+nodriver://me:secret@localhost/none", "cannot be opened|no driver"),
    ],
)
def test_a_storage_that_cannot_be_opened(storage: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        open_storage(storage)
    assert "secret" not in str(caught.value)


def test_reading_makes_no_file(tmp_path: Path) -> None:
    for source in (f"sqlite:///{tmp_path}/none.db", f"journal:{tmp_path}/none.log"):
        with pytest.raises(InputError, match="there is no file"):
            results_of(source)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text.log").write_text("no journal\n", encoding="utf-8")
    with pytest.raises(InputError, match="is no journal of Optuna"):
        open_storage(str(tmp_path / "text.log"))
    (tmp_path / "other.db").touch()
    with pytest.raises(InputError):
        results_of(f"sqlite:///{tmp_path}/other.db")
    assert hidden("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"


def test_x0_and_a_waiting_queue_do_not_meet(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=open_storage(address), study_name="queue")
    study.enqueue_trial({"x": 0.5})
    solver = Random(storage=address, study="queue")
    with pytest.raises(InputError, match="leave out x0"):
        infimum.solve(BlackBox(square, SPACE), {"x": 0.1}, solver=solver, stopping="max_iter(1)", seed=0)
    result = infimum.solve(BlackBox(square, SPACE), solver=solver, stopping="max_iter(1)", seed=0)
    assert result.x == {"x": 0.5}, "points that wait come first"

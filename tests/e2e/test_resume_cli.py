"""`infimum resume`, `rerun` and `export` as a user meets them: signals, exit codes, full disks."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from infimum import Result, RunFolder
from infimum.runfile import RunFile
from infimum.testing.compare import result_difference

MODULE = """
import os, time
import numpy as np
from infimum.functions import Function
from infimum.problem import Composite

def slow(size: int = 2) -> Composite:
    pause = float(os.environ.get("PAUSE", "0"))
    def gradient(x):
        time.sleep(pause)
        return 1e-3 * x
    return Composite(Function(lambda x: 5e-4 * float(x @ x), gradient=gradient), start=np.ones(size))
"""
GOOD = """\
name: mine
problem: {use: "python:resume_cli_module:slow", size: 20}
solver: {use: splitting.gradient_descent, step: 0.5}
stopping: max_iter(120)
checkpoint: {every: 10, keep: 2}
value_every: 7
seed: 3
"""
COMMAND = [sys.executable, "-m", "infimum"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resume_cli_module.py").write_text(MODULE)
    (tmp_path / "run.yaml").write_text(GOOD)
    return tmp_path


def call(*arguments: str, **options: Any) -> Any:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False, **options)


def started(*arguments: str, pause: str = "0.02") -> subprocess.Popen[str]:
    """A command in a session of its own, whose run has begun (or gone on) and left a checkpoint."""
    before = RunFolder("out").checkpoints()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PAUSE": pause},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    limit = time.monotonic() + 60
    while RunFolder("out").checkpoints() == before:
        assert time.monotonic() < limit and process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


def whole() -> Result:
    return RunFile.load("run.yaml").prepare().solve()


def test_ctrl_c_sigterm_and_sigkill_then_bit_for_bit_the_same() -> None:
    process = started("run", "run.yaml", "-o", "out")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "interrupted by the user" in out, err
    at = RunFolder("out").checkpoints()[-1]
    assert f"infimum resume out  goes on from iteration {at}" in out
    process = started("resume", "out")
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130 and RunFolder("out").status == "interrupted"
    process = started("resume", "out")
    process.kill()
    process.communicate()
    done = call("resume", "out")
    assert done.returncode == 0 and "limit: iteration 120 >= 120" in done.stdout and not done.stderr
    assert result_difference(whole(), Result.load("out")) is None
    assert not Path("out/checkpoints").exists()
    again = call("resume", "out")
    assert again.returncode == 0 and "had come to its end" in again.stdout
    repeated = call("rerun", "out", "--json")
    assert repeated.returncode == 0
    data = json.loads(repeated.stdout)
    assert data["same"] and data["differences"] == []


def test_what_is_refused_and_said() -> None:
    assert call("resume", "nowhere").returncode == 2
    done = call("run", "run.yaml", "-o", "out", "solver=scipy.l_bfgs_b", "stopping=max_iter(3)")
    assert done.returncode == 0
    Path("out/result.json").unlink()
    done = call("resume", "out")
    assert done.returncode == 2 and "keeps no state" in done.stderr and "Traceback" not in done.stderr
    done = call("run", "run.yaml", "checkpoint.every=soon", "checkpoint.keep=0")
    assert done.returncode == 2 and "checkpoint: keep=0: expected an integer >= 1" in done.stderr
    done = call("run", "run.yaml", "checkpoint.every=soon")
    assert done.returncode == 2 and "checkpoint: every='soon': expected a number of iterations" in done.stderr


def test_changed_code_needs_force() -> None:
    process = started("run", "run.yaml", "-o", "out")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    with open("resume_cli_module.py", "a") as file:
        file.write("# a comment\n")
    done = call("resume", "out")
    assert done.returncode == 2 and "file resume_cli_module.py has changed" in done.stderr and "--force" in done.stderr
    done = call("resume", "out", "--force")
    assert done.returncode == 0 and "file resume_cli_module.py has changed" in done.stderr
    assert result_difference(whole(), Result.load("out")) is None


def test_files_that_may_not_grow() -> None:
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    done = call("run", "run.yaml", "-o", "out", preexec_fn=limited)
    assert done.returncode == 1 and "limit: iteration 120 >= 120" in done.stdout, done.stderr
    assert "could not be written: [Errno 27] File too large" in done.stderr and "not saved in out" in done.stdout
    assert "Traceback" not in done.stderr
    assert not Path("out/result.json").exists()


def test_export() -> None:
    assert call("run", "run.yaml", "-o", "out", "-q").returncode == 0
    done = call("export", "out")
    assert done.returncode == 0 and done.stdout.strip() == f"written: {Path('out/trace.csv')}"
    assert len(Path("out/trace.csv").read_text().splitlines()) == 122
    assert call("export", "out", "--format", "xls").returncode == 2


def test_small_on_disk_for_any_length() -> None:
    text = GOOD.replace("max_iter(120)", "max_iter(20000)").replace("every: 10", "every: 9000")
    Path("long.yaml").write_text(text)
    assert call("run", "long.yaml", "-o", "out", "-q").returncode == 0
    assert sum(path.stat().st_size for path in Path("out").iterdir()) < 400_000

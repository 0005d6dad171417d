"""`infimum report` and `infimum run --observe` as a user meets them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """\
name: mine
problem: problems.rosenbrock
solver: {use: splitting.gradient_descent, step: 1e-3}
stopping: max_iter(50)
seed: 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run.yaml").write_text(RUN, encoding="utf-8")
    return tmp_path


def infimum(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infimum", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ})


def test_run_then_report(folder: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    done = infimum(folder, "run", "run.yaml", "--observe", "core.csv", "--observe", "{use: jsonl, every: 10}", "-q")
    assert done.returncode == 0, done.stderr
    (kept,) = (folder / "runs" / "mine").iterdir()
    assert len((kept / "progress.csv").read_text(encoding="utf-8").splitlines()) == 52
    assert len((kept / "progress.jsonl").read_text(encoding="utf-8").splitlines()) == 7
    done = infimum(folder, "report", "runs/mine")
    assert done.returncode == 0 and done.stdout == "written to report.html\n", done.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "iteration 50 &gt;= 50" in page and "Run file of mine" in page and "sha256" in page
    assert str(folder) not in page


def test_pictures(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert infimum(folder, "run", "run.yaml", "-q").returncode == 0
    done = infimum(folder, "report", "runs", "--format", "svg")
    assert done.returncode == 0 and done.stdout.startswith("written to report.svg\n"), done.stderr
    assert (folder / "report.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "nowhere"), "error: report: 'nowhere' is no folder"),
        (("report", "."), "error: report: there is no run in what was given"),
        (("report", ".", "--format", "gif"), "error: report: format 'gif'"),
        (("run", "run.yaml", "--observe", "core.cvs"), "did you mean 'core.csv'"),
    ],
)
def test_mistakes_end_with_2(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = infimum(folder, *arguments)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr

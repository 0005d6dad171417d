"""Sweeps and comparisons on the command line: output, exit codes, folders, the cache."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from infimum.cli import guard
from infimum.cli.app import app
from infimum.many.members import Runs

RUN = """\
name: mine
problem: {use: problems.rosenbrock, n: 2}
solver: {use: splitting.gradient_descent, step: 1e-3}
stopping: max_iter(50)
seed: 3
"""
SWEEP = RUN + "sweep: {product: {solver.step: [1e-3, 2e-3]}}\nrepeat: 2\n"
COMPARE = """\
name: methods
problem: problems.rosenbrock
seed: 3
compare:
  solvers:
    descent: {use: splitting.gradient_descent, step: 1e-3}
    bfgs: scipy.bfgs
  budget: {gradient: 60}
  references: 0
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INFIMUM_CACHE", str(tmp_path / "cache"))
    for name, text in (("run", RUN), ("sweep", SWEEP), ("compare", COMPARE)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


@pytest.fixture
def infimum():
    def run(*arguments: str):
        found = CliRunner().invoke(app, list(arguments))
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found.exit_code, found.stdout, found.stderr

    yield run
    guard.verbosity = 0


def test_a_sweep_prints_a_row_a_run_and_saves_everything(infimum, folder) -> None:
    code, out, err = infimum("sweep", "sweep.yaml", "--jobs", "1", "-o", "out")
    assert (code, err) == (0, "")
    assert "step=0.001 #0" in out and "4 runs (4 limit)" in out
    assert len(Runs.load("out")) == 4 and (folder / "out" / "members.jsonl").read_text().count("\n") == 4


def test_the_command_line_varies_overrides_and_repeats(infimum, folder) -> None:
    code, out, _ = infimum(
        "sweep", "run.yaml", "problem.n=3", "--sweep", "solver.step=1e-4,2e-4,3e-4", "--repeat", "2", "-j", "1",
        "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert code == 0 and len(data["members"]) == 6 and data["kind"] == "sweep"
    assert {one["solver.step"] for one in data["members"]} == {1e-4, 2e-4, 3e-4}
    assert data["folder"].startswith("runs/mine/")


def test_resume_goes_on_in_the_newest_folder(infimum, folder) -> None:
    infimum("sweep", "sweep.yaml", "-j", "1", "-q")
    code, out, _ = infimum("sweep", "sweep.yaml", "-j", "1", "--resume", "--json")
    assert code == 0 and len(list((folder / "runs" / "mine").iterdir())) == 1
    assert len(json.loads(out)["members"]) == 4
    code, _, err = infimum("sweep", "sweep.yaml", "name=other", "-j", "1", "--resume")
    assert code == 2 and "no sweep to go on with" in err


def test_a_comparison_prints_targets_and_wins_and_is_cached(infimum) -> None:
    code, out, _ = infimum("compare", "compare.yaml", "-j", "1")
    assert code == 0, out
    assert "equal budget: 60 evaluations of gradient" in out and "(given)" in out
    assert "WINS" in out and "bfgs" in out
    _, out, _ = infimum("compare", "compare.yaml", "-j", "1", "--json")
    data = json.loads(out)
    assert all(one["cached"] for one in data["members"])
    assert [one["wins"] for one in data["summary"]] == [0, 1]
    _, out, _ = infimum("cache", "list", "--json")
    assert len(json.loads(out)) == 2
    assert "2 runs removed" in infimum("cache", "clear")[1]
    _, out, _ = infimum("compare", "compare.yaml", "--budget", "iterations=5", "-j", "1", "--json")
    assert json.loads(out)["budget"] == "iterations"


def test_check_looks_at_every_member_and_says_what_is_cached(infimum) -> None:
    infimum("sweep", "sweep.yaml", "-j", "1", "-q")
    code, out, _ = infimum("check", "sweep.yaml")
    assert code == 0 and "4 runs, 4 of them cached" in out
    code, _, err = infimum("check", "sweep.yaml", "solver.use=splitting.gradient_descentt")
    assert code == 2 and "did you mean" in err


def test_mistakes_are_told_before_anything_runs(infimum, folder) -> None:
    (folder / "sweep.yaml").write_text(SWEEP.replace("[1e-3, 2e-3]", "[1e-3, -1]"))
    code, _, err = infimum("sweep", "sweep.yaml", "-j", "1")
    assert code == 2 and "sweep.yaml:6:" in err and not (folder / "runs").exists()
    code, _, err = infimum("run", "compare.yaml")
    assert code == 2 and "infimum compare FILE" in err
    code, _, err = infimum("compare", "compare.yaml", "--budget", "seconds=1", "-j", "2")
    assert code == 2 and "one at a time" in err and not (folder / "runs").exists()


def test_the_exit_code_says_that_members_were_lost(infimum, folder) -> None:
    (folder / "own_lost.py").write_text("def f(x):\n    raise RuntimeError('no luck')\n")
    text = RUN.replace("{use: problems.rosenbrock, n: 2}", '"python:own_lost:f"') + "x0: [1.0]\nrepeat: 2\n"
    (folder / "lost.yaml").write_text(text.replace("splitting.gradient_descent, step: 1e-3", "scipy.nelder_mead"))
    code, out, _ = infimum("sweep", "lost.yaml", "-j", "1")
    assert code == 1 and "2 failed" in out and "no luck" in out

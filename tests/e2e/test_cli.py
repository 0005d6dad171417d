"""The command line as a user meets it: output, exit codes, files, pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from infimum.cli import guard
from infimum.cli.app import app
from infimum.result import Result
from infimum.runfile import RunFile

MODULE = """
import numpy as np
from infimum.functions import Function, L1, LeastSquares
from infimum.problem import Composite

def my_problem(n: int = 4, weight: float = 0.1) -> Composite:
    b = np.arange(1.0, n + 1)
    return Composite({"loss": LeastSquares(np.eye(n), b, reduction="sum"), "penalty": weight * L1()})

def broken() -> Composite:
    return Composite(Function(lambda x: float(x @ x), gradient=lambda x: x * np.nan), start=np.ones(2))

def slow() -> Composite:
    import time
    def gradient(x):
        time.sleep(0.01)
        return 1e-6 * x
    return Composite(Function(lambda x: 5e-7 * float(x @ x), gradient=gradient), start=np.ones(2))
"""
GOOD = """\
name: mine
problem: {use: "python:e2e_my_module:my_problem", n: 50}
solver: {use: splitting.proximal_gradient, step: 0.5}
stopping: max_iter(200) | grad_norm(1e-9)
seed: 3
"""
COMMAND = [sys.executable, "-m", "infimum"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e2e_my_module.py").write_text(MODULE)
    (tmp_path / "run.yaml").write_text(GOOD)
    return tmp_path


@pytest.fixture
def infimum():
    """Runs the command in this process: exit code, stdout, stderr."""

    def run(*arguments: str):
        found = CliRunner().invoke(app, list(arguments))
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found.exit_code, found.stdout, found.stderr

    yield run
    guard.verbosity = 0


def process(*arguments: str, **options):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, **options)


def test_run_solves_saves_and_prints(infimum, folder) -> None:
    code, out, err = infimum("run", "run.yaml")
    assert (code, err) == (0, "")
    assert "converged" in out
    saved = re.search(r"saved in (\S+)", out)
    assert saved
    assert re.fullmatch(r"runs/mine/\d{8}T\d{6}Z", saved[1])
    result = Result.load(folder / saved[1])
    np.testing.assert_allclose(result.x[:3], [0.9, 1.9, 2.9], atol=1e-6)
    assert result.seed == 3
    assert RunFile.load(folder / "run.yaml").resolved() == RunFile.load(folder / saved[1] / "run.yaml").resolved()


def test_the_saved_run_file_runs_again(infimum, folder) -> None:
    text = "problem: problems.lasso\nsolver: splitting.douglas_rachford\nstopping: max_iter(5)\n"
    (folder / "run.yaml").write_text(text)
    assert infimum("run", "run.yaml", "-o", "first")[0] == 0
    assert infimum("run", "first/run.yaml", "-o", "second")[0] == 0
    np.testing.assert_array_equal(Result.load(folder / "first").x, Result.load(folder / "second").x)


def test_runs_never_overwrite(infimum, folder) -> None:
    for _ in range(3):
        assert infimum("run", "run.yaml", "-q")[0] == 0
    assert len(list((folder / "runs" / "mine").iterdir())) == 3
    assert infimum("run", "run.yaml", "-o", "out")[0] == 0
    before = (folder / "out" / "result.json").read_bytes()
    code, out, err = infimum("run", "run.yaml", "-o", "out")
    assert (code, out) == (2, "")
    assert "already holds" in err
    assert (folder / "out" / "result.json").read_bytes() == before
    (folder / "file").write_text("")
    assert infimum("run", "run.yaml", "-o", "file")[0] == 2


def test_overrides_seed_and_json(infimum) -> None:
    code, out, err = infimum("run", "run.yaml", "problem.n=3", "stopping=max_iter(2)", "--seed", "9", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert (data["status"], data["iterations"], data["seed"], data["success"]) == ("limit", 2, 9, False)
    assert data["fired"][0]["rule"] == "max_iter(2)"


def test_quiet_says_nothing(infimum) -> None:
    assert infimum("run", "run.yaml", "--quiet") == (0, "", "")


def test_five_mistakes_at_once(infimum, folder) -> None:
    (folder / "bad.yaml").write_text(
        "problem: {use: problems.laso}\nsolver: {use: splitting.proximal_gradient, step: fast, stp: 1}\n"
        "stopping: max_itr(3)\nseed: x\nsead: 3\n"
    )
    for command in ("run", "check", "explain", "show"):
        code, out, err = infimum(command, "bad.yaml")
        assert (code, out) == (2, "")
        lines = err.splitlines()
        assert [line.split(": ")[0] for line in lines] == [
            "bad.yaml:1:16",
            "bad.yaml:2:50",
            "bad.yaml:2:56",
            "bad.yaml:3:11",
            "bad.yaml:4:7",
            "bad.yaml:5:1",
        ]
    code, out, err = infimum("check", "bad.yaml", "--json")
    assert (code, err) == (2, "")
    issues = json.loads(out)["issues"]
    assert [(one["line"], one["column"]) for one in issues] == [(1, 16), (2, 50), (2, 56), (3, 11), (4, 7), (5, 1)]


def test_check_prints_the_plan(infimum, folder) -> None:
    code, out, err = infimum("check", "run.yaml")
    assert (code, err) == (0, "")
    assert "run.yaml: no mistakes" in out
    assert "splitting.proximal_gradient" in out
    assert json.loads(infimum("check", "run.yaml", "--json")[1])["ok"] is True
    assert not (folder / "runs").exists()


def test_explain_one_solver_and_all(infimum, folder) -> None:
    code, out, _ = infimum("explain", "run.yaml")
    assert code == 0
    assert "splitting.proximal_gradient" in out
    assert "douglas_rachford" not in out
    code, out, _ = infimum("explain", "run.yaml", "--all")
    assert code == 0
    assert "splitting.douglas_rachford" in out
    (folder / "open.yaml").write_text("problem: problems.overlapping_group_lasso\n")
    code, out, _ = infimum("explain", "open.yaml")
    assert code == 0
    assert "zeroth.forward_difference" in out
    assert "cannot take it" in out
    assert json.loads(infimum("explain", "open.yaml", "--json")[1])["solvers"]


def test_a_plan_refusal_is_located_and_helps(infimum, folder) -> None:
    text = "problem: problems.overlapping_group_lasso\nsolver: splitting.proximal_gradient\n"
    (folder / "open.yaml").write_text(text)
    refusals = []
    for command in ("run", "check", "explain"):
        code, out, err = infimum(command, "open.yaml")
        assert (code, out) == (2, "")
        assert err.startswith("open.yaml:2:9: splitting.proximal_gradient needs ")
        assert "add  oracles: {penalty: zeroth.forward_difference}" in err
        refusals.append(err)
    assert len(set(refusals)) == 1


def test_show_and_origins(infimum) -> None:
    code, out, _ = infimum("show", "run.yaml", "solver.step=0.25")
    assert code == 0
    assert "use: splitting.proximal_gradient" in out
    code, out, _ = infimum("show", "run.yaml", "solver.step=0.25", "--origin")
    rows = {line.split()[0]: line for line in out.splitlines()[1:]}
    assert rows["solver.step"].endswith("<command line, argument 1: 'solver.step=0.25'>")
    assert rows["problem.n"].endswith("run.yaml:2:54")
    assert rows["solver.restart"].endswith("default")
    data = json.loads(infimum("show", "run.yaml", "--origin", "--json")[1])
    assert {"key": "seed", "value": 3, "origin": "run.yaml:5:7"} in data


def test_no_python(infimum) -> None:
    for command in ("run", "check", "explain", "show"):
        code, _, err = infimum(command, "run.yaml", "--no-python")
        assert code == 2
        assert err.startswith("run.yaml:2:16: ")
        assert "--no-python" in err


def test_files_that_are_none(infimum, folder) -> None:
    (folder / "empty.yaml").write_text("")
    for name, words in (("nowhere.yaml", "no such file"), (".", "folder"), ("empty.yaml", "empty")):
        code, out, err = infimum("check", name)
        assert (code, out) == (2, "")
        assert err.startswith(f"{name}:")
        assert words in err


@pytest.mark.parametrize(("name", "status"), [("broken", "nonfinite")])
def test_a_run_that_ends_badly_has_exit_code_1(infimum, folder, name: str, status: str) -> None:
    (folder / "b.yaml").write_text(
        f"problem: python:e2e_my_module:{name}\nsolver: {{use: splitting.gradient_descent, step: 0.1}}\n"
        "stopping: max_iter(5)\n"
    )
    code, out, _ = infimum("run", "b.yaml")
    assert code == 1
    assert status in out


def test_list_and_info(infimum) -> None:
    code, out, _ = infimum("list", "solvers")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()[1:]] == sorted(
        one["name"] for one in json.loads(infimum("list", "solver", "--json")[1])
    )
    assert infimum("list", "solvr")[0] == 2
    code, out, _ = infimum("info", "proximal_gradient")
    assert code == 0
    assert "splitting.proximal_gradient" in out
    assert re.search(r"^step +.*'auto'", out, re.MULTILINE)
    assert re.search(r"^rest +prox", out, re.MULTILINE)
    assert "needs: value" in infimum("info", "zeroth.forward_difference")[1]
    assert "core.max_iter" in infimum("info", "core")[1]
    code, _, err = infimum("info", "proximal_gradiant")
    assert code == 2
    assert "did you mean 'splitting.proximal_gradient'?" in err


def test_info_on_every_installed_component(infimum) -> None:
    for one in json.loads(infimum("list", "--json")[1]):
        code, out, err = infimum("info", one["name"], "--json")
        assert (code, err) == (0, ""), one["name"]
        found = json.loads(out)
        assert any(row["target"] == one["target"] for row in (found if isinstance(found, list) else [found]))


def test_plugins_and_doctor(infimum) -> None:
    code, out, _ = infimum("plugins")
    assert code == 0
    assert re.search(r"^core +active", out, re.MULTILINE)
    data = json.loads(infimum("plugins", "--json")[1])
    assert {"core", "splitting", "zeroth", "problems"} <= {one["name"] for one in data["plugins"]}
    code, out, _ = infimum("doctor", "--json")
    data = json.loads(out)
    assert code == (1 if data["problems"] else 0)
    assert data["infimum"]


def test_schema_is_json(infimum) -> None:
    assert json.loads(infimum("schema")[1])["$schema"].endswith("2020-12/schema")


def test_version_and_help(infimum) -> None:
    assert infimum("--version")[1].startswith("infimum ")
    code, out, _ = infimum("--help")
    assert code == 0
    assert "130 interrupted" in " ".join(out.split())
    assert infimum("nothing")[0] == 2


def test_warnings_are_one_line_on_stderr(infimum) -> None:
    _, _, err = infimum("run", "run.yaml", "solver.step=3", "stopping=max_iter(2)")
    assert err.startswith("warning: ")
    assert len(err.splitlines()) == 1


def test_a_problem_beside_the_file_from_another_folder(folder, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    found = process("run", str(folder / "run.yaml"), cwd=elsewhere)
    assert found.returncode == 0, found.stderr
    assert "\x1b" not in found.stdout + found.stderr
    assert len(list((elsewhere / "runs" / "mine").iterdir())) == 1


BROKEN = "raise RuntimeError('no such luck')\n"


def test_a_broken_plugin_is_set_aside(tmp_path_factory) -> None:
    site = tmp_path_factory.mktemp("site")
    (site / "e2e_broken_plugin.py").write_text(BROKEN)
    info = site / "e2e_broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: e2e-broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[infimum]\nbroken_one = e2e_broken_plugin\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    found = process("plugins", env=env)
    assert found.returncode == 0
    assert re.search(r"^broken_one +failed +e2e-broken 1.0", found.stdout, re.MULTILINE)
    assert "RuntimeError: no such luck" in found.stdout
    listed = process("list", env=env)
    assert listed.returncode == 0
    assert "splitting.proximal_gradient" in listed.stdout
    strict = process("--strict-plugins", "list", env=env)
    assert (strict.returncode, strict.stdout) == (2, "")
    assert "broken_one" in strict.stderr
    assert process("doctor", env=env).returncode == 1


def test_doctor_finds_a_component_that_cannot_be_imported_when_asked(tmp_path_factory) -> None:
    site = tmp_path_factory.mktemp("site")
    (site / "e2e_hollow.py").write_text(
        "from infimum.plugins import hook\n\n@hook\ndef infimum_oracles(register):\n"
        "    register('gone', 'e2e_nowhere:Gone', summary='not there')\n"
    )
    info = site / "e2e_hollow-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: e2e-hollow\nVersion: 1.0\nRequires-Dist: infimum\n")
    (info / "entry_points.txt").write_text("[infimum]\nhollow = e2e_hollow\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    assert process("doctor", env=env).returncode == 0
    found = process("doctor", "--load", env=env)
    assert found.returncode == 1
    assert re.search(r"problem: .*hollow\.gone.*e2e_nowhere", found.stdout)


def test_list_is_light() -> None:
    script = (
        "import json, sys\n"
        "sys.argv = ['infimum', 'list']\n"
        "from infimum.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(json.loads(process.stderr))
    heavy = {"torch", "cvxpy", "optuna", "sklearn", "matplotlib", "plotly", "scipy", "numpy", "yaml", "joblib"}
    assert not heavy & {name.partition(".")[0] for name in loaded}
    # Of the host what reads metadata and prints; of a plugin its package and the module with its hooks.
    assert not {"infimum.run", "infimum.records", "infimum.runfile", "infimum.many", "infimum.reporting"} & loaded
    assert not [name for name in loaded if name.startswith("infimum_") and name.count(".") > 1]


@pytest.mark.parametrize("arguments", ["list", "schema", "info splitting.proximal_gradient"])
def test_a_broken_pipe_is_silent(arguments: str) -> None:
    command = f"'{sys.executable}' -m infimum {arguments} | head -c 5"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert len(found.stdout) == 5
    assert found.stderr == ""


def test_messages_stay_on_one_line_in_a_narrow_terminal(folder) -> None:
    text = "problem: problems.lasso\nsolver: {use: splitting.proximal_gradient, acceleratn: 1}\n"
    (folder / "bad.yaml").write_text(text)
    found = process("check", "bad.yaml", env={**os.environ, "COLUMNS": "30", "FORCE_COLOR": "1"})
    assert found.returncode == 2
    assert len(found.stderr.splitlines()) == 1
    assert "\x1b" not in found.stderr


def test_ctrl_c_keeps_the_result(folder) -> None:
    (folder / "slow.yaml").write_text(
        "problem: python:e2e_my_module:slow\nsolver: {use: splitting.gradient_descent, step: 1.0}\n"
        "stopping: max_iter(100000)\n"
    )
    child = subprocess.Popen(
        [*COMMAND, "run", "slow.yaml", "-o", "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        end = time.monotonic() + 60
        while not (folder / "out" / "run.yaml").exists() and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130, err
    assert "interrupted" in out
    assert Result.load(folder / "out").status.value == "interrupted"

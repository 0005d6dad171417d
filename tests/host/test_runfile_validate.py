"""What a run file may say, what is said about its mistakes, and what becomes of it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from infimum.errors import InfimumError
from infimum.runfile import RunFile, RunFileError
from infimum.runfile.reader import read_text

MODULE = """
import numpy as np
from infimum.functions import L1, LeastSquares
from infimum.problem import Composite

def make(n: int = 4, weight: float = 0.1) -> Composite:
    A = np.eye(n)
    return Composite({"loss": LeastSquares(A, np.arange(1.0, n + 1), reduction="sum"), "penalty": weight * L1()})

def blocks() -> Composite:
    A = np.eye(2)
    return Composite(
        {"a": LeastSquares(A, np.ones(2)), "b": LeastSquares(A, np.ones(2))},
        blocks={"L": (2,), "S": (2,)}, on={"a": "L", "b": "S"},
    )

start = np.full(4, 3.0)

def start_alone():
    return np.ones(4)


def start_for(problem):
    return np.full(4, 2.0)
"""
GOOD = """\
problem: {use: "python:e_own_problem:make", n: 4}
solver: {use: splitting.proximal_gradient, step: 0.5}
stopping: max_iter(50)
seed: 1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e_own_problem.py").write_text(MODULE)
    return tmp_path


@pytest.fixture
def load(folder):
    def load(text: str, *overrides: str, **options):
        (folder / "run.yaml").write_text(text)
        return RunFile.load("run.yaml", overrides, **options)

    return load


@pytest.fixture
def mistakes(load):
    def mistakes(text: str, *overrides: str, **options) -> list[str]:
        with pytest.raises(RunFileError) as caught:
            load(text, *overrides, **options)
        return str(caught.value).splitlines()

    return mistakes


def one(found: list[str], start: str) -> str:
    assert len(found) == 1, found
    assert found[0].startswith(start), found[0]
    return found[0]


def test_five_mistakes_are_reported_at_once(mistakes) -> None:
    found = mistakes(
        "problem: {use: problems.laso, penalty: 1}\n"
        "solver: {use: splitting.proximal_gradient, step: fast, acceleraton: true}\n"
        "constraints:\n"
        "  - {use: core.box, lower: [a]}\n"
        'stopping: "max_iter(1e4) | rel_chnge(1e-9)"\n'
        "sead: 7\n"
        "name: x\n"
        "name: y\n"
    )
    starts = [
        "run.yaml:1:16: no problem called 'problems.laso'; did you mean 'problems.lasso'?",
        "run.yaml:2:50: solver splitting.proximal_gradient: option 'step': expected a number > 0",
        "run.yaml:2:56: solver splitting.proximal_gradient has no option 'acceleraton'; did you mean 'acceleration'?",
        "run.yaml:4:28: constraint core.box: lower ",
        "run.yaml:5:28: stopping: no stopping rule called 'rel_chnge'; did you mean 'core.rel_change'?",
        "run.yaml:6:1: unknown key 'sead'; did you mean 'seed'?",
        "run.yaml:8:1: key 'name' is given twice (first at run.yaml:7:1); keep one",
    ]
    assert len(found) == len(starts), found
    for line, start in zip(found, starts, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("seed: 1", "run.yaml:1:1: 'problem' is missing"),
        ("problem: 3", "run.yaml:1:10: expected the name of a problem or {use: name, ...}, got int 3"),
        ("problem: {n: 3}", "run.yaml:1:10: problem: 'use' must name a problem"),
        ("problem: {use: 3}", "run.yaml:1:16: problem: 'use' must name a problem"),
        ("problem: core.box", "run.yaml:1:10: no problem called 'core.box'; core.box is a constraint"),
        ("problem: python:e_own_problem:mak", "run.yaml:1:10: 'python:e_own_problem:mak': "),
        ("problem: python:nowhere_at_all:make", "run.yaml:1:10: 'python:nowhere_at_all:make'"),
        (GOOD + "oracles: [a]", "run.yaml:5:10: oracles: expected {term: oracle} or auto, got a list"),
        (GOOD + "oracles: {loss: nowhere.o}", "run.yaml:5:17: no oracle called 'nowhere.o'"),
        (GOOD + "constraints: {use: core.box}", "run.yaml:5:14: constraints: expected a list or {name: constraint}"),
        (GOOD + "constraints: 3", "run.yaml:5:14: constraints: expected a list or {name: constraint}, got int 3"),
        (GOOD + "constraints: [{use: core.box, lower: 0, on: 3}]", "run.yaml:5:45: on: expected the name of a block"),
        (GOOD + "check_every: 0", "run.yaml:5:14: check_every: expected a whole number >= 1, got int 0"),
        (GOOD + "value_every: often", "run.yaml:5:14: value_every: expected a whole number >= 1, got str 'often'"),
        (GOOD + "trace: {rows: 3}", "run.yaml:5:9: trace has no option 'rows'; "),
        (GOOD + "trace: {max_rows: x}", "run.yaml:5:19: trace.max_rows: expected a whole number >= 0, got str 'x'"),
        (GOOD + "trace: {metrics: [1]}", "run.yaml:5:19: trace.metrics[0]: expected text, got int 1"),
        (GOOD + "output: here", "run.yaml:5:9: output: expected a mapping, got str 'here'"),
        (GOOD + "name: ../x", "run.yaml:5:7: name: expected a name without slashes"),
        (GOOD + "name: ..", "run.yaml:5:7: name: expected a name without slashes"),
        (GOOD + "x0: zeroes", "run.yaml:5:5: x0: no start is called 'zeroes'; did you mean 'zeros'?"),
        (GOOD + "x0: x.npz", "run.yaml:5:5: x0: no start is called 'x.npz'; write {file: x.npz}"),
        (GOOD + "x0: [1, a]", "run.yaml:5:9: x0: expected a number, got str 'a'"),
        (GOOD + "x0: [1, true]", "run.yaml:5:9: x0: expected a number, got bool True"),
        (GOOD + "x0: [[1, 2], [3]]", "run.yaml:5:5: x0: the rows differ in length"),
        (GOOD + "x0: []", "run.yaml:5:5: x0: the list is empty"),
        (GOOD + "x0: {file: nowhere.npz}", "run.yaml:5:12: x0: there is no file "),
        (GOOD + "x0: {file: x.npz, keys: a}", "run.yaml:5:19: x0 has no option 'keys'; did you mean 'key'?"),
        (GOOD + "x0: 3", "run.yaml:5:5: x0: expected zeros, random,"),
    ],
)
def test_wrong_values(mistakes, folder, text: str, start: str) -> None:
    (folder / "x.npz").write_bytes(b"")
    assert mistakes(text + "\n")[0].startswith(start)


@pytest.mark.parametrize("seed", ["-1", "1.5", "true", "abc", "[1]"])
def test_wrong_seeds(mistakes, seed: str) -> None:
    one(mistakes(GOOD.replace("seed: 1", f"seed: {seed}")), "run.yaml:4:7: seed: expected a whole number >= 0, got ")


@pytest.mark.parametrize(
    ("stopping", "starts"),
    [
        ("stopping: max_iter(3) | nope(1)", ["run.yaml:1:25: stopping: no stopping rule called 'nope'"]),
        ("stopping: 'max_iter(3) | max_iter(-2)'", ["run.yaml:1:35: stopping: max_iter: n must be"]),
        ("stopping: >-\n  max_iter(3)\n  | nope(1)", ["run.yaml:3:5: stopping: no stopping rule called 'nope'"]),
        ("stopping: |\n  max_iter(3)\n  | nope(1)", ["run.yaml:3:5: stopping: no stopping rule called 'nope'"]),
        ("stopping: [max_iter(3), 'nope(1)']", ["run.yaml:1:26: stopping: no stopping rule called 'nope'"]),
        ("stopping: [nope(1), {nine: 3}]", ["run.yaml:1:12: stopping: no stopping rule called 'nope'", "run.yaml:1:2"]),
        (
            "stopping: {any: [{max_iter: -3}, {all: [{grad_norm: {tol: 1, tl: 2}}, {max_iter: 3}]}]}",
            ["run.yaml:1:29: max_iter: n must be", "run.yaml:1:62: grad_norm has no option 'tl'"],
        ),
        ("stopping: {max_iter: 3, max_time: 4}", ["run.yaml:1:11: expected one rule name, got 2"]),
        ("stopping: 3", ["run.yaml:1:11: expected a rule such as"]),
        ("stopping: ~max_iter(3)", ["run.yaml:1:11: stopping: "]),
        ("stopping: max_iter(", ["run.yaml:1:"]),
    ],
)
def test_stopping_mistakes_have_their_column(mistakes, stopping: str, starts: list[str]) -> None:
    found = mistakes(f"{stopping}\nproblem: python:e_own_problem:make\n")
    assert len(found) == len(starts), found
    for line, start in zip(found, starts, strict=True):
        assert line.startswith(start)


def test_the_three_forms_of_stopping_are_equal(load) -> None:
    forms = [
        '"max_iter(10) | (grad_norm(1e-6) & rel_change(1e-9, patience=10))"',
        "{any: [{max_iter: 10}, {all: [{grad_norm: 1e-6}, {rel_change: {tol: 1e-9, patience: 10}}]}]}",
        "[{max_iter: 10}, 'grad_norm(1e-6) & rel_change(1e-9, patience=10)']",
    ]
    rules = [load(f"problem: python:e_own_problem:make\nstopping: {form}\n").made.stopping for form in forms]
    assert rules[0] == rules[1] == rules[2]


@pytest.mark.parametrize("empty", ['""', '"  "', "[]", "{}", ""])
def test_an_empty_stopping_rule_is_the_default_and_noted(load, empty: str) -> None:
    loaded = load(GOOD.replace("max_iter(50)", empty))
    assert loaded.made.stopping is None
    result = loaded.prepare().solve()
    assert result.notes == ["no stopping rule was given: grad_norm(1e-06) | max_iter(10000)"]
    assert result.notes[0] in str(result)


def test_python_may_be_refused(mistakes) -> None:
    found = mistakes(GOOD + "x0: python:e_own_problem:start\n", allow_python=False)
    assert len(found) == 2
    assert all("references to Python code are refused (--no-python)" in line for line in found)


def test_mistakes_of_the_command_line_come_last(mistakes) -> None:
    found = mistakes(GOOD + "sead: 1\n", "solver.stp=1", "seed=-1")
    assert found[0].startswith("run.yaml:5:1: unknown key 'sead'")
    assert found[1].startswith("<command line, argument 1: 'solver.stp=1'>: solver splitting.proximal_gradient has no ")
    assert found[2].startswith("<command line, argument 2: 'seed=-1'>: seed: expected a whole number >= 0")


def test_a_file_becomes_a_run(load) -> None:
    run = load(GOOD, "solver.step=0.4", "problem.n=3").prepare()
    assert run.seed == 1
    assert run.solve().x.shape == (3,)


def test_the_same_file_from_elsewhere(load, folder, monkeypatch, tmp_path_factory) -> None:
    load(GOOD)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    loaded = RunFile.load(os.path.relpath(folder / "run.yaml"))
    assert loaded.prepare().solve().x.shape == (4,)


@pytest.mark.parametrize(
    ("x0", "expected"),
    [
        ("zeros", np.zeros(4)),
        ("[1, 2, 3, 4]", np.arange(1.0, 5)),
        ("python:e_own_problem:start", np.full(4, 3.0)),
        ("python:e_own_problem:start_for", np.full(4, 2.0)),
        ("{file: one.npy}", np.arange(4.0)),
        ("{file: two.npz, key: b}", np.arange(4.0) + 1),
        ("{file: two.npz}", np.arange(4.0) + 2),
    ],
)
def test_starts(load, folder, x0: str, expected: np.ndarray) -> None:
    np.save(folder / "one.npy", np.arange(4.0))
    np.savez(folder / "two.npz", b=np.arange(4.0) + 1, x=np.arange(4.0) + 2)
    np.testing.assert_array_equal(load(GOOD + f"x0: {x0}\n").prepare().point, expected)


def test_a_random_start_depends_on_the_seed_alone(load) -> None:
    first = load(GOOD + "x0: random\n").prepare().point
    again = load(GOOD + "x0: random\n").prepare().point
    other = load(GOOD + "x0: random\n", "seed=2").prepare().point
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("x0", "message"),
    [
        ("{file: two.npz, key: bb}", "two.npz holds no 'bb'; there are: b0, b1"),
        ("{file: two.npz}", "holds b0, b1; choose one with key:"),
        ("{file: one.npy, key: a}", "holds one array without a name; leave out key: a"),
        ("{file: bad.npz}", "bad.npz cannot be read"),
        ("[1, 2]", "x0 is (2,)"),
        ("python:e_own_problem:start_alone", "is called with the problem, start(problem), but: too many"),
    ],
)
def test_wrong_starts_are_located(load, folder, x0: str, message: str) -> None:
    np.save(folder / "one.npy", np.arange(4.0))
    np.savez(folder / "two.npz", b0=np.zeros(4), b1=np.zeros(4))
    (folder / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(RunFileError) as caught:
        load(GOOD + f"x0: {x0}\n").prepare()
    assert message in one(str(caught.value).splitlines(), "run.yaml:5:5: ")


def test_relative_files_belong_to_the_file_that_names_them(folder) -> None:
    (folder / "low").mkdir()
    np.save(folder / "low" / "one.npy", np.arange(4.0))
    (folder / "low" / "e_low_problem.py").write_text(MODULE)
    base = GOOD.replace("e_own_problem", "e_low_problem") + "x0: {file: one.npy}\n"
    (folder / "low" / "base.yaml").write_text(base)
    (folder / "run.yaml").write_text("extends: low/base.yaml\n")
    np.testing.assert_array_equal(RunFile.load("run.yaml").prepare().point, np.arange(4.0))


def test_the_resolved_file_is_whole_and_reads_back(load, folder) -> None:
    loaded = load(
        "problem: {use: problems.lasso, penalty: 1}\nsolver: {use: proximal_gradient, step: {use: power, initial: 1, "
        "exponent: 0.6}}\nconstraints: [nonnegative]\noracles: {loss: {use: forward_difference}}\n"
        "stopping: [max_iter(5)]\n"
    )
    resolved = loaded.resolved()
    assert resolved["solver"] == {
        "use": "splitting.proximal_gradient",
        "step": {"use": "core.power", "initial": 1.0, "exponent": 0.6, "offset": 1.0},
        "acceleration": False,
        "restart": False,
        "backtracking": False,
        "allow_stochastic": False,
    }
    assert resolved["constraints"] == [{"use": "core.nonnegative"}]
    assert resolved["oracles"]["loss"]["use"] == "zeroth.forward_difference"
    assert resolved["name"] == "run"
    assert resolved["seed"] == loaded.seed
    (folder / "again.yaml").write_text(loaded.dump_yaml())
    again = RunFile.load("again.yaml")
    assert again.resolved() == resolved
    assert set(again.origins().values()) == {
        f"again.yaml:{line}:{column}"
        for line, column in (
            (node.place.line, node.place.column)
            for _, node in read_text((folder / "again.yaml").read_text(), "again.yaml").leaves()
        )
    }


def test_origins(load, folder) -> None:
    (folder / "base.yaml").write_text("seed: 4\nproblem: python:e_own_problem:make\n")
    loaded = load("extends: base.yaml\nsolver: splitting.proximal_gradient\n", "solver.step=0.5")
    origins = loaded.origins()
    assert origins["seed"] == "base.yaml:1:7"
    assert origins["problem.use"] == "base.yaml:2:10"
    assert origins["solver.use"] == "run.yaml:2:9"
    assert origins["solver.step"] == "<command line, argument 1: 'solver.step=0.5'>"
    assert origins["solver.acceleration"] == "default"
    assert origins["name"] == "the file's name"


def test_a_seed_is_drawn_told_and_written(load, caplog) -> None:
    with caplog.at_level("INFO", logger="infimum"):
        loaded = load(GOOD.replace("seed: 1\n", ""))
    assert f"no seed was given: drew {loaded.seed}" in caplog.text
    assert f"seed            {loaded.seed}" in str(loaded.prepare().solve())
    assert loaded.resolved()["seed"] == loaded.seed
    assert loaded.origins()["seed"] == "drawn at random"


def test_parts_that_do_not_fit_are_located(load) -> None:
    text = "problem: {use: problems.overlapping_group_lasso}\nsolver: splitting.proximal_gradient\n"
    with pytest.raises(RunFileError) as caught:
        load(text).prepare()
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("run.yaml:2:9: splitting.proximal_gradient needs ")
    assert any("zeroth.forward_difference" in line for line in lines[1:])


def test_a_metric_that_nobody_supplies_is_located(load) -> None:
    with pytest.raises(RunFileError) as caught:
        load(GOOD.replace("max_iter(50)", "max_iter(50) | residual(1e-6)")).prepare()
    assert "residual" in one(str(caught.value).splitlines(), "run.yaml:3:11: ")


@pytest.mark.parametrize(
    ("override", "start"),
    [
        ("oracles.lost=forward_difference", "oracles: the problem has no term 'lost'; did you mean 'loss'?"),
        ("solver.assign.rst=penalty", "assign: splitting.proximal_gradient has no slot 'rst'; did you mean 'rest'?"),
        ("constraints={loss: nonnegative}", "a term and a constraint are both called 'loss'; rename one"),
        ("trace.metrics=[grad_nrm]", "trace: no metric 'grad_nrm'; did you mean 'grad_norm'?"),
        ("x0=[1, 2]", "term 'loss': A is (4, 4), x0 is (2,)"),
        ("solver.restart=true", "solver splitting.proximal_gradient: restart=True "),
    ],
)
def test_what_does_not_fit_together_is_placed_at_its_key(load, override: str, start: str) -> None:
    with pytest.raises(RunFileError) as caught:
        load(GOOD, override).prepare()
    assert str(caught.value).startswith(f"<command line, argument 1: '{override}'>: {start}")


def test_constraints_reach_their_blocks(load) -> None:
    text = (
        "problem: python:e_own_problem:blocks\nsolver: splitting.proximal_gradient\nstopping: max_iter(20)\n"
        "constraints: [{use: core.box, upper: 0.5, on: S}]\n"
    )
    result = load(text).prepare().solve()
    assert result.x["S"].max() <= 0.5
    assert result.x["L"].max() > 0.9
    assert [term.name for term in load(text).stated().terms] == ["a", "b", "box"]
    with pytest.raises(InfimumError, match="block"):
        load(text.replace("on: S", "on: T")).prepare()


def test_assign_puts_terms_into_slots(load) -> None:
    text = GOOD.replace("step: 0.5}", "step: 0.5, assign: {smooth: loss, rest: [penalty]}}")
    loaded = load(text)
    assert loaded.resolved()["solver"]["assign"] == {"smooth": "loss", "rest": ["penalty"]}
    assert loaded.prepare().solve().status.value in ("limit", "converged")
    with pytest.raises(RunFileError, match=r"run.yaml:2:"):
        load(GOOD.replace("step: 0.5}", "step: 0.5, assign: {smooth: 3}}"))


def test_a_saved_run_is_a_start(load, folder) -> None:
    earlier = load(GOOD).prepare().solve()
    earlier.save(folder / "earlier")
    loaded = load(GOOD + "x0: {run: earlier}\n")
    np.testing.assert_array_equal(loaded.prepare().point, earlier.best_x)
    assert f"run: {folder / 'earlier'}" in loaded.dump_yaml()


@pytest.mark.parametrize(
    ("x0", "message"),
    [
        ("{run: nowhere}", "run.yaml:5:11: x0: there is no result.json in "),
        ("{run: 3}", "run.yaml:5:11: x0: expected the folder of a saved result, got "),
        ("{run: broken, key: x}", "run.yaml:5:19: x0 has no option 'key' beside 'run'"),
        ("{run: broken}", "run.yaml:5:5: "),
    ],
)
def test_wrong_runs_as_a_start_are_located(load, folder, x0: str, message: str) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "result.json").write_text("{}")
    with pytest.raises(RunFileError) as caught:
        load(GOOD + f"x0: {x0}\n").prepare()
    assert message in str(caught.value)

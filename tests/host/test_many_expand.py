"""Which runs `sweep`, `repeat` and `compare` of a run file state, and every mistake with its place."""

from __future__ import annotations

import pytest

from infimum.plugins.registry import reset_registry
from infimum.runfile import RunFile, RunFileError
from infimum.runfile.many import load_many_file

BASE = """\
problem: {use: "python:x_many_own:make", n: 3}
solver: {use: splitting.gradient_descent, step: 0.1}
stopping: max_iter(5)
seed: 1
"""
MODULE = """
import numpy as np
from infimum import Composite
from infimum.functions import L1, LeastSquares

def make(n: int = 3, weight: float = 1.0) -> Composite:
    return Composite({"loss": weight * LeastSquares(np.eye(n), np.ones(n), reduction="sum")})

def rough(n: int = 3) -> Composite:
    return Composite({"loss": LeastSquares(np.eye(n), np.ones(n), reduction="sum"), "penalty": L1()})
"""


@pytest.fixture
def few_plugins(monkeypatch):
    """A refusal asks every oracle; those with large libraries are left out here."""
    monkeypatch.setenv("INFIMUM_PLUGINS", "splitting")
    reset_registry()
    yield
    reset_registry()


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x_many_own.py").write_text(MODULE)

    def load(text: str, *overrides: str, **options):
        (tmp_path / "many.yaml").write_text(BASE + text)
        return load_many_file("many.yaml", overrides, **options)

    return load


def places(error: RunFileError) -> list[str]:
    return [str(issue.place) for issue in error.issues]


def test_product_takes_every_combination_in_order(load) -> None:
    found = load("sweep:\n  product: {solver.step: [0.1, 0.2], problem.n: [2, 4]}\n")
    assert [one.values for one in found.members] == [
        {"solver.step": step, "problem.n": n} for step in (0.1, 0.2) for n in (2, 4)
    ]
    assert found.members[0].name == "step=0.1, n=2"
    assert found.varied == ("solver.step", "problem.n") and found.seeded
    assert [one.run_file.resolved()["solver"]["step"] for one in found.members] == [0.1, 0.1, 0.2, 0.2]
    assert [(one.problem, one.solver) for one in found.members][-1] == (
        "x_many_own:make(n=4)".rpartition(":")[2],
        "gradient_descent(step=0.2)",
    )


def test_zip_goes_through_lists_together(load) -> None:
    found = load("sweep:\n  zip: {solver.step: [0.1, 0.2], problem.n: [2, 4]}\n  product: {problem.weight: [1, 2]}\n")
    assert [tuple(one.values.values()) for one in found.members] == [(0.1, 2, 1), (0.1, 2, 2), (0.2, 4, 1), (0.2, 4, 2)]


def test_components_are_put_in_as_a_whole_and_their_options_vary_beside(load) -> None:
    text = """
sweep:
  components:
    solver:
      plain: splitting.gradient_descent
      fast: {use: splitting.proximal_gradient, acceleration: true}
  product: {solver.step: [0.1, 0.2]}
"""
    found = load(text)
    configs = [one.run_file.resolved()["solver"] for one in found.members]
    assert [(one["use"], one["step"], one.get("acceleration")) for one in configs] == [
        ("splitting.gradient_descent", 0.1, None),
        ("splitting.gradient_descent", 0.2, None),
        ("splitting.proximal_gradient", 0.1, True),
        ("splitting.proximal_gradient", 0.2, True),
    ]
    assert found.members[2].name == "fast, step=0.1"
    assert found.members[2].solver == "fast(step=0.1)"


def test_ranges(load) -> None:
    found = load(
        "sweep:\n  product:\n    solver.step: {logspace: [1e-3, 1e-1, 3]}\n    problem.n: {range: [2, 8, 3]}\n"
        "    problem.weight: {linspace: [1, 2, 2]}\n"
    )
    values = [one.values for one in found.members]
    assert sorted({one["solver.step"] for one in values}) == [0.001, 0.01, 0.1]
    assert {one["problem.n"] for one in values} == {2, 5}
    assert {one["problem.weight"] for one in values} == {1.0, 2.0}


def test_repeat_gives_repetitions_of_one_seed(load) -> None:
    found = load("repeat: 3\nsweep: {product: {solver.step: [0.1, 0.2]}}\n")
    assert [(one.name, one.repetition) for one in found.members] == [
        (f"step={step} #{k}", k) for step in ("0.1", "0.2") for k in range(3)
    ]
    assert {one.run_file.seed for one in found.members} == {1}
    assert len(load("repeat: 3\n").members) == 3
    assert len(load("repeat: 3\n", repeat=2).members) == 2


def test_exclude_leaves_combinations_out(load) -> None:
    text = "sweep:\n  product: {solver.step: [0.1, 0.2], problem.n: [2, 4]}\n"
    text += "  exclude: [{solver.step: 0.1, problem.n: 4}]\n"
    assert [tuple(one.values.values()) for one in load(text).members] == [(0.1, 2), (0.2, 2), (0.2, 4)]


def test_a_seed_that_is_not_given_is_drawn_once(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x_many_own.py").write_text(MODULE)
    (tmp_path / "many.yaml").write_text(BASE.replace("seed: 1\n", "repeat: 2\n"))
    found = load_many_file("many.yaml")
    assert not found.seeded
    assert {one.run_file.seed for one in found.members} == {found.seed}


def test_the_command_line_varies_too_and_goes_before_the_file(load) -> None:
    found = load("sweep: {product: {solver.step: [0.1, 0.2]}}\n", sweep=["solver.step=1e-3,1e-2", "problem.n=[2]"])
    assert [tuple(one.values.values()) for one in found.members] == [(1e-3, 2), (1e-2, 2)]
    assert len(load("", sweep=["solver.step=1e-3,1e-2"]).members) == 2


def test_mistakes_in_all_members_are_told_at_once_with_their_places(load) -> None:
    text = """\
sweep:
  product:
    solver.step: [0.1, -1, abc]
    solver.stepp: [1]
    problem.n: [2, two]
"""
    with pytest.raises(RunFileError) as caught:
        load(text)
    found = places(caught.value)
    assert "many.yaml:7:24" in found  # -1
    assert "many.yaml:7:28" in found  # abc
    assert any(place.startswith("many.yaml:8:") for place in found)  # stepp
    assert "many.yaml:9:20" in found  # two
    assert len(found) == len(set(map(str, caught.value.issues)))


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("sweep: 3\n", "many.yaml:5:8", "expected a mapping"),
        ("sweep: {grid: {solver.step: [1]}}\n", "many.yaml:5:9", "sweep has no option 'grid'"),
        ("sweep: {product: {solver.step: 1}}\n", "many.yaml:5:32", "a list of values"),
        ("sweep: {product: {solver.step: []}}\n", "many.yaml:5:32", "no values"),
        ("sweep: {product: {solvr.step: [1]}}\n", "many.yaml:5:19", "did you mean 'solver'"),
        ("sweep: {product: {output.dir: [a]}}\n", "many.yaml:5:19", "no place whose value can vary"),
        (
            "sweep: {zip: {solver.step: [1, 2], problem.n: [1]}}\n",
            "many.yaml:5:14",
            "step has 2, problem",
        ),
        ("sweep: {product: {solver.step: [1]}, zip: {solver.step: [1]}}\n", "many.yaml:5:8", "varies twice"),
        ("sweep: {product: {solver.step: {logspace: [0, 1, 3]}}}\n", "many.yaml:5:43", "positive ends"),
        ("sweep: {product: {solver.step: [1]}, exclude: [{problem.n: 1}]}\n", "many.yaml:5:49", "does not vary"),
        ("sweep: {product: {solver.step: [1]}, exclude: [{solver.step: 2}]}\n", "many.yaml:5:48", "no combination"),
        ("sweep: {product: {solver.step: [1]}, exclude: [{solver.step: 1}]}\n", "many.yaml:5:47", "nothing is left"),
        ("sweep: {product: {seed: {range: [0, 1000000]}}}\n", "many.yaml:5:33", "more than 100000"),
        (
            "sweep: {product: {seed: {range: [0, 1000]}, problem.n: {range: [1, 1000]}}}\n",
            "many.yaml:5:8",
            "999000 combinations are more than 100000",
        ),
        ("repeat: 0\n", "many.yaml:5:9", "whole number >= 1"),
        ("", "many.yaml:1:1", "no 'sweep' and no 'repeat'"),
    ],
)
def test_mistakes_of_the_sweep_itself(load, text: str, place: str, said: str) -> None:
    with pytest.raises(RunFileError) as caught:
        load(text)
    first = caught.value.issues[0]
    assert (str(first.place), said in first.message) == (place, True), str(caught.value)


def test_parts_that_do_not_fit_are_mistakes_of_a_sweep(few_plugins, load) -> None:
    text = 'sweep: {components: {problem: ["python:x_many_own:make", "python:x_many_own:rough"]}}\n'
    with pytest.raises(RunFileError, match="needs"):
        load(text)


def test_a_file_of_many_runs_states_no_single_one(load, tmp_path) -> None:
    (tmp_path / "one.yaml").write_text(BASE + "repeat: 2\n")
    with pytest.raises(RunFileError, match="infimum sweep FILE"):
        RunFile.load("one.yaml")
    (tmp_path / "one.yaml").write_text(BASE + "compare: {}\nrepeat: 2\n")
    with pytest.raises(RunFileError, match="infimum compare FILE"):
        RunFile.load("one.yaml")


COMPARE = """
compare:
  solvers:
    slow: {use: splitting.gradient_descent, step: 0.01}
    fast: {solver: {use: splitting.proximal_gradient}, check_every: 2}
  problems: ["python:x_many_own:make", {use: "python:x_many_own:make", n: 5}]
  budget: {gradient: 20}
  targets: {gap: [1e-6, 1e-2]}
  references: {make: 0.0}
"""


def test_compare_puts_every_method_on_every_problem_at_one_budget(load) -> None:
    found = load(COMPARE, compares=True)
    assert [(one.problem, one.solver) for one in found.members] == [
        ("make", "slow"),
        ("make", "fast"),
        ("make(n=5)", "slow"),
        ("make(n=5)", "fast"),
    ]
    assert found.terms is not None
    assert (found.terms.budget, found.terms.amount, found.terms.targets) == ("gradient", 20.0, (1e-2, 1e-6))
    configs = [one.run_file.resolved() for one in found.members]
    assert {one["stopping"] for one in configs} == {"max_iter(5) | max_calls(20, of='gradient')"}
    assert [one.get("check_every") for one in configs] == [None, 2, None, 2]
    assert {one["value_every"] for one in configs} == {1}


def test_the_budget_of_the_command_line_goes_before_the_files(load) -> None:
    found = load(COMPARE, compares=True, budget="seconds=2.5")
    assert found.terms is not None and (found.terms.budget, found.terms.amount) == ("seconds", 2.5)
    assert "max_solver_time(2.5)" in found.members[0].run_file.resolved()["stopping"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("budget: {gradient: 20}", "budget: {gradient: 20, seconds: 1}", "expected one of"),
        ("budget: {gradient: 20}", "budget: {gradient: 0.5}", "whole number"),
        ("budget: {gradient: 20}", "budget: {gradient: -1}", "expected one of"),
        ("  budget: {gradient: 20}\n", "", "'budget' is missing"),
        ("targets: {gap: [1e-6, 1e-2]}", "targets: {gab: [1]}", "expected a list, or one of"),
        ("targets: {gap: [1e-6, 1e-2]}", "targets: [0]", "numbers > 0"),
        ("check_every: 2", "seed: 2", "cannot differ"),
        ("budget:", "buget: 1\n  budget:", "did you mean 'budget'"),
    ],
)
def test_mistakes_of_a_comparison(load, old: str, new: str, said: str) -> None:
    assert old in COMPARE
    with pytest.raises(RunFileError, match=said):
        load(COMPARE.replace(old, new), compares=True)


def test_a_method_that_does_not_fit_is_an_answer_of_a_comparison(few_plugins, load) -> None:
    text = COMPARE.replace('{use: "python:x_many_own:make", n: 5}', '"python:x_many_own:rough"')
    found = load(text, compares=True)
    refused = {(one.problem, one.solver): one.refused for one in found.members}
    assert refused["rough", "fast"] is None and refused["make", "slow"] is None
    assert "needs gradient" in (refused["rough", "slow"] or "")


def test_a_budget_that_no_method_uses_is_refused(few_plugins, load) -> None:
    with pytest.raises(RunFileError, match="counts evaluations of prox"):
        load(COMPARE.replace("gradient: 20", "prox: 20"), compares=True)

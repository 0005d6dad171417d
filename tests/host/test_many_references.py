"""Known best values that a solver is to find: in a run file or in Python, found once, refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import infimum
from infimum.errors import InputError
from infimum.functions import LeastSquares
from infimum.runfile import RunFileError

FILE = """\
problem: {use: problems.rosenbrock, n: 2}
x0: [0.5, 0.5]
seed: 1
compare:
  solvers: {short: {use: splitting.gradient_descent, step: 1e-3}, long: {use: splitting.gradient_descent, step: 2e-3}}
  budget: {gradient: 20}
  targets: {gap: [1e-1, 1e-12]}
  references: REFERENCES
"""


@pytest.fixture
def compare(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def compare(references: str, **options):
        (tmp_path / "compare.yaml").write_text(FILE.replace("REFERENCES", references))
        return infimum.compare("compare.yaml", **{"jobs": 1, "cache": False, **options})

    return compare


@pytest.mark.parametrize(
    "stated", ["scipy.bfgs", "{use: scipy.bfgs}", "{rosenbrock: {solver: scipy.bfgs, stopping: grad_norm(1e-9)}}"]
)
def test_a_solver_finds_the_reference_without_the_budget(compare, stated: str) -> None:
    found = compare(stated, folder="out")
    value, origin = found.best("rosenbrock")
    assert abs(value) < 1e-10 and origin == "by scipy.bfgs"
    assert found.solvers == ("short", "long"), "the run for the reference is none of those that are compared"
    assert "(by scipy.bfgs)" in str(found)
    assert all(hit.cost == np.inf for hit in found.time_to_target() if hit.target == 1e-12)
    assert infimum.Runs.load("out").best("rosenbrock") == (value, origin)
    assert compare("0.0").best("rosenbrock") == (0.0, "given")


def test_resuming_and_the_cache_find_it_once(compare, tmp_path) -> None:
    first = compare("scipy.bfgs", folder="out", cache=tmp_path / "cache")
    lines = tmp_path / "out" / "references" / "members.jsonl"
    assert lines.read_text().count("\n") == 1
    again = compare("scipy.bfgs", folder="out", resume=True, cache=False)
    assert lines.read_text().count("\n") == 1 and again.references == first.references
    compare("scipy.bfgs", folder="other", cache=tmp_path / "cache")
    assert '"cached": true' in (tmp_path / "other" / "references" / "members.jsonl").read_text()


def test_it_serves_problems_stated_by_objects() -> None:
    problem = infimum.Composite({"loss": LeastSquares(np.diag([1.0, 2.0]), np.ones(2), reduction="sum")})
    found = infimum.compare(
        {"mine": problem},
        {"a": {"use": "splitting.gradient_descent", "step": 0.1}},
        budget={"iterations": 3}, references={"use": "splitting.gradient_descent", "step": 0.2}, seed=1, jobs=1,
    )  # fmt: skip
    value, origin = found.best("mine")
    assert origin == "by splitting.gradient_descent" and abs(value) < 1e-8


@pytest.mark.parametrize(
    ("stated", "error", "said"),
    [
        ("scipy.bfgss", InputError, "did you mean 'scipy.bfgs'"),
        ("{solver: splitting.gradient_descent, stopping: max_iter(5)}", InputError, "ended as (nonfinite|diverged)"),
        ("{elsewhere: 1.0}", InputError, "no problem is called 'elsewhere'"),
        ("[1.0]", RunFileError, "expected a number, a solver such as"),
        ("{rosenbrock: true}", RunFileError, "expected a number, a solver such as"),
        ("{rosenbrock: {solver: scipy.bfgs, budget: 3}}", RunFileError, "expected a number, a solver such as"),
    ],
)
def test_what_cannot_serve_is_refused(compare, stated: str, error, said: str) -> None:
    if "stopping" in stated:
        stated = stated.replace("splitting.gradient_descent", "{use: splitting.gradient_descent, step: 1e3}")
    with pytest.raises(error, match=said):
        compare(stated)

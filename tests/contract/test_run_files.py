"""Every ready run file: it passes `check`, or the plan refuses it as its comment says; it runs; its examples hold."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import infimum
from infimum.cli.many import states_many
from infimum.errors import PlanError
from infimum.runfile import RunFile, RunFileError
from infimum.status import Status

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("problems/runs/*.yaml"), *ROOT.glob("plugins/*/runs/*.yaml")])
EVERY = [str(path.relative_to(ROOT)) for path in FILES]
MANY = [name for name in EVERY if states_many(str(ROOT / name), [])]
"""Files that state many runs: a sweep or a comparison."""
NAMES = [name for name in EVERY if name not in MANY]
SLOW: set[str] = set()
"""Files, from the top of the checkout, whose runs take more than a few seconds."""
BROKEN = {Status.failed, Status.nonfinite, Status.diverged, Status.infeasible, Status.interrupted}
COMMAND = re.compile(r"^#\s+infimum (run|check|explain|sweep|compare) (\S+)(.*)$", re.MULTILINE)

pytestmark = pytest.mark.filterwarnings("ignore::infimum.errors.InfimumWarning")


def test_there_are_run_files() -> None:
    assert "problems/runs/sparse-logistic.yaml" in NAMES


def refusal(loaded: RunFile, verb: str = "check") -> RunFileError | None:
    """Why the plan refuses a file; any other mistake is raised."""
    try:
        assert str(loaded.explain() if verb == "explain" else loaded.prepare().describe())
    except RunFileError as error:
        if isinstance(error.__cause__, PlanError) and len(error.issues) == 1:
            return error
        raise
    return None


@pytest.mark.parametrize("name", NAMES)
def test_it_is_checked_and_runs(name: str) -> None:
    loaded = RunFile.load(ROOT / name)
    if (refused := refusal(loaded)) is not None:
        said = "infimum explain" in (ROOT / name).read_text(encoding="utf-8")
        assert said, f"{name} is refused, so its comment must name `infimum explain`:\n{refused}"
        return
    if name in SLOW:
        return
    run = loaded.prepare()
    result = run.solve()
    assert result.status not in BROKEN, result
    if run.problem.reference is not None:
        assert result.best_value == pytest.approx(run.problem.reference, rel=1e-4, abs=1e-6), result


@pytest.mark.parametrize("name", MANY)
def test_all_of_its_runs_end(name: str) -> None:
    make = infimum.compare if states_many(str(ROOT / name), []) == "compare" else infimum.sweep
    runs = make(ROOT / name, jobs=1, cache=False)
    assert len(runs) > 1
    assert not [one.name for one in runs if one.status in {*map(str, BROKEN), "invalid", "crashed"}]


@pytest.mark.parametrize("name", MANY)
def test_it_says_how_to_start_it(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    found = COMMAND.findall(text)
    assert found and all(file == name and verb in ("sweep", "compare") for verb, file, _ in found)
    assert all("." in one for one in re.findall(r"use:\s*([\w.:]+)", text))
    assert re.search(r"^seed: ", text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_its_names_are_qualified_and_its_seed_is_given(name: str) -> None:
    loaded = RunFile.load(ROOT / name)
    given = re.findall(r"use:\s*([\w.:]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert given and all("." in one for one in given), given
    assert loaded.origins()["seed"] != "drawn at random"


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_in_its_comment_hold(name: str) -> None:
    """Each is of this file, and its overrides pass, or are refused by the plan, which is what `explain` shows."""
    commands = COMMAND.findall((ROOT / name).read_text(encoding="utf-8"))
    assert commands, f"the comment of {name} shows no command, such as: infimum run {name}"
    for verb, file, rest in commands:
        assert file == name
        refused = refusal(RunFile.load(ROOT / file, shlex.split(rest, comments=True)), verb)
        assert refused is None or verb == "explain", refused

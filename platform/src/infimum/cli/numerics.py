"""`infimum check --numerics FILE`: what the terms of a problem say of themselves, against numbers."""

from __future__ import annotations

from infimum.cli import guard
from infimum.cli.output import as_json, say
from infimum.cli.runs import check_file
from infimum.errors import InputError
from infimum.plan.bind import streams
from infimum.problem.base import start_by
from infimum.runfile import RunFile
from infimum.testing import Report, check_problem


def check_numerics(file: str, overrides: list[str], *, json: bool, python: bool) -> int:
    """Check every term at the start, then do what `check` does; 2 if anything is wrong."""
    loaded = RunFile.load(file, overrides, allow_python=python)
    reports = _reports(loaded)
    wrong = [one for one in reports if not one.ok]
    if json:
        as_json({"file": file, "ok": not wrong, "terms": [one.to_dict() for one in reports]})
        return guard.BAD_INPUT if wrong else guard.OK
    for one in reports:
        say(str(one))
    say()
    code = check_file(file, overrides, json=False, python=python)
    return max(code, guard.BAD_INPUT) if wrong else code


def _reports(loaded: RunFile) -> list[Report]:
    problem, rng = loaded.stated(), streams(loaded.seed)("start")
    start = loaded.start()
    if isinstance(start, str):
        start = start_by(start, problem, rng)
    elif start is None:
        start = problem.start(rng)
    if start is None:
        raise InputError(f"{problem.describe()} has no start; give x0 to check its terms there")
    return check_problem(problem, start)

"""Commands on one run file: `run`, `check`, `explain`, `show`."""

from __future__ import annotations

import json as json_
import math
import sys
import traceback
from pathlib import Path
from typing import Any

import typer

from infimum.cli import guard
from infimum.cli.output import as_json, say, table
from infimum.records import RunFolder, solve_to_folder
from infimum.result import Result
from infimum.run.stop import dump_reasons
from infimum.runfile import RunFile, RunFileError
from infimum.runfile.tree import Path as ValuePath
from infimum.runfile.tree import path_text

_BROKEN = ("nonfinite", "diverged", "infeasible", "failed")


def run_file(
    file: str, overrides: list[str], *, seed: int | None, output: str | None, quiet: bool, json: bool, python: bool
) -> int:
    """Solve, save, print; the exit code says how the run ended."""
    if seed is not None:
        overrides = [*overrides, f"seed={seed}"]
    loaded = RunFile.load(file, overrides, allow_python=python)
    kept = RunFolder.at(output) if output is not None else RunFolder.create(loaded.output, loaded.name)
    result = solve_to_folder(loaded, kept, verbose=not (quiet or json) and sys.stderr.isatty())
    return ended(result, kept, loaded.name, quiet=quiet, json=json)


def ended(result: Result, kept: RunFolder, name: str, *, quiet: bool, json: bool) -> int:
    """Print what came out; the exit code says how the run ended, and whether it was saved."""
    code = _code(str(result.status))
    saved = f"saved in {kept.path}"
    if kept.status is None:
        saved, code = f"not saved in {kept.path}", max(code, guard.FAILED)
    if json:
        as_json(_result_data(result, name, kept.path))
    elif not quiet:
        say(str(result))
        say(f"  {saved}")
        if kept.checkpoints():
            say(f"  infimum resume {kept.path}  goes on from iteration {kept.checkpoints()[-1]}")
    if result.error is not None and guard.verbosity >= 2:
        traceback.print_exception(result.error)
    return code


def _code(status: str) -> int:
    if status == "interrupted":
        return guard.INTERRUPTED
    return guard.FAILED if status in _BROKEN else guard.OK


def _result_data(result: Any, name: str, folder: Path) -> dict[str, Any]:
    plain = (
        "value",
        "best_value",
        "violation",
        "success",
        "message",
        "iterations",
        "elapsed",
        "evaluations",
        "calls",
        "monitored",
        "exactness",
        "metrics",
        "seed",
        "notes",
        "versions",
    )
    return {
        "name": name,
        "status": str(result.status),
        **{key: _finite(getattr(result, key)) for key in plain},
        "fired": _finite(dump_reasons(result.fired)),
        "folder": str(folder),
    }


def _finite(value: Any) -> Any:
    """JSON has no inf and no NaN."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return {key: _finite(one) for key, one in value.items()} if isinstance(value, dict) else value


def check_file(file: str, overrides: list[str], *, json: bool, python: bool) -> int:
    """Everything up to the first step."""
    try:
        run = RunFile.load(file, overrides, allow_python=python).prepare()
    except RunFileError as error:
        if not json:
            raise
        as_json({"file": file, "ok": False, "issues": [one.to_dict() for one in error.issues]})
        return guard.BAD_INPUT
    if json:
        as_json({"file": file, "ok": True, "issues": [], "plan": run.plan.to_dict(), "notes": list(run.notes)})
    else:
        say(f"{file}: no mistakes in the file")
        say(run.describe())
    return guard.OK


def explain_file(file: str, overrides: list[str], *, every: bool, json: bool, python: bool) -> int:
    """The plan of the file's solver, or of all."""
    explained = RunFile.load(file, overrides, allow_python=python).explain(every=every)
    if json:
        as_json(explained.to_dict())
    else:
        say(str(explained))
    return guard.OK


def show_file(file: str, overrides: list[str], *, origin: bool, json: bool, python: bool) -> None:
    """The resolved file, or each of its values with where it comes from."""
    loaded = RunFile.load(file, overrides, allow_python=python)
    if not origin:
        if json:
            as_json(loaded.resolved())
        else:
            typer.echo(loaded.dump_yaml(), nl=False)
        return
    origins = loaded.origins()
    rows = [(path, value, origins[path]) for path, value in _values(loaded.resolved())]
    if json:
        as_json([{"key": path, "value": value, "origin": place} for path, value, place in rows])
    else:
        table([(path, _short(value), place) for path, value, place in rows], ("key", "value", "from"))


def _values(data: Any) -> list[tuple[str, Any]]:
    from infimum.runfile.model import leaves

    found: list[tuple[ValuePath, Any]] = list(leaves(data))
    return [(path_text(path), value) for path, value in found]


def _short(value: Any) -> str:
    text = json_.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:97] + "..."

"""Commands on one run file: `run`, `check`, `explain`, `show`."""

from __future__ import annotations

import json as json_
import math
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from infimum.cli import guard
from infimum.cli.output import as_json, say, table
from infimum.errors import InfimumError, InputError
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
    run = loaded.prepare(verbose=not (quiet or json) and sys.stderr.isatty())
    folder = _new_folder(loaded, output)
    (folder / "run.yaml").write_text(loaded.dump_yaml(), encoding="utf-8")
    result = run.solve()
    code = _code(str(result.status))
    saved = f"saved in {folder}"
    try:
        result.save(folder)
    except (OSError, InfimumError) as error:
        saved, code = f"not saved in {folder}: {error}", max(code, guard.FAILED)
        typer.echo(f"error: the result is {saved}", err=True)
    if json:
        as_json(_result_data(result, loaded.name, folder))
    elif not quiet:
        say(str(result))
        say(f"  {saved}")
    if result.error is not None and guard.verbosity >= 2:
        traceback.print_exception(result.error)
    return code


def _code(status: str) -> int:
    if status == "interrupted":
        return guard.INTERRUPTED
    return guard.FAILED if status in _BROKEN else guard.OK


def _new_folder(loaded: RunFile, output: str | None) -> Path:
    """A folder that no earlier run has used."""
    if output is not None:
        folder = Path(output)
        for name in ("run.yaml", "result.json"):
            if (folder / name).exists():
                raise InputError(f"--output {folder} already holds a {name}; choose another folder")
        return _made(folder, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    above = Path(loaded.output) / loaded.name
    number = 1
    while True:
        folder = above / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            return _made(folder, exist_ok=False)
        except FileExistsError:
            number += 1


def _made(folder: Path, *, exist_ok: bool) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
    except FileExistsError:
        if not exist_ok and folder.is_dir():
            raise
        raise InputError(f"{folder} is a file; a folder for the result was expected") from None
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}; give another with --output") from None
    return folder


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

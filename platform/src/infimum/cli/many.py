"""Commands on many runs: `sweep`, `compare`, `cache`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infimum.cli import guard
from infimum.cli.output import as_json, say, table
from infimum.errors import InputError
from infimum.many.cache import Cache, leaves_all_in_folder
from infimum.many.comparison import Comparison
from infimum.many.launch import Options, latest_folder, launch
from infimum.many.members import Runs
from infimum.many.planned import Agenda
from infimum.many.planning import from_path
from infimum.many.sweeping import Sweep
from infimum.records import RunFolder
from infimum.runfile import RunFileError
from infimum.runfile.keys import MANY_KEYS
from infimum.runfile.loader import load_tree


def run_many(
    file: str,
    overrides: list[str],
    *,
    compares: bool,
    options: dict[str, Any],
    stated: dict[str, Any],
    output: str | None,
    quiet: bool,
    json: bool,
) -> int:
    """Run a sweep or a comparison; print its table and where it was saved."""
    how = Options(**options, progress=not (quiet or json))
    agenda = from_path(file, overrides, memo=how.memo, compares=compares, **stated)
    kind = Comparison.kind if compares else Sweep.kind
    # Refused before the folder is made.
    how.settings(agenda)
    folder = _folder(agenda, kind, output, how)
    runs = launch(agenda, kind, Options(**{**options, "folder": folder}, progress=how.progress))
    if json:
        as_json(_data(runs))
    elif not quiet:
        say(str(runs))
        for note in runs.notes:
            say(f"note: {note}")
        if not runs.complete:
            say(f"{_done(runs)} of {len(runs)} finished; add --resume --output {folder} to go on")
    return _code(runs)


def _folder(agenda: Agenda, kind: str, output: str | None, how: Options) -> Path:
    if output is not None:
        return Path(output)
    return latest_folder(agenda, kind) if how.resume else RunFolder.create(agenda.output, agenda.name).path


def _done(runs: Runs) -> int:
    return sum(member.status != "interrupted" for member in runs)


def _code(runs: Runs) -> int:
    if not runs.complete:
        return guard.INTERRUPTED
    lost = any(member.lost or member.status in ("diverged", "infeasible") for member in runs)
    return guard.FAILED if lost else guard.OK


def _data(runs: Runs) -> dict[str, Any]:
    data: dict[str, Any] = {**runs.header(), "folder": str(runs.folder), "members": runs.rows()}
    if isinstance(runs, Comparison):
        data["summary"] = runs.summary()
        data["target_values"] = {
            problem: {f"{target:g}": runs.level(problem, target) for target in runs.targets}
            for problem in runs.problems
        }
    found: dict[str, Any] = finite(data)
    return found


def finite(value: Any) -> Any:
    """JSON has no inf and no NaN."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, list):
        return [finite(one) for one in value]
    return {key: finite(one) for key, one in value.items()} if isinstance(value, dict) else value


def states_many(file: str, overrides: list[str]) -> str | None:
    """The key by which a file states many runs, if it does."""
    try:
        tree, _ = load_tree(file, overrides)
    except RunFileError:
        return None
    return next((name for name in reversed(MANY_KEYS) if name in tree.value), None)


def check_many(file: str, overrides: list[str], *, compares: bool, json: bool, python: bool) -> int:
    """Everything up to the first step of every member."""
    try:
        agenda = from_path(file, overrides, compares=compares, allow_python=python)
    except RunFileError as error:
        if not json:
            raise
        as_json({"file": file, "ok": False, "issues": [one.to_dict() for one in error.issues]})
        return guard.BAD_INPUT
    known: dict[str, Any] = {}
    cache = Cache()
    hits = sum(
        agenda.seeded
        and leaves_all_in_folder(one.config)
        and (cache.folder / Cache.key(one.config, one.repetition, known)).is_dir()
        for one in agenda.members
    )
    members = [
        {"name": one.name, "problem": one.problem, "solver": one.solver, "values": one.values, "refused": one.refused}
        for one in agenda.members
    ]
    if json:
        as_json({"file": file, "ok": True, "issues": [], "members": members, "cached": hits})
        return guard.OK
    say(f"{file}: no mistakes in the file")
    say(f"{len(members)} runs, {hits} of them cached" + ("" if agenda.seeded else " (without a seed nothing is)"))
    rows = [(str(one["name"]), str(one["refused"] or "")) for one in members]
    table(rows, ("run", "cannot start"))
    return guard.OK


def cache_list(*, json: bool) -> None:
    """What is kept."""
    cache = Cache()
    entries = list(cache.entries())
    if json:
        names = ("key", "name", "problem", "solver", "status", "seconds", "bytes", "used", "time_limited")
        as_json(finite([{name: one.get(name) for name in names} for one in entries]))
        return
    rows = [
        (
            one["key"][:12],
            one.get("problem") or "",
            one.get("solver") or "",
            one["status"] + (" (by time)" if one.get("time_limited") else ""),
            f"{one['seconds']:.3g}",
            f"{one['bytes'] / 1024:.0f}",
        )
        for one in entries
    ]
    table(rows, ("key", "problem", "solver", "status", "seconds", "KiB"))
    say(f"{len(entries)} runs, {sum(one['bytes'] for one in entries) / 2**20:.1f} MiB in {cache.folder}")


def cache_clear(older_than: float | None) -> None:
    """Remove what is kept."""
    if older_than is not None and older_than < 0:
        raise InputError(f"--older-than {older_than:g}: expected days >= 0")
    cache = Cache()
    count = cache.clear(None if older_than is None else older_than * 86400)
    say(f"{count} runs removed from {cache.folder}")

"""The manifest of a run: everything that took part, so that a later run can say what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from infimum.plugins.registry import get_registry
from infimum.records.hashes import content_hash, local_files, package_hash
from infimum.records.machine import environment, machine_facts, thread_facts, torch_facts
from infimum.run.run import Run
from infimum.runfile.model import RunFile
from infimum.versions import show_versions

FORMAT = 1


def manifest(run_file: RunFile | None, run: Run, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What takes part in a run, as plain data. It holds no host name, user or path.

    Parameters
    ----------
    run_file : RunFile or None
        None for a run made in Python.
    run : Run
        Made, not yet solved.
    config : mapping, optional
        The resolved run file, where it is at hand.

    Returns
    -------
    dict
        With `seed`, `repetition`, `resume`, `versions`, `plugins` (distribution, version and SHA-256 of the package),
        `files` (SHA-256 of the user's own modules and data), `threads`, `torch`, `environment`, `machine`.
    """
    if config is None:
        config = run_file.resolved() if run_file is not None else {}
    folders = run_file.made.folders if run_file is not None else ()
    return {
        "format": FORMAT,
        "name": run_file.name if run_file is not None else "",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seed": run.seed,
        "repetition": run.repetition,
        "resume": run.plan.resume if not run.solver.drives else "none",
        "versions": dict(_versions()),
        "plugins": plugin_facts(run, config),
        "files": {name: content_hash(path) for name, path in local_files(config, folders).items()},
        "threads": thread_facts(),
        "torch": torch_facts(),
        "environment": environment(),
        "machine": machine_facts(),
    }


@cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Kept for the process: reading the metadata of many distributions takes longer than many a run."""
    return tuple((name, one) for name, one in show_versions().items() if name != "system")


def plugin_facts(run: Run, config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The host and every plugin that takes part: distribution, version, and hash of its package."""
    used = {module.partition(".")[0] for module in _modules(run)}
    named = {name.partition(".")[0] for name in _names(config)}
    facts = {}
    for record in get_registry().plugins:
        package = record.module.partition(".")[0]
        if record.status == "active" and (package in used or record.name in named or package == "infimum"):
            facts[record.name] = {
                "distribution": record.distribution,
                "version": record.version,
                "sha256": package_hash(package),
            }
    return facts


def _modules(run: Run) -> Iterator[str]:
    """Modules that the classes of a run come from."""
    yield from (type(run.problem).__module__, type(run.solver).__module__, type(run.rule).__module__)
    for term in run.problem.terms:
        yield type(term.body).__module__
    for lift in (*run.plan.assignment.lifts.values(), *run.plan.assignment.slot_lifts.values()):
        if lift.choice is not None:
            yield type(lift.choice.oracle).__module__


def _names(config: Any) -> Iterator[str]:
    """Component names in a resolved run file."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key == "use" and isinstance(value, str):
                yield value
            yield from _names(value)
    elif isinstance(config, list):
        for value in config:
            yield from _names(value)

"""Finished runs by what defines them: the resolved run file, and the contents of everything that it names."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infimum.checkpoint import relaxed, write_whole
from infimum.many.sources import digest, facts
from infimum.many.store import PARTIAL
from infimum.many.task import OUTCOME
from infimum.plugins.python_target import PREFIX
from infimum.status import Status

log = logging.getLogger("infimum")

FORMAT = 1
CACHED = (Status.converged, Status.target_reached, Status.stalled, Status.limit)
"""Statuses of runs that are kept; others may end otherwise the next time, or are mistakes to be found."""
_IRRELEVANT = ("name", "output", "checkpoint")
"""Keys of a run file that change nothing about what is in the run's folder at its end."""


def default_folder() -> Path:
    """`$INFIMUM_CACHE`, else `infimum` in the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`)."""
    own = os.environ.get("INFIMUM_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "infimum" / "runs"


def leaves_all_in_folder(config: Mapping[str, Any]) -> bool:
    """Whether a run's folder holds all that the run leaves behind: no observer of it writes anywhere else."""
    observers = config.get("observers") or ()
    if not observers:
        return True
    from infimum.plugins.build import build

    if any(str(one["use"]).startswith(PREFIX) for one in observers):
        return False
    made = [build(one, "observer").instance for one in observers]
    return all(getattr(one, "stays_in_folder", False) for one in made)


class Cache:
    """A folder of finished runs: `<key>/`, a run folder each.

    Parameters
    ----------
    folder : path, optional
        `$INFIMUM_CACHE`, else a folder in the user's cache folder.

    Notes
    -----
    Entries appear whole: they are copied beside and renamed. One that is damaged counts as absent.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()

    @staticmethod
    def key(config: Mapping[str, Any], repetition: int, known: dict[str, Any] | None = None) -> str:
        """What defines a run: its resolved file, its repetition, and the code and data that it names.

        `known` keeps the facts of configurations that name the same things.
        """
        stated = {name: value for name, value in config.items() if name not in _IRRELEVANT}
        found = facts(config) if known is None else _remembered(stated, config, known)
        return digest([FORMAT, stated, repetition, found])[:40]

    def take(self, key: str, folder: Path) -> dict[str, Any] | None:
        """Put a copy of a finished run at `folder`, whole, and tell its outcome; None where there is none."""
        entry, beside = self.folder / key, folder.with_name(f"{folder.name}.{os.getpid()}{PARTIAL}")
        try:
            found = json.loads((entry / OUTCOME).read_text(encoding="utf-8"))
            if not (entry / "result.json").is_file():
                return None
            shutil.rmtree(beside, ignore_errors=True)
            shutil.copytree(entry, beside)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(beside, folder)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("the cached run %s cannot be used: %s", entry, error)
            return None
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        os.utime(entry)
        told: dict[str, Any] = found
        return told

    def put(self, key: str, folder: Path, told: Mapping[str, Any], line: Mapping[str, Any]) -> None:
        """Keep a finished run, unless it may end otherwise the next time. That it cannot be written is no error."""
        entry = self.folder / key
        if told["status"] not in map(str, CACHED) or entry.exists() or not (folder / "result.json").is_file():
            return
        beside = self.folder / f"{key}.{os.getpid()}{PARTIAL}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.copytree(folder, beside)
            facts_of = {name: line.get(name) for name in ("name", "problem", "solver")}
            with relaxed():
                write_whole(beside / OUTCOME, json.dumps({**facts_of, **told}, default=str) + "\n")
            os.replace(beside, entry)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            if not entry.exists():
                log.warning("the run was not cached in %s: %s", self.folder, error.strerror or error)

    def entries(self) -> Iterator[dict[str, Any]]:
        """What is kept: key, name, problem, solver, status, seconds, bytes, used (a time), time_limited."""
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            with contextlib.suppress(OSError, ValueError):
                told = json.loads((path / OUTCOME).read_text(encoding="utf-8"))
                size = sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
                yield {**told, "key": path.name, "bytes": size, "used": path.stat().st_mtime}

    def clear(self, older_than: float | None = None) -> int:
        """Remove all entries, or those that were not used for so many seconds; says how many."""
        import time

        count = 0
        for path in list(self.folder.iterdir()) if self.folder.is_dir() else ():
            with contextlib.suppress(OSError):
                if older_than is None or time.time() - path.stat().st_mtime > older_than:
                    count += (path / OUTCOME).is_file()
                    shutil.rmtree(path)
        return count


def _remembered(stated: Mapping[str, Any], config: Mapping[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Facts, looked up once for configurations that differ in numbers only."""
    words = digest(_words(stated))
    if words not in known:
        known[words] = facts(config)
    found: dict[str, Any] = known[words]
    return found


def _words(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _words(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_words(one) for one in value if not isinstance(one, int | float)]
    return value if isinstance(value, str) else None

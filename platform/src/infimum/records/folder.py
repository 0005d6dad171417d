"""The folder of one run: `runs/<name>/<stamp>/` with what was run, what came out, and checkpoints while it lasts."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from infimum.checkpoint import json_text, load_tree, write_whole
from infimum.errors import InputError
from infimum.result import Result
from infimum.run.cadence import checkpoints, remove_checkpoint
from infimum.runfile.reader import CoreLoader

if TYPE_CHECKING:
    from infimum.runfile.model import RunFile

log = logging.getLogger("infimum")

CONFIG, MANIFEST, RESULT, LOG, CHECKPOINTS = "run.yaml", "manifest.json", "result.json", "log.txt", "checkpoints"
"""Names in a run's folder; beside them stand the arrays of the result, `x.npz` and `trace.npz`."""
ENDED_BEFORE_TIME = ("interrupted", "failed")
"""Statuses of results that a resumed run replaces."""


class RunFolder:
    """A run's folder. Nothing in it needs to exist; what is missing is said where it is asked for.

    Parameters
    ----------
    path : str or path
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.made: tuple[Path, ...] = ()
        """Folders above it that were made for it, from below."""

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    @classmethod
    def create(cls, parent: str | Path, name: str) -> RunFolder:
        """A new folder `parent/name/<UTC time>` that no earlier run has used.

        Raises
        ------
        InputError
            If it cannot be made.
        """
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        number = 1
        while True:
            path = Path(parent) / name / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                return cls._made(path, exist_ok=False)
            except FileExistsError:
                number += 1

    @classmethod
    def at(cls, path: str | Path) -> RunFolder:
        """A folder of the user's choice, made if needed.

        Raises
        ------
        InputError
            If it holds a run already, or cannot be made.
        """
        for name in (CONFIG, RESULT, MANIFEST):
            if (Path(path) / name).exists():
                raise InputError(f"{path} already holds a {name}; choose another folder")
        return cls._made(Path(path), exist_ok=True)

    @classmethod
    def _made(cls, path: Path, *, exist_ok: bool) -> RunFolder:
        folder = cls(path)
        folder.made = tuple(one for one in path.parents if not one.exists())
        _make(path, exist_ok=exist_ok)
        return folder

    @classmethod
    def existing(cls, path: str | Path) -> RunFolder:
        """The folder of a run that was made before.

        Raises
        ------
        InputError
            If there is none.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise InputError(f"{path}: there is no such folder; expected that of a run, such as runs/NAME/TIME")
        if not (folder.path / MANIFEST).exists():
            if (folder.path / "many.json").exists():
                raise InputError(f"{path} is the folder of many runs; name one of its members, below {path}/members")
            raise InputError(f"{path} holds no {MANIFEST}, so it is not the folder of a run")
        return folder

    @property
    def has_config(self) -> bool:
        """Whether the folder states the whole run, so that it can be repeated from it alone."""
        return (self.path / CONFIG).exists()

    @property
    def config(self) -> dict[str, Any]:
        """The resolved run file as data; {} for a run made in Python from objects that no file holds."""
        if not self.has_config:
            return {}
        try:
            found = yaml.load((self.path / CONFIG).read_text(encoding="utf-8"), Loader=CoreLoader)
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise InputError(f"{self.path / CONFIG}: cannot be read ({error})") from None
        return dict(found) if isinstance(found, dict) else {}

    def run_file(self) -> RunFile:
        """The resolved run file, read and checked."""
        from infimum.runfile.model import RunFile

        return RunFile.load(self.path / CONFIG)

    @property
    def manifest(self) -> dict[str, Any]:
        """What took part: versions, hashes, seed, threads, machine.

        Raises
        ------
        InputError
            If it is missing or damaged.
        """
        path = self.path / MANIFEST
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read ({error})") from None
        if not isinstance(found, dict):
            raise InputError(f"{path}: not a file that infimum wrote")
        return found

    def write_manifest(self, manifest: dict[str, Any], *, flush: bool = True) -> None:
        """Put a manifest in the place of the one that is there, if any."""
        write_whole(self.path / MANIFEST, json_text(manifest), flush=flush)

    @property
    def status(self) -> str | None:
        """The status word of the result that is there; None without one that can be read."""
        try:
            found = json.loads((self.path / RESULT).read_text(encoding="utf-8"))["data"]["status"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return str(found)

    @property
    def is_finished(self) -> bool:
        """Whether the run came to its end: it has a result, and was neither interrupted nor did it fail."""
        status = self.status
        return status is not None and status not in ENDED_BEFORE_TIME

    def result(self) -> Result:
        """The result.

        Raises
        ------
        InputError
            If there is none, or it is damaged.
        """
        if not (self.path / RESULT).exists():
            raise InputError(
                f"{self.path} holds no result: the run is going on or was killed; infimum resume {self.path} goes on"
            )
        return Result.load(self.path)

    @property
    def log(self) -> str:
        """What was logged, over all pieces of the run."""
        path = self.path / LOG
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    @property
    def checkpoint_folder(self) -> Path:
        return self.path / CHECKPOINTS

    def checkpoints(self) -> list[int]:
        """Iterations of the checkpoints, oldest first."""
        return checkpoints(self.checkpoint_folder) if self.checkpoint_folder.is_dir() else []

    def checkpoint(self) -> tuple[int, dict[str, Any]] | None:
        """Iteration and state of the newest checkpoint that is whole; None without one.

        One that is damaged is passed over, and the log says so.
        """
        for iteration in reversed(self.checkpoints()):
            try:
                return iteration, load_tree(self.checkpoint_folder, str(iteration))
            except InputError as error:
                log.warning("the checkpoint at iteration %d is passed over: %s", iteration, error)
        return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Held by one process at a time, where the system can; given up when that process ends, however it ends.

        Raises
        ------
        InputError
            If another process holds it.
        """
        try:
            import fcntl
        except ImportError:
            yield
            return
        with (self.path / LOG).open("a", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{self.path}: another process is at this run; wait for its end or stop it") from None
            except OSError:
                log.debug("%s cannot be locked", self.path)
            yield

    def clear_checkpoints(self) -> None:
        """Remove them, as a run does that has come to its end."""
        if not self.checkpoint_folder.is_dir():
            return
        for iteration in self.checkpoints():
            remove_checkpoint(self.checkpoint_folder, iteration)
        for path in self.checkpoint_folder.iterdir():
            path.unlink()
        self.checkpoint_folder.rmdir()


def _make(folder: Path, *, exist_ok: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
    except FileExistsError:
        if not exist_ok and folder.is_dir():
            raise
        raise InputError(f"{folder} is a file; a folder for the result was expected") from None
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}; give another with --output") from None

"""The folder of many runs: `many.json`, `members.jsonl` (a line for each as it comes), `members/<id>/`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infimum.checkpoint import write_whole
from infimum.errors import InfimumError, InputError
from infimum.many.members import Member

HEADER, LINES, MEMBERS = "many.json", "members.jsonl", "members"
FORMAT = 1
PARTIAL = ".partial"
"""Ends the name of a member's folder that is being written."""


class StorageError(InfimumError):
    """A folder of many runs cannot be written: a full disk, a folder that is gone."""


def member_line(member: Member) -> dict[str, Any]:
    """What `members.jsonl` says about a member."""
    return {
        "id": member.id,
        "name": member.name,
        "problem": member.problem,
        "solver": member.solver,
        "values": member.values,
        "repetition": member.repetition,
        "status": member.status,
        "error": member.error,
        "traceback": member.traceback,
        "seconds": member.seconds,
        "cached": member.cached,
        "notes": list(member.notes),
        "config": member.config,
    }


class Store:
    """A folder of many runs that is being written or read.

    Every file is either complete or not there: `many.json` and the members' folders are renamed into place, a line of
    `members.jsonl` that was cut off is left out when it is read and overwritten by the next one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, folder: Path, header: Mapping[str, Any]) -> Store:
        """A new folder.

        Raises
        ------
        InputError
            If it holds many runs already, or cannot be made.
        """
        if (folder / HEADER).exists():
            raise InputError(f"{folder} already holds many runs; choose another folder, or --resume")
        store = cls(folder)
        try:
            (folder / MEMBERS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"the folder {folder} cannot be made: {error.strerror}") from None
        store.write_header(header)
        (folder / LINES).touch()
        return store

    def write_header(self, header: Mapping[str, Any]) -> None:
        """Write `many.json` anew, at once."""
        try:
            write_whole(self.folder / HEADER, json.dumps({"format": FORMAT, **header}, indent=1, default=str) + "\n")
        except OSError as error:
            raise self.unwritable(error) from error

    def header(self) -> dict[str, Any]:
        """What `many.json` says.

        Raises
        ------
        InputError
            If there is none, or it is of another version.
        """
        path = self.folder / HEADER
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{self.folder} holds no many runs (there is no {HEADER})") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise InputError(f"{path} is of another version of infimum; this one reads format {FORMAT}")
        return found

    def member_folder(self, name: str) -> Path:
        """Run folder of the member with this id."""
        return self.folder / MEMBERS / name

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a member's line and wait until it is on the disk.

        Raises
        ------
        StorageError
            If it cannot be written; what stood there before still stands.
        """
        path = self.folder / LINES
        text = json.dumps(line, default=str, ensure_ascii=False).encode() + b"\n"
        try:
            with open(path, "r+b" if path.exists() else "w+b") as file:
                end = _last_line(file)
                file.seek(end)
                file.truncate()
                try:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.truncate(path, end)
                    raise
        except OSError as error:
            raise self.unwritable(error) from error

    def unwritable(self, error: OSError) -> StorageError:
        """The error for a write that failed."""
        return StorageError(
            f"{self.folder} cannot be written: {error.strerror or error}; what is finished is kept, go on with --resume"
        )

    def lines(self) -> dict[str, dict[str, Any]]:
        """The last line of each member, by id."""
        found: dict[str, dict[str, Any]] = {}
        for line in _complete_lines(self.folder / LINES):
            found[line["id"]] = line
        return found

    def clean(self) -> None:
        """Remove what was being written when an earlier process ended."""
        members = self.folder / MEMBERS
        for one in members.iterdir() if members.is_dir() else ():
            if one.name.endswith(PARTIAL):
                shutil.rmtree(one, ignore_errors=True)


def _last_line(file: Any) -> int:
    """Position after the last complete line."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 4096)
        file.seek(start)
        block = file.read(end - start)
        cut = block.rfind(b"\n")
        if cut >= 0:
            return int(start + cut + 1)
        end = start
    return 0


def _complete_lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return
    for text in raw.split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("id"), str):
            yield line

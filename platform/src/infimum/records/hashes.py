"""Content hashes of what runs: packages of plugins and of the host, and the user's own modules and data files."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_NOT_CODE = frozenset({"__pycache__", "site-packages", "dist-packages", ".git", ".venv"})


@cache
def package_hash(package: str) -> str | None:
    """SHA-256 over names and contents of all files of an importable package, or of a single module.

    None where it has no files. Kept for the process: what was imported does not change with the files.
    """
    spec = importlib.util.find_spec(package)
    if spec is None:
        return None
    places = [Path(one) for one in spec.submodule_search_locations or ()]
    if not places:
        return file_hash(Path(spec.origin)) if spec.origin and Path(spec.origin).is_file() else None
    total = hashlib.sha256()
    for place in places:
        files = (one for one in place.rglob("*") if one.is_file() and not _NOT_CODE & set(one.relative_to(place).parts))
        for file in sorted(files):
            total.update(f"{file.relative_to(place).as_posix()}\0{file_hash(file)}\n".encode())
    return total.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_hash(path: Path) -> str:
    """SHA-256 of a file's content, read once while the file stays as it is.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    stat = path.stat()
    key = (str(path), stat.st_mtime_ns, stat.st_size)
    if key not in _contents:
        _contents[key] = file_hash(path)
    return _contents[key]


_contents: dict[tuple[str, int, int], str] = {}
_seen: dict[str, tuple[set[str], dict[str, Path]]] = {}
"""Folder to the files of modules that were looked at, and to those among them that are below it and the user's."""


@lru_cache(maxsize=1)
def _module_files(modules: tuple[int, ...]) -> frozenset[str]:
    """Files of the modules that are loaded; kept while those are the same."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return frozenset(file for file in files if isinstance(file, str))


def _own_modules(folder: str, loaded: frozenset[str]) -> Iterable[Path]:
    """Files of loaded modules that are the user's own, below a folder. A sweep asks for each of its runs."""
    looked_at, own = _seen.setdefault(folder, (set(), {}))
    above = Path(folder).resolve()
    for file in loaded - looked_at:
        path = Path(file).resolve()
        if path.is_relative_to(above) and not _NOT_CODE & set(path.relative_to(above).parts):
            own[file] = path
        looked_at.add(file)
    return (path for file, path in own.items() if file in loaded and path.is_file())


def local_files(config: Mapping[str, Any], folders: Collection[str]) -> dict[str, Path]:
    """The user's own files that define a run: modules imported from `folders`, and data files named in `config`.

    Call it when the run has been made, so that everything that it needs is imported: a module that a `python:` target
    imports from the same folder is found too.

    Returns
    -------
    dict
        A name without folders above its own, unique, to the file.
    """
    found: dict[str, Path] = {}
    loaded = _module_files(tuple(map(id, sys.modules.values()))) if folders else frozenset()
    for folder in folders:
        for path in _own_modules(folder, loaded):
            found.setdefault(path.relative_to(Path(folder).resolve()).as_posix(), path)
    for path in _data_files(config):
        name, number = path.name, 2
        while found.get(name, path) != path:
            name, number = f"{path.name} {number}", number + 1
        found[name] = path
    return dict(sorted(found.items()))


def _data_files(value: Any, key: str = "") -> Iterable[Path]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from _data_files(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _data_files(one)
    elif key == "file" and isinstance(value, str) and Path(value).is_file():
        yield Path(value).resolve()
    elif key == "run" and isinstance(value, str):
        for path in (Path(value) / "result.json", Path(value) / "x.npz"):
            if path.is_file():
                yield path.resolve()

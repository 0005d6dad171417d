"""What defines a run beside its words: code of plugins, the user's own modules with what they import, data files."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from infimum.plugins.python_target import PREFIX
from infimum.plugins.registry import get_registry
from infimum.records.hashes import content_hash, package_hash
from infimum.versions import version_of

_FOREIGN = frozenset({"site-packages", "dist-packages"})


def facts(config: Mapping[str, Any]) -> dict[str, Any]:
    """Versions and content hashes of everything that a resolved run file names.

    Returns
    -------
    dict
        `code`: hashes and versions of the host and of the plugins, with versions of what they need; `files`: hashes of
        the user's modules, with all modules outside of site-packages that they import, and of data files: those that
        the run file names and those whose names stand in the modules.

    Notes
    -----
    A module that is imported by a computed name, and a file whose name is computed, are not seen.
    """
    names = set(_names(config))
    folders = [Path(one) for one in config.get("python_path", ())]
    modules, imported = _modules([name for name in names if name.startswith(PREFIX)], folders)
    plugins = sorted({*_plugins(names, config), *(_packages()[one] for one in imported if one in _packages())})
    code = {name: _plugin(name) for name in plugins}
    data = {*_named_files(config), *(path for module in modules for path in _mentioned(module))}
    return {"code": code, "files": {str(path): content(path) for path in sorted({*modules, *data})}}


def _names(value: Any) -> Iterator[str]:
    """Component names and references anywhere in a run file."""
    if isinstance(value, Mapping):
        if isinstance(value.get("use"), str):
            yield value["use"]
        for one in value.values():
            yield from _names(one)
    elif isinstance(value, list):
        for one in value:
            yield from _names(one)
    elif isinstance(value, str) and value.startswith(PREFIX):
        yield value


def _plugins(names: Iterable[str], config: Mapping[str, Any]) -> list[str]:
    """Plugins that take part; all of them where the host chooses."""
    active = {one.name for one in get_registry().plugins if one.status == "active"}
    if "solver" not in config or config.get("oracles") == "auto":
        return sorted(active)
    stopping = str(config.get("stopping", ""))
    rules = {one.plugin for one in get_registry().components("stopping_rule") if f"{one.bare}(" in stopping}
    return sorted({"core", *rules, *_of(names, active)} & active)


def _packages() -> dict[str, str]:
    """Packages of the host and of the plugins, to the plugin's name."""
    return {one.module.partition(".")[0]: one.name for one in get_registry().plugins if one.status == "active"}


def _of(names: Iterable[str], active: set[str]) -> Iterator[str]:
    for name in names:
        plugin = name.partition(".")[0]
        if plugin in active:
            yield plugin


@cache
def _plugin(name: str) -> dict[str, Any]:
    """Version and content of a plugin, with those of the plugins and libraries that it needs."""
    records = {one.name: one for one in get_registry().plugins if one.status == "active"}
    record = records[name]
    by_distribution = {canonicalize_name(one.distribution): one for one in records.values()}
    needed: dict[str, Any] = {}
    waiting, seen = [canonicalize_name(record.distribution)], set()
    while waiting:
        distribution = waiting.pop()
        if distribution in seen:
            continue
        seen.add(distribution)
        plugin = by_distribution.get(distribution)
        needed[distribution] = _version(distribution)
        if plugin is not None:
            needed[f"{distribution}:content"] = package_hash(plugin.module.partition(".")[0])
            waiting += _requirements(plugin.distribution)
    return dict(sorted(needed.items()))


_version = cache(version_of)
"""Plugins need the same libraries, whose metadata take long to read."""


@cache
def _requirements(distribution: str) -> list[Any]:
    from importlib import metadata

    found = []
    for text in metadata.requires(distribution) or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found.append(canonicalize_name(requirement.name))
    return found


def _modules(references: Iterable[str], folders: list[Path]) -> tuple[set[Path], set[str]]:
    """Files of the referenced modules and of every module of the user's that they import; packages of plugins there."""
    found: set[Path] = set()
    plugins, imported = _packages().keys(), set[str]()
    waiting: list[tuple[str, list[Path]]] = []
    for reference in references:
        waiting.append((reference.removeprefix(PREFIX).partition(":")[0], folders))
    while waiting:
        name, places = waiting.pop()
        if (package := name.partition(".")[0]) in plugins:
            imported.add(package)  # known by its content as a whole
            continue
        for file in _files_of(name, [*places, *map(Path, sys.path)]):
            if file not in found:
                found.add(file)
                near = [*folders, file.parent]
                waiting += [(inner, near) for inner in _imports(file)]
    return found, imported


def _files_of(name: str, places: Iterable[Path]) -> list[Path]:
    """Files that importing a module runs: its own and those of the packages around it; none for installed ones."""
    parts = name.split(".")
    if not parts[0] or parts[0] in sys.stdlib_module_names:
        return []
    for place in places:
        if not ((place / parts[0]).is_dir() or (place / f"{parts[0]}.py").is_file()):
            continue
        if _FOREIGN & set(place.parts):
            return []
        files = []
        for depth in range(1, len(parts) + 1):
            stem = place.joinpath(*parts[:depth])
            files += [one for one in (stem / "__init__.py", stem.with_suffix(".py")) if one.is_file()]
        if files:
            return [one.resolve() for one in files]
    return []


@cache
def _parsed(file: Path, stamp: int) -> ast.Module | None:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _tree(file: Path) -> ast.Module | None:
    return _parsed(file, file.stat().st_mtime_ns)


def _imports(file: Path) -> Iterator[str]:
    """Names of all modules that a file imports, anywhere in it."""
    tree = _tree(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = _package(file, node.level)
                base = ".".join(one for one in (package, base) if one)
            if base:
                yield base
            yield from (f"{base}.{one.name}" if base else one.name for one in node.names)


def _package(file: Path, level: int) -> str:
    """The package that a relative import of a file is relative to."""
    folder, parts = file.parent, list[str]()
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts[: len(parts) - level + 1])


def _mentioned(module: Path) -> Iterator[Path]:
    """Files whose names stand in a module: relative to it or to the current folder."""
    tree = _tree(module)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _like_a_file(node.value):
            for place in (module.parent, Path.cwd()):
                path = place / node.value
                if path.is_file():
                    yield path.resolve()


def _like_a_file(text: str) -> bool:
    return 2 < len(text) < 300 and "." in text and "\n" not in text and "\0" not in text


def _named_files(value: Any) -> Iterator[Path]:
    """Data files, and results to start from, that a resolved run file names."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _named_files(one)
    elif isinstance(value, list):
        for one in value[:1000]:
            yield from _named_files(one)
    elif isinstance(value, str) and "/" in value and _like_a_path(value):
        path = Path(value)
        if path.is_file():
            yield path.resolve()
        elif (path / "result.json").is_file():
            yield from (one.resolve() for one in (path / "result.json", path / "x.npz") if one.is_file())


def _like_a_path(text: str) -> bool:
    return len(text) < 1000 and "\n" not in text and "\0" not in text


def content(path: Path) -> str:
    """Hash of a file's content, or why there is none."""
    try:
        return content_hash(path)
    except OSError as error:
        return f"unreadable: {error.strerror}"


def digest(value: Any) -> str:
    """A hash of plain data that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()

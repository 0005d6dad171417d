"""What a report is about: runs from memory, from folders and from what plugins know, all as members of many runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infimum.errors import InputError
from infimum.many.members import Member, Runs
from infimum.plugins.registry import get_registry
from infimum.records.folder import MANIFEST, RESULT, RunFolder
from infimum.result import Result

UNFINISHED = "unfinished"
"""Status of a folder in which a run began and left no result."""


_EMPTY = Member("", "", "", values={}, repetition=0, config={}, status=UNFINISHED)


@dataclass(eq=False)
class Material:
    """Everything that a report is made of.

    Attributes
    ----------
    title : str
    members : list of Member
        With unique names.
    many : list of Runs
        The sweeps and comparisons among the sources, for what they know of themselves.
    """

    title: str
    members: list[Member]
    many: list[Runs]


def gather(sources: Any) -> Material:
    """Read what a user named.

    Parameters
    ----------
    sources : str, path, Result, Runs, Member, mapping of str to Result, pair (label, Result), or a sequence of those
        A path is the folder of a run, of many runs, or one that holds such folders. Other text is offered to plugins.

    Raises
    ------
    InputError
        If there is nothing to report, or a source is nothing that can be read.
    """
    alone: list[Member] = []
    many: list[Runs] = []
    for source in _each(sources):
        for one in _open(source):
            if isinstance(one, Runs):
                many.append(one)
            else:
                alone.append(one)
    members = [*(member for runs in many for member in runs), *_named(alone)]
    if not members:
        raise InputError("report: there is no run in what was given; name the folder of a run or of many runs")
    return Material(_title(many, alone), _unique(members), many)


def _each(sources: Any) -> list[Any]:
    if isinstance(sources, Mapping):
        return list(sources.items())
    pair = isinstance(sources, tuple) and len(sources) == 2 and isinstance(sources[1], Result)
    single = isinstance(sources, str | Path | Result | Runs | Member) or pair
    return [sources] if single else list(sources)


def _open(source: Any) -> Iterable[Member | Runs]:
    if isinstance(source, Runs | Member):
        return [source]
    if isinstance(source, Result):
        return [_of_result(source)]
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], Result):
        return [_of_result(source[1], str(source[0]))]
    if isinstance(source, str | Path):
        return _of_folder(Path(source)) if Path(source).is_dir() else _of_plugin(str(source))
    raise InputError(f"report: expected folders, results or runs, got {type(source).__name__} {source!r:.60}")


def _of_plugin(source: str) -> list[Member]:
    for pairs in get_registry().call_hook("infimum_report_source", source=source):
        members = [_of_result(result, str(label)) for label, result in pairs]
        if members:
            return members
    raise InputError(f"report: '{source}' is no folder, and no installed plugin knows it as a source of results")


def _of_folder(folder: Path) -> list[Member | Runs]:
    """The run or the many runs in a folder, or else those in the folders below it."""
    if (folder / "many.json").is_file():
        return [Runs.load(folder)]
    if any((folder / name).is_file() for name in (RESULT, MANIFEST)):
        return [_of_run(folder)]
    found: list[Member | Runs] = []
    for child in sorted(folder.iterdir()):
        if child.is_dir() and not child.is_symlink():
            found += _of_folder(child)
    return found


def _of_run(folder: Path) -> Member:
    found = RunFolder(folder)
    result = error = None
    config: dict[str, Any] = {}
    try:
        config = found.config
        result = found.result()
    except InputError as unreadable:
        error = str(unreadable)
    member = _of_result(result) if result is not None else _EMPTY
    return replace(
        member,
        problem=_use(config.get("problem")) or member.problem,
        solver=_use(config.get("solver")) or member.solver,
        config=config,
        error=error or member.error,
        folder=folder,
    )


def _of_result(result: Result, name: str = "") -> Member:
    details = result.details or {}
    return Member(
        name=name,
        problem=str(details.get("problem") or ""),
        solver=str(details.get("solver") or ""),
        values={},
        repetition=0,
        config={},
        status=str(result.status),
        error=result.message if str(result.status) == "failed" else None,
        seconds=result.elapsed,
        kept=result,
    )


def manifest_of(member: Member) -> dict[str, Any]:
    """What its folder says it was made with; empty where there is none."""
    try:
        return RunFolder(member.folder).manifest if member.folder is not None else {}
    except InputError:
        return {}


def _named(members: Sequence[Member]) -> list[Member]:
    """Runs that came one by one, with the shortest of what there is that tells them apart."""
    nameless = [one for one in members if not one.name]
    kinds: tuple[Callable[[Member], str], ...] = (
        lambda one: str(one.config.get("name") or ""),
        lambda one: one.solver,
        lambda one: _joined(one.config.get("name"), one.solver),
        lambda one: _joined(one.problem, one.solver),
        lambda one: _joined(one.config.get("name") or one.solver, one.folder and one.folder.name),
    )
    names = [""] * len(nameless)
    for kind in kinds:
        names = [kind(one) for one in nameless]
        if all(names) and len(set(names)) == len(names):
            break
    found = iter(names)
    return [one if one.name else replace(one, name=next(found) or "run") for one in members]


def _joined(*parts: Any) -> str:
    return " · ".join(str(one) for one in parts if one)


def _unique(members: Sequence[Member]) -> list[Member]:
    count = Counter(one.name for one in members)
    seen: Counter[str] = Counter()
    out = []
    for one in members:
        if count[one.name] > 1:
            seen[one.name] += 1
            one = replace(one, name=f"{one.name} ({seen[one.name]})")
        out.append(one)
    return out


def _use(spec: Any) -> str:
    return str(spec.get("use", "")) if isinstance(spec, Mapping) else str(spec or "")


def _title(many: Sequence[Runs], alone: Sequence[Member]) -> str:
    names = [*(one.name for one in many), *(str(one.config.get("name") or one.name or one.solver) for one in alone)]
    names = list(dict.fromkeys(name for name in names if name)) or ["runs"]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"

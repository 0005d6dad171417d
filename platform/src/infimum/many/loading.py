"""From a folder of many runs to the objects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infimum.many.comparison import Comparison
from infimum.many.members import Member, Runs
from infimum.many.store import Store
from infimum.many.sweeping import Sweep
from infimum.status import Status


def load_many(folder: Path) -> Runs:
    """Read what a sweep or a comparison left, finished or not."""
    store = Store(folder)
    header, lines = store.header(), store.lines()
    order = list(header.get("order", ())) or list(lines)
    planned: Mapping[str, Any] = header.get("members", {})
    members = tuple(member_of(lines.get(one) or _missing(one, planned), store) for one in order)
    common: dict[str, Any] = {
        "name": header["name"],
        "members": members,
        "varied": tuple(header["varied"]),
        "folder": folder,
        "seed": header.get("seed"),
        "notes": tuple(header.get("notes", ())),
    }
    if header["kind"] == Comparison.kind:
        return Comparison(**common, **Comparison.read(header))
    return (Sweep if header["kind"] == Sweep.kind else Runs)(**common)


def _missing(name: str, planned: Mapping[str, Any]) -> dict[str, Any]:
    """A line for a member that was not run."""
    empty = {"id": name, "name": name, "problem": "", "solver": "", "values": {}, "repetition": 0}
    known = planned.get(name, {})
    return {**empty, **known, "status": str(Status.interrupted), "error": "not run: the runs were interrupted before"}


def member_of(line: Mapping[str, Any], store: Store) -> Member:
    """A member from its line."""
    folder = store.member_folder(line["id"])
    return Member(
        name=line["name"],
        problem=line["problem"],
        solver=line["solver"],
        values=dict(line["values"]),
        repetition=int(line["repetition"]),
        config=dict(line.get("config") or {}),
        status=line["status"],
        error=line.get("error"),
        traceback=line.get("traceback"),
        seconds=float(line.get("seconds") or 0.0),
        cached=bool(line.get("cached")),
        folder=folder if folder.is_dir() else None,
        id=line["id"],
        notes=tuple(line.get("notes") or ()),
    )

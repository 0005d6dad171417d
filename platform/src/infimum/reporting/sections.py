"""The parts of a page that are the same for every report: the runs, why they stopped, their plans, what made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from infimum.many.members import Member, Runs
from infimum.plugins.registry import get_registry
from infimum.reporting.cells import Cell, Grid, grid
from infimum.reporting.data import Section, Table
from infimum.reporting.entries import manifest_of

SHOWN = 20
"""Plans, run files and sections of a plugin that a page shows at most; it says how many were left out."""
_GOOD = ("converged", "target_reached")
_NEUTRAL = ("stalled", "limit", "interrupted", "unfinished")
_HEADINGS = {"solver": "method", "value": "objective", "best_value": "best objective", "gap": "relative gap"}


def tone(status: str) -> str:
    """good, neutral or bad, for the color of a status; of a count such as "4 stalled" too."""
    status = status.rpartition(" ")[2]
    return "good" if status in _GOOD else "neutral" if status in _NEUTRAL else "bad"


def status_cell(status: str) -> Cell:
    """A status word, set as such."""
    return Cell(status.replace("_", " "), status, "status")


def runs_grid(members: Sequence[Member]) -> Grid:
    """One row a run, failures too; columns in which nobody has anything are left out."""
    rows = []
    for one in members:
        row = one.row()
        counts = {f"{name.removeprefix('calls.')} calls": n for name, n in row.items() if name.startswith("calls.")}
        rows.append(
            {
                "run": _name(one),
                "problem": one.problem,
                "status": status_cell(one.status),
                "value": row["value"],
                "best_value": row["best_value"],
                "violation": row["violation"],
                "iterations": row["iterations"],
                "seconds": one.seconds if one.result is not None or one.seconds else None,
                **counts,
                "exactness": one.result.exactness if one.result is not None else None,
                "from the cache": "yes" if one.cached else None,
            }
        )
    names = [name for name in _keys(rows) if any(row.get(name) not in (None, "") for row in rows)]
    if all(one.problem in one.name for one in members) or len({one.problem for one in members}) < 2:
        names = [name for name in names if name != "problem"]
    if all(row["best_value"] is None or row["best_value"] == row["value"] for row in rows):
        names = [name for name in names if name != "best_value"]
    table = Table([_heading(name) for name in names], [[row.get(name) for name in names] for row in rows])
    return grid(table, "runs", [_mark(one.status) for one in members])


def _keys(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _mark(status: str) -> str:
    return "lost" if tone(status) == "bad" else ""


def _name(member: Member) -> Cell:
    return Cell(member.name, member.name.casefold(), "name")


def _heading(name: str) -> str:
    name = _HEADINGS.get(name, name.replace("_", " "))
    return name[:1].upper() + name[1:]


def comparison_grid(runs: Runs) -> Grid | None:
    """What a comparison says of its methods: medians, costs to the targets, wins; None for other runs."""
    from infimum.many.comparison import Comparison

    if not isinstance(runs, Comparison):
        return None
    rows = runs.summary()
    names = [
        name for name in _keys(rows) if name != "error" and any(row.get(name) not in (None, 0, "") for row in rows)
    ]
    if len(runs.problems) < 2:
        names = [name for name in names if name != "problem"]
    if all(row["runs"] == 1 for row in rows):
        names = [name for name in names if name != "runs"]
    cells = [
        [
            status_cell(row[name])
            if name == "status" and "," not in row[name]
            else Cell(row[name], row[name].casefold(), "name")
            if name == "solver"
            else row.get(name)
            for name in names
        ]
        for row in rows
    ]
    headings = [f"{runs.unit()} {name}" if name.startswith("to ") else name for name in names]
    text = (
        f"Every run had {runs.amount:g} {runs.unit()}; medians over repetitions. {_sentence(runs.describe_targets())}"
    )
    table = Table([_heading(name) for name in headings], cells, text)
    return grid(table, "methods", ["lost" if row["lost"] else "" for row in rows])


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def stop_grid(members: Sequence[Member]) -> Grid:
    """Why each run stopped, with the rules that fired and their values."""
    rows = []
    for one in members:
        fired = "; ".join(str(reason.rule) for reason in one.result.fired) if one.result is not None else ""
        message = one.result.message if one.result is not None else one.error or ""
        rows.append([_name(one), status_cell(one.status), message, fired or None])
    if not any(row[3] for row in rows):
        rows = [row[:3] for row in rows]
    table = Table(["Run", "Status", "Because", "Rules that fired"][: len(rows[0])], rows)
    return grid(table, "why each run stopped")


def tracebacks(members: Sequence[Member]) -> list[tuple[str, str]]:
    """Name and traceback of the runs that have one."""
    return [(one.name, one.traceback) for one in members if one.traceback][:SHOWN]


def notes(members: Sequence[Member], many: Sequence[Runs]) -> list[tuple[str, int]]:
    """What was decided for the user, with the number of runs that say so."""
    count: Counter[str] = Counter(note for runs in many for note in runs.notes)
    for one in members:
        count.update(dict.fromkeys((*one.notes, *(one.result.notes if one.result is not None else ())), 1))
    return count.most_common(SHOWN)


def plans(members: Sequence[Member]) -> tuple[list[dict[str, Any]], int]:
    """Each distinct plan with its runs and its placements; and how many further ones are not shown."""
    groups: dict[tuple[str, str], list[Member]] = {}
    for one in members:
        if one.result is not None and one.result.plan:
            lines = [line for line in one.result.plan.splitlines() if not line.strip().startswith("seed ")]
            details = one.result.details or {}
            key = ("\n".join(lines), str(details.get("placements")))
            groups.setdefault(key, []).append(one)
    shown = []
    for (text, _), group in list(groups.items())[:SHOWN]:
        assert group[0].result is not None
        details = group[0].result.details or {}
        shown.append(
            {
                "title": f"{details.get('solver') or group[0].solver} on {details.get('problem') or group[0].problem}",
                "runs": _listed([one.name for one in group]) if len(members) > 1 else "",
                "exactness": details.get("exactness") or group[0].result.exactness,
                "resume": details.get("resume"),
                "grid": _placements(details.get("placements") or ()),
                "text": text,
            }
        )
    return shown, max(0, len(groups) - SHOWN)


def _placements(placements: Sequence[Mapping[str, Any]]) -> Grid | None:
    if not placements:
        return None
    rows = [
        [
            one.get("slot"),
            one.get("term"),
            ", ".join(one.get("gets") or ()),
            one.get("oracle") or "as it is",
            Cell(str(one.get("exactness")), str(one.get("exactness")), "exactness"),
            one.get("dimension"),
        ]
        for one in placements
    ]
    names = ["Slot", "Term", "What the solver gets", "Through", "Exactness", "Variables"]
    return grid(Table(names, rows), "what stands in which slot")


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def plugin_sections(members: Sequence[Member]) -> list[tuple[str, list[tuple[str, Section]]]]:
    """Title to (run, section), from the hook `infimum_report_sections`."""
    found: dict[str, list[tuple[str, Section]]] = {}
    for one in members:
        if one.result is None:
            continue
        for sections in get_registry().call_hook("infimum_report_sections", result=one.result):
            for section in sections:
                if isinstance(section, Section):
                    found.setdefault(section.title, []).append((one.name, section))
    return list(found.items())


def manifest_grids(members: Sequence[Member]) -> list[Grid]:
    """What all runs have in common, and what differs between them."""
    facts: dict[str, dict[str, list[str]]] = {}
    known = [one for one in members if one.result is not None or one.folder is not None]
    for one in known:
        for name, value in _facts(one).items():
            facts.setdefault(name, {}).setdefault(value, []).append(one.name)
    common = [[name, *values] for name, values in facts.items() if len(values) == 1]
    differing = [[name, _values(values)] for name, values in facts.items() if len(values) > 1]
    grids = []
    if common:
        said = "The same in all runs." if len(known) > 1 else ""
        grids.append(grid(Table(["Fact", "Value"], common, said), "manifest"))
    if differing:
        grids.append(grid(Table(["Fact", "Values"], differing, "Different between runs."), "what differs"))
    return grids


def _values(values: Mapping[str, Sequence[str]]) -> str:
    if len(values) > 8:
        return f"{len(values)} values: {_listed(list(values))}"
    return "; ".join(f"{value} ({_listed(names)})" for value, names in values.items())


def _facts(member: Member) -> dict[str, str]:
    """The manifest as flat text; of a result without one, its seed and versions."""
    manifest = manifest_of(member)
    if not manifest and member.result is not None:
        manifest = {"seed": member.result.seed, "versions": member.result.versions}
    return dict(_flat({name: one for name, one in manifest.items() if name not in ("format", "name")}))


def _flat(tree: Any, path: str = "") -> list[tuple[str, str]]:
    if isinstance(tree, Mapping):
        return [pair for name, one in tree.items() for pair in _flat(one, f"{path} · {name}" if path else str(name))]
    if isinstance(tree, list) and tree and isinstance(tree[0], Mapping):
        return [pair for k, one in enumerate(tree, 1) for pair in _flat(one, f"{path} · {k}")]
    if tree is None or tree in ("", [], {}):
        return []
    return [(path, ", ".join(map(str, tree)) if isinstance(tree, list) else str(tree))]


def run_files(members: Sequence[Member]) -> tuple[list[tuple[str, str]], int]:
    """Distinct resolved run files as YAML, with their runs; and how many further ones are not shown."""
    from infimum.runfile.dump import dump_yaml

    groups: dict[str, list[str]] = {}
    for one in members:
        if one.config:
            text = dump_yaml({key: value for key, value in one.config.items() if key != "name"})
            groups.setdefault(text, []).append(one.name)
    shown = [(_listed(names), text) for text, names in list(groups.items())[:SHOWN]]
    return shown, max(0, len(groups) - SHOWN)

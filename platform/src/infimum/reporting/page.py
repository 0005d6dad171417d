"""One HTML page that holds everything: text, tables, curves and the library that draws them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from infimum import __version__
from infimum.many.members import Member
from infimum.observers.place import needed
from infimum.reporting import sections
from infimum.reporting.cells import grid, number, tidy
from infimum.reporting.curves import curve_figures, parameter_figures, profile_figures
from infimum.reporting.data import Curve, Figure, Section
from infimum.reporting.entries import Material

LONG = 20
"""Rows from which a table shows only its beginning, and a button for the rest."""
DISTINCT = 16
"""Curves that colors, dashes and markers tell apart; more of them get a ramp of colors."""
DIGITS = 6
"""Significant digits of a drawn number."""


@dataclass(frozen=True)
class Block:
    """A piece of a part: kind "text", "heading", "grid", "figures", "notes", "plan" or "source", and what it shows."""

    kind: str
    value: Any


@dataclass
class Part:
    """A part of the page under a heading."""

    id: str
    title: str
    blocks: list[Block] = field(default_factory=list)

    def add(self, kind: str, value: Any) -> None:
        """Add a block, unless there is nothing in it."""
        if value:
            self.blocks.append(Block(kind, value))


def render(material: Material) -> str:
    """The page as text.

    Raises
    ------
    InputError
        If jinja2 or plotly is not installed.
    """
    jinja2 = needed("jinja2", "report")
    markup = needed("markupsafe", "report").Markup
    figures = _Figures(material.members)
    parts = _parts(material, figures)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"tone": sections.tone, "word": _word, "soft": lambda text: _soft(text, markup)}
    template = environment.from_string(_file("page.html"))
    text: str = template.render(
        title=material.title,
        kind=_kind(material),
        facts=_facts(material),
        parts=parts,
        long=LONG,
        version=__version__,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        css=markup(_file("page.css")),
        js=markup(_file("page.js")),
        data=markup(figures.dump()),
        plotly=markup(needed("plotly.offline", "report").get_plotlyjs()) if figures.drawn else "",
    )
    return text


def _file(name: str) -> str:
    return files("infimum.reporting").joinpath("page", name).read_text(encoding="utf-8")


def _soft(text: str, markup: Any) -> Any:
    """Text with a real minus sign in numbers, in which long names may be broken after a dot or an underscore."""
    pieces = (re.sub(r"([._/=(](?=\w))", r"\1\0", word) if len(word) > 14 else word for word in tidy(text).split(" "))
    return markup("<wbr>").join(" ".join(pieces).split("\0"))


def _word(text: str) -> str:
    """The first word, as the class of an exactness such as `tolerance(1e-6)`."""
    return "".join(one for one in text.partition("(")[0] if one.isalpha())


def _kind(material: Material) -> str:
    kinds = {runs.kind for runs in material.many}
    if len(material.members) == 1:
        return "Report of a run"
    words = {"sweep": "a sweep", "compare": "a comparison"}
    alone = len(material.many) == 1 and len(material.members) == len(material.many[0])
    return f"Report of {words[kinds.pop()]}" if alone and kinds <= words.keys() else "Report of several runs"


def _facts(material: Material) -> list[tuple[str, str]]:
    """Numbers below the title."""
    members = material.members
    statuses = Counter(one.status for one in members)
    facts = [(str(len(members)), "run" if len(members) == 1 else "runs")]
    compared = any(runs.kind == "compare" for runs in material.many)
    for word, names in (("methods", {one.solver for one in members}), ("problems", {one.problem for one in members})):
        if len(names) > 1 and compared:
            facts.append((str(len(names)), word))
    facts += [(str(n), status.replace("_", " ")) for status, n in statuses.most_common()]
    if len(members) == 1 and (result := members[0].result) is not None:
        facts = [(members[0].status.replace("_", " "), "")]
        if result.value is not None:
            facts.append((number(float(result.value)), "objective"))
        facts += [(number(result.iterations), "iterations"), (f"{result.elapsed:.3g} s", "")]
    return facts


def _parts(material: Material, figures: _Figures) -> list[Part]:
    members = material.members
    methods = Part("methods", "Methods")
    for runs in material.many:
        methods.add("grid", sections.comparison_grid(runs))
    table = Part("runs", "Runs" if len(members) > 1 else "Run")
    table.add("grid", sections.runs_grid(members))
    # What was compared comes first; else there is nothing above the runs themselves.
    parts = [methods] if methods.blocks else [table]
    curves = Part("curves", "Curves")
    curves.add("figures", figures.take(curve_figures(members)))
    parts.append(curves)
    profiles = Part("profiles", "Profiles")
    for runs in material.many:
        profiles.add("figures", figures.take(profile_figures(runs)))
    parts.append(profiles)
    varied = Part("parameters", "What was varied")
    varied.add("figures", figures.take(parameter_figures(members)))
    parts.append(varied)
    parts += [table] if methods.blocks else []
    stops = Part("stops", "Why each run stopped" if len(members) > 1 else "Why it stopped")
    stops.add("grid", sections.stop_grid(members))
    stops.add("notes", sections.notes(members, material.many))
    for name, text in sections.tracebacks(members):
        stops.add("source", (f"Traceback of {name}", text))
    parts.append(stops)
    parts.append(_plan_part(members))
    for k, (title, found) in enumerate(sections.plugin_sections(members)):
        parts.append(_plugin_part(f"more-{k + 1}", title, found, figures))
    parts.append(_manifest_part(members))
    return [part for part in parts if part.blocks]


def _plan_part(members: Sequence[Member]) -> Part:
    part = Part("plan", "Plan")
    shown, more = sections.plans(members)
    for one in shown:
        part.add("plan", one)
    if more:
        part.add("text", [f"{more} more plans are not shown."])
    return part


def _plugin_part(key: str, title: str, found: Sequence[tuple[str, Section]], figures: _Figures) -> Part:
    part = Part(key, title)
    for name, section in found[: sections.SHOWN]:
        if len(found) > 1:
            part.add("heading", name)
        part.add("text", [one.strip("\n") for one in section.text.split("\n\n") if one.strip()])
        for table in section.tables:
            part.add("grid", grid(table, title))
        part.add("figures", figures.take(section.figures))
    if len(found) > sections.SHOWN:
        part.add("text", [f"{len(found) - sections.SHOWN} more runs are not shown here."])
    return part


def _manifest_part(members: Sequence[Member]) -> Part:
    part = Part("manifest", "Manifest")
    for one in sections.manifest_grids(members):
        part.add("grid", one)
    shown, more = sections.run_files(members)
    for names, text in shown:
        part.add("source", (f"Run file of {names}", text))
    if more:
        part.add("text", [f"{more} more run files are not shown."])
    return part


class _Figures:
    """Collects the figures of a page as data for its script; curves of one name have one look everywhere."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.drawn: list[dict[str, Any]] = []
        self._arrays: dict[str, int] = {}
        self._looks: dict[str, int] = {}

    def take(self, figures: Iterable[Figure]) -> list[dict[str, Any]]:
        """Add figures; returns what the template needs of each."""
        heads = []
        for one in figures:
            heads.append({"number": len(self.drawn), "title": one.title, "text": one.text})
            self.drawn.append(self._figure(one))
        return heads

    def _figure(self, figure: Figure) -> dict[str, Any]:
        labels = list(dict.fromkeys(curve.label for curves in figure.views.values() for curve in curves))
        looks = self._colors(labels)
        views = [
            {"name": name, "curves": [self._curve(curve, labels, looks) for curve in curves]}
            for name, curves in figure.views.items()
        ]
        same = figure.title.casefold().startswith(figure.y.casefold())
        return {
            "title": figure.title,
            "y": "" if same else figure.y,
            "x_scale": figure.x_scale,
            "y_scale": figure.y_scale,
            "labels": labels,
            "ramp": len(labels) if len(labels) > DISTINCT else 0,
            "views": views,
        }

    def _colors(self, labels: Sequence[str]) -> dict[str, int]:
        """Look of each label: that which it had before; a figure with a ramp, or of strangers, begins anew."""
        if len(labels) > DISTINCT or not any(label in self._looks for label in labels):
            looks = {label: k for k, label in enumerate(labels)}
            if len(labels) <= DISTINCT and not self._looks:
                self._looks = dict(looks)
            return looks
        for label in labels:
            self._looks.setdefault(label, len(self._looks))
        return {label: self._looks[label] for label in labels}

    def _curve(self, curve: Curve, labels: Sequence[str], looks: dict[str, int]) -> dict[str, Any]:
        out: dict[str, Any] = {"label": labels.index(curve.label), "color": looks[curve.label], "style": curve.style}
        for name in ("x", "y", "low", "high"):
            column = getattr(curve, name)
            if column is not None:
                out[name] = self._array(column)
        return out

    def _array(self, column: Any) -> int:
        """Number of an array in the page; equal ones are stored once."""
        if isinstance(column, list):
            text = json.dumps(column, ensure_ascii=False)
        else:
            text = f"[{','.join(map(_digits, column.tolist()))}]"
        return self._arrays.setdefault(text, len(self._arrays))

    def dump(self) -> str:
        """The data as JSON that is safe inside a script element."""
        figures = json.dumps(self.drawn, ensure_ascii=False)
        text = f'{{"figures":{figures},"arrays":[{",".join(self._arrays)}]}}'
        return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _digits(value: float) -> str:
    """A number in few characters; null for one that cannot be drawn."""
    if not math.isfinite(value):
        return "null"
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.{DIGITS}g}"

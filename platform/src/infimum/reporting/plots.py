"""Static pictures by matplotlib: what a page shows, and `plot()` of results and runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from infimum.errors import InputError, did_you_mean
from infimum.many.members import Runs
from infimum.observers.place import needed
from infimum.reporting.curves import curve_figures, metric_names, parameter_figures, profile_figures, with_trace
from infimum.reporting.data import Curve, Figure
from infimum.reporting.entries import Material, gather
from infimum.reporting.sections import plugin_sections
from infimum.result import Result

COLORS = ("#0a66b5", "#d1520b", "#00866a", "#a3327f", "#a67c00", "#4b3fa8", "#6a737d", "#8c1c3a")
DASHES = ("-", (0, (5, 2)), (0, (1.2, 1.5)), (0, (4.5, 1.5, 1, 1.5)), (0, (8, 2.5)), (0, (7, 1.5, 1, 1.5, 1, 1.5)))
MARKERS = ("o", "s", "D", "^", "X", "*", "v", "h")
"""The same looks as in the page: eight colors that differ in lightness too, a dash pattern and a marker each."""
DISTINCT = 16
FEW = 40
"""Points up to which each has its marker."""
PLAIN = "."
"""Marker of lines that are told apart by shade."""
DPI = 200
SIZE = (6.4, 4.0)
"""Inches: fits a column of text, and two side by side on a page."""


def plot_result(result: Result, metric: str | None = None, x: str | None = None, ax: Any = None) -> Any:
    """The curve of a result; see `Result.plot`."""
    return _plot(gather(result).members, metric, x, ax)


def plot_runs(runs: Runs, metric: str | None = None, x: str | None = None, ax: Any = None) -> Any:
    """The curves of runs, or bands where they are repetitions; see `Runs.plot`."""
    return _plot(gather(runs).members, metric, x, ax)


def _plot(members: Sequence[Any], metric: str | None, x: str | None, ax: Any) -> Any:
    known = metric_names(with_trace(members))
    if not known:
        raise InputError("plot: no run recorded anything (max_rows=0, or it failed before the first check)")
    name = metric or known[0]
    if name not in known:
        raise InputError(f"plot: no run recorded '{name}'; {did_you_mean(name, known)}")
    figures = curve_figures(members, name)
    if not figures:
        raise InputError(f"plot: '{name}' is nowhere a finite number in these runs")
    if len(figures) > 1 and ax is not None:
        raise InputError("plot: these runs are of several problems, one picture each; give no ax")
    first = None
    for figure in figures:
        axes = draw(figure, x=x, ax=ax)
        first = axes if first is None else first
    return first


def draw(figure: Figure, *, x: str | None = None, ax: Any = None) -> Any:
    """Draw a figure.

    Parameters
    ----------
    figure : Figure
    x : str, optional
        Which of its horizontal axes, by title; the first by default.
    ax : matplotlib.axes.Axes, optional
        Where; a new one by default, which `matplotlib.pyplot` manages only if it has been imported.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InputError
        If there is no such axis, or matplotlib is not installed.
    """
    name = _view(figure, x)
    curves = figure.views[name]
    if ax is None:
        ax = _new_axes()
    labels = list(dict.fromkeys(one.label for one in curves))
    log_y = figure.y_scale == "log" and any((one.y > 0).any() for one in curves)
    done: set[str] = set()
    for curve in curves:
        _draw_curve(ax, curve, _look(labels, curve.label), log_y, curve.label not in done)
        done.add(curve.label)
    if figure.x_scale == "log" and any(not one.categorical and (one.x > 0).any() for one in curves):
        ax.set_xscale("log")
    if log_y:
        ax.set_yscale("log")
    _dress(ax, figure, name, labels)
    return ax


def _view(figure: Figure, x: str | None) -> str:
    if x is None:
        return next(iter(figure.views))
    fitting = [one for one in figure.views if one == x or one.removesuffix(" evaluations") == x]
    if not fitting:
        raise InputError(f"plot: no horizontal axis '{x}'; {did_you_mean(x, figure.views)}")
    return fitting[0]


def _new_axes() -> Any:
    import sys

    needed("matplotlib", "report")
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        return pyplot.subplots(figsize=SIZE, layout="constrained")[1]
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=SIZE, layout="constrained").subplots()


def _look(labels: Sequence[str], label: str) -> dict[str, Any]:
    index = labels.index(label)
    if len(labels) > DISTINCT:
        from matplotlib import colormaps

        color = colormaps["viridis"](0.92 * index / (len(labels) - 1))
        return {"color": color, "linewidth": 0.9, "marker": PLAIN, "markersize": 2}
    turn = index // len(COLORS)
    look = {"color": COLORS[index % len(COLORS)], "linestyle": DASHES[(index + turn) % len(DASHES)]}
    return look | {"marker": MARKERS[(index + turn) % len(MARKERS)], "markersize": 5, "linewidth": 1.7}


def _draw_curve(ax: Any, curve: Curve, look: dict[str, Any], log_y: bool, first: bool) -> None:
    label = curve.label if first and curve.label else "_nolegend_"
    color = look["color"]
    if curve.style == "bars":
        ax.bar(curve.x, curve.y, color=color, label=label, width=0.65)
        return
    known = np.isfinite(curve.y) & ((curve.y > 0) | (not log_y))
    if not curve.categorical:
        known &= np.isfinite(curve.x)
    y = np.where(known, curve.y, np.nan)
    if curve.low is not None:
        floor = float(y[known].min()) * 1e-2 if log_y and known.any() else -np.inf
        low, high = (np.where(np.isfinite(edge), np.maximum(edge, floor), np.nan) for edge in (curve.low, curve.high))
        ax.fill_between(curve.x, low, high, color=color, alpha=0.18, lw=0)
    if curve.style == "points":
        look = look | {"linestyle": "none"}
    steps = {"drawstyle": "steps-post"} if curve.style == "steps" else {}
    ax.plot(curve.x, y, label=label, markevery=_marked(known, curve.style, look), **look, **steps)


def _marked(known: Any, style: str, look: dict[str, Any]) -> list[int]:
    """Places of markers: all of few points, some of many, none of a plain line; always those that no line shows."""
    places, plain = np.flatnonzero(known), look["marker"] == PLAIN
    if style == "points" or (len(places) <= FEW and not plain):
        return list(map(int, places))
    padded = np.pad(known, 1)
    lone = np.flatnonzero(known & ~padded[:-2] & ~padded[2:])
    some = () if plain else places[:: len(places) // 9]
    return sorted({*map(int, some), *map(int, lone)})


def _dress(ax: Any, figure: Figure, x: str, labels: Sequence[str]) -> None:
    ax.set_title(figure.title, loc="left", fontsize=11, fontweight="bold")
    ax.set_xlabel(x)
    ax.set_ylabel(figure.y)
    ax.grid(True, which="major", color="#e3e6e9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.minorticks_off() if not ax.lines else None
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#9aa3ad")
    if 1 < len(labels) <= DISTINCT:
        ax.legend(frameon=False, fontsize=8.5, handlelength=3.2, ncols=2 if len(labels) > 8 else 1)
    elif len(labels) > DISTINCT:
        note = f"{len(labels)} curves, in order from dark to light"
        ax.annotate(note, (1, 1), xycoords="axes fraction", ha="right", va="bottom", fontsize=8.5, color="#59636e")


def all_figures(material: Material) -> Iterable[Figure]:
    """Every figure of a report, in the order of the page."""
    yield from curve_figures(material.members)
    for runs in material.many:
        yield from profile_figures(runs)
    yield from parameter_figures(material.members)
    for _, found in plugin_sections(material.members):
        for _, section in found:
            yield from section.figures


def save_pictures(material: Material, path: Path, kind: str) -> list[Path]:
    """Write each figure into a file of its own: `path`, then `path` with `-2`, `-3`, ….

    Raises
    ------
    InputError
        If there is no figure, or matplotlib is not installed.
    """
    matplotlib = needed("matplotlib", "report")
    from matplotlib.figure import Figure as Canvas

    paths = []
    # Fixed, so that the same runs give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "infimum", "svg.fonttype": "none"}):
        for k, figure in enumerate(all_figures(material), 1):
            canvas = Canvas(figsize=SIZE, layout="constrained")
            draw(figure, ax=canvas.subplots())
            paths.append(path if k == 1 else path.with_name(f"{path.stem}-{k}{path.suffix}"))
            stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
            canvas.savefig(paths[-1], format=kind, dpi=DPI, metadata=stamp)
    if not paths:
        raise InputError("report: no run recorded anything that a picture could show; the html page has the tables")
    return paths

"""Figures of the runs themselves: what the traces hold, over iterations, time and evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from infimum.many.curves import band, maximizes, rising
from infimum.many.members import Member, Runs
from infimum.reporting.data import Curve, Figure, Scale, Style
from infimum.reporting.thin import POINTS, budget, thin

ITERATIONS, SECONDS, ALL_CALLS = "iterations", "seconds", "evaluations"
REPEATED = 3
"""Repetitions from which a band says more than the curves."""
ROUNDING = 4 * float(np.finfo(float).eps)
"""Relative distance to the best objective below which two are equal."""
QUANTILES = (0.25, 0.75)
_WORDS = {
    "value": "objective",
    "violation": "violation of the constraints",
    "grad_norm": "gradient norm",
    "residual": "residual",
    "gap": "gap",
    "rel_change": "relative change of the point",
    "abs_change": "change of the point",
}

Array = np.ndarray[Any, np.dtype[np.float64]]


def series(member: Member) -> str:
    """What the repetitions of one statement have in common: the method, and what varies beside it."""
    varied = [
        f"{path.rpartition('.')[2]} {_short(value)}"
        for path, value in member.values.items()
        if path not in ("problem", "solver") and not path.startswith("problem.") and _short(value) not in member.solver
    ]
    return " · ".join(filter(None, (member.solver, *varied))) or member.name


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("use", "…"))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def with_trace(members: Iterable[Member]) -> list[Member]:
    """Those that recorded something."""
    return [one for one in members if one.result is not None and one.result.trace is not None and one.result.trace.rows]


def metric_names(members: Iterable[Member]) -> list[str]:
    """Columns of the traces that are metrics, in the order in which they were recorded."""
    found: dict[str, None] = {}
    for member in members:
        for name in _trace(member):
            if name not in ("iteration", "time") and not name.startswith("calls."):
                found[name] = None
    return list(found)


def _trace(member: Member) -> Any:
    assert member.result is not None
    return member.result.trace


def by_problem(members: Sequence[Member]) -> dict[str, list[Member]]:
    """Members on one problem share figures; where no problem has two methods, nothing is to be told apart: all do."""
    groups: dict[str, list[Member]] = {}
    for one in members:
        groups.setdefault(one.problem, []).append(one)
    compared = any(len({series(one) for one in group}) > 1 for group in groups.values())
    return groups if compared or len(groups) == 1 else {"": list(members)}


def curve_figures(members: Sequence[Member], metric: str | None = None) -> list[Figure]:
    """For each problem and metric one figure, with the horizontal axes that its runs have.

    Parameters
    ----------
    members : sequence of Member
    metric : str, optional
        Only this column; all of them by default.
    """
    figures = []
    groups = by_problem(with_trace(members))
    for problem, group in groups.items():
        where = f" · {problem}" if problem and len(groups) > 1 else ""
        best = best_value(group)
        for name in metric_names(group):
            if metric is not None and name != metric:
                continue
            figure = _figure(group, name, where)
            if figure is not None:
                figures.append(figure)
            alike = len({one.problem for one in group}) == 1
            if name == "value" and best is not None and len(group) > 1 and alike and not metric:
                above = _figure(group, name, where, best)
                figures += [above] if above is not None else []
    return figures


def best_value(members: Sequence[Member]) -> float | None:
    """The best objective that any of the runs has."""
    found = [one.result.best_value for one in members if one.result is not None and one.result.best_value is not None]
    known = [one for one in found if math.isfinite(one)]
    if not known:
        return None
    return max(known) if any(map(maximizes, members)) else min(known)


def _figure(members: Sequence[Member], name: str, where: str, best: float | None = None) -> Figure | None:
    names = _names(members)
    views = {}
    for axis in _axes(members):
        curves = _curves(members, names, name, axis, best)
        if curves:
            views[_axis_title(axis)] = curves
    if not views:
        return None
    word = _WORDS.get(name, name.replace("_", " "))
    first = next(iter(views.values()))
    title = (word[:1].upper() + word[1:]) if best is None else "Distance to the best objective seen"
    text = ""
    if any(one.low is not None for one in first):
        text = "Median over the repetitions, with the band between the quartiles."
        text += " Of the objective, the best one so far." if name == "value" else ""
    if best is not None:
        text = f"Against {best:.8g}, the best of these runs. {text}".strip()
    return Figure(title + where, views, y=word if best is None else "distance", y_scale=_scale(first), text=text)


def _names(members: Sequence[Member]) -> dict[str, str]:
    """Member to the name of its curve: its own where nothing is repeated, else what its repetitions share."""
    several = len({one.problem for one in members}) > 1
    if len({one.repetition for one in members}) == 1 and (several or len({series(one) for one in members}) != 1):
        distinct = len({(one.problem, series(one)) for one in members}) == len(members)
        if distinct or len({series(one) for one in members}) == 1:
            return {one.name: one.name for one in members}
    return {one.name: f"{one.problem} · {series(one)}" if several else series(one) for one in members}


def _axes(members: Sequence[Member]) -> list[str]:
    calls = list(dict.fromkeys(name for one in members for name in _trace(one) if name.startswith("calls.")))
    return ["iteration", "time", *(["calls"] if len(calls) > 1 else []), *calls]


def _axis_title(axis: str) -> str:
    if axis.startswith("calls."):
        return f"{axis.removeprefix('calls.').replace('_', ' ')} evaluations"
    return {"iteration": ITERATIONS, "time": SECONDS, "calls": "all evaluations"}[axis]


def axis_values(trace: Any, axis: str) -> Array | None:
    """The column of a horizontal axis; None where the run does not know it."""
    if axis == "calls":
        found = [trace[name] for name in trace if name.startswith("calls.")]
        return rising(np.sum(found, axis=0)) if found else None
    if axis not in trace:
        return None
    column: Array = trace[axis]
    return rising(column) if axis.startswith("calls.") else column


def _curves(
    members: Sequence[Member], names: Mapping[str, str], metric: str, axis: str, best: float | None
) -> list[Curve]:
    groups: dict[tuple[str, str], list[Member]] = {}
    for one in members:
        groups.setdefault((one.problem, names[one.name]), []).append(one)
    count = sum(1 if len(group) >= REPEATED else len(group) for group in groups.values())
    points = budget(count)
    curves = []
    for (_, name), group in groups.items():
        banded = _band(group, metric, axis, name, points, best) if len(group) >= REPEATED else None
        found = [banded] if banded is not None else [_single(one, metric, axis, name, points, best) for one in group]
        curves += [one for one in found if one is not None]
    return curves


def _single(member: Member, metric: str, axis: str, name: str, points: int, best: float | None) -> Curve | None:
    trace = _trace(member)
    x = axis_values(trace, axis)
    if x is None or metric not in trace:
        return None
    y = trace[metric] if best is None else _distance(trace[metric], best)
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return None
    x, y = x[known], y[known]
    kept = thin(y, points)
    return Curve(x[kept], y[kept], name)


def _distance(values: Array, best: float) -> Array:
    """|f - best|, and 0 where rounding is all that is left of it."""
    far = np.abs(values - best)
    far[far <= ROUNDING * max(1.0, abs(best))] = 0.0
    return far


def _band(group: Sequence[Member], metric: str, axis: str, name: str, points: int, best: float | None) -> Curve | None:
    if axis == "calls" or any(metric not in _trace(one) or "value" not in _trace(one) for one in group):
        return None
    cost = {"iteration": ITERATIONS, "time": SECONDS}.get(axis, axis.removeprefix("calls."))
    found = band(group, cost, metric, QUANTILES, min(points, POINTS // 2))
    if found is None or not np.isfinite(found.median).any():
        return None
    edges = [found.low, found.high]
    median = found.median
    if best is not None:
        median = _distance(median, best)
        ends = [_distance(one, best) for one in edges]
        edges = [np.minimum(*ends), np.maximum(*ends)]
    return Curve(found.x, median, name, low=edges[0], high=edges[1])


def _scale(curves: Iterable[Curve]) -> Scale:
    """Logarithmic where all is positive and spans more than two decades (zeros aside, which no log axis shows)."""
    values = np.concatenate([one.y[np.isfinite(one.y)] for one in curves])
    positive = values[values > 0]
    if len(positive) < 2 or (values < 0).any():
        return "linear"
    return "log" if positive.max() > 100 * positive.min() else "linear"


def parameter_figures(members: Sequence[Member]) -> list[Figure]:
    """For each varied number: the objective at the end against it."""
    paths = dict.fromkeys(path for one in members for path in one.values)
    style: Style = "line" if len(paths) == 1 else "points"
    figures = []
    for path in paths:
        found = [
            (one, float(one.values[path]), one.result.best_value)
            for one in members
            if _is_number(one.values.get(path)) and one.result is not None and one.result.best_value is not None
        ]
        if len({x for _, x, _ in found}) < 3:
            continue
        curves = []
        for name in dict.fromkeys(one.solver if "solver" not in path else "" for one, _, _ in found):
            rows = sorted((x, y) for one, x, y in found if not name or one.solver == name)
            curves.append(Curve([x for x, _ in rows], [y for _, y in rows], name or "runs", style=style))
        xs = [x for _, x, _ in found]
        wide = min(xs) > 0 and max(xs) > 30 * min(xs)
        figures.append(
            Figure(
                f"Best objective against {path}",
                curves,
                x=path,
                y="best objective",
                x_scale="log" if wide else "linear",
                y_scale=_scale(curves),
            )
        )
    return figures


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def profile_figures(runs: Runs) -> list[Figure]:
    """Performance and data profiles of a comparison; none for other runs."""
    from infimum.many.comparison import Comparison

    if not isinstance(runs, Comparison) or len(runs.solvers) < 2:
        return []
    kinds = (
        ("Performance profile", runs.performance_profile(), "ratio to the best method", "log"),
        ("Data profile", runs.data_profile(), _data_unit(runs), "linear"),
    )
    figures = []
    for title, profiles, x, scale in kinds:
        end = max((one.x[-1] for one in profiles), default=1.0)
        end = end * 1.1 if scale == "log" else end * 1.05 or 1.0
        curves = [
            Curve([*one.x, end], [*one.y, one.y[-1]], one.solver, style="steps") for one in profiles if len(one.x)
        ]
        if curves:
            log: Scale = "log" if scale == "log" else "linear"
            figures.append(Figure(title, curves, x=x, y="share solved", x_scale=log, text=_profile_text(title, runs)))
    return figures


def _data_unit(runs: Any) -> str:
    return "simplex gradients" if runs.budget == "value" else runs.unit()


def _profile_text(title: str, runs: Any) -> str:
    if title.startswith("Data"):
        return "Share of the instances that a method solved within a cost. Instances: problems, repetitions, targets."
    return (
        "Share of the instances on which a method needed at most so many times the cost of the best method; "
        f"cost: {runs.unit()}."
    )

"""The section of a report: what the rule watched, its statistic, its alarms, how long until a false one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infimum.reporting import Curve, Figure, Section, Table
from infimum_cpd.theory import arl0


def sections(extras: Mapping[str, Any]) -> Iterator[Section]:
    """A section for each `cpd.cusum` among the extras of a result."""
    for name, tree in extras.items():
        if name.startswith("cpd.cusum"):
            yield _section(tree)


def _section(tree: Mapping[str, Any]) -> Section:
    rows = tree["rows"]
    labels, w, level = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    figures = []
    if labels:
        h = tree["threshold"]
        curves = [Curve(labels, w, "W"), Curve([labels[0], labels[-1]], [h, h], "threshold")]
        figures.append(Figure("CUSUM statistic", curves, "iteration", "standard deviations"))
        figures.append(Figure(f"what was watched: {tree['metric']}", [Curve(labels, level)], "iteration"))
    left_out = f" ({tree['refused']} more were NaN, inf or without a logarithm)" if tree.get("refused") else ""
    numbers = f"{tree['samples']} samples{left_out}; threshold {tree['threshold']:.4g}, k {tree['k']:.3g}"
    text = f"Reference: {tree['reference']}. {numbers}."
    return Section(f"Change points of {tree['metric']}", text, figures, [_alarms(tree), _run_lengths(tree)])


def _alarms(tree: Mapping[str, Any]) -> Table:
    return Table(
        ["alarm at iteration", "change since about"], tree["alarms"], "Alarms." if tree["alarms"] else "No alarm."
    )


def _run_lengths(tree: Mapping[str, Any]) -> Table:
    h, k, sided = tree["threshold"], tree["k"], tree["sided"]
    rows = [[factor * h, arl0(factor * h, k, sided)] for factor in (0.5, 0.75, 1.0, 1.25, 1.5)]
    return Table(["h", "samples between false alarms"], rows, "By Siegmund's formula, for independent normal samples.")

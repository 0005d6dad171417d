"""The section of a report: the certificate, what each stage took, and the parts as curves over their entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from infimum.reporting import Curve, Figure, Section, Table

SHOWN = 16
"""Parts in the figure."""


def sections(result: Any) -> Iterator[Section]:
    """One section for each exterior run."""
    for name, tree in result.extras.items():
        if name.partition(" ")[0] == "enmf.exterior":
            yield _section(tree)


def _section(tree: Any) -> Section:
    bound, gap = tree["bound"], tree["gap"]
    if bound is None:
        text = "The run ended before the SVD: there is no bound."
    else:
        text = f"No factorization of this rank has a relative error below {bound:.6g}, that of the SVD. "
        text += (
            "This one meets it: it is a global optimum." if tree["is_global"] else f"This one is {gap:.3g} above it."
        )
    if tree["stage"] != "descent":
        text += (
            " The time ended before the factors had entered the orthant (time_budget_before_feasible): their negative "
            "entries were cut off."
        )
    rows = [[stage, int(steps)] for stage, steps in dict(tree["steps"]).items()]
    figures = [] if tree.get("parts") is None else [_figure(np.asarray(tree["parts"]))]
    return Section("Exterior factorization", text, figures, [Table(["stage", "steps"], rows)] if rows else [])


def _figure(parts: Any) -> Figure:
    scaled = parts / np.maximum(parts.max(axis=1, keepdims=True), 1e-300)
    curves = [Curve(np.arange(len(one)), one, f"part {k}") for k, one in enumerate(scaled[:SHOWN])]
    return Figure("Parts", curves, "column of X", "entry of V, largest 1", text="The rows of V^T, each scaled to 1.")

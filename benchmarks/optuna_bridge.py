"""What the bridge to Optuna costs per trial, as a ratio to a bare `study.optimize` with the same sampler.

The function is nothing but two parameters, so all time is bookkeeping. `stop_when` is the callback with three rules;
with `history`, a rule looks at all trials at every check. `infimum.solve` is the same sampler under infimum's run loop:
counted, recorded, with a fresh sampler for every trial (that alone: `seeded`). Repeats are interleaved, the median of
the ratios within each round is printed, with the quartiles; one thread.

    python benchmarks/optuna_bridge.py [--trials 200] [--repeats 9] [--samplers random,tpe,cma_es,gp] [--sqlite]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import optuna

import infimum
from infimum.status import Status
from infimum.stopping import StoppingRule
from infimum_optuna import BlackBox, Seeded, open_storage, stop_when

SPACE = {"x": {"low": -1.0, "high": 1.0}, "y": {"low": 1e-3, "high": 1e3, "log": True}}
RULE = "stall(100000) | target(-1) | max_iter(100000)"
NEEDS = {"cma_es": "cmaes", "gp": "torch"}


@dataclass(frozen=True, repr=False)
class Looks(StoppingRule):
    """Reads the best of all trials from the history; never true."""

    needs = ("history",)
    status = Status.stalled

    def start(self) -> Any:
        return self

    def update(self, progress: Any) -> None:
        history = progress.metrics["history"]
        if history is not None:
            history.values.min(initial=0.0)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


def objective(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", -1.0, 1.0) ** 2 + trial.suggest_float("y", 1e-3, 1e3, log=True) * 1e-3


def sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    kinds: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
        "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
        "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
        "cma_es": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
        "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    }
    return kinds[name](seed)


def cases(name: str, trials: int, storage: Callable[[], Any]) -> dict[str, Callable[[], None]]:
    def study(made: Any) -> optuna.Study:
        return optuna.create_study(sampler=made, storage=storage())

    def bare() -> None:
        study(sampler(name, 0)).optimize(objective, n_trials=trials)

    def seeded() -> None:
        study(Seeded(lambda space, fixed, own: sampler(name, own), 0)).optimize(objective, n_trials=trials)

    def callback(rule: Any) -> Callable[[], None]:
        return lambda: study(sampler(name, 0)).optimize(objective, n_trials=trials, callbacks=[stop_when(rule)])

    def ours() -> None:
        solver = {"use": f"optuna.{name}", "storage": storage()}
        box = BlackBox(lambda p: p["x"] ** 2 + p["y"] * 1e-3, SPACE)
        result = infimum.solve(box, solver=solver, stopping=f"stall(100000) | max_iter({trials})", seed=0)
        assert result.iterations == trials

    return {
        "study.optimize": bare,
        "+ stop_when": callback(RULE),
        "+ stop_when, history": callback(Looks()),
        "seeded": seeded,
        "infimum.solve": ours,
    }


def measure(name: str, options: argparse.Namespace, folder: str) -> None:
    count = 0

    def storage() -> Any:
        nonlocal count
        count += 1
        return open_storage(f"sqlite:///{folder}/{count}.db") if options.sqlite else None

    made = cases(name, options.trials, storage)
    seconds: dict[str, list[float]] = {case: [] for case in made}
    for round_ in range(options.repeats + 1):
        for case, run in made.items():
            begin = time.perf_counter()
            run()
            if round_:  # The first round warms up.
                seconds[case].append(time.perf_counter() - begin)
    for case, taken in seconds.items():
        ratios = [one / base for one, base in zip(taken, seconds["study.optimize"], strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4)
        each = 1e6 * statistics.median(taken) / options.trials
        print(
            f"{name:8} {case:22} {each:10.0f} us a trial   {statistics.median(ratios):6.2f}   [{low:.2f}, {high:.2f}]"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--samplers", default="random,tpe,cma_es")
    parser.add_argument("--sqlite", action="store_true", help="a database file in place of memory")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    where = "a SQLite file" if options.sqlite else "memory"
    print(f"{options.trials} trials in {where}, optuna {optuna.__version__}; ratio to study.optimize, quartiles\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.samplers.split(","):
            package = NEEDS.get(name, "optuna")
            if find_spec(package) is None:
                print(f"{name:8} NOT SHOWN: the package {package} is not installed")
                continue
            measure(name, options, folder)


if __name__ == "__main__":
    main()

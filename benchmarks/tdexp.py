"""Step sizes of TD(0): one setting for eight problems, regularization, gymnasium, and the speed of many runs at once.

    python benchmarks/tdexp.py                    # all tables, in some minutes
    python benchmarks/tdexp.py --only table       # table, bias, gymnasium or speed
    python benchmarks/tdexp.py --only table --steps 5000

Errors are E[(V_w - V_w*)^2] under the stationary distribution, for the last iterate unless "tail mean" (of the last
half) is said, as means over the runs. All schedules of a setting see the same transitions. Standard errors: by
resampling the runs. One thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import infimum
from infimum.schedule import Constant, Power
from infimum_tdexp import Exponential, PolicyEvaluation, Theory, boyan_chain, garnet, grid, random_walk
from infimum_tdexp.schedules import usual

SEEDS = (101, 102, 103)
"""Independent sets of runs."""
PROBLEMS: dict[str, Callable[..., PolicyEvaluation]] = {
    "garnet": garnet,
    "garnet, ill": lambda **more: garnet(spread=3.0, data_seed=1, **more),
    "random walk": random_walk,
    "Boyan chain": boyan_chain,
}
USUAL = "exp 1, beta 10"
"""What `tdexp.td0` takes by default."""
ETAS = (0.01, 0.03, 0.1, 0.3, 1.0, 2.0)


def schedules(steps: int, gamma: float) -> dict[str, Any]:
    """All that are compared, by name."""
    found: dict[str, Any] = {}
    for eta in (0.3, 0.5, 1.0, 2.0):
        found[f"exp {eta:g}"] = Exponential(steps, eta)
    for eta in (0.5, 1.0, 2.0):
        found[f"exp {eta:g}, beta 10"] = Exponential(steps, eta, 10.0)
    for eta in ETAS:
        found[f"constant {eta:g}"] = Constant(eta)
    for eta in ETAS:
        found[f"1/sqrt(t) {eta:g}"] = Power(eta, 0.5)
    for eta in (1.0, 10.0):
        found[f"1/t {eta:g}"] = Power(eta, 1.0)
    found["theory, iid"] = Theory(steps, gamma)
    return found


def errors(steps: int, runs: int, seed: int) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, float]]:
    """Setting -> method -> errors by run; setting -> error of zero."""
    table: dict[str, dict[str, np.ndarray]] = {}
    energy: dict[str, float] = {}
    for name, make in PROBLEMS.items():
        for sampling in ("iid", "markov"):
            problem = make(sampling=sampling)
            compared = schedules(steps, problem.process.gamma)
            out = grid(problem, compared, steps=steps, runs=runs, seed=seed)
            last, mean = out.errors(out.last), out.errors(out.mean)
            rows = dict(zip(out.names, last, strict=True))
            for k, one in enumerate(out.names):
                if one.startswith("constant"):
                    rows[f"{one}, tail mean"] = mean[k]
            rows["LSTD"] = out.errors(out.lstd)
            key = f"{name}, {sampling}"
            assert problem.moments is not None
            table[key], energy[key] = rows, problem.moments.energy
    return table, energy


def ratios(table: Mapping[str, Mapping[str, np.ndarray]], picks: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Method -> ratio of its mean error to the best step-size method's, by setting."""
    found: dict[str, list[float]] = {}
    for rows in table.values():
        means = {name: float(np.mean(one if picks is None else one[picks])) for name, one in rows.items()}
        best = min(value for name, value in means.items() if name != "LSTD")
        for name, value in means.items():
            found.setdefault(name, []).append(value / best)
    return {name: np.array(one) for name, one in found.items()}


def pooled(tables: list[Mapping[str, Mapping[str, np.ndarray]]]) -> dict[str, dict[str, np.ndarray]]:
    """The runs of several tables as one."""
    first = tables[0]
    return {
        key: {name: np.concatenate([one[key][name] for one in tables]) for name in rows} for key, rows in first.items()
    }


def worst_errors(table: Mapping[str, Mapping[str, np.ndarray]], draws: int = 300) -> dict[str, float]:
    """Method -> standard error of its worst ratio, by resampling the runs."""
    runs = len(next(iter(next(iter(table.values())).values())))
    rng = np.random.default_rng(0)
    samples = [ratios(table, rng.integers(0, runs, runs)) for _ in range(draws)]
    with np.errstate(invalid="ignore"):
        # inf, of what diverges, has none.
        return {name: float(np.std([sample[name].max() for sample in samples])) for name in samples[0]}


def show_table(steps: int, runs: int) -> None:
    found = [errors(steps, runs, seed) for seed in SEEDS]
    tables, energy = [one[0] for one in found], found[0][1]
    every = pooled(tables)
    print(f"\nOne step size for all eight settings: T = {steps}, {len(SEEDS)} sets of {runs} runs")
    for key, rows in every.items():
        best = min((one for one in rows if one != "LSTD"), key=lambda one: float(rows[one].mean()))
        print(
            f"  {key:22} error of 0: {energy[key]:8.3g}   best: {rows[best].mean():8.3g} ({best})"
            f"   {USUAL}: {rows[USUAL].mean():8.3g}   LSTD: {rows['LSTD'].mean():8.3g}"
        )
    whole, by_set, error = ratios(every), [ratios(one) for one in tables], worst_errors(every)
    print(f"  ratio to the best\n  {'method':26}{'mean':>10}{'worst':>10}{'+-':>9}   worst of each set   where")
    for name, one in sorted(whole.items(), key=lambda pair: pair[1].max()):
        with np.errstate(divide="ignore"):
            middle = float(np.exp(np.log(one).mean()))
        each, where = " ".join(f"{part[name].max():.3g}" for part in by_set), list(every)[int(one.argmax())]
        print(f"  {name:26}{middle:10.3g}{one.max():10.3g}{error[name]:9.2g}   {each:18}  {where}")
    for beta in ("", ", beta 10"):
        for other in ("exp 2", "exp 0.5"):
            change = whole[other + beta] / whole["exp 1" + beta]
            print(
                f"  from exp 1{beta} to {other}{beta}: errors change by {change.min():.3g} to {change.max():.3g} times"
            )


def show_bias(steps: int, runs: int) -> None:
    print(f"\nRegularization lam = 1/sqrt(T) = {steps**-0.5:.3g}: what it costs however long one learns")
    for name, make in PROBLEMS.items():
        problem = make(sampling="markov")
        moments, lam = problem.moments, steps**-0.5
        assert moments is not None
        floor = float(moments.errors(moments.shifted(lam)))
        out = grid(problem, {USUAL: usual(steps)}, steps=steps, runs=runs, seed=SEEDS[0], lam=lam)
        reached = out.errors(out.last)[0].mean()
        rate = moments.omega * (1 - problem.process.gamma)
        print(
            f"  {name:14} error of 0: {moments.energy:8.3g}   of w_lam: {floor:8.3g}   reached: {reached:8.3g}"
            f"   ||w_lam - w*||: {moments.bias(lam):.3g}   omega (1 - gamma): {rate:.2g}"
        )


def show_gymnasium(steps: int, runs: int) -> None:
    try:
        from infimum_tdexp.toy_text import cliff_walking, frozen_lake, taxi

        problems = {"Taxi": taxi(), "CliffWalking": cliff_walking(), "FrozenLake, near optimal": frozen_lake()}
    except infimum.errors.InputError as error:
        print(f"\ngymnasium: NOT SHOWN ({error})")
        return
    print(f"\ngymnasium, T = {steps}, {runs} runs")
    for name, problem in problems.items():
        compared: dict[str, Any] = {"exp 1": Exponential(steps)}
        compared |= {f"exp {eta:g}, beta 10": Exponential(steps, eta, 10.0) for eta in (0.5, 1.0, 2.0)}
        compared |= {f"constant {eta:g}": Constant(eta) for eta in (0.1, 0.5, 1.0)}
        compared |= {f"1/sqrt(t) {eta:g}": Power(eta, 0.5) for eta in (0.5, 1.0, 2.0)}
        out = grid(problem, compared, steps=steps, runs=runs, seed=SEEDS[0])
        rows = dict(zip(out.names, out.errors(out.last).mean(axis=1), strict=True))
        exact = out.errors(out.lstd)
        rows["LSTD"] = float(exact.mean())
        rows["LSTD, median run"] = float(np.median(exact))
        assert problem.moments is not None
        print(
            f"  {name}: error of 0: {problem.moments.energy:.3g}; "
            + ", ".join(f"{key}: {value:.3g}" for key, value in rows.items())
        )


def plain_loop(problem: Any, steps: int, seed: int, *, careful: bool) -> np.ndarray:
    """TD(0) one run and one transition at a time: as one writes it down, or with a table for drawing states.

    It draws what `MRP.transitions` draws (next state, noise of the reward) and asks the schedule at each step.
    """
    model = problem.process
    rng = np.random.default_rng(seed)
    P, phi, gamma = model.chain, model.features, model.gamma
    reward = np.bincount(model.outcomes.source, model.outcomes.probability * model.outcomes.reward)
    below, w, schedule, s = np.cumsum(P, axis=1), np.zeros(phi.shape[1]), usual(steps), 0
    for k in range(steps):
        after = min(int(below[s].searchsorted(rng.random())), len(P) - 1) if careful else rng.choice(len(P), p=P[s])
        r = reward[s] + model.noise * rng.standard_normal()
        delta = r + gamma * (phi[after] @ w) - phi[s] @ w
        w += schedule(k) * delta * phi[s]
        s = after
    return w


def show_speed(runs: int, repeats: int) -> None:
    problem, steps, few = garnet(runs=runs), 5000, 1000
    one, many = {USUAL: usual(steps)}, {f"{k}": usual(few, 0.1 * (k + 1)) for k in range(16)}
    options: dict[str, Any] = {
        "solver": {"use": "tdexp.td0", "horizon": steps},
        "stopping": f"max_iter({steps})",
        "seed": 0,
    }
    ways: dict[str, tuple[Callable[[int], Any], int]] = {
        "plain loop": (lambda k: plain_loop(problem, few, k, careful=False), few),
        "plain loop, states by searchsorted": (lambda k: plain_loop(problem, few, k, careful=True), few),
        "tdexp.td0 under the host": (lambda k: infimum.solve(problem, check_every=1000, **options), steps * runs),
        "grid: TD(0) and LSTD": (lambda k: grid(problem, one, steps=steps, runs=runs, seed=k), steps * runs),
        "grid: 16 schedules, per schedule": (
            lambda k: grid(problem, many, steps=few, runs=runs, seed=k),
            few * runs * len(many),
        ),
    }
    wall: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 1):
        for name, (call, transitions) in ways.items():
            began, used = time.perf_counter(), time.process_time()
            call(repeat)
            if repeat:
                cpu[name].append((time.process_time() - used) / transitions)
                wall[name].append((time.perf_counter() - began) / transitions)
    print(f"\nSpeed, {runs} runs at once of a garnet, one path each, {repeats} interleaved repeats")
    print(f"  {'microseconds a transition':36}{'wall':>9}{'CPU':>9}   times each of the plain loops (CPU)")
    base, careful = (np.array(one) for one in list(cpu.values())[:2])
    for name in ways:
        spent = np.array(cpu[name])
        print(
            f"  {name:36}{1e6 * np.median(wall[name]):9.3f}{1e6 * np.median(spent):9.3f}"
            f"   {np.median(base / spent):6.1f} [{(base / spent).min():.1f}, {(base / spent).max():.1f}]"
            f"   {np.median(careful / spent):6.1f} [{(careful / spent).min():.1f}, {(careful / spent).max():.1f}]"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("table", "bias", "gymnasium", "speed"))
    parser.add_argument("--steps", type=int, default=20_000, help="T, transitions of each run")
    parser.add_argument("--runs", type=int, default=128, help="runs of each set")
    parser.add_argument("--parallel", type=int, default=64, help="runs at once when speed is measured")
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    if given.only in (None, "table"):
        show_table(given.steps, given.runs)
    if given.only in (None, "bias"):
        show_bias(given.steps, given.runs)
    if given.only in (None, "gymnasium"):
        show_gymnasium(15_000, given.runs)
    if given.only in (None, "speed"):
        show_speed(given.parallel, given.repeats)


if __name__ == "__main__":
    main()

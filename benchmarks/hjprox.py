"""What `hjprox.prox` reaches and what it costs: every table with its seeds, which were fixed before.

python benchmarks/hjprox.py                     # all tables, about four minutes
python benchmarks/hjprox.py nonnegative tv      # some of them
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import infimum
from infimum.errors import InfimumWarning
from infimum.functions import L1, Function, LeastSquares, SquaredL2
from infimum_hjprox import HJProx, PowerLaw, Separable, hj_prox, l1_limit, nonnegative_limit
from infimum_splitting import PDHG, DavisYin, ProximalGradient

SEEDS = (101, 102, 103)
DELTAS = (1.0, 0.1, 0.01)


def lasso_data(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random design with 10 coefficients of 1 and noise of 0.1."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((rows, columns)), np.zeros(columns)
    x[rng.choice(columns, 10, replace=False)] = 1.0
    return A, A @ x + 0.1 * rng.standard_normal(rows)


def table(title: str, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """One table on standard output."""
    print(f"\n{title}")
    print("  ".join(f"{one:>14}" for one in head))
    for row in rows:
        print("  ".join(f"{one:>14.3g}" if isinstance(one, float) else f"{one!s:>14}" for one in row))


def solve(problem: Any, n: int, solver: Any, iterations: int, **more: Any) -> Any:
    """A run of a fixed length from zero, recording little."""
    return infimum.solve(
        problem, np.zeros(n), solver=solver, stopping=f"max_iter({iterations})", value_every=iterations, **more
    )


def limit_operator() -> None:
    """Proximal gradient with the limit operator: the schedule decides, without any sampling."""
    A, b = lasso_data(60, 120, 0)
    L = float(np.linalg.norm(A, 2) ** 2)
    best = exact_lasso(A, b)
    schedules: dict[str, Callable[[int], float]] = {
        **{f"{delta:g}": (lambda k, delta=delta: delta) for delta in (1.0, 0.1, 0.01, 1e-3, 1e-4)},
        "1/k^2.00001": PowerLaw(1.0, 2.00001),
        "1/k": PowerLaw(1.0, 1.0),
    }
    rows = []
    for name, schedule in schedules.items():
        x = np.zeros(120)
        for k in range(4000):
            x = l1_limit(x - A.T @ (A @ x - b) / L, 1 / L, schedule(k))
        rows.append((name, lasso_value(A, b, x) / best - 1))
    table("limit operator, lasso 60x120, 4000 iterations", ("delta_k", "gap"), rows)


def lasso_value(A: np.ndarray, b: np.ndarray, x: np.ndarray) -> float:
    """`||A x - b||^2 / 2 + ||x||_1`."""
    return float(0.5 * np.sum((A @ x - b) ** 2) + np.abs(x).sum())


def exact_lasso(A: np.ndarray, b: np.ndarray) -> float:
    """The optimal value, by an exact prox."""
    problem = infimum.Composite({"loss": LeastSquares(A, b, reduction="sum"), "penalty": L1(1.0)})
    solver = ProximalGradient(acceleration=True, restart=True)
    return float(infimum.solve(problem, solver=solver, stopping="grad_norm(1e-9) | max_iter(1e5)", seed=0).value)


def nonnegative_gap(data_seed: int, seed: int, delta: float, exact: bool, iterations: int = 2000) -> float:
    """Relative gap of Davis–Yin on the nonnegative lasso: exact projection, or its limit operator as well."""
    A, b = lasso_data(60, 120, data_seed)
    loss, penalty = LeastSquares(A, b, reduction="sum"), L1(1.0)
    terms = {"loss": loss, "penalty": penalty}
    sets = infimum.Composite(terms, constraints={"positive": infimum.constraints.Nonnegative()})
    best = infimum.solve(
        sets, solver=DavisYin(), assign={"first": "positive"}, stopping="residual(1e-8) | max_iter(1e5)", seed=0
    ).value
    smooth = Function(lambda x: 0.0, prox=lambda v, t: nonnegative_limit(v, t, delta))
    problem = sets if exact else infimum.Composite({**terms, "positive": smooth})
    got = solve(
        problem,
        120,
        DavisYin(),
        iterations,
        assign={"first": "positive"},
        oracles={"penalty": HJProx(delta=delta, n_samples=500, preset="paper")},
        seed=seed,
        average=False,
    )
    return lasso_value(A, b, got.x) / best - 1


def nonnegative() -> None:
    rows = []
    for delta in DELTAS:
        pairs = [(nonnegative_gap(s, s, delta, True), nonnegative_gap(s, s, delta, False)) for s in SEEDS]
        ratios = [both / one for one, both in pairs]
        rows.append((delta, *(one for one, _ in pairs), *(both for _, both in pairs), min(ratios), max(ratios)))
    head = ("delta", *(f"exact {s}" for s in SEEDS), *(f"all {s}" for s in SEEDS), "least ratio", "most")
    table("nonnegative lasso 60x120 by Davis-Yin, 2000 iterations, N = 500: gap by data and seed", head, rows)


def groups() -> None:
    """The overlapping group lasso on diabetes: relative gap of the last point and of the tail average."""
    import cvxpy as cp

    from infimum_problems.groups import overlapping_group_lasso

    problem = overlapping_group_lasso()
    loss, x = problem.terms[0].body, cp.Variable(10)
    norms = [cp.norm(x[list(group)]) for group in problem.terms[1].body.function.groups]
    best = cp.Problem(cp.Minimize(cp.sum_squares(loss.A @ x - loss.b) / (2 * 442) + 0.15 * sum(norms))).solve(
        solver="CLARABEL"
    )
    variants = {
        "plain, delta .01": HJProx(delta=0.01, preset="paper"),
        "plain, delta .001": HJProx(delta=1e-3, preset="paper"),
        "recentered .01": HJProx(delta=0.01),
        "recentered .001": HJProx(delta=1e-3),
        "with pairs .001": HJProx(delta=1e-3, antithetic=True),
    }
    rows = []
    for name, oracle in variants.items():
        for seed in SEEDS:
            began = time.process_time()
            got = solve(problem, 10, ProximalGradient(), 300, oracles={"penalty": oracle}, seed=seed)
            seconds = time.process_time() - began
            evaluations = got.evaluations["penalty"]["value"]
            rows.append((name, seed, got.value / best - 1, got.tail_value / best - 1, seconds, evaluations))
    table(
        f"overlapping groups on diabetes (optimum {best:.6f}), proximal gradient, 300 iterations, N = 1000",
        ("oracle", "seed", "gap, last", "gap, tail", "CPU s", "evaluations"),
        rows,
    )


def sampled_lasso() -> None:
    """The lasso by proximal gradient, joint and by coordinate."""
    A, b = lasso_data(60, 120, 0)
    best, loss = exact_lasso(A, b), LeastSquares(A, b, reduction="sum")
    variants = {
        "plain 1": HJProx(delta=1.0, n_samples=500, preset="paper"),
        "plain .01": HJProx(delta=0.01, n_samples=500, preset="paper"),
        "recentered .01": HJProx(delta=0.01, n_samples=500),
        "coordinates .01": HJProx(delta=0.01, n_samples=500, separable=True),
        "coordinates 1e-4": HJProx(delta=1e-4, n_samples=500, separable=True),
    }
    problem = infimum.Composite({"loss": loss, "penalty": Separable(np.abs)})
    rows = []
    for name, oracle in variants.items():
        got = solve(problem, 120, ProximalGradient(), 1000, oracles={"penalty": oracle}, seed=SEEDS[0])
        rows.append((name, lasso_value(A, b, got.x) / best - 1, lasso_value(A, b, got.tail_x) / best - 1))
    fista = ProximalGradient(acceleration=True, allow_stochastic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InfimumWarning)
        oracle = HJProx(delta=0.01, n_samples=500, preset="paper")
        got = solve(problem, 120, fista, 300, oracles={"penalty": oracle}, seed=SEEDS[0])
    rows.append(("FISTA .01", lasso_value(A, b, got.x) / best - 1, lasso_value(A, b, got.tail_x) / best - 1))
    table("lasso 60x120, N = 500, 1000 iterations (FISTA 300)", ("oracle", "gap, last", "gap, tail"), rows)


def tv() -> None:
    """Total variation denoising of 64 values by PDHG: the l1 norm of the differences sampled, by Moreau."""
    rng = np.random.default_rng(9)
    b, D = np.repeat([0.0, 1.0, 0.3, 0.8], 16) + 0.1 * rng.standard_normal(64), np.diff(np.eye(64), axis=0)
    loss = SquaredL2().translate(b)
    exact = infimum.Composite({"loss": loss, "tv": (0.3 * L1()) @ D}, start=b)
    best = infimum.solve(exact, solver=PDHG(), stopping="residual(1e-9) | max_iter(1e5)", seed=0).value
    sampled = infimum.Composite({"loss": loss, "tv": Separable(np.abs, weight=0.3, convex=True) @ D}, start=b)
    rows: list[tuple[Any, ...]] = [("start", "", "", exact.value(b) / best - 1)]
    for ratio in (1.0, 900.0):
        for apart in (False, True):
            for delta in (1.0, 0.1, 0.01, 1e-3):
                oracle = HJProx(delta=delta, n_samples=500, separable=apart, preset=None if apart else "paper")
                got = infimum.solve(
                    sampled,
                    solver=PDHG(ratio=ratio),
                    oracles={"tv": oracle},
                    stopping="max_iter(1000)",
                    seed=SEEDS[0],
                    value_every=1000,
                )
                how = "coordinates" if apart else "plain"
                rows.append((how, ratio, delta, exact.value(got.tail_x) / best - 1))
    table("TV-1D denoising, n = 64, PDHG, 1000 iterations, N = 500", ("oracle", "ratio", "delta", "gap, tail"), rows)


def speed() -> None:
    """CPU time of one prox, and against a loop over samples in Python."""
    x = np.random.default_rng(0).standard_normal(500)
    prox = lambda: hj_prox(lambda Y: np.abs(Y).sum(1), x, 0.01, preset="paper", rng=1)  # noqa: E731
    rows = [("N = 1000, n = 500", *_times(prox))]
    from infimum_problems.groups import overlapping_group_lasso

    groups = overlapping_group_lasso().terms[1].body
    cases = {
        "groups 10": (groups.values, groups.value, 10),
        "l1 20": (lambda Y: np.abs(Y).sum(1), lambda y: float(np.abs(y).sum()), 20),
        "l1 500": (lambda Y: np.abs(Y).sum(1), lambda y: float(np.abs(y).sum()), 500),
    }
    for name, (many, one, n) in cases.items():
        for count in (1000, 10_000):
            ours = partial(hj_prox, many, x[:n], 0.01, n_samples=count, preset="paper", rng=1)
            fast, slow = _times(ours), _times(partial(_loop, one, x[:n], 0.01, 0.1, count, 1), 5)
            ratios = (b / a for a, b in zip(fast, slow, strict=True))
            rows += [(f"{name} {count}", *fast), ("  loop", *slow), ("  ratio", *ratios)]
    title = "CPU time of one prox by variables and samples, milliseconds: all at once, and one sample after the other"
    table(title, ("", "least", "median"), rows)


def _loop(f: Any, x: np.ndarray, t: float, delta: float, count: int, seed: int) -> np.ndarray:
    """The method as one would first write it: one sample after the other."""
    rng = np.random.default_rng(seed)
    points = [x + np.sqrt(delta * t) * rng.standard_normal(x.size) for _ in range(count)]
    logs = [-f(y) / delta for y in points]
    top = max(logs)
    weights = [np.exp(one - top) for one in logs]
    return sum(w * y for w, y in zip(weights, points, strict=True)) / sum(weights)


def _times(call: Callable[[], Any], repeats: int = 15) -> tuple[float, float]:
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        seconds.append(1e3 * (time.process_time() - began))
    return min(seconds), statistics.median(seconds)


TABLES = {
    "limit": limit_operator,
    "groups": groups,
    "lasso": sampled_lasso,
    "nonnegative": nonnegative,
    "tv": tv,
    "speed": speed,
}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        raise SystemExit(f"no table '{unknown[0]}'; there are: {', '.join(TABLES)}")
    for name in names or TABLES:
        TABLES[name]()


if __name__ == "__main__":
    main(sys.argv[1:])

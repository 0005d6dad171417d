"""A prox through CVXPY that keeps its canonical problem, against a problem built anew at each call.

Both solve the same problems by Clarabel with the same tolerances; CPU time, interleaved, medians of the calls:

- far apart: at independent points, where all that can be saved is the canonicalization;
- in a run: at the points where proximal gradient steps on least squares ask for it, all calls of the run.

    python benchmarks/cvxpy_bridge.py [--repeats 9] [--size 50 200] [--steps 300]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial

import cvxpy as cp
import numpy as np

from infimum_cvxpy import CvxFunction
from infimum_cvxpy.conic import TOLERANCE
from infimum_cvxpy.variables import Pieces

TOLERANCES = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), TOLERANCE)
FUNCTIONS: dict[str, Callable[[cp.Variable], cp.Expression]] = {
    "overlapping groups": lambda u: sum(cp.norm(u[k : k + 8]) for k in range(0, u.size - 7, 5)),
    "total variation": lambda u: cp.sum(cp.abs(cp.diff(u))),
    "l1 norm": cp.norm1,
    "largest entries": lambda u: cp.sum_largest(u, 5),
    "log-sum-exp": cp.log_sum_exp,
}


def anew(f: Callable[[cp.Variable], cp.Expression], v: np.ndarray, t: float) -> np.ndarray:
    u = cp.Variable(v.size)
    cp.Problem(cp.Minimize(f(u) + cp.sum_squares(u - v) / (2 * t))).solve(solver="CLARABEL", **TOLERANCES)
    return np.asarray(u.value)


def clocked(call: Callable[[], np.ndarray], times: list[float]) -> np.ndarray:
    begin = time.process_time()
    found = call()
    times.append(time.process_time() - begin)
    return found


def far_apart(f: Callable[[cp.Variable], cp.Expression], n: int, repeats: int) -> tuple[float, float, float]:
    """Median seconds of both ways, and the largest difference between their answers."""
    rng, variable = np.random.default_rng(0), cp.Variable(n)
    repeated = CvxFunction(f(variable), Pieces([variable]))
    repeated.prox(rng.standard_normal(n), 0.5)
    slow: list[float] = []
    fast: list[float] = []
    worst = 0.0
    for _ in range(repeats):
        v = rng.standard_normal(n)
        found = [clocked(partial(anew, f, v, 0.5), slow), clocked(partial(repeated.prox, v, 0.5), fast)]
        worst = max(worst, float(np.abs(found[0] - found[1]).max()))
    return statistics.median(slow), statistics.median(fast), worst


def in_a_run(f: Callable[[cp.Variable], cp.Expression], n: int, repeats: int, steps: int) -> tuple[float, float]:
    """Seconds of both ways for a call: the median anew, the mean of all calls of a run after the first."""
    rng, variable = np.random.default_rng(1), cp.Variable(n)
    A, b = rng.standard_normal((n // 2, n)) / np.sqrt(n), rng.standard_normal(n // 2)
    step = 1.0 / float(np.linalg.norm(A, 2) ** 2)
    repeated = CvxFunction(0.1 * f(variable), Pieces([variable]))
    x = repeated.prox(np.zeros(n), step)
    slow: list[float] = []
    fast: list[float] = []
    for k in range(steps):
        v = x - step * (A.T @ (A @ x - b))
        x = clocked(partial(repeated.prox, v, step), fast)
        if k % max(1, steps // repeats) == 0:
            clocked(partial(anew, lambda u: 0.1 * f(u), v, step), slow)
    return statistics.median(slow), statistics.mean(fast)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--size", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--steps", type=int, default=300)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "Solution may be inaccurate")
    print(
        "| function | n | anew | far apart | ratio | in a run | ratio | difference |\n|---|---|---|---|---|---|---|---|"
    )
    for name, f in FUNCTIONS.items():
        for n in given.size:
            slow, fast, worst = far_apart(f, n, given.repeats)
            other, run = in_a_run(f, n, given.repeats, given.steps)
            print(
                f"| {name} | {n} | {1e3 * slow:.1f} ms | {1e3 * fast:.2f} ms | {slow / fast:.0f}× "
                f"| {1e3 * run:.2f} ms | {other / run:.0f}× | {worst:.0e} |"
            )


if __name__ == "__main__":
    main()

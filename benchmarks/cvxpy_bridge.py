"""A prox through CVXPY that keeps its canonical problem, against a problem built anew at each call.

Both solve the same problems by Clarabel with the same tolerances, interleaved; the medians are compared.

    python benchmarks/cvxpy_bridge.py [--repeats 9] [--size 50 200]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

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


def measure(f: Callable[[cp.Variable], cp.Expression], n: int, repeats: int) -> tuple[float, float, float]:
    """Median seconds of both ways, and the largest difference between their answers."""
    rng, variable = np.random.default_rng(0), cp.Variable(n)
    repeated = CvxFunction(f(variable), Pieces([variable]))
    repeated.prox(rng.standard_normal(n), 0.5)
    times: tuple[list[float], list[float]] = ([], [])
    worst = 0.0
    for _ in range(repeats):
        v = rng.standard_normal(n)
        found = []
        for way, call in zip(times, (lambda: anew(f, v, 0.5), lambda: repeated.prox(v, 0.5)), strict=True):  # noqa: B023
            begin = time.perf_counter()
            found.append(call())
            way.append(time.perf_counter() - begin)
        worst = max(worst, float(np.abs(found[0] - found[1]).max()))
    return statistics.median(times[0]), statistics.median(times[1]), worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--size", type=int, nargs="+", default=[50, 200])
    given = parser.parse_args()
    print("| function | n | anew | repeated | ratio | difference |\n|---|---|---|---|---|---|")
    for name, f in FUNCTIONS.items():
        for n in given.size:
            slow, fast, worst = measure(f, n, given.repeats)
            print(f"| {name} | {n} | {1e3 * slow:.1f} ms | {1e3 * fast:.2f} ms | {slow / fast:.0f}× | {worst:.0e} |")


if __name__ == "__main__":
    main()

"""Proximal ADMM with many blocks: what it converges on, how fast, what it costs, and repeated solves beside CVXPY.

Six tables. Instances are made from fixed seeds (`infimum_padmm.problems`), so figures differ from those of other
instances of the same kind; reference values come from CLARABEL through CVXPY, or for the nonconvex chain from
proximal gradient steps on the problem without the copies. CPU seconds, one thread; repeats interleaved, medians.

    python benchmarks/padmm.py [--only resolves] [--repeats 7]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import infimum
from infimum import Result
from infimum.constraints import Box
from infimum_padmm import BlockProblem, RecedingHorizon, Repeated, certificate, problems

RESOLVES = 100
SYSTEMS = ((0.5, 0.3, 0), (0.5, 0.3, 41), (0.5, 0.3, 42), (1.0, 0.5, 43), (1.0, 0.5, 44))
"""Gain, bound and seed of the systems of table 6; the defaults of `RecedingHorizon` were chosen on seeds 20 to 27."""


def solved(problem: BlockProblem, stop: str = "residual(1e-8) | max_iter(3000)", **options: Any) -> Result:
    """One run under the host."""
    return infimum.solve(problem, solver={"use": "padmm.padmm", **options}, stopping=stop, seed=0)


def cell(result: Result) -> str:
    """Iterations and rate."""
    rate = result.extras["padmm.padmm"]["rate"]
    if str(result.status) != "converged":
        return f"{result.iterations}* / {rate:.3f} (residual {result.metrics['residual']:.0e})"
    return f"{result.iterations} / {rate:.3f}"


def chains(_: int) -> None:
    """Linear where strongly convex, sublinear where not."""
    print("\n1. Chain of four blocks, 15 entries: iterations to residual 1e-8 / rate of the steps (* = not reached)")
    settings: list[tuple[str, dict[str, Any]]] = [
        ("beta 1", {"beta": 1.0}),
        ("beta 1, P = .1", {"beta": 1.0, "prox_weight": 0.1}),
        ("beta 1, P = 1", {"beta": 1.0, "prox_weight": 1.0}),
        ("beta 1, 3, 9", {"beta": {"row1": 1.0, "row2": 3.0, "row3": 9.0}}),
        ("beta 9, 3, 1", {"beta": {"row1": 9.0, "row2": 3.0, "row3": 1.0}}),
        ("beta 10", {"beta": 10.0}),
        ("beta .1", {"beta": 0.1}),
    ]
    for moduli in ((1.0, 1.0, 1.0), (0.1, 0.0, 1.0), (0.0, 0.0, 1.0)):
        problem = problems.chain(*moduli)
        print(f"   H = {moduli}")
        for name, options in settings:
            print(f"      {name:16s} {cell(solved(problem, **options))}")


def robust(_: int) -> None:
    """The nonconvex chain."""
    problem = problems.robust_chain()
    print(f"\n2. Nonconvex chain (Cauchy): proximal gradient without copies ends at {direct(problem):.6f}")
    for beta in (0.2, 1.0, 3.0):
        result = solved(problem, beta=beta)
        margins = ", ".join(f"{one:.2g}" for one in certificate(problem, beta).margins.values())
        print(
            f"   beta {beta:<4g} {result.iterations:5d} iterations  objective {result.value:.6f}  margins ({margins})"
        )
    large = {"row1": 3456.0, "row2": 144.0, "row3": 6.0}
    sure = certificate(problem, large)
    result = solved(problem, "max_iter(4000)", beta=large)
    print(f"   beta 3456, 144, 6: certified {sure.holds}; after 4000 iterations objective {result.value:.6f}")


def direct(problem: BlockProblem) -> float:
    """The nonconvex chain in x1 alone, by proximal gradient steps from zero."""
    entries, fit, penalty = problem.structure.entries, problem.functions["x4"], problem.functions["x1"]
    assert fit is not None and penalty is not None
    K = np.eye(problem.structure.sizes[0])
    for row, j in zip(entries, range(3), strict=True):
        K = row[j].forward(K)
    x, step = np.zeros(K.shape[1]), 1.0 / float(np.linalg.norm(K, 2)) ** 2
    for _ in range(20_000):
        x = penalty.prox(x - step * (K.T @ fit.gradient(K @ x)), step)
    return fit.value(K @ x) + penalty.value(x)


def chen(_: int) -> None:
    """Divergence named and cured."""
    print("\n3. The example of Chen, He, Ye and Yuan, from x = (1, 1, 1)")
    cases: tuple[tuple[str, float, dict[str, Any]], ...] = (
        ("no proximal term", 0.0, {}),
        ("P = 1", 0.0, {"prox_weight": 1.0}),
        ("P = 5", 0.0, {"prox_weight": 5.0}),
        ("P = 20", 0.0, {"prox_weight": 20.0}),
        ("x^2/2 each", 1.0, {}),
        ("x^2/2 each, beta .1", 1.0, {"beta": 0.1}),
    )
    for name, modulus, options in cases:
        result = solved(problems.chen(modulus), **options)
        print(f"   {name:20s} {result.status!s:10s} {cell(result)}")
    print(f"   {problems.chen().report().warnings[-1]}")


def stages(_: int) -> None:
    """Optimal control."""
    print("\n4. Control, 20 stages: iterations to residual 1e-8, CPU ms an iteration (under the host | alone)")
    for grouping in ("stages", "inputs", "joint"):
        problem = problems.control(grouping=grouping)
        for beta in (0.3, 1.0, 3.0):
            begin = time.process_time()
            result = solved(problem, beta=beta)
            hosted = (time.process_time() - begin) / result.iterations
            again = Repeated(problem, beta=beta)
            again.solve(tol=0.0, max_iter=20)
            begin = time.process_time()
            again.solve(tol=0.0, max_iter=500)
            alone = (time.process_time() - begin) / 500
            blocks = len(problem.structure.blocks)
            print(
                f"   {grouping:7s} {blocks:3d} blocks, beta {beta:<4g} {result.iterations:5d} iterations  objective "
                f"{result.value:.6f}  {1e3 * hosted:.3f} | {1e3 * alone:.3f} ms"
            )


def logistic(_: int) -> None:
    """Real data, penalties by row."""
    print("\n5. Fused logistic regression on breast_cancer: optimum 52.17623445")
    problem = problems.fused_logistic()
    for beta in (0.1, {"steps": 1.0, "scores": 0.1}, {"steps": 3.0, "scores": 0.05}):
        begin = time.process_time()
        result = solved(problem, "residual(1e-7) | max_iter(4000)", beta=beta)
        seconds = time.process_time() - begin
        print(
            f"   beta {beta!s:32s} {result.iterations:5d} iterations  {result.value:.8f}  "
            f"gap {abs(result.value - 52.17623445):.1e}  {seconds:.2f} s"
        )
    if find_spec("cvxpy") is None:
        print("   CVXPY: NOT SHOWN (not installed)")
        return
    for solver, options in (("CLARABEL", {}), ("SCS", {"eps": 1e-8})):
        value, seconds = cvxpy_logistic(problem, solver, **options)
        print(f"   CVXPY + {solver:8s} {value:.8f}  {seconds:.2f} s")


def cvxpy_logistic(problem: BlockProblem, solver: str, **options: Any) -> tuple[float, float]:
    """The same problem by CVXPY: value and CPU seconds."""
    import cvxpy as cp

    X = problem.structure.entries[1][0].forward(np.eye(30))
    y = problem.functions["scores"].y  # type: ignore[union-attr]
    w = cp.Variable(30)
    loss = cp.sum(cp.logistic(cp.multiply(-y, X @ w)))
    whole = cp.Problem(cp.Minimize(0.05 * cp.sum_squares(w) + loss + 2.0 * cp.norm1(cp.diff(w))))
    begin = time.process_time()
    whole.solve(solver=solver, **options)
    return float(whole.value), time.process_time() - begin


def resolves(repeats: int) -> None:
    """Receding horizon beside CVXPY + OSQP with parameters, on several systems."""
    print(f"\n6. {RESOLVES} re-solves of the control problem, the state moved by the first input and a disturbance")
    if find_spec("cvxpy") is None:
        print("   CVXPY + OSQP: NOT SHOWN (not installed)")
        return
    for gain, bound, seed in SYSTEMS:
        print(f"   inputs within {bound}, gain {gain}, system {seed}")
        repeated(problems.system(4, 2, 0.9, seed, gain), bound, repeats)


def repeated(system: tuple[np.ndarray, np.ndarray, np.ndarray], bound: float, repeats: int) -> None:
    """One system, all ways interleaved."""
    A, B, state = system
    exact = trajectory(cvxpy_states(A, B, bound, eps_abs=1e-9, eps_rel=1e-9, max_iter=100_000), A, B, state)[1]
    ways: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "CVXPY + OSQP, states": cvxpy_states(A, B, bound),
        "CVXPY + OSQP, condensed": cvxpy_condensed(A, B, bound),
    }
    for grouping in ("condensed", "joint"):
        plant = RecedingHorizon(A, B, 20, Box(-bound, bound), grouping=grouping)
        ways[f"padmm, {grouping}"] = lambda s, plant=plant: plant.control(s, tol=1e-5)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    errors = {}
    for _ in range(repeats):
        for name, way in ways.items():
            way(state)
            spent, inputs = trajectory(way, A, B, state)
            seconds[name].append(spent)
            errors[name] = float(np.abs(inputs - exact).max())
    best = {kind: statistics.median(seconds[f"CVXPY + OSQP, {kind}"]) for kind in ("states", "condensed")}
    for name, all_seconds in seconds.items():
        middle = statistics.median(all_seconds)
        print(
            f"      {name:24s} {1e3 * middle / RESOLVES:7.3f} ms each  error of the inputs {errors[name]:.0e}  "
            f"ratio to states {best['states'] / middle:5.2f}, to condensed {best['condensed'] / middle:5.2f}"
        )


def trajectory(
    way: Callable[[np.ndarray], np.ndarray], A: np.ndarray, B: np.ndarray, state: np.ndarray
) -> tuple[float, np.ndarray]:
    """CPU seconds and the inputs of a closed loop."""
    rng, s, inputs = np.random.default_rng(1), state.copy(), []
    begin = time.process_time()
    for _ in range(RESOLVES):
        inputs.append(way(s))
        s = A @ s + B @ inputs[-1] + 0.3 * rng.standard_normal(A.shape[0])
    return time.process_time() - begin, np.array(inputs)


def cvxpy_states(A: np.ndarray, B: np.ndarray, bound: float, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Parametrized (DPP), warm-started, with the states as variables."""
    import cvxpy as cp

    s, u, first = cp.Variable((21, 4)), cp.Variable((20, 2)), cp.Parameter(4)
    rows = [s[0] == first, u <= bound, u >= -bound, *(s[k + 1] == A @ s[k] + B @ u[k] for k in range(20))]
    whole = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(s[1:]) + 0.05 * cp.sum_squares(u)), rows)
    return cvxpy_call(whole, first, u, **options)


def cvxpy_condensed(A: np.ndarray, B: np.ndarray, bound: float) -> Callable[[np.ndarray], np.ndarray]:
    """The same in the inputs alone."""
    import cvxpy as cp

    plant = RecedingHorizon(A, B, 20, Box(-bound, bound))
    H, F = plant.problem.functions["u"].P, plant._pull  # type: ignore[union-attr]
    u, first = cp.Variable(40), cp.Parameter(4)
    goal = 0.5 * cp.sum_squares(np.linalg.cholesky(H).T @ u) + (F @ first) @ u
    return cvxpy_call(cp.Problem(cp.Minimize(goal), [u <= bound, u >= -bound]), first, u)


def cvxpy_call(whole: Any, first: Any, u: Any, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    def call(state: np.ndarray) -> np.ndarray:
        first.value = state
        whole.solve(solver="OSQP", warm_start=True, **options)
        return np.array(np.ravel(u.value)[:2])

    return call


TABLES = {
    "chains": chains,
    "robust": robust,
    "chen": chen,
    "stages": stages,
    "logistic": logistic,
    "resolves": resolves,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(TABLES), help="one table")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    for name, table in TABLES.items():
        if args.only in (None, name):
            table(args.repeats)


if __name__ == "__main__":
    main()

"""Exact splitting solvers against pyproximal and copt on a lasso of 60 x 120: CPU time per iteration.

Same step sizes, same data, same thread count (one BLAS thread); stopping is off beyond the number of iterations.
Repeats are interleaved in one process, set-up is left out, figures are medians. Two of ours are timed: the method, a
plain loop over its own `step` (on parts of the host, with its counters), and the run under the host with all services
(counters, finiteness, best point, a row of the trace at every check, the objective every ten iterations, the violation
of a set at every check). The peers' loops have no such services, so a ratio is given for both. The iterates of both
sides are compared as well, after 1, 10, 100 and all iterations. A peer that is not installed is reported as NOT SHOWN.

    pip install "pyproximal==0.13.*" copt==0.9.2
    python benchmarks/splitting.py [--repeats 9] [--iterations 300]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import functools
import gc
import importlib
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import infimum
from infimum import Composite
from infimum.constraints import Nonnegative
from infimum.functions import L1, LeastSquares, SquaredL2
from infimum.solver import Solver
from infimum_splitting import ADMM, PDHG, DavisYin, DouglasRachford, ProximalGradient

PEERS = ("pyproximal", "copt")
ROWS, COLUMNS, PENALTY = 60, 120, 1.0
TOLERANCE = 1e-8

RNG = np.random.default_rng(0)
A = RNG.standard_normal((ROWS, COLUMNS))
B = A @ np.where(np.arange(COLUMNS) < 10, 1.0, 0.0) + 0.1 * RNG.standard_normal(ROWS)
START = np.zeros(COLUMNS)
L = float(np.linalg.norm(A, 2) ** 2)
# pyproximal rounds steps to float32, so these are such numbers.
STEP = float(np.float32(0.99 / L))
TAU = SIGMA = float(np.float32(0.95 / np.sqrt(L)))
DRS_STEP = float(np.float32(0.05))

Solve = Callable[[int], np.ndarray]
"""Runs a number of iterations from the start; the point to compare."""


@dataclass(frozen=True)
class Case:
    """One method: ours on a problem, and the same by peers."""

    name: str
    problem: Composite
    solver: Solver
    peers: dict[str, Callable[[], Solve]]
    points: tuple[tuple[str, str], ...] = ()
    """Peers that return another iterate than x, and under which name ours has it."""
    ahead: int = 0
    """Iterations that ours needs more to be at the same point: the methods start at different halves of a step."""


def lasso() -> Composite:
    return Composite({"loss": LeastSquares(A, B, reduction="sum"), "penalty": PENALTY * L1()})


def nonnegative_lasso() -> Composite:
    terms = {"loss": LeastSquares(A, B, reduction="sum"), "penalty": PENALTY * L1()}
    return Composite(terms, constraints=[Nonnegative()])


def lasso_by_proxes() -> Composite:
    return Composite({"penalty": PENALTY * L1(), "loss": LeastSquares(A, B, reduction="sum")})


def lasso_under_a_map() -> Composite:
    return Composite({"penalty": PENALTY * L1(), "loss": SquaredL2().translate(B) @ A}, start=START)


def method(case: Case, iterations: int) -> Callable[[], Any]:
    """The method in a plain loop; its last state."""
    run = infimum.prepare(case.problem, START, solver=case.solver, stopping="max_iter(1)")
    parts, step = run.bound.parts, case.solver.step

    def solve() -> Any:
        state = case.solver.init(parts, START, np.random.default_rng(0))
        for _ in range(iterations):
            state = step(parts, state)
        return state

    return solve


def hosted(case: Case, iterations: int) -> Callable[[], Any]:
    """The method under the host, with all services; its last state."""
    run = infimum.prepare(case.problem, START, solver=case.solver, stopping=f"max_iter({iterations})", seed=0)

    def solve() -> Any:
        run.solve()
        return run.state

    return solve


def pyproximal_terms() -> tuple[Any, Any]:
    import pylops
    import pyproximal

    loss = pyproximal.L2(Op=pylops.MatrixMult(A), b=B, densesolver="factorize")
    return loss, pyproximal.L1(sigma=PENALTY)


def pyproximal_gradient(acceleration: str | None) -> Solve:
    from pyproximal.optimization.primal import ProximalGradient as Peer

    loss, penalty = pyproximal_terms()
    return lambda n: Peer(loss, penalty, START.copy(), tau=STEP, niter=n, acceleration=acceleration)


def pyproximal_drs() -> Solve:
    from pyproximal.optimization.primal import DouglasRachfordSplitting as Peer

    loss, penalty = pyproximal_terms()
    return lambda n: Peer(penalty, loss, START.copy(), tau=DRS_STEP, niter=n, gfirst=False)[0]


def pyproximal_pdhg() -> Solve:
    import pylops
    import pyproximal
    from pyproximal.optimization.primaldual import PrimalDual as Peer

    penalty, loss, matrix = pyproximal.L1(sigma=PENALTY), pyproximal.L2(b=B), pylops.MatrixMult(A)
    return lambda n: Peer(penalty, loss, matrix, START.copy(), tau=TAU, mu=SIGMA, niter=n)


def soft(v: np.ndarray, t: float) -> np.ndarray:
    return v - np.clip(v, -PENALTY * t, PENALTY * t)


def loss_and_slope(x: np.ndarray, return_gradient: bool = True) -> Any:
    r = A @ x - B
    value = 0.5 * float(r @ r)
    return (value, A.T @ r) if return_gradient else value


def nothing(x: np.ndarray, return_gradient: bool = True) -> Any:
    return (0.0, np.zeros_like(x)) if return_gradient else 0.0


def copt_gradient(accelerated: bool) -> Solve:
    from copt import minimize_proximal_gradient as peer

    def solve(n: int) -> np.ndarray:
        # It makes one iteration more than max_iter.
        out = peer(
            loss_and_slope, START, soft, jac=True, tol=0, max_iter=n - 1, step=lambda _: STEP, accelerated=accelerated
        )
        return out.x

    return solve


def copt_three(smooth: Callable[..., Any], one: Any, two: Any, step: float) -> Solve:
    from copt import minimize_three_split as peer

    return lambda n: peer(smooth, START, one, two, tol=0, max_iter=n, line_search=False, step_size=step).x


def copt_drs() -> Solve:
    loss = LeastSquares(A, B, reduction="sum")
    return copt_three(nothing, loss.prox, soft, DRS_STEP)


def copt_davis_yin() -> Solve:
    return copt_three(loss_and_slope, lambda v, t: np.maximum(v, 0.0), soft, STEP)


def copt_primal_dual() -> Solve:
    from copt import minimize_primal_dual as peer

    def fit(v: np.ndarray, t: float) -> np.ndarray:
        return (v + t * B) / (1.0 + t)

    return lambda n: (
        peer(nothing, START, soft, fit, L=A, tol=0, max_iter=n, step_size=TAU, step_size2=SIGMA, line_search=False).x
    )


CASES = (
    Case(
        "proximal gradient",
        lasso(),
        ProximalGradient(step=STEP),
        {"pyproximal": lambda: pyproximal_gradient(None), "copt": lambda: copt_gradient(False)},
    ),
    Case(
        "FISTA",
        lasso(),
        ProximalGradient(step=STEP, acceleration=True),
        {"pyproximal": lambda: pyproximal_gradient("fista"), "copt": lambda: copt_gradient(True)},
    ),
    Case(
        "Douglas-Rachford",
        lasso_by_proxes(),
        DouglasRachford(step=DRS_STEP),
        {"pyproximal": pyproximal_drs, "copt": copt_drs},
        points=(("copt", "y"),),
    ),
    Case(
        "Davis-Yin, x >= 0",
        nonnegative_lasso(),
        DavisYin(step=STEP),
        {"copt": copt_davis_yin},
        points=(("copt", "y"),),
    ),
    Case("PDHG", lasso_under_a_map(), PDHG(tau=TAU, sigma=SIGMA), {"pyproximal": pyproximal_pdhg}),
    Case("ADMM (linearized)", lasso_under_a_map(), ADMM(rho=SIGMA, tau=TAU), {"copt": copt_primal_dual}, ahead=1),
)


def absent() -> dict[str, str]:
    """Peers that cannot be imported, with the reason."""
    out = {}
    for name in PEERS:
        try:
            importlib.import_module(name)
        except Exception as error:
            out[name] = f"{type(error).__name__}: {error}"
    return out


def timed(solve: Callable[[], Any], iterations: int) -> float:
    """CPU microseconds an iteration."""
    gc.collect()
    began = time.process_time()
    solve()
    return (time.process_time() - began) / iterations * 1e6


def apart(case: Case, peer: str, theirs: Solve, iterations: int) -> float:
    """The largest difference of our iterates and a peer's."""
    stops = sorted({n for n in (1, 10, 100, iterations) if n <= iterations})
    name = dict(case.points).get(peer, "x")
    ours = [getattr(method(case, n + case.ahead)(), name) for n in stops]
    return max(float(np.max(np.abs(one - theirs(n)))) for n, one in zip(stops, ours, strict=True))


def measure(case: Case, missing: dict[str, str], repeats: int, iterations: int) -> bool:
    """Time one method against its peers and print its row; whether nothing shown was faster or different."""
    peers = {peer: make() for peer, make in case.peers.items() if peer not in missing}
    times: dict[str, list[float]] = {name: [] for name in ("method", "hosted", *peers)}
    for repeat in range(repeats + 1):
        ways = {"method": method(case, iterations), "hosted": hosted(case, iterations)}
        for peer, solve in peers.items():
            ways[peer] = functools.partial(solve, iterations)
        for name, way in ways.items():
            spent = timed(way, iterations)
            if repeat:  # The first round warms up.
                times[name].append(spent)
    median = {name: statistics.median(values) for name, values in times.items()}
    good = np.array_equal(method(case, iterations)().x, hosted(case, iterations)().x)
    cells = [f"{case.name:<18} {median['method']:>6.1f} {median['hosted']:>6.1f}"]
    for peer in PEERS:
        if peer in peers:
            difference = apart(case, peer, peers[peer], iterations)
            good &= difference <= TOLERANCE and median["method"] <= median[peer]
            ratios = f"{median[peer] / median['method']:>6.2f} {median[peer] / median['hosted']:>6.2f}"
            cells.append(f"{median[peer]:>6.1f} {ratios} {difference:>8.0e} {'' if difference <= TOLERANCE else '!'}")
        else:
            cells.append("NOT SHOWN" if peer in case.peers else "has none")
    print(" | ".join(f"{cell:<31}" for cell in cells), flush=True)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9, help="interleaved repeats, at least 7")
    parser.add_argument("--iterations", type=int, default=300, help="of every method")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    missing = absent()
    for peer, why in missing.items():
        print(f"{peer}: NOT SHOWN, {why}")
    repeats = max(7, arguments.repeats)
    print(f"lasso {ROWS} x {COLUMNS}, {arguments.iterations} iterations, {repeats} repeats; CPU us an iteration")
    print("ratios: the peer's time in units of our method's and of our run's; apart: largest difference of iterates")
    head = [f"{'':<18} method hosted", *(f"{peer}  /method /hosted apart" for peer in PEERS)]
    print(" | ".join(f"{cell:<31}" for cell in head))
    good = [measure(case, missing, repeats, arguments.iterations) for case in CASES]
    word = "yes" if all(good) else "NO"
    print(f"our methods never slower than a peer shown, with the same iterates to {TOLERANCE:g}: {word}")


if __name__ == "__main__":
    main()

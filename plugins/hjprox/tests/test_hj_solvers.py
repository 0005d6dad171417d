"""With every splitting solver, and what the method is for: penalties without a prox, functions without a formula."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import infimum
from infimum.constraints import Nonnegative
from infimum.functions import L1, Function, LeastSquares, SquaredL2
from infimum.runfile import RunFile
from infimum_hjprox import Geometric, HJProx, PowerLaw, Separable, hj_prox, l1_limit
from infimum_problems.groups import overlapping_group_lasso

RUNS = Path(__file__).parents[1] / "runs"
A = np.random.default_rng(0).standard_normal((20, 6))
B = A @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]) + 0.1 * np.random.default_rng(1).standard_normal(20)
LOSS = LeastSquares(A, B)
PENALTY = 0.2 * L1()
SHARED = Separable(abs, weight=0.2, convex=True)
DIFFERENCES = np.diff(np.eye(6), axis=0)


def terms(name, penalty):
    if name == "proximal_point":
        return {"f": penalty}
    if name in ("pdhg", "admm"):
        return {"loss": SquaredL2().translate(B[:6]), "tv": penalty @ DIFFERENCES}
    if name == "condat_vu":
        return {"loss": LOSS, "tv": penalty @ DIFFERENCES}
    return {"loss": LOSS, "penalty": penalty}


SOLVERS = {
    "proximal_point": ({"step": 0.2}, {}),
    "proximal_gradient": ({}, {}),
    "douglas_rachford": ({"step": 0.3}, {}),
    "davis_yin": ({}, {"positive": Nonnegative()}),
    "pdhg": ({"ratio": 30}, {}),
    "condat_vu": ({"ratio": 10}, {}),
    "admm": ({}, {}),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_every_splitting_solver_takes_it_and_comes_close(name):
    options, sets = SOLVERS[name]
    solver = {"use": f"splitting.{name}", **options}

    def run(penalty, **more):
        problem = infimum.Composite(terms(name, penalty), constraints=sets, start=np.full(6, 2.0))
        return infimum.solve(problem, solver=solver, seed=2, **more)

    exact = run(PENALTY, stopping="max_iter(5000)")
    sampled = next(key for key in terms(name, PENALTY) if key != "loss")
    got = run(
        SHARED,
        oracles={sampled: {"use": "hjprox.prox", "delta": 0.01, "n_samples": 300, "separable": True}},
        stopping="max_iter(300)",
    )
    assert got.exactness == "stochastic" and got.success is False
    assert np.linalg.norm(got.tail_x - exact.x) < 0.1 * np.linalg.norm(exact.x - 2.0), (got.tail_x, exact.x)
    shown = str(got.plan)
    assert "hjprox.prox" in shown and "stochastic" in shown
    if name in ("pdhg", "condat_vu"):
        assert "Moreau" in shown


def test_a_summable_schedule_converges_where_one_over_k_does_not():
    """With the limit operator, so that no sampling is in it: the bias of delta alone."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 40))
    b = A @ np.where(np.arange(40) < 5, 1.0, 0.0) + 0.1 * rng.standard_normal(20)
    L = np.linalg.norm(A, 2) ** 2
    problem = infimum.Composite({"loss": LeastSquares(A, b, reduction="sum"), "penalty": L1()})
    solver = {"use": "splitting.proximal_gradient", "acceleration": True, "restart": True}
    best = infimum.solve(problem, solver=solver, stopping="grad_norm(1e-9) | max_iter(1e5)", seed=0).value

    def gap(schedule):
        x = np.zeros(40)
        for k in range(1500):
            x = l1_limit(x - A.T @ (A @ x - b) / L, 1 / L, schedule(k))
        return (0.5 * np.sum((A @ x - b) ** 2) + np.abs(x).sum()) / best - 1

    assert gap(PowerLaw(1.0, 2.00001)) < 3e-5
    assert gap(Geometric(1.0, 0.99)) < 1e-4
    assert gap(PowerLaw(1.0, 1.0)) > 5e-4
    fixed = [gap(lambda k, delta=delta: delta) for delta in (1.0, 0.1, 0.01, 1e-3)]
    assert fixed == sorted(fixed, reverse=True) and fixed[0] > 0.05 and fixed[-1] < 5e-3


GROUPS = ((0, 1, 2, 3), (2, 3, 4, 5), (4, 5, 6, 7), (6, 7, 8, 9))


def group_optimum(problem):
    cp = pytest.importorskip("cvxpy")
    loss = problem.terms[0].body
    x = cp.Variable(10)
    data = cp.sum_squares(loss.A @ x - loss.b) / (2 * len(loss.b))
    return cp.Problem(cp.Minimize(data + 0.15 * sum(cp.norm(x[list(g)]) for g in GROUPS))).solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", [41, 42, 43])
def test_overlapping_groups_on_diabetes(seed):
    problem = overlapping_group_lasso()
    best = group_optimum(problem)
    assert best == pytest.approx(0.384565, abs=1e-6)
    values = {}
    for name, oracle in (("recentered", HJProx(delta=1e-3)), ("plain", HJProx(delta=0.01, preset="paper"))):
        values[name] = infimum.solve(
            problem,
            solver="splitting.proximal_gradient",
            oracles={"penalty": oracle},
            stopping="max_iter(300)",
            seed=seed,
        )
    for got, bound in ((values["recentered"], 1e-3), (values["plain"], 1e-2)):
        assert got.value / best - 1 < bound and got.tail_value / best - 1 < bound, got
    assert values["recentered"].tail_value / best - 1 < 2e-4


def test_a_black_box_without_any_formula():
    """The mean waiting time of a queue under control, from a simulator with fixed random numbers."""
    rng = np.random.default_rng(3)
    gaps, work = rng.exponential(1.0, 300), rng.exponential(0.7, 300)

    def waiting(rates):
        waits, wait = [], 0.0
        for k in range(300):
            wait = max(0.0, wait + work[k] / (0.2 + abs(rates[k % 3])) - gaps[k])
            waits.append(wait)
        return float(np.mean(waits))

    target = np.array([0.9, 0.9, 0.9])
    problem = infimum.Composite({"cost": SquaredL2().translate(target), "wait": Function(waiting)})
    got = infimum.solve(
        problem,
        target,
        solver={"use": "splitting.proximal_gradient", "step": 0.3},
        oracles={"wait": HJProx(delta=0.05, n_samples=60)},
        stopping="max_iter(25)",
        seed=5,
    )
    scipy = pytest.importorskip("scipy.optimize")
    best = min(
        scipy.minimize(problem.value, start, method="Nelder-Mead", options={"maxfev": 400}).fun
        for start in (target, 2 * target)
    )
    assert got.tail_value < 1.01 * best < 0.8 * problem.value(target)


def test_a_loss_of_scikit_learn_is_a_black_box_too():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 3))
    y = X @ np.array([1.0, -1.0, 0.0]) + 0.1 * rng.standard_normal(80)
    problem = infimum.Composite(
        {"fit": Function(lambda w: float(metrics.mean_pinball_loss(y, X @ w, alpha=0.3))), "penalty": 0.01 * L1()},
        start=np.zeros(3),
    )
    got = infimum.solve(
        problem,
        solver={"use": "splitting.douglas_rachford", "step": 1.0},
        oracles={"fit": HJProx(delta=1e-3, n_samples=60)},
        stopping="max_iter(30)",
        seed=8,
    )
    assert got.value < 0.15 * problem.value(np.zeros(3))
    np.testing.assert_allclose(got.x, [1.0, -1.0, 0.0], atol=0.15)


def noisy_signal():
    rng = np.random.default_rng(9)
    return np.repeat([0.0, 1.0, 0.3, 0.8], 16) + 0.1 * rng.standard_normal(64)


def tv_gap(oracle, iterations, seed):
    """Relative gap of total variation denoising in 64 variables by PDHG, the l1 norm sampled."""
    b, D = noisy_signal(), np.diff(np.eye(64), axis=0)
    loss = SquaredL2().translate(b)
    solver = {"use": "splitting.pdhg", "ratio": 900}
    exact = infimum.Composite({"loss": loss, "tv": (0.3 * L1()) @ D}, start=b)
    best = infimum.solve(exact, solver={**solver, "ratio": 1}, stopping="residual(1e-9) | max_iter(1e5)", seed=0).value
    problem = infimum.Composite({"loss": loss, "tv": Separable(abs, weight=0.3, convex=True) @ D}, start=b)
    joint = infimum.Composite(
        {
            "loss": loss,
            "tv": Function(lambda y: 0.3 * float(abs(y).sum()), values=lambda Y: 0.3 * abs(Y).sum(1), convex=True) @ D,
        },
        start=b,
    )
    chosen = problem if oracle.separable else joint
    got = infimum.solve(
        chosen, solver=solver, oracles={"tv": oracle}, stopping=f"max_iter({iterations})", seed=seed, value_every=100
    )
    return exact.value(got.x) / best - 1, exact.value(got.tail_x) / best - 1, exact.value(b) / best - 1


def test_total_variation_denoising_by_pdhg():
    last, tail, start = tv_gap(HJProx(delta=1e-3, n_samples=200, separable=True), 400, 10)
    assert last < 0.03 and tail < 0.03 and start > 0.3


def benchmark():
    path = Path(__file__).parents[3] / "benchmarks" / "hjprox.py"
    spec = importlib.util.spec_from_file_location("benchmark_hjprox", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_prox_is_twenty_times_as_fast_as_a_loop_over_its_samples():
    """On the penalty that has no prox of its own; CPU time."""
    bench, penalty = benchmark(), overlapping_group_lasso().terms[1].body
    x = np.random.default_rng(0).standard_normal(10)
    ratios = []
    while len(ratios) < 4 and max(ratios, default=0.0) < 20:
        fast = min(bench._times(lambda: hj_prox(penalty.values, x, 0.01, n_samples=10_000, preset="paper", rng=1)))
        ratios.append(min(bench._times(lambda: bench._loop(penalty.value, x, 0.01, 0.1, 10_000, 1), 3)) / fast)
    assert max(ratios) >= 20, ratios


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "factor"), [(1.0, 10.0), (0.1, 10.0), (0.01, 2.0)])
def test_exact_projections_beat_sampled_ones_on_the_nonnegative_lasso(delta, factor):
    """Davis–Yin, 2000 iterations, l1 norm by HJ: the projection exact, or the limit operator of its HJ-Prox."""
    bench = benchmark()
    exact, both = (bench.nonnegative_gap(104, 104, delta, one) for one in (True, False))
    assert both >= factor * exact, (exact, both)


@pytest.mark.parametrize("path", sorted(RUNS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_run_files_are_explained_and_come_close(path):
    loaded = RunFile.load(path)
    assert "hjprox.prox" in str(loaded.explain())
    got = loaded.prepare().solve()
    exact = {"overlapping-group-lasso": (0.384565, 1e-3)}.get(path.stem)
    if exact is None:
        problem = loaded.prepare().plan.problem
        solver = "splitting.condat_vu" if path.stem == "tv-denoising" else "splitting.davis_yin"
        best = infimum.solve(problem, solver=solver, stopping="max_iter(5000)", seed=0).value
        exact = (best, 1e-2 if path.stem == "tv-denoising" else 5e-3)
    assert abs(got.tail_value / exact[0] - 1) < exact[1], (got.tail_value, exact)

"""Every solver of the plugin on small problems: optima of CVXPY, NumPy against torch, dtypes, resuming, honesty."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest

import infimum
from infimum.constraints import Affine, Nonnegative, Simplex
from infimum.functions import L1, L2, LeastSquares, NuclearNorm, SquaredL2
from infimum_splitting import (
    ADMM,
    PDHG,
    CondatVu,
    DavisYin,
    DouglasRachford,
    GradientDescent,
    ProximalGradient,
    ProximalPoint,
)

FISTA = ProximalGradient(acceleration=True, restart=True)
TRIED = ProximalGradient(acceleration=True, restart=True, backtracking=True)
FORWARD = [ProximalGradient(), FISTA, ProximalGradient(backtracking=True), TRIED]
TWO = [*FORWARD, DouglasRachford(relaxation=1.5), DavisYin(), PDHG(), CondatVu(), ADMM(), ADMM(balance=True)]
MAPPED = [PDHG(), CondatVu(), ADMM()]


@functools.cache
def data(n=30, d=12):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d))
    return A, A @ np.where(np.arange(d) < 3, 2.0, 0.0) + 0.1 * rng.standard_normal(n)


def difference(n):
    return np.diff(np.eye(n), axis=0)


def lasso():
    A, b = data()
    return infimum.Composite({"loss": LeastSquares(A, b, reduction="sum"), "penalty": 3.0 * L1()})


def fused_lasso():
    A, b = data()
    terms = {"loss": LeastSquares(A, b, reduction="sum"), "sparse": 1.0 * L1(), "flat": 2.0 * L1() @ difference(12)}
    return infimum.Composite(terms)


def signal():
    return np.repeat([0.0, 2.0, -1.0, 1.0], 8) + 0.3 * np.random.default_rng(1).standard_normal(32)


def denoising():
    return infimum.Composite({"fit": SquaredL2().translate(signal()), "tv": 1.0 * L1() @ difference(32)})


def nonnegative_least_squares():
    A, b = data()
    return infimum.Composite({"loss": LeastSquares(A, b - 2.0, reduction="sum")}, constraints=[Nonnegative()])


def nonnegative_lasso():
    A, b = data()
    terms = {"loss": LeastSquares(A, b - 2.0, reduction="sum"), "penalty": 2.0 * L1()}
    return infimum.Composite(terms, constraints=[Nonnegative()])


def basis_pursuit():
    A = data(8, 20)[0]
    x = np.where(np.arange(20) % 7 == 0, 1.5, 0.0)
    return infimum.Composite({"sparse": L1()}, constraints=[Affine(A, A @ x)], start=np.zeros(20))


def over_two_sets():
    A, b = data()
    terms = {"loss": LeastSquares(A, b, reduction="sum")}
    return infimum.Composite(terms, constraints={"sum": Simplex(), "flat": Affine(np.eye(12)[:1], np.array([0.2]))})


@functools.cache
def optimum(make):
    """The optimal value by CVXPY, written down anew."""
    cp = pytest.importorskip("cvxpy")
    A, b = data()
    x = cp.Variable({denoising: 32, basis_pursuit: 20}.get(make, 12))
    loss, D = 0.5 * cp.sum_squares(A @ x - b) if x.size == 12 else None, difference(x.size)
    low = 0.5 * cp.sum_squares(A @ x - b + 2.0) if x.size == 12 else None
    objective, sets = {
        lasso: lambda: (loss + 3.0 * cp.norm1(x), []),
        fused_lasso: lambda: (loss + cp.norm1(x) + 2.0 * cp.norm1(D @ x), []),
        denoising: lambda: (0.5 * cp.sum_squares(x - signal()) + cp.norm1(D @ x), []),
        nonnegative_least_squares: lambda: (low, [x >= 0]),
        nonnegative_lasso: lambda: (low + 2.0 * cp.norm1(x), [x >= 0]),
        basis_pursuit: lambda: (
            cp.norm1(x),
            [data(8, 20)[0] @ x == data(8, 20)[0] @ np.where(np.arange(20) % 7 == 0, 1.5, 0.0)],
        ),
        over_two_sets: lambda: (loss, [x >= 0, cp.sum(x) == 1, x[0] == 0.2]),
    }[make]()
    problem = cp.Problem(cp.Minimize(objective), sets)
    return problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


CASES = [
    *[(lasso, one) for one in TWO],
    *[(fused_lasso, one) for one in MAPPED],
    *[(denoising, one) for one in MAPPED],
    *[(nonnegative_least_squares, one) for one in TWO],
    *[(nonnegative_lasso, one) for one in (DavisYin(), DavisYin(relaxation=1.4), *MAPPED)],
    *[(basis_pursuit, one) for one in (DouglasRachford(), PDHG(), ADMM())],
    *[(over_two_sets, one) for one in (DavisYin(), *MAPPED)],
]


@pytest.mark.parametrize(("make", "solver"), CASES, ids=lambda one: getattr(one, "__name__", None) or repr(one))
def test_the_optimum_of_cvxpy_is_reached_and_certified(make, solver):
    metric = "residual" if "residual" in solver.metrics else "grad_norm"
    problem = make()
    result = infimum.solve(problem, solver=solver, stopping=f"max_iter(8000) | {metric}(1e-8)", max_rows=0)
    assert result.status == "converged", (result.iterations, result.message)
    assert result.value == pytest.approx(optimum(make), abs=2e-6)
    assert problem.violation(result.x) < 1e-7


def test_proximal_point_and_gradient_descent_solve_least_squares():
    A, b = data()
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    for solver in (ProximalPoint(), GradientDescent(), GradientDescent(backtracking=True)):
        result = infimum.solve(LeastSquares(A, b), solver=solver, stopping="max_iter(3000) | grad_norm(1e-10)")
        assert result.success
        np.testing.assert_allclose(result.x, expected, atol=1e-8)


def test_two_blocks_with_a_coupling_constraint():
    """min ||L||_* + 0.3 ||S||_1 with L + S = M: the coupling is a set under a map from both blocks."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(4)
    M = np.outer(rng.standard_normal(5), rng.standard_normal(4)) + np.where(rng.random((5, 4)) < 0.15, 3.0, 0.0)

    def point(v, t):
        return M.astype(v.dtype)

    exactly = infimum.Function(value=lambda x: 0.0, prox=point)
    problem = infimum.Composite(
        {"low": NuclearNorm(), "sparse": 0.3 * L1(), "sum": exactly @ {"L": 1.0, "S": 1.0}},
        blocks={"L": (5, 4), "S": (5, 4)},
        on={"low": "L", "sparse": "S"},
    )
    L, S = cp.Variable((5, 4)), cp.Variable((5, 4))
    reference = cp.Problem(cp.Minimize(cp.normNuc(L) + 0.3 * cp.sum(cp.abs(S))), [L + S == M]).solve(solver="CLARABEL")
    for solver in (ADMM(), PDHG()):
        result = infimum.solve(problem, solver=solver, stopping="max_iter(8000) | residual(1e-8)")
        assert result.success
        np.testing.assert_allclose(result.x["L"] + result.x["S"], M, atol=1e-7)
        assert result.value == pytest.approx(reference, abs=1e-5)


def test_an_optimum_that_does_not_exist_is_never_claimed():
    """-<1, x> has no lower bound on x >= 0."""
    line = infimum.Function(
        value=lambda x: -float(x.sum()), gradient=lambda x: -np.ones_like(x), prox=lambda v, t: v + t, lipschitz=0.0
    )
    problem = infimum.Composite({"down": line}, constraints=[Nonnegative()], start=np.ones(3))
    for solver in (ProximalGradient(), DavisYin(), CondatVu(), DouglasRachford(), PDHG(), ADMM()):
        metric = "residual" if "residual" in solver.metrics else "grad_norm"
        result = infimum.solve(problem, solver=solver, stopping=f"max_iter(2000) | {metric}(1e-3)")
        assert not result.success, solver


# All of them, through the host.

EVERY = [
    (GradientDescent(), "smooth"),
    (GradientDescent(backtracking=True), "smooth"),
    (ProximalPoint(), "smooth"),
    *[(one, "two") for one in (*FORWARD, DouglasRachford(), DavisYin())],
    *[(one, "mapped") for one in (*MAPPED, ADMM(balance=True), PDHG(ratio=2.0))],
]
IDS = [repr(solver) for solver, _ in EVERY]


def small(kind, dtype="float64", array=np.asarray):
    rng = np.random.default_rng(2)
    A, b = rng.standard_normal((9, 6)).astype(dtype), rng.standard_normal(9).astype(dtype)
    terms = {"loss": LeastSquares(array(A), array(b))}
    if kind != "smooth":
        terms["penalty"] = 0.1 * L1()
    if kind == "mapped":
        terms["flat"] = 0.2 * L2() @ array(difference(6).astype(dtype))
    return infimum.Composite(terms, start=array(np.full(6, 0.5, dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("solver", "kind"), EVERY, ids=IDS)
def test_torch_takes_the_steps_of_numpy_and_the_dtype_stays(solver, kind, dtype):
    torch = pytest.importorskip("torch")
    ours = infimum.solve(small(kind, dtype), solver=solver, stopping="max_iter(12)").x
    theirs = infimum.solve(small(kind, dtype, torch.as_tensor), solver=solver, stopping="max_iter(12)").x
    assert ours.dtype == dtype
    assert str(theirs.dtype) == f"torch.{dtype}"
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-6)


@pytest.mark.parametrize(("solver", "kind"), EVERY, ids=IDS)
def test_a_run_taken_up_again_goes_on_bit_for_bit(solver, kind):
    def run():
        return infimum.prepare(small(kind), solver=solver, stopping="max_iter(50)", seed=1)

    whole, first, second = run().solve(), run(), run()
    first.advance(23)
    second.load_state_dict(first.state_dict())
    again = second.solve()
    np.testing.assert_array_equal(again.x, whole.x)
    assert again.value == whole.value
    assert again.evaluations == whole.evaluations


@pytest.mark.parametrize(("solver", "kind"), EVERY, ids=IDS)
def test_steps_change_no_array_of_the_state_before(solver, kind):
    run = infimum.prepare(small(kind), solver=solver, stopping="max_iter(6)")
    parts, start = run.bound.parts, np.full(6, 0.5)
    state = solver.init(parts, start, np.random.default_rng(0))
    for _ in range(6):
        before = copy.deepcopy(solver.dump(state))
        new = solver.step(parts, state)
        for key, value in solver.dump(state).items():
            np.testing.assert_equal(value, before[key])
        state = new
    np.testing.assert_array_equal(start, 0.5)
    assert solver.solution(state).dtype == np.float64


@pytest.mark.parametrize(("solver", "kind"), EVERY, ids=IDS)
def test_metrics_do_not_change_the_run(solver, kind):
    names = [name for name in solver.metrics if name != "value"]
    plain = infimum.solve(small(kind), solver=solver, stopping="max_iter(30)", max_rows=0)
    watched = infimum.solve(small(kind), solver=solver, stopping="max_iter(30)", record=names)
    np.testing.assert_array_equal(plain.x, watched.x)
    assert plain.evaluations == watched.evaluations

"""What the iterates are, where they go and how fast, under the host."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import infimum
from infimum import Result, Run, Status
from infimum.api import plan_for
from infimum.errors import InputError, PlanError
from infimum.functions import L1, Function, LeastSquares, Linear, NuclearNorm, Quadratic, SquaredL2
from infimum.stopping.grammar import parse
from infimum_padmm import (
    PADMM,
    BlockProblem,
    Cauchy,
    ScoreLogistic,
    certificate,
    estimate_rate,
    lagrangian,
    problems,
    split,
)
from infimum_padmm.newton import elementwise
from infimum_padmm.solver import PADMMState


def solved(problem: BlockProblem, stop: str = "residual(1e-8) | max_iter(3000)", **options: Any) -> Result:
    return infimum.solve(problem, solver=PADMM(**options), stopping=stop, seed=0)


def told(result: Result) -> dict[str, Any]:
    return result.extras["PADMM"] if "PADMM" in result.extras else result.extras["padmm.padmm"]


def test_two_blocks_are_the_textbook_method_iterate_by_iterate() -> None:
    rng = np.random.default_rng(0)
    M, A, b, rho = rng.standard_normal((12, 8)), rng.standard_normal((6, 8)), rng.standard_normal(12), 1.7
    problem = BlockProblem({"x": LeastSquares(M, b, "sum"), "z": 0.4 * L1()}, [{"x": A, "z": -1.0}])
    x, z, y = np.zeros(8), np.zeros(6), np.zeros(6)
    for k in range(1, 41):
        x = np.linalg.solve(M.T @ M + rho * A.T @ A, M.T @ b + A.T @ (rho * z - y))
        v = A @ x + y / rho
        z = np.sign(v) * np.maximum(np.abs(v) - 0.4 / rho, 0.0)
        y = y + rho * (A @ x - z)
        if k in (1, 2, 10, 40):
            result = solved(problem, f"max_iter({k})", beta=rho)
            for mine, theirs in ((result.x["x"], x), (result.x["z"], z), (told(result)["multipliers"]["row1"], y)):
                np.testing.assert_allclose(mine, theirs, atol=1e-14 * max(1.0, np.abs(theirs).max()))


def started(problem: BlockProblem, stop: str, **options: Any) -> Any:
    return Run(plan_for(problem, PADMM(**options))[0], parse(stop), seed=0)


def states(problem: BlockProblem, count: int, **options: Any) -> list[PADMMState]:
    run = started(problem, f"max_iter({count})", **options)
    solver, parts = run.solver, run.bound.parts
    out = [solver.init(parts, problem.prepare(problem.start(np.random.default_rng(0))), np.random.default_rng(0))]
    for _ in range(count):
        out.append(solver.step(parts, out[-1]))
    return out


@pytest.mark.parametrize("tau", [1.0, 1.4])
def test_the_kkt_defect_is_the_one_that_the_changes_of_the_blocks_tell(tau: float) -> None:
    rng = np.random.default_rng(1)
    maps = [rng.standard_normal((5, 5)) for _ in range(2)]
    problem = BlockProblem(
        {"a": SquaredL2(), "b": 0.5 * SquaredL2(), "c": SquaredL2().translate(np.ones(5))},
        {"one": {"a": maps[0], "b": -1.0}, "two": {"a": maps[1], "b": maps[0], "c": 2.0}},
    )
    beta, P = np.array([1.5, 0.7]), 0.3
    entries = {(0, "a"): maps[0], (0, "b"): -np.eye(5), (1, "a"): maps[1], (1, "b"): maps[0], (1, "c"): 2 * np.eye(5)}
    made = states(problem, 12, beta={"one": 1.5, "two": 0.7}, prox_weight=P, tau=tau)
    for old, new in itertools.pairwise(made[1:]):
        d = problem.unpack(new.x - old.x)
        for j, name in enumerate("abc"):
            s = -P * d[name]
            for i in range(2):
                if (i, name) in entries:
                    later = sum(entries[i, other] @ d[other] for other in "abc"[j + 1 :] if (i, other) in entries)
                    rest = (tau - 1.0) * new.r[5 * i : 5 * i + 5]
                    s = s + beta[i] * entries[i, name].T @ (later + rest)
            np.testing.assert_allclose(new.s[5 * j : 5 * j + 5], s, atol=1e-10)


def test_the_row_residual_and_the_certificate_hold_at_every_iteration() -> None:
    problem = problems.control(5)
    for state in states(problem, 20)[1:]:
        rows = np.concatenate(list(problem.residuals(state.x).values()))
        np.testing.assert_allclose(rows, state.r, atol=1e-12)
        u = state.x[:2]
        inside = np.abs(u) < 0.3
        assert (np.abs(u) <= 0.3).all()
        # Where the box does not bind, the subgradient is the gradient of the cost.
        np.testing.assert_allclose(state.xi[:2][inside], 0.1 * u[inside], atol=1e-12)


def chain_optimum(problem: BlockProblem) -> np.ndarray:
    """x1 of a chain of quadratics, by elimination."""
    H, g, K = np.zeros((15, 15)), np.zeros(15), np.eye(15)
    for j, name in enumerate(problem.structure.blocks):
        form = problem.form(name)
        H += form.H * K.T @ K
        g += K.T @ form.c
        if j < 3:
            K = problem.structure.entries[j][j].forward(K)
    return np.linalg.solve(H, -g)


def test_a_chain_converges_linearly_where_strongly_convex_and_sublinearly_where_not() -> None:
    for moduli, bound in (((1.0, 1.0, 1.0), 0.85), ((0.1, 0.0, 1.0), 0.95)):
        problem = problems.chain(*moduli)
        result = solved(problem)
        assert result.status is Status.converged and told(result)["rate"] < bound
        np.testing.assert_allclose(result.x["x1"], chain_optimum(problem), atol=1e-6)
    weak = solved(problems.chain(0.0, 0.0, 1.0))
    assert weak.status is Status.limit and weak.metrics["residual"] > 1e-4 and told(weak)["rate"] > 0.998


def test_four_scenarios_of_linear_rates() -> None:
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((10, 8)) / 3, rng.standard_normal((10, 10)) / 3
    y = rng.standard_normal(10)
    sparse_ = 0.1 * L1() + SquaredL2()
    cases = {
        "first plain, others strongly convex": (0.1 * L1(), SquaredL2(), SquaredL2().translate(y)),
        "all strongly convex": (sparse_, SquaredL2(), SquaredL2().translate(y)),
        "all smooth": (None, SquaredL2(), SquaredL2().translate(y)),
        "all smooth and strongly convex": (SquaredL2(), SquaredL2(), SquaredL2().translate(y)),
    }
    for name, (f, g, h) in cases.items():
        problem = BlockProblem(
            {"x": f, "y": g, "z": h}, [{"x": A, "y": B, "z": -1.0}, {"x": A, "y": 1.0}], shapes={"x": 8}
        )
        result = solved(problem, prox_weight=0.05)
        assert result.status is Status.converged and told(result)["rate"] < 0.99, name


def test_the_nonconvex_chain_ends_where_proximal_gradient_does() -> None:
    problem = problems.robust_chain()
    K = np.eye(15)
    for j in range(3):
        K = problem.structure.entries[j][j].forward(K)
    fit, x = problem.functions["x4"], np.zeros(15)
    for _ in range(4000):
        v = x - K.T @ fit.gradient(K @ x)
        x = np.sign(v) * np.maximum(np.abs(v) - 0.3, 0.0)
    best = fit.value(K @ x) + 0.3 * np.abs(x).sum()
    result = solved(problem, beta=1.0)
    assert result.status is Status.converged and 80 < result.iterations < 130
    assert result.value == pytest.approx(best, abs=1e-6)
    assert told(result)["certificate"] == {"margins": certificate(problem, 1.0).margins, "holds": False}
    certified = {"row1": 3456.0, "row2": 144.0, "row3": 6.0}
    assert told(solved(problem, "max_iter(2)", beta=certified))["certificate"]["holds"] is True
    made = states(problem, 40, beta=certified)[2:]
    names = problem.structure.rows
    levels = [lagrangian(problem, s.x, dict(zip(names, s.lam.reshape(3, 15), strict=True)), certified) for s in made]
    assert max(np.diff(levels)) <= 1e-9


def test_chens_example_diverges_by_name_and_a_proximal_term_cures_it() -> None:
    lost = solved(problems.chen())
    assert lost.status is Status.diverged and told(lost)["rate"] == pytest.approx(1.028, abs=1e-3)
    assert "prox_weight" in lost.message and "row 'equations'" in lost.message
    assert "Chen, He, Ye and Yuan" in lost.message
    assert told(solved(problems.chen(), prox_weight=1.0))["rate"] > 1.0
    cured = solved(problems.chen(), prox_weight=5.0)
    assert cured.status is Status.converged and cured.success and abs(cured.x["x1"][0]) < 1e-6
    assert solved(problems.chen(1.0)).status is Status.converged


@pytest.mark.parametrize("grouping", ["stages", "inputs", "joint"])
def test_control_reaches_the_optimum_of_an_interior_point_method(grouping: Any) -> None:
    cp = pytest.importorskip("cvxpy")
    A, B, state = problems.system(4, 2, 0.9, 0)
    s, u = cp.Variable((21, 4)), cp.Variable((20, 2))
    rows = [s[0] == state, cp.abs(u) <= 0.3, *(s[k + 1] == A @ s[k] + B @ u[k] for k in range(20))]
    whole = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(s[1:]) + 0.05 * cp.sum_squares(u)), rows)
    whole.solve(solver="CLARABEL")
    result = solved(problems.control(grouping=grouping), beta=3.0)
    assert result.status is Status.converged and result.iterations < {"stages": 140}.get(grouping, 180)
    assert result.value == pytest.approx(whole.value, abs=1e-6) == 6.2453546
    assert result.violation < 1e-7


def test_fused_logistic_regression_reaches_its_optimum() -> None:
    pytest.importorskip("sklearn")
    result = solved(problems.fused_logistic(), "residual(1e-6) | max_iter(4000)", beta={"steps": 3.0, "scores": 0.05})
    assert result.status is Status.converged and result.iterations < 700
    assert result.value == pytest.approx(52.17623445, abs=1e-6)


@pytest.mark.parametrize("problem", [problems.control(4), problems.robust_chain(n=5)], ids=repr)
def test_a_run_goes_on_bit_for_bit(problem: BlockProblem) -> None:
    options = {"adapt": True, "prox_weight": 0.1, "tau": 1.2}
    whole = started(problem, "max_iter(40)", **options).solve()
    first = started(problem, "max_iter(40)", **options)
    first.advance(17)
    second = started(problem, "max_iter(40)", **options)
    second.load_state_dict(first.state_dict())
    again = second.solve()
    for name in problem.functions:
        np.testing.assert_array_equal(whole.x[name], again.x[name])
    assert told(whole)["rate"] == told(again)["rate"]


def test_balancing_changes_penalties_and_stops() -> None:
    made = states(problems.control(6), 260, beta=1e-3, adapt=True)
    penalties = np.array([state.beta[0] for state in made])
    assert penalties[200] > 1e-2 and (penalties[201:] == penalties[201]).all()
    # The margins that are told are those at the penalties that were reached.
    chain = problems.robust_chain(n=5)
    result = solved(chain, "max_iter(60)", beta=0.01, adapt=True)
    assert told(result)["beta"]["row1"] > 0.02
    assert told(result)["certificate"]["margins"] == certificate(chain, told(result)["beta"]).margins
    assert (
        solved(problems.control(6), beta=1e-3, adapt=True).iterations
        < solved(problems.control(6), beta=1e-3).iterations
    )


def test_penalties_by_row_and_automatic_ones() -> None:
    problem = problems.control(4)
    assert told(solved(problem, "max_iter(1)", beta={"dynamics1": 7.0}))["beta"] == {
        "dynamics0": 1.0, "dynamics1": 7.0, "dynamics2": 1.0, "dynamics3": 1.0
    }  # fmt: skip
    twice = BlockProblem({"x": None, "y": 8.0 * SquaredL2()}, [{"x": 1.0, "y": 2.0}], shapes={"x": 3})
    assert told(solved(twice, "max_iter(1)", beta="auto"))["beta"] == {"row1": 2.0}


def test_multipliers_of_one_run_start_the_next() -> None:
    problem = problems.control(6)
    first = solved(problem)
    again = infimum.solve(
        problem, solver=PADMM(multipliers=told(first)["multipliers"]), x0=first, stopping="residual(1e-7)", seed=0
    )
    assert again.iterations <= 2 < first.iterations
    assert max(told(first)["dual_residuals"].values()) <= 1e-8
    assert max(told(first)["primal_residuals"].values()) <= 1e-7


def test_blocks_that_only_oracles_solve() -> None:
    pytest.importorskip("infimum_cvxpy")
    cp = pytest.importorskip("cvxpy")
    target = np.array([2.0, -1.0, 0.3])
    norm = Function(lambda x: float(np.abs(x).max()), expression=lambda x: cp.norm_inf(x), convex=True, shape=(3,))
    problem = BlockProblem({"x": SquaredL2().translate(target), "z": norm}, [{"x": 1.0, "z": -1.0}])
    result = infimum.solve(
        problem, solver=PADMM(), oracles={"z": {"use": "cvxpy.prox"}}, stopping="residual(1e-5) | max_iter(200)", seed=0
    )
    # The prox of the largest |x_i| takes 1 off the largest entry, until it meets the next.
    assert result.status is Status.converged and result.exactness != "exact"
    np.testing.assert_allclose(result.x["x"], [1.0, -1.0, 0.3], atol=1e-3)


def values_only(**offers: Any) -> Function:
    return Function(value=lambda x: float(np.abs(x).sum()), convex=True, shape=(5,), **offers)


def shares(calls: list[int]) -> dict[str, Any]:
    """What `hjprox.prox` with separable=True asks for, counted."""

    def entries(X: np.ndarray) -> np.ndarray:
        calls.append(len(X))
        return np.abs(X)

    return {"extra": {"separable_values": entries}}


def test_a_sampled_prox_at_a_block() -> None:
    pytest.importorskip("infimum_hjprox")
    target = np.array([2.0, -1.5, 0.3, 0.05, -0.6])
    calls: list[int] = []
    problem = BlockProblem(
        {"x": SquaredL2().translate(target), "z": values_only(**shares(calls))}, [{"x": 1.0, "z": -1.0}]
    )
    sampled = {"use": "hjprox.prox", "delta": 0.01, "n_samples": 500, "separable": True}
    result = infimum.solve(problem, solver=PADMM(), oracles={"z": sampled}, stopping="max_iter(25)", seed=0)
    assert calls and str(result.exactness) == "stochastic"
    np.testing.assert_allclose(result.x["x"], np.sign(target) * np.maximum(np.abs(target) - 1.0, 0.0), atol=0.2)
    with pytest.raises(PlanError, match=r"oracles: \{z: hjprox.prox\}"):
        infimum.solve(problem, solver=PADMM(), stopping="max_iter(5)", seed=0)


def test_an_oracle_at_a_block_sees_all_that_the_function_offers() -> None:
    together: list[int] = []

    def values(X: np.ndarray) -> np.ndarray:
        together.append(len(X))
        return np.abs(X).sum(axis=1)

    problem = BlockProblem(
        {"x": SquaredL2(), "z": values_only(values=values)}, [{"x": np.eye(5), "z": np.diag(np.arange(1.0, 6.0))}]
    )
    pytest.importorskip("infimum_hjprox")
    infimum.solve(problem, solver=PADMM(), oracles={"z": "hjprox.prox"}, stopping="max_iter(2)", seed=0)
    assert together and min(together) > 100


def test_smooth_blocks_by_newton_and_by_lbfgs_agree() -> None:
    rng = np.random.default_rng(0)
    y, X = np.sign(rng.standard_normal(30)), rng.standard_normal((30, 4))
    loss = ScoreLogistic(y)
    plain = Function(loss.value, value_and_gradient=loss.value_and_gradient, convex=True, shape=(30,))
    ends = [
        solved(split({"w": SquaredL2()}, {"z": (f, {"w": X})}), "residual(1e-7) | max_iter(2000)")
        for f in (loss, plain)
    ]
    assert [one.status for one in ends] == [Status.converged] * 2
    np.testing.assert_allclose(ends[0].x["w"], ends[1].x["w"], atol=1e-6)
    assert "curvatures" in ends[0].evaluations["z"] and "curvatures" not in ends[1].evaluations["z"]
    # In front of a matrix that is not diagonal the smooth block is linearized.
    tied = BlockProblem({"s": Cauchy(y), "t": SquaredL2()}, [{"s": X.T / 5.0, "t": -1.0}])
    assert solved(tied, "residual(1e-6) | max_iter(5000)").status is Status.converged


def test_blocks_that_are_matrices() -> None:
    rng = np.random.default_rng(0)
    M = np.outer(rng.standard_normal(6), rng.standard_normal(5))
    M[0, 0] += 5.0
    problem = BlockProblem(
        {"low": NuclearNorm(), "sparse": 0.4 * L1()}, {"sum": {"low": 1.0, "sparse": 1.0}}, {"sum": M},
        shapes={"low": (6, 5)},
    )  # fmt: skip
    result = solved(problem)
    assert result.status is Status.converged and result.x["low"].shape == result.x["sparse"].shape == (6, 5)
    assert np.linalg.matrix_rank(result.x["low"], tol=1e-5) < 5
    np.testing.assert_allclose(result.x["low"] + result.x["sparse"], M, atol=1e-6)


def test_blocks_that_no_row_holds_are_minimized_at_once() -> None:
    free = BlockProblem(
        {"x": Quadratic(np.diag([1e-3, 4.0]), np.array([1.0, -4.0])), "y": L1(), "z": Cauchy(np.array([3.0]))},
        shapes={"y": 3},
    )
    start = {"x": np.zeros(2), "y": np.full(3, 1000.0), "z": np.zeros(1)}
    result = infimum.solve(free, start, solver=PADMM(), stopping="residual(1e-9) | max_iter(6)", seed=0)
    assert result.status is Status.converged
    np.testing.assert_allclose(result.x["x"], [-1000.0, 1.0], rtol=1e-9)
    np.testing.assert_allclose(result.x["y"], 0.0, atol=1e-12)
    np.testing.assert_allclose(result.x["z"], 3.0, atol=1e-6)


def test_no_rows_one_block_and_blocks_without_rows() -> None:
    alone = BlockProblem({"x": Quadratic(np.diag([1.0, 4.0]), np.array([1.0, -4.0])), "y": L1()}, shapes={"y": 3})
    result = infimum.solve(
        alone, {"x": np.zeros(2), "y": np.ones(3)}, solver=PADMM(), stopping="residual(1e-9)", seed=0
    )
    np.testing.assert_allclose(result.x["x"], [-1.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(result.x["y"], 0.0, atol=1e-9)
    single = BlockProblem({"x": SquaredL2()}, [{"x": [[1.0, 1.0]]}], [[2.0]])
    np.testing.assert_allclose(solved(single).x["x"], [1.0, 1.0], atol=1e-7)


def test_equality_constrained_linear_parts_against_the_kkt_system() -> None:
    rng = np.random.default_rng(5)
    A, c = rng.standard_normal((2, 4)), rng.standard_normal(4)
    problem = BlockProblem({"x": SquaredL2() + Linear(c)}, {"tie": {"x": A}}, {"tie": np.ones(2)})
    kkt = np.block([[np.eye(4), A.T], [A, np.zeros((2, 2))]])
    exact = np.linalg.solve(kkt, np.concatenate([-c, np.ones(2)]))
    result = solved(problem, "residual(1e-11) | max_iter(3000)")
    np.testing.assert_allclose(result.x["x"], exact[:4], atol=1e-9)
    np.testing.assert_allclose(told(result)["multipliers"]["tie"], exact[4:], atol=1e-9)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(*(st.floats(-50, 50) for _ in range(3)), st.floats(0.15, 20.0)), min_size=1, max_size=6),
    st.booleans(),
)
def test_newton_solves_every_entry(entries: list[tuple[float, float, float, float]], convex: bool) -> None:
    x, y, pull, metric = (np.array(one) for one in zip(*entries, strict=True))
    loss: Any = ScoreLogistic(np.where(y < 0, -1.0, 1.0)) if convex else Cauchy(y)
    z = elementwise(loss.gradient, loss.curvatures, x, pull, metric)
    defect = loss.gradient(z) + pull + metric * (z - x)
    assert np.abs(defect).max() <= 1e-11 * (1.0 + np.abs(pull).max() + (metric * (np.abs(x) + np.abs(z))).max())


def test_rates() -> None:
    assert estimate_rate(0.9 ** np.arange(50.0)) == pytest.approx(0.9)
    assert estimate_rate(np.ones(5)) is None and estimate_rate(np.full(12, np.nan)) is None
    for wrong in (["a"] * 12, np.ones((12, 2)), None):
        with pytest.raises(InputError, match="values"):
            estimate_rate(wrong)  # type: ignore[arg-type]
    long = solved(problems.chain(0.1, 0.0, 1.0), "max_iter(600)", beta=10.0)
    assert 0.98 < told(long)["rate"] < 1.0

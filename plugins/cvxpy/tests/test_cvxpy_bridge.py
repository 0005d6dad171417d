"""Problems from CVXPY, the proximal oracle and the solver."""

from __future__ import annotations

import pickle

import cvxpy as cp
import numpy as np
import pytest

import infimum
from infimum import functions as fn
from infimum.errors import InputError, PlanError
from infimum_cvxpy import CvxFunction, CvxSet, Prox, from_cvxpy, reference
from infimum_cvxpy.proximal import ProximalProblem
from infimum_cvxpy.variables import Pieces

RNG = np.random.default_rng(3)
A, b = RNG.standard_normal((12, 8)), RNG.standard_normal(12)


def lasso(**attributes: object) -> tuple[cp.Problem, cp.Variable]:
    x = cp.Variable(8, name="x", **attributes)
    return cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b) / 24 + 0.05 * cp.norm1(x) + 3.0)), x


def test_a_lasso_gets_closed_forms_and_the_same_optimum() -> None:
    stated, x = lasso(nonneg=True)
    problem = infimum.from_cvxpy(stated)
    assert [term.name for term in problem.terms] == ["quad_over_lin", "norm1", "nonneg"]
    assert {"gradient", "prox"} <= problem.terms[0].body.capabilities
    stated.solve(solver="CLARABEL")
    assert problem.value(x.value) == pytest.approx(stated.value, abs=1e-9)
    result = infimum.solve(problem, solver="splitting.condat_vu", seed=0)
    assert result.value == pytest.approx(stated.value, abs=1e-6)


def test_without_closed_forms_everything_goes_through_cvxpy() -> None:
    stated, _ = lasso()
    problem = from_cvxpy(stated, closed_forms=False, names=["fit", "penalty"])
    assert [term.name for term in problem.terms] == ["fit", "penalty"]
    result = infimum.solve(problem, solver="splitting.douglas_rachford", seed=0)
    assert result.value == pytest.approx(stated.solve(solver="CLARABEL"), abs=1e-6)
    assert result.exactness == "tolerance"


def test_several_variables_are_blocks_and_maximization_stays() -> None:
    L, S = cp.Variable((3, 2), name="L"), cp.Variable((3, 2), name="S")
    M = RNG.standard_normal((3, 2))
    stated = cp.Problem(cp.Maximize(-cp.normNuc(L) - 0.3 * cp.sum(cp.abs(S))), [L + S == M])
    problem = from_cvxpy(stated)
    assert problem.sense == "max"
    assert {term.name: term.on for term in problem.terms} == {"normnuc": "L", "sum": "S", "equality": None}
    result = infimum.solve(problem, solver="splitting.douglas_rachford", seed=0)
    assert set(result.x) == {"L", "S"}
    assert result.value == pytest.approx(stated.solve(solver="CLARABEL"), abs=1e-5)


@pytest.mark.parametrize("together", ["each", "together"])
def test_constraints_are_sets_with_projections(together: str) -> None:
    x, v = cp.Variable(5, name="x"), RNG.standard_normal(5)
    stated = cp.Problem(cp.Minimize(cp.sum_squares(x - v)), [cp.sum(x) == 1, cp.norm(x) <= 0.6])
    problem = from_cvxpy(stated, constraints=together)  # type: ignore[arg-type]
    solver = "splitting.admm" if together == "each" else "splitting.douglas_rachford"
    result = infimum.solve(problem, solver=solver, seed=0)
    stated.solve(solver="CLARABEL")
    np.testing.assert_allclose(result.x, x.value, atol=1e-5)


def test_parameters_count_with_their_present_values() -> None:
    x, weight = cp.Variable(3, name="x"), cp.Parameter(nonneg=True)
    stated = cp.Problem(cp.Minimize(cp.sum_squares(x) + weight * cp.max(x)))
    with pytest.raises(InputError, match="has no value"):
        from_cvxpy(stated)
    weight.value = 2.0
    problem = from_cvxpy(stated)
    weight.value = 100.0
    assert problem.value(np.array([1.0, 2.0, 3.0])) == pytest.approx(14.0 + 6.0)


@pytest.mark.parametrize(
    ("objective", "constraints", "message"),
    [
        (lambda: cp.Minimize(cp.sum(cp.Variable(2, integer=True))), [], "is integer"),
        (lambda: cp.Minimize(cp.sum(cp.Variable(2, boolean=True))), [], "is boolean"),
        (lambda: cp.Minimize(-cp.sum_squares(cp.Variable(2))), [], "not convex"),
        (lambda: cp.Minimize(0), [], "no variables"),
    ],
)
def test_bad_problems_are_refused(objective: object, constraints: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_cvxpy(cp.Problem(objective(), constraints))  # type: ignore[operator]


def test_wrong_arguments() -> None:
    stated, _ = lasso()
    with pytest.raises(InputError, match=r"takes a cvxpy\.Problem"):
        from_cvxpy(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="2 addends, got 1"):
        from_cvxpy(stated, names=["one"])
    with pytest.raises(InputError, match="'NOPE' is not among"):
        from_cvxpy(stated, solver="NOPE")
    with pytest.raises(InputError, match=r"variable of shape \(8,\), x0 is \(3,\)"):
        infimum.solve(from_cvxpy(stated, closed_forms=False), np.zeros(3), solver="splitting.douglas_rachford")


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_a_prox_for_many_steps_and_points(solver: str) -> None:
    """Against closed forms, with one problem: only the linear part may depend on the point and the step."""
    u = cp.Variable(6)
    f, exact = CvxFunction(cp.norm1(u), Pieces([u]), solver=solver), fn.L1()
    for t in (0.1, 1.0, 5.0, 0.1):
        v = RNG.standard_normal(6)
        np.testing.assert_allclose(f.prox(v, t), exact.prox(v, t), atol=1e-7 if solver == "CLARABEL" else 1e-3)


EXACT = {
    "l1": (cp.norm1, fn.L1()),
    "largest": (cp.norm_inf, fn.Linf()),
    "total variation": (lambda u: cp.sum(cp.abs(cp.diff(u))), fn.TV1D()),
    "with a quadratic part": (lambda u: 0.3 * cp.norm1(u) + 0.35 * cp.sum_squares(u), fn.ElasticNet(0.3, 0.7)),
    "huber": (lambda u: 0.5 * cp.sum(cp.huber(u, 0.6)), fn.Huber(0.6)),
    "simplex": (lambda u: [u >= 0, cp.sum(u) == 1], infimum.constraints.Simplex(1.0)),
    "l1 ball": (lambda u: [cp.norm1(u) <= 1], infimum.constraints.L1Ball(1.0)),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_quadratic_program_is_exact_and_forgets_what_was_solved_before(name: str) -> None:
    """Also where a bound and its multiplier are both zero; a fresh object gives the same bits as a much used one."""
    make, closed = EXACT[name]
    u = cp.Variable(12)
    stated = make(u)

    def fresh() -> CvxFunction | CvxSet:
        return CvxSet(stated, Pieces([u])) if isinstance(stated, list) else CvxFunction(stated, Pieces([u]))

    def nearest(body: object, v: np.ndarray, t: float) -> np.ndarray:
        return body.project(v) if isinstance(stated, list) else body.prox(v, t)  # type: ignore[attr-defined]

    rng, used = np.random.default_rng(8), fresh()
    v = rng.standard_normal(12)
    for k in range(24):
        t = (0.5, 1.0, 0.25)[k % 3 if k % 2 else 0]
        far = rng.integers(-2, 3, 12) / 2.0 if k % 4 < 2 else 2.0 * rng.standard_normal(12)
        v = far if k % 2 else v + 1e-6 * rng.standard_normal(12)
        found = nearest(used, v, t)
        np.testing.assert_allclose(found, nearest(closed, v, t), atol=1e-13)
        if k % 3 == 0:
            np.testing.assert_array_equal(found, nearest(fresh(), v, t))
    assert used._proximal._repeated._faces._last is not None


def test_a_quadratic_program_that_leaves_something_open_goes_to_the_solver() -> None:
    """The bounds of small entries in `sum_largest(|u|)` may be anything: no face has one solution."""
    u, v = cp.Variable(6), np.array([3.0, -1.0, 0.2, 2.5, 0.1, -0.3])
    f = CvxFunction(cp.sum_largest(cp.abs(u), 2), Pieces([u]))
    np.testing.assert_allclose(f.prox(v, 0.5), [2.5, -1.0, 0.2, 2.0, 0.1, -0.3], atol=1e-6)
    assert f._proximal._repeated._faces is None


@pytest.mark.parametrize("t", [-1.0, np.nan, np.inf])
def test_a_wrong_step_is_refused(t: float) -> None:
    u = cp.Variable(2)
    with pytest.raises(InputError, match="expected a finite number, not negative"):
        CvxFunction(cp.norm1(u), Pieces([u])).prox(np.ones(2), t)


@pytest.mark.parametrize(
    ("solver", "options"),
    [("CLARABEL", {"nosuch": 1}), ("CLARABEL", {"max_iter": -1}), ("SCS", {"nosuch": 1}), ("OSQP", {"nosuch": 1})],
)
def test_wrong_options_of_a_prox_are_named(solver: str, options: dict) -> None:
    u = cp.Variable(2)
    with pytest.raises(InputError, match=r"nosuch|max_iter"):
        CvxFunction(cp.norm1(u), Pieces([u]), solver=solver, solver_options=options).prox(np.ones(2), 1.0)


def test_a_point_beyond_the_solver_is_no_empty_set() -> None:
    u = cp.Variable(3)
    with pytest.raises(InputError, match="too large for its arithmetic"):
        CvxFunction(cp.norm_inf(u), Pieces([u])).prox(np.full(3, 1e12), 1.0)


def test_a_prox_of_a_matrix_function_and_of_two_blocks() -> None:
    X = cp.Variable((3, 4))
    f, v = CvxFunction(cp.normNuc(X), Pieces([X])), RNG.standard_normal((3, 4))
    np.testing.assert_allclose(f.prox(v, 0.5), fn.NuclearNorm().prox(v, 0.5), atol=1e-7)
    Y, Z = cp.Variable((2, 2)), cp.Variable(2)
    g = CvxFunction(0.5 * cp.sum_squares(Y @ np.ones(2) - Z), Pieces([Y, Z], [1, 5], 8))
    w = RNG.standard_normal(8)
    found = g.prox(w, 0.7)
    J = np.hstack([np.kron(np.eye(2), np.ones((1, 2))), -np.eye(2)])
    inner = np.linalg.solve(np.eye(6) + 0.7 * J.T @ J, w[1:7])
    np.testing.assert_allclose(found[1:7], inner, atol=1e-7)
    assert found[0] == w[0] and found[7] == w[7]


def test_an_extended_function_is_inf_outside_of_its_domain() -> None:
    u = cp.Variable(3)
    f = CvxFunction(-cp.sum(cp.log(u)), Pieces([u]))
    assert f.extended and f.value(np.array([1.0, -1.0, 1.0])) == np.inf
    v = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(f.prox(v, 2.0), (v + np.sqrt(v**2 + 8.0)) / 2, atol=1e-6)


def test_copies_work_on_their_own() -> None:
    u = cp.Variable(3)
    f, one = CvxFunction(cp.norm1(u), Pieces([u])), CvxSet([u >= 1.0], Pieces([u]))
    f.prox(np.ones(3), 0.5), one.project(np.zeros(3))
    g, other = pickle.loads(pickle.dumps((f, one)))
    np.testing.assert_allclose(g.prox(np.ones(3), 0.5), 0.5, atol=1e-8)
    np.testing.assert_allclose(other.project(np.zeros(3)), 1.0, atol=1e-8)


def test_an_empty_set_says_so() -> None:
    u = cp.Variable(2)
    empty = CvxSet([u >= 1.0, u <= 0.0], Pieces([u]))
    with pytest.raises(InputError, match="no point satisfies"):
        empty.project(np.zeros(2))


def test_nan_stays_nan() -> None:
    u = cp.Variable(2)
    assert np.isnan(CvxFunction(cp.norm1(u), Pieces([u])).prox(np.array([np.nan, 1.0]), 1.0)).all()


def test_the_oracle_serves_sums_maps_and_own_expressions() -> None:
    v = RNG.standard_normal(6)
    own = fn.Function(
        lambda x: float(np.maximum(x, 0).sum()), expression=lambda x: cp.sum(cp.pos(x)), convex=True, shape=(6,)
    )
    D = np.eye(5, 6) - np.eye(5, 6, k=1)
    problem = infimum.Composite({"fit": fn.SquaredL2().translate(v), "both": (0.5 * fn.L1() + fn.L2()) @ D, "own": own})
    with pytest.raises(PlanError):
        infimum.explain(problem, "splitting.davis_yin")
    oracles = {"both": "cvxpy.prox", "own": "cvxpy.prox"}
    result = infimum.solve(problem, solver="splitting.davis_yin", oracles=oracles, seed=0)
    x = cp.Variable(6)
    stated = 0.5 * cp.sum_squares(x - v) + 0.5 * cp.norm1(D @ x) + cp.norm(D @ x) + cp.sum(cp.pos(x))
    assert result.value == pytest.approx(cp.Problem(cp.Minimize(stated)).solve(solver="CLARABEL"), abs=1e-6)
    assert result.exactness == "tolerance"


def test_the_oracle_serves_torch_and_float32() -> None:
    torch = pytest.importorskip("torch")
    problem = infimum.Composite({"fit": fn.SquaredL2().translate(np.array([2.0, -0.2])), "tv": fn.L1() @ np.eye(2)})
    x0 = torch.zeros(2, dtype=torch.float32)
    options = {"oracles": {"tv": "cvxpy.prox"}, "stopping": "max_iter(60)", "seed": 0}
    result = infimum.solve(problem, x0, solver="splitting.douglas_rachford", **options)
    assert result.x.dtype == torch.float32
    torch.testing.assert_close(result.x, torch.tensor([1.0, 0.0]), atol=1e-5, rtol=0)


def test_the_oracle_refuses_what_it_cannot_say() -> None:
    own = fn.Function(lambda x: float(abs(x).sum()))
    problem = infimum.Composite({"f": fn.SquaredL2(), "own": own}, start=np.ones(2))
    with pytest.raises(PlanError, match=r"refused by oracle cvxpy\.prox: .*give it expression="):
        infimum.solve(problem, solver="splitting.douglas_rachford", oracles={"own": "cvxpy.prox"})
    with pytest.raises(InputError, match="not among those that CVXPY finds"):
        Prox(solver="nope")
    u = cp.Variable(2)
    with pytest.raises(InputError, match="does not know it as convex"):
        ProximalProblem([u], cp.sum(cp.sqrt(u)), (), "SCS", {})


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "OSQP"])
def test_the_solver_reaches_the_optimum(solver: str) -> None:
    problem = infimum.Composite({"fit": fn.LeastSquares(A, b), "penalty": 0.05 * fn.L1()})
    best = infimum.solve(problem, solver="splitting.proximal_gradient", seed=0, stopping="grad_norm(1e-9)").value
    result = infimum.solve(problem, solver={"use": "cvxpy.solve", "solver": solver}, seed=0)
    assert str(result.status) == "converged" and result.iterations == 1
    assert result.value == pytest.approx(best, abs=1e-3 if solver != "CLARABEL" else 1e-8)


def test_infeasible_and_unbounded_are_certified() -> None:
    line = fn.Linear(np.ones(2))
    unbounded = infimum.solve(infimum.Composite({"f": line}), solver="cvxpy.solve", seed=0)
    assert str(unbounded.status) == "diverged"
    both = {"a": infimum.constraints.Box(lower=1.0), "b": infimum.constraints.Box(upper=0.0)}
    empty = infimum.solve(infimum.Composite({"f": line}, constraints=both), solver="cvxpy.solve", seed=0)
    assert str(empty.status) == "infeasible"


def test_dual_values_are_kept(tmp_path: object) -> None:
    problem = infimum.Composite(
        {"f": fn.SquaredL2()},
        constraints={"sum": infimum.constraints.Affine(np.ones((1, 3)), np.array([3.0]))},
        start=np.zeros(3),
    )
    result = infimum.solve(problem, solver="cvxpy.solve", seed=0)
    assert abs(result.extras["cvxpy.solve"]["dual"][0][0]).item() == pytest.approx(1.0, abs=1e-6)
    result.save(f"{tmp_path}/saved")


def test_each_constraint_has_its_multipliers() -> None:
    sets = {
        "box": infimum.constraints.Box(lower=0.0, upper=1.0),
        "sum": infimum.constraints.Affine(np.ones((1, 3)), np.array([2.0])),
    }
    problem = infimum.Composite({"f": fn.SquaredL2().translate(np.array([3.0, 0.5, -1.0]))}, constraints=sets)
    box, total = infimum.solve(problem, solver="cvxpy.solve", seed=0).extras["cvxpy.solve"]["dual"]
    assert [one.shape for one in box] == [(3,), (3,)] and [one.shape for one in total] == [(1,)]
    # At (1, 1, 0): x - v + nu = (upper bound) - (lower bound), by the optimality conditions.
    np.testing.assert_allclose(np.array([-2.0, 0.5, 1.0]) + total[0] + box[1] - box[0], 0.0, atol=1e-5)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("CLARABEL", {"nosuch": 3}),
        ("CLARABEL", {"max_iter": -1}),
        ("OSQP", {"nosuch": 3}),
        ("SCS", {"nosuch": 3}),
        ("HIGHS", {"nosuch": 3}),
    ],
)
def test_bad_options_are_refused(solver: str, options: dict) -> None:
    problem = infimum.Composite({"f": fn.SquaredL2()}, start=np.ones(2))
    with pytest.raises(InputError, match="were refused"):
        infimum.solve(problem, solver={"use": "cvxpy.solve", "solver": solver, "options": options}, seed=0)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("CLARABEL", {"time_limit": 1e-6}),
        ("CLARABEL", {"max_iter": 2}),
        ("OSQP", {"max_iter": 3}),
    ],
)
def test_limits_of_the_solver_are_limits(solver: str, options: dict) -> None:
    rng = np.random.default_rng(0)
    terms = {"fit": fn.LeastSquares(rng.standard_normal((40, 30)), rng.standard_normal(40)), "l1": 0.1 * fn.L1()}
    with_limit = {"use": "cvxpy.solve", "solver": solver, "options": options}
    assert str(infimum.solve(infimum.Composite(terms), solver=with_limit, seed=0).status) == "limit"


def test_bad_terms_and_solvers_are_refused() -> None:
    problem = infimum.Composite({"f": fn.L2()}, start=np.ones(2))
    with pytest.raises(InputError, match="OSQP cannot solve this problem"):
        infimum.solve(problem, solver={"use": "cvxpy.solve", "solver": "OSQP"}, seed=0)
    with pytest.raises(InputError, match="expected a Composite, got int"):
        reference(3)  # type: ignore[arg-type]
    own = fn.Function(lambda x: float(x @ x))
    with pytest.raises(PlanError, match="give it expression="):
        infimum.solve(infimum.Composite({"own": own}, start=np.ones(2)), solver="cvxpy.solve")

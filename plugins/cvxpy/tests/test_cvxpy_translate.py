"""What infimum says in CVXPY has the same values, and what CVXPY says in infimum too."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import infimum
from infimum import constraints as sets
from infimum import functions as fn
from infimum.errors import InputError
from infimum_cvxpy import reference, to_cvxpy
from infimum_cvxpy.translate import Untranslatable, express, restrict, untranslatable

RNG = np.random.default_rng(5)
A = RNG.standard_normal((7, 6))
b = RNG.standard_normal(7)
y = np.where(b > 0, 1.0, -1.0)
GRAM = A.T @ A

VECTORS = {
    "l1": fn.L1(),
    "l1 weights": fn.L1(np.arange(6.0)),
    "elastic net": fn.ElasticNet(0.3, 0.7),
    "huber": fn.Huber(0.6),
    "l2": fn.L2(),
    "squared": fn.SquaredL2(),
    "linf": fn.Linf(),
    "groups": fn.GroupLasso([[0, 3], [1, 5]], weights=np.array([1.0, 2.0]), size=6),
    "quadratic": fn.Quadratic(GRAM, b[:6], 1.5),
    "least squares": fn.LeastSquares(A, b),
    "sparse": fn.LeastSquares(sp.csr_matrix(A), b, reduction="sum"),
    "logistic": fn.Logistic(A, y),
    "hinge": fn.Hinge(y) @ A,
    "tv": fn.TV1D(),
    "linear": fn.Linear(b[:6], 2.0),
    "zero": fn.Zero(),
    "sum": fn.L1() + 2.0 * fn.SquaredL2(),
    "scaled": 0.3 * fn.L1(),
    "translated": fn.L1().translate(np.arange(6.0)),
    "map": fn.Huber() @ A,
    "operator": fn.L1() @ sp.linalg.aslinearoperator(A),
    "differences": fn.L1() @ fn.finite_difference(6),
    "multiple": fn.L2() @ 2.0,
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_function_of_vectors_has_the_same_values(name: str) -> None:
    f, x = VECTORS[name], cp.Variable(6)
    expression = express(f, x)
    for _ in range(3):
        x.value = RNG.standard_normal(6)
        assert float(cp.sum(expression).value) == pytest.approx(f.value(x.value), rel=1e-9, abs=1e-9)
    assert expression.is_convex()


@pytest.mark.parametrize("f", [fn.Entropy(), fn.KL(np.arange(1.0, 7.0))], ids=repr)
def test_a_function_of_positive_vectors(f: fn.Function) -> None:
    x = cp.Variable(6)
    x.value = RNG.random(6) + 0.1
    assert float(express(f, x).value) == pytest.approx(f.value(x.value), rel=1e-9)


@pytest.mark.parametrize(
    "f",
    [
        fn.NuclearNorm(),
        fn.L21(axis=0),
        fn.L21(axis=1),
        fn.L2(),
        fn.total_variation((4, 3)),
        fn.total_variation((4, 3), isotropic=False),
        fn.L1().translate(np.ones((4, 3))),
        fn.L1() @ RNG.standard_normal((5, 4)),
    ],
    ids=repr,
)
def test_a_function_of_matrices_has_the_same_values(f: fn.Function) -> None:
    x = cp.Variable((4, 3))
    expression = express(f, x)
    x.value = RNG.standard_normal((4, 3))
    assert float(expression.value) == pytest.approx(f.value(x.value), rel=1e-9)


SETS = {
    "box": sets.Box(-0.5, 0.4),
    "half box": sets.Box(lower=np.array([0.0, -np.inf, 0.1, 0.0, 0.0, -1.0])),
    "nonnegative": sets.Nonnegative(),
    "simplex": sets.Simplex(2.0),
    "l1 ball": sets.L1Ball(0.7, np.ones(6)),
    "l2 ball": sets.L2Ball(0.5),
    "linf ball": sets.LinfBall(0.5, 0.1),
    "affine": sets.Affine(A[:2], b[:2]),
    "linear": sets.LinearConstraint(A[:3], np.array([0.0, -1.0, 0.2]), np.array([0.0, 1.0, np.inf])),
    "cone": sets.SecondOrderCone(),
}


@pytest.mark.parametrize("name", SETS)
def test_the_nearest_point_of_a_set_is_its_projection(name: str) -> None:
    """By a solver that shares no code with the projection."""
    body, x, v = SETS[name], cp.Variable(6), RNG.standard_normal(6)
    cp.Problem(cp.Minimize(cp.sum_squares(x - v)), restrict(body, x)).solve(solver="CLARABEL")
    assert body.violation(x.value) < 1e-6
    if "project" in body.capabilities:
        np.testing.assert_allclose(x.value, body.project(v), atol=1e-5)


def test_the_nearest_positive_semidefinite_matrix() -> None:
    x, v = cp.Variable((4, 4)), RNG.standard_normal((4, 4))
    cp.Problem(cp.Minimize(cp.sum_squares(x - v)), restrict(sets.PSD(), x)).solve(solver="CLARABEL")
    np.testing.assert_allclose(x.value, sets.PSD().project(v), atol=1e-5)


def test_blocks_and_constraints_of_a_problem() -> None:
    M = RNG.standard_normal((3, 2))
    problem = infimum.Composite(
        {"rank": fn.NuclearNorm(), "sparse": 0.4 * fn.L1(), "fit": fn.SquaredL2().translate(M) @ {"L": 1.0, "S": 1.0}},
        blocks={"L": (3, 2), "S": (3, 2)},
        on={"rank": "L", "sparse": "S", "positive": "S"},
        constraints={"positive": sets.Nonnegative()},
    )
    stated, x = to_cvxpy(problem)
    stated.solve(solver="CLARABEL")
    assert problem.value(problem.unpack(x.value)) == pytest.approx(stated.value, abs=1e-7)
    L, S = cp.Variable((3, 2)), cp.Variable((3, 2))
    direct = cp.normNuc(L) + 0.4 * cp.sum(cp.abs(S)) + 0.5 * cp.sum_squares(L + S - M)
    assert cp.Problem(cp.Minimize(direct), [S >= 0]).solve(solver="CLARABEL") == pytest.approx(stated.value, abs=1e-6)


def test_a_maximization_keeps_its_sense() -> None:
    problem = infimum.Composite({"f": -1.0 * fn.SquaredL2().translate(np.ones(3))}, sense="max", start=np.zeros(3))
    assert reference(problem) == pytest.approx(0.0, abs=1e-8)


def test_what_has_no_form_is_named() -> None:
    own = fn.Function(lambda x: float(x @ x))
    assert "give it expression=" in str(untranslatable(2.0 * own @ A))
    with pytest.raises(Untranslatable, match=r"term 'mine': .*give it expression="):
        to_cvxpy(infimum.Composite({"mine": own}, start=np.zeros(2)))
    assert untranslatable(fn.Quadratic(-np.eye(2))) == "it is not convex"
    with pytest.raises(InputError, match="no optimal value"):
        reference(infimum.Composite({"f": fn.Linear(np.ones(2))}))

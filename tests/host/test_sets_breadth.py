"""The wider list of sets: projections against the definition and CVXPY, distances, torch, bad input."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum.constraints import (
    PSD,
    Affine,
    Constraint,
    L1Ball,
    L2Ball,
    LinfBall,
    NonlinearConstraint,
    SecondOrderCone,
    Simplex,
)
from infimum.errors import InputError
from infimum.plugins.build import build

RNG = np.random.default_rng(5)
A, b, CENTER = RNG.standard_normal((2, 5)), np.array([1.0, -2.0]), np.array([1.0, -1.0, 0.0, 2.0, 0.5])
DEPENDENT = np.vstack([A, A[0] + 2 * A[1]])


@dataclass(frozen=True)
class Case:
    """A set, the same as CVXPY constraints on u, and the shape of x."""

    set: Constraint
    constraints: Callable[[Any, Any], list[Any]]
    shape: tuple[int, ...] = (5,)

    def point(self, seed: int, scale: float = 3.0) -> np.ndarray:
        return scale * np.random.default_rng(seed).standard_normal(self.shape)


CASES = {
    "simplex": Case(Simplex(), lambda cp, u: [u >= 0, cp.sum(u) == 1]),
    "simplex matrix": Case(Simplex(3.5), lambda cp, u: [u >= 0, cp.sum(u) == 3.5], (3, 2)),
    "l1": Case(L1Ball(), lambda cp, u: [cp.norm1(u) <= 1]),
    "l1 center": Case(L1Ball(2.0, CENTER), lambda cp, u: [cp.norm1(u - CENTER) <= 2]),
    "l2": Case(L2Ball(0.5), lambda cp, u: [cp.norm2(u) <= 0.5]),
    "l2 center": Case(L2Ball(2.0, center=CENTER), lambda cp, u: [cp.norm2(u - CENTER) <= 2]),
    "l2 number": Case(L2Ball(2.0, center=1.0), lambda cp, u: [cp.norm(u - 1, "fro") <= 2], (3, 2)),
    "linf": Case(LinfBall(1.5), lambda cp, u: [cp.norm_inf(u) <= 1.5]),
    "linf center": Case(LinfBall(0.5, CENTER), lambda cp, u: [cp.norm_inf(u - CENTER) <= 0.5]),
    "affine": Case(Affine(A, b), lambda cp, u: [A @ u == b]),
    "affine sparse": Case(Affine(sp.coo_array(A), b), lambda cp, u: [A @ u == b]),
    "affine dependent": Case(Affine(DEPENDENT, DEPENDENT @ CENTER), lambda cp, u: [A @ u == A @ CENTER]),
    "cone": Case(SecondOrderCone(), lambda cp, u: [cp.SOC(u[0], u[1:])]),
    "psd": Case(PSD(), lambda cp, u: [(u + u.T) / 2 >> 0, u == u.T], (4, 4)),
}
every = pytest.mark.parametrize
seeds, scales = st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 100.0])


@every("name", CASES)
@settings(max_examples=25, deadline=None)
@given(seed=seeds, scale=scales)
def test_projection_is_the_nearest_point(name, seed, scale):
    one, x = CASES[name].set, CASES[name].point(seed, scale)
    p, inside = one.project(x), one.project(CASES[name].point(seed + 1, scale))
    size = 1e-9 * (1 + scale) ** 2
    assert float(np.sum((x - p) * (inside - p))) <= size
    assert one.violation(p) <= 1e-12 * (1 + scale)
    assert np.allclose(one.project(p), p, atol=1e-12 * (1 + scale))
    assert one.violation(x) == pytest.approx(np.linalg.norm(x - p), rel=1e-9, abs=1e-12 * (1 + scale))


@every("name", CASES)
def test_projection_agrees_with_cvxpy(name):
    cp = pytest.importorskip("cvxpy")
    case, u = CASES[name], cp.Variable(CASES[name].shape)
    for seed, scale in ((1, 3.0), (2, 0.2), (3, 20.0)):
        x = case.point(seed, scale)
        cp.Problem(cp.Minimize(cp.sum_squares(u - x)), case.constraints(cp, u)).solve(solver="CLARABEL")
        assert np.allclose(case.set.project(x), u.value, atol=1e-4 * (1 + scale) / 4)


@every("name", CASES)
def test_points_of_the_set_stay_and_points_are_left_as_they_are(name):
    one, x = CASES[name].set, CASES[name].point(4)
    before = x.copy()
    p = one.project(x)
    assert np.array_equal(x, before)
    assert p is not x
    assert one.violation(x) > 0
    assert np.allclose(one.step(p, x - p), p, atol=1e-12)
    assert np.array_equal(one.step(0 * x, x), p)


@every("name", CASES)
@every("dtype", ["float32", "float64"])
def test_torch_and_float32_agree_with_numpy(name, dtype):
    torch = pytest.importorskip("torch")
    one, x = CASES[name].set, CASES[name].point(6)
    loose = 1e-5 if dtype == "float32" else 1e-12
    single = x.astype(dtype)
    moved = one.to(single)
    assert moved.project(single).dtype == single.dtype
    assert np.allclose(moved.project(single), one.project(x), atol=loose)
    assert moved.violation(single) == pytest.approx(one.violation(x), rel=10 * loose)
    if "sparse" in name:
        with pytest.raises(InputError, match=r"SciPy sparse matrix, which does not meet points of torch"):
            one.to(torch.tensor(x))
        return
    tensor = torch.tensor(single)
    moved = one.to(tensor)
    assert moved.project(tensor).dtype == tensor.dtype
    assert np.allclose(moved.project(tensor).numpy(), one.project(x), atol=loose)
    assert moved.violation(tensor) == pytest.approx(one.violation(x), rel=10 * loose)


@every("name", CASES)
def test_nan_is_passed_on(name):
    x = CASES[name].point(7)
    x.flat[1] = np.nan
    assert np.isnan(CASES[name].set.project(x)).any()
    assert np.isnan(CASES[name].set.violation(x))


@every("name", CASES)
def test_sets_say_what_they_can_and_survive_pickling(name):
    one, x = CASES[name].set, CASES[name].point(8)
    more = {"affine": {"tangent", "rows", "residual", "jacobian"}, "linf": {"bounds"}}.get(name.split()[0], set())
    assert one.capabilities == {"violation", "project", "step"} | more
    assert one.convex
    twin = pickle.loads(pickle.dumps(one))
    assert np.array_equal(twin.project(x), one.project(x))
    assert repr(twin) == repr(one)
    assert "object at" not in repr(one)
    one.check(x)


def test_names():
    assert repr(CASES["l2 center"].set) == "L2Ball(radius=2, center is (5,))"
    assert repr(CASES["l2 number"].set) == "L2Ball(radius=2, center=1)"
    assert repr(LinfBall()) == "LinfBall(radius=1)"
    assert repr(CASES["affine"].set) == "Affine(A is (2, 5))"


# One by one ----------------------------------------------------------------------------------------------------------


def test_a_radius_of_zero_leaves_one_point():
    for one in (Simplex(0), L1Ball(0), L2Ball(0), LinfBall(0)):
        assert one.project(CENTER).tolist() == [0.0] * 5
    assert L1Ball(0, center=CENTER).project(np.zeros(5)).tolist() == CENTER.tolist()


def test_the_simplex_keeps_its_sum_for_huge_entries():
    for x in (np.array([1e15, 1e15, -3.0]), np.array([1e300, 0.0, 0.0]), np.full(3, -1e12)):
        assert Simplex().project(x).sum() == pytest.approx(1.0, rel=1e-12)


def test_bounds_of_the_linf_ball():
    lower, upper = LinfBall(0.5, CENTER).bounds(np.zeros(5))
    assert np.array_equal(lower, CENTER - 0.5)
    assert np.array_equal(upper, CENTER + 0.5)


@every("dtype", [np.float32, np.float64])
@every("seed", range(5))
def test_dependent_rows_that_agree_up_to_rounding_are_no_contradiction(seed, dtype):
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((2, 4)), rng.standard_normal(4)
    A = np.vstack([A, A[0] + A[1], 1e3 * A[0]])
    rows = Affine(A.astype(dtype), (A @ x).astype(dtype))
    assert rows.violation(x.astype(dtype)) < 1e3 * np.finfo(dtype).eps
    with pytest.raises(InputError, match="no x solves A x = b"):
        Affine(A.astype(dtype), (A @ x + [0.0, 0.0, 1.0, 0.0]).astype(dtype))


@every("name", ["affine", "affine sparse", "affine dependent"])
def test_tangents_of_an_affine_set_change_nothing_in_its_equations(name):
    one, g = CASES[name].set, RNG.standard_normal(5)
    tangent = one.tangent(np.zeros(5), g)
    assert np.allclose(A @ tangent, 0, atol=1e-12)
    assert np.allclose(one.tangent(np.zeros(5), tangent), tangent)
    assert float(tangent @ (g - tangent)) == pytest.approx(0, abs=1e-12)


def test_an_affine_set_is_linear_constraints_with_equal_bounds():
    one = CASES["affine"].set
    matrix, lower, upper = one.rows(CENTER)
    assert np.array_equal(matrix @ CENTER, one.residual(CENTER))
    assert np.array_equal(one.jacobian(CENTER), A)
    assert lower.tolist() == upper.tolist() == one.lower.tolist() == one.upper.tolist() == b.tolist()


@every("x", [[2.0, 1.0, -1.0], [-2.0, 1.0, 1.0], [0.0, 3.0, 4.0], [0.0, 0.0, 0.0]])
def test_the_three_pieces_of_the_second_order_cone(x):
    x = np.array(x)
    p = SecondOrderCone().project(x)
    expected = {2.0: x, -2.0: 0 * x, 0.0: np.array([2.5, 1.5, 2.0]) * bool(x.any())}[x[0]]
    assert np.allclose(p, expected)
    assert SecondOrderCone().violation(x) == pytest.approx(np.linalg.norm(x - p))


def test_hermitian_matrices_and_the_norm_of_complex_points():
    X = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))
    p = PSD().project(X)
    assert np.allclose(p, p.conj().T)
    assert np.linalg.eigvalsh(p)[0] >= -1e-12
    assert PSD().violation(X) == pytest.approx(np.linalg.norm(X - p))
    assert np.linalg.norm(L2Ball(2.0).project(X)) == pytest.approx(2.0)


# Nonlinear constraints -----------------------------------------------------------------------------------------------


def circle(x):
    return x[0] ** 2 + x[1] ** 2


def both(x):
    return [x[0] * x[1], x[0] - x[1]]


def test_a_nonlinear_constraint_measures_what_lies_outside():
    disk = NonlinearConstraint(circle, upper=1.0, jacobian=lambda x: 2 * x)
    x = np.array([2.0, 0.0])
    assert disk.violation(x) == 3.0
    assert disk.violation(0.1 * x) == 0.0
    assert disk.residual(x).tolist() == [4.0]
    assert disk.jacobian(x).tolist() == [[4.0, 0.0]]
    assert disk.capabilities == {"violation", "residual", "jacobian"}
    assert repr(disk) == "NonlinearConstraint(upper=1)"
    two = NonlinearConstraint(both, lower=[0.0, -1.0], upper=[0.0, 1.0])
    assert two.capabilities == {"violation", "residual"}
    assert two.violation(np.array([3.0, -1.0])) == pytest.approx(np.hypot(3.0, 3.0))
    assert two.residual(np.ones(2, np.float32)).dtype == np.float32
    assert two.convex is None


def test_a_nonlinear_constraint_meets_torch():
    torch = pytest.importorskip("torch")
    x = torch.tensor([3.0, -1.0])
    for c in (both, lambda x: torch.stack((x[0] * x[1], x[0] - x[1]))):
        two = NonlinearConstraint(c, lower=[0.0, -1.0], upper=1.0).to(x)
        assert two.residual(x).tolist() == [-3.0, 4.0]
        assert two.violation(x) == pytest.approx(np.hypot(3.0, 3.0))
    assert NonlinearConstraint(circle, lower=12.0).violation(x) == 2.0


# In a run file -------------------------------------------------------------------------------------------------------


@every(
    ("spec", "shown"),
    [
        ("core.simplex", "Simplex(radius=1.0)"),
        ({"use": "simplex", "radius": 2}, "Simplex(radius=2.0)"),
        ({"use": "core.l1_ball", "radius": 2.0}, "L1Ball(radius=2)"),
        ({"use": "core.l2_ball", "center": [1, 2, 3]}, "L2Ball(radius=1, center is (3,))"),
        ({"use": "core.linf_ball", "center": 1, "radius": 0.5}, "LinfBall(radius=0.5, center=1)"),
        ({"use": "core.affine", "A": [[1, 2]], "b": [1]}, "Affine(A is (1, 2))"),
        ("core.second_order_cone", "SecondOrderCone()"),
        ("core.psd", "PSD()"),
    ],
)
def test_sets_stand_in_run_files(spec, shown):
    assert repr(build(spec, "constraint").instance) == shown


# Bad input -----------------------------------------------------------------------------------------------------------


@every(
    ("make", "message"),
    [
        (lambda: Simplex(-1), r"radius of Simplex is -1 \(the set is empty: .*\); expected a finite number >= 0"),
        (lambda: L1Ball(-0.5), r"radius of L1Ball is -0.5 \(the set is empty"),
        (lambda: L2Ball(np.nan), r"radius of L2Ball is nan; expected"),
        (lambda: LinfBall(np.inf), r"radius of LinfBall is inf; expected"),
        (lambda: L2Ball(CENTER), r"radius of L2Ball is array"),
        (lambda: L1Ball(True), r"radius of L1Ball is True"),
        (lambda: L2Ball(1.0, [0.0, np.inf]), r"center of L2Ball\[1\] is inf"),
        (lambda: L1Ball(1.0, np.nan), r"center of L1Ball\[0\] is nan"),
        (lambda: LinfBall(1.0, [1j]), r"center of LinfBall is complex"),
        (lambda: L1Ball(1.0, CENTER).check(np.ones(3)), r"center of L1Ball is \(5,\), x0 is \(3,\)"),
        (lambda: Simplex().check(np.ones(3) * 1j), r"set of real points, x0 is complex"),
        (lambda: Affine(A, [1.0]), r"A is \(2, 5\), b is \(1,\); expected b of shape \(2,\)"),
        (lambda: Affine(b, b), r"A is \(2,\); expected a matrix"),
        (lambda: Affine(A * np.nan, b), r"A\[0, 0\] is nan"),
        (
            lambda: Affine(DEPENDENT, [1.0, 1.0, 5.0]),
            r"no x solves A x = b: A is \(3, 5\) of rank 2, .* misses b by 0.816, most in row 1 \(b\[1\] = 1\)",
        ),
        (lambda: Affine(np.zeros((1, 2)), [1.0]), r"no x solves A x = b: A is \(1, 2\) of rank 0"),
        (lambda: Affine(np.ones((3, 1)), [1.0, 1.0, 2.0]), r"no x solves A x = b: A is \(3, 1\) of rank 1"),
        (lambda: Affine(sp.csr_array(DEPENDENT), np.ones(3)), r"\(3, 5\) and sparse, .* linearly dependent; drop"),
        (lambda: Affine(sp.csr_array(np.ones((3, 1))), np.ones(3)), r"\(3, 1\) and sparse, .* linearly dependent"),
        (lambda: Affine(sp.csr_array(np.eye(3) * [1, 1, 0]), np.ones(3)), r"linearly dependent.*A.toarray\(\)"),
        (lambda: Affine(A, b).check(np.ones(4)), r"A of the affine set is \(2, 5\), x0 is \(4,\)"),
        (lambda: SecondOrderCone().check(np.ones((2, 2))), r"set of vectors, x0 is \(2, 2\); expected one axis"),
        (lambda: PSD().check(np.ones((2, 3))), r"set of square matrices, x0 is \(2, 3\)"),
        (lambda: NonlinearConstraint(circle), r"bounds nothing: give lower, upper or both"),
        (lambda: NonlinearConstraint(circle, 2.0, 1.0), r"the bounds of c cross: lower = 2 > upper = 1"),
        (lambda: NonlinearConstraint(both, [0, 3], [1, 2]), r"the bounds of c cross: lower\[1\] = 3 > upper\[1\] = 2"),
        (lambda: NonlinearConstraint(circle, np.nan), r"lower of c is nan; expected a number or -inf"),
        (lambda: NonlinearConstraint(3.0, 0.0), r"c is 3.0; expected a callable"),
        (lambda: NonlinearConstraint(None, 0.0), r"c is None; expected a callable"),
        (lambda: NonlinearConstraint(circle, 0.0, jacobian=1), r"jacobian is 1; expected a callable"),
        (
            lambda: NonlinearConstraint(both, [0.0, 1.0, 2.0]).violation(np.ones(2)),
            r"lower of c is \(3,\), c\(x\) is \(2,\); shapes must agree",
        ),
        (lambda: NonlinearConstraint(lambda x: np.ones((2, 2)), 0.0).residual(np.ones(2)), r"c\(x\) is \(2, 2\)"),
        (
            lambda: NonlinearConstraint(circle, 0.0, jacobian=lambda x: np.ones((1, 3))).jacobian(np.ones(2)),
            r"jacobian\(x\) is \(1, 3\), x is \(2,\); expected \(m, 2\)",
        ),
        (lambda: NonlinearConstraint(circle, 0.0).jacobian(np.ones(2)), r"made without a jacobian"),
    ],
)
def test_bad_sets_are_named_with_their_numbers(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_radius_of_a_run_file_is_named_with_its_component():
    with pytest.raises(InputError, match=r"constraint core.l2_ball: radius of L2Ball is -1.0"):
        build({"use": "core.l2_ball", "radius": -1}, "constraint")

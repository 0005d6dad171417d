"""The wider list of functions one by one: curvature, exact total variation, domains, stability, bad input."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import wrightomega

from infimum.errors import InputError
from infimum.functions import (
    KL,
    L1,
    L2,
    L21,
    TV1D,
    ElasticNet,
    Entropy,
    GroupLasso,
    Hinge,
    Huber,
    Linf,
    NuclearNorm,
    Quadratic,
    SquaredL2,
    finite_difference,
    total_variation,
)
from infimum.functions.entropies import lambert_of_exp
from infimum.functions.quadratic import _is_semidefinite

RNG = np.random.default_rng(8)
FACTOR = RNG.standard_normal((5, 5))
P, LOW_RANK, q = FACTOR.T @ FACTOR + np.eye(5), FACTOR[:2].T @ FACTOR[:2], RNG.standard_normal(5)
COUNTS = np.array([0.0, 1.0, 2.0, 0.5, 7.0])
LABELS = np.array([[0, 0, 1], [1, 2, 2], [-1, 0, 1], [2, 2, 2]])
every = pytest.mark.parametrize


# Quadratic -----------------------------------------------------------------------------------------------------------


def test_curvature_of_a_quadratic():
    spectrum = np.linalg.eigvalsh(P)
    f = Quadratic(P)
    assert f.lipschitz == pytest.approx(spectrum[-1])
    assert f.strongly_convex == pytest.approx(spectrum[0])
    assert Quadratic(LOW_RANK).strongly_convex == 0.0
    assert Quadratic(LOW_RANK).convex
    saddle = Quadratic(np.diag([1.0, -3.0]))
    assert not saddle.convex
    assert "prox" not in saddle.capabilities
    assert saddle.lipschitz == 3.0
    assert repr(saddle) == "Quadratic(P is (2, 2), not convex)"
    assert "prox" not in Quadratic(np.eye(2), convex=False).capabilities
    assert Quadratic(sp.csr_array(P)).lipschitz == pytest.approx(spectrum[-1], rel=1e-5)


@every("form", [np.asarray, sp.csr_array])
@every("matrix", [P, LOW_RANK, -P, LOW_RANK - 0.01 * np.eye(5), np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros((3, 3))])
def test_large_and_sparse_matrices_are_tested_by_factorization(form, matrix):
    expected = bool(np.linalg.eigvalsh(matrix)[0] >= -1e-9)
    assert _is_semidefinite(form(matrix), float(np.linalg.norm(matrix, 2))) == expected


def test_a_declared_curvature_that_is_wrong_shows_in_the_prox():
    f = Quadratic(np.diag([1.0, -3.0]), convex=True)
    with pytest.raises(InputError, match=r"prox of a quadratic: I \+ t P is not positive definite in float64"):
        f.prox(np.ones(2), 1.0)


def test_a_quadratic_keeps_its_factorizations():
    f = Quadratic(P, q)
    f.prox(np.ones(5), 0.5)
    (factor,) = f._factors.values()
    f.prox(np.zeros(5), 0.5)
    assert list(f._factors.values()) == [factor]


# Total variation and finite differences ------------------------------------------------------------------------------


@every("kind", ["steps", "noise", "ramp", "constant", "offset"])
def test_tv_prox_is_exact_and_fast_for_ten_thousand_entries(kind):
    n, weight = 10_000, 3.0
    rng = np.random.default_rng(1)
    y = {
        "steps": np.repeat(rng.standard_normal(20), 500) * 10 + rng.standard_normal(n),
        "noise": rng.standard_normal(n),
        "ramp": np.linspace(0.0, 100.0, n),
        "constant": np.ones(n),
        "offset": 1e4 + rng.standard_normal(n),
    }[kind]
    start = time.process_time()
    x = TV1D().prox(y, weight)
    assert time.process_time() - start < 0.5
    # The dual variable is determined by x: within +-weight, at the bound wherever x jumps, and zero at the end.
    dual = np.array([float(one) for one in np.cumsum((y - x).astype(np.longdouble))])
    jump, size = np.sign(np.diff(x)), 1e-10 * max(1.0, float(np.abs(y).max()))
    assert np.max(np.abs(dual)) <= weight + size
    assert abs(dual[-1]) <= size
    assert np.all(np.abs(dual[:-1] + weight * jump)[jump != 0] <= size)


def test_tv_of_two_entries_is_known():
    assert TV1D().prox(np.array([0.0, 10.0]), 1.0).tolist() == [1.0, 9.0]
    assert TV1D().prox(np.array([0.0, 1.0]), 10.0).tolist() == [0.5, 0.5]
    assert TV1D().prox(np.array([3.0, 1.0]), 0.0).tolist() == [3.0, 1.0]


@every("shape", [6, (6,), (3, 4), (2, 3, 4)])
def test_finite_differences_have_their_adjoint_and_norm(shape):
    D = finite_difference(shape)
    grid = (shape,) if isinstance(shape, int) else shape
    basis = np.eye(int(np.prod(grid))).reshape((-1, *grid))
    matrix = np.stack([D.forward(e).reshape(-1) for e in basis], axis=1)
    assert D.norm == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-12)
    x = RNG.standard_normal(grid)
    y = RNG.standard_normal(D.forward(x).shape)
    assert np.sum(D.forward(x) * y) == pytest.approx(np.sum(x * D.adjoint(y)))
    assert np.allclose(D.rows(basis), np.stack([D.forward(e) for e in basis]))
    assert np.allclose(D.forward(x).reshape(-1), matrix @ x.reshape(-1))
    assert not D.forward(np.ones(grid)).any()


def test_differences_serve_in_the_algebra():
    assert isinstance(total_variation(7), TV1D)
    f = SquaredL2() @ finite_difference((3, 4))
    x = RNG.standard_normal((3, 4))
    assert f.value(x) == pytest.approx(0.5 * (np.sum(np.diff(x, axis=0) ** 2) + np.sum(np.diff(x, axis=1) ** 2)))
    assert f.lipschitz == finite_difference((3, 4)).norm ** 2
    labels = np.broadcast_to(np.arange(12).reshape(3, 4), (2, 3, 4))
    grouped = GroupLasso(labels) @ finite_difference((3, 4))
    assert grouped.value(x) == pytest.approx(total_variation((3, 4)).value(x))
    grouped.check(x)
    assert np.allclose((L1() @ finite_difference(4)).value(x[0]), TV1D().value(x[0]))


# Domains and stability -----------------------------------------------------------------------------------------------


def test_domains_of_the_entropies():
    assert Entropy().value(np.array([0.0, 1.0])) == 0.0
    assert Entropy().value(np.array([-1e-300, 1.0])) == np.inf
    assert KL([0.0, 2.0]).value(np.array([0.0, 2.0])) == 0.0
    assert KL([0.0, 2.0]).value(np.array([1.0, 0.0])) == np.inf
    assert KL([0.0, 2.0]).value(np.array([-1.0, 1.0])) == np.inf
    assert Entropy().gradient(np.array([0.0]))[0] == -np.inf
    for f in (Entropy(), KL(COUNTS)):
        assert f.extended
        assert f.lipschitz is None


@every("v", [-1e6, -700.0, -1.0, 0.0, 1.0, 1e6])
@every("t", [1e-6, 1.0, 1e6])
def test_the_prox_of_the_entropies_is_stable(v, t):
    p = Entropy().prox(np.array([v]), t)[0]
    assert p >= 0
    if p > 1e-300:
        assert p + t * (np.log(p) + 1) == pytest.approx(v, rel=1e-10, abs=1e-10 * max(t, 1) * 40)
    p = KL([2.0]).prox(np.array([v]), t)[0]
    assert p > 0
    assert p + t * (1 - 2.0 / p) == pytest.approx(v, rel=1e-9, abs=1e-9 * max(t, 1))


def test_lambert_function_of_an_exponential():
    z = np.concatenate([np.linspace(-700, 700, 2001), np.linspace(-4, 4, 801), [1e5, 1e10, 1e300]])
    assert np.allclose(lambert_of_exp(z), wrightomega(z), rtol=1e-14, atol=0)


def test_a_radius_far_below_the_entries_is_not_lost():
    v = np.array([1e12, 1e12 - 0.5, 0.0])
    assert (v - Linf().prox(v, 1.0)).tolist() == [0.75, 0.25, 0.0]


def test_huge_and_tiny_groups():
    f = GroupLasso([[0, 1], [2, 3]])
    v = np.array([3e200, 4e200, 1.0, 0.0])
    assert f.value(v) == pytest.approx(5e200)
    assert f.prox(v, 2.0)[2] == 0.0
    assert f.prox(np.zeros(4), 2.0).tolist() == [0.0] * 4
    assert f.to(np.zeros(4, np.float32)).value(np.array([3e30, 4e30, 0, 0], np.float32)) == pytest.approx(
        5e30, rel=1e-6
    )


def test_group_lasso_takes_large_data_without_a_loop():
    n = 200_000
    f = GroupLasso(np.arange(n) // 2)
    v = RNG.standard_normal(n)
    start = time.process_time()
    p = f.prox(v, 0.5)
    assert time.process_time() - start < 0.5
    size = np.linalg.norm(v.reshape(-1, 2), axis=1, keepdims=True)
    assert np.allclose(p, (np.maximum(1 - 0.5 / size, 0) * v.reshape(-1, 2)).reshape(-1))


def test_complex_matrices_have_a_nuclear_norm():
    X = RNG.standard_normal((4, 3)) + 1j * RNG.standard_normal((4, 3))
    p = NuclearNorm().prox(X, 0.5)
    assert np.allclose(np.linalg.svd(p)[1], np.maximum(np.linalg.svd(X)[1] - 0.5, 0))
    assert L21(axis=1).value(X) == pytest.approx(np.linalg.norm(X, axis=1).sum())
    with pytest.raises(InputError, match=r"Linf\(\) is defined for real points"):
        Linf().check(X)


# The quadratic perturbation ------------------------------------------------------------------------------------------


def test_the_rule_of_a_perturbed_prox_is_named():
    f = L1() + 0.5 * SquaredL2()
    assert f.how["prox"] == "quadratic perturbation"
    assert np.allclose(f.prox(np.arange(5.0), 0.3), ElasticNet(1.0, 0.5).prox(np.arange(5.0), 0.3))
    assert "prox" in (L1() + 2.0 * SquaredL2() - SquaredL2()).capabilities
    for g in (L1() + L2(), L1() + L2() + SquaredL2(), L1() - SquaredL2(), L1() + SquaredL2() @ FACTOR):
        assert "prox" not in g.capabilities
    with pytest.raises(InputError, match=r"L1\(\) \+ L2\(\) has no closed-form prox"):
        (L1() + L2()).prox(np.ones(2), 1.0)


# Bad input -----------------------------------------------------------------------------------------------------------

LOPSIDED = np.array([[1.0, 2.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])


@every(
    ("make", "message"),
    [
        (lambda: Quadratic(np.ones((2, 3))), r"P is \(2, 3\); expected a square matrix"),
        (lambda: Quadratic(LOPSIDED), r"P is not symmetric: P\[0, 1\] is 2, P\[1, 0\] is 0.5; pass \(P \+ P.T\) / 2"),
        (lambda: Quadratic(sp.csr_array(LOPSIDED)), r"P is not symmetric: P\[0, 1\] is 2"),
        (lambda: Quadratic(np.eye(2), np.ones(3)), r"P is \(2, 2\), q is \(3,\); expected q of shape \(2,\)"),
        (lambda: Quadratic([[np.nan]]), r"P\[0, 0\] is nan"),
        (lambda: Quadratic(np.eye(2), r=np.inf), r"r is inf; expected a finite number"),
        (lambda: Quadratic(sp.linalg.aslinearoperator(np.eye(2))), r"SquaredL2\(\) @ B"),
        (lambda: Quadratic(np.eye(2)).check(np.ones(3)), r"P is \(2, 2\), x0 is \(3,\)"),
        (lambda: ElasticNet(-1.0), r"ElasticNet: l1 is -1.0; expected a finite number >= 0"),
        (lambda: ElasticNet(1.0, np.nan), r"ElasticNet: l2 is nan"),
        (lambda: ElasticNet("a"), r"ElasticNet: l1 is 'a'"),
        (lambda: Huber(0.0), r"Huber: delta is 0.0; expected a finite number > 0"),
        (lambda: Huber(np.inf), r"Huber: delta is inf"),
        (lambda: NuclearNorm().check(np.ones(5)), r"function of matrices, x0 is \(5,\)"),
        (lambda: TV1D().check(np.ones((2, 2))), r"function of vectors, x0 is \(2, 2\).*total_variation"),
        (lambda: L21(1.5), r"L21: axis is 1.5"),
        (lambda: L21(axis=2).check(np.ones((2, 2))), r"L21\(axis=2\): x0 is \(2, 2\); expected an array with axis 2"),
        (lambda: KL([1.0, -2.0]), r"KL: b\[1\] is -2; expected numbers >= 0"),
        (lambda: KL([]), r"b is empty"),
        (lambda: KL(COUNTS).check(np.ones(4)), r"b is \(5,\), x0 is \(4,\)"),
        (lambda: Hinge([1, 2]), r"y holds the labels 1, 2"),
        (lambda: Hinge([[1, -1]]), r"y is \(1, 2\); expected a vector"),
        (lambda: Hinge([1, -1], "avg"), r"reduction is 'avg'; there are: mean, sum"),
        (lambda: Hinge([1, -1]) @ np.ones((3, 2)), r"the linear map is \(3, 2\), y is \(2,\); expected 2 rows"),
        (lambda: finite_difference((3, 1)), r"finite_difference\(\(3, 1\)\): expected the shape of x, with at least 2"),
        (lambda: finite_difference(2.5), r"finite_difference\(2.5\)"),
        (lambda: finite_difference((3, 4)).check(np.ones(12)), r"finite_difference\(3, 4\): x0 is \(12,\); expected"),
        (lambda: GroupLasso([[0, 1], [3], [2, 1]]), r"groups 0 and 2 share index 1; expected disj.*one term per group"),
        (lambda: GroupLasso([[0, 1, 0]]), r"group 0 holds index 0 twice"),
        (lambda: GroupLasso([[0], [-1]]), r"group 1 holds index -1; expected indices from 0"),
        (lambda: GroupLasso([[0], [5]], size=5), r"group 1 holds index 5; expected indices from 0 to 4"),
        (lambda: GroupLasso([[0], []]), r"group 1 is \[\]; expected a list of at least one index"),
        (lambda: GroupLasso([[0.5]]), r"group 0 holds float64 entries"),
        (lambda: GroupLasso([]), r"groups is empty"),
        (lambda: GroupLasso(3), r"groups is 3"),
        (lambda: GroupLasso([0.0, 1.0]), r"groups holds float64 entries"),
        (lambda: GroupLasso([-1, -1]), r"every label is negative"),
        (lambda: GroupLasso([0, 1], size=3), r"there are 2 labels, size is 3"),
        (lambda: GroupLasso([[0], [1]], [1.0]), r"weights is \(1,\); expected one number, or \(2,\), one per group"),
        (lambda: GroupLasso([[0], [1]], [1.0, -1.0]), r"weights\[1\] is -1.0; expected finite numbers >= 0"),
        (lambda: GroupLasso([[0], [1]], np.nan), r"weights\[0\] is nan"),
        (lambda: GroupLasso([[0], [1]]).check(np.ones(3)), r"the groups index 2 entries, x0 is \(3,\)"),
        (lambda: GroupLasso(LABELS).check(np.ones(12)), r"the group labels are \(4, 3\), x0 is \(12,\)"),
    ],
)
def test_bad_data_is_named_with_its_numbers(make, message):
    with pytest.raises(InputError, match=message):
        make()

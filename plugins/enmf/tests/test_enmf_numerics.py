"""The laws that the stages obey."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.optimize import check_grad, nnls

from infimum.errors import InputError
from infimum_enmf import descent, entry, exterior_start, kkt_residual, mapping, match_factors, recipes, rotation
from infimum_enmf.matrix import Matrix
from infimum_enmf.stages import PRESETS, Machine, resolve
from infimum_enmf.svd import balanced, truncated
from infimum_enmf.weights import nonnegative_least_squares


def run(X, rank, steps=2000, **options):
    """The states of a machine, until it settles."""
    data = Matrix(X)
    machine = Machine(data, rank, resolve("default", **options))
    at = machine.begin(np.zeros((X.shape[0], rank), X.dtype), np.zeros((X.shape[1], rank), X.dtype))
    states = [at]
    while len(states) < steps and not at.settled:
        at = machine.advance(at)
        states.append(at)
    return data, states


@pytest.fixture(scope="module")
def noisy():
    return recipes.low_rank(40, 30, 4, 20.0, 5)


@pytest.mark.parametrize(("shape", "rank"), [((30, 12), 4), ((12, 30), 4), ((9, 9), 9), ((12, 5), 5)])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
def test_the_svd_is_the_best_approximation(shape, rank, kind):
    X = np.random.default_rng(0).random(shape) * (np.random.default_rng(1).random(shape) < 0.7)
    tail = np.linalg.svd(X, compute_uv=False)[rank:]
    given_ = {"dense": X, "sparse": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[kind]
    found = truncated(Matrix(given_), rank)
    near = 1e-5 if kind == "float32" else 1e-10
    assert found.bound == pytest.approx(np.sqrt((tail**2).sum()), abs=near * np.linalg.norm(X))
    assert found.P.dtype == given_.dtype
    U, V = balanced(found)
    np.testing.assert_allclose(U @ V.T, (found.P * found.s) @ found.Q.T, atol=10 * near)


def test_arpack_serves_large_sparse_matrices():
    X = sparse.random(120, 80, 0.2, random_state=3, format="csr")
    found = truncated(Matrix(X), 5)
    tail = np.linalg.svd(X.toarray(), compute_uv=False)[5:]
    assert found.bound == pytest.approx(np.linalg.norm(tail), rel=1e-10)


def test_a_gram_matrix_that_loses_the_small_values_is_not_used():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    X = (Q * 10.0 ** -np.arange(20.0)) @ Q.T
    found = truncated(Matrix(X), 8)
    np.testing.assert_allclose(found.s, 10.0 ** -np.arange(8.0), rtol=1e-6)


@given(b=st.floats(-5, 5), t=st.floats(0.01, 2.0))
@settings(max_examples=60, deadline=None)
def test_shrink_is_the_prox_of_the_negative_part(b, t):
    grid = np.unique(np.concatenate([np.linspace(-8, 8, 4001), [0.0, b, b + t]]))
    scores = np.maximum(0, -grid) + (grid - b) ** 2 / (2 * t)
    assert rotation.shrink(np.array(b), t) == pytest.approx(grid[np.argmin(scores)], abs=1e-9)


def test_the_nearest_rotation_beats_a_thousand_others():
    rng = np.random.default_rng(2)
    M = rng.standard_normal((5, 5))
    R = rotation.nearest_rotation(M)
    np.testing.assert_allclose(R.T @ R, np.eye(5), atol=1e-12)
    others = np.linalg.qr(rng.standard_normal((1000, 5, 5)))[0]
    assert np.trace(R.T @ M) > np.einsum("kij,ij->k", others, M).max()


def test_the_rotation_keeps_the_best_and_the_product(noisy):
    found = truncated(Matrix(noisy), 4)
    U, V = balanced(found)
    W = np.vstack([U, V])
    at = rotation.start(W, 5.0)
    seen = [at.least]
    for _ in range(60):
        at = rotation.advance(W, at, 1, 0.0, 0, 0.0)
        seen.append(rotation.negative_mass(W @ at.R))
        assert at.least == pytest.approx(min(seen), rel=1e-12)
        np.testing.assert_allclose(at.R.T @ at.R, np.eye(4), atol=1e-12)
    assert rotation.negative_mass(W @ at.best) == pytest.approx(min(seen), rel=1e-12)
    np.testing.assert_allclose((U @ at.best) @ (V @ at.best).T, U @ V.T, atol=1e-10 * np.abs(noisy).max())


def test_the_plateau_rule_ends_the_rotation():
    W = np.vstack(balanced(truncated(Matrix(recipes.digits()[:200]), 8)))
    short = rotation.advance(W, rotation.start(W, 5.0), 4000, 0.0, 50, 1e-3)
    full = rotation.advance(W, rotation.start(W, 5.0), 600, 0.0, 0, 0.0)
    assert short.settled and 50 < short.steps < 400
    assert short.least <= 1.02 * full.least


def test_the_rotation_is_that_of_the_paper(noisy):
    W = np.vstack(balanced(truncated(Matrix(noisy), 4)))
    R, Y, rho, at = np.eye(4), np.ones_like(W), 5.0, rotation.start(W, 5.0)
    for _ in range(40):
        B = W @ R - Y / rho
        Z = np.where(B >= 0, B, np.where(-1 / rho <= B, 0.0, B + 1 / rho))
        dual = rho * np.linalg.norm(W @ R - Z)
        A, _, C = np.linalg.svd(W.T @ (Z + Y / rho))
        R = A @ C
        primal = np.linalg.norm(Z - W @ R)
        Y = Y + rho * (Z - W @ R)
        rho = rho * 1.1 if primal > 2 * dual else rho / 1.1 if dual > 2 * primal else rho
        at = rotation.advance(W, at, 1, 0.0, 0, 0.0)
        np.testing.assert_allclose(at.R, R, atol=1e-9)
        assert at.rho == pytest.approx(rho)


def test_rotation_in_pieces_is_the_same(noisy):
    W = np.vstack(balanced(truncated(Matrix(noisy), 4)))
    whole = rotation.advance(W, rotation.start(W, 5.0), 30, 0.0, 50, 1e-3)
    at = rotation.start(W, 5.0)
    for _ in range(3):
        at = rotation.advance(W, at, 10, 0.0, 50, 1e-3)
    np.testing.assert_array_equal(whole.R, at.R)


def test_the_gradient_of_the_map():
    rng = np.random.default_rng(4)
    U, V = rng.standard_normal((7, 3)), rng.standard_normal((6, 3))
    A = np.eye(3) + 0.2 * rng.standard_normal((3, 3))

    def value(x):
        return mapping.loss_and_gradient(U, V, x.reshape(3, 3))[0]

    def slope(x):
        return mapping.loss_and_gradient(U, V, x.reshape(3, 3))[1].ravel()

    assert check_grad(value, slope, A.ravel()) < 1e-6
    # Columns may be scaled freely: the loss does not see it.
    assert value((A * [2.0, 0.5, 7.0]).ravel()) == pytest.approx(value(A.ravel()), rel=1e-12)
    assert mapping.loss_and_gradient(U, V, np.zeros((3, 3)))[0] == np.inf


def test_the_map_finds_what_rotations_cannot():
    """Separable exact data: the error after the mapping is zero, that of the rotated pair is not."""
    X, U, V = recipes.separable(60, 50, 6, 0.3, 1)
    data, states = run(X, 6, 400)
    last = next(one for one in states if one.stage == "descent")
    rotated = next(one for one in reversed(states) if one.stage == "rotation")
    assert rotated.error > 1e-3 * data.norm
    assert last.error < 1e-7 * data.norm
    match = match_factors((last.U, last.V), (U, V))
    assert match.share == 1.0 and match.distances.max() < 1e-6


def test_the_walk_arrives_and_descends(noisy):
    data = Matrix(noisy)
    U, V = balanced(truncated(data, 4))
    at = entry.start(data, U, V, 20)
    assert not at.inside
    for _ in range(30):
        at = entry.advance(data, at, 1, 2, 20)
        if at.inside:
            break
    assert at.inside and at.rounds <= 20 and min(at.U.min(), at.V.min()) >= 0.0
    cut = data.error(np.maximum(U, 0), np.maximum(V, 0))
    assert data.error(at.U, at.V) < cut


def row_steps(A, B, X, enough):
    """The paper's row steps, a row at a time."""
    for _ in range(2):
        G = A @ (B.T @ B) - X @ B
        if np.linalg.norm(G[(A > 0) | ((A == 0) & (G < 0))]) <= enough:
            break
        new = A.copy()
        for i, g in enumerate(G):
            d = np.where(A[i] > 0, g, 0.0)
            new[i] -= d @ d / np.linalg.norm(B @ d) ** 2 * d if d.any() else 0.0
            new[i][(A[i] >= 0) & (new[i] < 0)] = 0.0
        A = new
    return A


def test_the_walk_is_that_of_the_paper(noisy):
    data = Matrix(noisy)
    U, V = balanced(truncated(data, 4))
    at, (du, dv) = entry.start(data, U, V, 10), (-U.min() / 10, -V.min() / 10)
    assert (at.step_u, at.step_v) == pytest.approx((du, dv))
    for _ in range(9):
        V = row_steps(np.where(V < 0, np.minimum(V + dv, 0), V), U, noisy.T, 0.2 * at.norm_v)
        U = row_steps(np.where(U < 0, np.minimum(U + du, 0), U), V, noisy, 0.2 * at.norm_u)
        at = entry.advance(data, at, 1, 2, 10)
        np.testing.assert_allclose(at.U, U, atol=1e-9)
        np.testing.assert_allclose(at.V, V, atol=1e-9)


@pytest.mark.parametrize("extrapolate", [False, True])
def test_the_descent_never_rises_and_becomes_stationary(noisy, extrapolate):
    data = Matrix(noisy)
    rng = np.random.default_rng(1)
    at = descent.start(data, rng.random((40, 4)), rng.random((30, 4)), extrapolate=extrapolate)
    errors = [at.error]
    for _ in range(1500):
        at = descent.advance(data, at, 2)
        errors.append(at.error)
    assert all(b <= a for a, b in itertools.pairwise(errors))
    assert data.residual(at.Ut.T, at.Vt.T) == pytest.approx(at.error, rel=1e-9)
    assert kkt_residual(noisy, at.Ut.T, at.Vt.T) < 1e-4


@given(A=arrays(np.float64, (6, 3), elements=st.floats(0, 4)), seed=st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_least_squares_is_that_of_scipy(A, seed):
    rng = np.random.default_rng(seed)
    B = rng.random((8, 3)) + 0.1 * np.eye(8, 3)
    X = A @ B.T + 0.3 * rng.standard_normal((6, 8))
    for factor in (B, np.hstack([B, B[:, :1], 0 * B[:, :1]])):  # The second one is singular.
        found = nonnegative_least_squares(X @ factor, factor.T @ factor)
        assert found.min() >= 0.0
        for row, wanted in zip(found, X, strict=True):
            expected = nnls(B, wanted)[1]
            assert np.linalg.norm(factor @ row - wanted) <= expected + 1e-7 * (1 + np.linalg.norm(wanted))


def test_least_squares_on_close_columns_and_an_early_end():
    rng = np.random.default_rng(0)
    B = rng.random((50, 30)) + 5.0  # All columns nearly parallel: sweeps alone take thousands of passes.
    X = rng.random((40, 30)) @ B.T + rng.standard_normal((40, 50))
    exact = np.array([nnls(B, row)[0] for row in X])
    np.testing.assert_allclose(nonnegative_least_squares(X @ B, B.T @ B), exact, atol=1e-9)
    calls = []
    early = nonnegative_least_squares(X @ B, B.T @ B, ended=lambda: calls.append(1) or True)
    assert len(calls) == 2 and early.min() >= 0.0
    assert np.linalg.norm(X - early @ B.T) > 1.001 * np.linalg.norm(X - exact @ B.T)
    warm = nonnegative_least_squares(X @ B, B.T @ B, start=exact, ended=lambda: True)
    np.testing.assert_allclose(warm, exact, atol=1e-9)


def test_kkt_residuals_see_columns_that_are_paired_with_zero(noisy):
    rng = np.random.default_rng(0)
    U, V = rng.random((40, 4)), rng.random((30, 4))
    assert kkt_residual(noisy, 0 * U, V) > 0.1 and kkt_residual(noisy, U, 0 * V) > 0.1
    assert kkt_residual(noisy, 0 * U, 0 * V) == 0.0
    # A stationary pair of rank 3 with a fourth column: stationary with zeros beside zeros, and with nothing else.
    data = Matrix(noisy)
    at = descent.start(data, U[:, :3], V[:, :3])
    for _ in range(800):
        at = descent.advance(data, at, 2)
    left, right = np.zeros((40, 4)), np.zeros((30, 4))
    left[:, :3], right[:, :3] = at.Ut.T, at.Vt.T
    assert kkt_residual(noisy, left, right) < 1e-4
    right[0, 3] = 1e-9
    plain = kkt_residual(noisy, left, right)
    assert plain > 1e-3
    right[0, 3] = 1e9
    assert kkt_residual(noisy, left, right) == pytest.approx(plain, rel=1e-6)
    assert kkt_residual(1024.0 * noisy, left, right * 1024.0) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize(
    ("U", "V", "said"),
    [
        (np.ones((30, 4)), np.ones((40, 4)), r"shapes \(30, 4\) and \(40, 4\); expected \(40, r\) and \(30, r\)"),
        (np.ones((40, 4)), np.ones((30, 3)), "shapes"),
        (-np.ones((40, 4)), np.ones((30, 4)), "160 negative entries"),
        (np.full((40, 4), np.nan), np.ones((30, 4)), "nan"),
        ("U", np.ones((30, 4)), "expected numbers"),
    ],
)
def test_bad_factors_are_named(noisy, U, V, said):
    with pytest.raises(InputError, match=said):
        kkt_residual(noisy, U, V)


def test_the_kkt_residual_takes_what_the_solvers_take(noisy):
    U, V = exterior_start(noisy, 4)
    plain = kkt_residual(noisy, U, V)
    for X in (noisy.tolist(), sparse.coo_matrix(noisy)):
        assert kkt_residual(X, U.tolist(), V) == pytest.approx(plain, rel=1e-9)
    assert kkt_residual(np.ones((3, 3), int), np.ones((3, 1)), np.ones((3, 1))) < 1e-12


def test_large_data_are_looked_at_after_every_step(noisy, monkeypatch):
    _, states = run(noisy, 4, 60, window=0)
    assert states[2].work.steps == 10
    monkeypatch.setattr("infimum_enmf.stages.WORK", 1.0)
    _, states = run(noisy, 4, 60, window=0)
    assert states[2].work.steps == 1


def test_dead_columns_stay_and_give_no_nan():
    X = np.outer(np.arange(1.0, 6.0), [1.0, 2.0, 0.0, 3.0])
    data, states = run(X, 3, 60)
    assert np.isfinite(states[-1].U).all() and np.isfinite(states[-1].V).all()
    assert states[-1].error < 1e-6 * data.norm


def test_zero_rows_and_columns_give_zero_factors():
    X = np.zeros((12, 10))
    X[:9, :8] = recipes.low_rank(9, 8, 3, 30.0, 1)
    _, states = run(X, 3, 400)
    assert np.abs(states[-1].U[9:]).max() < 1e-6 and np.abs(states[-1].V[8:]).max() < 1e-6


def test_uniform_factors_are_a_certified_optimum():
    X = recipes.low_rank(120, 120, 6, 40.0, 1)
    _, states = run(X, 6, 600)
    tail = np.linalg.svd(X, compute_uv=False)[6:]
    assert states[-1].settled
    assert states[-1].error == pytest.approx(np.linalg.norm(tail), rel=1e-8)


@pytest.mark.parametrize("options", [{}, {"mapping_steps": 0}, {"entry_steps": 0}, {"extrapolate": False}])
def test_feasible_and_above_the_bound_at_every_step(noisy, options):
    data, states = run(noisy, 5, 150, **options)
    for at in states[1:]:
        assert min(at.U.min(), at.V.min()) >= 0.0
        assert at.error >= at.bound * (1 - 1e-9)
        assert data.residual(at.U, at.V) == pytest.approx(at.error, rel=1e-8)


def test_invariances(noisy):
    def end(X):
        data, states = run(X, 4, 800)
        return states[-1].error / data.norm

    plain = end(noisy)
    order = np.random.default_rng(0).permutation(30)
    assert end(noisy[:, order]) == pytest.approx(plain, rel=1e-5)
    assert end(np.ascontiguousarray(noisy.T)) == pytest.approx(plain, rel=1e-3)
    assert end(1024.0 * noisy) == pytest.approx(plain, rel=1e-3)


def test_the_paper_preset_leaves_our_extensions_out():
    paper = PRESETS["paper"]
    assert (paper.window, paper.mapping_steps, paper.extrapolate, paper.entry_steps) == (0, 0, False, 100)
    with pytest.raises(InputError, match="preset='fsat'"):
        resolve("fsat")
    with pytest.raises(InputError, match="rho=0"):
        resolve("default", rho=0.0)
    for options in ({"rho": "a"}, {"window": 1.5}, {"extrapolate": "yes"}, {"passes": 0}, {"plateau": np.nan}):
        with pytest.raises(InputError, match=f"{next(iter(options))}="):
            resolve("default", **options)


@pytest.mark.parametrize(
    ("recipe", "arguments", "said"),
    [
        (recipes.low_rank, (20, 20, 3, np.nan, 1), "snr=nan"),
        (recipes.low_rank, (20, 20, 3, "a", 1), "snr='a'"),
        (recipes.low_rank, (0, 20, 3, 10.0, 1), "m=0"),
        (recipes.low_rank, (20, 20, 30, 10.0, 1), "rank=30"),
        (recipes.low_rank, (20, 20, 3, 10.0, -1), "seed=-1"),
        (recipes.separable, (20, 20, 3, 1.0, 1), "sparsity=1.0"),
        (recipes.separable, (20, 20, 3, np.nan, 1), "sparsity=nan"),
        (recipes.separable, (20, 2.5, 3, 0.1, 1), "n=2.5"),
    ],
)
def test_bad_recipes_are_named(recipe, arguments, said):
    with pytest.raises(InputError, match=said):
        recipe(*arguments)


@pytest.mark.parametrize("floor", [-1.0, np.nan, "a", None])
def test_a_bad_floor_is_named(noisy, floor):
    with pytest.raises(InputError, match="floor="):
        exterior_start(noisy, 3, floor=floor)


def test_the_start_serves_other_solvers(noisy):
    sklearn = pytest.importorskip("sklearn.decomposition")
    U, V = exterior_start(noisy, 4, floor=1e-3)
    assert U.min() > 0.0 and V.min() > 0.0
    data = Matrix(noisy)
    W, H, _ = sklearn.non_negative_factorization(
        noisy, U.copy(), V.T.copy(), n_components=4, init="custom", solver="mu", tol=0.0, max_iter=20
    )
    assert data.error(W, H.T) < data.error(U, V)


def test_errors_near_an_exact_fit_are_those_of_the_residual():
    X, U, V = recipes.separable(40, 30, 4, 0.2, 0)
    data = Matrix(X)
    V = V * (1 + 1e-10)
    assert data.error(U, V) == pytest.approx(1e-10 * data.norm, rel=1e-3)
    as_sparse = Matrix(sparse.csr_matrix(X))
    assert as_sparse.error(U, V) == pytest.approx(data.error(U, V), rel=1e-9)


def test_matching_sees_through_order_and_scale():
    rng = np.random.default_rng(0)
    U, V = rng.random((20, 5)), rng.random((15, 5))
    order, scale = rng.permutation(5), rng.random(5) + 0.5
    match = match_factors((U, V), ((U * scale)[:, order], (V / scale)[:, order]))
    assert match.share == 1.0 and match.distances.max() < 1e-12
    np.testing.assert_array_equal(order[match.columns], np.arange(5))
    with pytest.raises(InputError, match="same shapes"):
        match_factors((U, V), (U[:, :4], V[:, :4]))
    for other, said in [
        ((U, V[:, :3]), "the second factorization: U and V have shapes"),
        ((U * np.nan, V), "nan"),
        (U, "expected a pair"),
        (None, "expected a pair"),
        ((U, V, U), "expected a pair"),
    ]:
        with pytest.raises(InputError, match=said):
            match_factors((U, V), other)
    with pytest.raises(InputError, match="tol='x'"):
        match_factors((U, V), (U, V), tol="x")


def test_matching_takes_zero_terms_for_the_same():
    rng = np.random.default_rng(0)
    U, V = rng.random((20, 5)), rng.random((15, 5))
    dead, other = U.copy(), V.copy()
    dead[:, 2] = 0.0
    other[:, 4] = 0.0
    assert match_factors((dead, V), (dead, V)).share == 1.0
    assert match_factors((dead, V), (U, other)).share == pytest.approx(0.8)
    assert match_factors((dead, V), (U, V)).share == pytest.approx(0.8)

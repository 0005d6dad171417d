"""The mathematics: what the paper claims of a step, and what the arrangement of the products must not change."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum_pogo import best_lambda, gaps, polar, relative_gradient
from infimum_pogo.bases import vadam
from infimum_pogo.geometry import adjoint, defects, frobenius, tangent
from infimum_pogo.kernel import pogo_step
from infimum_pogo.landing import coefficients, land
from infimum_pogo.rivals import landing_step, riemannian_step
from infimum_pogo.small import is_small

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(0, 4)).map(lambda s: (s[0], s[1], s[1] + s[2]))
LAWS = settings(max_examples=20, deadline=None)


def gaussian(rng: np.random.Generator, shape: tuple[int, ...], kind: type = np.float64) -> Any:
    out = rng.standard_normal(shape).astype(kind)
    return out + 1j * rng.standard_normal(shape) if kind is np.complex128 else out


def feasible(rng: np.random.Generator, shape: tuple[int, ...], kind: type = np.float64) -> Any:
    return polar(gaussian(rng, shape, kind))


def orthogonal(rng: np.random.Generator, n: int) -> Any:
    return polar(rng.standard_normal((n, n)))


@LAWS
@given(SHAPES, st.integers(0, 2**20), st.sampled_from([np.float64, np.complex128]))
def test_relative_gradients_are_tangent_at_every_matrix(shape: Any, seed: int, kind: type) -> None:
    rng = np.random.default_rng(seed)
    X, D = gaussian(rng, shape, kind), gaussian(rng, shape, kind)
    R = relative_gradient(X, D)
    crossed = R @ adjoint(X)
    size = frobenius(X).max() ** 3 * frobenius(D).max()
    assert frobenius(crossed + adjoint(crossed)).max() <= 1e-14 * max(size, 1.0)


@LAWS
@given(SHAPES, st.integers(0, 2**20))
def test_the_leap_adds_exactly_the_square(shape: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, D = gaussian(rng, shape), gaussian(rng, shape)
    R = relative_gradient(X, D)
    M = X - 0.3 * R
    expected = X @ adjoint(X) + 0.09 * R @ adjoint(R)
    assert np.allclose(M @ adjoint(M), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize(("reach", "off"), [(0.1, 5e-3), (0.03, 1e-3), (0.01, 1e-3)])
def test_drift_is_of_fourth_order_with_ratio_one(reach: float, off: float) -> None:
    rng = np.random.default_rng(0)
    X, D = feasible(rng, (1, 6, 10)), gaussian(rng, (1, 6, 10))
    R = relative_gradient(X, D)
    lr = reach / np.linalg.norm(R[0], 2)
    square = R @ adjoint(R)
    predicted = 0.75 * lr**4 * frobenius(square @ square)
    ratio = gaps(pogo_step(X, D, lr, safe=None)) / predicted
    assert abs(ratio[0] - 1.0) < off


def test_the_best_landing_leaves_about_a_quarter() -> None:
    rng = np.random.default_rng(1)
    X, D = feasible(rng, (64, 6, 10)), gaussian(rng, (64, 6, 10))
    lr = 0.3 / float(np.linalg.norm(relative_gradient(X, D), 2, axis=(1, 2)).max())
    half, best = (gaps(pogo_step(X, D, lr, safe=None, landing=word)) for word in ("half", "optimal"))
    assert (best <= half * (1 + 1e-9)).all()
    assert 2.5 < np.median(half / best) < 8.0


def test_defects_shrink_quadratically_without_a_gradient() -> None:
    Q = feasible(np.random.default_rng(2), (1, 5, 8))
    X, seen = 1.2 * Q, []
    for _ in range(6):
        seen.append(float(gaps(X)[0]))
        X = pogo_step(X, 0.0 * X, 1.0)
    for before, after in itertools.pairwise(seen):
        assert after <= 0.75 * before**2 + 1e-14
    assert seen[-1] < 1e-14


@pytest.mark.parametrize(
    ("scale", "lands"),
    [(0.1, 1.0), (1.0, 1.0), (1.7, 1.0), (1.74, -1.0), (2.0, -1.0), (2.1, -1.0), (2.2, 1.0), (2.3, np.nan)],
)
def test_the_basin_of_the_landing(scale: float, lands: float) -> None:
    Q = feasible(np.random.default_rng(3), (1, 4, 4))
    X = scale * Q
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(60):
            X = land(X)
    if np.isnan(lands):
        assert not np.isfinite(X).all()
    else:
        assert np.allclose(X, lands * Q, atol=1e-12)


@pytest.mark.parametrize(
    ("reach", "safe", "fine"), [(1.3, None, True), (2.5, None, False), (2.5, 0.5, True), (1e3, 0.5, True)]
)
def test_long_steps_leave_the_basin_unless_guarded(reach: float, safe: float | None, fine: bool) -> None:
    rng = np.random.default_rng(4)
    X, D = feasible(rng, (1, 4, 7)), gaussian(rng, (1, 4, 7))
    lr = reach / np.linalg.norm(relative_gradient(X, D)[0], 2)
    with np.errstate(over="ignore", invalid="ignore"):
        X = pogo_step(X, D, lr, safe=safe)
        for _ in range(30):
            X = pogo_step(X, 0.0 * D, lr, safe=safe)
    assert bool(gaps(X).max() < 1e-12) is fine


def test_a_step_of_sqrt_two_takes_a_singular_value_to_its_edge() -> None:
    """M has singular values sqrt(1 + reach^2), and sqrt(3) lands on zero: rank is lost at reach = sqrt(2)."""
    X = np.zeros((1, 1, 2))
    X[0, 0, 0] = 1.0
    D = np.array([[[0.0, 2.0]]])  # R = D / 2 of norm one
    assert frobenius(pogo_step(X, D, np.sqrt(2.0), safe=None))[0] < 1e-15


@LAWS
@given(SHAPES, st.integers(0, 2**20), st.sampled_from(["sgd", "vadam"]))
def test_steps_commute_with_rotations(shape: Any, seed: int, base: str) -> None:
    rng = np.random.default_rng(seed)
    _, p, n = shape
    X, G = feasible(rng, shape), gaussian(rng, shape)
    O, Q = orthogonal(rng, p), orthogonal(rng, n)

    def step(X: Any, G: Any) -> Any:
        factor = 1.0 if base == "sgd" else vadam(G, {}, (0.9, 0.999), 1e-8, 0)[1][:, None, None]
        D = G if base == "sgd" else vadam(G, {}, (0.9, 0.999), 1e-8, 0)[0]
        return pogo_step(X, factor * D, 0.2)

    assert np.allclose(step(O @ X @ Q, O @ G @ Q), O @ step(X, G) @ Q, atol=1e-12)


def test_element_wise_adam_does_not_commute_with_rotations() -> None:
    rng = np.random.default_rng(5)
    X, G = feasible(rng, (1, 4, 6)), gaussian(rng, (1, 4, 6))
    O, Q = orthogonal(rng, 4), orthogonal(rng, 6)
    turned, plain = (pogo_step(*pair, 0.2) for pair in ((O @ X @ Q, np.sign(O @ G @ Q)), (X, np.sign(G))))
    assert np.abs(turned - O @ plain @ Q).max() > 0.05


@LAWS
@given(SHAPES, st.integers(0, 2**20), st.sampled_from(["half", "optimal"]), st.sampled_from([None, 0.5]))
def test_batched_equals_looped_and_real_equals_complex(shape: Any, seed: int, landing: str, safe: float | None) -> None:
    rng = np.random.default_rng(seed)
    X, D = feasible(rng, shape), gaussian(rng, shape)
    whole = pogo_step(X, D, 0.1, safe=safe, landing=landing)
    looped = np.concatenate(
        [pogo_step(x[None], d[None], 0.1, safe=safe, landing=landing) for x, d in zip(X, D, strict=True)]
    )
    assert np.allclose(whole, looped, atol=1e-13)
    wide = pogo_step(X + 0j, D + 0j, 0.1, safe=safe, landing=landing)
    assert np.abs(wide.imag).max() == 0.0 and np.allclose(wide.real, whole, atol=1e-13)


@pytest.mark.parametrize("shape", [(600, 3, 3), (2048, 4, 8), (1200, 2, 5)])
@pytest.mark.parametrize("landing", ["half", "optimal"])
def test_sweeps_over_many_small_matrices_equal_batched_products(shape: Any, landing: str) -> None:
    rng = np.random.default_rng(6)
    X, D = feasible(rng, shape), gaussian(rng, shape)
    assert is_small(X) and not is_small(X[:50])
    whole = pogo_step(X, D, 0.1, landing=landing)
    parts = np.concatenate(
        [pogo_step(X[k : k + 50], D[k : k + 50], 0.1, landing=landing) for k in range(0, len(X), 50)]
    )
    assert np.allclose(whole, parts, atol=1e-13)
    assert pogo_step(X, D, 0.1, landing=landing, out=X) is X and np.allclose(X, whole, atol=0)


@LAWS
@given(st.integers(1, 6), st.floats(1e-6, 0.9), st.integers(0, 2**20))
def test_the_landing_polynomial_is_the_defect(p: int, size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = (1.0 + size * rng.standard_normal((1, p, 1)) / 3) * feasible(rng, (1, p, p + 2))
    E = defects(M)
    *c, t2 = coefficients(E)
    for step in (0.0, 0.3, 0.5, 1.0):
        moved = M + step * (M - M @ adjoint(M) @ M)
        value = sum(c[k] * step**k for k in range(5)) * t2
        assert value[0] == pytest.approx(gaps(moved)[0] ** 2, rel=1e-6, abs=1e-13)


@LAWS
@given(st.integers(1, 6), st.floats(1e-9, 0.9), st.integers(0, 2**20))
def test_the_best_step_beats_a_fine_grid(p: int, size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = (1.0 + size * np.abs(rng.standard_normal((1, p, 1))) / 3) * feasible(rng, (1, p, p + 2))
    E = defects(M)
    best = float(best_lambda(E)[0])
    assert 0.0 <= best <= 1.0
    normal = M - M @ adjoint(M) @ M
    grid = np.linspace(0.0, 1.0, 501)[:, None, None]
    assert gaps(M + best * normal)[0] <= gaps(M + grid * normal).min() * (1 + 1e-3) + 1e-14


def test_the_best_step_is_one_half_where_there_is_nothing_to_land() -> None:
    Q = feasible(np.random.default_rng(7), (3, 4, 6))
    assert (best_lambda(defects(Q)) == 0.5).all() and (best_lambda(np.zeros((2, 4, 4))) == 0.5).all()


def test_optimal_landing_does_not_blow_up() -> None:
    """A closed-form root with the smallest imaginary part does, within some hundred steps."""
    rng = np.random.default_rng(8)
    for kind in (np.float32, np.float64):
        X = feasible(rng, (8, 6, 9)).astype(kind)
        worst = 0.0
        for _ in range(200):
            X = pogo_step(X, gaussian(rng, X.shape).astype(kind), 0.05, landing="optimal")
            worst = max(worst, float(gaps(X).max()))
        assert worst < 1e-2


def test_singular_values_below_the_edge_keep_the_component() -> None:
    rng = np.random.default_rng(9)
    X = feasible(rng, (300, 3, 3))
    before = np.linalg.slogdet(X)[0]
    for _ in range(50):
        X = pogo_step(X, gaussian(rng, X.shape), 5.0)
    assert (np.linalg.slogdet(X)[0] == before).all() and (before < 0).any() and (before > 0).any()


def test_landing_stays_within_its_radius_and_qr_on_the_set() -> None:
    rng = np.random.default_rng(10)
    for kind in (np.float64, np.complex128):
        X = Y = feasible(rng, (8, 4, 6), kind)
        worst = 0.0
        for _ in range(200):
            D = gaussian(rng, X.shape, kind)
            X, Y = landing_step(X, D, 5.0)[0], riemannian_step(Y, D, 5.0)
            worst = max(worst, float(gaps(X).max()))
        assert worst <= 0.5 + 1e-9 and gaps(Y).max() < 1e-13


def test_qr_retraction_agrees_with_the_tangent_to_first_order() -> None:
    rng = np.random.default_rng(11)
    for kind in (np.float64, np.complex128):
        X, D = feasible(rng, (3, 4, 6), kind), gaussian(rng, (3, 4, 6), kind)
        moved = (riemannian_step(X, D, 1e-6) - X) / -1e-6
        assert np.abs(moved - tangent(X, D)).max() < 1e-4

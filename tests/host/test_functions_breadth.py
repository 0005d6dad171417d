"""The wider list of functions: prox identities, CVXPY, differences, torch and float32; a new function is one line."""

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

from infimum.functions import (
    KL,
    L1,
    L21,
    TV1D,
    ElasticNet,
    Entropy,
    Function,
    GroupLasso,
    Hinge,
    Huber,
    LeastSquares,
    Linear,
    Linf,
    NuclearNorm,
    Quadratic,
    SquaredL2,
    total_variation,
)

RNG = np.random.default_rng(8)
FACTOR = RNG.standard_normal((5, 5))
P, LOW_RANK, q = FACTOR.T @ FACTOR + np.eye(5), FACTOR[:2].T @ FACTOR[:2], RNG.standard_normal(5)
COUNTS, CENTER, SIGNS = np.array([0.0, 1.0, 2.0, 0.5, 7.0]), np.arange(5.0), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
LABELS = np.array([[0, 0, 1], [1, 2, 2], [-1, 0, 1], [2, 2, 2]])
ORTHOGONAL = np.linalg.qr(RNG.standard_normal((5, 3)))[0].T


@dataclass(frozen=True)
class Case:
    """A function, the same as a CVXPY expression of u, the shape of x, and whether x must be positive."""

    f: Function
    expression: Callable[[Any, Any], Any]
    shape: tuple[int, ...] = (5,)
    positive: bool = False

    def point(self, seed: int, scale: float = 3.0) -> np.ndarray:
        x = scale * np.random.default_rng(seed).standard_normal(self.shape)
        return np.abs(x) + 0.1 if self.positive else x


def _groups(cp: Any, u: Any, weights: tuple[float, ...]) -> Any:
    return sum(w * cp.norm2(u[np.nonzero(g == LABELS)]) for g, w in enumerate(weights))


CASES = {
    "quadratic": Case(Quadratic(P, q, 2.0), lambda cp, u: cp.quad_form(u, P) / 2 + q @ u + 2.0),
    "quadratic low rank": Case(Quadratic(LOW_RANK), lambda cp, u: cp.sum_squares(FACTOR[:2] @ u) / 2),
    "quadratic sparse": Case(Quadratic(sp.coo_array(P), q), lambda cp, u: cp.quad_form(u, P) / 2 + q @ u),
    "linear": Case(Quadratic(np.zeros((5, 5)), q), lambda cp, u: q @ u),
    "linear form": Case(Linear(q, 2.0), lambda cp, u: q @ u + 2.0),
    "entropy and linear": Case(
        Entropy() + Linear(q).translate(1.0) + 0.3 * Linear(q) @ 2.0,
        lambda cp, u: -cp.sum(cp.entr(u)) + q @ (u - 1) + 0.6 * (q @ u),
        positive=True,
    ),
    "elastic net": Case(ElasticNet(0.7, 0.4), lambda cp, u: 0.7 * cp.norm1(u) + 0.2 * cp.sum_squares(u)),
    "elastic net without l2": Case(ElasticNet(0.7, 0.0), lambda cp, u: 0.7 * cp.norm1(u)),
    "huber": Case(Huber(0.8), lambda cp, u: cp.sum(cp.huber(u, 0.8)) / 2),
    "huber matrix": Case(Huber(), lambda cp, u: cp.sum(cp.huber(u, 1)) / 2, (4, 3)),
    "linf": Case(Linf(), lambda cp, u: cp.norm_inf(u)),
    "linf matrix": Case(Linf(), lambda cp, u: cp.max(cp.abs(u)), (4, 3)),
    "nuclear": Case(NuclearNorm(), lambda cp, u: cp.normNuc(u), (4, 3)),
    "nuclear wide": Case(NuclearNorm(), lambda cp, u: cp.normNuc(u), (2, 4)),
    "l21 rows": Case(L21(axis=1), lambda cp, u: cp.sum(cp.norm(u, 2, axis=1)), (4, 3)),
    "l21 columns": Case(L21(axis=-2), lambda cp, u: cp.sum(cp.norm(u, 2, axis=0)), (4, 3)),
    "groups": Case(
        GroupLasso([[3, 0], [1]], [0.5, 2.0], size=5), lambda cp, u: 0.5 * cp.norm2(u[[0, 3]]) + 2 * cp.abs(u[1])
    ),
    "groups weight 0": Case(
        GroupLasso([0, 0, 7, 7, 9], [1.0, 0.0, 2.0]), lambda cp, u: cp.norm2(u[:2]) + 2 * cp.abs(u[4])
    ),
    "groups matrix": Case(GroupLasso(LABELS), lambda cp, u: _groups(cp, u, (1.0, 1.0, 1.0)), (4, 3)),
    "tv": Case(TV1D(), lambda cp, u: cp.tv(u)),
    "tv long": Case(2.0 * TV1D(), lambda cp, u: 2.0 * cp.tv(u), (40,)),
    "tv of one entry": Case(TV1D(), lambda cp, u: 0.0 * cp.sum(u), (1,)),
    "entropy": Case(Entropy(), lambda cp, u: -cp.sum(cp.entr(u)), positive=True),
    "kl": Case(KL(COUNTS), lambda cp, u: cp.sum(cp.kl_div(COUNTS, u)), positive=True),
    "hinge": Case(Hinge(SIGNS), lambda cp, u: cp.sum(cp.pos(1 - cp.multiply(SIGNS, u))) / 5),
    "hinge sum": Case(Hinge(SIGNS > 0, "sum"), lambda cp, u: cp.sum(cp.pos(1 - cp.multiply(SIGNS, u)))),
    "scaled huber at a point": Case(
        (0.5 * Huber(0.3)).translate(CENTER), lambda cp, u: cp.sum(cp.huber(u - CENTER, 0.3)) / 4
    ),
    "tight map": Case(GroupLasso([[0, 2]], size=3) @ ORTHOGONAL, lambda cp, u: cp.norm2((ORTHOGONAL @ u)[[0, 2]])),
    "l1 and square": Case(L1() + 0.6 * SquaredL2(), lambda cp, u: cp.norm1(u) + 0.3 * cp.sum_squares(u)),
    "hinge and squares": Case(
        SquaredL2().translate(CENTER) + Hinge(SIGNS) + 2.0 * (SquaredL2() @ -0.5).translate(1.0),
        lambda cp, u: (
            cp.sum_squares(u - CENTER) / 2 + cp.sum(cp.pos(1 - cp.multiply(SIGNS, u))) / 5 + cp.sum_squares(u - 1.0) / 4
        ),
    ),
    "ridge": Case(
        LeastSquares(FACTOR, q) + 0.1 * SquaredL2(),
        lambda cp, u: cp.sum_squares(FACTOR @ u - q) / 10 + cp.sum_squares(u) / 20,
    ),
    "squares": Case(
        SquaredL2() + SquaredL2().translate(CENTER), lambda cp, u: (cp.sum_squares(u) + cp.sum_squares(u - CENTER)) / 2
    ),
    "tv of an image": Case(
        total_variation((4, 3), isotropic=False),
        lambda cp, u: cp.sum(cp.abs(u[1:] - u[:-1])) + cp.sum(cp.abs(u[:, 1:] - u[:, :-1])),
        (4, 3),
    ),
    "isotropic tv of an image": Case(
        total_variation((4, 3)),
        lambda cp, u: cp.tv(u) + cp.sum(cp.abs(u[1:, -1] - u[:-1, -1])) + cp.sum(cp.abs(u[-1, 1:] - u[-1, :-1])),
        (4, 3),
    ),
}
PROXIMAL = [name for name, case in CASES.items() if "prox" in case.f.capabilities]
CONJUGATE = [name for name, case in CASES.items() if "prox_conjugate" in case.f.capabilities]
SMOOTH = [name for name, case in CASES.items() if "gradient" in case.f.capabilities]
every = pytest.mark.parametrize
seeds, steps = st.integers(0, 10**6), st.floats(1e-3, 1e3)


@every("name", PROXIMAL)
@settings(max_examples=12, deadline=None)
@given(seed=seeds, t=steps, scale=st.sampled_from([0.0, 0.1, 3.0, 100.0]))
def test_the_prox_is_a_point_with_its_subgradient(name, seed, t, scale):
    case = CASES[name]
    v = scale * np.random.default_rng(seed).standard_normal(case.shape)
    p = case.f.prox(v, t)
    slope, low = (v - p) / t, case.f.value(p)
    for u in (case.point(seed + 1), p + 1e-3 * case.point(seed + 2), np.zeros(case.shape), 1.1 * p, 0.9 * p):
        bound = low + float(np.sum(slope * (u - p)))
        size = 1 + abs(low) + float(np.sum(np.abs(slope * (u - p)))) + scale
        assert case.f.value(u) >= bound - 1e-9 * size


@every("name", PROXIMAL)
@settings(max_examples=10, deadline=None)
@given(seed=seeds, t=steps)
def test_the_prox_contracts_by_what_strong_convexity_promises(name, seed, t):
    case = CASES[name]
    v, w = case.point(seed), case.point(seed + 1)
    p, r = case.f.prox(v, t), case.f.prox(w, t)
    moved = float(np.sum((p - r) ** 2))
    inner = float(np.sum((p - r) * (v - w)))
    assert (1 + t * case.f.strongly_convex) * moved <= inner + 1e-9 * (1 + abs(inner))


@every("name", CONJUGATE)
@settings(max_examples=10, deadline=None)
@given(seed=seeds, s=steps)
def test_moreau_decomposition(name, seed, s):
    case = CASES[name]
    v = case.point(seed)
    assert np.allclose(case.f.prox_conjugate(v, s) + s * case.f.prox(v / s, 1 / s), v, atol=1e-9 * (1 + s))


def test_where_prox_conjugate_is_in_closed_form():
    without = {name.partition(" ")[0] for name in set(PROXIMAL) - set(CONJUGATE)}
    assert without == {"quadratic", "linear", "tv", "entropy", "tight", "l1", "hinge", "ridge", "squares"}
    assert {"hinge", "kl", "huber", "linf", "nuclear", "groups", "l21 rows", "elastic net"} <= set(CONJUGATE)


@every("name", CASES)
def test_prox_and_value_agree_with_cvxpy(name):
    cp = pytest.importorskip("cvxpy")
    case, u = CASES[name], cp.Variable(CASES[name].shape)
    expression = case.expression(cp, u)
    for seed, t in ((1, 0.7), (2, 0.05), (3, 4.0)):
        v = case.point(seed)
        u.value = v
        assert case.f.value(v) == pytest.approx(float(expression.value), rel=1e-9, abs=1e-12)
        if name in PROXIMAL:
            v = v - 1.0 if case.positive else v
            cp.Problem(cp.Minimize(expression + cp.sum_squares(u - v) / (2 * t))).solve(
                solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
            )
            assert np.allclose(case.f.prox(v, t), u.value, atol=2e-5)


@every("name", SMOOTH)
def test_derivatives_against_central_differences(name):
    case, h = CASES[name], 1e-5
    f, x, v = case.f, case.point(4) + (0.5 if case.positive else 0.0), RNG.standard_normal(case.shape)
    basis = (h * np.eye(x.size)).reshape((-1, *case.shape))
    numeric = np.array([f.value(x + e) - f.value(x - e) for e in basis]).reshape(case.shape) / (2 * h)
    assert np.allclose(f.gradient(x), numeric, atol=1e-6)
    value, gradient = f.value_and_gradient(x)
    assert value == pytest.approx(f.value(x), rel=1e-12)
    assert np.allclose(gradient, f.gradient(x), rtol=1e-12, atol=1e-14)
    numeric = (f.gradient(x + h * v) - f.gradient(x - h * v)) / (2 * h)
    assert np.allclose(f.hvp(x, v), numeric, atol=1e-6)
    if "hessian" in f.capabilities:
        assert np.allclose(f.hessian(x) @ v, f.hvp(x, v), atol=1e-12)


@every("name", [name for name in SMOOTH if CASES[name].f.lipschitz is not None])
def test_lipschitz_constant_bounds_the_curvature(name):
    case = CASES[name]
    pairs = [(case.point(seed), case.point(seed + 1)) for seed in range(0, 60, 2)]
    ratios = [np.linalg.norm(case.f.gradient(x) - case.f.gradient(y)) / np.linalg.norm(x - y) for x, y in pairs]
    assert max(ratios) <= case.f.lipschitz * (1 + 1e-9)


@every("name", CASES)
def test_values_is_value_at_each_point(name):
    case = CASES[name]
    X = np.stack([case.point(seed) for seed in range(4)])
    assert case.f.values(X).shape == (4,)
    assert np.allclose(case.f.values(X), [case.f.value(x) for x in X], rtol=1e-12)


def calls(f: Function, x: Any, v: Any) -> dict[str, Any]:
    """What each capability that gives arrays returns."""
    known = {"gradient": (x,), "prox": (v, 0.5), "prox_conjugate": (v, 0.5), "hvp": (x, v), "values": (x[None],)}
    return {name: getattr(f, name)(*known[name]) for name in sorted(f.capabilities & set(known))}


@every("name", CASES)
def test_float32_stays_float32_and_points_are_left_as_they_are(name):
    case = CASES[name]
    x, v = case.point(5).astype(np.float32), np.float32(2.0) * RNG.standard_normal(case.shape).astype(np.float32)
    before, f = (x.copy(), v.copy()), case.f.to(x)
    assert f.value(x) == pytest.approx(case.f.value(x.astype(float)), rel=1e-4, abs=1e-5)
    wide = calls(case.f, x.astype(float), v.astype(float))
    for capability, out in calls(f, x, v).items():
        assert out.dtype == np.float32, capability
        assert np.allclose(out, wide[capability], rtol=2e-4, atol=2e-4), capability
    assert np.array_equal(x, before[0])
    assert np.array_equal(v, before[1])


@every("name", [name for name in CASES if "sparse" not in name])
@every("dtype", ["float32", "float64"])
def test_torch_agrees_with_numpy(name, dtype):
    torch = pytest.importorskip("torch")
    case = CASES[name]
    x, v = case.point(6), RNG.standard_normal(case.shape)
    tx, tv = (torch.tensor(one, dtype=getattr(torch, dtype)) for one in (x, v))
    f, loose = case.f.to(tx), 5e-4 if dtype == "float32" else 1e-9
    assert f.value(tx) == pytest.approx(case.f.value(x), rel=loose, abs=loose)
    expected = calls(case.f, x, v)
    for capability, out in calls(f, tx, tv).items():
        assert isinstance(out, torch.Tensor), capability
        assert out.dtype == tx.dtype, capability
        assert np.allclose(out.numpy(), expected[capability], rtol=loose, atol=loose), capability


@every("name", PROXIMAL)
def test_nan_is_passed_on(name):
    case = CASES[name]
    v = case.point(7)
    v.flat[0] = np.nan
    assert np.isnan(case.f.prox(v, 0.5)).any()
    if name not in ("groups weight 0", "tv of one entry"):
        assert np.isnan(case.f.value(v))


@every("name", CASES)
def test_functions_survive_pickling_and_say_their_name(name):
    case = CASES[name]
    x = case.point(9)
    twin = pickle.loads(pickle.dumps(case.f))
    assert twin.value(x) == case.f.value(x)
    assert repr(twin) == repr(case.f)
    assert "object at" not in repr(case.f)
    assert case.f.convex

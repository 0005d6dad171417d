"""Closed forms: values, gradients and prox against definitions, CVXPY and themselves; what bad data is told."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from infimum.errors import InputError, UnknownNameError
from infimum.functions import L1, L2, Function, LeastSquares, Logistic, SquaredL2, Zero

RNG = np.random.default_rng(3)
TALL, WIDE = RNG.standard_normal((12, 5)), RNG.standard_normal((3, 5))
WEIGHTS = np.array([0.0, 0.5, 1.0, 2.0, 3.0])

PROXIMAL = {
    "l1": L1(),
    "l1 weights": L1(WEIGHTS),
    "l2": L2(),
    "squared l2": SquaredL2(),
    "zero": Zero(),
    "least squares tall": LeastSquares(TALL, TALL.sum(axis=1)),
    "least squares wide": LeastSquares(WIDE, WIDE.sum(axis=1), reduction="sum"),
    "least squares sparse": LeastSquares(sp.csr_array(TALL), TALL.sum(axis=1)),
    "least squares sparse wide": LeastSquares(sp.csc_array(WIDE), WIDE.sum(axis=1)),
    "scaled": 0.3 * L1(WEIGHTS),
    "scaled to nothing": 0.0 * L1(),
    "translated": L2().translate(np.arange(5.0)),
    "translated by a number": L1().translate(2.0),
    "scaled and translated": (2.0 * L1()).translate(np.arange(5.0)),
    "tight map": L1() @ np.linalg.qr(np.random.default_rng(1).standard_normal((5, 3)))[0].T,
    "multiple of the identity": L1().translate(np.arange(5.0)) @ -2.0,
}
CONJUGATE = {name: f for name, f in PROXIMAL.items() if "prox_conjugate" in f.capabilities}
SMOOTH = {
    "least squares": LeastSquares(TALL, TALL.sum(axis=1)),
    "least squares sparse": LeastSquares(sp.coo_array(TALL), TALL.sum(axis=1), reduction="sum"),
    "logistic": Logistic(TALL, TALL[:, 0] > 0),
    "logistic sparse": Logistic(sp.csr_matrix(TALL), np.sign(TALL[:, 0]), reduction="sum"),
    "squared l2": SquaredL2(),
    "sum": LeastSquares(TALL, TALL[:, 0]) + 0.1 * SquaredL2(),
    "negative scale": -2.0 * SquaredL2(),
    "translated": Logistic(TALL, TALL[:, 0] > 0).translate(np.arange(5.0)),
    "composed": SquaredL2().translate(np.arange(12.0)) @ TALL,
    "composed twice": LeastSquares(TALL[:, :3], TALL[:, 0]) @ WIDE @ 0.5,
    "zero": Zero(),
}
every = pytest.mark.parametrize
points = arrays(float, 5, elements=st.floats(-10, 10, allow_subnormal=False))
steps = st.floats(1e-3, 1e3)


@every("name", PROXIMAL)
@settings(max_examples=25, deadline=None)
@given(v=points, other=points, t=steps)
def test_prox_beats_other_points(name, v, other, t):
    f = PROXIMAL[name]
    p = f.prox(v, t)

    def objective(u):
        return f.value(u) + float((u - v) @ (u - v)) / (2 * t)

    best = objective(p)
    for u in (v, other, p + 1e-3 * other, np.zeros(5)):
        assert best <= objective(u) + 1e-9 * (1 + abs(best))


@every("name", PROXIMAL)
@settings(max_examples=20, deadline=None)
@given(v=points, w=points, t=steps)
def test_prox_is_firmly_nonexpansive(name, v, w, t):
    f = PROXIMAL[name]
    gap = f.prox(v, t) - f.prox(w, t)
    assert float(gap @ gap) <= float(gap @ (v - w)) + 1e-9 * (1 + float((v - w) @ (v - w)))


@every("name", CONJUGATE)
@settings(max_examples=20, deadline=None)
@given(v=points, s=steps)
def test_moreau_decomposition(name, v, s):
    f = CONJUGATE[name]
    assert np.allclose(f.prox_conjugate(v, s) + s * f.prox(v / s, 1 / s), v, atol=1e-9 * (1 + s))


def test_where_prox_conjugate_is_in_closed_form():
    assert set(CONJUGATE) == {
        *("l1", "l1 weights", "l2", "squared l2", "zero"),
        *("scaled", "scaled to nothing", "translated", "translated by a number", "scaled and translated"),
    }


@every("name", ["l1", "l1 weights", "l2", "squared l2", "least squares tall", "least squares wide", "tight map"])
def test_prox_and_value_agree_with_cvxpy(name):
    cp = pytest.importorskip("cvxpy")
    v, t, u = np.array([3.0, -1.0, 0.2, 2.0, -4.0]), 0.7, cp.Variable(5)
    f = PROXIMAL[name]
    expression = {
        "l1": lambda: cp.norm1(u),
        "l1 weights": lambda: cp.sum(cp.multiply(WEIGHTS, cp.abs(u))),
        "l2": lambda: cp.norm2(u),
        "squared l2": lambda: 0.5 * cp.sum_squares(u),
        "least squares tall": lambda: cp.sum_squares(TALL @ u - TALL.sum(axis=1)) / 24,
        "least squares wide": lambda: cp.sum_squares(WIDE @ u - WIDE.sum(axis=1)) / 2,
        "tight map": lambda: cp.norm1(f.map.operator @ u),
    }[name]()
    cp.Problem(cp.Minimize(expression + cp.sum_squares(u - v) / (2 * t))).solve(solver="CLARABEL")
    assert np.allclose(f.prox(v, t), u.value, atol=1e-5)
    u.value = v
    assert f.value(v) == pytest.approx(float(expression.value), rel=1e-9)


def test_logistic_value_agrees_with_cvxpy():
    cp = pytest.importorskip("cvxpy")
    x, y = np.array([1.0, -2.0, 0.5, 3.0, 0.0]), np.where(TALL[:, 1] > 0, 1.0, -1.0)
    expected = float(cp.sum(cp.logistic(cp.multiply(-y, TALL @ cp.Constant(x)))).value)
    assert Logistic(TALL, y, reduction="sum").value(x) == pytest.approx(expected, rel=1e-12)
    assert Logistic(TALL, y).value(x) == pytest.approx(expected / 12, rel=1e-12)


@every("name", SMOOTH)
def test_derivatives_against_central_differences(name):
    f, x, v, h = SMOOTH[name], RNG.standard_normal(5), RNG.standard_normal(5), 1e-5
    basis = np.eye(5) * h
    numeric = np.array([f.value(x + e) - f.value(x - e) for e in basis]) / (2 * h)
    assert np.allclose(f.gradient(x), numeric, atol=1e-7)
    value, gradient = f.value_and_gradient(x)
    assert value == pytest.approx(f.value(x), rel=1e-12)
    assert np.allclose(gradient, f.gradient(x), rtol=1e-12, atol=1e-14)
    numeric = (f.gradient(x + h * v) - f.gradient(x - h * v)) / (2 * h)
    assert np.allclose(f.hvp(x, v), numeric, atol=1e-7)


@every("f", [*SMOOTH.values(), *PROXIMAL.values()], ids=[*SMOOTH, *PROXIMAL])
def test_values_is_value_at_each_point(f):
    X = RNG.standard_normal((4, 5))
    assert f.values(X).shape == (4,)
    assert np.allclose(f.values(X), [f.value(x) for x in X], rtol=1e-12)


@every("name", [name for name in SMOOTH if name != "negative scale"])
def test_lipschitz_constant_bounds_the_curvature(name):
    f = SMOOTH[name]
    largest = max(
        np.linalg.norm(f.gradient(x) - f.gradient(y)) / np.linalg.norm(x - y)
        for x, y in (RNG.standard_normal((2, 5)) for _ in range(50))
    )
    assert largest <= f.lipschitz * (1 + 1e-9)


def test_lipschitz_constant_of_least_squares_is_tight():
    f = LeastSquares(TALL, TALL[:, 0])
    assert f.lipschitz == pytest.approx(np.linalg.norm(TALL, 2) ** 2 / 12, rel=1e-12)
    sparse = LeastSquares(sp.csr_array(TALL), TALL[:, 0])
    assert f.lipschitz <= sparse.lipschitz <= f.lipschitz * (1 + 3e-6)


def test_residual_and_jacobian_of_least_squares():
    f, x, v, u = LeastSquares(TALL, TALL[:, 0]), RNG.standard_normal(5), RNG.standard_normal(5), RNG.standard_normal(12)
    r, jacobian = f.residual(x), f.jacobian(x)
    assert 0.5 * float(r @ r) == pytest.approx(f.value(x))
    assert np.allclose(jacobian.T @ r, f.gradient(x))
    assert np.allclose(f.jvp(x, v), jacobian @ v)
    assert np.allclose(f.vjp(x, u), jacobian.T @ u)


def test_logistic_is_stable_at_both_ends():
    f = Logistic(np.array([[1.0], [-1.0]]), [1, 0], reduction="sum")
    assert f.value(np.array([-1e4])) == 2e4
    assert f.value(np.array([40.0])) == pytest.approx(2 * np.exp(-40.0), rel=1e-12)
    for dtype in (np.float32, np.float64):
        g = f.to(np.zeros(1, dtype))
        for x in (-1e4, 1e4):
            value, gradient = g.value_and_gradient(np.array([x], dtype))
            assert value == pytest.approx(2e4 if x < 0 else 0.0, abs=1e-30)
            assert gradient[0] == pytest.approx(-2.0 if x < 0 else 0.0, abs=1e-30)


@every("labels", [[0, 1, 1], [-1, 1, 1], [False, True, True], np.float32([0, 1, 1])])
def test_logistic_takes_both_kinds_of_labels(labels):
    assert Logistic(np.eye(3), labels).y.tolist() == [-1.0, 1.0, 1.0]


def test_the_prox_keeps_a_factorization_per_step_and_drops_it_with_the_dtype():
    f, v = LeastSquares(TALL, TALL[:, 0]), np.ones(5)
    first = f.prox(v, 0.5)
    (factor,) = f._factors.values()
    f.prox(2 * v, 0.5)
    assert list(f._factors.values()) == [factor]
    for t in range(1, 10):
        f.prox(v, float(t))
    assert len(f._factors) == 4
    assert np.array_equal(f.prox(v, 0.5), first)
    single = f.to(v.astype(np.float32))
    assert single.prox(v.astype(np.float32), 0.5).dtype == np.float32
    assert np.allclose(single.prox(v.astype(np.float32), 0.5), first, atol=1e-5)
    assert np.array_equal(f.prox(v, 0.5), first)


@every("t", [1.0, 1e6, 1e12])
@every("dense", [np.asarray, sp.csr_array])
def test_a_long_step_leaves_alone_what_the_rows_do_not_see(t, dense):
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((4, 9)), rng.standard_normal(4)
    unseen = np.eye(9) - np.linalg.pinv(A) @ A
    v = unseen @ rng.standard_normal(9)
    u = LeastSquares(dense(A), b).prox(v, t)
    assert unseen @ u == pytest.approx(v, abs=1e-13)
    if t == 1e12:
        assert u == pytest.approx(v + np.linalg.pinv(A) @ b, abs=1e-9)


def test_a_spectral_norm_is_computed_once_and_survives_a_change_of_dtype():
    f = LeastSquares(TALL, TALL[:, 0])
    known = f.lipschitz
    single = f.to(np.zeros(5, np.float32))
    assert single.A.dtype == np.float32
    assert single.lipschitz == known


def test_a_function_with_a_factorization_can_be_pickled():
    f = LeastSquares(sp.csr_array(TALL), TALL[:, 0])
    p = f.prox(np.ones(5), 0.5)
    assert np.allclose(pickle.loads(pickle.dumps(f)).prox(np.ones(5), 0.5), p)


FLOATING = {**SMOOTH, **PROXIMAL}


@every("name", FLOATING)
def test_float32_stays_float32(name):
    x = RNG.standard_normal(5).astype(np.float32)
    f = FLOATING[name].to(x)
    for capability in f.capabilities & {"gradient", "prox", "prox_conjugate", "hvp", "values"}:
        arguments = {"prox": (x, 0.5), "prox_conjugate": (x, 0.5), "hvp": (x, x), "values": (x[None],)}
        assert getattr(f, capability)(*arguments.get(capability, (x,))).dtype == np.float32, capability
    assert f.value(x) == pytest.approx(FLOATING[name].value(x.astype(float)), rel=1e-4, abs=1e-5)


@every("name", [name for name in FLOATING if "sparse" not in name])
@every("dtype", ["float32", "float64"])
def test_torch_agrees_with_numpy(name, dtype):
    torch = pytest.importorskip("torch")
    f, x = FLOATING[name], np.linspace(-2.0, 3.0, 5)
    tx = torch.tensor(x, dtype=getattr(torch, dtype))
    g, loose = f.to(tx), 1e-4 if dtype == "float32" else 1e-9
    assert g.value(tx) == pytest.approx(f.value(x), rel=loose, abs=loose)
    for capability in f.capabilities & {"gradient", "prox", "prox_conjugate", "hvp", "values"}:
        shape = {"prox": (0.5,), "prox_conjugate": (0.5,)}.get(capability, ())
        numpy_args = (x, x) if capability == "hvp" else (x[None],) if capability == "values" else (x, *shape)
        torch_args = (tx, tx) if capability == "hvp" else (tx[None],) if capability == "values" else (tx, *shape)
        out = getattr(g, capability)(*torch_args)
        assert isinstance(out, torch.Tensor)
        assert out.dtype == tx.dtype
        assert np.allclose(out.numpy(), getattr(f, capability)(*numpy_args), rtol=loose, atol=loose), capability


@every("name", FLOATING)
def test_points_are_left_as_they_are(name):
    f, x = FLOATING[name], np.linspace(-2.0, 3.0, 5)
    before = x.copy()
    for capability in f.capabilities & {"value", "gradient", "value_and_gradient", "prox", "prox_conjugate"}:
        getattr(f, capability)(*((x, 0.5) if capability.startswith("prox") else (x,)))
        assert np.array_equal(x, before), capability


def test_penalties_take_points_of_any_shape():
    X = RNG.standard_normal((3, 2))
    for f in (L1(), L1(np.abs(X)), L2(), SquaredL2()):
        assert f.prox(X, 0.1).shape == (3, 2)
        assert np.allclose(f.values(np.stack([X, 2 * X])), [f.value(X), f.value(2 * X)])


def test_a_zero_weight_leaves_an_entry_alone():
    v = np.array([0.5, 0.5])
    assert L1([0.0, 1.0]).prox(v, 1.0).tolist() == [0.5, 0.0]


def test_nan_is_passed_on():
    v = np.array([np.nan, 1.0])
    for f in (L1(), L2(), SquaredL2()):
        assert np.isnan(f.prox(v, 0.5)[0])
        assert np.isnan(f.prox_conjugate(v, 0.5)[0])
        assert np.isnan(f.value(v))


NAN = TALL.copy()
NAN[3, 1] = np.nan
HOLE = sp.csr_array(NAN)
OPERATOR = sp.linalg.aslinearoperator(TALL)


@every(
    ("make", "message"),
    [
        (
            lambda: LeastSquares(np.ones((442, 10)), np.ones(441)),
            r"A is \(442, 10\), b is \(441,\); expected b of shape",
        ),
        (lambda: LeastSquares(np.ones((4, 2)), np.ones((4, 1))), r"A is \(4, 2\), b is \(4, 1\)"),
        (lambda: LeastSquares(np.ones(4), np.ones(4)), r"A is \(4,\); expected a matrix"),
        (lambda: LeastSquares(np.ones((0, 3)), []), r"b is empty"),
        (lambda: LeastSquares(np.ones((0, 3)), [1.0]), r"A is empty: its shape is \(0, 3\)"),
        (lambda: LeastSquares(NAN, np.ones(12)), r"A\[3, 1\] is nan; clean"),
        (lambda: LeastSquares(HOLE, np.ones(12)), r"A\[3, 1\] is nan; clean"),
        (lambda: LeastSquares(TALL, np.r_[np.ones(10), np.inf, np.nan]), r"b\[10\] is inf \(2 such entries\)"),
        (lambda: LeastSquares(TALL * 1j, np.ones(12)), r"A is complex \(\(12, 5\) complex128\); expected real"),
        (lambda: LeastSquares(TALL, np.ones(12) * 1j), r"b is complex"),
        (lambda: LeastSquares([["a", "b"]], [1.0]), r"A holds <U1 entries; expected numbers"),
        (lambda: LeastSquares([[1.0, 2.0], [3.0]], [1.0, 2.0]), r"A is no array of numbers"),
        (lambda: LeastSquares(TALL, np.ones(12), reduction="avg"), r"reduction is 'avg'; there are: mean, sum"),
        (lambda: LeastSquares(TALL, np.ones(12), reduction="means"), r"did you mean 'mean'\?"),
        (lambda: LeastSquares(OPERATOR, np.ones(12)), r"translate\(b\) @ A"),
        (lambda: Logistic(np.eye(3), [1, 2, 2]), r"y holds the labels 1, 2; expected -1 and \+1, or 0 and 1"),
        (lambda: Logistic(np.eye(3), [-1, 0, 1]), r"y holds the labels -1, 0, 1"),
        (lambda: Logistic(np.eye(3), ["M", "B", "B"]), r"y holds the labels B, M"),
        (lambda: Logistic(np.ones((9, 1)), np.arange(9)), r"labels 0, 1, 2, 3, 4, 5, …;"),
        (lambda: Logistic(np.eye(3), [0, 1]), r"A is \(3, 3\), y is \(2,\)"),
        (lambda: Logistic(np.eye(3), []), r"y is empty"),
        (lambda: L1(-1.0), r"weights is -1.0; expected finite numbers >= 0"),
        (lambda: L1([1.0, -2.0]), r"weights\[1\] is -2.0"),
        (lambda: L1(float("nan")), r"weights is nan"),
        (lambda: L1([1.0, np.nan]), r"weights\[1\] is nan"),
        (lambda: LeastSquares(np.ones((442, 10)), np.ones(442)).check(np.ones(9)), r"A is \(442, 10\), x0 is \(9,\)"),
        (lambda: LeastSquares(TALL, TALL[:, 0]).check(np.ones(5) * 1j), r"real points, x0 is complex"),
        (lambda: L1().check(np.ones(5) * 1j), r"L1\(\) is defined for real points"),
        (lambda: L1(WEIGHTS).check(np.ones(4)), r"weights is \(5,\), x0 is \(4,\)"),
        (lambda: Function(), r"offers nothing"),
        (lambda: Function(gradient=3), r"gradient=3\): a capability is a callable, got int"),
        (lambda: Function(value=abs, lipschitz=-1.0), r"lipschitz=-1.0\): expected a finite number >= 0"),
        (lambda: Function(value=abs, strongly_convex=np.inf), r"strongly_convex=inf"),
        (lambda: Function(value=abs, gradeint=abs), r"no argument 'gradeint'; did you mean 'gradient'"),
        (
            lambda: Function(value=abs, shape=(3,)).check(np.ones(2)),
            r"Function\(value\) is declared for x of shape \(3,\)",
        ),
    ],
)
def test_bad_input_is_named_with_its_numbers(make, message):
    with pytest.raises(InputError, match=message) as caught:
        make()
    assert not isinstance(caught.value, UnknownNameError)


def test_sparse_data_and_torch_points_do_not_mix():
    torch = pytest.importorskip("torch")
    f = LeastSquares(sp.csr_array(TALL), TALL[:, 0])
    with pytest.raises(InputError, match=r"\(12, 5\) float64 is a SciPy sparse matrix"):
        f.to(torch.zeros(5))


def test_data_is_converted_only_where_it_has_to_be():
    assert LeastSquares(TALL, TALL[:, 0]).A is TALL
    assert LeastSquares(np.eye(3, dtype=int), [1, 2, 3]).b.dtype == np.float64
    assert LeastSquares(np.eye(3, dtype=np.float32), np.ones(3)).b.dtype == np.float32
    f = LeastSquares(TALL, TALL[:, 0])
    assert f.to(np.ones(5)) is f


def test_a_users_function_offers_what_it_was_given():
    f = Function(value=lambda x: float(x @ x), gradient=lambda x: 2 * x, extra={"oracle_of_delphi": print})
    assert f.capabilities == {"value", "gradient", "oracle_of_delphi"}
    assert f.gradient(np.ones(2)).tolist() == [2.0, 2.0]
    assert f.to(np.ones(2, np.float32)) is f
    assert repr(f) == "Function(value, gradient, oracle_of_delphi)"

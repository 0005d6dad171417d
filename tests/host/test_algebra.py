"""Laws of the algebra: what sums, scalings, translations and compositions offer, and by which rule."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from infimum.errors import InputError
from infimum.functions import L1, L2, Function, LeastSquares, Linear, LinearMap, Logistic, SquaredL2, Zero
from infimum.functions.algebra import Scaled, Sum, Translated
from infimum.functions.derived import Composed
from infimum.testing import check_function

RNG = np.random.default_rng(5)
A = RNG.standard_normal((6, 4))
TIGHT = 2.0 * np.linalg.qr(RNG.standard_normal((4, 3)))[0].T
x = RNG.standard_normal(4)
loss = LeastSquares(A, A[:, 0])


def test_a_sum_offers_what_all_summands_offer():
    assert (loss + Logistic(A, [0, 1, 0, 1, 0, 1])).capabilities == {
        *("value", "values", "gradient", "value_and_gradient", "hvp"),
    }
    assert (loss + 0.1 * L1()).capabilities == {"value", "values"}
    assert (loss + Function(value=np.sum)).capabilities == {"value"}


def test_sums_are_flat_and_add_values_and_facts():
    f = loss + SquaredL2() + 2.0 * SquaredL2()
    assert isinstance(f, Sum)
    assert len(f.functions) == 3
    assert f.value(x) == pytest.approx(loss.value(x) + 1.5 * float(x @ x))
    assert f.lipschitz == pytest.approx(loss.lipschitz + 3.0)
    assert f.strongly_convex == 3.0
    assert f.convex
    assert (loss + Function(value=np.sum, lipschitz=1.0)).convex is None
    assert (loss + Function(value=np.sum)).lipschitz is None
    assert f.how["gradient"] == "sum"
    assert sum([loss, SquaredL2()]).value(x) == pytest.approx(loss.value(x) + 0.5 * float(x @ x))
    assert (loss - SquaredL2()).value(x) == pytest.approx(loss.value(x) - 0.5 * float(x @ x))
    assert (loss - SquaredL2()).convex is None


def test_a_sum_names_the_summand_that_a_point_does_not_fit():
    with pytest.raises(InputError, match=r"A is \(6, 4\), x0 is \(3,\)"):
        (L1() + loss).check(np.ones(3))


@pytest.mark.parametrize("scale", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)])
def test_numbers_of_every_kind_scale_from_both_sides(scale):
    for f in (scale * L1(), L1() * scale, L1() / (1 / scale)):
        assert isinstance(f, Scaled)
        assert f.value(x) == pytest.approx(2 * float(np.abs(x).sum()))


def test_scales_merge_and_one_disappears():
    f = 0.5 * (4.0 * L1())
    assert repr(f) == "2 * L1()"
    assert f.function.capabilities == L1().capabilities
    g = L1()
    assert 1.0 * g is g
    assert repr(-2 * (L1() + L2())) == "-2 * (L1() + L2())"


def test_a_negative_scale_keeps_derivatives_but_no_prox_and_no_convexity():
    f = -1.0 * SquaredL2()
    assert f.capabilities == {"value", "values", "gradient", "value_and_gradient", "hvp"}
    assert f.convex is None
    assert f.strongly_convex == 0.0
    assert f.lipschitz == 1.0


def test_a_zero_scale_is_the_zero_function():
    for f in (0.0 * L2(), 0 * (2.0 * SquaredL2() @ A), 0 * Function(value=lambda x: 1 / 0), 0 * L1() @ A):
        assert f.convex
        assert f.lipschitz == 0.0
        assert f.prox(x, 3.0).tolist() == x.tolist()
        assert f.value(x) == 0.0
        assert f.gradient(x).tolist() == [0.0] * 4
    with pytest.raises(InputError, match=r"the linear map is \(6, 4\), x0 is \(5,\)"):
        (0 * SquaredL2() @ A).check(np.ones(5))
    with pytest.raises(InputError, match=r"may be inf, and 0 \* inf is no number; leave the term out"):
        0 * Function(prox=lambda v, t: v, extended=True)


def test_scaling_and_translation_name_their_rule():
    assert (2.0 * L1()).how == {"prox": "scaling", "prox_conjugate": "scaling"}
    assert L1().translate(x).how == {"prox": "translation", "prox_conjugate": "translation"}
    assert (L1() @ TIGHT).how == {"prox": "semi-orthogonal map"}
    assert set((SquaredL2() @ A).how) == {"gradient", "value_and_gradient", "hvp"}


def test_translation_moves_the_argument():
    b = np.arange(4.0)
    f = LeastSquares(A, A[:, 0]).translate(b)
    assert isinstance(f, Translated)
    assert f.value(x) == pytest.approx(loss.value(x - b))
    assert np.allclose(f.gradient(x), loss.gradient(x - b))
    assert f.lipschitz == loss.lipschitz
    with pytest.raises(InputError, match=r"the translation is \(4,\), x0 is \(5,\)"):
        L1().translate(b).check(np.ones(5))
    with pytest.raises(InputError, match=r"the translation\[1\] is nan"):
        L1().translate([0.0, np.nan])
    with pytest.raises(InputError, match=r"translated by finite numbers, got inf"):
        L1().translate(np.inf)


@pytest.mark.parametrize(
    "make",
    [
        lambda: 0.5 * (SquaredL2() @ A),
        lambda: (SquaredL2() @ A).translate(np.arange(4.0)),
        lambda: 3.0 * (SquaredL2() @ A).translate(2.0) * 0.5,
        lambda: SquaredL2() @ A @ np.eye(4) @ 2.0,
    ],
)
def test_the_map_stays_outermost(make):
    f = make()
    assert isinstance(f, Composed)
    assert not isinstance(f.function, Composed)
    assert f.shape == (4,)


def test_the_map_outermost_does_not_change_the_function():
    b = np.arange(4.0)
    direct = 3.0 * SquaredL2().value(A @ (x - b))
    assert (3.0 * (SquaredL2() @ A).translate(b)).value(x) == pytest.approx(direct)
    assert (SquaredL2() @ A).translate(2.0).value(x) == pytest.approx(SquaredL2().value(A @ (x - 2.0)))
    assert (SquaredL2() @ A @ (2.0 * np.eye(4))).value(x) == pytest.approx(SquaredL2().value(2 * A @ x))


def test_composition_with_the_identity_is_the_function():
    f = L1()
    assert f @ 1.0 is f


def test_a_prox_passes_only_through_a_semi_orthogonal_map():
    assert "prox" in (L1() @ TIGHT).capabilities
    assert "prox" not in (L1() @ A).capabilities
    assert "prox" not in (L1() @ TIGHT.T).capabilities
    assert "prox" in (L1() @ sp.csr_array(np.eye(4)[:2])).capabilities
    operator = sp.linalg.aslinearoperator(TIGHT)
    assert "prox" not in (L1() @ operator).capabilities
    declared = L1() @ LinearMap(operator, tight=4.0)
    assert np.allclose(declared.prox(x, 0.3), (L1() @ TIGHT).prox(x, 0.3))
    with pytest.raises(InputError, match="no closed-form prox"):
        (L1() @ A).prox(x, 1.0)


@pytest.mark.parametrize("name", ["l1", "l2", "scaled", "translated"])
def test_prox_under_a_semi_orthogonal_map_agrees_with_cvxpy(name):
    cp = pytest.importorskip("cvxpy")
    u, t, b = cp.Variable(4), 0.3, np.array([1.0, 0.0, -2.0])
    f, expression = {
        "l1": (L1(), cp.norm1(TIGHT @ u)),
        "l2": (L2(), cp.norm2(TIGHT @ u)),
        "scaled": (0.5 * L1([1.0, 0.0, 2.0]), 0.5 * cp.abs(TIGHT @ u) @ np.array([1.0, 0.0, 2.0])),
        "translated": (L1().translate(b), cp.norm1(TIGHT @ u - b)),
    }[name]
    cp.Problem(cp.Minimize(expression + cp.sum_squares(u - x) / (2 * t))).solve(solver="CLARABEL")
    assert np.allclose((f @ TIGHT).prox(x, t), u.value, atol=1e-6)


def test_facts_under_a_map():
    f = SquaredL2() @ A
    assert f.lipschitz == pytest.approx(np.linalg.norm(A, 2) ** 2)
    assert f.strongly_convex == 0.0
    assert f.convex
    assert f.shape == (4,)
    assert (Function(value=np.sum) @ A).lipschitz is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: (L1() @ A).check(np.ones(3)), r"the linear map is \(6, 4\), x0 is \(3,\); expected 4 entries"),
        (lambda: (L1() @ A).check(np.float64(1.0)), r"the linear map is \(6, 4\), x0 is \(\)"),
        (lambda: loss @ np.eye(3), r"the linear map is \(3, 3\), A is \(6, 4\); expected 4 rows"),
        (lambda: L1([1.0, 2.0]) @ A, r"the linear map is \(6, 4\), weights is \(2,\); expected 2 rows"),
        (lambda: L1() @ A @ np.eye(3), r"maps of shapes \(6, 4\) and \(3, 3\) do not compose"),
        (lambda: L1().translate(np.ones(5)) @ A, r"map is \(6, 4\), the translation is \(5,\); expected 5 rows"),
        (lambda: np.inf * L1(), r"scaled by a finite number, got inf"),
        (lambda: np.nan * L1(), r"scaled by a finite number, got nan"),
        (lambda: L1() / 0, r"L1\(\) / 0"),
        (lambda: Sum([]), r"at least one function"),
    ],
)
def test_bad_combinations_say_which_numbers_clash(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("make", [lambda: L1() + 1, lambda: L1() * "2", lambda: L1() * True, lambda: x * L1()])
def test_what_does_not_combine_is_a_type_error(make):
    with pytest.raises(TypeError):
        make()


def test_a_matrix_argument_goes_through_a_map():
    X = RNG.standard_normal((4, 3))
    f = SquaredL2() @ A
    f.check(X)
    assert f.value(X) == pytest.approx(0.5 * float(np.sum((A @ X) ** 2)))
    assert np.allclose(f.gradient(X), A.T @ (A @ X))
    assert np.allclose(f.values(np.stack([X, 2 * X])), [f.value(X), f.value(2 * X)])


def test_every_combination_moves_to_torch_as_a_whole():
    torch = pytest.importorskip("torch")
    tx = torch.tensor(x)
    f = 2.0 * ((loss + SquaredL2()).translate(np.ones(4)) + SquaredL2() @ A @ np.eye(4))
    g = f.to(tx)
    assert g.value(tx) == pytest.approx(f.value(x))
    assert np.allclose(g.gradient(tx).numpy(), f.gradient(x))
    assert g.lipschitz == pytest.approx(f.lipschitz)


def test_zero_is_neutral():
    assert (loss + Zero()).value(x) == loss.value(x)
    assert Zero().prox(x, 1.0).tolist() == x.tolist()
    assert Zero().violation(x) == 0.0


def test_subgradients_add_scale_and_follow_the_chain_rule():
    f = Function(value=lambda x: float(np.abs(x).sum()), subgradient=np.sign, convex=True)
    g = 2.0 * (f + f).translate(np.ones(6)) @ A
    assert "subgradient" in g.capabilities
    assert np.allclose(g.subgradient(x), 4.0 * A.T @ np.sign(A @ x - 1.0))
    assert "subgradient" not in (-1.0 * f).capabilities


def test_hessians_add_and_scale():
    f = Function(value=lambda x: float(x @ x), hessian=lambda x: 2.0 * np.eye(4))
    assert np.allclose((3.0 * (f + f)).translate(x).hessian(x), 12.0 * np.eye(4))


SQUARES = LeastSquares(A, A[:, 0] + 1.0)


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (0.3 * SQUARES, lambda u: 0.3 * SQUARES.value(u)),
        (SQUARES.translate(np.arange(4.0)), lambda u: SQUARES.value(u - np.arange(4.0))),
        ((2.0 * SQUARES).translate(0.5), lambda u: 2.0 * SQUARES.value(u - 0.5)),
    ],
    ids=["scaled", "translated", "both"],
)
def test_half_a_squared_residual_stays_one(f, value):
    r, (B, y) = f.residual(x), f.linear_system(x)
    assert 0.5 * r @ r == pytest.approx(value(x))
    assert np.allclose(B @ x - y, r)
    assert check_function(f, x).ok


def test_what_squares_lose():
    assert not (-1.0 * SQUARES).capabilities & {"residual", "jacobian", "jvp", "vjp", "linear_system"}
    assert "residual" not in (SQUARES + SQUARES).capabilities


@pytest.mark.parametrize(
    "f",
    [
        Linear([1.0, 2.0, 0.0, -1.0], 3.0) + 2.0 * Linear(np.ones(4)),
        -3.0 * Linear(np.arange(4.0), 1.0),
        Linear(np.arange(4.0), 1.0).translate(0.5),
        Linear(np.arange(4.0), 1.0).translate(np.arange(4.0)),
        Linear(np.arange(6.0)) @ A,
        0.0 * Linear(np.ones(4), 1.0),
    ],
    ids=repr,
)
def test_what_is_made_of_linear_functions_is_linear(f):
    c, r = f.coefficients(x)
    for u in (x, np.zeros(4)):
        assert c @ u + r == pytest.approx(f.value(u))
    assert np.allclose(c, f.gradient(x))


def _noisy(scale):
    """A quadratic whose gradient can be had with noise."""
    return Function(
        value=lambda u: 0.5 * scale * float(u @ u),
        gradient=lambda u: scale * u,
        sample_gradient=lambda u, rng: scale * u + 0.1 * rng.standard_normal(u.shape),
    )


@pytest.mark.parametrize(
    "f",
    [_noisy(1.0) + _noisy(2.0), -2.0 * _noisy(1.0), _noisy(1.0).translate(np.arange(4.0)), _noisy(1.0) @ A],
    ids=["sum", "scaled", "translated", "mapped"],
)
def test_gradient_estimates_stay_unbiased(f):
    assert "sample_gradient" in f.capabilities
    assert check_function(f, x).ok

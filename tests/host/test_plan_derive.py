"""Exact derivations: each rule against the definition, and the search through them against a fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infimum.constraints import Box
from infimum.functions import L1, Function, LeastSquares
from infimum.plan.derive import RULES, barred, derive, obtain

RNG = np.random.default_rng(4)
A = RNG.standard_normal((5, 3))
LOSS = LeastSquares(A, A[:, 0])
x, v = RNG.standard_normal((2, 3))
NAMES = sorted({rule.supplies for rule in RULES} | {need for rule in RULES for need in rule.needs} | {"evaluate"})


def made(name, body, offers):
    """The capability, made from those in `offers` alone."""
    found = derive(name, offers)
    assert found is not None
    return obtain(found, lambda one: getattr(body, one)), found


def test_value_and_gradient_from_the_pair_and_back():
    pair, found = made("value_and_gradient", LOSS, {"value", "gradient"})
    assert pair(x)[0] == LOSS.value(x)
    np.testing.assert_array_equal(pair(x)[1], LOSS.gradient(x))
    assert (found.labels, found.leaves) == (("value and gradient",), {"value", "gradient"})
    value, _ = made("value", LOSS, {"value_and_gradient"})
    gradient, found = made("gradient", LOSS, {"value_and_gradient"})
    assert value(x) == LOSS.value(x)
    np.testing.assert_array_equal(gradient(x), LOSS.gradient(x))
    assert found.labels == ("second of value_and_gradient",)


def test_value_from_a_batch_of_one():
    value, _ = made("value", LOSS, {"values"})
    assert value(x) == pytest.approx(LOSS.value(x))
    pair, found = made("value_and_gradient", LOSS, {"values", "gradient"})
    assert pair(x)[0] == pytest.approx(LOSS.value(x))
    assert found.labels == ("batch of one", "value and gradient")


def test_hessian_vector_products():
    hessian = A.T @ A / 5
    f = Function(hessian=lambda x: hessian)
    product, _ = made("hvp", f, {"hessian"})
    np.testing.assert_allclose(product(x, v), LOSS.hvp(x, v))


@pytest.mark.parametrize("f", [L1(0.7), LOSS], ids=["l1", "least squares"])
@pytest.mark.parametrize("s", [0.3, 1.0, 4.0])
def test_moreau(f, s):
    conjugate, found = made("prox_conjugate", f, {"prox"})
    assert found.labels == ("Moreau",)
    np.testing.assert_allclose(conjugate(v, s) + s * f.prox(v / s, 1 / s), v)
    if "prox_conjugate" in f.capabilities:
        np.testing.assert_allclose(conjugate(v, s), f.prox_conjugate(v, s), atol=1e-12)


def test_sets_have_a_prox_a_conjugate_prox_and_a_step():
    box = Box(-0.5, 0.5)
    prox, found = made("prox", box, {"project"})
    assert found.labels == ("projection",)
    np.testing.assert_array_equal(prox(v, 3.0), box.project(v))
    step, _ = made("step", box, {"project"})
    np.testing.assert_array_equal(step(x, v), box.project(x + v))
    conjugate, found = made("prox_conjugate", box, {"project"})
    assert found.labels == ("projection", "Moreau")
    np.testing.assert_allclose(conjugate(v, 2.0), v - 2.0 * box.project(v / 2.0))


def test_what_is_there_is_taken_as_it_is():
    found = derive("prox_conjugate", {"prox", "prox_conjugate"})
    assert found is not None
    assert (found.rule, found.labels, found.leaves) == (None, (), {"prox_conjugate"})


def test_moreau_is_for_convex_functions():
    assert barred(L1()) == frozenset()
    assert barred(Function(prox=lambda v, t: v)) == frozenset()
    never = barred(Function(prox=lambda v, t: v, convex=False))
    assert derive("prox_conjugate", {"prox"}, never) is None
    assert derive("prox", {"project"}, never) is not None
    assert derive("prox_conjugate", {"prox_conjugate"}, never) is not None


def test_nothing_passes_through_what_is_left_out():
    assert derive("prox_conjugate", {"project"}, frozenset({"prox"})) is None
    assert derive("value", {"value_and_gradient"}, frozenset({"gradient"})) is not None


@given(st.sets(st.sampled_from(NAMES)))
def test_it_finds_everything_that_follows_and_makes_it_from_what_is_there(offers):
    follows = set(offers)
    while more := {rule.supplies for rule in RULES if set(rule.needs) <= follows} - follows:
        follows |= more
    for name in NAMES:
        found = derive(name, offers)
        assert (found is not None) == (name in follows), name
        if found is not None:
            asked = []
            obtain(found, lambda one, asked=asked: asked.append(one) or (lambda *args: None))
            assert set(asked) == found.leaves <= offers

"""The regularized policy against its optimality conditions and CVXPY; the split of budgets against its law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum.errors import InputError
from infimum_rmcts import choose, regularized_policy, split_budget


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Any, Any, float, float]:
    """A node: Q, a positive prior, simulations, c."""
    actions = draw(st.integers(2, 12))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1, 1, actions)
    if draw(st.booleans()):
        q = np.round(q)  # ties
    prior = rng.dirichlet(np.full(actions, draw(st.sampled_from([0.3, 1.0, 5.0])))) + 1e-6
    return q, prior / prior.sum(), draw(st.floats(1, 1e5)), draw(st.floats(0.01, 10))


@given(nodes())
@settings(deadline=None)
def test_it_is_a_policy_that_satisfies_the_optimality_conditions(node: Any) -> None:
    q, prior, n, c = node
    p, lam = regularized_policy(q, prior, n, c), c / np.sqrt(n)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert (p > 0).all()
    scores = q + lam * prior / p
    assert np.ptp(scores) <= 1e-8
    u = scores.mean()
    assert (q + lam * prior).max() - 1e-9 <= u <= q.max() + lam + 1e-9
    assert p @ q >= prior @ q - 1e-12


@given(nodes(), st.floats(-3, 3), st.floats(0.1, 10))
@settings(deadline=None)
def test_it_does_not_see_shifts_and_common_scales(node: Any, shift: float, scale: float) -> None:
    q, prior, n, c = node
    p = regularized_policy(q, prior, n, c)
    np.testing.assert_allclose(regularized_policy(q + shift, prior, n, c), p, atol=1e-7)
    np.testing.assert_allclose(regularized_policy(scale * q, prior, n, scale * c), p, atol=1e-7)


@given(nodes())
@settings(deadline=None)
def test_its_limits_are_the_prior_and_the_best_action(node: Any) -> None:
    q, prior, _, c = node
    np.testing.assert_allclose(regularized_policy(q, prior, 1e-12, 10.0), prior, atol=1e-4)
    np.testing.assert_allclose(regularized_policy(np.full_like(q, 0.3), prior, 50.0, c), prior, atol=1e-12)
    greedy = regularized_policy(q, prior, 1e16, c)
    assert greedy[q == q.max()].sum() == pytest.approx(1.0, abs=1e-3 if np.ptp(q) else 1e-9) or _close(q)


def _close(q: Any) -> bool:
    """Whether the second best is so near that the limit is not reached."""
    ordered = np.unique(q)
    return len(ordered) > 1 and bool(ordered[-1] - ordered[-2] < 1e-3)


# Its own tolerance is beyond what the solver always reaches; the comparison below decides.
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("seed", range(12))
def test_it_agrees_with_cvxpy(seed: int) -> None:
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(seed)
    actions, n, c = int(rng.integers(2, 9)), float(rng.integers(1, 500)), float(rng.uniform(0.3, 4))
    q, prior = rng.uniform(-1, 1, actions), rng.dirichlet(np.ones(actions))
    lam = c / np.sqrt(n)
    for divergence in ("kl_prior_first", "kl_policy_first"):
        p = cvxpy.Variable(actions)
        pair = (prior, p) if divergence == "kl_prior_first" else (p, prior)
        objective = q @ p - lam * cvxpy.sum(cvxpy.kl_div(*pair))
        problem = cvxpy.Problem(cvxpy.Maximize(objective), [cvxpy.sum(p) == 1])
        options = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
        problem.solve(solver="CLARABEL", **options)
        found = regularized_policy(q, prior, n, c, divergence=divergence)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, p.value, atol=1e-6)


def test_priors_that_are_next_to_nothing_count() -> None:
    """For two actions d solves a quadratic; in units of lam, with gap g and prior w of the better one."""
    for w in (1e-6, 1e-20, 1e-60):
        for g in (2.0, 10.0, 1e4):
            p = regularized_policy([g, 0.0], [w, 1.0], 1.0, 1.0)
            # w / d + (1 - w) / (g + d) = 1, multiplied out: d^2 + (g - 1) d - w g = 0.
            b = g - 1.0
            d = 2.0 * w * g / (b + np.sqrt(b * b + 4.0 * w * g))
            np.testing.assert_allclose(p[0], w / d, rtol=1e-9)


def test_masked_actions_get_nothing_and_rows_are_independent() -> None:
    rng = np.random.default_rng(0)
    q, prior = rng.uniform(-1, 1, (50, 6)), rng.dirichlet(np.ones(6), 50)
    mask = rng.random((50, 6)) < 0.6
    mask[:, 2] = True
    n = rng.integers(1, 1000, 50)
    q[~mask] = np.nan
    whole = regularized_policy(q, prior, n, 1.5, mask)
    assert (whole[~mask] == 0).all()
    for k in range(50):
        own = mask[k]
        alone = regularized_policy(q[k][own], prior[k][own], n[k], 1.5)
        np.testing.assert_allclose(whole[k][own], alone, atol=1e-10)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"c": 0.0}, "c=0.0"),
        ({"n": 0}, "expected one number > 0"),
        ({"prior": [0.5, -0.5]}, "prior must be finite and >= 0"),
        ({"prior": [0.5, np.nan]}, "prior must be finite"),
        ({"prior": [1.0]}, "expected the same"),
        ({"q": [np.nan, 0.0]}, "q must be finite"),
        ({"mask": [False, False]}, "row 0 has no action"),
        ({"divergence": "l2"}, "kl_prior_first"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], said: str) -> None:
    given_: dict[str, Any] = {"q": [0.0, 1.0], "prior": [0.5, 0.5], "n": 4, "c": 1.0, **changed}
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        regularized_policy(**given_)


@given(st.integers(1, 10), st.integers(0, 5000), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_budgets_are_split_completely_and_nearly_in_proportion(actions: int, budget: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(actions, 0.5), 7)
    prior[rng.random(prior.shape) < 0.3] = 0.0
    prior[:, 0] += 1e-3
    prior /= prior.sum(axis=1, keepdims=True)
    budgets = np.full(7, budget)
    counts = split_budget(prior, budgets, rng.random(7))
    assert (counts.sum(axis=1) == budget).all()
    assert (counts >= 0).all()
    assert (np.abs(counts - budget * prior) < 1 + 1e-9 * budget).all()
    assert (counts[prior == 0] == 0).all()


@pytest.mark.parametrize("last", [1e-18, 4e-16])
def test_rounding_neither_loses_nor_adds_a_simulation(last: float) -> None:
    """Priors whose running sums pass 1 before the last action, x just at the edge."""
    rng = np.random.default_rng(4)
    prior = np.concatenate([rng.dirichlet(np.ones(39), 4000), np.full((4000, 1), last)], axis=1)
    assert (np.cumsum(prior, axis=1)[:, -2] > 1.0).sum() > 100
    counts = split_budget(prior, np.full(4000, 10**6), np.zeros(4000))
    assert (counts >= 0).all()
    assert (counts.sum(axis=1) == 10**6).all()


def test_the_split_is_unbiased() -> None:
    prior = np.array([0.07, 0.11, 0.5, 0.02, 0.3])
    x = (np.arange(20_000) + 0.5) / 20_000  # a grid of the uniform numbers: the mean over it is exact up to 1/20000
    counts = split_budget(np.tile(prior, (len(x), 1)), np.full(len(x), 17), x)
    np.testing.assert_allclose(counts.mean(axis=0), 17 * prior, atol=1e-3)


def test_choose_is_greedy_at_zero_and_draws_in_proportion_else() -> None:
    policy = np.array([0.1, 0.6, 0.3])
    assert choose(policy, 0.0) == 1
    draws = choose(np.tile(policy, (40_000, 1)), 1.0, rng=0)
    np.testing.assert_allclose(np.bincount(draws, minlength=3) / 40_000, policy, atol=0.012)
    sharp = policy**2 / (policy**2).sum()
    draws = choose(np.tile(policy, (40_000, 1)), 0.5, rng=1)
    np.testing.assert_allclose(np.bincount(draws, minlength=3) / 40_000, sharp, atol=0.012)
    assert (choose(np.tile([0.0, 1.0, 0.0], (100, 1)), 5.0, rng=2) == 1).all()
    with pytest.raises(InputError, match="temperature=-1"):
        choose(policy, -1)
    with pytest.raises(InputError, match="give rng"):
        choose(policy, 1.0)

"""log h, expected improvement and the index against mpmath, their laws, and their gradients against differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum.errors import InputError
from infimum_costbo import inverse_log_h, log_ei, log_ei_gradient, log_ei_per_cost, log_h, pbgi, pbgi_gradient
from infimum_costbo.lognormal import log_gain

mpmath: Any = pytest.importorskip("mpmath")

WARPS = pytest.mark.parametrize("warp", [None, "log"])
NUMBERS = st.floats(-5.0, 5.0)
SPREADS = st.floats(1e-3, 3.0)
COSTS = st.floats(1e-3, 1e3)


def exact_log_h(z: float) -> Any:
    z = mpmath.mpf(z)
    if z > -1000:
        with mpmath.workdps(60):
            # Phi(z) cancels against phi(z) for large -z, hence the digits.
            return mpmath.log(mpmath.npdf(z) * (1 + z * _mills(-z)))
    terms = [(-1) ** k * mpmath.fac2(2 * k + 1) / z ** (2 * k) for k in range(12)]
    return -z * z / 2 - mpmath.log(2 * mpmath.pi) / 2 - 2 * mpmath.log(-z) + mpmath.log(sum(terms))


def _mills(x: Any) -> Any:
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(x / mpmath.sqrt(2)) * mpmath.exp(x * x / 2)


def test_log_h_is_accurate_over_the_whole_range() -> None:
    z = np.concatenate([-np.logspace(-3, 11, 240), -np.array([0.999, 1.0, 1.001, 29.99, 30.0, 30.01, 99999.0, 1e5])])
    z = np.concatenate([z, np.linspace(-1.5, 8.0, 120), [20.0, 300.0]])
    with mpmath.workdps(60):
        worst = max(abs((mpmath.mpf(float(a)) - e) / e) for a, e in zip(log_h(z), map(exact_log_h, z), strict=True))
    assert worst < 1e-12
    assert np.all(np.diff(log_h(np.sort(z))) >= 0)
    assert math.isnan(float(log_h(math.nan)))


def test_slopes_far_out() -> None:
    for z in (-3.0, -29.9, -30.1, -100.0, -1e5, -1e9):
        x = mpmath.mpf(-z)
        with mpmath.workdps(60):
            powers = [(-1) ** k / x ** (2 * k) for k in range(12)]
            mills = _mills(x) if x < 200 else sum(p * mpmath.fac2(2 * k - 1) for k, p in enumerate(powers)) / x
            h = 1 - x * mills if x < 200 else sum(p * mpmath.fac2(2 * k + 1) for k, p in enumerate(powers)) / x**2
        _, by_mean, by_sd = log_ei_gradient(-z, 1.0, 0.0)
        assert float(by_mean) == pytest.approx(-float(mills / h), rel=1e-10)
        assert float(by_sd) == pytest.approx(float(1 / h), rel=1e-10)


def test_inverse_log_h() -> None:
    k = np.concatenate([-np.logspace(-3, math.log10(5000), 200), np.linspace(-3.0, 30.0, 150), [-1e8, 200.0]])
    z = inverse_log_h(k)
    assert np.all(np.abs(log_h(z) - k) <= 1e-13 * np.maximum(1.0, np.abs(k)))
    assert inverse_log_h(np.array([-math.inf]))[0] == -math.inf


@pytest.mark.parametrize("s", [1e-6, 1e-3, 0.3, 0.99, 1.01, 3.0, 12.0])
def test_log_gain_of_a_lognormal(s: float) -> None:
    for d in (-25.0, -6.0, -1.0, 0.0, 0.4, 2.0, 4.99, 5.01, 9.0, 30.0):
        with mpmath.workdps(400):
            a, b = mpmath.mpf(s), mpmath.mpf(d)
            exact = mpmath.log(mpmath.ncdf(b) - mpmath.exp(a * a / 2 - a * b) * mpmath.ncdf(b - a))
        assert float(log_gain(np.array([d]), np.array([s]))[0]) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


def test_expected_improvement_against_integrals() -> None:
    rng = np.random.default_rng(0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(180)
    for _ in range(20):
        mean, sd, best = rng.normal(), rng.uniform(0.2, 1.0), rng.uniform(0.5, 2.0)
        for warp in (None, "log"):
            y = mean + sd * nodes
            y = np.exp(y) if warp else y
            by_hand = weights @ np.maximum(best - y, 0.0) / weights.sum()
            assert math.exp(log_ei(mean, sd, best, warp=warp)) == pytest.approx(by_hand, rel=0.05, abs=0.01)


@WARPS
def test_the_index_solves_its_equation(warp: Any) -> None:
    rng = np.random.default_rng(1)
    mean, sd = rng.normal(0, 2, 4000), 10 ** rng.uniform(-4, 0.5, 4000)
    cost = 10 ** rng.uniform(-4, 3, 4000)
    g = pbgi(mean, sd, cost, 0.03, warp=warp)
    assert np.all(np.isfinite(g))
    # Digits of g that the root cannot have are taken off: where g is far above the mean in units of sd.
    loss = np.abs((np.log(g) if warp else g) / sd) * 1e-15 * 50 + 1e-11
    level = log_ei(mean, sd, g, warp=warp)
    sharp = np.maximum(1.0, np.abs(level + math.log(1e-9)))
    assert np.all(np.abs(level - np.log(0.03 * cost)) <= loss * sharp * 50)


@WARPS
def test_both_forms_of_the_rule_agree_point_by_point(warp: Any) -> None:
    rng = np.random.default_rng(2)
    mean, sd, best = rng.normal(0, 1, 20000), 10 ** rng.uniform(-3, 0.3, 20000), np.exp(rng.normal(0, 1, 20000))
    cost, lam = np.exp(rng.normal(0, 2, 20000)), 0.1
    by_index = pbgi(mean, sd, cost, lam, warp=warp) >= best
    by_gain = log_ei_per_cost(mean, sd, best, cost, warp=warp) <= math.log(lam)
    assert np.array_equal(by_index, by_gain) and 0.1 < by_index.mean() < 0.9


@WARPS
@settings(deadline=None, max_examples=25)
@given(mean=NUMBERS, sd=SPREADS, cost=COSTS, up=st.floats(1e-3, 2.0))
def test_monotone(warp: Any, mean: float, sd: float, cost: float, up: float) -> None:
    g = float(pbgi(mean, sd, cost, 0.1, warp=warp))
    assert pbgi(mean + up, sd, cost, 0.1, warp=warp) > g
    assert pbgi(mean, sd, cost * (1 + up), 0.1, warp=warp) > g
    if warp is None:
        assert pbgi(mean, sd * (1 + up), cost, 0.1) <= g + 1e-12 * abs(g)


@settings(deadline=None, max_examples=25)
@given(mean=NUMBERS, sd=SPREADS, cost=COSTS, a=st.floats(0.01, 100.0), b=NUMBERS)
def test_affine_equivariance(mean: float, sd: float, cost: float, a: float, b: float) -> None:
    g = float(pbgi(mean, sd, cost, 0.1))
    assert float(pbgi(a * mean + b, a * sd, cost, a * 0.1)) == pytest.approx(a * g + b, rel=1e-10, abs=1e-10 * a)


@WARPS
@settings(deadline=None, max_examples=25)
@given(mean=st.floats(-3.0, 3.0), sd=SPREADS, scale=st.floats(0.01, 100.0), price=st.floats(1e-3, 10.0))
def test_units_of_the_objective(warp: Any, mean: float, sd: float, scale: float, price: float) -> None:
    moved = (mean + math.log(scale), sd) if warp else (scale * mean, scale * sd)
    g = float(pbgi(mean, sd, price, 1.0, warp=warp))
    assert float(pbgi(*moved, price, scale, warp=warp)) == pytest.approx(scale * g, rel=1e-9, abs=1e-9 * scale)


@WARPS
def test_without_spread(warp: Any) -> None:
    level = np.array([0.5, 1.0, 2.0])
    mean = np.log(level) if warp else level
    assert np.allclose(pbgi(mean, 0.0, 3.0, 0.1, warp=warp), level + 0.3)
    assert np.allclose(pbgi(mean, 1e-9, 3.0, 0.1, warp=warp), level + 0.3, rtol=1e-7)
    gain = log_ei(mean, 0.0, 1.5, warp=warp)
    assert np.allclose(np.exp(gain), [1.0, 0.5, 0.0]) and gain[2] == -math.inf


@WARPS
def test_gradients(warp: Any) -> None:
    rng = np.random.default_rng(3)
    n = 400
    mean, sd, best = rng.normal(0, 1, n), rng.uniform(0.1, 1.5, n), np.exp(rng.normal(0, 0.7, n))
    cost, lam, eps = np.exp(rng.normal(0, 1.5, n)), 0.1, 1e-5

    def slope(call: Any, at: Any) -> Any:
        return (call(at + eps) - call(at - eps)) / (2 * eps)

    value, by_mean, by_sd = log_ei_gradient(mean, sd, best, warp=warp)
    assert np.allclose(value, log_ei(mean, sd, best, warp=warp), rtol=1e-12)
    assert np.allclose(by_mean, slope(lambda m: log_ei(m, sd, best, warp=warp), mean), rtol=1e-5, atol=1e-6)
    assert np.allclose(by_sd, slope(lambda s: log_ei(mean, s, best, warp=warp), sd), rtol=1e-5, atol=1e-6)
    g, by_mean, by_sd, by_cost = pbgi_gradient(mean, sd, cost, lam, warp=warp)
    assert np.allclose(g, pbgi(mean, sd, cost, lam, warp=warp), rtol=1e-12)
    assert np.allclose(by_mean, slope(lambda m: pbgi(m, sd, cost, lam, warp=warp), mean), rtol=1e-6, atol=1e-7)
    assert np.allclose(by_sd, slope(lambda s: pbgi(mean, s, cost, lam, warp=warp), sd), rtol=1e-6, atol=1e-7)
    by_log = slope(lambda c: pbgi(mean, sd, np.exp(c), lam, warp=warp), np.log(cost))
    assert np.allclose(by_cost, by_log, rtol=1e-6, atol=1e-7)
    if warp is None:
        # The factor 1/L = h/Phi is what makes the difference where the cost varies: without it most are far off.
        assert np.mean(np.abs(lam * cost / by_log - 1.0) > 0.01) > 0.5


def test_arrays_broadcast() -> None:
    out = pbgi(np.zeros((3, 1)), np.ones(4), 2.0, 0.5)
    assert out.shape == (3, 4) and np.ptp(out) == 0.0
    assert log_ei(0.0, 1.0, np.zeros((2, 2))).shape == (2, 2)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: log_ei(0.0, -1.0, 0.0), "standard deviation is -1"),
        (lambda: log_ei(0.0, math.nan, 0.0), "standard deviation is nan"),
        (lambda: log_ei(0.0, 1.0, -2.0, warp="log"), "best value is -2"),
        (lambda: log_ei_per_cost(0.0, 1.0, 0.0, 0.0), "cost must be positive; got 0"),
        (lambda: pbgi(0.0, 1.0, 1.0, 0.0), "objective units per cost unit"),
        (lambda: pbgi(0.0, 1.0, 1.0, math.nan), "got nan"),
        (lambda: pbgi(0.0, 1.0, [1.0, -3.0], 1.0), "got -3"),
        (lambda: pbgi(0.0, 1.0, 1.0, "0.1"), "lam: expected real numbers, got '0.1'"),
        (lambda: log_ei("a", 1.0, 0.0), "mean: expected real numbers"),
        (lambda: log_ei(1j, 1.0, 0.0), "mean: expected real numbers"),
        (lambda: log_ei(np.zeros(2), np.ones(3), 0.0), r"shapes \(2,\), \(3,\), \(\) do not broadcast"),
        (lambda: pbgi(np.zeros(2), 1.0, np.ones(3), 1.0), "do not broadcast"),
        (lambda: log_ei(0.0, 1.0, 0.0, warp="ln"), "warp='ln'; expected None or 'log'"),
        (lambda: pbgi(0.0, 1.0, 1.0, 1.0, warp="ln"), "warp='ln'"),
        (lambda: log_ei_gradient(0.0, 0.0, 0.0), "is 0, where there is no derivative"),
        (lambda: pbgi_gradient(0.0, 0.0, 1.0, 1.0, warp="log"), "is 0, where there is no derivative"),
        (lambda: log_h("x"), "z: expected real numbers"),
        (lambda: inverse_log_h([None, "x"]), "k: expected real numbers"),
    ],
)
def test_bad_input(call: Any, word: str) -> None:
    with pytest.raises(InputError, match=word):
        call()


def test_the_likelihood_is_that_of_scikit_learn() -> None:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    from infimum_costbo.surrogate import ALPHA, Hyper, Posterior, log_likelihood

    rng = np.random.default_rng(0)
    X, y = rng.random((25, 3)), rng.standard_normal(25)
    kernel = ConstantKernel(1.3) * Matern([0.4, 0.7, 1.1], nu=2.5) + WhiteKernel(3e-2)
    theirs = GaussianProcessRegressor(kernel, alpha=ALPHA, optimizer=None).fit(X, y)
    value, slope = theirs.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    ours = log_likelihood(X, y, kernel.theta)
    assert ours[0] == pytest.approx(value, rel=1e-10)
    assert np.allclose(ours[1], slope, rtol=1e-8, atol=1e-10)
    Z = rng.random((40, 3))
    belief = Posterior(X, y, Hyper(1.3, np.array([0.4, 0.7, 1.1]), 3e-2))
    mean, sd = belief.at(Z)
    expected, total = theirs.predict(Z, return_std=True)
    assert np.allclose(mean, expected, atol=1e-9)
    assert np.allclose(sd**2 + 3e-2, total**2, atol=1e-9)
    _, covariance = theirs.predict(Z, return_cov=True)
    assert np.allclose(belief.covariance(Z) + 3e-2 * np.eye(40), covariance, atol=1e-9)
    again, spread, by_mean, by_sd = belief.with_gradient(Z)
    assert np.allclose(again, mean) and np.allclose(spread, sd)
    for j in range(3):
        step = np.eye(3)[j] * 1e-5
        (up, up_sd), (down, down_sd) = belief.at(Z + step), belief.at(Z - step)
        assert np.allclose(by_mean[:, j], (up - down) / 2e-5, atol=1e-6)
        assert np.allclose(by_sd[:, j], (up_sd - down_sd) / 2e-5, atol=1e-6)
    believed = belief.believing(Z[:4])
    assert np.allclose(believed.at(Z)[0], mean, atol=1e-9) and np.all(believed.at(Z)[1] <= sd + 1e-12)

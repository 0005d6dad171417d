"""The estimator alone: limit operators, its error, the rules of sampling, batches, torch, memory."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from infimum_hjprox import Separable, hj_prox, l1_limit, noise, nonnegative_limit
from infimum_hjprox.sampling import WIDENINGS

RNG = np.random.default_rng(20)
POINTS = 3.0 * RNG.standard_normal((40, 1))


def l1(Y):
    return abs(Y).sum(1)


def soft(x, t):
    return np.sign(x) * np.maximum(abs(x) - t, 0.0)


def outside(Y):
    return np.where((Y >= 0).all(1), Y[:, 0] * 0.0 + 1e-9 * Y.sum(1), np.inf)


def l1_by_quadrature(x, t, delta):
    y = np.linspace(x - 40 * math.sqrt(delta * t) - 10 * t, x + 40 * math.sqrt(delta * t) + 10 * t, 400_001)
    a = -abs(y) / delta - (y - x) ** 2 / (2 * delta * t)
    w = np.exp(a - a.max())
    return float((w * y).sum() / w.sum())


@pytest.mark.parametrize("delta", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("x", [-2.0, -0.3, 0.0, 0.9, 4.0])
def test_the_closed_form_of_the_l1_limit_is_the_integral(x, delta):
    assert l1_limit(np.array([x]), 0.5, delta)[0] == pytest.approx(l1_by_quadrature(x, 0.5, delta), abs=1e-6)


@pytest.mark.parametrize("delta", [1.0, 0.1, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("t", [0.1, 1.0, 10.0])
def test_the_limit_is_within_the_bound_and_firmly_nonexpansive(t, delta):
    x = np.linspace(-50, 50, 20_001)
    bound = math.sqrt(t * delta)
    for limit, exact in ((l1_limit(x, t, delta), soft(x, t)), (nonnegative_limit(x, t, delta), np.maximum(x, 0.0))):
        assert np.isfinite(limit).all()
        assert abs(limit - exact).max() <= bound
        slopes = np.diff(limit) / np.diff(x)
        assert slopes.min() >= -1e-6 and slopes.max() <= 1 + 1e-6


@pytest.mark.parametrize(("delta", "ratio"), [(1.0, 0.503), (0.1, 0.694), (0.01, 0.765), (0.001, 0.788)])
def test_how_much_of_the_bound_the_limit_uses(delta, ratio):
    x = np.linspace(-5, 5, 100_001)
    assert abs(l1_limit(x, 1.0, delta) - soft(x, 1.0)).max() / math.sqrt(delta) == pytest.approx(ratio, abs=2e-3)
    worst = abs(nonnegative_limit(x, 1.0, delta) - np.maximum(x, 0)).max() / math.sqrt(delta)
    assert worst == pytest.approx(math.sqrt(2 / math.pi), abs=2e-3)


@pytest.mark.parametrize("options", [{}, {"preset": "paper"}, {"separable": True}, {"antithetic": True}])
@pytest.mark.parametrize("delta", [1.0, 0.1])
def test_the_estimate_comes_to_the_limit_within_its_standard_error(options, delta):
    f = abs if options.get("separable") else l1
    got = hj_prox(f, POINTS, 0.5, delta=delta, n_samples=50_000, rng=1, full_output=True, **options)
    exact = l1_limit(POINTS, 0.5, delta)
    spread = np.sqrt(((got.point - exact) ** 2).sum(1)) / got.standard_error
    assert np.sqrt((spread**2).mean()) < 2.0  # the rows share their random numbers
    off = np.linalg.norm(got.point - soft(POINTS, 0.5), axis=1)
    assert (off <= np.sqrt(0.5 * delta) + 5 * got.standard_error).all()


def test_the_nonnegative_limit_by_sampling():
    x = np.array([-0.2, 0.1, 0.8])
    got = hj_prox(outside, x, 0.3, delta=0.2, n_samples=100_000, rng=2, full_output=True)
    assert np.linalg.norm(got.point - nonnegative_limit(x, 0.3, 0.2)) < 4 * got.standard_error


def test_the_standard_error_is_the_spread_of_repeated_estimates():
    x = np.array([1.0, -0.5, 2.0])
    for options in ({}, {"antithetic": True}):
        all_of = [
            hj_prox(lambda Y: 0.5 * (Y**2).sum(1), x, 0.5, n_samples=400, rng=k, full_output=True, **options)
            for k in range(200)
        ]
        spread = math.sqrt(np.var([one.point for one in all_of], axis=0).sum())
        assert np.mean([one.standard_error for one in all_of]) == pytest.approx(spread, rel=0.15)


def test_a_quadratic_has_no_bias_at_any_delta():
    x = np.array([1.0, -2.0])
    got = hj_prox(lambda Y: (Y**2).sum(1), x, 0.5, delta=5.0, n_samples=200_000, rng=3, full_output=True)
    assert np.linalg.norm(got.point - x / 2) < 4 * got.standard_error < 0.02


def test_the_error_falls_like_the_root_of_the_samples():
    x = np.array([0.5, -1.0])
    exact = l1_limit(x, 0.2, 1.0)

    def error(count):
        found = [hj_prox(l1, x, 0.2, delta=1.0, n_samples=count, rng=k) - exact for k in range(60)]
        return math.sqrt(np.mean(np.square(found).sum(1)))

    assert error(400) / error(6400) == pytest.approx(4.0, rel=0.25)


def test_constants_change_nothing_and_do_not_underflow():
    x = np.array([0.5, -1.0])
    plain = hj_prox(l1, x, 0.5, rng=4)
    np.testing.assert_allclose(hj_prox(lambda Y: 1e6 + l1(Y), x, 0.5, rng=4), plain, atol=1e-8)
    np.testing.assert_allclose(hj_prox(lambda Y: l1(Y) - 1e6, x, 0.5, rng=4), plain, atol=1e-8)


def test_the_same_seed_gives_the_same_and_no_global_generator_is_touched():
    x = np.array([0.5, -1.0])
    before = np.random.get_state(legacy=False)
    one, other = hj_prox(l1, x, 0.5, rng=5), hj_prox(l1, x, 0.5, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, hj_prox(l1, x, 0.5, rng=6))
    assert not np.array_equal(hj_prox(l1, x, 0.5), hj_prox(l1, x, 0.5))
    after = np.random.get_state(legacy=False)
    np.testing.assert_array_equal(before["state"]["key"], after["state"]["key"])


@pytest.mark.parametrize("options", [{}, {"ess_min": 0.3}, {"recenter": 1, "ess_min": 0.2}, {"separable": True}])
def test_rows_of_a_batch_equal_single_calls(options):
    X = 3.0 * RNG.standard_normal((9, 4))
    f = abs if options.get("separable") else l1
    batch = hj_prox(f, X, 1.0, delta=0.05, n_samples=200, rng=7, full_output=True, **options)
    for i, x in enumerate(X):
        single = hj_prox(f, x, 1.0, delta=0.05, n_samples=200, rng=7, full_output=True, **options)
        np.testing.assert_allclose(batch.point[i], single.point, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(batch.ess[i], single.ess, rtol=1e-9)
        np.testing.assert_array_equal(batch.delta[i], single.delta)


@pytest.mark.parametrize("options", [{}, {"antithetic": True}, {"separable": True}])
@pytest.mark.parametrize("shape", [(6,), (5, 6)])
def test_chunks_change_nothing_and_bound_the_memory(monkeypatch, options, shape):
    x, sizes = RNG.standard_normal(shape), []

    def f(Y):
        sizes.append(Y.size)
        return abs(Y) if options.get("separable") else l1(Y)

    whole = hj_prox(f, x, 1.0, n_samples=300, rng=8, full_output=True, **options)
    monkeypatch.setattr(noise, "CACHE", 240)
    del sizes[:]
    pieces = hj_prox(f, x, 1.0, n_samples=300, rng=8, full_output=True, **options)
    assert max(sizes) <= 240 and sum(sizes) == 6 * pieces.evaluations
    assert noise.LIMIT <= 2**22
    if not options.get("antithetic"):  # pairs lie in one chunk, so that the numbers are dealt otherwise
        np.testing.assert_allclose(pieces.point, whole.point, rtol=1e-12)
        np.testing.assert_allclose(pieces.standard_error, whole.standard_error, rtol=1e-9)
    assert np.all(np.linalg.norm(np.atleast_2d(pieces.point - l1_limit(x, 1.0, 0.1)), axis=1) < 1.5)


def test_recentering_makes_samples_count_and_the_preset_is_the_plain_method():
    x = np.random.default_rng(9).standard_normal(20) * 1.5
    norms = lambda Y: np.linalg.norm(Y.reshape(-1, 4, 5), axis=2).sum(1)  # noqa: E731
    groups = x.reshape(4, 5)
    size = np.linalg.norm(groups, axis=1, keepdims=True)
    exact = (groups * np.maximum(1 - 0.5 / size, 0)).reshape(-1)
    plain = hj_prox(norms, x, 0.5, preset="paper", rng=10, full_output=True)
    again = hj_prox(norms, x, 0.5, recenter=3, rng=10, full_output=True)
    assert (plain.evaluations, plain.widenings, plain.recenterings) == (1000, 0, 0)
    assert again.ess > 5 * plain.ess and again.recenterings >= 1
    assert np.linalg.norm(again.point - exact) < 0.5 * np.linalg.norm(plain.point - exact)


def test_the_ess_rule_widens_and_says_how_far():
    x = np.full(4, 3.0)
    got = hj_prox(l1, x, 1.0, delta=1e-3, recenter=0, ess_min=0.05, rng=11, full_output=True)
    assert got.ess >= 50 and got.widenings > 3
    assert got.delta == pytest.approx(1e-3 * 2**got.widenings)
    assert got.evaluations == 1000 * (1 + got.widenings)


def test_separable_mode_does_not_care_for_the_dimension():
    x = np.random.default_rng(12).standard_normal(400) * 1.5
    exact = soft(x, 0.5)
    apart = hj_prox(abs, x, 0.5, separable=True, rng=13)
    joint = hj_prox(l1, x, 0.5, rng=13)
    assert np.linalg.norm(apart - exact) < 0.35 * np.linalg.norm(joint - exact)
    np.testing.assert_array_equal(apart, hj_prox(Separable(abs), x, 0.5, separable=True, rng=13))


def test_pairs_help_a_smooth_function_at_a_short_step():
    x, f = np.array([0.4, -0.2, 1.0]), lambda Y: np.log1p(np.exp(Y)).mean(1)
    errors = [
        hj_prox(f, x, 0.05, delta=1.0, rng=14, antithetic=two, full_output=True).standard_error for two in (False, True)
    ]
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("options", [{}, {"antithetic": True}, {"separable": True}])
def test_the_jacobian_times_a_vector_is_that_of_the_limit(options):
    x, u, h = np.array([0.4, -1.2, 0.9]), np.array([1.0, -2.0, 0.5]), 1e-5
    f = abs if options.get("separable") else l1
    got = hj_prox(f, x, 0.5, delta=0.3, n_samples=200_000, rng=15, full_output=True, **options)
    exact = (l1_limit(x + h * u, 0.5, 0.3) - l1_limit(x - h * u, 0.5, 0.3)) / (2 * h)
    np.testing.assert_allclose(got.jvp(u), exact, atol=0.03)
    np.testing.assert_allclose(got.covariance(u), 0.15 * got.jvp(u), rtol=1e-6)
    columns = np.stack([got.jvp(e) for e in np.eye(3)])
    np.testing.assert_allclose(columns, columns.T, atol=1e-12)
    assert (np.linalg.eigvalsh(columns) > -1e-9).all() and (np.linalg.eigvalsh(columns) < 1.05).all()


def test_one_value_at_a_time_and_integers_and_float32():
    x = np.array([1, -2])
    one = hj_prox(lambda y: float(abs(y).sum()), x, 0.5, rng=16, vectorized=False)
    np.testing.assert_allclose(one, hj_prox(l1, x, 0.5, rng=16), rtol=1e-12)
    assert one.dtype == np.float64
    single = hj_prox(l1, x.astype(np.float32), 0.5, delta=1.0, n_samples=20_000, rng=16)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, l1_limit(x, 0.5, 1.0), atol=0.05)


def test_the_point_is_left_alone_and_f_may_spoil_its_argument():
    x = np.array([1.0, -2.0])

    def spoil(Y):
        out = l1(Y)
        Y[...] = np.nan
        return out

    np.testing.assert_array_equal(hj_prox(spoil, x, 0.5, rng=17), hj_prox(l1, x, 0.5, rng=17))
    np.testing.assert_array_equal(x, [1.0, -2.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"separable": True}, {"antithetic": True}, {"preset": "paper"}])
def test_torch_on_the_cpu(dtype, options):
    torch = pytest.importorskip("torch")
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    state = torch.random.get_rng_state()
    X = torch.tensor([[0.5, -1.0], [2.0, 0.1], [9.0, -9.0]], dtype=getattr(torch, dtype), requires_grad=True)
    f = torch.abs if options.get("separable") else lambda Y: Y.abs().sum(1)
    for device in devices:
        there = X.to(device)
        got = hj_prox(f, there, 0.5, delta=0.5, n_samples=40_000, rng=18, full_output=True, **options)
        assert got.point.dtype == X.dtype and got.point.device == there.device and not got.point.requires_grad
        exact = l1_limit(X.detach().numpy().astype(float), 0.5, 0.5)
        np.testing.assert_allclose(got.point.cpu().numpy(), exact, atol=0.06)
        row = hj_prox(f, there[1], 0.5, delta=0.5, n_samples=40_000, rng=18, full_output=True, **options)
        np.testing.assert_allclose(row.point.cpu(), got.point[1].cpu(), rtol=1e-4)
        u = torch.ones(2, dtype=X.dtype, device=device)
        h = 1e-4
        x = X.detach().numpy()[1].astype(float)
        slope = (l1_limit(x + h, 0.5, 0.5) - l1_limit(x - h, 0.5, 0.5)) / (2 * h)
        np.testing.assert_allclose(row.jvp(u).cpu().numpy(), slope, atol=0.06)
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_prox_of_a_thousand_samples_in_500_variables_is_quick():
    x = np.random.default_rng(19).standard_normal(500)
    times = []
    for _ in range(9):
        began = time.process_time()
        hj_prox(l1, x, 0.01, preset="paper", rng=1)
        times.append(time.process_time() - began)
    assert min(times) < 0.032, f"{1e3 * min(times):.1f} ms"  # 12 ms on an idle core; benchmarks/hjprox.py says 16


def test_the_number_of_widenings_is_bounded():
    from infimum_hjprox import ProxSamplingError

    calls = []

    def never(Y):
        calls.append(len(Y))
        return np.full(len(Y), np.inf)

    with pytest.raises(ProxSamplingError, match=r"no feasible sample: f is \+inf at all 50 .* exact projection"):
        hj_prox(never, np.zeros(3), 1.0, n_samples=50, rng=0)
    assert len(calls) == WIDENINGS + 1

"""The statistic, its onset and its theory, against loops, simulation and a Markov chain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from infimum.errors import InputError
from infimum_cpd import CusumDetector, arl0, cusum, delay, first_alarm, glr_onset, last_zero_onset, threshold
from infimum_cpd.statistic import BLOCK, Onset
from infimum_cpd.theory import false_alarm_probability, threshold_for

samples = arrays(np.float64, st.integers(1, 80), elements=st.floats(-20, 20, allow_subnormal=False))


def loop(z: np.ndarray, k: float, start: float = 0.0) -> np.ndarray:
    """Page's recursion, one sample at a time."""
    out, w = [], start
    for one in z:
        w = max(0.0, w + one - k)
        out.append(w)
    return np.array(out)


def markov_chain(h: float, k: float, states: int = 400) -> tuple[float, np.ndarray]:
    """Mean run length from W = 0 and the transition matrix on a grid of W (Brook and Evans 1972)."""
    width = 2.0 * h / (2 * states - 1)
    centers = np.arange(states) * width
    edges = centers + width / 2.0
    upper = norm.cdf(edges[None, :] - centers[:, None] + k)
    lower = np.concatenate([np.zeros((states, 1)), upper[:, :-1]], axis=1)
    Q = upper - lower
    return float(np.linalg.solve(np.eye(states) - Q, np.ones(states))[0]), Q


@settings(max_examples=60, deadline=None)
@given(samples, st.floats(0, 2), st.floats(0, 5))
def test_whole_streams_equal_the_recursion(z: np.ndarray, k: float, start: float) -> None:
    np.testing.assert_allclose(cusum(z, k, start), loop(z, k, start), rtol=1e-12, atol=1e-12)


def test_whole_streams_equal_the_recursion_over_many_blocks() -> None:
    z = np.random.default_rng(0).standard_normal((3, 7, 10 * BLOCK + 13)) + 0.45
    for k in (0.0, 0.5):
        expected = np.apply_along_axis(loop, -1, z, k)
        np.testing.assert_allclose(cusum(z, k), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(samples, st.floats(0, 2), st.data())
def test_it_is_never_negative_and_rises_with_every_sample(z: np.ndarray, k: float, data: st.DataObject) -> None:
    raised = z.copy()
    raised[data.draw(st.integers(0, z.size - 1))] += data.draw(st.floats(0, 5))
    w = cusum(z, k)
    assert (w >= 0).all()
    assert (cusum(raised, k) >= w - 1e-12).all()


def test_input_is_left_alone_and_bad_input_is_named() -> None:
    z = np.ones(5)
    cusum(z, 0.5)
    assert (z == 1).all() and cusum(np.empty((2, 0))).shape == (2, 0)
    with pytest.raises(InputError, match="NaN or inf"):
        cusum([1.0, math.nan])
    with pytest.raises(InputError, match="single number"):
        cusum(3.0)


def test_first_alarm_and_last_zero() -> None:
    w = np.array([[0.0, 1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    assert first_alarm(w, 2.0).tolist() == [3, -1]
    assert last_zero_onset(w[0], 3) == 3
    assert last_zero_onset(np.array([1.0, 2.0]), 1) == 0


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(1, 60), elements=st.integers(-8, 8).map(float)))
def test_the_hull_finds_the_likelihood_ratio_of_all_starts(z: np.ndarray) -> None:
    """Small integers: every sum is exact, so both must name a start with the same ratio."""
    onset = Onset()
    for index, one in enumerate(z):
        onset.add(float(one), index)
    sums = np.concatenate([[0.0], np.cumsum(z)])

    def ratio(j: int) -> float:
        return float(max(0.0, sums[-1] - sums[j]) ** 2 / (z.size - j))

    assert ratio(onset.best()) == pytest.approx(max(map(ratio, range(z.size))), rel=1e-12, abs=1e-12)
    assert ratio(glr_onset(z, z.size - 1)) == pytest.approx(ratio(onset.best()), rel=1e-12, abs=1e-12)


def test_the_hull_stays_small() -> None:
    onset, z = Onset(), np.random.default_rng(1).standard_normal(20000)
    for index, one in enumerate(z):
        onset.add(float(one), index)
    assert len(onset.hull) < 60
    growing = Onset()
    for index in range(3 * Onset.LIMIT):
        growing.add(index * 1e-3, index)
    assert len(growing.hull) <= Onset.LIMIT


def test_formulas_at_known_points() -> None:
    assert arl0(5.0, 0.5) == pytest.approx(938.2, abs=0.1)
    assert arl0(5.0, 0.0) == pytest.approx(6.166**2)
    assert arl0(5.0, 1e-5) == pytest.approx(arl0(5.0, 0.0), rel=1e-3)
    assert arl0(5.0, 0.5, sided=2) == pytest.approx(938.2 / 2, abs=0.1)
    assert arl0(1e4, 1.0) == math.inf
    with pytest.raises(InputError, match="not above k"):
        delay(5.0, 0.5, 0.5)
    with pytest.raises(InputError, match="expected a finite number of samples above"):
        threshold(1.0, 0.5)
    with pytest.raises(InputError, match="arl0='900'"):
        threshold("900")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="h='5'; expected a finite threshold"):
        arl0("5")  # type: ignore[arg-type]
    for horizon, n, said in ((-1, 0, "horizon=-1"), (10, -1, "samples=-1"), (1.5, 0, "horizon=1.5")):
        with pytest.raises(InputError, match=f"{said}; expected a whole number >= 0"):
            false_alarm_probability(5.0, horizon, samples=n)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.floats(20, 1e9), st.floats(0, 3), st.sampled_from([1, 2]))
def test_threshold_inverts_the_run_length(arl: float, k: float, sided: int) -> None:
    if arl > 1.01 * arl0(0.0, k, sided):
        assert arl0(threshold(arl, k, sided), k, sided) == pytest.approx(arl, rel=1e-9)


@pytest.mark.parametrize(("h", "k"), [(4.0, 0.5), (5.0, 0.5), (3.0, 1.0), (8.0, 0.25), (5.0, 0.0)])
def test_siegmund_agrees_with_a_markov_chain(h: float, k: float) -> None:
    assert arl0(h, k) == pytest.approx(markov_chain(h, k)[0], rel=0.02 if k < 1 else 0.06)


@pytest.mark.parametrize(("h", "k", "n"), [(4.0, 0.5, 4000), (3.0, 0.25, 600), (5.0, 0.0, 600)])
def test_siegmund_agrees_with_simulation(h: float, k: float, n: int) -> None:
    """Streams long enough that hardly any is cut; within 4 standard errors plus 3 % of the approximation."""
    streams = 1500
    run = first_alarm(cusum(np.random.default_rng(5).standard_normal((streams, n)), k), h) + 1.0
    assert (run > 0).mean() > 0.999
    run = run[run > 0]
    assert abs(run.mean() - arl0(h, k)) < 4 * run.std() / math.sqrt(streams) + 0.03 * arl0(h, k)


def test_delay_agrees_with_simulation() -> None:
    z = np.random.default_rng(6).standard_normal((2000, 400)) + 1.0
    run = first_alarm(cusum(z, 0.5), 5.0) + 1.0
    assert run.mean() == pytest.approx(delay(5.0, 1.0, 0.5), rel=0.05)


def test_false_alarm_probability_agrees_with_the_markov_chain() -> None:
    _, Q = markov_chain(5.0, 0.5)
    alive = np.linalg.matrix_power(Q, 300)[0].sum()
    assert false_alarm_probability(5.0, 300, 0.5) == pytest.approx(1 - alive, abs=0.01)


@pytest.mark.parametrize("robust", [True, False])
def test_a_stated_false_alarm_rate_holds_with_an_estimated_reference(robust: bool) -> None:
    """64 samples of warm-up: 5 % of 1000 streams, 4 sigma = 2.8 %; with the plain threshold it is near 20 %."""
    rng = np.random.default_rng(7)
    streams = rng.standard_normal((1000, 64 + 500))
    options = {"reference": "warmup:64", "robust": robust}
    held = CusumDetector(far=0.05, horizon=500, **options).predict(streams).any(axis=1).mean()
    plain = CusumDetector(h=threshold_for(0.05, 500), **options).predict(streams).any(axis=1).mean()
    assert 0.02 < held < 0.09
    assert plain > 0.12


@settings(max_examples=30, deadline=None)
@given(st.floats(0.001, 0.5), st.integers(10, 10000), st.sampled_from([0, 50, 400]), st.sampled_from([1, 2]))
def test_threshold_for_inverts_the_probability(far: float, horizon: int, n: int, sided: int) -> None:
    h = threshold_for(far, horizon, 1.0, sided, n)
    assert false_alarm_probability(h, horizon, 1.0, sided, n) <= far * (1 + 1e-9)
    if h > 1e-6:
        assert false_alarm_probability(0.99 * h, horizon, 1.0, sided, n) > far


def test_too_short_a_reference_for_the_rate_is_an_error() -> None:
    with pytest.raises(InputError, match="cannot be held with 8 samples"):
        threshold_for(0.001, 10**6, 0.0, 1, 8)


def test_the_delay_table() -> None:
    """5 % false alarms in 400 samples, shift at 200: small k for small shifts, and the onset by likelihood ratio."""
    rng = np.random.default_rng(8)
    null = rng.standard_normal((1500, 400))
    delays, errors = {}, {}
    for shift in (0.5, 1.0, 2.0):
        changed = rng.standard_normal((600, 400))
        changed[:, 200:] += shift
        for k in (0.0, 0.25, 0.5, 1.0):
            h = float(np.quantile(cusum(null, k).max(axis=1), 0.95))
            w = cusum(changed, k)
            alarms = first_alarm(w, h)
            right = np.flatnonzero(alarms >= 200)
            delays[shift, k] = (alarms[right] - 200).mean()
            glr = [abs(glr_onset(changed[i], alarms[i]) - 200) for i in right[:200]]
            zero = [abs(last_zero_onset(w[i], alarms[i]) - 200) for i in right[:200]]
            errors[shift, k] = (np.median(glr), np.median(zero))
    assert delays[0.5, 0.25] < delays[0.5, 1.0] and delays[0.5, 0.25] < delays[0.5, 0.0]
    assert delays[2.0, 1.0] < delays[2.0, 0.25] < delays[2.0, 0.0]
    assert delays[1.0, 0.5] == pytest.approx(13.2, rel=0.2)
    assert errors[1.0, 0.0][0] <= 6 and errors[1.0, 0.0][1] > 50
    assert errors[2.0, 0.5][0] <= 1

"""The detector: streaming against whole streams, resets, bad samples, state, and the ways of river and scikit-learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from infimum.checkpoint import freeze, thaw
from infimum.errors import InfimumWarning, InputError
from infimum_cpd import CusumDetector, Reference, cusum, first_alarm, glr_onset, last_zero_onset, threshold
from infimum_cpd.record import Record

values = arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e3, 1e3, allow_subnormal=False))


def streamed(detector: CusumDetector, x: Any) -> np.ndarray:
    detector.reset()
    return np.array([detector.update(one).statistic for one in x])


@settings(max_examples=60, deadline=None)
@given(
    values,
    st.sampled_from(["up", "down", "both"]),
    st.sampled_from([None, 3.0]),
    st.sampled_from([0.0, 0.6]),
    st.sets(st.integers(0, 59), max_size=4),
)
def test_streaming_equals_whole_streams(
    x: np.ndarray, direction: Any, zmax: float | None, rho: float, bad: set[int]
) -> None:
    x = x.copy()
    x[[one for one in bad if one < x.size]] = math.nan
    detector = CusumDetector(direction, h=10.0, reference=Reference(1.0, 200.0, rho), zmax=zmax)
    np.testing.assert_allclose(streamed(detector, x), detector.decision_function(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("whiten", [False, True])
def test_with_a_warm_up_too(whiten: bool) -> None:
    x = np.random.default_rng(0).standard_normal((4, 300)).cumsum(axis=1) * 0.1
    x[1, [3, 200, 201]] = math.inf
    detector = CusumDetector(reference="warmup:50", direction="both", whiten=whiten, h=20.0)
    w = detector.decision_function(x)
    for one, expected in zip(x, w, strict=True):
        np.testing.assert_allclose(streamed(detector, one), expected, rtol=1e-12, atol=1e-12)
    assert (w[0, :50] == 0).all()


@settings(max_examples=60, deadline=None)
@given(values, st.floats(0.1, 100), st.floats(-100, 100))
def test_scale_and_shift_do_not_matter(x: np.ndarray, scale: float, shift: float) -> None:
    base = np.random.default_rng(1).standard_normal(40)
    one = CusumDetector(h=9.0).fit(base).decision_function(x / 100)
    other = CusumDetector(h=9.0).fit(scale * base + shift).decision_function(scale * x / 100 + shift)
    np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(
    ("onset", "exact"), [("glr", glr_onset), ("last_zero", lambda z, a: last_zero_onset(cusum(z), a))]
)
def test_alarm_and_onset_are_those_of_the_whole_stream(onset: Any, exact: Any) -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        x = rng.standard_normal(120)
        x[60:] += 1.2
        detector = CusumDetector(reference="normal:0,1", h=5.0, onset=onset)
        streamed(detector, x)
        w = detector.decision_function(x)
        assert detector.alarm == int(np.argmax(w >= 5.0))
        assert detector.onset_index == exact(x, detector.alarm)
        assert detector.rising is True


def test_the_error_of_a_short_warm_up_does_not_add_up_to_an_early_onset() -> None:
    """The center of 64 samples is off by 0.16 on average; over 3000 samples that outweighs a late shift."""
    rng = np.random.default_rng(11)
    errors = []
    for _ in range(12):
        x = rng.standard_normal(64 + 3000 + 100)
        x[3064:] += 1.0
        detector = CusumDetector(h=14.0)
        streamed(detector, x)
        errors += [abs(detector.onset_index - 3064)] if detector.alarm is not None and detector.alarm >= 3064 else []
    assert len(errors) >= 8 and np.quantile(errors, 0.9) < 60


def test_down_and_both_tell_the_way() -> None:
    x = np.concatenate([np.zeros(30), np.full(20, -2.0)])
    for direction in ("down", "both"):
        detector = CusumDetector(direction, reference="normal:0,1", h=5.0)
        streamed(detector, x)
        assert (detector.alarm, detector.onset_index, detector.rising) == (33, 30, False)
    assert not CusumDetector("up", reference="normal:0,1", h=5.0).predict(x).any()
    assert CusumDetector("both", k=0.5).threshold == pytest.approx(threshold(2000.0, 0.5))


def test_after_an_alarm() -> None:
    x = [0.0] * 10 + [3.0] * 30
    alarms = {}
    for after in ("continue", "reset", "relearn"):
        reference = "normal:0,1" if after != "relearn" else "warmup:8"
        detector = CusumDetector(reference=reference, h=5.0, after_alarm=after, scale_floor=1.0)  # type: ignore[arg-type]
        if after == "relearn":
            with pytest.warns(InfimumWarning, match="zero spread"):
                alarms[after] = [detector.update(one).drift_detected for one in x]
        else:
            alarms[after] = [detector.update(one).drift_detected for one in x]
    assert alarms["continue"] == [False] * 11 + [True] * 29
    assert sum(alarms["reset"]) == 15 and alarms["reset"][11] and not alarms["reset"][12]
    assert sum(alarms["relearn"]) == 1
    with pytest.raises(InputError, match="needs reference='warmup:N'"):
        CusumDetector(reference="normal:0,1", after_alarm="relearn")


def test_a_bad_sample_is_skipped_an_alarm_or_an_error() -> None:
    x = [0.0, math.nan, 2.0, math.inf]
    detector = CusumDetector(reference="normal:0,1", h=5.0)
    assert streamed(detector, x).tolist() == [0.0, 0.0, 1.5, 1.5]
    detector = CusumDetector(reference="normal:0,1", h=5.0, on_nan="alarm")
    assert [detector.update(one).drift_detected for one in x] == [False, True, False, True]
    assert detector.predict(x).tolist() == [0, 1, 0, 1] and detector.alarm == 1
    detector = CusumDetector(reference="normal:0,1", h=5.0, on_nan="raise")
    with pytest.raises(InputError, match="sample 1 is nan"):
        streamed(detector, x)
    with pytest.raises(InputError, match="2 samples are NaN"):
        detector.predict(x)


@pytest.mark.parametrize("cut", [3, 30, 70])
def test_state_goes_on_bit_for_bit(cut: int) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.standard_normal(60), rng.standard_normal(40) + 1.5])
    options: dict[str, Any] = {"direction": "both", "reference": "warmup:20", "whiten": True, "h": 4.9}
    whole, first, second = (CusumDetector(**options) for _ in range(3))
    expected = streamed(whole, x)
    streamed(first, x[:cut])
    second.load_state_dict(thaw(freeze(first.state_dict())))
    got = [second.update(one).statistic for one in x[cut:]]
    assert got == expected[cut:].tolist()
    assert (second.alarm, second.onset_index) == (whole.alarm, whole.onset_index)
    assert second.state_dict() == whole.state_dict()
    with pytest.raises(InputError, match="another direction or onset"):
        CusumDetector(onset="last_zero").load_state_dict(whole.state_dict())


def test_as_river_detectors_are_used() -> None:
    river = pytest.importorskip("river.drift")
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.standard_normal(300), rng.standard_normal(100) + 1.5])
    for detector in (river.PageHinkley(threshold=40, mode="up"), CusumDetector(arl0=5000.0, after_alarm="reset")):
        found = []
        for index, one in enumerate(x):
            detector.update(one)
            if detector.drift_detected:
                found.append(index)
        assert found and 300 <= found[0] < 360, type(detector)


def test_as_scikit_learn_estimators_are_used() -> None:
    base = pytest.importorskip("sklearn.base")
    rng = np.random.default_rng(5)
    detector = base.clone(CusumDetector(k=0.25, h=12.0))
    assert detector.get_params()["k"] == 0.25
    streams = rng.standard_normal((3, 100))
    streams[2, 50:] += 2.0
    labels = detector.fit(rng.standard_normal((500, 1))).predict(streams)
    assert labels.shape == (3, 100) and labels.dtype == np.int64
    assert labels.any(axis=1).tolist() == [False, False, True] and not labels[2, :50].any()
    assert detector.set_params(k=1.0).threshold == 12.0 and detector.k == 1.0


def test_a_fitted_reference_sets_the_threshold_of_a_stated_rate() -> None:
    few, many = (
        CusumDetector(far=0.05, horizon=300).fit(np.random.default_rng(6).standard_normal(n)) for n in (40, 4000)
    )
    assert few.threshold > many.threshold


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "upp"}, "did you mean 'up'"),
        ({"k": -1.0}, "k=-1.0; expected a finite number >= 0"),
        ({"k": math.nan}, "expected a finite number"),
        ({"h": 0.0}, "h=0.0; expected a finite number > 0"),
        ({"h": 5.0, "arl0": 900.0}, "h and arl0 each set the threshold"),
        ({"far": 0.1}, "far and horizon go together"),
        ({"horizon": 100}, "far and horizon go together"),
        ({"far": 1.5, "horizon": 10}, "far=1.5; expected a probability"),
        ({"arl0": 0.5}, "expected a finite number of samples above"),
        ({"reference": "warmup:3"}, "a warm-up needs 8 samples or more"),
        ({"reference": "warm:30"}, "expected 'warmup:64'"),
        ({"reference": "warmup:many"}, "expected 'warmup:64'"),
        ({"reference": "normal:1,-1"}, "scale=-1.0; expected a finite number > 0"),
        ({"reference": [1.0, 2.0, math.nan, 3.0]}, "reference needs >= 8 finite samples, got 3"),
        ({"reference": [1.0] * 20}, "zero spread .* pass scale_floor"),
        ({"reference": np.ones((4, 4))}, r"shape \(4, 4\)"),
        ({"zmax": -1.0}, "zmax=-1.0"),
        ({"onset": "first"}, "onset='first'"),
        ({"on_nan": "stop"}, "on_nan='stop'"),
        ({"k": "0.5"}, "k='0.5'; expected a finite number"),
        ({"far": "0.05", "horizon": 10}, "far='0.05'; expected a probability"),
        ({"far": 0.05, "horizon": 10.5}, "horizon=10.5; expected a whole number"),
        ({"robust": "no"}, "robust='no'; expected True or False"),
        ({"whiten": 1}, "whiten=1; expected True or False"),
        ({"zmax": 0.5, "k": 0.5}, "zmax=0.5 is not above k=0.5, so no alarm"),
        ({"scale_floor": "1", "reference": [1.0] * 20}, "scale_floor='1'; expected a finite number > 0"),
        ({"reference": None}, "reference=None; expected 'warmup:64'"),
        ({"reference": 64}, "reference=64; expected 'warmup:64'"),
        ({"reference": {"center": 1.0}}, "expected 'warmup:64'"),
        ({"reference": ["1.0"] * 20}, "reference: expected real numbers"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CusumDetector(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: d.update("2.0"), "expected a number, got '2.0'"),
        (lambda d: d.update(None), "expected a number, got None"),
        (lambda d: d.update(np.zeros(2)), "expected a number, got array"),
        (lambda d: d.predict(["a"]), "stream: expected real numbers"),
        (lambda d: d.predict([1j]), "stream: expected real numbers"),
        (lambda d: d.fit("abc"), "reference: expected real numbers"),
        (lambda d: d.set_params(hh=3.0), "no option 'hh'; did you mean 'h'"),
        (lambda d: cusum(["1"]), "cusum: expected real numbers"),
        (lambda d: cusum([1.0], k="1"), "k='1'; expected a finite number"),
        (lambda d: cusum(np.zeros((2, 3)), start=np.zeros(3)), r"start has shape \(3,\); expected \(2,\)"),
        (lambda d: cusum([1.0], start=math.nan), "start=nan; expected finite numbers"),
        (lambda d: first_alarm([], 1.0), r"w has shape \(0,\)"),
        (lambda d: glr_onset([1.0, 2.0], 2), "alarm=2 in a stream of shape"),
        (lambda d: last_zero_onset([1.0, 2.0], -1), "alarm=-1 in a stream"),
    ],
)
def test_what_is_no_sample_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(CusumDetector(reference="normal:0,1"))


def test_numbers_of_other_libraries_are_samples() -> None:
    detector = CusumDetector(reference="normal:0,1", h=9.0)
    for one in (np.float32(2.0), np.array(2.0), np.array([2.0]).reshape(())):
        assert detector.reset().update(one).statistic == 1.5
    assert detector.predict(np.array([1, 2], dtype=np.int8)).tolist() == [0, 0]


def test_a_threshold_that_alarms_all_the_time_is_a_warning() -> None:
    with pytest.warns(
        InfimumWarning, match=r"h=5 with k=0 false-alarms every 38 samples on average; use h=30.5 for arl0=1000"
    ):
        CusumDetector(k=0.0, h=5.0)


def test_references() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 100.0])
    assert Reference.of(x).center == 4.5 and Reference.of(x).scale == pytest.approx(1.4826 * 2.0)
    assert Reference.of(x, robust=False).center == pytest.approx(16.0)
    with pytest.warns(InfimumWarning, match="MAD=0; its standard deviation"):
        assert Reference.of([1.0] * 9 + [2.0]).scale == pytest.approx(np.std([1.0] * 9 + [2.0], ddof=1))
    with pytest.warns(InfimumWarning, match="scale_floor=0.5 is taken"):
        assert Reference.of([1.0] * 9, scale_floor=0.5).scale == 0.5
    assert Reference.of(x, scale_floor=50.0).scale == 50.0
    with pytest.raises(InputError, match="rho=1"):
        Reference(0.0, 1.0, 1.0)
    assert "0.1" not in Reference(0.0, 1.0).describe()


def test_the_reference_tells_how_far_to_trust_it() -> None:
    rng = np.random.default_rng(7)
    noise = rng.standard_normal(4000)
    correlated = np.array([noise[0]])
    for one in noise[1:]:
        correlated = np.append(correlated, 0.7 * correlated[-1] + one)
    plain, white = Reference.of(correlated), Reference.of(correlated, whiten=True)
    assert "consider whiten=True" in plain.describe() and "taken out" in white.describe()
    assert white.rho == pytest.approx(0.7, abs=0.05) and white.scale == pytest.approx(1.0, abs=0.06)
    assert white.standardize(correlated).std() == pytest.approx(1.0, abs=0.06)
    assert "skewed samples" in Reference.of(rng.chisquare(4, 2000)).describe()
    assert "skewed" not in Reference.of(noise).describe()


def test_whitening_restores_the_false_alarm_rate() -> None:
    rng = np.random.default_rng(8)
    noise = rng.standard_normal((400, 700))
    x = noise.copy()
    for t in range(1, x.shape[1]):
        x[:, t] += 0.6 * x[:, t - 1]
    rates = [
        CusumDetector(far=0.05, horizon=500, reference="warmup:200", whiten=whiten).predict(x).any(axis=1).mean()
        for whiten in (False, True)
    ]
    assert rates[0] > 0.5 and rates[1] < 0.15


def test_a_record_is_bounded_and_even() -> None:
    record = Record(limit=64)
    for index in range(1000):
        record.add(index, 0.0, 0.0)
    labels = [row[0] for row in record.rows]
    assert 32 <= len(labels) <= 64 and len(set(np.diff(labels))) == 1 and labels[0] == 0
    other = Record(limit=64)
    other.load_state_dict(thaw(freeze(record.state_dict())))
    record.add(1000, 0.0, 0.0), other.add(1000, 0.0, 0.0)
    assert record.state_dict() == other.state_dict()


def test_a_reset_does_not_forget_the_sample_before() -> None:
    """Whitening subtracts it; it is data, not evidence."""
    detector = CusumDetector(reference="normal:0,1,0.5", k=0.5, h=6.0, after_alarm="reset")
    assert detector.update(7.0).drift_detected
    assert detector.update(6.0).statistic == 6.0 - 0.5 * 7.0 - 0.5
    assert detector.reset().update(2.0).statistic == 1.5

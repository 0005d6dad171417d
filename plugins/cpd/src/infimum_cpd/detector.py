"""The detector: one sample at a time like river, whole streams like scikit-learn."""

from __future__ import annotations

import inspect
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infimum.errors import InputError, did_you_mean
from infimum_cpd.checks import among, clip, flag, not_negative, sample, samples
from infimum_cpd.options import DIRECTIONS, ONSETS, chosen_threshold, read_reference
from infimum_cpd.reference import Reference
from infimum_cpd.statistic import Floats, Onset, cusum

AFTER = ("continue", "reset", "relearn")
NAN = ("skip", "alarm", "raise")


class CusumDetector:
    """Says when the mean of a stream has moved for good, and since when.

    `W_t = max(0, W_{t-1} + z_t - k)` with z = (x - center) / scale of an in-control reference; an alarm at the first
    `W_t >= h` (Page 1954). Center and scale are median and MAD by default and stay fixed. An update costs the same
    however long the stream is, also with `onset="glr"`.

    Sample by sample `update(x)` and `drift_detected`; for whole streams `fit(reference)`, `predict(stream)`. The two do
    not disturb each other.

    Parameters
    ----------
    direction : {"up", "down", "both"}, default "up"
        Which way of the mean is an alarm. With "both" two statistics run and the larger one counts.
    k : float, default 0.5
        Allowance in standard deviations: half the shift that matters. With 0 false alarms get likelier the longer the
        stream.
    h : float, optional
        Threshold in standard deviations; instead of `arl0` or `far`.
    arl0 : float, optional
        Mean number of samples between false alarms, by Siegmund's formula for a reference that is known exactly; 1000
        when nothing is said.
    far, horizon : float and int, optional
        Instead: the chance of a false alarm within `horizon` samples, with the errors of a reference of so few samples
        taken into account.
    reference : "warmup:N", "normal:CENTER,SCALE", Reference or array_like, default "warmup:64"
        In-control samples, their numbers, or how many of the first samples to take for it. With `arl0` a reference of
        few samples makes false alarms more frequent than stated: its center is off by about 1.25 scale / sqrt(N).
    robust : bool, default True
        Median and MAD instead of mean and standard deviation. Of skewed samples the median is not the mean, and false
        alarms are far more frequent than stated; `reference_.bias` tells.
    scale_floor : float, optional
        Least scale, for streams that may stand still.
    whiten : bool, default False
        Take out the lag-1 autocorrelation of the reference.
    zmax : float, optional
        Clip z to [-zmax, zmax], so that a single wild sample cannot raise the alarm; above k.
    onset : {"glr", "last_zero"}, default "glr"
        Estimate of the first sample of the new regime: by likelihood ratio, or after the last zero of W. The former
        discounts two standard errors of the reference's center (at most k), which add up over a long stream.
    on_nan : {"skip", "alarm", "raise"}, default "skip"
        A sample that is NaN or inf never enters the sum.
    after_alarm : {"continue", "reset", "relearn"}, default "continue"
        What the sample after an alarm meets: W as it is, W = 0, or W = 0 and a new warm-up.

    Attributes
    ----------
    statistic : float
        W of the last sample (with "both" the larger one).
    drift_detected : bool
        Whether the last sample is in alarm.
    alarm, onset_index : int or None
        Index (from 0, or the label given to `update`) of the first alarm since the start or the last reset, and of the
        first sample of the new regime.
    rising : bool or None
        Which way the mean has moved.

    Raises
    ------
    InputError
        For options out of range, contradictory thresholds, or a reference that is too short or without spread.

    Examples
    --------
    >>> detector = CusumDetector(reference="normal:0,1", h=5.0)
    >>> stream = [0.0] * 20 + [2.0] * 10
    >>> [detector.update(x).drift_detected for x in stream].index(True), detector.onset_index
    (23, 20)
    """

    def __init__(
        self,
        direction: Literal["up", "down", "both"] = "up",
        k: float = 0.5,
        h: float | None = None,
        arl0: float | None = None,
        far: float | None = None,
        horizon: int | None = None,
        reference: Any = "warmup:64",
        robust: bool = True,
        scale_floor: float | None = None,
        whiten: bool = False,
        zmax: float | None = None,
        onset: Literal["glr", "last_zero"] = "glr",
        on_nan: Literal["skip", "alarm", "raise"] = "skip",
        after_alarm: Literal["continue", "reset", "relearn"] = "continue",
    ) -> None:
        among("direction", direction, DIRECTIONS)
        among("onset", onset, ONSETS)
        among("on_nan", on_nan, NAN)
        among("after_alarm", after_alarm, AFTER)
        not_negative("k", k, remark=", in standard deviations")
        clip(zmax, k)
        flag("robust", robust)
        flag("whiten", whiten)
        self.direction, self.k, self.h = direction, k, h
        self.arl0, self.far, self.horizon = arl0, far, horizon
        self.reference, self.robust, self.scale_floor, self.whiten = reference, robust, scale_floor, whiten
        self.zmax, self.onset, self.on_nan, self.after_alarm = zmax, onset, on_nan, after_alarm
        self.warmup, self.reference_ = read_reference(reference, robust, scale_floor, whiten)
        self._choose(self.warmup if self.reference_ is None else self.reference_.n)
        if after_alarm == "relearn" and not self.warmup:
            raise InputError(
                "cusum: after_alarm='relearn' needs reference='warmup:N', so that there is what to learn from"
            )
        self._signs = {"up": (1.0,), "down": (-1.0,), "both": (1.0, -1.0)}[direction]
        self._first = self.reference_
        self.reset()

    def _choose(self, samples: int) -> None:
        sided = 2 if self.direction == "both" else 1
        numbers = (self.h, self.k, self.arl0, self.far, self.horizon)
        self.threshold = chosen_threshold(*numbers, sided, samples, self.robust)

    def reset(self) -> CusumDetector:
        """Back to before the first sample; a reference from `fit` or from the options stays."""
        self.count = 0
        self.reference_ = self._first
        self.learning: list[float] = []
        self._before = 0.0
        self._restart()
        self.drift_detected = False
        return self

    def _restart(self) -> None:
        self._w = [0.0 for _ in self._signs]
        self._zero: list[int | None] = [None for _ in self._signs]
        self._hulls = [Onset() for _ in self._signs] if self.onset == "glr" else []
        self.alarm: int | None = None
        self.onset_index: int | None = None
        self.rising: bool | None = None

    @property
    def statistic(self) -> float:
        return max(self._w)

    @property
    def ready(self) -> bool:
        """Whether there is a reference yet."""
        return self.reference_ is not None

    def update(self, x: float, label: int | None = None) -> CusumDetector:
        """Take in one sample.

        Parameters
        ----------
        x : float
        label : int, optional
            What `alarm` and `onset_index` call it, such as an iteration; its index by default.

        Returns
        -------
        CusumDetector
            Itself.

        Raises
        ------
        InputError
            For what is no number, NaN or inf with `on_nan="raise"`, and where a warm-up has no spread.
        """
        x = sample(x, "cusum")
        label = self.count if label is None else label
        self.count += 1
        if self.drift_detected and self.after_alarm != "continue":
            self._restart()
            if self.after_alarm == "relearn":
                self.reference_ = None
        self.drift_detected = False
        if not math.isfinite(x):
            self._refused(x, label)
        elif self.reference_ is None:
            self._learn(x)
        else:
            self._advance(x, label, self.reference_)
        return self

    def _refused(self, x: float, label: int) -> None:
        if self.on_nan == "raise":
            raise InputError(f"cusum: sample {label} is {x}; drop it, or choose on_nan='skip' or 'alarm'")
        if self.on_nan == "alarm":
            self.drift_detected = True
            if self.alarm is None:
                self.alarm = self.onset_index = label

    def _learn(self, x: float) -> None:
        self.learning.append(x)
        if len(self.learning) >= self.warmup:
            self.reference_ = Reference.of(self.learning, self.robust, self.scale_floor, self.whiten)
            self._before = self.learning[-1] - self.reference_.center
            self.learning = []

    def _advance(self, x: float, label: int, reference: Reference) -> None:
        deviation = x - reference.center
        z = (
            (deviation - reference.rho * self._before) / reference.scale
            if reference.rho
            else deviation / reference.scale
        )
        self._before = deviation
        if self.zmax is not None:
            z = min(self.zmax, max(-self.zmax, z))
        w, zero = self._w, self._zero
        slack = min(self.k, 2.0 * reference.error)
        for side, sign in enumerate(self._signs):
            if w[side] == 0.0:
                zero[side] = label
            w[side] = max(0.0, w[side] + sign * z - self.k)
            if self._hulls:
                self._hulls[side].add(sign * z - slack, label)
        if max(w) >= self.threshold:
            self.drift_detected = True
            if self.alarm is None:
                self._mark(label)

    def _mark(self, label: int) -> None:
        side = self._w.index(max(self._w))
        self.alarm = label
        self.rising = self._signs[side] > 0
        self.onset_index = self._hulls[side].best() if self._hulls else self._zero[side]

    # Whole streams -----------------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: object = None) -> CusumDetector:
        """Take `X`, shape (n,) or (n, 1), for the in-control reference."""
        x = samples(X, "reference")
        x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
        self._first = Reference.of(x, self.robust, self.scale_floor, self.whiten)
        self._choose(self._first.n)
        return self.reset()

    def decision_function(self, X: ArrayLike) -> Floats:
        """The statistic W along each stream, as `update` would give it without anything after an alarm.

        Parameters
        ----------
        X : array_like, shape (n,) or (streams, n)
            Time is the last axis. With a warm-up and no `fit`, the first samples of each stream are its own reference,
            and W is 0 there. Samples that are not finite are skipped: W stays what it was.

        Returns
        -------
        ndarray, the same shape

        Raises
        ------
        InputError
            For another shape, non-finite samples with `on_nan="raise"`, or a warm-up as long as the stream.
        """
        x = samples(X, "stream")
        if x.ndim not in (1, 2):
            raise InputError(f"stream has shape {x.shape}; expected (n,) or (streams, n)")
        bad = ~np.isfinite(x)
        if self.on_nan == "raise" and bad.any():
            raise InputError(f"cusum: {int(bad.sum())} samples are NaN or inf; drop them, or choose on_nan='skip'")
        if self._first is not None and not (bad.any() and self._first.rho):
            return self._statistics(self._first.standardize(x), bad)
        if x.ndim == 2:
            return np.stack([self.decision_function(one) for one in x]) if len(x) else x
        return self._alone(x, bad)

    def _statistics(self, z: Floats, bad: NDArray[np.bool_]) -> Floats:
        if self.zmax is not None:
            np.clip(z, -self.zmax, self.zmax, out=z)
        sides = []
        for sign in self._signs:
            steps = sign * z
            steps[bad] = self.k  # adds nothing
            sides.append(cusum(steps, self.k))
        return np.maximum(*sides) if len(sides) == 2 else sides[0]

    def _alone(self, x: Floats, bad: NDArray[np.bool_]) -> Floats:
        good = np.flatnonzero(~bad)
        reference, begin = self._first, 0
        if reference is None:
            if good.size <= self.warmup:
                raise InputError(
                    f"stream has {good.size} finite samples, no more than the warm-up of {self.warmup}; "
                    "fit() a reference"
                )
            reference = Reference.of(x[good[: self.warmup]], self.robust, self.scale_floor, self.whiten)
            begin = self.warmup
        z = reference.standardize(x[good])[begin:]
        part = self._statistics(z, np.zeros(z.shape, dtype=bool))
        w = np.zeros(x.shape)
        w[good[begin:]] = part
        held = np.maximum.accumulate(np.where(bad, -1, np.arange(x.size)))
        return np.where(held >= 0, w[held], 0.0)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """1 where a stream is in alarm, else 0; shape as `decision_function`. Bad samples: 1 with `on_nan="alarm"`."""
        alarms = self.decision_function(X) >= self.threshold
        if self.on_nan == "alarm":
            alarms |= ~np.isfinite(samples(X, "stream"))
        return alarms.astype(np.int64)

    # State and parameters ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Plain data; with the same options `load_state_dict` goes on bit for bit."""
        return {
            "count": self.count,
            "w": list(self._w),
            "before": self._before,
            "zero": list(self._zero),
            "hulls": [one.state_dict() for one in self._hulls],
            "alarm": self.alarm,
            "onset": self.onset_index,
            "rising": self.rising,
            "drift": self.drift_detected,
            "learning": list(self.learning),
            "reference": None if self.reference_ is None else self.reference_.to_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict`.

        Raises
        ------
        InputError
            If it was taken with another direction or onset.
        """
        if len(state["w"]) != len(self._signs) or len(state["hulls"]) != len(self._hulls):
            raise InputError(
                "cusum: the state was saved with another direction or onset; continue with the same options"
            )
        self.count, self._before = int(state["count"]), float(state["before"])
        self._w, self._zero = [float(one) for one in state["w"]], list(state["zero"])
        for hull, saved in zip(self._hulls, state["hulls"], strict=True):
            hull.load_state_dict(saved)
        self.alarm, self.onset_index, self.rising = state["alarm"], state["onset"], state["rising"]
        self.drift_detected, self.learning = bool(state["drift"]), [float(one) for one in state["learning"]]
        self.reference_ = None if state["reference"] is None else Reference(**state["reference"])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **options: Any) -> CusumDetector:
        """Change options; the stream starts anew."""
        known = self.get_params()
        for name in options:
            if name not in known:
                raise InputError(f"cusum: no option {name!r}; {did_you_mean(name, known)}")
        self.__init__(**{**known, **options})  # type: ignore[misc]
        return self

"""The stopping rule `cpd.cusum`."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, ClassVar, Literal, NoReturn

from annotated_types import Ge, Gt, Lt

from infimum.errors import InputError
from infimum.status import Status
from infimum.stopping import UNKNOWN, Progress, Reason, StoppingRule
from infimum.stopping.base import Tracker, Unknown
from infimum_cpd.checks import among, positive, whole
from infimum_cpd.detector import CusumDetector
from infimum_cpd.options import as_text, read_reference
from infimum_cpd.record import Record

TRANSFORMS = ("level", "log", "change", "log_change")
POLICIES = ("skip", "stop", "raise")
logger = logging.getLogger("infimum")


@dataclass(frozen=True, repr=False)
class Cusum(StoppingRule):
    """Stop when the mean of a metric has moved for good, by CUSUM against an in-control reference; status `stalled`.

    Made for small persistent shifts, of which a look at single values says nothing. A sudden big jump a 3-sigma rule
    sees as soon or sooner, and for a plateau patience does as well.

    Parameters
    ----------
    metric : str, default "value"
        Any metric that the solver, the problem or the loop supplies, in the user's sense.
    direction : {"up", "down", "both"}, default "up"
        Which way of its mean ends the run.
    k : float, default 0.5
        Allowance in standard deviations: half the shift that matters.
    h : float, optional
        Threshold in standard deviations; instead of `arl0` or `far`.
    arl0 : float, optional
        Mean number of checks between false alarms (Siegmund, for a reference known exactly); 1000 when nothing is said.
    far : float, optional
        Instead, together with `horizon`: the chance of a false alarm within so many checks, with the errors of a
        reference of few samples taken into account.
    horizon : int, optional
        Checks that `far` is about.
    reference : str or list of float, default "warmup:64"
        "warmup:N", the first N samples after `skip`; "normal:CENTER,SCALE"; or in-control samples, of the transformed
        metric, kept as the numbers that follow from them.
    transform : {"level", "log", "change", "log_change"}, default "level"
        What is watched: the metric, its logarithm (metric > 0; a loss of batches is skewed, and its logarithm less so),
        or the change of either since the check before. The mean of a change shifts when progress ends:
        `direction="up"` with "log_change" ends a run whose loss no longer falls as fast as the reference says. A metric
        that is negative from the start has no logarithm and is refused; later `on_nan` says what happens.
    skip : int, default 0
        Samples at the start that are left out: the transient.
    robust : bool, default True
        Median and MAD instead of mean and standard deviation. Of skewed samples, such as losses of batches, the median
        is not the mean, and false alarms are far more frequent than stated: take False or "log" there.
    scale_floor : float, optional
        Least scale; needed where the reference may have no spread.
    whiten : bool, default False
        Take out the lag-1 autocorrelation of the reference.
    zmax : float, optional
        Clip standardized samples, against single wild ones.
    onset : {"glr", "last_zero"}, default "glr"
        Estimate of the iteration at which the change began.
    on_nan : {"skip", "stop", "raise"}, default "skip"
        What a metric that is NaN or inf does: nothing, end the run as `nonfinite`, or an error.
    action : {"stop", "warn"}, default "stop"
        "warn" writes to the log instead of ending the run, and goes on with W = 0.
    cooldown : int, default 0
        With "warn": samples left out after an alarm.

    Raises
    ------
    InputError
        For options out of range, contradictory thresholds, or a reference that is too short or without spread.

    References
    ----------
    E. S. Page, Continuous inspection schemes, Biometrika 1954; D. Siegmund, Sequential Analysis, 1985.
    """

    metric: str = "value"
    direction: Literal["up", "down", "both"] = "up"
    k: Annotated[float, Ge(0)] = 0.5
    h: Annotated[float, Gt(0)] | None = None
    arl0: Annotated[float, Gt(0)] | None = None
    far: Annotated[float, Gt(0), Lt(1)] | None = None
    horizon: Annotated[int, Ge(1)] | None = None
    reference: str | Sequence[float] = "warmup:64"
    transform: Literal["level", "log", "change", "log_change"] = "level"
    skip: Annotated[int, Ge(0)] = 0
    robust: bool = True
    scale_floor: Annotated[float, Gt(0)] | None = None
    whiten: bool = False
    zmax: Annotated[float, Gt(0)] | None = None
    onset: Literal["glr", "last_zero"] = "glr"
    on_nan: Literal["skip", "stop", "raise"] = "skip"
    action: Literal["stop", "warn"] = "stop"
    cooldown: Annotated[int, Ge(0)] = 0

    word: ClassVar[str] = "cpd.cusum"
    status: ClassVar[Status] = Status.stalled
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"reference": "warmup:8", "h": 8.0},
        {"metric": "residual", "direction": "both", "reference": "normal:0.5,0.1", "arl0": 500, "transform": "change"},
        {"reference": [0.9, 1.1, 1.0, 0.8, 1.2, 1.0, 0.95, 1.05], "direction": "down", "far": 0.05, "horizon": 400},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.metric, str) and self.metric):
            raise InputError(f"cpd.cusum: metric={self.metric!r}; expected the name of a metric, such as 'value'")
        among("transform", self.transform, TRANSFORMS, self.word)
        among("on_nan", self.on_nan, POLICIES, self.word)
        among("action", self.action, ("stop", "warn"), self.word)
        positive("scale_floor", self.scale_floor, self.word)
        for name in ("skip", "cooldown"):
            whole(name, getattr(self, name), 0, self.word)
        if self.cooldown and self.action == "stop":
            raise InputError(
                f"{self.word}: cooldown={self.cooldown} does nothing with action='stop'; say action='warn'"
            )
        if not isinstance(self.reference, str):
            _, known = read_reference(self.reference, self.robust, self.scale_floor, self.whiten)
            assert known is not None
            object.__setattr__(self, "reference", as_text(known))
        self.detector()

    def detector(self) -> CusumDetector:
        """A fresh detector with these options."""
        names = ("direction", "k", "h", "arl0", "far", "horizon", "reference", "robust", "scale_floor", "whiten")
        options = {name: getattr(self, name) for name in (*names, "zmax", "onset")}
        return CusumDetector(**options, after_alarm="reset" if self.action == "warn" else "continue")

    def metrics(self) -> frozenset[str]:
        return frozenset({self.metric})

    def start(self) -> Tracker:
        return CusumTracker(self)


class CusumTracker:
    """The detector of one run, with what it saw."""

    def __init__(self, rule: Cusum) -> None:
        self.rule, self.detector = rule, rule.detector()
        self.seen, self.rest, self.refused = 0, 0, 0
        self.last: float | None = None
        self.alarms: list[list[int]] = []
        self.record = Record()

    def update(self, progress: Progress) -> Reason | Unknown | None:
        given = progress.metrics.get(self.rule.metric)
        if given is None:
            return UNKNOWN
        value = float(given) if isinstance(given, Real) else self._number(given)
        if value < 0.0 and not self.seen and self.rule.transform in ("log", "log_change"):
            self._no_logarithm(value, progress.iteration)
        sample = self._transformed(value)
        if sample is None:
            return UNKNOWN
        if not math.isfinite(sample):
            return self._refused(value, progress.iteration)
        if self.seen < self.rule.skip or self.rest:
            self.seen, self.rest = self.seen + 1, max(0, self.rest - 1)
            return UNKNOWN
        self.seen += 1
        detector = self.detector.update(sample, progress.iteration)
        if not detector.ready:
            return UNKNOWN
        self.record.add(progress.iteration, detector.statistic, sample)
        return self._alarm(progress.iteration) if detector.drift_detected else None

    def _number(self, value: Any) -> float:
        try:
            return float(value.detach() if hasattr(value, "detach") else value)
        except (TypeError, ValueError):
            raise InputError(
                f"{self.rule.word}: metric '{self.rule.metric}' is a {type(value).__name__}; expected a number"
            ) from None

    def _no_logarithm(self, value: float, iteration: int) -> NoReturn:
        """Nothing would ever be seen, and nobody told."""
        rule = self.rule
        raise InputError(
            f"{rule.word}: transform='{rule.transform}', but metric '{rule.metric}' is {value:.6g} at iteration "
            f"{iteration}, which has no logarithm; take 'level' or 'change', or a metric that is positive"
        )

    def _transformed(self, value: float) -> float | None:
        transform = self.rule.transform
        if transform in ("log", "log_change"):
            value = math.log(value) if value > 0 else math.nan
        if transform in ("level", "log"):
            return value
        last, self.last = self.last, value if math.isfinite(value) else self.last
        return None if last is None and math.isfinite(value) else value - (0.0 if last is None else last)

    def _refused(self, value: float, iteration: int) -> Reason | Unknown:
        self.refused += 1
        kind = f"{value}" if not math.isfinite(value) else f"{value:.3g}, which has no logarithm,"
        message = f"metric '{self.rule.metric}' was {kind} at iteration {iteration}"
        if self.rule.on_nan == "raise":
            raise InputError(f"{self.rule.word}: {message}; on_nan='skip' leaves such samples out")
        if self.rule.on_nan == "stop":
            return Reason(str(self.rule), Status.nonfinite, message, {"iteration": iteration})
        return UNKNOWN

    def _alarm(self, iteration: int) -> Reason | None:
        detector, rule = self.detector, self.rule
        way = "risen" if detector.rising else "fallen"
        onset = -1 if detector.onset_index is None else detector.onset_index
        what = rule.metric if rule.transform == "level" else f"{rule.transform} of {rule.metric}"
        message = (
            f"the mean of {what} has {way} since about iteration {onset}: "
            f"W {detector.statistic:.4g} >= {detector.threshold:.4g}"
        )
        self.alarms = [*self.alarms[-99:], [iteration, onset]]
        if rule.action == "warn":
            logger.warning("%s at iteration %d: %s", rule.word, iteration, message)
            self.rest = rule.cooldown
            return None
        values = {"statistic": detector.statistic, "threshold": detector.threshold, "onset": onset}
        return Reason(str(rule), rule.status, message, values)

    def extras(self) -> dict[str, Any]:
        """What a result keeps for its report."""
        reference = self.detector.reference_
        return {
            "metric": self.rule.metric,
            "statistic": self.detector.statistic,
            "threshold": self.detector.threshold,
            "k": self.detector.k,
            "sided": 2 if self.detector.direction == "both" else 1,
            "rows": [list(one) for one in self.record.rows],
            "alarms": [list(one) for one in self.alarms],
            "samples": self.seen,
            "refused": self.refused,
            "reference": "not learned yet" if reference is None else reference.describe(),
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "detector": self.detector.state_dict(),
            "seen": self.seen,
            "rest": self.rest,
            "refused": self.refused,
            "last": self.last,
            "alarms": [list(one) for one in self.alarms],
            "record": self.record.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.detector.load_state_dict(state["detector"])
        self.seen, self.rest, self.last = state["seen"], state["rest"], state["last"]
        self.refused = int(state.get("refused", 0))
        self.alarms = [list(one) for one in state["alarms"]]
        self.record.load_state_dict(state["record"])

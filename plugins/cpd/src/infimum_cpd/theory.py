"""Run lengths of CUSUM on standard normal samples: false alarms, thresholds, delays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_cpd.checks import is_number, share, whole

Floats = NDArray[np.floating[Any]]

SIDES = (-1.0, 1.0)
OVERSHOOT = 1.166
"""Siegmund's correction: 2 * 0.5826, the mean overshoot of a normal random walk at both barriers."""


def arl0(h: float, k: float = 0.5, sided: int = 1) -> float:
    """Mean number of samples between false alarms, by Siegmund's formula.

    With b = h + 1.166 it is (exp(2kb) - 2kb - 1) / (2k²), and b² for k = 0, on independent standard normal samples
    whose center and scale are known. Positive autocorrelation, heavy tails and an estimated reference shorten it.

    Parameters
    ----------
    h : float
        Threshold, in units of the in-control standard deviation; at least 0.
    k : float, default 0.5
        Allowance (the least drift that counts), in the same units; at least 0. 0.5 is best against a shift of 1.
    sided : {1, 2}, default 1
        2 for a detector of both directions, which has half the run length.

    Returns
    -------
    float
        inf where it exceeds the range of floats.

    Raises
    ------
    InputError
        For a negative number or another `sided`.

    References
    ----------
    D. Siegmund, Sequential Analysis, 1985, section X.2.
    """
    _check(h, k, sided)
    b = h + OVERSHOOT
    x = 2.0 * k * b
    if x > 700.0:
        return math.inf
    series = b * b * (1.0 + x / 3.0 + x * x / 12.0)
    return (series if x < 1e-3 else (math.expm1(x) - x) / (2.0 * k * k)) / sided


def threshold(arl: float = 1000.0, k: float = 0.5, sided: int = 1) -> float:
    """The threshold h whose mean time between false alarms is `arl`: `arl0` inverted.

    Parameters
    ----------
    arl : float, default 1000
        Samples between false alarms; more than `arl0(0, k, sided)`.
    k, sided
        As in `arl0`.

    Raises
    ------
    InputError
        For an `arl` that even h = 0 exceeds, or that is not finite.
    """
    shortest = arl0(0.0, k, sided)
    if not (is_number(arl) and arl > shortest):
        raise InputError(f"arl0={arl!r}; expected a finite number of samples above {shortest:.3g} (the one of h=0)")
    high = 1.0
    while arl0(high, k, sided) < arl:
        high *= 2.0
    return _bisect(lambda h: arl0(h, k, sided) < arl, 0.0, high)


def false_alarm_probability(
    h: float, horizon: int, k: float = 0.5, sided: int = 1, samples: int = 0, robust: bool = True
) -> float:
    """Chance of an alarm within `horizon` in-control samples, 1 - exp(-horizon / ARL0).

    With k = 0 it grows with the length of the stream: about 1 - exp(-horizon / h²).

    Parameters
    ----------
    h, k, sided
        As in `arl0`.
    horizon : int
        Number of samples.
    samples : int, default 0
        Samples that center and scale were estimated from; 0 when they are known. The chance is then averaged over the
        normal errors of both: an error of the center is a drift.
    robust : bool, default True
        Whether they are median and MAD.
    """
    _check(h, k, sided)
    whole("horizon", horizon, 0, "false_alarm_probability")
    whole("samples", samples, 0, "false_alarm_probability")
    if not samples:
        return -math.expm1(-horizon / arl0(h, k, sided))
    drift, stretch, weight = _errors(samples, robust)
    rate = sum(1.0 / _arl((h + OVERSHOOT * stretch) / stretch, (k + sign * drift) / stretch) for sign in SIDES[:sided])
    return float(weight @ -np.expm1(-horizon * rate))


def _arl(b: Floats, k: Floats) -> Floats:
    """Siegmund's formula for any drift -k, b with the correction."""
    x = np.clip(2.0 * k * b, -600.0, 600.0)  # exp(600) samples are for ever, and b² times it is still a number
    small = np.abs(x) < 1e-3
    safe = np.where(small, 1.0, x)
    ratio = np.where(small, 1.0 + x / 3.0, 2.0 * (np.expm1(safe) - safe) / safe**2)
    return np.asarray(b * b * ratio)


def _errors(samples: int, robust: bool) -> tuple[Floats, Floats, Floats]:
    """Errors of center and scale in scales, and their weights: large-sample normal laws, 15 nodes each.

    The variances are pi/2 and 1.36 over n for median and MAD, 1 and 1/2 for mean and standard deviation.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    weights = weights / weights.sum()
    center, scale = (math.pi / 2.0, 1.36) if robust else (1.0, 0.5)
    drift, stretch = np.meshgrid(nodes * math.sqrt(center / samples), np.exp(nodes * math.sqrt(scale / samples)))
    return drift.ravel(), stretch.ravel(), np.outer(weights, weights).ravel()


def threshold_for(
    probability: float, horizon: int, k: float = 0.5, sided: int = 1, samples: int = 0, robust: bool = True
) -> float:
    """The threshold at which an alarm within `horizon` in-control samples has this probability.

    Parameters
    ----------
    probability : float
        Between 0 and 1.
    horizon, k, sided, samples, robust
        As in `false_alarm_probability`. A reference of few samples needs a higher threshold.

    Raises
    ------
    InputError
        For a probability outside (0, 1), a horizon below 1, or where no threshold up to 10,000 will do: the
        errors of so few samples exceed k.
    """
    share("far", probability, what="probability")
    whole("horizon", horizon, 1)

    def short(h: float) -> bool:
        return false_alarm_probability(h, horizon, k, sided, samples, robust) > probability

    high = 1.0
    while short(high):
        high *= 2.0
        if high > 1e4:
            raise InputError(f"far={probability!r} within {horizon} samples cannot be held with {samples} samples")
    return _bisect(short, 0.0, high)


def _bisect(short: Callable[[float], bool], low: float, high: float) -> float:
    """The least h that is not too short, to 13 digits."""
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


def delay(h: float, shift: float, k: float = 0.5) -> float:
    """Mean number of samples from a shift of the mean to its alarm, Siegmund's formula again; about b/(shift - k).

    Parameters
    ----------
    h, k : float
        As in `arl0`.
    shift : float
        In units of the in-control standard deviation; above k.

    Raises
    ------
    InputError
        For a shift that is not above k: only chance crosses the threshold then.
    """
    _check(h, k, 1)
    if not (is_number(shift) and shift > k):
        raise InputError(f"shift={shift!r} is not above k={k!r}, so no alarm is due; expected a larger shift")
    b, d = h + OVERSHOOT, shift - k
    return (math.expm1(-2.0 * d * b) + 2.0 * d * b) / (2.0 * d * d)


def best_allowance(shift: float) -> float:
    """The k with the shortest delay against a known shift, at a given ARL0: half of it."""
    return 0.5 * shift


def _check(h: float, k: float, sided: int) -> None:
    if not (is_number(h) and h >= 0.0):
        raise InputError(f"h={h!r}; expected a finite threshold >= 0, in standard deviations")
    if not (is_number(k) and k >= 0.0):
        raise InputError(f"k={k!r}; expected a finite allowance >= 0, in standard deviations")
    if sided not in (1, 2):
        raise InputError(f"sided={sided!r}; expected 1 (up or down) or 2 (both)")

"""A cheap detector before a costly guard: the guard is asked only about what the detector suspects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infimum.errors import InputError
from infimum_cpd.checks import sample, samples
from infimum_cpd.entropy import EntropyDetector


class Gate:
    """Calls `guard` only on texts whose score reaches a threshold; the others pass as harmless.

    Parameters
    ----------
    detector : EntropyDetector
    guard : callable
        `guard(text) -> bool`, True for a text to be refused.
    threshold : float, optional
        Least score with which the guard is called; the detector's own by default. A low one saves and misses little.

    Attributes
    ----------
    texts, calls : int
        How many texts came, and how many of them the guard saw.

    Examples
    --------
    >>> gate = Gate(detector, guard)                       # doctest: +SKIP
    >>> refused = [gate(text) for text in texts]           # doctest: +SKIP
    >>> gate.saved                                         # doctest: +SKIP
    0.82
    """

    def __init__(self, detector: EntropyDetector, guard: Callable[[str], Any], threshold: float | None = None) -> None:
        if not callable(guard):
            raise InputError(f"Gate: guard={guard!r}; expected a callable that takes a text")
        if not hasattr(detector, "score"):
            raise InputError(f"Gate: detector is {detector!r:.60}; expected an EntropyDetector")
        self.detector, self.guard = detector, guard
        self.threshold = sample(detector.threshold if threshold is None else threshold, "Gate: threshold")
        if self.threshold != self.threshold:
            raise InputError("Gate: threshold=nan, which no score reaches; expected a number")
        self.texts = self.calls = 0

    def __call__(self, text: str) -> bool:
        self.texts += 1
        if self.detector.score(text).score < self.threshold:
            return False
        self.calls += 1
        return bool(self.guard(text))

    @property
    def saved(self) -> float:
        """Share of guard calls saved so far."""
        return 1.0 - self.calls / self.texts if self.texts else 0.0


@dataclass(frozen=True)
class GateCurve:
    """What every threshold of a gate would have done; arrays of one length, thresholds rising.

    Attributes
    ----------
    threshold, saved, precision, recall, f1 : ndarray
        Share of guard calls saved, and the verdicts of gate and guard together over all texts.
    """

    threshold: NDArray[np.float64]
    saved: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


def gate_curve(scores: ArrayLike, verdicts: ArrayLike, labels: ArrayLike) -> GateCurve:
    """Sweep the threshold over texts whose guard verdicts and labels are known.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Of the detector.
    verdicts, labels : array_like of bool, shape (n,)
        What the guard says of each text, and what is true.

    Raises
    ------
    InputError
        If the lengths differ, there is no text, or a score is NaN.
    """
    s, v, y = samples(scores, "gate_curve"), np.asarray(verdicts, dtype=bool), np.asarray(labels, dtype=bool)
    if not (s.ndim == 1 and s.shape == v.shape == y.shape and s.size):
        raise InputError(f"gate_curve: shapes {s.shape}, {v.shape}, {y.shape}; expected three columns of one length")
    if np.isnan(s).any():
        raise InputError(f"gate_curve: {int(np.isnan(s).sum())} scores are NaN; leave such texts out")
    cuts = np.append(np.unique(s), np.inf)
    order = np.argsort(s, kind="stable")
    start = np.searchsorted(s[order], cuts, side="left")

    def tail(mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        sums = np.concatenate([np.cumsum(mask[order][::-1])[::-1], [0]])
        return np.asarray(sums[start], dtype=float)

    called, flagged, true = tail(np.ones_like(v)), tail(v), tail(v & y)
    return GateCurve(
        cuts,
        1.0 - called / s.size,
        true / np.maximum(flagged, 1.0),
        true / max(1, int(y.sum())),
        2.0 * true / np.maximum(flagged + y.sum(), 1.0),
    )

"""Comparing detectors on labeled texts; the length-only baseline is in every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infimum.errors import InputError
from infimum_cpd.baselines import length, perplexity, windowed_perplexity, windows
from infimum_cpd.checks import samples
from infimum_cpd.entropy import EntropyDetector
from infimum_cpd.language import TokenStats

WIDTHS = (10, 20)


def auroc(harmless: ArrayLike, suspicious: ArrayLike) -> float:
    """Chance that a suspicious text scores above a harmless one, ties counting half.

    Raises
    ------
    InputError
        If one of the sets is empty, or a score is NaN.
    """
    low, high = _scores(harmless), _scores(suspicious)
    ordered = np.sort(low)
    below = np.searchsorted(ordered, high, side="left")
    upto = np.searchsorted(ordered, high, side="right")
    return float((below + upto).mean() / (2.0 * low.size))


def best_f1(harmless: ArrayLike, suspicious: ArrayLike) -> tuple[float, float]:
    """The best F1 over all thresholds among the scores, and that threshold (ties: the higher recall).

    Chosen on the same texts, so an upper bound of what a threshold fixed before would reach.
    """
    low, high = _scores(harmless), _scores(suspicious)
    cuts = np.unique(np.concatenate([low, high]))
    false = low.size - np.searchsorted(np.sort(low), cuts, side="left")
    true = high.size - np.searchsorted(np.sort(high), cuts, side="left")
    f1 = 2.0 * true / (true + false + high.size)
    best = int(f1.argmax())
    return float(f1[best]), float(cuts[best])


def localization(alarms: Sequence[int | None], starts: Sequence[int | None], width: int = 1) -> dict[str, float]:
    """Where first alarms fell, as shares of all alarms on texts with a suffix.

    Parameters
    ----------
    alarms : sequence of int or None
        Token of the first alarm, or first token of the window, of each text with a suffix; None without an alarm.
    starts : sequence of int
        First token of each suffix.
    width : int, default 1
        Tokens in a window.

    Returns
    -------
    dict
        Shares `inside`, `before`, `straddling`, and `missed` (of all texts).
    """
    if len(alarms) != len(starts):
        raise InputError(f"localization: {len(alarms)} alarms, {len(starts)} starts; expected one for each text")
    found = [(one, start) for one, start in zip(alarms, starts, strict=True) if one is not None and start is not None]
    inside = sum(one >= start for one, start in found)
    before = sum(one + width <= start for one, start in found)
    count = max(1, len(found))
    return {
        "inside": inside / count,
        "before": before / count,
        "straddling": (len(found) - inside - before) / count,
        "missed": 1.0 - len(found) / max(1, len(alarms)),
    }


@dataclass(frozen=True)
class Comparison:
    """A table of detectors; `str` prints it, the length-only baseline last.

    Attributes
    ----------
    rows : mapping of str to mapping
        `auroc`, `f1`, and for those that point at a place `inside` and `before`, by method.
    scores : mapping of str to (harmless, suspicious)
        What the rows were made from.
    """

    rows: Mapping[str, Mapping[str, float]]
    scores: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]

    def __str__(self) -> str:
        lines = [f"{'method':<22} {'AUROC':>6} {'F1':>6} {'in suffix':>10} {'before':>7}"]
        for name, row in self.rows.items():
            place = [f"{row[one]:>{w}.1%}" if one in row else " " * w for one, w in (("inside", 10), ("before", 7))]
            lines.append(f"{name:<22} {row['auroc']:>6.3f} {row['f1']:>6.3f} {' '.join(place)}".rstrip())
        by_length = self.rows["length"]["auroc"]
        if max(by_length, 1.0 - by_length) > 0.6:
            lines.append("length alone tells the sets apart: match the lengths before believing the rows above")
        return "\n".join(lines)


def compare(
    detector: EntropyDetector,
    harmless: Sequence[str],
    suspicious: Sequence[str],
    starts: Sequence[int] | None = None,
) -> Comparison:
    """Score two sets of texts by the detector, its variants and the baselines.

    Parameters
    ----------
    detector : EntropyDetector
        Its model reads every text once; k, signal and scale are varied around it.
    harmless, suspicious : sequence of str
        Of matched lengths, or the last row will say so.
    starts : sequence of int, optional
        The character at which each suspicious text's suffix begins, for the share of alarms inside it. Thresholds
        are those of the best F1.

    Returns
    -------
    Comparison
    """
    if starts is not None and len(starts) != len(suspicious):
        raise InputError(f"compare: {len(suspicious)} suspicious texts, {len(starts)} starts; expected one for each")
    texts = [*harmless, *suspicious]
    read = [detector.read(one) for one in texts]
    cut = len(harmless)
    first = None if starts is None else [_token_of(read[cut + i][1], char) for i, char in enumerate(starts)]
    rows: dict[str, dict[str, float]] = {}
    scores: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}

    def add(name: str, values: Sequence[float], alarm: Any = None, width: int = 1) -> None:
        low, high = np.asarray(values[:cut]), np.asarray(values[cut:])
        f1, h = best_f1(low, high)
        scores[name], rows[name] = (low, high), {"auroc": auroc(low, high), "f1": f1}
        if alarm is not None and first is not None:
            rows[name] |= localization([alarm(i, h) for i in range(cut, len(texts))], first, width)

    for name, signal, k in _variants(detector):
        traces = [_trace(detector, one, signal, k) for one in read]
        add(name, [float(w.max()) for w in traces], lambda i, h, traces=traces: _first(traces[i], h))
    add("window 1 entropy", [float(np.nanmax(user.entropy)) for _, user in read])
    for width in WIDTHS:
        means = [windows(user.nll, width) for _, user in read]
        values = [windowed_perplexity(user.nll, width)[0] for _, user in read]
        add(f"WPP {width}", values, lambda i, h, means=means, width=width: _first(means[i], h, width), width)
    add("PP", [perplexity(user.nll) for _, user in read])
    add("length", [length(one) for one in texts])
    return Comparison(rows, scores)


def _variants(detector: EntropyDetector) -> list[tuple[str, str, float]]:
    found = [(f"CUSUM {signal} k={k:g}", signal, k) for signal in ("entropy", "nll") for k in (0.0, 0.5)]
    own = (f"CUSUM {detector.signal} k={detector.k:g}", detector.signal, detector.k)
    return found if own in found else [own, *found]


def _trace(
    detector: EntropyDetector, read: tuple[TokenStats, TokenStats], signal: str, k: float
) -> NDArray[np.float64]:
    variant = detector.variant(signal=signal, k=k)
    return variant.judge(*read).trace


def _first(values: NDArray[np.float64], h: float, width: int = 1) -> int | None:
    above = np.flatnonzero(values >= h)
    return int(above[0]) * width if above.size else None


def _token_of(stats: TokenStats, char: int) -> int:
    return int(np.searchsorted(stats.offsets[:, 1], char, side="right"))


def _scores(values: ArrayLike) -> NDArray[np.float64]:
    x = samples(values, "scores")
    if not x.size:
        raise InputError("there are no scores; expected one or more of each class")
    if np.isnan(x).any():
        raise InputError(f"{int(np.isnan(x).sum())} scores are NaN; leave such texts out")
    return x

"""When each rule would have stopped, read off the columns that the judge records. One function per rule.

All take the columns of one run up to now and say whether to stop now.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

Columns = Mapping[str, Sequence[float]]


def _finite(values: Sequence[float]) -> Any:
    array = np.asarray(values, dtype=float)
    return array[np.isfinite(array)]


def ucb_lcb(columns: Columns, tol: float = 0.01) -> bool:
    """The gap between the least upper and the least lower confidence bound is at most `tol`."""
    return bool(columns["ucb_lcb"] and columns["ucb_lcb"][-1] <= tol)


def srgap_median(columns: Columns, eta: float = 0.01, first: int = 20) -> bool:
    """The bound on the change of the expected minimum regret is at most `eta` times the median of its first values."""
    known = _finite(columns["regret_gap"])
    return bool(len(known) > first and columns["regret_gap"][-1] <= eta * float(np.median(known[:first])))


def log_eipc_median(columns: Columns, eta: float = 0.01, first: int = 20) -> bool:
    """The largest EIPC is at most `eta` times the median of its first values."""
    known = _finite(columns["log_eipc"])
    if columns["log_eipc"] and columns["log_eipc"][-1] == -math.inf:
        return True
    return bool(len(known) > first and columns["log_eipc"][-1] <= math.log(eta) + float(np.median(known[:first])))


def convergence(columns: Columns, patience: int = 5) -> bool:
    """The best value is the same as `patience` evaluations ago."""
    best = columns["best"]
    return len(best) > patience and best[-1] == best[-1 - patience]


def gss(columns: Columns, patience: int = 5, share: float = 0.01) -> bool:
    """The last `patience` evaluations improved the best value by at most `share` of its interquartile range."""
    best = np.asarray(columns["best"], dtype=float)
    if len(best) <= patience:
        return False
    low, high = np.quantile(best, [0.25, 0.75])
    return bool(abs(best[-1 - patience] - best[-1]) <= share * (high - low))


def fixed(columns: Columns, n: int) -> bool:
    """`n` evaluations were made."""
    return bool(columns["n"] and columns["n"][-1] >= n)


RULES: Final[dict[str, Callable[[Columns], bool]]] = {
    "UCB-LCB": ucb_lcb,
    "SRGap-med": srgap_median,
    "LogEIPC-med": log_eipc_median,
    "Convergence": convergence,
    "GSS": gss,
}
"""The rules with their usual options, by the names of the paper."""


def first_stop(columns: Columns, rule: Callable[[Columns], bool], start: int = 0) -> int | None:
    """The first row, from `start` on, at which a rule says stop; None when it never does."""
    length = len(columns["n"])
    for row in range(start, length):
        if rule({name: one[: row + 1] for name, one in columns.items()}):
            return row
    return None


def hindsight(columns: Columns, lam: float, sign: float = 1.0, start: int = 0) -> int:
    """The row at which stopping would have been best: the least of (best value + lam * cost). Needs the future."""
    total = sign * np.asarray(columns["best"], dtype=float) + lam * np.asarray(columns["paid"], dtype=float)
    return start + int(np.argmin(total[start:]))

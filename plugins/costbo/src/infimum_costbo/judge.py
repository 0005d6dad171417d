"""The stopping rule on a growing set of observations, with everything that a report of it needs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from infimum_costbo.cost import Cost, CostSource, check_lam
from infimum_costbo.measures import Measures
from infimum_costbo.model import Hypers, Model, build
from infimum_costbo.normal import Array
from infimum_costbo.observations import Observations
from infimum_costbo.search import best_point, candidates
from infimum_costbo.surrogate import Hyper


@dataclass(frozen=True)
class Judgment:
    """What the rule saw at one time, in the user's sense. NaN where there was no model yet.

    Attributes
    ----------
    n : int
        Finished evaluations with a value.
    best : float
        Best value.
    last : float
        Value of the last one.
    paid : float
        Cost paid for all of them.
    log_eipc : float
        Largest log expected improvement per expected cost.
    gain, price : float
        Expected improvement and expected cost at the point where that is taken.
    calibration : float
        r_t = min(1, (a + realized improvement) / (a + predicted improvement)).
    ucb_lcb, regret_gap : float
        Statistics of two rules from the literature (`costbo.ucb_lcb`, `costbo.srgap_median`).
    stop : bool
    reason : str
    """

    n: int
    best: float
    last: float
    paid: float
    log_eipc: float = math.nan
    gain: float = math.nan
    price: float = math.nan
    calibration: float = 1.0
    ucb_lcb: float = math.nan
    regret_gap: float = math.nan
    stop: bool = False
    reason: str = ""


COLUMNS = tuple(one.name for one in fields(Judgment) if one.name not in ("stop", "reason"))


@dataclass(frozen=True)
class Terms:
    """Options of the rule; see `CostAwareStopper`."""

    lam: float
    cost: Cost = None
    warp: str | None = "auto"
    min_trials: int | None = None
    window: int = 1
    calibrate: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "lam", check_lam(self.lam))

    def least(self, width: int) -> int:
        """Evaluations before the rule may stop: 2 (d + 1) unless told."""
        return 2 * (width + 1) if self.min_trials is None else max(self.min_trials, 2)


class Judge:
    """Looks at the observations after each evaluation; the memory of one run.

    Parameters
    ----------
    terms : Terms
    measures : bool, default True
        Also compute the statistics of the other rules.
    """

    def __init__(self, terms: Terms, *, measures: bool = True) -> None:
        self.terms = terms
        self.source = CostSource(terms.cost)
        self.history: list[Judgment] = []
        self.model: Model | None = None
        self._measures = Measures() if measures else None
        self._recent: deque[float] = deque(maxlen=terms.window)
        self._seen: set[int] = set()
        self._realized = self._predicted = self._first = 0.0

    def look(self, observed: Observations, pool: Array | None = None) -> Judgment:
        """Judge the present observations; the same ones again give the same judgment.

        Parameters
        ----------
        observed : Observations
        pool : array, shape (m, columns), optional
            Units of the only points that could be evaluated; any point of the space by default.

        Raises
        ------
        InputError
            If `warp="log"` meets a value that is not positive.
        """
        numbers = set(observed.numbers)
        if self.history and numbers == self._seen:
            return self.history[-1]
        self._credit(observed, numbers)
        previous, self.model = self.model, None
        if len(observed) >= self.terms.least(len(observed.distributions)):
            warm = previous.hypers if previous is not None else None
            self.model = build(observed, self.source, self.terms.warp, warm)
        judgment = self._judge(observed, previous, pool)
        self.history.append(judgment)
        self._seen = numbers
        return judgment

    @property
    def calibration(self) -> float:
        """r_t: how much of the predicted improvement came, at most 1; a = twice the first prediction damps it."""
        damping = 2.0 * self._first
        below = damping + self._predicted
        return min(1.0, (damping + self._realized) / below) if below > 0.0 else 1.0

    def _credit(self, observed: Observations, numbers: set[int]) -> None:
        """Compare what the last model expected of the new points with what they brought."""
        model = self.model
        new = [k for k, one in enumerate(observed.records) if one.number not in self._seen]
        if model is None or not new:
            return
        points = [observed.records[k].params for k in new]
        if any(name not in point for point in points for name in model.space.names):
            return
        values = observed.values[new]
        bests = np.minimum.accumulate(np.concatenate([[model.best], values]))
        expected = np.exp(model.log_ei(model.space.snap(model.space.encode(points)), bests[:-1]))
        if not self._first:
            self._first = float(expected[0])
        self._predicted += float(expected.sum())
        self._realized += float(bests[0] - bests[-1])

    def _judge(self, observed: Observations, previous: Model | None, pool: Array | None) -> Judgment:
        n, sign = len(observed), observed.sign
        best = sign * float(observed.values.min()) if n else math.nan
        last = sign * float(observed.values[-1]) if n else math.nan
        plain = Judgment(n, best, last, observed.paid, calibration=self.calibration)
        model = self.model
        if model is None:
            return plain
        found = candidates(model, np.random.default_rng([self.terms.seed, n]), pool)
        chosen = best_point(model, found, "logeipc", self.terms.lam)
        if chosen is None:
            reason = "every point is evaluated"
            return Judgment(**(asdict(plain) | {"log_eipc": -math.inf, "gain": 0.0, "stop": True, "reason": reason}))
        units, log_eipc = chosen
        price = float(model.beliefs(units[None])[2][0])
        shown = {"log_eipc": log_eipc, "gain": math.exp(log_eipc) * price, "price": price}
        if self._measures is not None:
            shown |= self._measures.of(model, previous, found)
        return Judgment(**(asdict(plain) | shown | self._verdict(log_eipc)))

    def _verdict(self, log_eipc: float) -> dict[str, Any]:
        terms = self.terms
        self._recent.append(log_eipc)
        level = float(np.logaddexp.reduce(self._recent)) - math.log(len(self._recent))
        if terms.calibrate:
            level += math.log(self.calibration) if self.calibration > 0.0 else -math.inf
        if len(self._recent) < terms.window or level > math.log(terms.lam):
            return {}
        what = "calibrated gain per cost" if terms.calibrate else "gain per cost"
        return {"stop": True, "reason": f"expected {what} {math.exp(level):.4g} <= lam = {terms.lam:g}"}

    def columns(self) -> dict[str, list[float]]:
        """The history as columns of plain numbers."""
        return {name: [float(getattr(one, name)) for one in self.history] for name in COLUMNS}

    def state_dict(self) -> dict[str, Any]:
        """Plain data, from which `load_state_dict` goes on bit for bit together with the observations."""
        model = self.model
        kept = {"value": None, "cost": None} if model is None else asdict(model.hypers)
        return {
            "columns": self.columns(),
            "stops": [[one.stop, one.reason] for one in self.history],
            "recent": list(self._recent),
            "seen": sorted(self._seen),
            "sums": [self._realized, self._predicted, self._first],
            "hypers": kept,
        }

    def load_state_dict(self, state: Mapping[str, Any], observed: Observations | None) -> None:
        """Take up a saved state; `observed` are the observations then or later, None when there were none."""
        columns = state["columns"]
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*(columns[c] for c in COLUMNS), strict=True)]
        self.history = [
            Judgment(**(row | {"n": int(row["n"]), "stop": bool(stop), "reason": str(reason)}))
            for row, (stop, reason) in zip(rows, state["stops"], strict=True)
        ]
        if self._measures is not None and self.history:
            self._measures.bound = self.history[-1].ucb_lcb
        self._recent = deque((float(one) for one in state["recent"]), maxlen=self.terms.window)
        self._seen = {int(one) for one in state["seen"]}
        self._realized, self._predicted, self._first = (float(one) for one in state["sums"])
        self.model = None
        hyper = state["hypers"]
        if hyper["value"] is not None and observed is not None:
            hypers = Hypers(_hyper(hyper["value"]), None if hyper["cost"] is None else _hyper(hyper["cost"]))
            self.model = build(observed.until(self._seen), self.source, self.terms.warp, hypers, refit=False)


def _hyper(tree: Mapping[str, Any]) -> Hyper:
    return Hyper(float(tree["amplitude"]), np.asarray(tree["lengths"], dtype=float), float(tree["noise"]))

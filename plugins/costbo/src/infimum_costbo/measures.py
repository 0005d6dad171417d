"""Statistics of two model-based stopping rules from the literature, on the same model as the cost-aware one."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import ndtr

from infimum_costbo.model import Model
from infimum_costbo.search import Candidates

DELTA: Final = 0.1


def confidence(width: int, n: int) -> float:
    """The square root of the confidence parameter: 2 log(d n^2 pi^2 / (6 delta)) / 5, as Srinivas et al. scale it."""
    return math.sqrt(max(0.4 * math.log(max(width, 1) * n * n * math.pi**2 / (6.0 * DELTA)), 0.0))


class Measures:
    """Computes them after each evaluation; remembers what the last one needs.

    Both are in units of the modeled value: of its logarithm under the log warp.
    """

    def __init__(self) -> None:
        self.bound = math.nan
        """The confidence gap of the last evaluation."""

    def of(self, model: Model, previous: Model | None, found: Candidates) -> dict[str, float]:
        """`ucb_lcb`, the gap of Makarova et al. (2022), and `regret_gap`, that of Ishibashi et al. (2023)."""
        before, self.bound = self.bound, self._gap(model, found)
        usable = previous is not None and previous.warp == model.warp and previous.space == model.space
        gap = self._regret_gap(model, previous, before) if usable and previous is not None else math.nan
        return {"ucb_lcb": self.bound, "regret_gap": gap}

    @staticmethod
    def _gap(model: Model, found: Candidates) -> float:
        beta = confidence(len(model.space.columns), len(model.units))
        seen_mean, seen_sd = model.value.at(model.space.features(model.units))
        lowest = float((seen_mean - beta * seen_sd).min())
        if len(found):
            mean, sd, _ = found.beliefs
            lowest = min(lowest, float((mean - beta * sd).min()))
        return float((seen_mean + beta * seen_sd).min()) - lowest

    @staticmethod
    def _regret_gap(model: Model, previous: Model, bound: float) -> float:
        """Bound on the change of the expected minimum simple regret (their algorithm 1), both under the new kernel."""
        now, then = model.units[np.argmin(model.value.y)], previous.units[np.argmin(previous.value.y)]
        two = model.space.features(np.stack([now, then]))
        mean, sd = model.value.at(two)
        shared = float(model.value.covariance(two)[0, 1])
        spread = math.sqrt(max(sd[0] ** 2 - 2.0 * shared + sd[1] ** 2, 1e-10 * model.value.scale**2))
        before = float(previous.value.at(previous.space.features(then[None]))[0][0])
        z = (before - float(mean[0])) / spread
        gap = spread * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) + spread * z * float(ndtr(z))
        return abs(before - float(mean[0])) + gap + bound * math.sqrt(0.5 * _divergence(model, previous))


def _divergence(model: Model, previous: Model) -> float:
    """Kullback-Leibler divergence of the new from the old belief, from the last observation alone."""
    features = model.space.features(model.units[-1:])
    mean, sd = previous.value.at(features)
    noise = max(previous.value.hyper.noise, 1e-6) * previous.value.scale**2
    variance, away = float(sd[0]) ** 2, float(model.value.y[len(model.units) - 1] - mean[0])
    inside = variance + noise
    return 0.5 * (math.log1p(variance / noise) - variance / inside + variance * (away / inside) ** 2)

"""What is believed of value and cost at every point, and the two acquisition functions on top of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from infimum.errors import InputError
from infimum_costbo.acquisition import Warp, log_ei, log_ei_gradient, log_ei_per_cost, pbgi, pbgi_gradient
from infimum_costbo.cost import CostSource
from infimum_costbo.normal import Array
from infimum_costbo.observations import Observations
from infimum_costbo.space import Space
from infimum_costbo.surrogate import Hyper, Posterior, fit

Acquisition = Literal["pbgi", "logeipc"]
SKEWED: Final = 3.0
"""Ratio of the largest to the smallest positive value from which `warp="auto"` models the logarithm."""
_LARGEST: Final = 1e150
"""Whose square is still a float."""
_COLD: Final = 20
"""Up to so many points, and at every tenth after it, a fit starts from the prior's center too."""


@dataclass(frozen=True)
class Hypers:
    """Hyperparameters of the value's and of the cost's process, to start the next fit from."""

    value: Hyper
    cost: Hyper | None = None


@dataclass
class Model:
    """Belief from observations.

    Attributes
    ----------
    space : Space
    source : CostSource
    value : Posterior
        Of the objective in minimization sense, or of its logarithm.
    log_cost : Posterior or None
        Of the logarithm of the cost; None when the cost is known.
    warp : {None, "log"}
    best : float
        Smallest observed value.
    units : array, shape (n, columns)
        Where it was observed.
    taken : array, shape (m, columns)
        Points not to be proposed: observed or being evaluated.
    """

    space: Space
    source: CostSource
    value: Posterior
    log_cost: Posterior | None
    warp: Warp
    best: float
    units: Array
    hypers: Hypers
    taken: Array = field(init=False)

    def __post_init__(self) -> None:
        self.taken = self.units

    def believing(self, running: Array) -> Model:
        """With the points that are being evaluated taken for evaluated, at their expected value."""
        if not len(running):
            return self
        value = self.value.believing(self.space.features(running))
        expected = float(value.y[len(self.units) :].min())
        best = min(self.best, float(np.exp(expected)) if self.warp else expected)
        out = Model(self.space, self.source, value, self.log_cost, self.warp, best, self.units, self.hypers)
        out.taken = np.concatenate([self.taken, running])
        return out

    def cost(self, units: Array, features: Array) -> Array:
        """Expected cost of points."""
        if self.log_cost is not None:
            mean, sd = self.log_cost.at(features)
            return np.asarray(np.exp(np.minimum(mean + 0.5 * sd * sd, 600.0)))
        if self.source.given is None:
            return np.ones(len(units))
        return np.array([self.source.of_point(self.space.decode(row)) for row in units])

    def beliefs(self, units: Array) -> tuple[Array, Array, Array]:
        """Mean and sd of the modeled value, and expected cost, of points."""
        features = self.space.features(units)
        return (*self.value.at(features), self.cost(units, features))

    def log_ei(self, units: Array, best: float | Array | None = None) -> Array:
        """Logarithm of the expected improvement of points on the best value, in the objective's units."""
        mean, sd = self.value.at(self.space.features(units))
        return log_ei(mean, sd, self.best if best is None else best, warp=self.warp)

    def score(self, acquisition: Acquisition, beliefs: tuple[Array, Array, Array], lam: float) -> Array:
        """What the next point makes largest: LogEIPC, or minus the index."""
        mean, sd, cost = beliefs
        if acquisition == "logeipc":
            return log_ei_per_cost(mean, sd, self.best, cost, warp=self.warp)
        g = pbgi(mean, sd, cost, lam, warp=self.warp)
        return -np.log(g) if self.warp else -g / self.value.scale

    def score_gradient(self, acquisition: Acquisition, units: Array, lam: float) -> tuple[Array, Array]:
        """The score of points and its gradient by their features."""
        features = self.space.features(units)
        mean, sd, by_x_mean, by_x_sd = self.value.with_gradient(features)
        cost, by_x_cost = self._log_cost_gradient(units, features)
        if acquisition == "logeipc":
            value, by_mean, by_sd = log_ei_gradient(mean, sd, self.best, warp=self.warp)
            return value - np.log(cost), by_mean[:, None] * by_x_mean + by_sd[:, None] * by_x_sd - by_x_cost
        g, by_mean, by_sd, by_cost = pbgi_gradient(mean, sd, cost, lam, warp=self.warp)
        slope = by_mean[:, None] * by_x_mean + by_sd[:, None] * by_x_sd + by_cost[:, None] * by_x_cost
        if self.warp:
            return -np.log(g), -slope / g[:, None]
        return -g / self.value.scale, -slope / self.value.scale

    def _log_cost_gradient(self, units: Array, features: Array) -> tuple[Array, Array]:
        if self.log_cost is not None:
            mean, sd, by_mean, by_sd = self.log_cost.with_gradient(features)
            return np.exp(np.minimum(mean + 0.5 * sd * sd, 600.0)), by_mean + sd[:, None] * by_sd
        cost, slope = self.cost(units, features), np.zeros_like(features)
        if self.source.given is not None:
            # The user's function has no gradient: differences along the continuous parameters.
            for j in np.flatnonzero(self.space.continuous):
                moved = units.copy()
                step = np.where(moved[:, j] > 0.5, -1e-5, 1e-5)
                moved[:, j] += step
                slope[:, self.space.starts[j]] = np.log(self.cost(moved, features) / cost) / step
        return cost, slope

    def is_taken(self, units: Array) -> Any:
        """Which points are observed or being evaluated."""
        known = {row.tobytes() for row in np.round(self.taken, 9) + 0.0}
        return np.array([row.tobytes() in known for row in np.round(units, 9) + 0.0], dtype=bool)


def choose_warp(asked: str | None, observed: Observations) -> Warp:
    """The warp to use: `"auto"` takes the logarithm of positive values that spread over a factor of 3.

    Raises
    ------
    InputError
        If `"log"` was asked for and a value is not positive.
    """
    values = observed.values
    if asked == "log":
        for record, value in zip(observed.records, values, strict=True):
            if value <= 0.0:
                shown = observed.sign * value
                raise InputError(
                    f"warp='log' needs positive values to minimize, but trial {record.number} has {shown:g}; "
                    "use warp=None or 'auto'"
                )
        return "log"
    skewed = asked == "auto" and values.min() > 0.0 and values.max() > SKEWED * values.min()
    return "log" if skewed else None


def build(
    observed: Observations, source: CostSource, warp: str | None, warm: Hypers | None = None, refit: bool = True
) -> Model | None:
    """The model of what was observed; None where nothing can be learnt yet (fewer than two values, or all equal).

    Parameters
    ----------
    observed : Observations
    source : CostSource
    warp : {"auto", "log", None}
    warm : Hypers, optional
        Of the last model.
    refit : bool, default True
        False takes `warm` as it is.

    Raises
    ------
    InputError
        See `choose_warp`; also for a value beyond 1e150 that is modeled without the warp.
    """
    space = Space(observed.distributions)
    values = observed.values
    if not space.columns or len(observed) < 2 or not values.min() < values.max():
        return None
    chosen = choose_warp(warp, observed)
    if not chosen and np.abs(values).max() > _LARGEST:
        k = int(np.abs(values).argmax())
        raise InputError(
            f"trial {observed.records[k].number} has the value {observed.sign * values[k]:g}, too large for a model "
            f"(beyond {_LARGEST:g} squares overflow); return it in other units, or report such a trial as failed"
        )
    units = space.snap(space.encode([one.params for one in observed.records]))
    X = space.features(units)
    if warm is not None and len(warm.value.lengths) != X.shape[1]:
        warm, refit = None, True
    targets = np.log(values) if chosen else values
    value = _process(X, targets, warm.value if warm else None, refit)
    log_cost = None
    if not source.known:
        log_cost = _process(X, np.log(observed.costs), warm.cost if warm else None, refit)
    hypers = Hypers(value.hyper, log_cost.hyper if log_cost else None)
    return Model(space, source, value, log_cost, chosen, float(values.min()), units, hypers)


def _process(X: Array, y: Array, warm: Hyper | None, refit: bool) -> Posterior:
    center, scale = float(y.mean()), float(y.std())
    scale = scale if scale > 1e-12 * max(1.0, abs(center)) else 1.0
    if warm is None or refit:
        cold = warm is None or len(X) <= _COLD or len(X) % 10 == 0
        warm = fit(X, (y - center) / scale, warm, cold=cold)
    return Posterior(X, y, warm, center, scale)

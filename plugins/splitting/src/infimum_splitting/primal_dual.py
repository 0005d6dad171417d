"""What the primal-dual methods share: state, one iteration, residuals, and the norm of the maps together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infimum.arrays import Array, norm, zeros_like
from infimum.solver import Metric, Slot
from infimum_splitting.changes import change_metrics
from infimum_splitting.steps import certain, moved

SAFETY = 0.99
"""What `auto` makes of tau sigma ||A||^2, which must stay below 1."""


@dataclass(slots=True)
class PrimalDualState:
    """`x` with one dual point a part in `y`, and where they were made from (`x_from` None at iteration 0).

    `image` is A x and `ahead` is A (2 x - x_from), a list of one array a part; `ahead_from` is the `ahead` of the
    iteration before. `gradient` is that of the smooth part at `x`, None without one.
    """

    x: Array
    y: list[Array]
    image: list[Array]
    ahead: list[Array]
    gradient: Array | None
    x_from: Array | None
    y_from: list[Array]
    ahead_from: list[Array]
    gradient_from: Array | None
    tau: float
    sigma: float


DUAL = Slot("dual", needs=("prox_conjugate",), each=True, takes_map=True)
PRIMAL = Slot("primal", needs=("prox",), at_most=1)


def begin(parts: Any, start: Array, gradient: Array | None, tau: float, sigma: float) -> PrimalDualState:
    """Iteration 0: the dual points are zero."""
    image = [part.map(start) for part in parts.dual]
    y = [zeros_like(one) for one in image]
    return PrimalDualState(start, y, image, image, gradient, None, y, image, gradient, tau, sigma)


def advance(parts: Any, old: PrimalDualState, slope: Any) -> PrimalDualState:
    """One iteration: every map once, its adjoint once, every prox once, the gradient `slope` (or None) once."""
    tau, sigma, pull = old.tau, old.sigma, old.gradient
    y = []
    for part, before, ahead in zip(parts.dual, old.y, old.ahead, strict=True):
        v = sigma * ahead
        v += before
        new = part.prox_conjugate(v, sigma)
        y.append(new)
        back = part.adjoint(new)
        pull = back if pull is None else pull + back
    if pull is None:
        v = old.x
    else:
        v = (-tau) * pull
        v += old.x
    x = parts.primal.prox(v, tau)
    images, aheads = [], []
    for part, before in zip(parts.dual, old.image, strict=True):
        # A (2 x - x_from) by linearity: the map is applied once, and A x serves the residual as well.
        image = part.map(x)
        ahead = 2.0 * image
        ahead -= before
        images.append(image)
        aheads.append(ahead)
    gradient = None if slope is None else slope(x)
    return PrimalDualState(x, y, images, aheads, gradient, old.x, old.y, old.ahead, old.gradient, tau, sigma)


def primal_residual(state: PrimalDualState) -> float | None:
    """`||(x_from - x)/tau + grad h(x) - grad h(x_from)||`."""
    if state.x_from is None:
        return None
    if state.gradient is None:
        return moved(state.x_from, state.x, state.tau)
    size = norm((state.x_from - state.x) / state.tau + (state.gradient - state.gradient_from))
    return certain(size, state.x, state.tau)


def dual_residual(state: PrimalDualState) -> float | None:
    """`||(y_from - y)/sigma + A (ahead point) - A x||`, over all parts."""
    if state.x_from is None:
        return None
    columns = zip(state.y_from, state.y, state.ahead_from, state.image, strict=True)
    return math.hypot(
        *(
            certain(norm((before - y) / state.sigma + (ahead - image)), y, state.sigma)
            for before, y, ahead, image in columns
        )
    )


def residual(state: PrimalDualState) -> float | None:
    """The larger of the two."""
    primal, dual = primal_residual(state), dual_residual(state)
    return None if primal is None or dual is None else max(primal, dual)


def all_moved(state: Any) -> tuple[float, float] | None:
    """By how much the last iteration moved x and the dual points together, and their norm."""
    if state.x_from is None:
        return None
    changes = [norm(y - before) for y, before in zip(state.y, state.y_from, strict=True)]
    sizes = [norm(y) for y in state.y]
    return math.hypot(norm(state.x - state.x_from), *changes), math.hypot(norm(state.x), *sizes)


METRICS: Mapping[str, Metric] = {
    "residual": Metric(residual),
    "primal_residual": Metric(primal_residual),
    "dual_residual": Metric(dual_residual),
    **change_metrics(all_moved),
}


def norm_squared(parts: Any) -> float:
    """A bound of ||A||^2 for the maps of all dual parts stacked: the sum of their squared norms."""
    return float(sum(part.norm**2 for part in parts))

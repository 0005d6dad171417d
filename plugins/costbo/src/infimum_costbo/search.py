"""Where an acquisition function is largest: random points, then gradients and exchanges from the best of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize

from infimum_costbo.model import Acquisition, Model
from infimum_costbo.normal import Array

RANDOM: Final = 1024
_NEAR: Final = 384
_STARTS: Final = 5
_EXCHANGES: Final = 8
_CALLED: Final = 256
"""Random points where the cost is a Python function, which is called for each of them."""


@dataclass(frozen=True)
class Candidates:
    """Points, and what is believed of them; `complete` when they are all that are left."""

    units: Array
    beliefs: tuple[Array, Array, Array]
    complete: bool = False

    def __len__(self) -> int:
        return len(self.units)


def candidates(model: Model, rng: np.random.Generator, pool: Array | None = None) -> Candidates:
    """Points that may be evaluated next: everywhere, and around the best observed ones.

    Of a pool, and of a finite space of at most 4096 points, all that are left; none, when it is exhausted.
    """
    called = callable(model.source.given)
    units = model.space.candidates(rng, _CALLED if called else RANDOM) if pool is None else pool
    complete = pool is not None or (model.space.size is not None and len(units) == model.space.size)
    if not complete:
        leaders = model.units[np.argsort(model.value.y[: len(model.units)], kind="stable")[:4]]
        units = np.concatenate([units, model.space.around(leaders, rng, _NEAR // 4 if called else _NEAR)])
    units = units[~model.is_taken(units)]
    return Candidates(units, model.beliefs(units) if len(units) else (np.empty(0),) * 3, complete)


def best_point(model: Model, found: Candidates, acquisition: Acquisition, lam: float) -> tuple[Array, float] | None:
    """The point of largest score that is not taken, and its score; None when no point is left."""
    if not len(found):
        return None

    def score(units: Array) -> Array:
        return model.score(acquisition, model.beliefs(units), lam)

    scores = model.score(acquisition, found.beliefs, lam)
    top = int(np.argmax(scores))
    best, high = found.units[top], float(scores[top])
    if found.complete:
        return best, high
    if model.space.continuous.any():
        starts = _spread(model, found.units, scores)
        best, high = _better(model, best, high, _climb(model, acquisition, lam, starts), score)
    for _ in range(_EXCHANGES):
        moved, now = _better(model, best, high, model.space.alternatives(best), score)
        if now <= high:
            break
        best, high = moved, now
    return best, high


def _better(
    model: Model, best: Array, high: float, units: Array, score: Callable[[Array], Array]
) -> tuple[Array, float]:
    units = units[~model.is_taken(units)]
    if not len(units):
        return best, high
    scores = score(units)
    top = int(np.argmax(scores))
    return (units[top], float(scores[top])) if scores[top] > high else (best, high)


def _spread(model: Model, units: Array, scores: Array) -> Array:
    """The best points that are not close to a better one."""
    order = np.argsort(-scores, kind="stable")[:128]
    features = model.space.features(units[order]) / model.value.hyper.lengths
    chosen: list[int] = []
    for k in range(len(order)):
        if all(np.abs(features[k] - features[j]).max() > 0.2 for j in chosen):
            chosen.append(k)
        if len(chosen) == _STARTS:
            break
    return units[order[chosen]]


def _climb(model: Model, acquisition: Acquisition, lam: float, starts: Array) -> Array:
    """Local maxima over the continuous parameters from all starts at once."""
    space = model.space
    free = np.flatnonzero(space.continuous)
    lengths = model.value.hyper.lengths[space.starts[free]]
    shape = (len(starts), len(free))

    def negative(flat: Array) -> tuple[float, Array]:
        units = starts.copy()
        units[:, free] = flat.reshape(shape) * lengths
        score, slope = model.score_gradient(acquisition, units, lam)
        return -float(score.sum()), -(slope[:, space.starts[free]] * lengths).ravel()

    bounds: list[Any] = [(0.0, 1.0 / one) for one in np.tile(lengths, len(starts))]
    begin = (starts[:, free] / lengths).ravel()
    out = minimize(negative, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    ended = starts.copy()
    ended[:, free] = np.clip(out.x.reshape(shape) * lengths, 0.0, 1.0)
    return space.snap(ended)

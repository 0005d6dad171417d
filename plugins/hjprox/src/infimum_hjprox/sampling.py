"""The estimator: weighted means of random points, with the rules that keep enough of them in play.

    prox^delta(x) = E[y exp(-f(y)/delta)] / E[exp(-f(y)/delta)],   y ~ N(x, delta t I)

Rows of `x` are separate points. All rows share the random numbers of a round, so a row of a batch equals a call with
that row alone. Where f is a sum over coordinates, every coordinate has weights, delta and center of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.arrays import Array, namespace, to_numpy
from infimum_hjprox.noise import chunk, limit, normals

WIDENINGS = 30
RECENTER_BELOW = 0.1
"""Share of effective samples below which the samples are drawn again around the estimate."""

Evaluate = Callable[[Array], Array]
"""Points (m, n) to values (m,), or to coordinate values (m, n): real, neither NaN nor -inf."""


class ProxSamplingError(ArithmeticError):
    """No usable samples, however wide they were spread. Ends a run as `failed`, with the best point kept."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What keeps the samples useful: options as numbers."""

    ess_min: float
    recenter: int
    separable: bool
    antithetic: bool


@dataclass(slots=True)
class Sample:
    """Results for R rows; arrays (R, 1), or (R, n) for coordinates of their own.

    `variance` is the squared standard error; `spread` and `weights` describe the last round of a single row.
    """

    point: Array
    ess: np.ndarray
    delta: np.ndarray
    variance: np.ndarray
    widened: np.ndarray
    recentered: np.ndarray
    evaluations: int
    last: Round


@dataclass(slots=True)
class Round:
    """One round of samples: means of the noise z in `mean`, so that the estimate is `center + scale * mean`."""

    seed: int
    center: Array
    scale: Array
    mean: Array
    ess: Array
    variance: Array
    second: Array | None
    """Coordinates: mean of z^2."""
    logs: list[Array]
    """One row, joint weights: logarithms of the weights, by chunk."""


def sample(
    evaluate: Evaluate, x: Array, t: float, delta: float, count: int, rules: Rules, seeds: Callable[[], int]
) -> Sample:
    """Estimate the prox of each row of `x`."""
    search = _Search(x, delta, count, rules)
    while True:
        active = np.flatnonzero(search.open.any(axis=1))
        pick = None if active.size == x.shape[0] else _index(active, x)
        found = _round(
            evaluate,
            _rows(x, pick),
            _rows(search.center, pick),
            _like(search.delta[active], x),
            t,
            count,
            seeds(),
            rules,
            moved=search.moved,
        )
        if search.take(found, active, pick):
            return search.result(found)


class _Search:
    """Where each row or coordinate stands: sampled around which center, with which delta, done or not."""

    def __init__(self, x: Array, delta: float, count: int, rules: Rules) -> None:
        shape = (x.shape[0], x.shape[1] if rules.separable else 1)
        self.rules, self.count = rules, count
        self.center, self.point = x, x
        self.delta = np.full(shape, float(delta))
        self.ess, self.variance = np.zeros(shape), np.zeros(shape)
        self.widened, self.recentered = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
        self.open = np.ones(shape, dtype=bool)
        self.moved = False
        self.evaluations = 0

    def take(self, found: Round, active: np.ndarray, pick: Array | None) -> bool:
        """Use a round of the rows in `active`; whether everything is done."""
        rules, count = self.rules, self.count
        first, self.evaluations = self.evaluations == 0, self.evaluations + count * active.size
        got, variance = to_numpy(found.ess).astype(float), to_numpy(found.variance)
        estimate = found.center + found.scale * found.mean
        least = max(rules.ess_min, RECENTER_BELOW if rules.recenter else 0.0) * count
        if first and got.min() >= max(least, 1.0):
            # The usual case: enough samples everywhere at once.
            self.point, self.ess, self.variance = estimate, got, variance
            return True
        here, some = self.open[active], got > 0
        again = here & some & (got < RECENTER_BELOW * count) & (self.recentered[active] < rules.recenter)
        wider = here & ~again & ((got < rules.ess_min * count) | ~some)
        _refuse_exhausted(wider & (self.widened[active] >= WIDENINGS), some, self.delta[active], count)
        done = here & ~again & ~wider
        self.point = _put(self.point, pick, estimate, done)
        self.center = _put(self.center, pick, estimate, again)
        self.ess[active] = np.where(done, got, self.ess[active])
        self.variance[active] = np.where(done, variance, self.variance[active])
        self.recentered[active] += again
        self.widened[active] += wider
        self.delta[active] *= np.where(wider, 2.0, 1.0)
        self.open[active] = here & ~done
        self.moved = self.moved or bool(again.any())
        return not self.open.any()

    def result(self, last: Round) -> Sample:
        """What was found, once everything is done."""
        return Sample(
            self.point, self.ess, self.delta, self.variance, self.widened, self.recentered, self.evaluations, last
        )


def _refuse_exhausted(failed: np.ndarray, some: np.ndarray, delta: np.ndarray, count: int) -> None:
    if not failed.any():
        return
    reached = float(delta[failed].max())
    if (failed & ~some).any():
        raise ProxSamplingError(
            f"hjprox: no feasible sample: f is +inf at all {count} samples, even at delta = {reached:.3g} after "
            f"{WIDENINGS} widenings; if f is the indicator of a set, use the exact projection, else start where f is "
            "finite"
        )
    raise ProxSamplingError(
        f"hjprox: fewer effective samples than ess_min asks for, even at delta = {reached:.3g} after {WIDENINGS} "
        f"widenings of {count} samples; take more samples, a shorter step, or a smaller ess_min"
    )


def _index(rows: np.ndarray, x: Array) -> Array:
    return rows if type(x) is np.ndarray else namespace(x).asarray(rows, device=x.device)


def _rows(x: Array, pick: Array | None) -> Array:
    return x if pick is None else x[pick]


def _like(numbers: np.ndarray, x: Array) -> Array:
    xp = namespace(x)
    return numbers.astype(x.dtype) if xp is np else xp.asarray(numbers, dtype=x.dtype, device=x.device)


def _put(old: Array, pick: Array | None, new: Array, mask: np.ndarray) -> Array:
    """`old` with the entries of `new` where `mask` says so."""
    if not mask.any():
        return old
    xp = namespace(old)
    if pick is None and mask.all():
        return new
    where = mask if xp is np else xp.asarray(mask, device=old.device)
    merged = xp.where(where, new, _rows(old, pick))
    if pick is None:
        return merged
    out = xp.asarray(old, copy=True)
    out[pick] = merged
    return out


def _round(
    evaluate: Evaluate,
    x: Array,
    center: Array,
    delta: Array,
    t: float,
    count: int,
    seed: int,
    rules: Rules,
    *,
    moved: bool,
) -> Round:
    """One draw for each row, in pieces of bounded memory."""
    xp, (rows, n) = namespace(x), x.shape
    size = chunk(count, x, rules.antithetic)
    step = max(1, limit(x) // (size * n))
    whole = list(normals(seed, count, x, rules.antithetic)) if size >= count else None
    pieces = []
    for low in range(0, rows, step):
        part = slice(low, low + step)
        noise = whole if whole is not None else normals(seed, count, x, rules.antithetic)
        piece = _sums(evaluate, x[part], center[part], delta[part], t, noise, rules, moved, keep=rows == 1)
        pieces.append(piece)
    scale = xp.sqrt(delta * t)
    mean, ess, variance, second = (_joined([piece[k] for piece in pieces], xp) for k in range(4))
    return Round(seed, center, scale, mean, ess, variance * scale * scale, second, pieces[0][-1])


def _joined(pieces: list[Any], xp: Any) -> Any:
    return pieces[0] if len(pieces) == 1 or pieces[0] is None else xp.concat(pieces)


def _sums(
    evaluate: Evaluate,
    x: Array,
    center: Array,
    delta: Array,
    t: float,
    noise: Any,
    rules: Rules,
    moved: bool,
    *,
    keep: bool,
) -> tuple[Array, Array, Array, Array | None, list[Array]]:
    """Mean noise, ESS, variance of the mean (in units of the scale), mean square, log-weights; for a piece of rows."""
    xp, (rows, n) = namespace(x), x.shape
    scale = xp.sqrt(delta * t)
    pull = (center - x) / scale if moved else None
    total: _Total | None = None
    logs = []
    for z in noise:
        k = z.shape[0]
        y = scale[:, None, :] * z[None, :, :]
        y += center[:, None, :]
        values = evaluate(xp.reshape(y, (rows * k, n)))
        del y
        if rules.separable:
            a = xp.reshape(values, (rows, k, n)) / (-delta[:, None, :])
            if pull is not None:
                a -= pull[:, None, :] * z[None, :, :]
        else:
            a = xp.reshape(values, (rows, k)) / (-delta)
            if pull is not None:
                a -= pull @ z.T
        if keep and not rules.separable:
            logs.append(xp.asarray(a[0], copy=True))
        new = _Total.of(a, z, rules)
        total = new if total is None else total.merged(new)
    assert total is not None
    return (*total.finish(rules), logs)


@dataclass(slots=True)
class _Total:
    """Sums over samples of e = exp(a - top), by row: (R, 1) or (R, n).

    Pairs z, -z with weights e, e' count as one sample with g = e - e' and h = e + e'; single samples have g = h = e.
    """

    top: Array
    one: Array
    first: Array
    square: Array
    gg: Array
    gh: Array
    hh: Array
    second: Array | None

    @classmethod
    def of(cls, a: Array, z: Array, rules: Rules) -> _Total:
        """The sums of one chunk of samples, from log-weights `a`, which are used up."""
        xp = namespace(z)
        top = xp.max(a, axis=1, keepdims=True)
        a -= xp.where(top > -xp.inf, top, xp.zeros_like(top))
        e = xp.astype(xp.exp(a, out=a), z.dtype, copy=False)
        pair = None
        if rules.antithetic:
            half = z.shape[0] // 2
            z, pair = z[:half], (e[:, :half] - e[:, half:], e[:, :half] + e[:, half:])
        if rules.separable:
            return cls._by_coordinate(top[:, 0, :], e, z, pair)
        zz = _dots("ij,ij->i", z, z)
        ee = e * e
        one, square = (xp.sum(w, axis=1, keepdims=True) for w in (e, ee))
        if pair is None:
            return cls(top, one, e @ z, square, (ee @ zz)[:, None], ee @ z, square, None)
        g, h = pair
        hh = xp.sum(h * h, axis=1, keepdims=True)
        return cls(top, one, g @ z, square, ((g * g) @ zz)[:, None], (g * h) @ z, hh, None)

    @classmethod
    def _by_coordinate(cls, top: Array, e: Array, z: Array, pair: tuple[Array, Array] | None) -> _Total:
        xp, column, wide = namespace(z), "rkn,kn->rn", "rkn,rkn->rn"
        zz = z * z
        one, square = xp.sum(e, axis=1), _dots(wide, e, e)
        if pair is None:
            first, second = _dots(column, e, z), _dots(column, e, zz)
            e *= e
            return cls(top, one, first, square, _dots(column, e, zz), _dots(column, e, z), square, second)
        g, h = pair
        first, second, hh = _dots(column, g, z), _dots(column, h, zz), _dots(wide, h, h)
        h *= g
        g *= g
        return cls(top, one, first, square, _dots(column, g, zz), _dots(column, h, z), hh, second)

    def merged(self, other: _Total) -> _Total:
        """Both, under the larger top."""
        xp = namespace(self.top)
        top = xp.where(self.top > other.top, self.top, other.top)
        safe = xp.where(top > -xp.inf, top, xp.zeros_like(top))
        ours, theirs = xp.exp(self.top - safe), xp.exp(other.top - safe)
        names = ("one", "first", "square", "gg", "gh", "hh", "second")
        out: dict[str, Any] = {}
        for name in names:
            mine, yours = getattr(self, name), getattr(other, name)
            if mine is None:
                out[name] = None
                continue
            power = 1 if name in ("one", "first", "second") else 2
            dtype = mine.dtype
            out[name] = mine * xp.astype(ours**power, dtype) + yours * xp.astype(theirs**power, dtype)
        return _Total(top, **out)

    def finish(self, rules: Rules) -> tuple[Array, Array, Array, Array | None]:
        """Mean, ESS, variance of the mean, mean square. Rows without any finite value: ESS 0 and zeros."""
        xp = namespace(self.one)
        alive = self.one > 0
        if bool(xp.all(alive)):
            one, ess = self.one, self.one * self.one / self.square
        else:
            one = xp.where(alive, self.one, xp.ones_like(self.one))
            ess = xp.where(alive, one * one / xp.where(alive, self.square, xp.ones_like(self.square)), 0 * one)
        mean = self.first / one
        if rules.separable:
            cross, square = mean * self.gh, mean * mean
        else:
            cross, square = xp.sum(mean * self.gh, axis=1, keepdims=True), xp.sum(mean * mean, axis=1, keepdims=True)
        variance = (self.gg - 2 * cross + square * self.hh) / (one * one)
        variance = xp.where(variance > 0, variance, xp.zeros_like(variance))
        return mean, ess, variance, None if self.second is None else self.second / one


def _dots(rule: str, one: Array, other: Array) -> Array:
    """Sums of products, without an array of the products."""
    return namespace(one).einsum(rule, one, other)

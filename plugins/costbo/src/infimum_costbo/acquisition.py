"""Acquisition functions of cost-aware Bayesian optimization, vectorized, in minimization form.

All take the posterior `mean` and `sd` of the objective as arrays that broadcast against each other. To maximize, negate
the mean and the best value. With `warp="log"` they are of the *logarithm* of a positive objective, while best value,
cost and result keep the objective's own units.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from infimum.errors import InputError
from infimum_costbo.lognormal import log_gain, log_index, partials
from infimum_costbo.normal import LOG_SQRT_2PI, Array, density_over_h, inverse_log_h, log_h, real, slope

Warp = Literal["log"] | None


def log_ei(mean: ArrayLike, sd: ArrayLike, best: ArrayLike, *, warp: Warp = None) -> Array:
    """Logarithm of the expected improvement E[(best - f)^+].

    Parameters
    ----------
    mean, sd : array of float
        Posterior mean and standard deviation (0 or more) of f, or of log f with `warp="log"`.
    best : array of float
        The value to improve on; positive with `warp="log"`.
    warp : {None, "log"}, default None

    Returns
    -------
    array of float
        Of the broadcast shape; -inf where there is nothing to gain. Accurate to 1e-12 however far the mean is above
        the best value, where EI itself underflows.

    Raises
    ------
    InputError
        For what is no array of real numbers, or of another shape; if a standard deviation is negative or NaN, or the
        best value is not positive under the log warp. (A mean or a best value of NaN gives NaN.)
    """
    mean, sd, best = _arrays(mean, sd, best)
    log_best = _log_best(best, warp)
    return _log_ei(mean, sd, best, log_best, warp)


def log_ei_per_cost(mean: ArrayLike, sd: ArrayLike, best: ArrayLike, cost: ArrayLike, *, warp: Warp = None) -> Array:
    """LogEIPC: log of the expected improvement per expected cost; the next point is where it is largest.

    Parameters
    ----------
    mean, sd, best, warp
        See `log_ei`.
    cost : array of float
        Expected cost of an evaluation, positive.

    Returns
    -------
    array of float
        The rule of the paper stops when the largest of them is at most log(lam).

    Raises
    ------
    InputError
        As `log_ei`; also if a cost is not positive.

    References
    ----------
    Xie et al., "Cost-aware Stopping for Bayesian Optimization", arXiv 2507.12453, section 3.
    """
    return log_ei(mean, sd, best, warp=warp) - np.log(_positive(cost, "cost"))


def pbgi(mean: ArrayLike, sd: ArrayLike, cost: ArrayLike, lam: float, *, warp: Warp = None) -> Array:
    """The Pandora's box Gittins index: the g with E[(g - f)^+] = lam * cost; the next point is where it is smallest.

    Parameters
    ----------
    mean, sd, warp
        See `log_ei`.
    cost : array of float
        Expected cost of an evaluation, positive.
    lam : float
        Worth of a unit of cost in units of the objective, positive.

    Returns
    -------
    array of float
        In the objective's units. The rule of the paper stops when the smallest is at least the best value, which says
        the same as `log_ei_per_cost` at most log(lam), point by point.

    Raises
    ------
    InputError
        If a standard deviation is negative or NaN, or a cost or lam is not positive.

    References
    ----------
    Xie et al., arXiv 2507.12453, section 3; the index is Weitzman's reservation value (1979).
    """
    mean, sd = _arrays(mean, sd)
    price = _positive(lam, "lam") * _positive(cost, "cost")
    mean, sd, price = _together(mean, sd, price)
    _check_warp(warp)
    safe = np.where(sd > 0.0, sd, 1.0)
    if warp == "log":
        certain = np.exp(mean) + price
        return np.asarray(np.where(sd > 0.0, np.exp(log_index(mean, safe, np.log(price))), certain))
    z = inverse_log_h(np.log(price / safe))
    return np.asarray(np.where(sd > 0.0, mean + safe * z, mean + price))


def log_ei_gradient(
    mean: ArrayLike, sd: ArrayLike, best: ArrayLike, *, warp: Warp = None
) -> tuple[Array, Array, Array]:
    """`log_ei` with its derivatives by mean and by sd.

    Parameters
    ----------
    mean, sd, best, warp
        See `log_ei`; sd positive.

    Returns
    -------
    value, by_mean, by_sd : arrays of float
        Of the broadcast shape. That of LogEIPC has -1 by log cost besides.
    """
    mean, sd, best = _arrays(mean, sd, best)
    log_best = _log_best(best, warp)
    _uncertain(sd)
    if warp == "log":
        d = (log_best - mean) / sd
        gain = log_gain(d, sd)
        _, by_mean, by_sd = partials(d, sd, gain)
        return log_best + gain, by_mean, by_sd
    z = (best - mean) / sd
    value = log_h(z)
    # h - z h' = phi, hence the derivative by sd without cancellation.
    return np.log(sd) + value, -slope(z, value) / sd, density_over_h(z, value) / sd


def pbgi_gradient(
    mean: ArrayLike, sd: ArrayLike, cost: ArrayLike, lam: float, *, warp: Warp = None
) -> tuple[Array, Array, Array, Array]:
    """`pbgi` with its derivatives by mean, by sd and by the logarithm of the cost.

    Parameters
    ----------
    mean, sd, cost, lam, warp
        See `pbgi`; sd positive.

    Returns
    -------
    value, by_mean, by_sd, by_log_cost : arrays of float

    Notes
    -----
    From the defining equation by the implicit function theorem. With L = Phi(u)/h(u), u = (g - mean)/sd, they are
    1, u - 1/L and sd/L. (The factor 1/L of the last one is easily forgotten; it shows only where the cost varies.)
    """
    mean, sd = _arrays(mean, sd)
    price = _positive(lam, "lam") * _positive(cost, "cost")
    mean, sd, price = _together(mean, sd, price)
    _check_warp(warp)
    _uncertain(sd)
    if warp == "log":
        log_g = log_index(mean, sd, np.log(price))
        d = (log_g - mean) / sd
        gain = log_gain(d, sd)
        by_best, by_mean, by_sd = partials(d, sd, gain)
        g = np.exp(log_g)
        return g, -g * by_mean / by_best, -g * by_sd / by_best, g / by_best
    u = inverse_log_h(np.log(price / sd))
    value = log_h(u)
    # u - 1/L = -phi/Phi, without cancellation.
    by_sd = -np.exp(-0.5 * u * u - LOG_SQRT_2PI - log_ndtr(u))
    return mean + sd * u, np.ones_like(u), by_sd, sd / slope(u, value)


def _log_ei(mean: Array, sd: Array, best: Array, log_best: Array, warp: Warp) -> Array:
    safe = np.where(sd > 0.0, sd, 1.0)
    if warp == "log":
        uncertain, certain = log_best + log_gain((log_best - mean) / safe, safe), best - np.exp(mean)
    else:
        uncertain, certain = np.log(safe) + log_h((best - mean) / safe), best - mean
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(sd > 0.0, uncertain, np.log(np.maximum(certain, 0.0))))


def _arrays(mean: ArrayLike, sd: ArrayLike, *more: ArrayLike) -> list[Array]:
    sd = real(sd, "sd")
    if not (sd >= 0.0).all():
        worst = sd[~(sd >= 0.0)].flat[0]
        raise InputError(f"a standard deviation is {worst}; expected 0 or more")
    return _together(real(mean, "mean"), sd, *(real(one, "best") for one in more))


def _together(*arrays: Array) -> list[Array]:
    try:
        return [np.array(one) for one in np.broadcast_arrays(*arrays)]
    except ValueError:
        shapes = ", ".join(str(one.shape) for one in arrays)
        raise InputError(f"arrays of shapes {shapes} do not broadcast against each other") from None


def _uncertain(sd: Array) -> None:
    """Derivatives need a positive standard deviation."""
    if not (sd > 0.0).all():
        raise InputError("a standard deviation is 0, where there is no derivative; expected positive ones")


def _check_warp(warp: object) -> None:
    if warp not in (None, "log"):
        raise InputError(f"warp={warp!r}; expected None or 'log'")


def _log_best(best: Array, warp: Warp) -> Array:
    _check_warp(warp)
    if warp is None:
        return best
    if not (best > 0.0).all():
        worst = best[~(best > 0.0)].flat[0]
        raise InputError(f"warp='log' needs a positive objective, but the best value is {worst}; use warp=None")
    return np.asarray(np.log(best))


def _positive(value: ArrayLike, name: str) -> Array:
    array = real(value, name)
    if not (array > 0.0).all() or not np.isfinite(array).all():
        worst = array[~((array > 0.0) & np.isfinite(array))].flat[0]
        said = {"lam": "lam is objective units per cost unit, a positive number"}
        raise InputError(f"{said.get(name, f'{name} must be positive')}; got {worst}")
    return array

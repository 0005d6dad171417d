"""Expected improvement and the index where the logarithm of the objective is normal, in the objective's own units."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtr

from infimum_costbo.normal import LOG_SQRT_2PI, Array, inverse_log_h, log_h, mills

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_T: Final = 0.5 * (_NODES + 1.0)
_LOG_W: Final = np.log(0.5 * _WEIGHTS)
_FAR: Final = 5.0
"""From here the difference of the two expectations loses nothing, and the integrand of the other form is too steep."""


def log_gain(d: Array, s: Array) -> Array:
    """log(E[(b - exp(G))^+] / b) with G ~ N(m, s^2) and d = (log b - m) / s.

    Notes
    -----
    The expectation is Phi(d) - exp(s^2/2 - s d) Phi(d - s) = phi(d) (M(-d) - M(s - d)) with Mills' ratio M. Where the
    two are close, the difference is the integral of -M' = h(-x)/phi(x) over an interval of length s, by Gauss's rule.
    """
    d, s = np.broadcast_arrays(d, s)
    out = np.empty(d.shape)
    far = d > _FAR
    near = ~far & (s <= np.maximum(1.0, -0.25 * d))
    rest = ~(far | near)
    if far.any():
        out[far] = _far(d[far], s[far])
    if near.any():
        out[near] = _by_quadrature(d[near], s[near])
    if rest.any():
        apart = mills(-d[rest]) - mills(s[rest] - d[rest])
        out[rest] = -0.5 * d[rest] ** 2 - LOG_SQRT_2PI + np.log(apart)
    return out


def _far(d: Array, s: Array) -> Array:
    exponent = s * (0.5 * s - d)
    short = np.minimum(exponent, 0.0)
    # For short intervals E[exp(G)] comes close to b, so both are taken as differences from 1.
    close = -np.expm1(short) + np.exp(short) * ndtr(s - d) - ndtr(-d)
    return np.asarray(np.log(np.where(s <= 1.0, close, ndtr(d) - np.exp(exponent + log_ndtr(d - s)))))


def _by_quadrature(d: Array, s: Array) -> Array:
    t = s[..., None] * _T
    terms = log_h(d[..., None] - t) + 0.5 * t * (t - 2.0 * d[..., None]) + _LOG_W
    top = terms.max(axis=-1, keepdims=True)
    return np.asarray(np.log(s) + top[..., 0] + np.log(np.exp(terms - top).sum(axis=-1)))


def partials(d: Array, s: Array, log_gain_of: Array) -> tuple[Array, Array, Array]:
    """Of log E[(b - exp(G))^+]: the derivatives by log b, by m and by s."""
    by_best = np.exp(log_ndtr(d) - log_gain_of)
    taken = np.exp(s * (0.5 * s - d) + log_ndtr(d - s) - log_gain_of)
    density = np.exp(-0.5 * d * d - LOG_SQRT_2PI - log_gain_of)
    return by_best, -taken, density - s * taken


def log_index(mean: Array, sd: Array, log_price: Array) -> Array:
    """log g with E[(g - exp(G))^+] = price, G ~ N(mean, sd^2).

    Notes
    -----
    log E[(e^u - e^G)^+] is increasing and concave in u (an integral of a log-concave function), so Newton's method
    comes from the left after its first step. Where the normal problem E[(u - G)^+] = price / e^mean has a root
    below the mean, that root lies to the left of ours; elsewhere the start is log(E[e^G] + price), to the right.
    """
    k = log_price - mean
    z = inverse_log_h(k - np.log(sd))
    u = np.where(z < 0.0, sd * z, np.logaddexp(0.5 * sd * sd, k))
    for _ in range(80):
        d = u / sd
        value = log_gain(d, sd)
        step = (k - u - value) * np.exp(np.minimum(value - log_ndtr(d), 0.0))
        u = u + step
        if not (np.abs(step) > 4e-15 * np.maximum(1.0, np.abs(u + mean))).any():
            break
    return np.asarray(mean + u)

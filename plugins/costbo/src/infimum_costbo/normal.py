"""The function behind expected improvement, h(z) = phi(z) + z Phi(z), in logarithms, and its inverse."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, ndtr

from infimum.errors import InputError

Array = NDArray[np.float64]

LOG_SQRT_2PI: Final = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF_PI: Final = math.sqrt(0.5 * math.pi)
_SQRT_HALF: Final = math.sqrt(0.5)
_SERIES: Final = (1.0, -3.0, 15.0, -105.0, 945.0)
"""h(z) z^2 / phi(z) in powers of z^-2, for z to minus infinity."""
_PHI_SERIES: Final = (1.0, -1.0, 3.0, -15.0, 105.0, -945.0)
"""Phi(z) |z| / phi(z), likewise."""
_FAR: Final = -30.0
"""Below it the series are accurate to 2e-11, and log h, which is large there, to 4e-14 (relative)."""


def real(value: ArrayLike, name: str) -> Array:
    """Real numbers as an array of floats.

    Raises
    ------
    InputError
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biufO":
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise InputError(f"{name}: expected real numbers, got {value!r:.60}")


def mills(x: Array) -> Array:
    """Mills ratio Phi(-x) / phi(x); finite down to x = -37."""
    return np.asarray(_SQRT_HALF_PI * erfcx(x * _SQRT_HALF))


def log_h(z: ArrayLike) -> Array:
    """log(phi(z) + z Phi(z)), accurate to 1e-12 (relative) for every z from -1e11 upwards.

    Parameters
    ----------
    z : array of float
        Any shape. (best - mean) / sd of a point.

    Returns
    -------
    array of float
        Of the same shape. Three formulas: the definition above -1, Mills' ratio between -30 and -1, and from there
        an asymptotic series, of which below -1e5 one term is left.

    Notes
    -----
    log h is increasing and concave. Each formula is evaluated only on the entries that lie in its range.
    """
    z = real(z, "z")
    out = np.empty_like(z)
    high, low = z > -1.0, z <= _FAR
    middle = ~(high | low)
    if high.any():
        out[high] = _direct(z[high])
    if middle.any():
        out[middle] = _by_mills(z[middle])
    if low.any():
        out[low] = _asymptotic(z[low])
    out[np.isnan(z)] = np.nan
    return out


def _direct(z: Array) -> Array:
    return np.asarray(np.log(np.exp(-0.5 * z * z - LOG_SQRT_2PI) + z * ndtr(z)))


def _by_mills(z: Array) -> Array:
    return np.asarray(-0.5 * z * z - LOG_SQRT_2PI + np.log1p(z * mills(-z)))


def _asymptotic(z: Array) -> Array:
    return np.asarray(-0.5 * z * z - LOG_SQRT_2PI - 2.0 * np.log(-z) + np.log(_sum(_SERIES, z)))


def _sum(series: tuple[float, ...], z: Array) -> Array:
    inverse = 1.0 / (z * z)
    out = np.full_like(z, series[-1])
    for coefficient in reversed(series[:-1]):
        out = coefficient + inverse * out
    return out


def slope(z: Array, log_h_of_z: Array) -> Array:
    """d log h / dz = Phi(z) / h(z), without dividing two numbers that underflow."""
    out = np.empty_like(z)
    high, low = z > -1.0, z <= _FAR
    middle = ~(high | low)
    out[high] = ndtr(z[high]) * np.exp(-log_h_of_z[high])
    # log Phi - log phi is the logarithm of Mills' ratio, so the common factor phi drops out.
    at = z[middle]
    out[middle] = mills(-at) * np.exp(-0.5 * at * at - LOG_SQRT_2PI - log_h_of_z[middle])
    # Far out the exponents are so large that their difference has no digits left, but the ratio is plain.
    out[low] = -z[low] * _sum(_PHI_SERIES, z[low]) / _sum(_SERIES, z[low])
    return out


def density_over_h(z: Array, log_h_of_z: Array) -> Array:
    """phi(z) / h(z), likewise."""
    out = np.empty_like(z)
    low = z <= _FAR
    at = z[~low]
    out[~low] = np.exp(-0.5 * at * at - LOG_SQRT_2PI - log_h_of_z[~low])
    out[low] = z[low] ** 2 / _sum(_SERIES, z[low])
    return out


def inverse_log_h(k: ArrayLike) -> Array:
    """The z with log h(z) = k.

    Parameters
    ----------
    k : array of float
        Any shape; -inf gives -inf, inf gives inf.

    Returns
    -------
    array of float
        Of the same shape, with log h(z) = k to 1e-13 for k from -5000 to 30.

    Notes
    -----
    Newton's method on a concave increasing function: after the first step it comes from the left and cannot overshoot.
    The start is h(z) ~ z on the right and h(z) ~ phi(z) / z^2 on the left.
    """
    k = real(k, "k")
    with np.errstate(over="ignore", invalid="ignore"):
        rough = np.sqrt(np.maximum(-2.0 * (k + LOG_SQRT_2PI), 1.0))
        tail = -np.sqrt(np.maximum(-2.0 * (k + LOG_SQRT_2PI + 2.0 * np.log(rough)), 0.0))
        z = np.where(k > 0.0, np.exp(np.minimum(k, 700.0)), tail)
    edge = np.isinf(k)
    limit = k
    k = np.where(edge, 0.0, k)
    z = np.where(edge, 0.0, z)
    for _ in range(60):
        value = log_h(z)
        step = (k - value) / slope(z, value)
        z = z + step
        if not (np.abs(step) > 1e-15 * np.maximum(1.0, np.abs(z))).any():
            break
        if np.all(np.abs(k - value) <= 2e-15 * np.maximum(1.0, np.abs(k))):
            break
    return np.where(edge, limit, z)

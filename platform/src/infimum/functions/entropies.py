"""Entropy and Kullback-Leibler divergence: finite for x >= 0, +inf elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum.arrays import Array, as_data, clip, entry, is_array, namespace, to_numpy
from infimum.errors import InputError
from infimum.functions.base import Function

INF = float("inf")


class Entropy(Function):
    """Negative entropy `sum_i x_i log(x_i)`, with 0 log 0 = 0; +inf where an entry is negative.

    The gradient is -inf at 0 and NaN below; the prox is positive everywhere.
    """

    provides = ("value", "values", "gradient", "value_and_gradient", "hvp", "prox")
    real = True
    convex = True
    extended = True

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "Entropy()"

    def value(self, x: Array) -> float:
        return float(_entropy(x).sum())

    def values(self, X: Array) -> Array:
        return namespace(X).sum(_entropy(X), axis=tuple(range(1, X.ndim)))

    def gradient(self, x: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 + namespace(x).log(x)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self.value(x), self.gradient(x)

    def hvp(self, x: Array, v: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return v / x

    def prox(self, v: Array, t: float) -> Array:
        """`t W(exp(v / t - 1) / t)` with the Lambert function W, found without forming the exponential."""
        z = v / t - (1.0 + float(np.log(t)))
        return t * lambert_of_exp(z)


def _entropy(x: Array) -> Array:
    xp = namespace(x)
    inside = xp.where(x > 0, x, 1.0 + 0.0 * x)
    # Zero at zero, and NaN stays NaN.
    return xp.where(x < 0, INF + 0.0 * inside, inside * xp.log(inside) + 0.0 * x)


def lambert_of_exp(z: Array) -> Array:
    """`W(exp(z))`: the w > 0 with `w + log w = z`, for every finite z.

    Newton's method on y + exp(y) = z, y = log w, from a start to the right of the root, from which it descends: eight
    steps reach machine precision from -inf to inf.
    """
    xp = namespace(z)
    y = xp.minimum(z, xp.log(clip(z, 1.0, None)))
    for _ in range(8):
        large = xp.exp(y)
        y = y - (large + y - z) / (1.0 + large)
    # Each branch without cancellation: w = z - log w for large w, w = exp(log w) for small.
    return xp.where(z > 1.0, z - y, xp.exp(y))


class KL(Function):
    """Kullback-Leibler divergence of b from x, `sum_i b_i log(b_i / x_i) - b_i + x_i`: the misfit of Poisson counts.

    +inf where an entry is negative, or zero beside a positive b_i; 0 log 0 = 0. The gradient `1 - b / x` is meant for
    x > 0.

    Parameters
    ----------
    b : array of the shape of x
        Observed counts or intensities, finite and >= 0.

    Raises
    ------
    InputError
        If an entry of b is negative, NaN or inf, or b is empty.
    """

    provides = ("value", "values", "gradient", "value_and_gradient", "hvp", "prox", "prox_conjugate")
    data = ("b",)
    real = True
    convex = True
    extended = True

    def __init__(self, b: Any) -> None:
        self.b = as_data(b, "b")
        if not is_array(self.b):
            raise InputError("KL: b is a sparse matrix; expected a dense array")
        host = to_numpy(self.b)
        self.shape, self.shape_source = host.shape, f"b is {host.shape}"
        index, where = entry(np.argmin(host), host.shape)
        if host[index] < 0:
            raise InputError(f"KL: b{where} is {host[index]:g}; expected numbers >= 0")

    def __repr__(self) -> str:
        return f"KL({self.shape_source})"

    def _terms(self, x: Array) -> Array:
        xp = namespace(x)
        one = 1.0 + 0.0 * x
        observed = xp.where(self.b > 0, self.b, one)
        positive = xp.where(x > 0, x, one)
        logs = xp.where(self.b > 0, self.b * xp.log(observed / positive), 0.0 * one)
        outside = (x < 0) | ((x == 0) & (self.b > 0))
        return xp.where(outside, INF * one, logs - self.b + x)

    def value(self, x: Array) -> float:
        return float(self._terms(x).sum())

    def values(self, X: Array) -> Array:
        return namespace(X).sum(self._terms(X), axis=tuple(range(1, X.ndim)))

    def gradient(self, x: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 - self.b / x

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self.value(x), self.gradient(x)

    def hvp(self, x: Array, v: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.b / (x * x) * v

    def prox(self, v: Array, t: float) -> Array:
        return _positive_root(v - t, t * self.b)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return 1.0 - _positive_root(1.0 - v, s * self.b)


def _positive_root(p: Array, c: Array) -> Array:
    """The root u >= 0 of `u^2 - p u - c = 0` for c >= 0, without cancellation for negative p."""
    xp = namespace(p)
    far = abs(p) + xp.hypot(p, 2.0 * c**0.5)
    safe = xp.where(far > 0, far, 1.0 + 0.0 * far)
    return xp.where(p > 0, 0.5 * far, 2.0 * c / safe + 0.0 * p)

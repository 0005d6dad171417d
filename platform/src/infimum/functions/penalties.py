"""Penalties with closed-form proximal maps: l1, elastic net, Huber, the Euclidean norm, and half its square."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from infimum.arrays import Array, as_data, clip, entry, inner, is_array, namespace, norm, to_numpy, zeros_like
from infimum.errors import InputError
from infimum.functions.base import Function


class L1(Function):
    """`sum_i w_i |x_i|`, for real x of any shape.

    Parameters
    ----------
    weights : float or array of the shape of x, default 1
        Numbers >= 0; a zero leaves an entry (an intercept) unpenalized.

    Raises
    ------
    InputError
        If a weight is negative, NaN or inf.
    """

    provides = ("value", "values", "prox", "prox_conjugate")
    data = ("weights",)
    real = True
    convex = True

    def __init__(self, weights: Any = None) -> None:
        if weights is None or isinstance(weights, Real):
            self.weights: Any = 1.0 if weights is None else float(weights)
            lowest, where = self.weights, ""
        else:
            self.weights = as_data(weights, "weights")
            host = to_numpy(self.weights)
            self.shape, self.shape_source = host.shape, f"weights is {host.shape}"
            index, where = entry(np.argmin(host), host.shape)
            lowest = float(host[index])
        if not 0 <= lowest < float("inf"):
            raise InputError(f"L1: weights{where} is {lowest}; expected finite numbers >= 0")

    def __repr__(self) -> str:
        if is_array(self.weights):
            return f"L1(weights is {self.shape})"
        return "L1()" if self.weights == 1.0 else f"L1({self.weights:g})"

    def value(self, x: Array) -> float:
        if isinstance(self.weights, float):
            return self.weights * float(abs(x).sum())
        return float((self.weights * abs(x)).sum())

    def values(self, X: Array) -> Array:
        xp = namespace(X)
        return xp.sum(self.weights * xp.abs(X), axis=tuple(range(1, X.ndim)))

    def prox(self, v: Array, t: float) -> Array:
        bound = t * self.weights
        return v - clip(v, -bound, bound)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return clip(v, -self.weights, self.weights)


class ElasticNet(Function):
    """`l1 ||x||_1 + l2 / 2 ||x||^2`, for real x of any shape.

    Parameters
    ----------
    l1, l2 : float, default 1
        Numbers >= 0. The `alpha` and `l1_ratio` of scikit-learn are `l1 = alpha * l1_ratio` and
        `l2 = alpha * (1 - l1_ratio)`.

    Raises
    ------
    InputError
        If a weight is negative, NaN or inf.
    """

    provides = ("value", "values", "prox", "prox_conjugate")
    real = True
    convex = True

    def __init__(self, l1: float = 1.0, l2: float = 1.0) -> None:
        self.l1, self.l2 = (_weight(given, f"ElasticNet: {name}") for name, given in (("l1", l1), ("l2", l2)))
        self.strongly_convex = self.l2

    def __repr__(self) -> str:
        return f"ElasticNet(l1={self.l1:g}, l2={self.l2:g})"

    def value(self, x: Array) -> float:
        return self.l1 * float(abs(x).sum()) + 0.5 * self.l2 * inner(x, x)

    def values(self, X: Array) -> Array:
        return namespace(X).sum(self.l1 * abs(X) + (0.5 * self.l2) * X * X, axis=tuple(range(1, X.ndim)))

    def prox(self, v: Array, t: float) -> Array:
        bound = t * self.l1
        return (v - clip(v, -bound, bound)) / (1.0 + t * self.l2)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return v - (v - clip(v, -self.l1, self.l1)) * (s / (s + self.l2))


class Huber(Function):
    """`sum_i h(x_i)`, where `h(x) = x^2 / 2` up to `|x| = delta` and `delta (|x| - delta / 2)` beyond; x is real.

    `Huber(delta).translate(b) @ A` is robust regression, summed over the rows.

    Parameters
    ----------
    delta : float, default 1
        Where the parabola ends, > 0.

    Raises
    ------
    InputError
        If delta is not positive and finite.
    """

    provides = ("value", "values", "gradient", "value_and_gradient", "hvp", "prox", "prox_conjugate")
    real = True
    convex, lipschitz = True, 1.0

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = _weight(delta, "Huber: delta", positive=True)

    def __repr__(self) -> str:
        return f"Huber({self.delta:g})"

    def value(self, x: Array) -> float:
        slope = self.gradient(x)
        return inner(slope, x - 0.5 * slope)

    def values(self, X: Array) -> Array:
        slope = self.gradient(X)
        return namespace(X).sum(slope * (X - 0.5 * slope), axis=tuple(range(1, X.ndim)))

    def gradient(self, x: Array) -> Array:
        return clip(x, -self.delta, self.delta)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        slope = self.gradient(x)
        return inner(slope, x - 0.5 * slope), slope

    def hvp(self, x: Array, v: Array) -> Array:
        return v * (abs(x) <= self.delta)

    def prox(self, v: Array, t: float) -> Array:
        return v - t * clip(v / (1.0 + t), -self.delta, self.delta)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return clip(v / (1.0 + s), -self.delta, self.delta)


def _weight(given: Any, name: str, positive: bool = False) -> float:
    """A finite number >= 0 (or > 0) as a float."""
    number = float(given) if isinstance(given, Real) and not isinstance(given, bool) else float("nan")
    if not 0 <= number < float("inf") or (positive and number == 0):
        raise InputError(f"{name} is {given!r}; expected a finite number {'> 0' if positive else '>= 0'}")
    return number


class L2(Function):
    """The Euclidean norm `||x||` over all entries, not squared: zero or not as a whole."""

    provides = ("value", "values", "prox", "prox_conjugate")
    convex = True

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "L2()"

    def value(self, x: Array) -> float:
        return norm(x)

    def values(self, X: Array) -> Array:
        return namespace(X).linalg.vector_norm(X.reshape((X.shape[0], -1)), axis=1)

    def prox(self, v: Array, t: float) -> Array:
        size = norm(v)
        return zeros_like(v) if size <= t else (1.0 - t / size) * v

    def prox_conjugate(self, v: Array, s: float) -> Array:
        size = norm(v)
        return 1.0 * v if size <= 1.0 else v / size


class SquaredL2(Function):
    """`1/2 ||x||^2` over all entries."""

    provides = ("value", "values", "gradient", "value_and_gradient", "hvp", "prox", "prox_conjugate")
    convex, lipschitz, strongly_convex = True, 1.0, 1.0

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "SquaredL2()"

    def value(self, x: Array) -> float:
        return 0.5 * inner(x, x)

    def values(self, X: Array) -> Array:
        xp = namespace(X)
        size = xp.abs(X.reshape((X.shape[0], -1)))
        return 0.5 * xp.sum(size * size, axis=1)

    def gradient(self, x: Array) -> Array:
        return 1.0 * x

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return 0.5 * inner(x, x), 1.0 * x

    def hvp(self, x: Array, v: Array) -> Array:
        return 1.0 * v

    def prox(self, v: Array, t: float) -> Array:
        return v / (1.0 + t)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return v / (1.0 + s)

"""Smooth separable losses that serve as last blocks of rows: Cauchy's, and the logistic loss of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from infimum.arrays import Array
from infimum.errors import InputError
from infimum.functions import Function
from infimum_padmm.data import array, number


class Elementwise(Function):
    """Base of sums of smooth functions of one entry: value, gradient and second derivatives, all elementwise."""

    provides = ("value", "values", "gradient", "value_and_gradient", "hvp", "curvatures")
    real = True

    def __init__(self, y: Any, weight: float) -> None:
        self.y = array(y, "y")
        self.weight = number(weight, f"{type(self).__name__}: weight", "a finite number > 0")
        self.shape, self.shape_source = tuple(self.y.shape), f"y is {tuple(self.y.shape)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape_source})"

    def losses(self, x: Array) -> Array:
        """The summands, an array like x."""
        raise NotImplementedError

    def curvatures(self, x: Array) -> Array:
        """The second derivatives, an array like x."""
        raise NotImplementedError

    def value(self, x: Array) -> float:
        return float(self.losses(x).sum())

    def values(self, X: Array) -> Array:
        return self.losses(X).reshape(X.shape[0], -1).sum(axis=1)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self.value(x), self.gradient(x)

    def hvp(self, x: Array, v: Array) -> Array:
        return self.curvatures(x) * v


class Cauchy(Elementwise):
    """`weight * sum_i scale^2 / 2 * log(1 + ((x_i - y_i) / scale)^2)`: robust, smooth, not convex.

    Parameters
    ----------
    y : array
        Data, of the shape of x.
    scale : float, default 1
        Residuals well below it count as squares (halved), those well above it hardly at all.
    weight : float, default 1
        Factor. The gradient is Lipschitz with this constant; second derivatives reach down to -weight/8.

    Raises
    ------
    InputError
        For a scale or a weight that is not a finite number > 0, or data that is empty or not finite.
    """

    convex = False

    def __init__(self, y: Any, scale: float = 1.0, weight: float = 1.0) -> None:
        super().__init__(y, weight)
        self.scale = number(scale, "Cauchy: scale", "a finite number > 0")
        self.lipschitz = self.weight
        self.lowest_curvature = -0.125 * self.weight

    def losses(self, x: Array) -> Array:
        t = (x - self.y) / self.scale
        return 0.5 * self.weight * self.scale**2 * np.log1p(t * t)

    def gradient(self, x: Array) -> Array:
        r = x - self.y
        return self.weight * r / (1.0 + (r / self.scale) ** 2)

    def curvatures(self, x: Array) -> Array:
        square = ((x - self.y) / self.scale) ** 2
        return self.weight * (1.0 - square) / (1.0 + square) ** 2


class ScoreLogistic(Elementwise):
    """`weight * sum_i log(1 + exp(-y_i x_i))`, the logistic loss of scores x.

    Parameters
    ----------
    y : array, shape (n,)
        Labels, -1 and +1.
    weight : float, default 1
        Factor: 1/n makes it a mean.

    Raises
    ------
    InputError
        For other labels, or a weight that is not a finite number > 0.
    """

    convex = True

    def __init__(self, y: Any, weight: float = 1.0) -> None:
        super().__init__(y, weight)
        if not np.isin(self.y, (-1.0, 1.0)).all():
            raise InputError(f"ScoreLogistic: y holds {np.unique(self.y)[:6].tolist()}; expected -1 and +1")
        self.lipschitz = 0.25 * self.weight

    def losses(self, x: Array) -> Array:
        return self.weight * np.logaddexp(0.0, -self.y * x)

    def gradient(self, x: Array) -> Array:
        return -self.weight * self.y * expit(-self.y * x)

    def curvatures(self, x: Array) -> Array:
        small = np.exp(-np.abs(x))
        return self.weight * small / (1.0 + small) ** 2

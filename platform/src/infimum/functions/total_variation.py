"""Total variation: of a vector, with its exact prox, and of arrays of more axes as a norm of differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from infimum.arrays import Array, all_finite, like, namespace, to_numpy
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.functions.norms import L21
from infimum.functions.operators import finite_difference
from infimum.functions.penalties import L1


class TV1D(Function):
    """Total variation `sum_i |x_{i+1} - x_i|` of a real vector.

    Notes
    -----
    The prox is exact. It runs in O(n) whatever the data, in Python: about 15 ms for 10,000 entries. It computes in
    float64 on the host; tensors travel there and back.
    """

    provides = ("value", "values", "prox")
    real = True
    convex = True

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "TV1D()"

    def check(self, x: Array) -> None:
        if x.ndim != 1:
            raise InputError(
                f"{self!r} is a function of vectors, x0 is {tuple(x.shape)}; expected one axis. For arrays of more "
                "axes there is total_variation(shape)"
            )
        super().check(x)

    def value(self, x: Array) -> float:
        return float(abs(x[1:] - x[:-1]).sum())

    def values(self, X: Array) -> Array:
        return namespace(X).sum(abs(X[:, 1:] - X[:, :-1]), axis=1)

    def prox(self, v: Array, t: float) -> Array:
        if not all_finite(v):
            return v * float("nan")
        y = to_numpy(v).astype(np.float64)
        return like(_denoise(y, float(t)) if y.size > 1 and t > 0 else y.copy(), v)


def total_variation(shape: int | Sequence[int], isotropic: bool = True) -> Function:
    """Total variation of an array such as an image, as a norm of its finite differences.

    Parameters
    ----------
    shape : int or sequence of int
        Shape of x.
    isotropic : bool, default True
        Whether the differences at a pixel count by their Euclidean norm, or by the sum of their absolute values.

    Returns
    -------
    Function
        `TV1D()` for a vector, else a norm composed with `finite_difference(shape)`: it has no closed-form prox, and
        suits solvers that take the linear map apart.
    """
    differences = finite_difference(shape)
    if len(differences.grid) == 1:
        return TV1D()
    return (L21(axis=0) if isotropic else L1()) @ differences


def _denoise(y: np.ndarray, weight: float) -> np.ndarray:
    """`argmin_x 1/2 ||x - y||^2 + weight sum |x_{i+1} - x_i|`, by dynamic programming (Johnson, 2013)."""
    lower, upper, last = _forward(y.tolist(), weight)
    x = [last]
    for k in range(len(lower) - 1, -1, -1):
        if last < lower[k]:
            last = lower[k]
        elif last > upper[k]:
            last = upper[k]
        x.append(last)
    x.reverse()
    return _polished(np.array(x), y, weight)


def _forward(y: list[float], weight: float) -> tuple[list[float], list[float], float]:
    """Bounds `lower_k <= x_k <= upper_k` that x_{k+1} is clipped to, for k = 0, …, n - 2, and the last entry.

    The best value of the first k terms, as a function of x_k, has a piecewise linear derivative. Each step clips it
    to [-weight, weight] and adds `x - y_k`. It is kept as its knots, from `left` to `right`: their positions, and by
    how much slope and intercept change there.
    """
    n = len(y)
    position, slope, intercept = [0.0] * (2 * n), [0.0] * (2 * n), [0.0] * (2 * n)
    left, right = n, n - 1
    lower, upper = [0.0] * (n - 1), [0.0] * (n - 1)
    # Outside of the knots the derivative is `x + below` and `x + above`.
    below = above = -y[0]
    for k in range(n - 1):
        a, b = 1.0, below
        while left <= right and a * position[left] + b <= -weight:
            a += slope[left]
            b += intercept[left]
            left += 1
        c, d = 1.0, above
        while right >= left and c * position[right] + d >= weight:
            c -= slope[right]
            d -= intercept[right]
            right -= 1
        left -= 1
        right += 1
        position[left] = lower[k] = (-weight - b) / a
        position[right] = upper[k] = (weight - d) / c
        slope[left], intercept[left] = a, b + weight
        slope[right], intercept[right] = -c, weight - d
        below, above = -weight - y[k + 1], weight - y[k + 1]
    a, b = 1.0, below
    while left <= right and a * position[left] + b <= 0.0:
        a += slope[left]
        b += intercept[left]
        left += 1
    return lower, upper, -b / a


def _polished(x: np.ndarray, y: np.ndarray, weight: float) -> np.ndarray:
    """Each constant piece of x from its optimality condition, free of what rounding piled up on the way.

    A piece is the mean of y on it, moved by `weight` over its length for each neighbor towards that neighbor.
    """
    starts = np.concatenate([[0], np.flatnonzero(x[1:] != x[:-1]) + 1])
    lengths = np.diff(np.append(starts, x.size))
    jumps = np.concatenate([[0.0], np.sign(np.diff(x[starts])), [0.0]])
    means = np.add.reduceat(y, starts) / lengths
    return np.repeat(means + weight * np.diff(jumps) / lengths, lengths)

"""Linear maps that are no matrices: finite differences along the axes of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from infimum.arrays import Array, namespace, zeros_like
from infimum.errors import InputError
from infimum.functions.maps import Map


class FiniteDifference(Map):
    """Forward differences between neighbors; see `finite_difference`."""

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid
        if len(grid) == 1:
            self.shape = (grid[0] - 1, grid[0])

    def __repr__(self) -> str:
        return f"finite_difference{self.grid}"

    def check(self, x: Array) -> None:
        if tuple(x.shape) != self.grid:
            raise InputError(f"{self!r}: x0 is {tuple(x.shape)}; expected an array of shape {self.grid}")

    def forward(self, x: Array) -> Array:
        return self._differences(x, 0)

    def rows(self, X: Array) -> Array:
        return self._differences(X, 1)

    def _differences(self, x: Array, skip: int) -> Array:
        """Differences along all axes but the first `skip`."""
        if len(self.grid) == 1:
            return x[..., 1:] - x[..., :-1]
        directions = []
        for axis in range(len(self.grid)):
            out = zeros_like(x)
            head, tail = self._ends(axis, skip)
            out[head] = x[tail] - x[head]
            directions.append(out)
        return namespace(x).stack(directions, axis=skip)

    def adjoint(self, y: Array) -> Array:
        if len(self.grid) == 1:
            xp = namespace(y)
            edge = zeros_like(y[:1])
            return xp.concat([edge, y]) - xp.concat([y, edge])
        out = zeros_like(y[0])
        for axis in range(len(self.grid)):
            head, tail = self._ends(axis, 0)
            flow = y[axis][head]
            out[head] -= flow
            out[tail] += flow
        return out

    def _ends(self, axis: int, skip: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Slices that leave out the last and the first entry along an axis."""
        before = (slice(None),) * (axis + skip)
        return (*before, slice(None, -1)), (*before, slice(1, None))

    @property
    def norm(self) -> float:
        """`2 sqrt(sum_k cos(pi / (2 n_k))^2)`: the differences of a path of n points have norm `2 cos(pi / (2 n))`."""
        return 2.0 * math.sqrt(sum(math.cos(math.pi / (2 * n)) ** 2 for n in self.grid))


def finite_difference(shape: int | Sequence[int]) -> FiniteDifference:
    """Forward differences `x[i + 1] - x[i]` along every axis of an array.

    Parameters
    ----------
    shape : int or sequence of int
        Shape of x, at least 2 along each axis.

    Returns
    -------
    FiniteDifference
        For a vector of n entries the n - 1 differences. For d >= 2 axes an array of shape (d, *shape): direction
        first, with zeros where there is no next neighbor. `L1() @ finite_difference(shape)` is anisotropic total
        variation, `L21(axis=0) @ finite_difference(shape)` the isotropic one.

    Raises
    ------
    InputError
        If an axis is shorter than 2 or no integer.

    Examples
    --------
    >>> import numpy as np
    >>> finite_difference(3).forward(np.array([1.0, 3.0, 2.0])).tolist()
    [2.0, -1.0]
    """
    given: tuple[Any, ...] = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    if not given or not all(isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 2 for n in given):
        raise InputError(
            f"finite_difference({shape!r}): expected the shape of x, with at least 2 entries along each axis"
        )
    return FiniteDifference(tuple(int(n) for n in given))

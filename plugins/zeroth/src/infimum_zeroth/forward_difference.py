"""The gradient by forward differences along the coordinates."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from infimum.arrays import Array, copy, namespace, norm
from infimum.errors import InfimumWarning, InputError
from infimum.oracle import Oracle

BATCH_BYTES = 32 * 2**20
"""Bound on the bytes of the points of one batch; one point is always allowed."""


@dataclass(frozen=True)
class ForwardDifference(Oracle):
    """Gradient from n + 1 values: `g_i = (f(x + h_i e_i) - f(x)) / h_i`.

    For f with an M-Lipschitz gradient whose values are correct to relative precision u (that of the dtype of x), each
    entry is wrong by at most `M h_i / 2 + 2 u |f(x)| / h_i`; the default step balances the two for f, M and x of order
    one. Where the function offers `values`, the points go to it in batches of at most 32 MiB; otherwise one by one.
    `value_and_gradient` shares the value at x, so it costs n + 1 values too.

    Warns once a run when rounding drowns the gradient: when the noise `2 u |f(x)| / h` exceeds half of the estimate,
    both in 2-norm. Looked for at the first gradient, and at every one if `eps` is below the square root of u: with a
    larger `eps` a gradient that sinks into the noise later is simply one that has become small.

    Parameters
    ----------
    eps : float, optional
        Step, above 0. None means the square root of the precision of the dtype: 1.5e-8 in float64, 3.5e-4 in float32.
    relative : bool, default True
        Multiply `eps` by `max(1, |x_i|)` in coordinate i.

    Raises
    ------
    InputError
        For an `eps` that is not positive and finite, or one that vanishes beside an entry of x.
    """

    eps: Annotated[float, Gt(0)] | None = None
    relative: bool = True

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient", "value_and_gradient")

    def __post_init__(self) -> None:
        if self.eps is not None and not 0 < self.eps < math.inf:
            raise InputError(f"zeroth.forward_difference: eps={self.eps!r}; expected a positive finite number")

    def bind(self, function: Any, rng: np.random.Generator) -> ForwardDifferencePart:
        return ForwardDifferencePart(function, self.eps, self.relative)


class ForwardDifferencePart:
    """A function with a gradient by differences. The only thing it remembers is whether it has warned."""

    def __init__(self, function: Any, eps: float | None, relative: bool) -> None:
        self.function, self.eps, self.relative = function, eps, relative
        self._batches = "values" in getattr(function, "capabilities", ())
        self._watch = True

    def gradient(self, x: Array) -> Array:
        """Estimate of the gradient at x, in the shape and dtype of x."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """The value at x and the estimate of the gradient there."""
        xp = namespace(x)
        flat = xp.reshape(copy(x), (-1,))
        shifted, h = self._steps(flat, xp)
        if self._batches:
            value, differences = self._batched(flat, shifted, tuple(x.shape), xp)
        else:
            value, differences = self._one_by_one(flat, shifted, tuple(x.shape), xp)
        gradient = differences / h
        if self._watch:
            self._watch_noise(value, gradient, h, float(xp.finfo(x.dtype).eps))
        return value, xp.reshape(gradient, tuple(x.shape))

    def _steps(self, flat: Array, xp: Any) -> tuple[Array, Array]:
        """`x + h` and the `h` that this sum really adds, entry by entry."""
        eps = self.eps if self.eps is not None else math.sqrt(float(xp.finfo(flat.dtype).eps))
        size = xp.abs(flat)
        shifted = flat + (eps * xp.where(size > 1, size, xp.ones_like(size)) if self.relative else eps)
        h = shifted - flat
        lost = xp.nonzero(h == 0)[0]
        if lost.shape[0]:
            i = int(lost[0])
            raise InputError(
                f"zeroth.forward_difference: eps={eps:g} vanishes beside x[{i}] = {float(flat[i]):g} in "
                f"{str(flat.dtype).rpartition('.')[2]}; give a larger eps"
                + ("" if self.relative else " or relative=True")
            )
        return shifted, h

    def _batched(self, flat: Array, shifted: Array, shape: tuple[int, ...], xp: Any) -> tuple[float, Array]:
        """Value at x and differences, from `values`; x itself is the first point, so that all round alike."""
        n = flat.shape[0]
        rows = max(1, BATCH_BYTES // max(1, n * int(xp.finfo(flat.dtype).bits) // 8))
        found = []
        for start in range(0, n + 1, rows):
            moved = xp.eye(min(rows, n + 1 - start), n, k=start - 1, dtype=xp.bool, device=flat.device)
            points = xp.where(moved, shifted[None, :], flat[None, :])
            found.append(self.function.values(xp.reshape(points, (points.shape[0], *shape))))
        values = xp.astype(xp.concat(found), flat.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            return float(values[0]), values[1:] - values[0]

    def _one_by_one(self, flat: Array, shifted: Array, shape: tuple[int, ...], xp: Any) -> tuple[float, Array]:
        """Value at x and differences, from `value`; every call gets an array of its own."""
        value = float(self.function.value(xp.reshape(copy(flat), shape)))
        differences = []
        for i in range(flat.shape[0]):
            point = copy(flat)
            point[i] = shifted[i]
            differences.append(float(self.function.value(xp.reshape(point, shape))) - value)
        return value, xp.asarray(differences, dtype=flat.dtype, device=flat.device)

    def _watch_noise(self, value: float, gradient: Array, h: Array, precision: float) -> None:
        size = norm(gradient)
        noise = 2.0 * precision * abs(value) * norm(1.0 / h)
        drowned = noise > 0.5 * size
        if drowned:
            usual = 2.0 * math.sqrt(precision * max(1.0, abs(value)))
            warnings.warn(
                f"zeroth.forward_difference: with steps down to {float(h.min()):.2g} rounding drowns the gradient: "
                f"|f(x)| = {abs(value):.3g} makes noise of norm {noise:.2g} in an estimate of norm {size:.2g}; "
                f"use eps of about {usual:.2g}, or shift f towards 0",
                InfimumWarning,
                stacklevel=4,
            )
        self._watch = not drowned and self.eps is not None and self.eps < math.sqrt(precision)

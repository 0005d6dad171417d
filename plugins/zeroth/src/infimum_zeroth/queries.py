"""What all estimates share: evaluating many points exactly once each, steps that fit the precision, the noise floor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from infimum.arrays import Array, copy, describe, is_array, is_complex, namespace, to_numpy
from infimum.errors import InfimumWarning, InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle

BATCH_BYTES = 32 * 2**20
"""Bound on the bytes of the points of one batch; one point is always allowed."""


class Queries:
    """Evaluates points of a function: in batches where it offers `values`, as samples where it is stochastic.

    A stochastic function offers `sample_value(x, rng) -> float` whose expectation over rng is f(x). With `common` all
    samples between two calls of `start` get generators of one seed, without it each gets a seed of its own.
    """

    def __init__(self, function: Any, common: bool | None, rng: np.random.Generator) -> None:
        self.function, self.common, self.rng = function, common, rng
        self._batches = common is None and "values" in getattr(function, "capabilities", ())
        self._seed = 0

    def start(self) -> None:
        """Begin an estimate: its samples share the seed that is drawn here."""
        if self.common:
            self._seed = self._draw()

    def one(self, point: Array) -> Any:
        """f at one point, as a Python number."""
        if self.common is None:
            out = self.function.value(point)
        else:
            seed = self._seed if self.common else self._draw()
            out = self.function.sample_value(point, np.random.default_rng(seed))
        return _number(out)

    def at(self, flat: Array, x: Array) -> float:
        """f at the flat point, in the way in which `many` evaluates, so that both round alike."""
        return float(self.many(lambda a, b: copy(flat)[None, :], 1, x)[0].real)

    def many(self, points: Callable[[int, int], Array], count: int, x: Array) -> np.ndarray:
        """f at points 0 … count - 1; `points(a, b)` makes those from a to b - 1, flat, one a row; x gives the shape.

        Returns
        -------
        numpy.ndarray of shape (count,)
            float64 or complex128.
        """
        shape = tuple(x.shape)
        if not self._batches:
            return np.array([self.one(points(k, k + 1)[0].reshape(shape)) for k in range(count)])
        found, rows = [], batch_rows(x)
        for a in range(0, count, rows):
            b = min(a + rows, count)
            found.append(on_host(self.function.values(points(a, b).reshape((b - a, *shape)))))
        return np.concatenate(found)

    def _draw(self) -> int:
        return int(self.rng.integers(2**63))


def _number(out: Any) -> Any:
    """A scalar of any library as a Python float, or complex where it is complex."""
    if is_torch_array(out):
        out = out.detach()
    return complex(out) if isinstance(out, complex) or (is_array(out) and is_complex(out)) else float(out)


def on_host(a: Array) -> np.ndarray:
    """An array as NumPy's float64 or complex128; NumPy itself knows no bfloat16."""
    if is_complex(a):
        return to_numpy(a).astype(np.complex128)
    xp = namespace(a)
    return to_numpy(xp.astype(a, xp.float32) if "bfloat16" in str(a.dtype) else a).astype(np.float64)


def batch_rows(x: Array) -> int:
    """How many points like x make a batch."""
    size: int = math.prod(x.shape) * int(namespace(x).finfo(x.dtype).bits) // 8
    return max(1, BATCH_BYTES // max(1, size))


def flat_real(x: Array, name: str) -> Array:
    """A flat copy of a real x.

    Raises
    ------
    InputError
        If x is complex.
    """
    if is_complex(x):
        raise InputError(
            f"{name}: x is complex ({describe(x)}), and its differences are those of real points; "
            "pass real and imaginary parts as one real vector"
        )
    return copy(x).reshape((-1,))


def precision_of(x: Array) -> float:
    """The relative precision u of the dtype of x."""
    return float(namespace(x).finfo(x.dtype).eps)


def default_eps(precision: float, value: float, order: int) -> float:
    """Step that balances truncation and rounding for derivatives of order one: `(u max(1, |f|))^(1/order)`.

    Order 2 is a one-sided difference, 3 a two-sided one. At most `u^(1/(2 order))`: a larger |f| is taken to come
    from a larger scale of f, not from a constant.
    """
    size = abs(value) if math.isfinite(value) else 1.0
    return float(min(precision * max(1.0, size), math.sqrt(precision)) ** (1.0 / order))


def warn_if_drowned(
    name: str, value: float, precision: float, h: float, noise: float, size: float, order: int, option: str = "eps"
) -> bool:
    """Warn where rounding noise exceeds half of an estimate, both as norms; whether it does."""
    drowned = noise > 0.5 * size
    if drowned:
        usual = ((4.0 if order == 2 else 3.0) * precision * max(1.0, abs(value))) ** (1.0 / order)
        warnings.warn(
            f"{name}: with steps down to {h:.2g} rounding drowns the gradient: |f(x)| = {abs(value):.3g} makes noise "
            f"of norm {noise:.2g} in an estimate of norm {size:.2g}; use {option} of about {usual:.2g}, "
            "or shift f towards 0",
            InfimumWarning,
            stacklevel=5,
        )
    return drowned


def vanished(what: str, *, first: bool) -> Exception:
    """A step lost beside x is a mistake of the input at the first gradient; later it ends the run, as `failed`."""
    return InputError(what) if first else ArithmeticError(f"{what}, or, if the points run away, shorter steps")


def refuse_bad_eps(name: str, option: str, eps: float | None) -> None:
    if eps is not None and not 0 < eps < math.inf:
        raise InputError(f"{name}: {option}={eps!r}; expected a positive finite number")


def refuse_below_one(name: str, option: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise InputError(f"{name}: {option}={number!r}; expected a whole number from 1")


def declare_stochastic(oracle: Oracle) -> None:
    """What the plan reads of an oracle over `sample_value`, for the object in place of the class."""
    for name, said in {
        "needs": ("sample_value",),
        "wants": (),
        "supplies": ("gradient",),
        "exactness": Exactness.stochastic,
    }.items():
        object.__setattr__(oracle, name, said)

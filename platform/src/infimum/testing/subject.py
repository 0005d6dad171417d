"""What the numerical checks share: random points, guarded calls, differences with an idea of their own error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from infimum.arrays import (
    Array,
    as_data,
    copy,
    describe,
    inner,
    is_array,
    is_sparse,
    like,
    namespace,
    norm,
)
from infimum.errors import InputError
from infimum.testing.report import Report

NEAR = (0.0, 0.1, 1.0)
"""Distances of the points of a check from x, in units of the size of x."""
Check = Callable[[Any], None]


class Subject:
    """Something with capabilities, at a point, under check.

    Parameters
    ----------
    thing : object
        Has `capabilities`, each of them an attribute.
    x : array
        A point that fits it.
    rng : numpy.random.Generator
    tolerance : float, optional
        Relative error that counts as rounding; by default that of the dtype (float64: 1e-9).
    """

    def __init__(self, thing: Any, x: Array, rng: np.random.Generator, tolerance: float | None = None) -> None:
        self.thing, self.x, self.rng = thing, x, rng
        self.xp = namespace(x)
        self.eps = float(self.xp.finfo(x.dtype).eps)
        self.tolerance = tolerance if tolerance is not None else (1e-9 if self.eps < 1e-12 else 2e-3)
        self.size = int(np.prod(x.shape))
        self.scale = max(1.0, norm(x) / math.sqrt(self.size))
        self.offers = frozenset(thing.capabilities)
        self.report = Report(f"{thing!r} at x {describe(x)}")

    def can(self, *names: str) -> bool:
        return self.offers.issuperset(names)

    def run(self, checks: Sequence[tuple[str, tuple[str, ...], Check]]) -> None:
        """Make those checks of which all capabilities are there; what raises is a finding."""
        for name, needs, check in checks:
            if not self.can(*needs):
                continue
            self.report.checked.append(name)
            try:
                with np.errstate(all="ignore"):
                    check(self)
            except Exception as error:
                said = str(error).splitlines()[0] if str(error) else ""
                self.report.add(name, f"raised {type(error).__name__}: {said}")

    def wrong(self, check: str, message: str, **values: Any) -> None:
        """Record a finding; of one check only the first is of use."""
        if not self.report.of(check):
            self.report.add(check, message, **values)

    def skip(self, check: str, why: str) -> None:
        if check in self.report.checked:
            self.report.checked.remove(check)
        self.report.skipped.setdefault(check, why)

    def random(self, scale: float = 1.0, shape: tuple[int, ...] | None = None) -> Array:
        """Normal numbers of standard deviation `scale`, like x."""
        return like(scale * self.rng.standard_normal(tuple(self.x.shape) if shape is None else shape), self.x)

    def direction(self) -> Array:
        """A random array of norm 1, like x."""
        d = self.random()
        return d / norm(d)

    def constant(self, number: float) -> Array:
        return like(np.full(tuple(self.x.shape), number), self.x)

    def value(self, x: Array) -> float:
        if "value" in self.offers:
            return float(self.thing.value(x))
        return float(self.thing.value_and_gradient(x)[0])

    def gradient(self, x: Array) -> Array:
        if "gradient" in self.offers:
            return self.thing.gradient(x)
        return self.thing.value_and_gradient(x)[1]

    @property
    def has_value(self) -> bool:
        return bool({"value", "value_and_gradient"} & self.offers)

    @property
    def has_gradient(self) -> bool:
        return bool({"gradient", "value_and_gradient"} & self.offers)

    def near(self, distances: Sequence[float] = NEAR) -> list[Array]:
        """Points at these distances from x, drawn closer until the value is finite."""
        found = []
        for distance in distances:
            step = self.random(distance * self.scale)
            for _ in range(8):
                point = self.x + step
                if not self.has_value or math.isfinite(self.value(point)):
                    found.append(point)
                    break
                step = 0.25 * step
        return found

    def derivative(self, call: Callable[[Array], Any], x: Array, d: Array, h: float) -> tuple[Any, float]:
        """Derivative of `call` at x along d by central differences at two steps, and how far the two are apart."""
        wide, narrow = self._difference(call, x, d, h), self._difference(call, x, d, 0.5 * h)
        return (4.0 * narrow - wide) / 3.0, _size(narrow - wide)

    @staticmethod
    def _difference(call: Callable[[Array], Any], x: Array, d: Array, h: float) -> Any:
        ahead, behind = x + h * d, x - h * d
        # The step that rounding left.
        step = inner(ahead - behind, d) / inner(d, d)
        return (call(ahead) - call(behind)) / step

    @property
    def h(self) -> float:
        """Step of differences, in units of |x_i|."""
        return float(self.eps ** (1 / 3))


def _size(difference: Any) -> float:
    return norm(difference) if is_array(difference) else abs(float(difference))


def as_point(x: Any) -> Array:
    """A copy of `x` as a floating array.

    Raises
    ------
    InputError
        If it is not numeric, a single number, complex or not finite.
    """
    x = as_data(x, "x", remedy="give a point with finite entries")
    if not x.ndim:
        raise InputError("x is a single number; expected an array of at least one axis")
    return copy(x)


def same(one: Any, other: Any) -> bool:
    """Whether two results are the same bits (NaN equals NaN)."""
    if is_sparse(one):
        return tuple(one.shape) == tuple(other.shape) and (one != other).nnz == 0
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if is_array(one):
        if tuple(one.shape) != tuple(other.shape) or one.dtype != other.dtype:
            return False
        xp = namespace(one)
        return bool(xp.all((one == other) | ((one != one) & (other != other))))
    return bool(one == other or (one != one and other != other))


def kept(result: Any) -> Any:
    """A copy of a result, to compare with later."""
    if isinstance(result, tuple | list):
        return [kept(one) for one in result]
    return copy(result) if is_array(result) else result.copy() if is_sparse(result) else result

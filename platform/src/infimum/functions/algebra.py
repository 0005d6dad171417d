"""The algebra of functions: sum, scaling and translation, and what the operators of a function make of them.

Each class finds its capabilities when it is made, from what its parts offer; `how` says by which exact rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from infimum.arrays import Array, as_data, inner, zeros_like
from infimum.errors import InputError
from infimum.functions.base import Function, Zero
from infimum.functions.derived import ADDITIVE, Composed, Derived
from infimum.functions.linear import Linear
from infimum.functions.maps import BlockMap, Map, Product, ScaledIdentity
from infimum.functions.penalties import SquaredL2

SQUARES = frozenset({"residual", "jacobian", "jvp", "vjp", "linear_system"})
"""Capabilities of `1/2 ||r(x)||^2` that a factor > 0 and a translation keep."""


class Sum(Derived):
    """`x -> sum_i f_i(x)`. Offers what every summand offers and what adds up (value, gradient, Hessian products).

    It has a prox where all summands but one are linear or multiples of `1/2 ||x - b||^2` and that one has a prox.
    """

    def __init__(self, functions: Sequence[Function]) -> None:
        flat: list[Function] = []
        for f in functions:
            flat.extend(f.functions if isinstance(f, Sum) else [f])
        if not flat:
            raise InputError("a sum needs at least one function")
        self.functions: tuple[Function, ...] = tuple(flat)
        self._offers = frozenset.intersection(*(f.capabilities for f in flat)) & ADDITIVE
        self._how = dict.fromkeys(self._offers, "sum")
        self._perturbed = _perturbation(self.functions)
        if self._perturbed is not None:
            self._offers |= {"prox"}
            self._how["prox"] = "quadratic perturbation"
        self.convex = True if all(f.convex for f in flat) else None
        self.strongly_convex = sum(f.strongly_convex for f in flat) if self.convex else 0.0
        self.extended = any(f.extended for f in flat)
        shaped = next((f for f in flat if f.shape is not None), None)
        if shaped is not None:
            self.shape, self.shape_source = shaped.shape, shaped.shape_source

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        total = 0.0
        for f in self.functions:
            constant = f.lipschitz
            if constant is None:
                return None
            total += constant
        return total

    def _total(self, name: str, *args: Any) -> Any:
        first, *rest = self.functions
        out = getattr(first, name)(*args)
        for f in rest:
            out = out + getattr(f, name)(*args)
        return out

    def value(self, x: Array) -> float:
        total: float = self._total("value", x)
        return total

    def values(self, X: Array) -> Array:
        return self._total("values", X)

    def gradient(self, x: Array) -> Array:
        return self._total("gradient", x)

    def subgradient(self, x: Array) -> Array:
        return self._total("subgradient", x)

    def hessian(self, x: Array) -> Array:
        return self._total("hessian", x)

    def hvp(self, x: Array, v: Array) -> Array:
        return self._total("hvp", x, v)

    def sample_gradient(self, x: Array, rng: Any) -> Array:
        return self._total("sample_gradient", x, rng)

    def coefficients(self, x: Array) -> tuple[Array, float]:
        pairs = [f.coefficients(x) for f in self.functions]
        return sum(c for c, _ in pairs), sum(r for _, r in pairs)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        first, *rest = self.functions
        value, gradient = first.value_and_gradient(x)
        for f in rest:
            more, slope = f.value_and_gradient(x)
            value, gradient = value + more, gradient + slope
        return value, gradient

    def prox(self, v: Array, t: float) -> Array:
        """`prox_f((v + t w) / (1 + t c), t / (1 + t c))` for `f(x) + c / 2 ||x||^2 - <w, x>`."""
        if self._perturbed is None:
            raise InputError(
                f"{self!r} has no closed-form prox: more than one summand is neither linear nor c ||x - b||^2"
            )
        f, c, w = self._perturbed
        return f.prox((v + t * w) / (1.0 + t * c), t / (1.0 + t * c))

    def check(self, x: Array) -> None:
        for f in self.functions:
            f.check(x)

    def to(self, x: Array) -> Function:
        return Sum([f.to(x) for f in self.functions])

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.functions))


class Scaled(Derived):
    """`x -> c f(x)`. For c > 0 the prox stays: prox of c f with step t is the prox of f with step c t.

    A function `1/2 ||r(x)||^2` stays one too, with residual `sqrt(c) r`.
    """

    def __init__(self, function: Function, scale: float) -> None:
        self.function, self.scale = function, scale
        self._root = math.sqrt(max(scale, 0.0))
        kept = ADDITIVE | SQUARES if scale > 0 else ADDITIVE - {"subgradient"}
        proximal = function.capabilities & {"prox", "prox_conjugate"} if scale > 0 else frozenset()
        self._keep(function, (function.capabilities & kept) | proximal, dict.fromkeys(proximal, "scaling"))
        self.convex = function.convex if scale > 0 else None
        self.strongly_convex = max(scale, 0.0) * function.strongly_convex

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        constant = self.function.lipschitz
        return None if constant is None else abs(self.scale) * constant

    def value(self, x: Array) -> float:
        return self.scale * self.function.value(x)

    def values(self, X: Array) -> Array:
        return self.scale * self.function.values(X)

    def gradient(self, x: Array) -> Array:
        return self.scale * self.function.gradient(x)

    def subgradient(self, x: Array) -> Array:
        return self.scale * self.function.subgradient(x)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        value, gradient = self.function.value_and_gradient(x)
        return self.scale * value, self.scale * gradient

    def hessian(self, x: Array) -> Array:
        return self.scale * self.function.hessian(x)

    def hvp(self, x: Array, v: Array) -> Array:
        return self.scale * self.function.hvp(x, v)

    def sample_gradient(self, x: Array, rng: Any) -> Array:
        return self.scale * self.function.sample_gradient(x, rng)

    def coefficients(self, x: Array) -> tuple[Array, float]:
        c, r = self.function.coefficients(x)
        return self.scale * c, self.scale * r

    def residual(self, x: Array) -> Array:
        return self._root * self.function.residual(x)

    def jacobian(self, x: Array) -> Any:
        return self._root * self.function.jacobian(x)

    def jvp(self, x: Array, v: Array) -> Array:
        return self._root * self.function.jvp(x, v)

    def vjp(self, x: Array, u: Array) -> Array:
        return self._root * self.function.vjp(x, u)

    def linear_system(self, x: Array) -> tuple[Any, Array]:
        A, b = self.function.linear_system(x)
        return self._root * A, self._root * b

    def prox(self, v: Array, t: float) -> Array:
        return self.function.prox(v, self.scale * t)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        """`c prox_{f*}(v / c, s / c)`, since `(c f)*(y) = c f*(y / c)`."""
        return self.scale * self.function.prox_conjugate(v / self.scale, s / self.scale)

    def check(self, x: Array) -> None:
        self.function.check(x)

    def to(self, x: Array) -> Function:
        return Scaled(self.function.to(x), self.scale)

    def __repr__(self) -> str:
        inside = f"({self.function!r})" if isinstance(self.function, Sum) else repr(self.function)
        return f"{self.scale:g} * {inside}"


class Translated(Derived):
    """`x -> f(x - b)`. The prox is `b + prox_f(v - b, t)`."""

    data = ("b",)

    def __init__(self, function: Function, b: Array | float) -> None:
        self.function, self.b = function, b
        proximal = function.capabilities & {"prox", "prox_conjugate"}
        offers = (function.capabilities & (ADDITIVE | SQUARES)) | proximal
        self._keep(function, offers, dict.fromkeys(proximal, "translation"))
        if self.shape is None and not isinstance(b, float):
            self.shape, self.shape_source = tuple(b.shape), f"the translation is {tuple(b.shape)}"

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        return self.function.lipschitz

    def value(self, x: Array) -> float:
        return self.function.value(x - self.b)

    def values(self, X: Array) -> Array:
        return self.function.values(X - self.b)

    def gradient(self, x: Array) -> Array:
        return self.function.gradient(x - self.b)

    def subgradient(self, x: Array) -> Array:
        return self.function.subgradient(x - self.b)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self.function.value_and_gradient(x - self.b)

    def hessian(self, x: Array) -> Array:
        return self.function.hessian(x - self.b)

    def hvp(self, x: Array, v: Array) -> Array:
        return self.function.hvp(x - self.b, v)

    def sample_gradient(self, x: Array, rng: Any) -> Array:
        return self.function.sample_gradient(x - self.b, rng)

    def coefficients(self, x: Array) -> tuple[Array, float]:
        c, r = self.function.coefficients(x)
        return c, r - inner(c, self._shift(x))

    def residual(self, x: Array) -> Array:
        return self.function.residual(x - self.b)

    def jacobian(self, x: Array) -> Any:
        return self.function.jacobian(x - self.b)

    def jvp(self, x: Array, v: Array) -> Array:
        return self.function.jvp(x - self.b, v)

    def vjp(self, x: Array, u: Array) -> Array:
        return self.function.vjp(x - self.b, u)

    def linear_system(self, x: Array) -> tuple[Any, Array]:
        """`A (x - b) - y` is `A x - (y + A b)`."""
        A, y = self.function.linear_system(x)
        return A, y + A @ self._shift(x).reshape(-1)

    def _shift(self, x: Array) -> Array:
        """The translation as an array like x."""
        return zeros_like(x) + self.b

    def prox(self, v: Array, t: float) -> Array:
        return self.b + self.function.prox(v - self.b, t)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        """`prox_{f*}(v - s b, s)`, since the conjugate is `f*(y) + <b, y>`."""
        return self.function.prox_conjugate(v - s * self.b, s)

    def check(self, x: Array) -> None:
        self.function.check(x)
        if not isinstance(self.b, float) and tuple(self.b.shape) != tuple(x.shape):
            raise InputError(f"the translation is {tuple(self.b.shape)}, x0 is {tuple(x.shape)}; shapes must agree")

    def to(self, x: Array) -> Function:
        moved = super().to(x)
        return Translated(self.function.to(x), moved.b)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{self.function!r} translated"


def _quadratic(function: Function) -> tuple[float, Array | float] | None:
    """`(c, w)` for a function `c / 2 ||x||^2 - <w, x>` up to a constant, else None."""
    if isinstance(function, SquaredL2):
        return 1.0, 0.0
    if isinstance(function, Linear):
        return 0.0, -function.c
    inner = _quadratic(function.function) if isinstance(function, Scaled | Translated | Composed) else None
    if inner is None:
        return None
    c, w = inner
    if isinstance(function, Scaled):
        return function.scale * c, function.scale * w
    if isinstance(function, Translated):
        return c, w + c * function.b
    if isinstance(function, Composed) and isinstance(function.map, ScaledIdentity):
        return c * function.map.scale**2, w * function.map.scale
    return None


def _perturbation(functions: Sequence[Function]) -> tuple[Function, float, Array | float] | None:
    """`(f, c, w)` for summands that make `f(x) + c / 2 ||x||^2 - <w, x>` up to a constant, f with a prox, c >= 0."""
    found = [_quadratic(f) for f in functions]
    known = [one for one in found if one is not None]
    others = [f for f, one in zip(functions, found, strict=True) if one is None]
    if len(others) > 1 or not known:
        return None
    f, c = others[0] if others else Zero(), sum(one[0] for one in known)
    return (f, c, sum(one[1] for one in known)) if "prox" in f.capabilities and c >= 0 else None


def scaled(function: Function, scale: float) -> Function:
    """`scale * function`, with the map kept outermost and scales merged; the zero function for scale 0."""
    if not math.isfinite(scale):
        raise InputError(f"a function is scaled by a finite number, got {scale}")
    if scale == 0:
        if function.extended:
            raise InputError(f"0 * {function!r}: the function may be inf, and 0 * inf is no number; leave the term out")
        return Zero(function)
    if isinstance(function, Composed):
        return Composed(scaled(function.function, scale), function.map)
    if isinstance(function, Scaled):
        return scaled(function.function, scale * function.scale)
    return function if scale == 1.0 else Scaled(function, scale)


def translated(function: Function, b: Any) -> Function:
    """`x -> function(x - b)`, with the map kept outermost; `b` is a number or an array like `x`."""
    b = float(b) if isinstance(b, Real) else as_data(b, "the translation", real=False)
    if isinstance(b, float) and not math.isfinite(b):
        raise InputError(f"a function is translated by finite numbers, got {b}")
    if isinstance(function, Composed):
        map_ = function.map
        if isinstance(b, float) and map_.shape is not None:
            b = np.full(map_.shape[1], b)
        if not isinstance(b, float):
            return Composed(translated(function.function, map_.to(b).forward(b)), map_)
    return Translated(function, b)


def composed(function: Function, map_: Map) -> Function:
    """`x -> function(map(x))`, with maps merged into one."""
    if isinstance(map_, ScaledIdentity) and map_.scale == 1.0:
        return function
    if isinstance(function, Composed):
        if isinstance(function.map, BlockMap):
            raise InputError(f"{function!r} takes named blocks already; apply the inner map block by block instead")
        return Composed(function.function, Product(function.map, map_))
    whole = Composed(function, map_)
    return Zero(whole) if isinstance(function, Zero) else whole

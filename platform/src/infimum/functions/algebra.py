"""The algebra of functions: sum, scaling, translation, composition with a linear map.

Each class finds its capabilities when it is made, from what its parts offer; `how` says by which exact rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from infimum.arrays import Array, as_data, namespace
from infimum.errors import InputError
from infimum.functions.base import Function, Zero
from infimum.functions.linear import Linear
from infimum.functions.maps import BlockMap, Map, Product, ScaledIdentity
from infimum.functions.penalties import SquaredL2

SMOOTH = frozenset({"value", "values", "gradient", "value_and_gradient", "hvp", "subgradient"})
"""Capabilities that add up, scale by any number > 0 and follow the chain rule."""


class Derived(Function):
    """Base of the algebra: a function made from others."""

    _offers: frozenset[str]
    _how: dict[str, str]

    @property
    def capabilities(self) -> frozenset[str]:
        return self._offers

    @property
    def how(self) -> dict[str, str]:
        return self._how

    def _keep(self, function: Function, offers: frozenset[str], how: dict[str, str]) -> None:
        """Set the facts that a change of the argument or a positive factor leaves as they are."""
        self._offers = offers
        self._how = {name: rule for name, rule in {**function.how, **how}.items() if name in offers}
        self.convex, self.strongly_convex = function.convex, function.strongly_convex
        self.extended, self.shape, self.shape_source = function.extended, function.shape, function.shape_source


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
        self._offers = frozenset.intersection(*(f.capabilities for f in flat)) & (SMOOTH | {"hessian"})
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
    """`x -> c f(x)`. For c > 0 the prox stays: prox of c f with step t is the prox of f with step c t."""

    def __init__(self, function: Function, scale: float) -> None:
        self.function, self.scale = function, scale
        kept = (SMOOTH if scale > 0 else SMOOTH - {"subgradient"}) | {"hessian"}
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
        offers = (function.capabilities & (SMOOTH | {"hessian"})) | proximal
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


class Composed(Derived):
    """`x -> f(A x)`. Smooth capabilities follow by the chain rule, prox only where `A A^T = c I`."""

    def __init__(self, function: Function, map_: Map) -> None:
        self.function, self.map = function, map_
        offers = function.capabilities & SMOOTH
        how = {name: "chain rule" for name in offers if "gradient" in name or name == "hvp"}
        self._tight = map_.tight if "prox" in function.capabilities else None
        if self._tight is not None:
            offers |= {"prox"}
            how["prox"] = "semi-orthogonal map"
        self._keep(function, offers, how)
        self.strongly_convex = 0.0
        self.shape, self.shape_source = None, ""
        if map_.shape is not None:
            self.shape, self.shape_source = (map_.shape[1],), f"the linear map is {map_.shape}"
            if function.shape is not None and function.shape[:1] != map_.shape[:1]:
                source = function.shape_source or f"{function!r} takes x of shape {function.shape}"
                raise InputError(f"the linear map is {map_.shape}, {source}; expected {function.shape[0]} rows")

    @property
    def lipschitz(self) -> float | None:  # type: ignore[override]
        constant = self.function.lipschitz
        return None if constant is None else constant * self.map.norm**2

    def value(self, x: Array) -> float:
        return self.function.value(self.map.forward(x))

    def values(self, X: Array) -> Array:
        return self.function.values(self.map.rows(X))

    def gradient(self, x: Array) -> Array:
        return self.map.adjoint(self.function.gradient(self.map.forward(x)))

    def subgradient(self, x: Array) -> Array:
        return self.map.adjoint(self.function.subgradient(self.map.forward(x)))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        value, gradient = self.function.value_and_gradient(self.map.forward(x))
        return value, self.map.adjoint(gradient)

    def hvp(self, x: Array, v: Array) -> Array:
        return self.map.adjoint(self.function.hvp(self.map.forward(x), self.map.forward(v)))

    def prox(self, v: Array, t: float) -> Array:
        """`v + A^T (prox_f(A v, c t) - A v) / c`, for `A A^T = c I`."""
        c = self._tight
        if c is None:
            raise InputError(f"{self!r} has no closed-form prox: A A^T is not known to be a multiple of the identity")
        image = self.map.forward(v)
        return v + self.map.adjoint(self.function.prox(image, c * t) - image) / c

    def check(self, x: Array) -> None:
        self.map.check(x)
        if self.map.shape is None:
            self.function.check(self.map.to(x).forward(x))
        else:
            image = (self.map.shape[0], *x.shape[1:])
            self.function.check(namespace(x).zeros(image, dtype=x.dtype))

    def to(self, x: Array) -> Function:
        return Composed(self.function.to(x), self.map.to(x))

    def __repr__(self) -> str:
        inside = repr(self.function)
        return f"({inside}) @ {self.map!r}" if " " in inside else f"{inside} @ {self.map!r}"


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

"""Functions made from others: what they share, and composition with a linear map."""

from __future__ import annotations

from typing import Any

from infimum.arrays import Array, namespace
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum.functions.maps import Map

SMOOTH = frozenset(
    {"value", "values", "gradient", "value_and_gradient", "hvp", "subgradient", "sample_gradient", "coefficients"}
)
"""Capabilities that add up, scale by any number > 0 and follow the chain rule."""
ADDITIVE = SMOOTH | {"hessian"}
"""Capabilities that a sum has where every summand has them."""


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


class Composed(Derived):
    """`x -> f(A x)`. Smooth capabilities follow by the chain rule, prox only where `A A^T = c I`."""

    def __init__(self, function: Function, map_: Map) -> None:
        self.function, self.map = function, map_
        offers = function.capabilities & SMOOTH
        how = dict.fromkeys(offers - {"value", "values"}, "chain rule")
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

    def sample_gradient(self, x: Array, rng: Any) -> Array:
        return self.map.adjoint(self.function.sample_gradient(self.map.forward(x), rng))

    def coefficients(self, x: Array) -> tuple[Array, float]:
        c, r = self.function.coefficients(self.map.forward(x))
        return self.map.adjoint(c), r

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

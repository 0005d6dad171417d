"""Functions that are sums over coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infimum.arrays import Array, namespace
from infimum.errors import InputError
from infimum.functions import Function


class Separable(Function):
    """`x -> weight * sum_i phi(x_i)`, with each coordinate's share as `separable_values` for `hjprox.prox`.

    Parameters
    ----------
    phi : callable
        Takes an array of any shape and returns phi of every entry, in the same shape.
    weight : float, default 1
        Above 0. Give it here: `0.1 * Separable(phi)` keeps values but not shares.
    convex : bool, optional
        Whether phi is convex; None means unknown.
    extended : bool, default False
        Whether phi may be +inf.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum_hjprox import Separable
    >>> f = Separable(np.abs, weight=0.5)
    >>> f.value(np.array([1.0, -3.0]))
    2.0
    """

    provides = ("value", "values", "separable_values")

    def __init__(
        self, phi: Callable[[Array], Any], weight: float = 1.0, convex: bool | None = None, extended: bool = False
    ) -> None:
        if not callable(phi):
            raise InputError(f"Separable: phi is a {type(phi).__name__}; expected a callable phi(array) -> array")
        if not 0 < weight < float("inf"):
            raise InputError(f"Separable: weight={weight!r}; expected a positive finite number")
        self.phi, self.weight, self.convex, self.extended = phi, float(weight), convex, extended

    def separable_values(self, X: Array) -> Array:
        """`weight * phi` of every entry."""
        return self.weight * self.phi(X)

    def value(self, x: Array) -> float:
        return float(namespace(x).sum(self.separable_values(x)))

    def values(self, X: Array) -> Array:
        xp = namespace(X)
        return xp.sum(xp.reshape(self.separable_values(X), (X.shape[0], -1)), axis=1)

    def __repr__(self) -> str:
        name = getattr(self.phi, "__name__", type(self.phi).__name__)
        return f"Separable({name}, weight={self.weight:g})"

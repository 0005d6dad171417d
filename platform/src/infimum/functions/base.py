"""Functions with capabilities, and the algebra that combines them.

A function's capabilities are known without calling it: `f.capabilities` is a set of names, and `getattr(f, name)` is
the callable. Closed forms declare them in the class (`provides`); a user's own function lists callables.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

from infimum.arrays import Array, describe, is_complex, zeros_like
from infimum.errors import InputError, did_you_mean
from infimum.functions.fit import fitted
from infimum.functions.maps import as_map
from infimum.vocabulary import CAPABILITIES

FACTS: dict[str, Any] = {
    "convex": None,
    "lipschitz": None,
    "strongly_convex": 0.0,
    "extended": False,
    "shape": None,
}
"""Facts that anything in a problem may declare, with what is known of it where it does not."""


class Function:
    """A real-valued function of an array, with capabilities and declared facts.

    Parameters
    ----------
    value : callable, optional
        `value(x) -> float`.
    gradient, prox, value_and_gradient, … : callable, optional
        Any capability of the host's vocabulary (`infimum.vocabulary.CAPABILITIES`), given by name.
    extra : mapping of str to callable, optional
        Capabilities outside the host's vocabulary, for plugins that know them.
    convex : bool, optional
        Whether the function is convex; None means unknown.
    lipschitz : float, optional
        A Lipschitz constant of the gradient; None means unknown.
    strongly_convex : float, default 0
        Modulus of strong convexity.
    extended : bool, default False
        Whether the value may be +inf (outside of a domain). Otherwise +inf is a non-finite value and ends a run.
    shape : tuple of int, optional
        Shape that `x` must have; None accepts any.

    Raises
    ------
    InputError
        For an unknown capability name, something that is not callable, or no capability at all.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum.functions import Function, L1
    >>> f = Function(value=lambda x: float(x @ x), gradient=lambda x: 2 * x, lipschitz=2.0, convex=True)
    >>> sorted((f + 0.1 * L1()).capabilities)
    ['value']
    """

    provides: ClassVar[tuple[str, ...]] = ()
    data: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that hold arrays or maps; `to` converts them."""
    real: ClassVar[bool] = False
    """True for functions that are defined for real points only."""
    __array_ufunc__ = None  # NumPy scalars and arrays leave `2.0 * f` and `f @ A` to this class.

    value: Callable[[Array], float]
    values: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    subgradient: Callable[[Array], Array]
    value_and_gradient: Callable[[Array], tuple[float, Array]]
    hessian: Callable[[Array], Array]
    hvp: Callable[[Array, Array], Array]
    prox: Callable[[Array, float], Array]
    prox_conjugate: Callable[[Array, float], Array]
    sample_gradient: Callable[[Array, Any], Array]
    coefficients: Callable[[Array], tuple[Array, float]]
    residual: Callable[[Array], Array]
    jacobian: Callable[[Array], Any]
    jvp: Callable[[Array, Array], Array]
    vjp: Callable[[Array, Array], Array]
    linear_system: Callable[[Array], tuple[Any, Array]]

    convex: bool | None = None
    lipschitz: float | None = None
    strongly_convex: float = 0.0
    extended: bool = False
    shape: tuple[int, ...] | None = None
    shape_source: str = ""
    """Where the required shape comes from, for messages: `A is (442, 10)`."""

    def __init__(
        self,
        value: Callable[[Array], float] | None = None,
        *,
        extra: dict[str, Callable[..., Any]] | None = None,
        convex: bool | None = None,
        lipschitz: float | None = None,
        strongly_convex: float = 0.0,
        extended: bool = False,
        shape: tuple[int, ...] | None = None,
        **capabilities: Callable[..., Any] | None,
    ) -> None:
        given = {"value": value, **capabilities}
        for name in given:
            if name not in CAPABILITIES:
                raise InputError(
                    f"Function has no argument '{name}'; {did_you_mean(name, [*CAPABILITIES, *FACTS])} "
                    "(a capability outside the host's vocabulary goes into extra={'name': callable})"
                )
        own = {name: f for name, f in (*given.items(), *(extra or {}).items()) if f is not None}
        for name, f in own.items():
            if not callable(f):
                raise InputError(f"Function(…, {name}={f!r}): a capability is a callable, got {type(f).__name__}")
        if not own:
            raise InputError("Function() offers nothing: give at least value=callable")
        numbers: dict[str, float | None] = {"lipschitz": lipschitz, "strongly_convex": strongly_convex}
        for name, number in numbers.items():
            if number is not None and (isinstance(number, str) or not 0 <= number < float("inf")):
                raise InputError(f"Function(…, {name}={number}): expected a finite number >= 0")
        self._own = own
        for name, f in own.items():
            setattr(self, name, f)
        self.convex, self.lipschitz, self.strongly_convex = convex, lipschitz, strongly_convex
        self.extended = extended
        self.shape = None if shape is None else tuple(map(int, shape))

    @property
    def capabilities(self) -> frozenset[str]:
        """Names of what this function can do, known without calling it."""
        own = self.__dict__.get("_own")
        return frozenset(own) if own is not None else frozenset(self.provides)

    @property
    def how(self) -> dict[str, str]:
        """For capabilities that follow from others: by which exact rule, for the plan to print."""
        return {}

    def check(self, x: Array) -> None:
        """Raise `InputError` if a point like `x` does not fit."""
        if self.shape is not None and tuple(x.shape) != self.shape:
            source = self.shape_source or f"{self!r} is declared for x of shape {self.shape}"
            raise InputError(f"{source}, x0 is {tuple(x.shape)}; expected x0 of shape {self.shape}")
        if self.real and is_complex(x):
            raise InputError(f"{self!r} is defined for real points, x0 is complex ({describe(x)})")

    def to(self, x: Array) -> Function:
        """This function with its data in the namespace, dtype and device of `x`; itself if nothing changes."""
        return fitted(self, self.data, x)

    def translate(self, b: Array) -> Function:
        """`x -> f(x - b)`."""
        from infimum.functions.algebra import translated

        return translated(self, b)

    def __add__(self, other: object) -> Function:
        if not isinstance(other, Function):
            return self if isinstance(other, int) and other == 0 else NotImplemented
        from infimum.functions.algebra import Sum

        return Sum([self, other])

    __radd__ = __add__  # The built-in sum() starts from 0.

    def __sub__(self, other: object) -> Function:
        return self + (-other) if isinstance(other, Function) else NotImplemented

    def __mul__(self, scale: object) -> Function:
        if not isinstance(scale, Real) or isinstance(scale, bool):
            return NotImplemented
        from infimum.functions.algebra import scaled

        return scaled(self, float(scale))

    __rmul__ = __mul__

    def __neg__(self) -> Function:
        return self * -1.0

    def __truediv__(self, scale: object) -> Function:
        if not isinstance(scale, Real) or isinstance(scale, bool):
            return NotImplemented
        if not scale:
            raise InputError(f"{self!r} / 0: a function is divided by a number other than zero")
        return self * (1.0 / float(scale))

    def __matmul__(self, operator: object) -> Function:
        from infimum.functions.algebra import composed

        return composed(self, as_map(operator))

    def __repr__(self) -> str:
        own = self.__dict__.get("_own")
        return type(self).__name__ if own is None else f"Function({', '.join(own)})"


class Zero(Function):
    """The zero function, and as a set the whole space: what stands in a slot that no term fills."""

    provides = (
        *("value", "values", "gradient", "subgradient", "value_and_gradient", "hvp", "prox", "prox_conjugate"),
        *("sample_gradient", "coefficients"),
        *("violation", "project", "tangent", "step"),
    )
    convex, lipschitz = True, 0.0

    def __init__(self, like: Function | None = None) -> None:
        self.like = like
        if like is not None:
            self.shape, self.shape_source = like.shape, like.shape_source

    def check(self, x: Array) -> None:
        """Points must fit the function of which this is zero times."""
        if self.like is not None:
            self.like.check(x)

    def value(self, x: Array) -> float:
        return 0.0

    violation = value

    def values(self, X: Array) -> Array:
        return zeros_like(X.reshape((X.shape[0], -1))[:, 0])

    def gradient(self, x: Array) -> Array:
        return zeros_like(x)

    subgradient = gradient

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return 0.0, zeros_like(x)

    def sample_gradient(self, x: Array, rng: Any) -> Array:
        return zeros_like(x)

    def coefficients(self, x: Array) -> tuple[Array, float]:
        return zeros_like(x), 0.0

    def hvp(self, x: Array, v: Array) -> Array:
        return zeros_like(v)

    def prox(self, v: Array, t: float) -> Array:
        return v

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return zeros_like(v)

    def project(self, x: Array) -> Array:
        return x

    def tangent(self, x: Array, g: Array) -> Array:
        return g

    def step(self, x: Array, d: Array) -> Array:
        return x + d

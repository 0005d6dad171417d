"""Linear functions, and least squares of a nonlinear residual."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from infimum.arrays import Array, as_data, describe, inner, is_array, namespace, zeros_like
from infimum.errors import InputError
from infimum.functions.base import Function


class Linear(Function):
    """`<c, x> + r`.

    Parameters
    ----------
    c : array, of the shape of x
        Not copied: leave it unchanged while the function is in use.
    r : float, default 0
        Constant.

    Raises
    ------
    InputError
        If the data is empty, complex or holds NaN or inf.

    Notes
    -----
    `coefficients(x)` gives `(c, r)`, for solvers of linear programs.
    """

    provides = (
        *("value", "values", "gradient", "value_and_gradient", "hvp", "prox", "prox_conjugate"),
        *("coefficients", "subgradient"),
    )
    data = ("c",)
    real = True
    convex, lipschitz = True, 0.0

    def __init__(self, c: Any, r: float = 0.0) -> None:
        if not math.isfinite(r):
            raise InputError(f"r is {r}; expected a finite number")
        self.c, self.r = as_data(c, "c"), float(r)
        self.shape, self.shape_source = tuple(self.c.shape), f"c is {tuple(self.c.shape)}"

    def __repr__(self) -> str:
        return f"Linear({self.shape_source})"

    def coefficients(self, x: Array) -> tuple[Array, float]:
        """`(c, r)`."""
        return self.c, self.r

    def value(self, x: Array) -> float:
        return inner(self.c, x) + self.r

    def values(self, X: Array) -> Array:
        flat = X.reshape((X.shape[0], -1))
        return flat @ self.c.reshape(-1) + self.r

    def gradient(self, x: Array) -> Array:
        """A new array each time."""
        return zeros_like(x) + self.c

    subgradient = gradient

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self.value(x), self.gradient(x)

    def hvp(self, x: Array, v: Array) -> Array:
        return zeros_like(v)

    def prox(self, v: Array, t: float) -> Array:
        """`v - t c`."""
        return v - t * self.c

    def prox_conjugate(self, v: Array, s: float) -> Array:
        """c, whatever v is: the conjugate is -r there and infinite elsewhere."""
        return zeros_like(v) + self.c


class Residuals(Function):
    """`1/2 ||r(x)||^2` of a residual r with its Jacobian: nonlinear least squares.

    Parameters
    ----------
    residual : callable
        `residual(x)` of shape (m,).
    jacobian : callable
        `jacobian(x)` of shape (m, n), for x of n entries; a SciPy sparse matrix will do.

    Raises
    ------
    InputError
        If one of them is not callable.

    Examples
    --------
    >>> import numpy as np
    >>> f = Residuals(lambda x: x**2 - 1.0, lambda x: np.diag(2 * x))
    >>> f.value(np.array([2.0, 1.0])), f.gradient(np.array([2.0, 1.0])).tolist()
    (4.5, [12.0, 0.0])
    """

    provides = ("value", "gradient", "value_and_gradient", "residual", "jacobian")
    real = True

    def __init__(self, residual: Callable[[Array], Array], jacobian: Callable[[Array], Any]) -> None:
        for name, given in (("residual", residual), ("jacobian", jacobian)):
            if not callable(given):
                raise InputError(f"Residuals: {name} is {type(given).__name__}; expected a callable")
        self._residual, self._jacobian = residual, jacobian

    def __repr__(self) -> str:
        return f"Residuals({getattr(self._residual, '__name__', 'residual')})"

    def residual(self, x: Array) -> Array:
        """r(x), shape (m,)."""
        r = self._residual(x)
        if not is_array(r):
            r = namespace(x).asarray(r, dtype=x.dtype)
        if len(r.shape) != 1:
            raise InputError(f"residual(x) is {describe(r)}; expected one axis, (m,)")
        return r

    def jacobian(self, x: Array) -> Any:
        """The derivative of r at x, shape (m, n)."""
        return self._jacobian(x)

    def value(self, x: Array) -> float:
        r = self.residual(x)
        return 0.5 * inner(r, r)

    def gradient(self, x: Array) -> Array:
        return (self.jacobian(x).T @ self.residual(x)).reshape(x.shape)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        r = self.residual(x)
        return 0.5 * inner(r, r), (self.jacobian(x).T @ r).reshape(x.shape)

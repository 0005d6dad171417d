"""Nonlinear constraints `lower <= c(x) <= upper`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from infimum.arrays import Array, clip, is_array, namespace, norm
from infimum.constraints.base import Constraint
from infimum.constraints.sets import bound, check_order
from infimum.errors import InputError


class NonlinearConstraint(Constraint):
    """`lower <= c(x) <= upper`, entry by entry, for solvers that take constraints as functions.

    It has no projection. It offers `violation`, the norm of what `c(x)` lies outside of its bounds; `residual`, the
    values `c(x)` as a vector; and `jacobian` where that is given. `lower` and `upper` are attributes.

    Parameters
    ----------
    c : callable
        `c(x)`, a number or an array of shape (m,).
    lower, upper : float, list or array of shape (m,), optional
        Bounds; None (and infinite entries) leave a side free. Equal bounds make an equation.
    jacobian : callable, optional
        `jacobian(x)` of shape (m, n), or (n,) where c gives a number.

    Raises
    ------
    InputError
        If both bounds are missing, a bound is NaN, shapes do not agree, or lower exceeds upper anywhere; at a call if
        `c(x)` or `jacobian(x)` does not have the shape that the bounds ask for.

    Examples
    --------
    >>> import numpy as np
    >>> disk = NonlinearConstraint(lambda x: float(x @ x), upper=1.0, jacobian=lambda x: 2 * x)
    >>> disk.violation(np.array([1.0, 1.0])), disk.jacobian(np.array([1.0, 1.0])).shape
    (1.0, (1, 2))
    """

    data = ("lower", "upper")

    def __init__(
        self,
        c: Callable[[Array], Any],
        lower: Any = None,
        upper: Any = None,
        jacobian: Callable[[Array], Any] | None = None,
    ) -> None:
        for name, given in (("c", c), ("jacobian", jacobian)):
            if given is not None and not callable(given):
                raise InputError(f"NonlinearConstraint: {name} is {given!r}; expected a callable")
        if c is None:
            raise InputError("NonlinearConstraint: c is None; expected a callable c(x)")
        if lower is None and upper is None:
            raise InputError("NonlinearConstraint bounds nothing: give lower, upper or both")
        self.c, self._jacobian = c, jacobian
        self.lower, self.upper = (bound(one, name, "c") for one, name in ((lower, "lower"), (upper, "upper")))
        check_order(self.lower, self.upper, "c")

    def __repr__(self) -> str:
        given = (("lower", self.lower), ("upper", self.upper))
        shown = [
            f"{name} is {tuple(one.shape)}" if is_array(one) else f"{name}={one:g}"
            for name, one in given
            if one is not None
        ]
        return f"NonlinearConstraint({', '.join(shown)})"

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset({"violation", "residual"} | ({"jacobian"} if self._jacobian is not None else set()))

    def residual(self, x: Array) -> Array:
        """`c(x)` as an array of shape (m,)."""
        values = _like_point(self.c(x), x)
        if values.ndim > 1:
            raise InputError(f"c(x) is {tuple(values.shape)}; expected a number or one axis, (m,)")
        values = values.reshape((-1,))
        for name, one in (("lower", self.lower), ("upper", self.upper)):
            if is_array(one) and one.shape != values.shape:
                raise InputError(f"{name} of c is {tuple(one.shape)}, c(x) is {tuple(values.shape)}; shapes must agree")
        return values

    def jacobian(self, x: Array) -> Array:
        """The derivative of c at x, shape (m, n)."""
        if self._jacobian is None:
            raise InputError(f"{self!r} was made without a jacobian")
        rows = self._jacobian(x)
        if not hasattr(rows, "shape"):
            rows = _like_point(rows, x)
        if len(rows.shape) == 1:
            rows = rows.reshape((1, -1))
        if len(rows.shape) != 2 or rows.shape[1] != int(np.prod(x.shape)):
            raise InputError(f"jacobian(x) is {tuple(rows.shape)}, x is {tuple(x.shape)}; expected (m, {x.shape[0]})")
        return rows

    def violation(self, x: Array) -> float:
        """Norm of what c(x) lies outside of its bounds: 0 on the set, but no distance in x."""
        values = self.residual(x)
        return norm(values - clip(values, self.lower, self.upper))


def _like_point(values: Any, x: Array) -> Array:
    """What c returned as an array of the kind of x."""
    return values if is_array(values) else namespace(x).asarray(values, dtype=x.dtype)

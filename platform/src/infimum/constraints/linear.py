"""Linear constraints `lower <= A x <= upper`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from infimum.arrays import Array, as_data, clip, describe, is_array, is_complex, norm
from infimum.constraints.base import Constraint
from infimum.constraints.sets import bound, check_order
from infimum.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class LinearConstraint(Constraint):
    """`lower <= A x <= upper`, entry by entry, for solvers that take linear constraints as such.

    It has no projection (`Affine`, for equations alone, has one). It offers `violation`, the norm of what `A x` lies
    outside of its bounds; `rows`, which is `(A, lower, upper)`; `residual`, which is `A x`; and `jacobian`, which is A.

    Parameters
    ----------
    A : array or SciPy sparse matrix, shape (m, n)
        Not copied: leave it unchanged while the set is in use.
    lower, upper : float, list or array of shape (m,), optional
        Bounds; None (and infinite entries) leave a side free. Equal bounds make an equation.

    Raises
    ------
    InputError
        If both bounds are missing, a bound is NaN, shapes do not agree, lower exceeds upper anywhere, or A is empty,
        complex or holds NaN or inf.

    Examples
    --------
    >>> import numpy as np
    >>> budget = LinearConstraint(np.ones((1, 3)), upper=1.0)
    >>> float(budget.violation(np.ones(3)))
    2.0
    """

    provides = ("violation", "rows", "residual", "jacobian")
    data = ("A", "lower", "upper")
    examples = ({"A": [[1.0, 1.0, 1.0], [0.0, 1.0, -1.0]], "lower": 0.0, "upper": [1.0, 0.0]},)
    convex = True

    A: Array
    lower: Array | float | None = None
    upper: Array | float | None = None

    def __post_init__(self) -> None:
        A = as_data(self.A, "A")
        if len(A.shape) != 2:
            raise InputError(f"A is {tuple(A.shape)}; expected a matrix of shape (rows, columns)")
        if self.lower is None and self.upper is None:
            raise InputError("LinearConstraint bounds nothing: give lower, upper or both")
        object.__setattr__(self, "A", A)
        for name in ("lower", "upper"):
            one = bound(getattr(self, name), name, "A x")
            if is_array(one) and tuple(one.shape) != (int(A.shape[0]),):
                raise InputError(
                    f"{name} of A x is {tuple(one.shape)}, A is {tuple(A.shape)}; expected ({A.shape[0]},), one entry "
                    "per row of A"
                )
            object.__setattr__(self, name, one)
        check_order(self.lower, self.upper, "A x")

    def __repr__(self) -> str:
        return f"LinearConstraint(A is {tuple(self.A.shape)})"

    def rows(self, x: Array) -> tuple[Any, Any, Any]:
        """`(A, lower, upper)`; a bound is an array, a number, or None where that side is free."""
        return self.A, self.lower, self.upper

    def residual(self, x: Array) -> Array:
        """`A x`, shape (m,)."""
        return self.A @ x

    def jacobian(self, x: Array) -> Any:
        """A itself; do not change it in place."""
        return self.A

    def violation(self, x: Array) -> float:
        """Norm of what A x lies outside of its bounds: 0 on the set, but no distance in x."""
        values = self.A @ x
        return norm(values - clip(values, self.lower, self.upper))

    def check(self, x: Array) -> None:
        if is_complex(x):
            raise InputError(f"{self!r} is a set of real points, x0 is complex ({describe(x)})")
        if tuple(x.shape) != (int(self.A.shape[1]),):
            raise InputError(
                f"A of the linear constraint is {tuple(self.A.shape)}, x0 is {tuple(x.shape)}; "
                f"expected x0 of shape ({self.A.shape[1]},)"
            )

"""Losses over the rows of a data matrix: least squares and logistic regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from infimum.arrays import Array, as_data, clip, inner, is_array, like, namespace, to_numpy
from infimum.errors import InputError, did_you_mean
from infimum.functions.base import Function
from infimum.functions.factor import shifted_solver
from infimum.functions.maps import LinearMap

Reduction = Literal["mean", "sum"]
KEPT_FACTORS = 4
"""How many factorizations a function keeps, one per step of its prox."""


class RowLoss(Function):
    """Base of losses `w * sum_i loss(a_i^T x, target_i)` over the rows of A; `w` is 1/rows or 1."""

    provides: ClassVar[tuple[str, ...]] = ("value", "values", "gradient", "value_and_gradient", "hvp")
    data = ("map", "target")
    real = True
    convex = True
    curvature = 1.0
    """Largest second derivative of the loss of one row."""

    def __init__(self, A: Any, target: Any, reduction: Reduction, target_name: str) -> None:
        if isinstance(A, LinearMap):
            A = A.operator
        if hasattr(A, "matvec"):
            raise InputError(
                f"A is a {type(A).__name__}; expected a dense array or a SciPy sparse matrix. With an operator, "
                "1/2 ||A x - b||^2 is SquaredL2().translate(b) @ A"
            )
        matrix = as_data(A, "A")
        if len(matrix.shape) != 2:
            raise InputError(f"A is {tuple(matrix.shape)}; expected a matrix of shape (rows, columns)")
        rows = int(matrix.shape[0])
        if tuple(target.shape) != (rows,):
            raise InputError(
                f"A is {tuple(matrix.shape)}, {target_name} is {tuple(target.shape)}; "
                f"expected {target_name} of shape ({rows},), one entry per row of A"
            )
        if reduction not in ("mean", "sum"):
            raise InputError(f"reduction is {reduction!r}; {did_you_mean(str(reduction), ['mean', 'sum'])}")
        self.map = LinearMap(matrix)
        self.target = like(target, matrix if is_array(matrix) else np.empty(0, matrix.dtype))
        self.reduction: Reduction = reduction
        self.weight = 1.0 / rows if reduction == "mean" else 1.0
        self.shape = (int(matrix.shape[1]),)
        self.shape_source = f"A is {tuple(matrix.shape)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape_source}, {self.reduction})"

    @property
    def A(self) -> Any:
        """The data matrix, (rows, columns)."""
        return self.map.operator

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """`curvature * w * ||A||^2`; the spectral norm is computed once, at first use."""
        return self.curvature * self.weight * self.map.norm**2


class LeastSquares(RowLoss):
    """`1/2 ||A x - b||^2`, divided by the number of rows unless `reduction="sum"`.

    Parameters
    ----------
    A : array or SciPy sparse matrix, shape (rows, columns)
        Data matrix. Not copied: leave it unchanged while the function is in use.
    b : array, shape (rows,)
        Right-hand side.
    reduction : {"mean", "sum"}, default "mean"
        Mean over the rows, or plain sum.

    Raises
    ------
    InputError
        If shapes do not agree, or the data is empty, complex or holds NaN or inf.

    Notes
    -----
    `residual` is scaled so that the value is half its squared norm. `prox` solves with a Cholesky factorization of
    the smaller of `I + t A^T A` and `I + t A A^T` (a sparse LU for sparse A), kept for the last few steps t.

    Examples
    --------
    >>> import numpy as np
    >>> f = LeastSquares(np.eye(2), np.array([1.0, 3.0]))
    >>> f.value(np.zeros(2)), f.lipschitz
    (2.5, 0.5)
    """

    provides = (*RowLoss.provides, "prox", "residual", "jacobian", "jvp", "vjp")

    def __init__(self, A: Any, b: Any, reduction: Reduction = "mean") -> None:
        super().__init__(A, as_data(b, "b"), reduction, "b")
        self._factors: dict[float, Callable[[Array], Array]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A twin in another dtype or process must not inherit factorizations of this matrix.
        return {**self.__dict__, "_factors": {}}

    @property
    def b(self) -> Array:
        """The right-hand side, (rows,)."""
        return self.target

    def value(self, x: Array) -> float:
        r = self.map.forward(x) - self.target
        return 0.5 * self.weight * inner(r, r)

    def values(self, X: Array) -> Array:
        R = self.map.forward(X.T) - self.target[:, None]
        return (0.5 * self.weight) * namespace(R).sum(R * R, axis=0)

    def gradient(self, x: Array) -> Array:
        return self.weight * self.map.adjoint(self.map.forward(x) - self.target)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        r = self.map.forward(x) - self.target
        return 0.5 * self.weight * inner(r, r), self.weight * self.map.adjoint(r)

    def hvp(self, x: Array, v: Array) -> Array:
        return self.weight * self.map.adjoint(self.map.forward(v))

    def prox(self, v: Array, t: float) -> Array:
        step = self.weight * float(t)
        solve = self._factors.get(step)
        if solve is None:
            solve = shifted_solver(self.map.operator, self.map.transposed, step)
            if len(self._factors) >= KEPT_FACTORS:
                self._factors.pop(next(iter(self._factors)))
            self._factors[step] = solve
        return solve(v + step * self.map.adjoint(self.target))

    def residual(self, x: Array) -> Array:
        """`sqrt(w) (A x - b)`, shape (rows,)."""
        return self.weight**0.5 * (self.map.forward(x) - self.target)

    def jacobian(self, x: Array) -> Array:
        """`sqrt(w) A`, shape (rows, columns); sparse where A is."""
        return self.weight**0.5 * self.map.operator

    def jvp(self, x: Array, v: Array) -> Array:
        return self.weight**0.5 * self.map.forward(v)

    def vjp(self, x: Array, u: Array) -> Array:
        return self.weight**0.5 * self.map.adjoint(u)


class Logistic(RowLoss):
    """Logistic loss `log(1 + exp(-y_i a_i^T x))`, mean over the rows unless `reduction="sum"`.

    Parameters
    ----------
    A : array or SciPy sparse matrix, shape (rows, columns)
        Data matrix. Not copied: leave it unchanged while the function is in use.
    y : array, shape (rows,)
        Labels, -1 and +1 or 0 and 1.
    reduction : {"mean", "sum"}, default "mean"
        Mean over the rows, or plain sum.

    Raises
    ------
    InputError
        If labels are others than these, shapes do not agree, or the data is empty, complex or holds NaN or inf.
    """

    curvature = 0.25

    def __init__(self, A: Any, y: Any, reduction: Reduction = "mean") -> None:
        super().__init__(A, _signs(y), reduction, "y")

    @property
    def y(self) -> Array:
        """The labels as -1 and +1, (rows,)."""
        return self.target

    def value(self, x: Array) -> float:
        return self.weight * float(_log1pexp(-self.target * self.map.forward(x)).sum())

    def values(self, X: Array) -> Array:
        Z = _log1pexp(-self.target[:, None] * self.map.forward(X.T))
        return self.weight * namespace(Z).sum(Z, axis=0)

    def gradient(self, x: Array) -> Array:
        margin = self.target * self.map.forward(x)
        slopes = self.target / (1.0 + _bounded_exp(margin))
        return -self.weight * self.map.adjoint(slopes)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        margin = self.target * self.map.forward(x)
        large = _bounded_exp(margin)
        xp = namespace(margin)
        losses = xp.log1p(xp.minimum(large, 1.0 / large)) + clip(-margin, 0.0, None)
        slopes = self.target / (1.0 + large)
        return self.weight * float(losses.sum()), -self.weight * self.map.adjoint(slopes)

    def hvp(self, x: Array, v: Array) -> Array:
        z = self.map.forward(x)
        xp = namespace(z)
        small = xp.exp(-xp.abs(z))
        return self.weight * self.map.adjoint(small / (1.0 + small) ** 2 * self.map.forward(v))


def _bounded_exp(z: Array) -> Array:
    """`exp(z)` for z within 80 of zero, beyond which it changes no loss; finite in float32 with its reciprocal."""
    return namespace(z).exp(clip(z, -80.0, 80.0))


def _log1pexp(z: Array) -> Array:
    """`log(1 + exp(z))` without overflow and with full precision at both ends."""
    xp = namespace(z)
    return xp.log1p(xp.exp(-xp.abs(z))) + clip(z, 0.0, None)


def _signs(y: Any) -> Array:
    """Labels as -1.0 and +1.0, in the namespace they came in."""
    seen = np.unique(to_numpy(y)) if is_array(y) else np.unique(np.asarray(y))
    if not seen.size:
        raise InputError("y is empty; expected one label per row of A")
    if not (set(seen.tolist()) <= {-1, 1} or set(seen.tolist()) <= {0, 1}):
        shown = ", ".join(str(value) for value in seen[:6].tolist()) + (", …" if seen.size > 6 else "")
        raise InputError(f"y holds the labels {shown}; expected -1 and +1, or 0 and 1")
    labels = as_data(y, "y")
    return 2.0 * namespace(labels).astype(labels > 0, labels.dtype) - 1.0

"""Losses over the rows of a data matrix: least squares and logistic regression; the hinge loss of scores."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from infimum.arrays import Array, as_data, clip, inner, is_array, like, namespace, to_numpy
from infimum.errors import InputError, did_you_mean
from infimum.functions.base import Function
from infimum.functions.factor import Solve, kept, least_squares_prox
from infimum.functions.maps import LinearMap

Reduction = Literal["mean", "sum"]


class RowLoss(Function):
    """Base of losses `w * sum_i loss(a_i^T x, target_i)` over the rows of A; `w` is 1/rows or 1."""

    provides: ClassVar[tuple[str, ...]] = ("value", "values", "gradient", "value_and_gradient", "hvp")
    data = ("matrix", "target")
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
        self.matrix = LinearMap(matrix)
        self.target = like(target, matrix if is_array(matrix) else np.empty(0, matrix.dtype))
        self.reduction = _checked(reduction)
        self.weight = 1.0 / rows if reduction == "mean" else 1.0
        self.shape = (int(matrix.shape[1]),)
        self.shape_source = f"A is {tuple(matrix.shape)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape_source}, {self.reduction})"

    @property
    def A(self) -> Any:
        """The data matrix, (rows, columns)."""
        return self.matrix.operator

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        """`curvature * w * ||A||^2`; the spectral norm is computed once, at first use."""
        return self.curvature * self.weight * self.matrix.norm**2


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

    provides = (*RowLoss.provides, "prox", "residual", "jacobian", "jvp", "vjp", "linear_system")

    def __init__(self, A: Any, b: Any, reduction: Reduction = "mean") -> None:
        super().__init__(A, as_data(b, "b"), reduction, "b")
        self._factors: dict[float, Solve] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A twin in another dtype or process must not inherit factorizations of this matrix.
        return {**self.__dict__, "_factors": {}}

    @property
    def b(self) -> Array:
        """The right-hand side, (rows,)."""
        return self.target

    def value(self, x: Array) -> float:
        r = self.matrix.forward(x) - self.target
        return 0.5 * self.weight * inner(r, r)

    def values(self, X: Array) -> Array:
        R = self.matrix.forward(X.T) - self.target[:, None]
        return (0.5 * self.weight) * namespace(R).sum(R * R, axis=0)

    def _weighed(self, slope: Array) -> Array:
        return slope if self.weight == 1.0 else self.weight * slope

    def gradient(self, x: Array) -> Array:
        return self._weighed(self.matrix.adjoint(self.matrix.forward(x) - self.target))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        r = self.matrix.forward(x) - self.target
        return 0.5 * self.weight * inner(r, r), self._weighed(self.matrix.adjoint(r))

    def hvp(self, x: Array, v: Array) -> Array:
        return self.weight * self.matrix.adjoint(self.matrix.forward(v))

    def prox(self, v: Array, t: float) -> Array:
        step = self.weight * float(t)
        A, At = self.matrix.operator, self.matrix.transposed
        return kept(self._factors, step, lambda: least_squares_prox(A, At, self.target, step))(v)

    def residual(self, x: Array) -> Array:
        """`sqrt(w) (A x - b)`, shape (rows,)."""
        return self.weight**0.5 * (self.matrix.forward(x) - self.target)

    def jacobian(self, x: Array) -> Array:
        """`sqrt(w) A`, shape (rows, columns); sparse where A is."""
        return self.weight**0.5 * self.matrix.operator

    def linear_system(self, x: Array) -> tuple[Any, Array]:
        """`(sqrt(w) A, sqrt(w) b)`: the residual is the first times x minus the second."""
        return self.weight**0.5 * self.matrix.operator, self.weight**0.5 * self.target

    def jvp(self, x: Array, v: Array) -> Array:
        return self.weight**0.5 * self.matrix.forward(v)

    def vjp(self, x: Array, u: Array) -> Array:
        return self.weight**0.5 * self.matrix.adjoint(u)


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
        return self.weight * float(_log1pexp(-self.target * self.matrix.forward(x)).sum())

    def values(self, X: Array) -> Array:
        Z = _log1pexp(-self.target[:, None] * self.matrix.forward(X.T))
        return self.weight * namespace(Z).sum(Z, axis=0)

    def gradient(self, x: Array) -> Array:
        margin = self.target * self.matrix.forward(x)
        slopes = self.target / (1.0 + _bounded_exp(margin))
        return -self.weight * self.matrix.adjoint(slopes)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        margin = self.target * self.matrix.forward(x)
        large = _bounded_exp(margin)
        xp = namespace(margin)
        losses = xp.log1p(xp.minimum(large, 1.0 / large)) + clip(-margin, 0.0, None)
        slopes = self.target / (1.0 + large)
        return self.weight * float(losses.sum()), -self.weight * self.matrix.adjoint(slopes)

    def hvp(self, x: Array, v: Array) -> Array:
        z = self.matrix.forward(x)
        xp = namespace(z)
        small = xp.exp(-xp.abs(z))
        return self.weight * self.matrix.adjoint(small / (1.0 + small) ** 2 * self.matrix.forward(v))


class Hinge(Function):
    """Hinge loss of scores z, `max(0, 1 - y_i z_i)`, mean over the entries unless `reduction="sum"`.

    `Hinge(y) @ A` is the loss of a linear classifier with the rows of A as data.

    Parameters
    ----------
    y : array, shape (rows,)
        Labels, -1 and +1 or 0 and 1.
    reduction : {"mean", "sum"}, default "mean"
        Mean over the entries, or plain sum.

    Raises
    ------
    InputError
        If labels are others than these or there are none.
    """

    provides = ("value", "values", "prox", "prox_conjugate")
    data = ("y",)
    real = True
    convex = True

    def __init__(self, y: Any, reduction: Reduction = "mean") -> None:
        self.y = _signs(y)
        self.reduction = _checked(reduction)
        self.weight = 1.0 / self.y.shape[0] if reduction == "mean" else 1.0
        self.shape = tuple(self.y.shape)
        self.shape_source = f"y is {self.shape}"

    def __repr__(self) -> str:
        return f"Hinge({self.shape_source}, {self.reduction})"

    def value(self, x: Array) -> float:
        return self.weight * float(clip(1.0 - self.y * x, 0.0, None).sum())

    def values(self, X: Array) -> Array:
        return self.weight * namespace(X).sum(clip(1.0 - self.y * X, 0.0, None), axis=1)

    def prox(self, v: Array, t: float) -> Array:
        """Margins below 1 grow by `t w`, at most up to 1."""
        return v + self.y * clip(1.0 - self.y * v, 0.0, t * self.weight)

    def prox_conjugate(self, v: Array, s: float) -> Array:
        return -self.y * clip(s - self.y * v, 0.0, self.weight)


def _checked(reduction: Any) -> Reduction:
    if reduction not in ("mean", "sum"):
        raise InputError(f"reduction is {reduction!r}; {did_you_mean(str(reduction), ['mean', 'sum'])}")
    return reduction  # type: ignore[no-any-return]


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
    if labels.ndim != 1:
        raise InputError(f"y is {tuple(labels.shape)}; expected a vector, one label per row of A")
    return 2.0 * namespace(labels).astype(labels > 0, labels.dtype) - 1.0

"""Textbook problems that are not convex: Rosenbrock's valley, and problem 71 of Hock and Schittkowski."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from annotated_types import Ge

from infimum.arrays import Array, inner, namespace
from infimum.constraints import Box, NonlinearConstraint
from infimum.errors import InputError
from infimum.functions import Function
from infimum.problem import Composite

HS071_OPTIMUM = 17.014017289156302


class Rosenbrock(Function):
    """`sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2` of n >= 2 real variables; 0 at x = (1, …, 1).

    Offers derivatives up to the second, and its residual: half its squared norm is the value.
    """

    provides = (
        *("value", "gradient", "value_and_gradient", "hessian", "hvp"),
        *("residual", "jacobian"),
    )
    real = True

    def __init__(self, n: int) -> None:
        if n < 2:
            raise InputError(f"Rosenbrock({n}): expected at least 2 variables")
        self.shape, self.shape_source = (n,), f"Rosenbrock's function has {n} variables"

    def __repr__(self) -> str:
        return f"Rosenbrock({self.shape[0] if self.shape else ''})"

    def value(self, x: Array) -> float:
        r = self.residual(x)
        return 0.5 * inner(r, r)

    def gradient(self, x: Array) -> Array:
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        head, bend = x[:-1], x[1:] - x[:-1] ** 2
        zero = 0.0 * x[:1]
        left = -400.0 * head * bend - 2.0 * (1.0 - head)
        value = 100.0 * inner(bend, bend) + inner(1.0 - head, 1.0 - head)
        xp = namespace(x)
        return value, xp.concat([left, zero]) + xp.concat([zero, 200.0 * bend])

    def _bands(self, x: Array) -> tuple[Array, Array]:
        """Diagonal and first off-diagonal of the Hessian."""
        xp, head, zero = namespace(x), x[:-1], 0.0 * x[:1]
        curve = 1200.0 * head**2 - 400.0 * x[1:] + 2.0
        return xp.concat([curve, zero]) + xp.concat([zero, 200.0 + 0.0 * head]), -400.0 * head

    def hessian(self, x: Array) -> Array:
        diagonal, beside = self._bands(x)
        H = diagonal[:, None] * namespace(x).eye(x.shape[0], dtype=x.dtype)
        k = np.arange(x.shape[0] - 1)
        H[k, k + 1] = beside
        H[k + 1, k] = beside
        return H

    def hvp(self, x: Array, v: Array) -> Array:
        diagonal, beside = self._bands(x)
        xp, zero = namespace(x), 0.0 * x[:1]
        return diagonal * v + xp.concat([beside * v[1:], zero]) + xp.concat([zero, beside * v[:-1]])

    def residual(self, x: Array) -> Array:
        """`sqrt(2) (10 (x_{i+1} - x_i^2), 1 - x_i)`, shape (2 n - 2,)."""
        head = x[:-1]
        return 2**0.5 * namespace(x).concat([10.0 * (x[1:] - head**2), 1.0 - head])

    def jacobian(self, x: Array) -> Array:
        n = x.shape[0]
        J = namespace(x).zeros((2 * n - 2, n), dtype=x.dtype)
        k = np.arange(n - 1)
        J[k, k] = -(2**0.5) * 20.0 * x[:-1]
        J[k, k + 1] = 2**0.5 * 10.0
        J[n - 1 + k, k] = -(2**0.5)
        return J


def rosenbrock(n: Annotated[int, Ge(2)] = 2) -> Composite:
    """Rosenbrock's banana-shaped valley: minimize `sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2`.

    A textbook function (Rosenbrock, 1960) without data; the start is his, (-1.2, 1), repeated. The optimum is 0 at
    (1, …, 1). From four variables on there is a second, local minimum near (-1, 1, …, 1), where the value is about 4.

    Parameters
    ----------
    n : int, default 2
        Number of variables.

    Returns
    -------
    Composite
        Term `objective` (gradient, Hessian, residual with Jacobian); x has shape (n,).

    Raises
    ------
    InputError
        For fewer than two variables.
    """
    start = np.where(np.arange(n) % 2 == 0, -1.2, 1.0)
    return Composite({"objective": Rosenbrock(n)}, start=start, reference=0.0, name="Rosenbrock")


def hs071() -> Composite:
    """Problem 71 of Hock and Schittkowski: minimize `x1 x4 (x1 + x2 + x3) + x3` under one equation and one inequality.

    `x1 x2 x3 x4 >= 25`, `x1^2 + x2^2 + x3^2 + x4^2 = 40` and `1 <= x <= 5`. A textbook problem ("Test examples for
    nonlinear programming codes", 1981) without data; the start is theirs, (1, 5, 5, 1). Newton's method on the
    optimality conditions gives the optimum 17.0140172892 at (1, 4.7429996, 3.8211500, 1.3794083).

    Returns
    -------
    Composite
        Term `objective` (gradient, Hessian), constraints `product` and `sphere` (residual with Jacobian) and `box`;
        x has shape (4,).
    """
    objective = Function(_hs071_value, gradient=_hs071_gradient, hessian=_hs071_hessian, shape=(4,))
    return Composite(
        {"objective": objective},
        constraints={
            "product": NonlinearConstraint(_product, lower=25.0, jacobian=_product_gradient),
            "sphere": NonlinearConstraint(_square, lower=40.0, upper=40.0, jacobian=_square_gradient),
            "box": Box(lower=1.0, upper=5.0),
        },
        start=np.array([1.0, 5.0, 5.0, 1.0]),
        reference=HS071_OPTIMUM,
        name="HS071",
    )


def _hs071_value(x: Array) -> float:
    return float(x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2])


def _hs071_gradient(x: Array) -> Array:
    a, b, c, d = (x[i] for i in range(4))
    return namespace(x).stack([d * (2 * a + b + c), a * d, a * d + 1.0, a * (a + b + c)])


def _hs071_hessian(x: Array) -> Array:
    a, b, c, d = (x[i] for i in range(4))
    xp, corner, zero = namespace(x), 2 * a + b + c, 0.0 * a
    rows = ([2 * d, d, d, corner], [d, zero, zero, a], [d, zero, zero, a], [corner, a, a, zero])
    return xp.stack([xp.stack(row) for row in rows])


def _product(x: Array) -> float:
    return float(x[0] * x[1] * x[2] * x[3])


def _product_gradient(x: Array) -> Array:
    a, b, c, d = (x[i] for i in range(4))
    return namespace(x).stack([b * c * d, a * c * d, a * b * d, a * b * c])


def _square(x: Array) -> float:
    return inner(x, x)


def _square_gradient(x: Array) -> Array:
    return 2.0 * x

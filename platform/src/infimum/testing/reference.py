"""Small problems that between them fit most solvers: seeded, few variables, far below a millisecond an evaluation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from infimum.constraints import Box, LinearConstraint, Simplex
from infimum.functions import L1, LeastSquares, Linear, Quadratic, SquaredL2, finite_difference
from infimum.problem import Composite
from infimum.testing.watching import WatchedFunction

_RNG = np.random.default_rng(20)
A = _RNG.standard_normal((12, 5))
B = A @ np.array([1.0, -0.5, 0.0, 0.0, 2.0]) + 0.1 * _RNG.standard_normal(12)
START = np.array([0.3, -0.2, 0.1, 0.4, -0.3])


def _loss() -> LeastSquares:
    return LeastSquares(A, B)


def least_squares() -> Composite:
    """One smooth, strongly convex term with everything that a smooth term can offer."""
    return Composite({"loss": _loss()}, start=START, name="least squares")


def lasso() -> Composite:
    """Smooth plus a prox."""
    return Composite({"loss": _loss(), "penalty": L1(0.1)}, start=START, name="lasso")


def boxed() -> Composite:
    """Smooth under bounds."""
    box = Box(np.full(5, -0.5), np.full(5, 0.5))
    return Composite({"loss": _loss()}, constraints={"box": box}, start=START, name="bounded least squares")


def three() -> Composite:
    """Smooth, a prox and a set."""
    terms = {"loss": _loss(), "penalty": L1(0.1)}
    return Composite(terms, constraints={"box": Box(-0.5, 0.5)}, start=START, name="lasso in a box")


def fused() -> Composite:
    """A prox behind a linear map that has no closed-form prox with it."""
    terms = {"loss": _loss(), "jumps": L1(0.2) @ finite_difference(5)}
    return Composite(terms, start=START, name="fused lasso")


def quadratic() -> Composite:
    """A quadratic with Hessian and prox."""
    P = A.T @ A / 6.0 + np.diag([2.0, 1.0, 0.5, 0.5, 1.0])
    return Composite({"quadratic": Quadratic(P, np.linspace(-1.0, 1.0, 5))}, start=START, name="quadratic")


def value_only() -> Composite:
    """A smooth term of which only values are known."""
    loss = WatchedFunction(_loss(), only=("value", "values"))
    return Composite({"loss": loss}, start=START, name="least squares by values")


def penalty_by_value() -> Composite:
    """A penalty without a prox."""
    penalty = WatchedFunction(L1(0.1), only=("value", "values"))
    return Composite({"loss": _loss(), "penalty": penalty}, start=START, name="lasso without a prox")


def blocks() -> Composite:
    """Two blocks whose images add up to the data."""
    fit = SquaredL2().translate(B) @ {"coefficients": A, "outliers": 1.0}
    return Composite(
        {"fit": fit, "sparse": L1(0.1), "rare": L1(0.3)},
        blocks={"coefficients": (5,), "outliers": (12,)},
        on={"sparse": "coefficients", "rare": "outliers"},
        start={"coefficients": START, "outliers": np.zeros(12)},
        name="robust regression",
    )


def simplex() -> Composite:
    """Smooth on a set that has no bounds to offer."""
    start = np.full(5, 0.2)
    return Composite({"loss": _loss()}, constraints={"simplex": Simplex()}, start=start, name="mixture")


def linear_program() -> Composite:
    """A linear cost under bounds and inequalities."""
    rows = LinearConstraint(np.ones((1, 5)), 1.0, 2.0)
    cost = Linear(np.linspace(-1.0, 1.0, 5))
    box = Box(np.zeros(5), np.ones(5))
    return Composite(
        {"cost": cost}, constraints={"box": box, "rows": rows}, start=np.full(5, 0.3), name="linear program"
    )


REFERENCES: dict[str, Callable[[], Composite]] = {
    one.__name__: one
    for one in (
        least_squares,
        lasso,
        boxed,
        three,
        fused,
        quadratic,
        simplex,
        blocks,
        value_only,
        penalty_by_value,
        linear_program,
    )
}
"""By name, in the order in which they are tried."""

"""The family's problem in the host's own terms: a smooth function of two blocks, and two orthants."""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum_enmf.matrix import Array


class SquaredError:
    """Half the squared error, of the packed vector (U, V)."""

    capabilities = frozenset({"value", "gradient", "value_and_gradient"})
    convex = False

    def __init__(self, data: Any, rank: int) -> None:
        self.data, self.rank = data, rank
        self.shape = (sum(data.shape) * rank,)

    def _factors(self, x: Array) -> tuple[Array, Array]:
        m, n = self.data.shape
        return x[: m * self.rank].reshape(m, self.rank), x[m * self.rank :].reshape(n, self.rank)

    def value(self, x: Array) -> float:
        return float(0.5 * self.data.error(*self._factors(x)) ** 2)

    def gradient(self, x: Array) -> Array:
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        U, V = self._factors(x)
        XV = self.data.times(V)
        error = self.data.error(U, V, XV=XV)
        left, right = U @ (V.T @ V) - XV, V @ (U.T @ U) - self.data.adjoint(U)
        return float(0.5 * error**2), np.concatenate([left.ravel(), right.ravel()])


def as_composite(problem: Any) -> Any:
    """An `infimum.Composite` of the blocks U and V."""
    from infimum import Composite
    from infimum.constraints import Nonnegative
    from infimum.functions import Function

    m, n = problem.fit.shape
    body = SquaredError(problem.fit, problem.rank)
    fit = Function(body.value, gradient=body.gradient, value_and_gradient=body.value_and_gradient, convex=False)
    return Composite(
        {"fit": fit},
        constraints={"U >= 0": Nonnegative(), "V >= 0": Nonnegative()},
        on={"U >= 0": "U", "V >= 0": "V"},
        blocks={"U": (m, problem.rank), "V": (n, problem.rank)},
        start=problem.start(np.random.default_rng(0)),
        name=problem.describe(),
    )

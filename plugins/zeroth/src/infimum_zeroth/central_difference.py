"""The gradient by central differences along the coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from infimum.oracle import Oracle
from infimum_zeroth.coordinates import CoordinatePart
from infimum_zeroth.queries import declare_stochastic, refuse_bad_eps

NAME = "zeroth.central_difference"


@dataclass(frozen=True)
class CentralDifference(Oracle):
    """Gradient from 2 n values: `g_i = (f(x + h_i e_i) - f(x - h_i e_i)) / (2 h_i)`.

    For f whose Hessian is M-Lipschitz and whose values are correct to relative precision u, each entry is wrong by at
    most `M h_i^2 / 6 + u |f(x)| / h_i`; for quadratics by rounding alone, at any step. `value_and_gradient` costs
    2 n + 1 values, and so does `gradient` with the default step, which reads |f(x)|. Batches and the warning are
    those of `zeroth.forward_difference`, with the third root of u in place of the square root.

    Parameters
    ----------
    eps : float, optional
        Step, above 0. None means the third root of u max(1, |f(x)|): 6.1e-6 in float64 and 4.9e-3 in float32 for
        values up to one, and never more than the sixth root of u (2.5e-3 and 7.0e-2).
    relative : bool, default True
        Multiply `eps` by `max(1, |x_i|)` in coordinate i.
    common : bool, optional
        For a stochastic function, which offers `sample_value(x, rng)` (a float with expectation f(x) that draws from
        rng alone): True hands generators of one seed to all evaluations of a gradient, False gives each its own.
        None evaluates `value`.

    Raises
    ------
    InputError
        For an `eps` that is not positive and finite, or one that vanishes beside an entry of x.
    """

    eps: Annotated[float, Gt(0)] | None = None
    relative: bool = True
    common: bool | None = None

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient", "value_and_gradient")

    def __post_init__(self) -> None:
        refuse_bad_eps(NAME, "eps", self.eps)
        if self.common is not None:
            declare_stochastic(self)

    def bind(self, function: Any, rng: np.random.Generator) -> CoordinatePart:
        return CoordinatePart(
            NAME, function, rng, eps=self.eps, relative=self.relative, central=True, common=self.common
        )

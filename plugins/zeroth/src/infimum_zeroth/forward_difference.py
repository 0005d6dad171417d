"""The gradient by forward differences along the coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from infimum.oracle import Oracle
from infimum_zeroth.coordinates import CoordinatePart
from infimum_zeroth.queries import declare_stochastic, refuse_bad_eps

NAME = "zeroth.forward_difference"


@dataclass(frozen=True)
class ForwardDifference(Oracle):
    """Gradient from n + 1 values: `g_i = (f(x + h_i e_i) - f(x)) / h_i`.

    For f with an M-Lipschitz gradient whose values are correct to relative precision u (that of the dtype of x), each
    entry is wrong by at most `M h_i / 2 + 2 u |f(x)| / h_i`; the default step balances the two for M and x of order
    one. Where the function offers `values`, the points go to it in batches of at most 32 MiB; otherwise one by one.
    `value_and_gradient` shares the value at x, so it costs n + 1 values too.

    Warns once a run when rounding drowns the gradient: when the noise `2 u |f(x)| / h` exceeds half of the estimate,
    both in 2-norm. Looked for at the first gradient, and at every one if `eps` is below the square root of u: with a
    larger `eps` a gradient that sinks into the noise later is simply one that has become small.

    Parameters
    ----------
    eps : float, optional
        Step, above 0. None means the square root of u max(1, |f(x)|): 1.5e-8 in float64 and 3.5e-4 in float32 for
        values up to one, and never more than the fourth root of u (1.2e-4 and 1.9e-2).
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
    preference: ClassVar[int] = 1

    def __post_init__(self) -> None:
        refuse_bad_eps(NAME, "eps", self.eps)
        if self.common is not None:
            declare_stochastic(self)

    def bind(self, function: Any, rng: np.random.Generator) -> CoordinatePart:
        return CoordinatePart(
            NAME, function, rng, eps=self.eps, relative=self.relative, central=False, common=self.common
        )

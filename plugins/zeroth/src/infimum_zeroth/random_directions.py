"""The gradient from differences along random directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum_zeroth.directions import DirectionsPart, gaussian, sphere
from infimum_zeroth.queries import declare_stochastic, refuse_bad_eps, refuse_below_one

NAME = "zeroth.random_directions"
DRAWS = {"gaussian": gaussian, "sphere": sphere}


@dataclass(frozen=True)
class RandomDirections(Oracle):
    """Mean over m random directions u of a directional difference times u, whatever the number of variables.

    Two-sided, `(f(x + h u) - f(x - h u)) / (2 h)`, from 2 m values; one-sided, `(f(x + h u) - f(x)) / h`, from m + 1,
    with the value at x for `value_and_gradient`. Since `E u u^T = I`, the estimate is unbiased for linear f, and
    two-sided for quadratic f; otherwise its bias is O(h^2) two-sided and O(h) one-sided. The variance is about
    `n ||grad f||^2 / m` in all: gradients for solvers that take small steps.

    A stochastic function, or the two-sided form, supplies `gradient` alone. The two-sided form with the default step
    evaluates f(x) once a run. Batches and the warning are those of `zeroth.forward_difference`.

    Parameters
    ----------
    directions : int, default 8
        Number m of directions.
    distribution : {"gaussian", "sphere"}, default "gaussian"
        Standard normal, or uniform on the sphere of radius sqrt(n), which has no long steps.
    two_sided : bool, default True
        Evaluate on both sides of x.
    eps : float, optional
        Step h, above 0: about how far each entry moves. None means the third root (one-sided: the square root) of
        u max(1, |f|), with the precision u of the dtype and the last known |f|, times max(1, rms of x); never more
        than the sixth (fourth) root of u, before that factor.
    common : bool, optional
        For a stochastic function, which offers `sample_value(x, rng)` (a float with expectation f(x) that draws from
        rng alone): True hands generators of one seed to all evaluations of a gradient, False gives each its own.
        None evaluates `value`.

    Raises
    ------
    InputError
        For `directions` below 1, or an `eps` that is not positive and finite or vanishes beside x.
    """

    directions: Annotated[int, Ge(1)] = 8
    distribution: Literal["gaussian", "sphere"] = "gaussian"
    two_sided: bool = True
    eps: Annotated[float, Gt(0)] | None = None
    common: bool | None = None

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)
    exactness = Exactness.stochastic
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"distribution": "sphere", "two_sided": False})

    def __post_init__(self) -> None:
        refuse_below_one(NAME, "directions", self.directions)
        refuse_bad_eps(NAME, "eps", self.eps)
        if self.distribution not in DRAWS:
            raise InputError(f"{NAME}: distribution={self.distribution!r}; expected 'gaussian' or 'sphere'")
        if self.common is not None:
            declare_stochastic(self)
        elif not self.two_sided:
            object.__setattr__(self, "supplies", ("gradient", "value_and_gradient"))

    def bind(self, function: Any, rng: np.random.Generator) -> DirectionsPart:
        return DirectionsPart(
            NAME,
            function,
            rng,
            DRAWS[self.distribution],
            directions=self.directions,
            eps=self.eps,
            two_sided=self.two_sided,
            common=self.common,
        )

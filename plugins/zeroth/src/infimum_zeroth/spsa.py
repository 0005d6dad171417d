"""Simultaneous perturbation: all coordinates at once, by random signs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum_zeroth.directions import DirectionsPart, signs
from infimum_zeroth.queries import declare_stochastic, refuse_bad_eps, refuse_below_one

NAME = "zeroth.spsa"


@dataclass(frozen=True)
class Spsa(Oracle):
    """Mean over m sign vectors d of `(f(x + c_k d) - f(x - c_k d)) / (2 c_k d_i)` in entry i: 2 m values.

    The half-width of the k-th gradient (k = 0, 1, …) is `c_k = c / (k + 1)^decay`. Spall's gains for noisy functions
    are `decay` 0.101, a `c` of about the standard deviation of the noise, and a step size of the solver that falls
    like `(k + 1 + A)^-0.602`, such as the schedule `core.power`. The bias is O(c_k^2), nothing for quadratics; the
    variance is `(n - 1) ||grad f||^2 / m` in all.

    With the default `c` f(x) is evaluated once a run. Batches and the warning are those of
    `zeroth.forward_difference`.

    Parameters
    ----------
    c : float, optional
        Half-width of the first gradient, above 0. None means the third root of u max(1, |f|), with the precision u of
        the dtype and the last known |f|, times max(1, rms of x).
    decay : float, default 0
        How fast the half-width falls, at least 0.
    directions : int, default 1
        Number m of sign vectors.
    common : bool, optional
        For a stochastic function, which offers `sample_value(x, rng)` (a float with expectation f(x) that draws from
        rng alone): True hands generators of one seed to all evaluations of a gradient, False gives each its own.
        None evaluates `value`.

    Raises
    ------
    InputError
        For `directions` below 1, a negative `decay`, or a `c` that is not positive and finite or vanishes beside x.
    """

    c: Annotated[float, Gt(0)] | None = None
    decay: Annotated[float, Ge(0)] = 0.0
    directions: Annotated[int, Ge(1)] = 1
    common: bool | None = None

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)
    exactness = Exactness.stochastic
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"directions": 4}, {"c": 0.1, "decay": 0.101, "directions": 4})

    def __post_init__(self) -> None:
        refuse_below_one(NAME, "directions", self.directions)
        refuse_bad_eps(NAME, "c", self.c)
        if not 0 <= self.decay < math.inf:
            raise InputError(f"{NAME}: decay={self.decay!r}; expected a finite number from 0")
        if self.common is not None:
            declare_stochastic(self)

    def bind(self, function: Any, rng: np.random.Generator) -> DirectionsPart:
        return DirectionsPart(
            NAME,
            function,
            rng,
            signs,
            directions=self.directions,
            eps=self.c,
            decay=self.decay,
            two_sided=True,
            common=self.common,
            option="c",
        )

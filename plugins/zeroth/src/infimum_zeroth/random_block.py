"""Partial derivatives in a few coordinates, drawn anew each time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.arrays import Array, namespace
from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum_zeroth.coordinates import CoordinatePart, flat_size
from infimum_zeroth.queries import declare_stochastic, refuse_bad_eps, refuse_below_one

NAME = "zeroth.random_block"


@dataclass(frozen=True)
class RandomBlock(Oracle):
    """Differences in B of the n coordinates, drawn without replacement for each gradient; the other entries are 0.

    Scaled by n/B (the default), its expectation is the gradient by differences in all coordinates, and the variance is
    `(n/B - 1) ||g||^2` in all. Plain (`scaled: false`), the entries are the partial derivatives themselves: block
    coordinate descent, with expectation `B/n` times the gradient and steps as long as full gradients allow.

    A gradient costs B + 1 values (forward) or 2 B (central, one more with the default step, which reads |f(x)|).

    Parameters
    ----------
    block : int, optional
        Number B of coordinates, at most n. None means the square root of n, rounded up.
    scaled : bool, default True
        Multiply by n/B, which makes the estimate unbiased.
    difference : {"forward", "central"}, default "forward"
        As in `zeroth.forward_difference` and `zeroth.central_difference`.
    eps : float, optional
        Step, above 0; the defaults of those two.
    relative : bool, default True
        Multiply `eps` by `max(1, |x_i|)` in coordinate i.
    common : bool, optional
        For a stochastic function, which offers `sample_value(x, rng)` (a float with expectation f(x) that draws from
        rng alone): True hands generators of one seed to all evaluations of a gradient, False gives each its own.
        None evaluates `value`.

    Raises
    ------
    InputError
        For a block below 1 or above n, or an `eps` that is not positive and finite or vanishes beside an entry of x.
    """

    block: Annotated[int, Ge(1)] | None = None
    scaled: bool = True
    difference: Literal["forward", "central"] = "forward"
    eps: Annotated[float, Gt(0)] | None = None
    relative: bool = True
    common: bool | None = None

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    wants: ClassVar[tuple[str, ...]] = ("values",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient", "value_and_gradient")
    exactness = Exactness.stochastic
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({}, {"block": 4, "difference": "central"})

    def __post_init__(self) -> None:
        refuse_bad_eps(NAME, "eps", self.eps)
        refuse_below_one(NAME, "block", self.block)
        if self.difference not in ("forward", "central"):
            raise InputError(f"{NAME}: difference={self.difference!r}; expected 'forward' or 'central'")
        if self.common is not None:
            declare_stochastic(self)

    def bind(self, function: Any, rng: np.random.Generator) -> RandomBlockPart:
        return RandomBlockPart(self, function, rng)


class RandomBlockPart(CoordinatePart):
    """A function with a gradient in drawn coordinates."""

    def __init__(self, options: RandomBlock, function: Any, rng: np.random.Generator) -> None:
        central = options.difference == "central"
        super().__init__(
            NAME, function, rng, eps=options.eps, relative=options.relative, central=central, common=options.common
        )
        self.block, self.scaled = options.block, options.scaled

    def _estimate(self, x: Array, valued: bool) -> tuple[float, Array]:
        n = flat_size(x)
        block = math.isqrt(n - 1) + 1 if self.block is None else self.block
        if block > n:
            raise InputError(f"{NAME}: block={block} of the n={n} coordinates of x; expected 1 to {n}")
        index = np.sort(self.rng.choice(n, block, replace=False))
        value, partials = self.partials(x, index, valued)
        gradient = np.zeros(n)
        gradient[index] = partials * (n / block) if self.scaled else partials
        return value, namespace(x).asarray(gradient, dtype=x.dtype, device=x.device).reshape(tuple(x.shape))

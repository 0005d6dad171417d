"""Random directions that are drawn again from their seeds instead of being kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt
from array_api_compat import is_torch_array

from infimum.arrays import Array, like, namespace, norm
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum_zeroth.coordinates import flat_size
from infimum_zeroth.queries import (
    Queries,
    declare_stochastic,
    default_eps,
    flat_real,
    precision_of,
    refuse_bad_eps,
    refuse_below_one,
    vanished,
)

NAME = "zeroth.mezo"
CHUNK = 2**16
"""Entries of a direction that exist at a time."""


@dataclass(frozen=True)
class Mezo(Oracle):
    """Two-sided gaussian directions for points that fill the memory: 2 m values, and two arrays like x in all.

    The estimate is that of `zeroth.random_directions`, with the same bias and variance. A direction is never kept: it
    is drawn from its seed once for each side and once more for the sum, some entries at a time, and every point is
    the same array, filled anew. Points of torch draw on their own device. Batches are not used. Functions must not
    keep the point.

    A module's parameters are no single vector; for them see `infimum_zeroth.MeZO`, an optimizer of torch.

    Parameters
    ----------
    eps : float, optional
        Step, above 0: about how far each entry moves. None means the third root of u max(1, |f|), with the precision
        u of the dtype and the last known |f| (f(x) is evaluated once a run for it), times max(1, rms of x).
    directions : int, default 1
        Number m of directions.
    common : bool, optional
        For a stochastic function, which offers `sample_value(x, rng)` (a float with expectation f(x) that draws from
        rng alone): True hands generators of one seed to all evaluations of a gradient, False gives each its own.
        None evaluates `value`.

    Raises
    ------
    InputError
        For `directions` below 1, or an `eps` that is not positive and finite or vanishes beside x.
    """

    eps: Annotated[float, Gt(0)] | None = None
    directions: Annotated[int, Ge(1)] = 1
    common: bool | None = None

    kind: ClassVar[str] = "zeroth-order"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)
    exactness = Exactness.stochastic
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"directions": 8},)

    def __post_init__(self) -> None:
        refuse_bad_eps(NAME, "eps", self.eps)
        refuse_below_one(NAME, "directions", self.directions)
        if self.common is not None:
            declare_stochastic(self)

    def bind(self, function: Any, rng: np.random.Generator) -> MezoPart:
        return MezoPart(self, function, rng)


class MezoPart:
    """A function with a gradient from replayed directions. It holds its generator, and |f| as it last was."""

    def __init__(self, options: Mezo, function: Any, rng: np.random.Generator) -> None:
        self.options, self.rng = options, rng
        self.queries = Queries(function, options.common, rng)
        self.size: float | None = None

    def gradient(self, x: Array) -> Array:
        """Estimate of the gradient at x, in the shape and dtype of x."""
        point, xp = flat_real(x, NAME), namespace(x)
        flat = x.detach().reshape((-1,)) if is_torch_array(x) else x.reshape((-1,))
        self.queries.start()
        if self.options.eps is None and self.size is None:
            self.size = abs(self.queries.one(point.reshape(tuple(x.shape))))
        h, total = self._step(flat), xp.zeros_like(point)
        for _ in range(self.options.directions):
            seed = int(self.rng.integers(2**63))
            above = self._value(flat, point, seed, h, x)
            below = self._value(flat, point, seed, -h, x)
            self.size = abs(above + below) / 2
            slope = (above - below) / (2 * h * self.options.directions)
            for part, z in _chunks(flat, seed):
                total[part] += slope * z
        return total.reshape(tuple(x.shape))

    def _step(self, flat: Array) -> float:
        if self.options.eps is not None:
            return self.options.eps
        assert self.size is not None
        rms = norm(flat) / math.sqrt(flat_size(flat))
        return default_eps(precision_of(flat), self.size, 3) * max(1.0, rms)

    def _value(self, flat: Array, point: Array, seed: int, h: float, x: Array) -> float:
        """f at x + h z, in the array `point`."""
        moved = False
        for part, z in _chunks(flat, seed):
            point[part] = flat[part] + h * z
            moved = moved or bool(namespace(flat).any(point[part] != flat[part]))
        if not moved:
            raise vanished(
                f"{NAME}: a step of {abs(h):g} vanishes beside x in {str(x.dtype).rpartition('.')[2]}; "
                "give a larger eps",
                first=self.size is None,
            )
        return float(self.queries.one(point.reshape(tuple(x.shape))))

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng, "size": self.size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng = self.queries.rng = state["rng"]
        self.size = state["size"]


def _chunks(flat: Array, seed: int) -> Iterator[tuple[slice, Array]]:
    """The direction of a seed, piece by piece: always the same numbers."""
    n = flat.shape[0]
    pieces = (slice(a, min(a + CHUNK, n)) for a in range(0, n, CHUNK))
    if is_torch_array(flat):
        import torch

        source = torch.Generator(flat.device).manual_seed(seed)
        for part in pieces:
            size = part.stop - part.start
            yield part, torch.randn(size, generator=source, dtype=flat.dtype, device=flat.device)
    else:
        rng = np.random.default_rng(seed)
        for part in pieces:
            yield part, like(rng.standard_normal(part.stop - part.start), flat)

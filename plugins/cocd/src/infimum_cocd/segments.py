"""Coordinates of a list of parameters, numbered through, and the losses where single ones are changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from infimum.errors import InputError
from infimum_cocd.checks import NonFiniteQuery, at_coordinate

Group = dict[str, Any]


@runtime_checkable
class Batched(Protocol):
    """A closure that can also tell the losses for many values of one entry each, without touching the parameters."""

    def __call__(self) -> Any:
        """The loss at the present parameters."""
        ...

    def perturbed(self, parameter: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Losses (m,) with flat entry `index[k]` of the parameter replaced by `values[k]`, one k at a time."""
        ...


@dataclass(slots=True)
class Segment:
    """Neighboring coordinates of one parameter: flat entries start, …, stop - 1; `first` is the number over all."""

    parameter: torch.Tensor
    group: Group
    start: int
    stop: int
    first: int


def segments(active: Sequence[tuple[torch.Tensor, Group]], first: int, count: int, n: int) -> Iterator[Segment]:
    """`count` coordinates from `first` on, round and round, cut where parameters end; n is the number of all."""
    first %= n
    while count > 0:
        offset = 0
        for p, group in active:
            low, high = max(first, offset), min(first + count, offset + p.numel())
            if low < high:
                yield Segment(p, group, low - offset, high - offset, low)
            offset += p.numel()
        count, first = count - (n - first), 0


def as_loss(value: Any, i: int, sign: int) -> float:
    """A loss as a finite number."""
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        raise InputError(f"closure returned a tensor of shape {tuple(value.shape)}; expected one number, the loss")
    try:
        loss = float(value.detach() if isinstance(value, torch.Tensor) else value)
    except (TypeError, ValueError) as error:
        raise InputError(f"closure returned {type(value).__name__}; expected the loss, a number") from error
    if not math.isfinite(loss):
        raise NonFiniteQuery("closure", loss, at_coordinate(i, sign))
    return loss


def losses(closure: Callable[[], Any], one: Segment, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Losses in float64 with one entry of the segment at a time replaced: upward first, then downward if there is."""
    if not isinstance(closure, Batched):
        return [_one_by_one(closure, one, moved, sign) for moved, sign in zip(values, (1, -1), strict=False)]
    index = torch.arange(one.start, one.stop, device=one.parameter.device).repeat(len(values))
    found = closure.perturbed(one.parameter, index, torch.cat(list(values))).double()
    bad = (~found.isfinite()).nonzero()
    if bad.numel():
        k, count = int(bad[0]), one.stop - one.start
        raise NonFiniteQuery("closure", float(found[k]), at_coordinate(one.first + k % count, 1 if k < count else -1))
    return list(torch.split(found, one.stop - one.start))


def _one_by_one(closure: Callable[[], Any], one: Segment, values: torch.Tensor, sign: int) -> torch.Tensor:
    p = one.parameter.detach()
    found = []
    for k in range(one.stop - one.start):
        place = np.unravel_index(one.start + k, tuple(p.shape)) if p.ndim else ()
        old = p[place].clone()
        try:
            p[place] = values[k]
            found.append(as_loss(closure(), one.first + k, sign))
        finally:
            # Copied back, since adding and subtracting eps would leave a rounding error behind.
            p[place] = old
    return torch.tensor(found, dtype=torch.float64, device=p.device)

"""What a run demands of its arguments and points, and the seed that is drawn where none is given."""

from __future__ import annotations

import logging
import secrets
from numbers import Integral
from typing import Any

from infimum.errors import InputError

log = logging.getLogger("infimum")


def require_whole(name: str, value: Any, least: int = 1) -> None:
    """Raise `InputError` unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name}={value!r}: expected an integer >= {least}")


def as_seed(seed: int | None) -> int:
    """The seed as an integer; drawn, and logged, where none is given."""
    if seed is None:
        drawn = secrets.randbits(32)
        log.info("no seed was given: drew %d", drawn)
        return drawn
    require_whole("seed", seed, least=0)
    return int(seed)


def require_same_kind(solver: str, start: Any, point: Any) -> None:
    """Raise `InputError` where a point has another shape or dtype than the start; points without a dtype pass."""
    if not hasattr(start, "dtype") or not hasattr(point, "dtype"):
        return
    if point.dtype != start.dtype or tuple(point.shape) != tuple(start.shape):
        raise InputError(
            f"{solver} turned x0, {tuple(start.shape)} {start.dtype}, into {tuple(point.shape)} {point.dtype} in its "
            "first step; a function of the problem returns another shape or dtype than its argument"
        )

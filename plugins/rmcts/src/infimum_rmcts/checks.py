"""Numbers, arrays and generators that come from outside: taken over, or refused by name."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError


def integer(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`.

    Raises
    ------
    InputError
        For another type or a smaller number.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}={value!r:.80}: expected an integer >= {least}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """A finite number above 0.

    Raises
    ------
    InputError
        For another type or number.
    """
    if not _is_real(value) or not 0 < value < math.inf:
        raise InputError(f"{name}={value!r:.80}: expected a finite number > 0")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """A finite number of at least 0.

    Raises
    ------
    InputError
        For another type or number.
    """
    if not _is_real(value) or not 0 <= value < math.inf:
        raise InputError(f"{name}={value!r:.80}: expected a finite number >= 0")
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def numbers(name: str, value: Any) -> NDArray[np.float64]:
    """Real numbers as an array of double precision.

    Raises
    ------
    InputError
        For text, objects, complex numbers, rows of different lengths.
    """
    try:
        found = np.asarray(value)
        real = found.dtype.kind in "biuf"
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name}: expected an array of numbers, got {type(value).__name__}: {error}") from None
    if not real:
        raise InputError(f"{name}: expected an array of numbers, got {value!r:.80}")
    return found.astype(np.float64, copy=False)


def generator(rng: Any) -> np.random.Generator:
    """A generator, from one or from a seed.

    Raises
    ------
    InputError
        For anything else.
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"rng={rng!r:.80}: expected a numpy.random.Generator or an integer >= 0") from None

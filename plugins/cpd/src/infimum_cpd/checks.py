"""Checks of what users give: each returns it converted, or says who got what and what was expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infimum.errors import InputError, did_you_mean


def among(name: str, value: object, choices: Sequence[str], who: str = "cusum") -> None:
    """Refuse a word that is not among `choices`."""
    if value not in choices:
        raise InputError(f"{who}: {name}={value!r}; {did_you_mean(str(value), choices)}")


def is_number(value: object) -> bool:
    """Whether it is a finite real number, and no boolean or text."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool | complex | np.complexfloating)
    return number and math.isfinite(value)  # type: ignore[arg-type]


def positive(name: str, value: Any, who: str = "cusum") -> None:
    """Refuse a number that is given and not finite and positive."""
    if value is not None and not (is_number(value) and value > 0):
        raise InputError(f"{who}: {name}={value!r}; expected a finite number > 0")


def clip(zmax: Any, k: float, who: str = "cusum") -> None:
    """Refuse a `zmax` at or below k, under which W could never rise."""
    positive("zmax", zmax, who)
    if zmax is not None and zmax <= k:
        raise InputError(f"{who}: zmax={zmax!r} is not above k={k!r}, so no alarm could ever come")


def not_negative(name: str, value: Any, who: str = "cusum", remark: str = "") -> None:
    """Refuse what is not a finite number of 0 or more."""
    if not (is_number(value) and value >= 0):
        raise InputError(f"{who}: {name}={value!r}; expected a finite number >= 0{remark}")


def share(name: str, value: Any, who: str = "cusum", what: str = "number") -> None:
    """Refuse what is not strictly between 0 and 1."""
    if not (is_number(value) and 0.0 < value < 1.0):
        raise InputError(f"{who}: {name}={value!r}; expected a {what} between 0 and 1")


def whole(name: str, value: Any, least: int = 0, who: str = "cusum") -> None:
    """Refuse what is not a whole number of `least` or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{who}: {name}={value!r}; expected a whole number >= {least}")


def flag(name: str, value: Any, who: str = "cusum") -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{who}: {name}={value!r}; expected True or False")


def text(name: str, value: Any, who: str) -> None:
    """Refuse what is no string."""
    if not isinstance(value, str):
        raise InputError(f"{who}: {name} is a {type(value).__name__}; expected a text")


def samples(given: ArrayLike, who: str) -> NDArray[np.float64]:
    """Real numbers as an array of floats; the same array where it is one already."""
    try:
        array = np.asarray(given)
        if array.dtype.kind in "biufO":
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise InputError(f"{who}: expected real numbers, got {given!r:.60}")


def sample(given: Any, who: str) -> float:
    """One real number, NaN and inf too; a tensor or an array with one element serves."""
    try:
        if not isinstance(given, str | bytes):
            return float(given)
    except (TypeError, ValueError, RuntimeError):
        pass
    raise InputError(f"{who}: expected a number, got {given!r:.60}")

"""Options of the oracle and of the plain function: what they may be, and what the presets make of them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from infimum.errors import InputError
from infimum_hjprox.sampling import Rules

RECENTER, ESS_MIN = 2, 0.05


def positive(value: Any, name: str, what: str) -> float:
    """A number above 0, finite."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise InputError(f"{what}: {name}={value!r}; expected a positive finite number")
    return float(value)


def samples(value: Any, what: str) -> int:
    """A number of samples: a whole number from 2 on."""
    whole = isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer()
    if not whole or value < 2:
        more = " (one sample is a random point, not a prox)" if whole and value == 1 else ""
        raise InputError(f"{what}: n_samples={value!r}; expected a whole number >= 2{more}")
    return int(value)


def rules(
    preset: str | None, ess_min: float | None, recenter: int | None, separable: bool, antithetic: bool, what: str
) -> Rules:
    """The rules of sampling from the options; those that are None follow the preset."""
    if preset not in (None, "paper"):
        raise InputError(f"{what}: preset={preset!r}; expected 'paper' or None")
    plain = preset == "paper"
    least = (0.0 if plain else ESS_MIN) if ess_min is None else ess_min
    if isinstance(least, bool) or not isinstance(least, Real) or not 0 <= least < 1:
        raise InputError(f"{what}: ess_min={ess_min!r}; expected a share of the samples, at least 0 and below 1")
    again = (0 if plain else RECENTER) if recenter is None else recenter
    if isinstance(again, bool) or not isinstance(again, Integral) or again < 0:
        raise InputError(f"{what}: recenter={recenter!r}; expected a whole number >= 0")
    return Rules(float(least), int(again), bool(separable), bool(antithetic))

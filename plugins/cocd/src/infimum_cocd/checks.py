"""Refusals and warnings that the oracle, the solver and the torch optimizer share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infimum.errors import InputError, NonFiniteError

DIFFERENCES = ("central", "forward")
ORDERS = ("cyclic", "shuffled cycle")


class NonFiniteQuery(NonFiniteError):
    """NaN or inf from one of the queries of a step; nothing of that step is kept."""

    def __init__(self, who: str, value: float, where: str, kind: str | None = None) -> None:
        kind = kind or ("NaN" if math.isnan(value) else "inf" if value > 0 else "-inf")
        super().__init__(who, "value", kind)
        self.args = (f"{who} returned {kind} {where}; nothing of this step was kept",)


def at_coordinate(i: int, sign: int) -> str:
    """Where a query stood, for messages."""
    return f"at coordinate {i} ({'+' if sign > 0 else '-'}eps)" if sign else "at the present point"


def is_number(value: Any) -> bool:
    """Whether this is a real number; booleans are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_block(block: Any, what: str, n: int | None = None) -> None:
    """A whole number of coordinates from 1 to n, or "auto"."""
    if block == "auto":
        return
    of = "coordinates" if n is None else f"n={n} coordinates"
    if not isinstance(block, int | np.integer) or isinstance(block, bool):
        raise InputError(f"{what}: block={block!r}; expected a whole number of {of} to refresh per step, or 'auto'")
    if block < 1:
        raise InputError(f"{what}: block={block}: refresh at least 1 of the {of} per step, or give 'auto'")
    if n is not None and block > n:
        raise InputError(f"{what}: block={block}: there are only {of}; give at most that many, or 'auto'")


def check_memory(memory: Any, what: str, n: int | None = None) -> None:
    """A whole number of entries from 1 to n, or None."""
    if memory is None:
        return
    if (
        isinstance(memory, bool)
        or not isinstance(memory, int | np.integer)
        or memory < 1
        or (n is not None and memory > n)
    ):
        top = "the number n of coordinates" if n is None else f"n={n}"
        raise InputError(f"{what}: memory={memory!r}: keep from 1 entry to {top}, or None for all")


def check_positive(value: Any, name: str, what: str) -> None:
    """A positive finite number."""
    if not is_number(value) or not 0 < value < math.inf:
        raise InputError(f"{what}: {name}={value!r}; expected a positive finite number")


def check_unit(value: Any, name: str, what: str) -> None:
    """A number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{what}: {name}={value!r}; expected a number from 0 (no reuse) to 1 (full reuse)")


def check_decay(value: Any, what: str) -> None:
    """A finite weight decay, at least 0."""
    if not is_number(value) or not 0 <= value < math.inf:
        raise InputError(f"{what}: weight_decay={value!r}; expected a finite number >= 0")


def check_word(value: Any, name: str, words: tuple[str, ...], what: str) -> None:
    """One of some words."""
    if value not in words:
        raise InputError(f"{what}: {name}={value!r}; expected {' or '.join(map(repr, words))}")


def below_noise(eps: float, value: float, precision: float, dtype: str, difference: str) -> str | None:
    """A sentence if rounding of f makes difference quotients with this eps unreliable, else None.

    The floor balances rounding against the error of the difference for an f with derivatives of order one:
    `(u |f|)^(1/3)` for central differences, `(u |f|)^(1/2)` for forward ones.
    """
    floor = (precision * abs(value)) ** (1.0 / 3.0 if difference == "central" else 0.5)
    if eps >= floor:
        return None
    return (
        f"eps={eps:g} is below the {dtype} noise floor (~{floor:.1g}) of f≈{value:.3g}: rounding spoils the "
        f"differences; use eps of {floor:.1g} or more"
    )

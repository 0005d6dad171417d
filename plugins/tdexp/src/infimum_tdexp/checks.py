"""What users give, checked: each function returns it in the form that is computed with, or says what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from infimum import arrays
from infimum.errors import InputError

Array = np.ndarray
SUM = 1e-8
"""Up to which probabilities may miss 1."""


def number(value: Any, name: str, what: str, expected: str, fits: Callable[[float], bool]) -> float:
    """A finite number that fits; `expected` completes the message "must be …".

    Raises
    ------
    InputError
        For anything else, truth values included.
    """
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not real or not math.isfinite(value) or not fits(float(value)):
        raise InputError(f"{what}: {name} must be {expected}, got {shown(value)}")
    return float(value)


def whole(value: Any, name: str, what: str, least: int = 1) -> int:
    """An integer of at least `least`; 5.0 is one."""
    number(value, name, what, f"an integer >= {least}", lambda x: x.is_integer() and x >= least)
    return int(value)


def positive(value: Any, name: str, what: str) -> float:
    """A finite number above 0."""
    return number(value, name, what, "a finite number above 0", lambda x: x > 0)


def non_negative(value: Any, name: str, what: str) -> float:
    """A finite number of at least 0."""
    return number(value, name, what, "a finite number >= 0", lambda x: x >= 0)


def fraction(value: Any, name: str, what: str) -> float:
    """A number in [0, 1)."""
    return number(value, name, what, "in [0, 1)", lambda x: 0 <= x < 1)


def discount(value: Any, what: str) -> float:
    """gamma."""
    return fraction(value, "gamma", what)


def sampling(value: Any, what: str) -> str:
    """How states are drawn."""
    if not isinstance(value, str) or value not in ("iid", "markov"):
        raise InputError(f"{what}: sampling={value!r}; expected 'iid' (independent states) or 'markov' (one path)")
    return value


def numbers(given: Any, name: str, remedy: str = "clean the data first") -> Array:
    """A fresh array of finite floats; sparse matrices become dense.

    Raises
    ------
    InputError
        For what is no array of real numbers, is empty, or holds NaN or inf.
    """
    found = arrays.as_data(given, name, remedy=remedy)
    dense = found.toarray() if arrays.is_sparse(found) else arrays.to_numpy(found)
    return np.array(dense, dtype=np.float64)


def distribution(given: Any, n: int, name: str, over: str = "states") -> Array:
    """Probabilities that sum to 1, shape (n,)."""
    p = numbers(given, name)
    if p.shape != (n,) or (p < 0).any() or abs(p.sum() - 1) > SUM:
        raise InputError(f"{name} must be a distribution over the {n} {over}, got {shown(given)}")
    return p


def features(given: Any, scale: bool, what: str) -> Array:
    """Features of shape (states, d) with rows of norm at most 1.

    Raises
    ------
    InputError
        For another shape, numbers that are not finite, or rows that are too long and shall not be scaled.
    """
    phi = numbers(given, f"{what}: features")
    if phi.ndim != 2:
        raise InputError(f"{what}: features must have shape (states, d), got {phi.shape}")
    largest = longest(phi)
    # What was scaled to norm 1 elsewhere may be off by a rounding error.
    if largest > 1.0 + 1e-12:
        if not scale:
            raise InputError(
                f"{what}: max ||phi|| = {largest:.4g} > 1, but step sizes count on norms of at most 1; pass "
                "scale_features=True (features are divided by it, weights grow by it)"
            )
        phi /= largest
    return phi


def longest(phi: Array) -> float:
    """The largest norm of a row; without overflow."""
    size = float(np.abs(phi).max())
    return size * float(np.linalg.norm(phi / size, axis=-1).max()) if size > 0 else 0.0


def rank(phi: Array, what: str) -> None:
    """Refuse features whose columns are linearly dependent."""
    found = int(np.linalg.matrix_rank(phi))
    if found < phi.shape[1]:
        raise InputError(
            f"{what}: the features have rank {found} < {phi.shape[1]} on the states that are visited, so the fixed "
            "point w* is not unique; leave out columns that depend on others (with a constant, one of each group of "
            "one-hot columns), or pass unique=False"
        )


def shown(given: Any) -> str:
    """As it was written, but short."""
    text = " ".join(repr(given).split())
    return text if len(text) < 60 else text[:57] + "…"

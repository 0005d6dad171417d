"""What a data matrix, its factors, a rank and an option must be, said before anything is computed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from infimum import arrays
from infimum.errors import InputError


def checked_matrix(X: Any, name: str = "X") -> Any:
    """X as a dense C-contiguous or CSR matrix of float32 or float64, with finite entries >= 0, not all of them zero.

    Raises
    ------
    InputError
        For anything else: says how many entries are wrong and where the first one stands.
    """
    X = arrays.as_data(X, name)
    if not arrays.is_sparse(X):
        X = arrays.to_numpy(X)
    if X.ndim != 2:
        raise InputError(f"{name} has shape {tuple(X.shape)}; expected a matrix, (rows, columns)")
    if arrays.is_sparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    entries = X.data if arrays.is_sparse(X) else X
    refuse_negative(X, name)
    if not np.any(entries):
        raise InputError(f"{name} is all zero: every factorization of it is; expected at least one positive entry")
    largest = float(entries.max())
    square = largest * largest * entries.size
    if not float(np.finfo(X.dtype).tiny) < square < float(np.finfo(X.dtype).max):
        raise InputError(
            f"{name} has entries up to {largest:g}, whose squares leave the range of {X.dtype}: divide {name} by that"
        )
    return X if arrays.is_sparse(X) else np.ascontiguousarray(X)


def refuse_negative(X: Any, name: str = "X") -> None:
    """Raise `InputError` for negative entries: says how many there are, and where the first one stands."""
    entries = X.data if arrays.is_sparse(X) else X
    negative = int(np.count_nonzero(entries < 0))
    if negative:
        coo = X.tocoo() if arrays.is_sparse(X) else None
        if coo is None:
            row, column = np.argwhere(X < 0)[0]
        else:
            first = int(np.flatnonzero(coo.data < 0)[0])
            row, column = coo.row[first], coo.col[first]
        raise InputError(
            f"{name} has {negative} negative entries, the first one {float(X[row, column]):g} at [{row}, {column}]; "
            "expected entries >= 0: shift or clip the data first"
        )


def checked_factors(
    factors: Any, name: str, shape: tuple[int, int] | None = None, *, signed: bool = False
) -> tuple[Any, Any]:
    """A pair (U, V) of matrices with equal numbers of columns, and as many rows as a matrix needs.

    Parameters
    ----------
    factors : pair of array, (m, r) and (n, r)
    name : str
        What messages call the pair.
    shape : (m, n), optional
        Of the matrix that they factorize.
    signed : bool, default False
        Whether negative entries pass.

    Raises
    ------
    InputError
        For no pair, NaN or inf, negative entries, shapes that do not fit.
    """
    if not isinstance(factors, tuple | list) or len(factors) != 2:
        raise InputError(f"{name}: expected a pair (U, V), got {type(factors).__name__}")
    U, V = (
        arrays.to_numpy(arrays.as_data(one, f"{side} of {name}")) for one, side in zip(factors, ("U", "V"), strict=True)
    )
    rows = U.shape[:1] + V.shape[:1] if shape is None else tuple(shape)
    if U.ndim != 2 or V.ndim != 2 or U.shape[1] != V.shape[1] or (len(U), len(V)) != rows:
        expected = "(m, r) and (n, r)" if shape is None else f"({rows[0]}, r) and ({rows[1]}, r)"
        raise InputError(f"{name}: U and V have shapes {U.shape} and {V.shape}; expected {expected}")
    if not signed:
        refuse_negative(U, f"U of {name}")
        refuse_negative(V, f"V of {name}")
    return U, V


def check_whole(name: str, value: Any, least: int = 0) -> None:
    """Raise `InputError` unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name}={value!r}: expected a whole number >= {least}")


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Raise `InputError` unless `value` is a finite number >= 0, or > 0."""
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < 0 or (positive and value == 0):
        raise InputError(f"{name}={value!r}: expected a finite number {'> 0' if positive else '>= 0'}")


def check_word(name: str, value: Any, words: tuple[str, ...]) -> None:
    """Raise `InputError` unless `value` is one of `words`."""
    if not isinstance(value, str) or value not in words:
        raise InputError(f"{name}={value!r}: expected one of {', '.join(map(repr, words))}")


def check_flag(name: str, value: Any) -> None:
    """Raise `InputError` unless `value` is true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={value!r}: expected True or False")


def checked_rank(rank: Any, shape: tuple[int, ...], name: str = "rank") -> int:
    """A rank between 1 and min(m, n).

    Raises
    ------
    InputError
    """
    least = min(shape)
    if isinstance(rank, bool) or not isinstance(rank, Integral) or int(rank) < 1:
        raise InputError(f"{name}={rank!r}: expected a whole number from 1 to min(m, n) = {least}")
    if int(rank) > least:
        raise InputError(
            f"{name}={rank}: the exterior start needs {name} <= min(m, n) = {least}; "
            f"got a matrix of shape {tuple(shape)}"
        )
    return int(rank)

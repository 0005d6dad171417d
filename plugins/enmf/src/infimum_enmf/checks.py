"""What a data matrix and a rank must be, said before anything is computed."""

from __future__ import annotations

from numbers import Integral
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


def checked_rank(rank: Any, shape: tuple[int, ...]) -> int:
    """A rank between 1 and min(m, n).

    Raises
    ------
    InputError
    """
    least = min(shape)
    if isinstance(rank, bool) or not isinstance(rank, Integral) or int(rank) < 1:
        raise InputError(f"rank={rank!r}: expected a whole number from 1 to min(m, n) = {least}")
    if int(rank) > least:
        raise InputError(
            f"rank={rank}: the exterior start needs rank <= min(m, n) = {least}; got a matrix of shape {tuple(shape)}"
        )
    return int(rank)

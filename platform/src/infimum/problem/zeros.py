"""The start of a problem that names none: zeros that suit its data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from infimum import arrays
from infimum.arrays import Array
from infimum.constraints.base import Constraint
from infimum.functions.base import Function
from infimum.functions.maps import Map


def zeros_for(shape: tuple[int, ...], body: Any) -> Array:
    """Zeros that suit the data of a term: float32 data starts in float32, torch data in torch."""
    found = next(_data_in(body), None)
    if found is None:
        return np.zeros(shape)
    return np.zeros(shape, found.dtype) if arrays.is_sparse(found) else arrays.like(np.zeros(shape), found)


def _data_in(body: Any) -> Iterator[Any]:
    """The floating arrays and sparse matrices in a function, set or map, and in what it is made of."""
    for value in getattr(body, "__dict__", {}).values():
        for one in value if isinstance(value, tuple | list) else (value,):
            if isinstance(one, Function | Map | Constraint):
                yield from _data_in(one)
            elif arrays.is_sparse(one):
                if one.dtype.kind == "f":
                    yield one
            elif arrays.is_array(one) and arrays.namespace(one).isdtype(one.dtype, "real floating"):
                yield one

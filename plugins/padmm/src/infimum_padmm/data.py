"""Numbers and arrays as users give them, made sure of: real, finite, NumPy float64, with names in the messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from infimum.arrays import as_data, is_array
from infimum.errors import InputError
from infimum.functions.maps import LinearMap, Map
from infimum.problem.base import as_point


def number(value: Any, name: str, expected: str, *, least: float = 0.0, strict: bool = True) -> float:
    """A finite number above `least` (or equal to it, where not strict); `InputError` otherwise."""
    fits = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not fits or not math.isfinite(value) or value < least or (strict and value == least):
        raise InputError(f"{name} is {value!r}; expected {expected}")
    return float(value)


def whole(value: Any, name: str, least: int) -> int:
    """A whole number of at least `least`; `InputError` otherwise."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is {value!r}; expected a whole number of at least {least}")
    return int(value)


def mapping(value: Any, name: str, of: str) -> Mapping[str, Any]:
    """A mapping with text as keys; `InputError` otherwise. None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name}: expected {{{of}}}, got {type(value).__name__}")
    for key in value:
        if not isinstance(key, str) or not key:
            raise InputError(f"{name}: {key!r} is no name; expected {{{of}}} with text as names")
    return value


def numpy_only(value: Any, name: str) -> None:
    """Raise `InputError` for an array of another library."""
    if is_array(value) and not isinstance(value, np.ndarray):
        package = type(value).__module__.partition(".")[0]
        raise InputError(f"{name} is an array of {package}; expected a NumPy array (padmm computes in float64)")


def array(value: Any, name: str) -> np.ndarray:
    """Real finite numbers as a float64 array of any shape."""
    numpy_only(value, name)
    if sparse.issparse(value):
        raise InputError(f"{name} is a SciPy sparse matrix; expected a dense array")
    return np.asarray(as_data(value, name), dtype=float)


def vector(value: Any, name: str, length: int | None = None) -> np.ndarray:
    """Real finite numbers as a float64 vector, of the given length."""
    out = array(value, name).reshape(-1)
    if length is not None and out.size != length:
        raise InputError(f"{name} has {out.size} entries; expected {length}")
    return out


def start_of(value: Any, name: str) -> np.ndarray:
    """A start as a float64 array of its own."""
    numpy_only(value, name)
    return np.array(as_point(value, name), dtype=float)


def real_map(operator: Any) -> Any:
    """What stands in a row, as a float64 matrix where it is one; vectors stand for a matrix with one column."""
    if isinstance(operator, Map):
        # A plain matrix goes through the same tests as one that comes without a wrapper.
        return operator if type(operator) is not LinearMap else real_map(operator.operator)
    if isinstance(operator, list | tuple | np.ndarray) or sparse.issparse(operator):
        given = as_data(operator, "the matrix")
        if sparse.issparse(given):
            return given.astype(float)
        given = np.asarray(given, dtype=float)
        return given[:, None] if given.ndim == 1 else given
    numpy_only(operator, "the matrix")
    if np.dtype(getattr(operator, "dtype", None) or float).kind == "c":
        raise InputError("the operator is complex; expected a real one: split into real and imaginary parts")
    return operator

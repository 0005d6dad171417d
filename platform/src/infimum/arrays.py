"""Small array helpers that work on any array-API namespace and cost little on NumPy arrays."""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_torch_array, to_device

from infimum.errors import InputError

Array = Any
"""An array of some array-API namespace: `numpy.ndarray`, `torch.Tensor`, …"""


def namespace(x: Array) -> ModuleType:
    """The array-API namespace of `x`; NumPy arrays take a short path."""
    if type(x) is np.ndarray:
        return np
    return array_namespace(x)


def is_array(x: object) -> bool:
    return type(x) is np.ndarray or is_array_api_obj(x)


def is_sparse(x: object) -> bool:
    """Whether `x` is a SciPy sparse matrix or array (nothing is imported to find out)."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(x))


def is_complex(x: Array) -> bool:
    if isinstance(x.dtype, np.dtype):
        return x.dtype.kind == "c"
    return bool(array_namespace(x).isdtype(x.dtype, "complex floating"))


def norm(x: Array) -> float:
    """Euclidean norm over all entries, as a Python float; inf or NaN if `x` holds any."""
    if type(x) is np.ndarray:
        if x.dtype.kind == "f":
            # vdot, unlike other products, does not warn when a square overflows. Squares leave the floating range
            # (float32: 1e-38 to 3e38) long before their root does.
            square = float(np.vdot(x, x))
            if 1e-30 < square < 1e36:
                return math.sqrt(square)
        return _careful_norm(x)
    return float(array_namespace(x).linalg.vector_norm(x))


def _careful_norm(x: Array) -> float:
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(x / largest))


def inner(x: Array, y: Array) -> float:
    """Real inner product over all entries, as a Python float."""
    if type(x) is np.ndarray:
        return float(np.vdot(x, y).real)
    xp = array_namespace(x, y)
    return float(xp.real(xp.sum(xp.conj(x) * y))) if is_complex(x) else float(xp.sum(x * y))


def clip(x: Array, lower: Array | float | None, upper: Array | float | None) -> Array:
    """`x` moved into `[lower, upper]`, entry by entry; None is no bound. A new array unless both are None."""
    if type(x) is np.ndarray:
        if lower is not None:
            x = np.maximum(x, lower)
            return x if upper is None else np.minimum(x, upper, out=x if x.ndim else None)
        return x if upper is None else np.minimum(x, upper)
    if is_torch_array(x):
        # One call per bound: torch refuses a number beside a tensor.
        x = x if lower is None else x.clamp(min=lower)
        return x if upper is None else x.clamp(max=upper)
    return array_namespace(x).clip(x, lower, upper)


def all_finite(x: Array) -> bool:
    """Exact test that no entry is NaN or inf."""
    xp = namespace(x)
    return bool(xp.all(xp.isfinite(x)))


def copy(x: Array) -> Array:
    """An independent copy, detached from any autograd graph."""
    if type(x) is np.ndarray:
        return x.copy()
    if is_torch_array(x):
        return x.detach().clone()
    return array_namespace(x).asarray(x, copy=True)


def zeros_like(x: Array) -> Array:
    return np.zeros_like(x) if type(x) is np.ndarray else array_namespace(x).zeros_like(x)


def to_numpy(x: Array) -> np.ndarray:
    """`x` as a NumPy array on the host, for checks and messages."""
    if is_torch_array(x):
        x = x.detach().cpu()
    return np.asarray(x)


def like(data: Array, x: Array) -> Array:
    """`data` in the namespace, dtype kind and device of `x`: float32 stays float32, NumPy data meets torch points.

    Integer and boolean data keep their dtype; complex data stays complex at the matching precision. Sparse matrices
    and linear operators are converted where they can be (`astype`), else returned as they are.

    Raises
    ------
    InputError
        If `data` is a SciPy sparse matrix and `x` is not a NumPy array.
    """
    if not is_array(data):
        if isinstance(x, np.ndarray):
            kind = getattr(getattr(data, "dtype", None), "kind", "")
            target = _matching(data.dtype, x.dtype) if kind in ("f", "c") and hasattr(data, "astype") else None
            return data if target is None or data.dtype == target else data.astype(target)
        if is_sparse(data):
            raise InputError(
                f"{describe(data)} is a SciPy sparse matrix, which does not meet points of {type(x).__module__}; "
                "pass x0 as a NumPy array or the data as a dense array"
            )
        return data
    if type(data) is np.ndarray and type(x) is np.ndarray and data.dtype == x.dtype:
        return data
    xp = namespace(x)
    if not isinstance(data, type(x)):
        data = to_numpy(data) if xp is np else xp.asarray(_writable(to_numpy(data)), device=device(x))
    elif device(data) != device(x):
        data = to_device(data, device(x))
    if xp.isdtype(data.dtype, "real floating"):
        return data if data.dtype == x.dtype else xp.astype(data, x.dtype)
    if is_complex(data):
        half = xp.finfo(x.dtype).bits <= 32
        return xp.astype(data, xp.complex64 if half else xp.complex128)
    return data


def _writable(data: np.ndarray) -> np.ndarray:
    """torch shares memory with NumPy arrays, but warns of read-only ones and refuses reversed ones."""
    plain = data.flags.writeable and all(stride >= 0 for stride in data.strides)
    return data if plain else np.array(data, order="C")


def _matching(data: np.dtype, point: np.dtype) -> np.dtype:
    if data.kind == "c" and point.kind == "f":
        return np.dtype("complex64" if point.itemsize <= 4 else "complex128")
    return point


def entry(flat: Any, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    """Where a flat index stands: as a tuple, and as `[1, 0]` behind a name (nothing for a single number)."""
    index = tuple(int(i) for i in np.unravel_index(int(flat), shape))
    return index, f"[{', '.join(map(str, index))}]" if index else ""


def as_data(data: Any, name: str, *, real: bool = True, remedy: str = "clean the data first") -> Array:
    """What a user gave as data, as a floating array or sparse matrix that is worth computing with.

    Parameters
    ----------
    data : array, sparse matrix or sequence of numbers
        Integers and booleans become float64; float32 stays float32. Nothing is copied that fits already.
    name : str
        What messages call it.
    real : bool, default True
        Whether complex numbers are refused.
    remedy : str
        What messages say to do about NaN and inf.

    Raises
    ------
    InputError
        For anything that is not numeric, empty data, complex numbers where real ones are needed, NaN or inf.
    """
    if is_sparse(data):
        if data.format not in ("csr", "csc"):
            data = data.tocsr()
    elif isinstance(data, np.ndarray) or not is_array(data):
        try:
            data = np.asarray(data)
        except (ValueError, TypeError) as error:
            raise InputError(f"{name} is no array of numbers: {error}") from error
    if 0 in data.shape:
        raise InputError(f"{name} is empty: its shape is {tuple(data.shape)}; expected at least one entry")
    if isinstance(data.dtype, np.dtype) and data.dtype.kind not in "fciub":
        raise InputError(f"{name} holds {data.dtype} entries; expected numbers")
    if is_complex(data):
        if real:
            said = "expected real numbers; split into real and imaginary parts"
            raise InputError(f"{name} is complex ({describe(data)}); {said}")
    elif isinstance(data.dtype, np.dtype):
        data = data if data.dtype.kind == "f" else data.astype(np.float64)
    elif not namespace(data).isdtype(data.dtype, "real floating"):
        data = namespace(data).astype(data, namespace(data).float64)
    entries = data.data if is_sparse(data) else data
    if not all_finite(entries):
        raise InputError(f"{_nonfinite(data, name)}; {remedy}")
    return data


def _nonfinite(data: Array, name: str) -> str:
    if is_sparse(data):
        coo = data.tocoo()
        bad = np.flatnonzero(~np.isfinite(coo.data))
        where, value = f"[{int(coo.row[bad[0]])}, {int(coo.col[bad[0]])}]", coo.data[bad[0]]
    else:
        host = to_numpy(data)
        bad = np.flatnonzero(~np.isfinite(host))
        index, where = entry(bad[0], host.shape)
        value = host[index]
    more = f" ({bad.size} such entries)" if bad.size > 1 else ""
    return f"{name}{where} is {value}{more}"


def describe(x: object) -> str:
    """Shape and dtype for messages, such as `(442, 10) float64`."""
    if is_array(x) or is_sparse(x):
        return f"{tuple(x.shape)} {str(x.dtype).rpartition('.')[2]}"  # type: ignore[attr-defined]
    return type(x).__name__

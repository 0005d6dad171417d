"""Gaussian samples that can be made again from a seed, chunk by chunk, on the device of the point."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from array_api_compat import is_torch_array

from infimum.arrays import Array, namespace
from infimum.errors import InputError

LIMIT = 2**22
"""Most floats that one array of samples holds on an accelerator."""
CACHE = 2**17
"""The same on a CPU: what stays in its cache, which is twice as fast."""


def limit(like: Array) -> int:
    """Most floats of one array of samples, by the device of `like`."""
    if type(like) is np.ndarray or not is_torch_array(like) or like.device.type == "cpu":
        return CACHE
    return LIMIT


def chunk(count: int, like: Array, antithetic: bool) -> int:
    """Samples at a time; even for pairs."""
    most = max(2, limit(like) // int(like.shape[1]))
    size = min(count, most)
    return size - size % 2 if antithetic else size


def normals(seed: int, count: int, like: Array, antithetic: bool) -> Iterator[Array]:
    """`count` standard normal vectors of the size of the rows of `like`, in chunks (k, n).

    With `antithetic` the second half of a chunk is the negative of the first; `count` is even then.
    """
    n = int(like.shape[1])
    draw = _source(seed, like)
    size = chunk(count, like, antithetic)
    for low in range(0, count, size):
        k = min(size, count - low)
        if antithetic:
            half = draw(k // 2, n)
            yield namespace(half).concat([half, -half])
        else:
            yield draw(k, n)


def _source(seed: int, like: Array) -> Callable[[int, int], Array]:
    """`draw(k, n)` in the namespace, dtype and device of `like`."""
    if type(like) is np.ndarray:
        generator = np.random.Generator(np.random.SFC64(seed))
        if like.dtype in (np.float32, np.float64):
            return lambda k, n: generator.standard_normal((k, n), dtype=like.dtype)
        return lambda k, n: generator.standard_normal((k, n)).astype(like.dtype)
    if is_torch_array(like):
        import torch

        source = torch.Generator(device=like.device).manual_seed(seed)
        return lambda k, n: torch.randn(k, n, generator=source, dtype=like.dtype, device=like.device)
    raise InputError(
        f"hjprox: x is a {type(like).__module__}.{type(like).__name__}; expected a NumPy array or a torch tensor"
    )

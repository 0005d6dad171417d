"""Between the host's arrays and the flat float64 vectors that SciPy computes with."""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum.arrays import Array, describe, is_array, is_sparse, namespace, to_numpy
from infimum.errors import InputError


class Form:
    """Shape and dtype of a point, with the way there and back.

    Parameters
    ----------
    start : array
        NumPy, or torch on the CPU.
    name : str
        What messages call the solver.

    Raises
    ------
    InputError
        For an array that does not live on the host.
    """

    def __init__(self, start: Array, name: str) -> None:
        self.start = start
        self.plain = type(start) is np.ndarray and start.dtype == np.float64
        self.shape = tuple(start.shape)
        device = str(getattr(start, "device", "cpu"))
        if not is_array(start) or device != "cpu":
            raise InputError(
                f"{name} works on arrays in host memory, x0 is {describe(start)} on {device}; move x0 and the data of "
                "the problem there (x0.cpu()), or take a solver that runs on the device"
            )

    @property
    def note(self) -> str | None:
        """What is converted, for the result; None when nothing is."""
        if self.plain:
            return None
        kind = type(self.start).__module__.partition(".")[0]
        return (
            f"SciPy works on NumPy float64: points go to the functions as {kind} "
            f"{str(self.start.dtype).rpartition('.')[2]} and their results come back"
        )

    def flat(self, x: Array) -> np.ndarray:
        """A point, or what is like one, as a vector that nobody else holds."""
        return np.array(to_numpy(x), dtype=np.float64).reshape(-1)

    def point(self, v: np.ndarray) -> Array:
        """A vector in the form of the start. The caller must not change `v` afterwards."""
        if self.plain:
            return v.reshape(self.shape)
        if isinstance(self.start, np.ndarray):
            return v.astype(self.start.dtype).reshape(self.shape)
        return namespace(self.start).asarray(v.reshape(self.shape), dtype=self.start.dtype)


def matrix(data: Any) -> Any:
    """A matrix as float64: dense, or sparse where it is."""
    if is_sparse(data):
        return data.astype(np.float64)
    return np.asarray(to_numpy(data) if is_array(data) else data, dtype=np.float64)


def vector(data: Any) -> np.ndarray:
    """A vector as float64."""
    return np.asarray(to_numpy(data) if is_array(data) else data, dtype=np.float64).reshape(-1)

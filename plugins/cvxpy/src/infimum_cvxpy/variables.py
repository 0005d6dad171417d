"""Points as values of CVXPY variables, and copies of expressions on plain variables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from infimum.arrays import to_numpy
from infimum.errors import InputError


class Pieces:
    """Variables as pieces of one array: a single variable in its own shape, or several in a flat vector.

    Parameters
    ----------
    variables : sequence of cvxpy.Variable
        Plain ones, without attributes.
    starts : sequence of int, optional
        Where each begins in the packed vector, its entries in C order. None: the one variable is the whole point.
    size : int, optional
        Entries of the packed vector.
    """

    def __init__(
        self, variables: Sequence[cp.Variable], starts: Sequence[int] | None = None, size: int | None = None
    ) -> None:
        self.variables = tuple(variables)
        self.slices = None if starts is None else [slice(s, s + v.size) for s, v in zip(starts, variables, strict=True)]
        self.shape: tuple[int, ...] = self.variables[0].shape if size is None else (size,)

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """The piece of each variable, in its shape, of a NumPy point."""
        if self.slices is None:
            return [x]
        return [x[one].reshape(v.shape) for one, v in zip(self.slices, self.variables, strict=True)]

    def assign(self, x: Any) -> None:
        """Give the variables the values that they have at the point x."""
        host = np.asarray(to_numpy(x), dtype=np.float64)
        for variable, piece in zip(self.variables, self.split(host), strict=True):
            variable.save_value(piece)

    def gather(self, values: Sequence[np.ndarray], like: np.ndarray) -> np.ndarray:
        """`like`, a NumPy point, with the pieces of the variables replaced by `values`."""
        if self.slices is None:
            return values[0]
        out = like.copy()
        for piece, value in zip(self.slices, values, strict=True):
            out[piece] = value.reshape(-1)
        return out

    def views(self, x: Any) -> dict[int, Any]:
        """Expressions for the variables, by their ids, as pieces of the expression x of the whole point."""
        if self.slices is None:
            return {id(self.variables[0]): x}
        return {
            id(variable): cp.reshape(x[piece], variable.shape, order="C")
            for variable, piece in zip(self.variables, self.slices, strict=True)
        }


def plain(variables: Sequence[cp.Variable], parameters: Sequence[cp.Parameter]) -> dict[int, Any]:
    """Stand-ins by id: variables without attributes, parameters as constants of their present value.

    Raises
    ------
    InputError
        For variables that are boolean, integer or complex, and parameters without a value.
    """
    out: dict[int, Any] = {}
    for one in variables:
        for kind in ("boolean", "integer", "complex", "hermitian", "imag"):
            if one.attributes.get(kind):
                raise InputError(
                    f"variable '{one.name()}' is {kind}; expected real continuous variables "
                    "(solve the problem with CVXPY itself)"
                )
        out[id(one)] = cp.Variable(one.shape, name=one.name())
    for parameter in parameters:
        if parameter.value is None:
            raise InputError(f"parameter '{parameter.name()}' has no value; set its .value before from_cvxpy")
        out[id(parameter)] = cp.Constant(parameter.value)
    return out


def copied(one: Any, stand: Mapping[int, Any]) -> Any:
    """An expression or constraint with other leaves, by the ids of its own.

    Raises
    ------
    InputError
        For the atoms that CVXPY cannot copy.
    """
    try:
        return one.tree_copy(dict(stand))
    except (TypeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"'{one}' holds an atom that CVXPY cannot copy ({type(error).__name__}: {error}); state it without that"
        ) from error


def flat(x: Any) -> Any:
    """The entries of an expression in C order."""
    return x if x.ndim == 1 else cp.reshape(x, (math.prod(x.shape),), order="C")

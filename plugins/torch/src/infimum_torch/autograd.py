"""Derivatives by torch as an oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from infimum.arrays import Array
from infimum.exactness import Exactness
from infimum.functions.base import Function
from infimum.oracle import Oracle
from infimum_torch.derivatives import gradient_of, hvp_of, value_and_gradient_of


@dataclass(frozen=True)
class Autograd(Oracle):
    """Exact derivatives of a function that computes with torch.

    Each query evaluates the function once, on a tensor; value and gradient come from the same pass. NumPy points stay
    NumPy for the solver. `oracles: auto` takes this oracle only for functions that are marked, by an attribute
    `torch_value`: of others nobody knows whether they compute with torch. Where the host itself evaluates the function
    (for the record), it does so at points of the start's own kind; a function of tensors alone and a NumPy start go
    together as `infimum_torch.TorchFunction`.
    """

    kind: ClassVar[str] = "gradient"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ("value_and_gradient", "gradient", "hvp")
    exactness = Exactness.exact
    preference: ClassVar[int] = 5

    def volunteers(self, function: Any) -> bool:
        return getattr(function, "torch_value", None) is not None

    def bind(self, function: Any, rng: np.random.Generator) -> AutogradPart:
        return AutogradPart(function)

    @staticmethod
    def reference_functions() -> Mapping[str, Callable[[], Function]]:
        """A function that computes with tensors and arrays alike, with its derivatives written out."""

        def make() -> Function:
            return Function(
                lambda x: (x**4).sum() + (x * x).sum(),
                gradient=lambda x: 4 * x**3 + 2 * x,
                value_and_gradient=lambda x: (float((x**4).sum() + (x * x).sum()), 4 * x**3 + 2 * x),
                hvp=lambda x, v: (12 * x**2 + 2) * v,
            )

        return {"quartic": make}


class AutogradPart:
    """Has no state."""

    def __init__(self, function: Any) -> None:
        self._value: Callable[[torch.Tensor], Any] = function.value

    def value_and_gradient(self, x: Array) -> tuple[Any, Array]:
        return value_and_gradient_of(self._value, x)

    def gradient(self, x: Array) -> Array:
        return gradient_of(self._value, x)

    def hvp(self, x: Array, v: Array) -> Array:
        return hvp_of(self._value, x, v)

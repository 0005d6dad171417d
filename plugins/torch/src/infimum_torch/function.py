"""A function that computes with torch, as a function of infimum, for NumPy and torch points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from infimum.arrays import Array
from infimum.errors import InputError
from infimum.functions.base import Function
from infimum_torch.derivatives import as_tensor, back, gradient_of, hessian_of, hvp_of, scalar, value_and_gradient_of


class TorchFunction(Function):
    """A function written in torch, with exact derivatives by autograd.

    Points may be NumPy arrays, which then stay NumPy everywhere: the function gets a tensor, results come back as
    arrays. Points that are tensors keep their dtype and device.

    Parameters
    ----------
    value : callable
        `value(x) -> tensor with one entry` for a tensor x.
    batched : bool or callable, default False
        True: `torch.func.vmap` makes values at many points of it (no branches on numbers, no `.item()` inside). A
        callable gives them itself: `batched(X)` of shape (m, …) -> (m,).
    convex, lipschitz, strongly_convex, shape, extended
        As in `infimum.functions.Function`.

    Examples
    --------
    >>> import numpy as np, torch, infimum
    >>> from infimum_torch import TorchFunction
    >>> f = TorchFunction(lambda x: torch.logsumexp(x, 0) + (x * x).sum(), batched=True)
    >>> result = infimum.solve(f, np.zeros(3), solver="scipy.bfgs", seed=0)
    >>> type(result.x).__name__, [float(one) for one in np.round(result.x, 3)]
    ('ndarray', [-0.167, -0.167, -0.167])
    """

    def __init__(
        self,
        value: Callable[[torch.Tensor], torch.Tensor],
        *,
        batched: bool | Callable[[torch.Tensor], torch.Tensor] = False,
        **facts: Any,
    ) -> None:
        if not callable(value):
            raise InputError(f"TorchFunction({value!r}): expected a function of a tensor, got {type(value).__name__}")
        many = torch.func.vmap(value) if batched is True else batched or None

        def values(X: Array) -> Array:
            assert callable(many)
            with torch.no_grad():
                found: torch.Tensor = many(as_tensor(X))
            return back(found, X)

        def plain(x: Array) -> Any:
            with torch.no_grad():
                return scalar(value(as_tensor(x)), x)

        super().__init__(
            plain,
            values=values if many is not None else None,
            value_and_gradient=lambda x: value_and_gradient_of(value, x),
            gradient=lambda x: gradient_of(value, x),
            hvp=lambda x, v: hvp_of(value, x, v),
            hessian=lambda x: hessian_of(value, x),
            **facts,
        )
        self.torch_value = value

    def __repr__(self) -> str:
        return f"TorchFunction({getattr(self.torch_value, '__name__', type(self.torch_value).__name__)})"

"""Derivatives of a function of a tensor, at NumPy and torch points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from infimum.arrays import Array, describe
from infimum.errors import InputError

Value = Callable[[torch.Tensor], Any]


def as_tensor(x: Array) -> torch.Tensor:
    """A point as another tensor; of a NumPy array a copy, in aligned memory, since sums depend on alignment."""
    return torch.tensor(np.asarray(x, order="C")) if isinstance(x, np.ndarray) else x.detach()


def back(found: torch.Tensor, x: Array) -> Array:
    """A result in the kind of array that `x` is."""
    found = found.detach()
    return found.cpu().numpy() if isinstance(x, np.ndarray) else found


def scalar(found: Any, x: Array) -> Any:
    """A value: a number for NumPy points, a tensor (which nobody waits for) for torch points."""
    if not isinstance(found, torch.Tensor):
        return found
    return found.detach().item() if isinstance(x, np.ndarray) and not found.ndim else found.detach()


def _traced(value: Value, x: Array) -> tuple[torch.Tensor, torch.Tensor]:
    """A point that is watched, and the value there."""
    point = as_tensor(x).requires_grad_()  # A tensor of its own, which shares no requires_grad with x.
    try:
        with torch.enable_grad():
            found = value(point)
    except RuntimeError as error:
        if "numpy()" not in str(error):
            raise
        raise InputError(
            "torch.autograd: the function leaves torch for NumPy, where no derivatives are followed; write it with "
            f"torch alone ({error})"
        ) from error
    if not isinstance(found, torch.Tensor):
        raise InputError(
            f"torch.autograd: the function returned {describe(found)} for a tensor; it must compute with torch, and "
            "return a tensor with one entry"
        )
    if found.ndim:
        raise InputError(f"torch.autograd: the function returned {describe(found)}; expected one number: sum it")
    return point, found


def _slope(found: torch.Tensor, point: torch.Tensor, create_graph: bool = False) -> torch.Tensor:
    """The gradient; zero where the value does not depend on the point."""
    if not found.requires_grad:
        return torch.zeros_like(point)
    (slope,) = torch.autograd.grad(found, point, create_graph=create_graph, allow_unused=True)
    return torch.zeros_like(point) if slope is None else slope


def value_and_gradient_of(value: Value, x: Array) -> tuple[Any, Array]:
    """Value and gradient from one pass forward and one backward."""
    point, found = _traced(value, x)
    return scalar(found, x), back(_slope(found, point), x)


def gradient_of(value: Value, x: Array) -> Array:
    """The gradient."""
    return value_and_gradient_of(value, x)[1]


def hvp_of(value: Value, x: Array, v: Array) -> Array:
    """The Hessian times `v`, by differentiating twice."""
    point, found = _traced(value, x)
    with torch.enable_grad():
        slope = _slope(found, point, create_graph=True)
        if not slope.requires_grad:
            return back(torch.zeros_like(point), x)
        product = (slope * as_tensor(v)).sum()
    return back(_slope(product, point), x)


def hessian_of(value: Value, x: Array) -> Array:
    """The Hessian, (n, n) for a point with n entries: all products in one vectorized pass."""
    point, found = _traced(value, x)
    n = point.numel()
    with torch.enable_grad():
        slope = _slope(found, point, create_graph=True)
    if not slope.requires_grad:
        return back(torch.zeros(n, n, dtype=point.dtype, device=point.device), x)
    unit = torch.eye(n, dtype=point.dtype, device=point.device).reshape(n, *point.shape)
    (rows,) = torch.autograd.grad(slope, point, unit, is_grads_batched=True, allow_unused=True)
    if rows is None:
        rows = torch.zeros(n, n, dtype=point.dtype, device=point.device)
    return back(rows.reshape(n, n), x)

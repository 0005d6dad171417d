"""Modules as points: copies, plain data, devices."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from infimum.errors import InputError, did_you_mean


def tensors_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers (those outside of the state dictionary too) by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def clone(module: nn.Module) -> nn.Module:
    """A copy without gradients.

    Raises
    ------
    InputError
        If the module cannot be copied, such as one that keeps the result of a computation.
    """
    gradients = [(p, p.grad) for p in module.parameters()]
    for p, _ in gradients:
        p.grad = None
    try:
        return copy.deepcopy(module)
    except Exception as error:
        raise InputError(
            f"{type(module).__name__} cannot be copied ({error}); give a function without arguments that makes it"
        ) from error
    finally:
        for p, gradient in gradients:
            p.grad = gradient


def dump(module: nn.Module) -> dict[str, torch.Tensor]:
    """The tensors of a module, which they remain."""
    return {name: one.detach() for name, one in tensors_of(module).items()}


def fill(module: nn.Module, tree: Mapping[str, Any], what: str = "x0") -> nn.Module:
    """Write values into the tensors of a module, in place; a shared one may stand under each of its names.

    Raises
    ------
    InputError
        For a name that the module lacks, one that is missing (a buffer may be), or another shape.
    """
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    for name in tree:
        if name not in own:
            raise InputError(f"{what}: {type(module).__name__} has no tensor '{name}'; {did_you_mean(name, own)}")
    given = {id(own[name]) for name in tree}
    for name, parameter in module.named_parameters():
        if id(parameter) not in given:
            raise InputError(f"{what}: '{name}' is missing; expected all parameters of the module")
    with torch.no_grad():
        for name, found in tree.items():
            value, tensor = torch.as_tensor(found), own[name]
            if value.shape != tensor.shape:
                raise InputError(f"{what}: '{name}' is {tuple(value.shape)}; expected {tuple(tensor.shape)}")
            tensor.copy_(value)
    return module


def require_castable(module: nn.Module, dtype: torch.dtype | None) -> None:
    """Raise `InputError` for parameters without a shape, and where a cast to `dtype` would drop imaginary parts."""
    for name, one in tensors_of(module).items():
        if torch.nn.parameter.is_lazy(one):
            raise InputError(f"module: '{name}' has no shape yet; call the module once on a batch of inputs before")
        if dtype is not None and one.is_complex():
            raise InputError(f"dtype={str(dtype).removeprefix('torch.')!r} would drop the imaginary part of '{name}'")


def device_of(module: nn.Module, wanted: str | torch.device | None) -> torch.device:
    """The device to train on: the one asked for, else the one that all tensors of the module are on.

    Raises
    ------
    InputError
        For a device that is not there, a module on several devices or on none (meta).
    """
    found = {name: one.device for name, one in tensors_of(module).items()}
    meta = next((name for name, one in found.items() if one.type == "meta"), None)
    if meta is not None:
        raise InputError(f"module: '{meta}' is on device meta, where it has no values; make it with to_empty(device=…)")
    if wanted is not None:
        return _available(wanted)
    kinds = {str(one) for one in found.values()}
    if len(kinds) > 1:
        listed = ", ".join(sorted(kinds))
        raise InputError(f"module: its tensors are on several devices ({listed}); move it to one, or say device=")
    return next(iter(found.values()), torch.device("cpu"))


def _available(wanted: str | torch.device) -> torch.device:
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"device={str(wanted)!r} is not available here ({said})") from None
    if device.type == "meta":
        raise InputError("device='meta': nothing is computed there; expected 'cpu', 'cuda', …")
    return torch.empty(0, device=device).device


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """The module in evaluation mode; afterwards every part of it is in the mode that it was in."""
    modes = [(one, one.training) for one in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for one, mode in modes:
            one.training = mode


def size_words(module: nn.Module) -> str:
    """Number of parameters, dtype and device, for plans."""
    parameters = list(module.parameters())
    n = sum(p.numel() for p in parameters)
    kinds = sorted({str(p.dtype).removeprefix("torch.") for p in parameters})
    places = sorted({str(p.device) for p in parameters})
    return f"{type(module).__name__}, {n} parameters, {', '.join(kinds)}, {', '.join(places)}"

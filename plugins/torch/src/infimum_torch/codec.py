"""State dictionaries of torch as trees that a checkpoint can hold, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

_ITEMS, _TUPLE, _TORCH = "__items__", "__tuple__", "__torch__"


def encode(tree: Any) -> Any:
    """The tree with string keys and lists only; what it was before is written beside."""
    if isinstance(tree, Mapping):
        if type(tree) is not Counter and all(isinstance(key, str) and not key.startswith("__") for key in tree):
            return {key: encode(value) for key, value in tree.items()}
        kind = "counter" if isinstance(tree, Counter) else "dict"
        return {_ITEMS: [[encode(key), encode(value)] for key, value in tree.items()], "kind": kind}
    if isinstance(tree, tuple):
        return {_TUPLE: [encode(value) for value in tree]}
    if isinstance(tree, list):
        return [encode(value) for value in tree]
    if isinstance(tree, torch.dtype | torch.device):
        return {_TORCH: type(tree).__name__, "name": str(tree).removeprefix("torch.")}
    return tree


def decode(tree: Any) -> Any:
    """What `encode` was given."""
    if isinstance(tree, Mapping):
        if _ITEMS in tree:
            items = {decode(key): decode(value) for key, value in tree[_ITEMS]}
            return Counter(items) if tree["kind"] == "counter" else items
        if _TUPLE in tree:
            return tuple(decode(value) for value in tree[_TUPLE])
        if _TORCH in tree:
            name = tree["name"]
            return getattr(torch, name) if tree[_TORCH] == "dtype" else torch.device(name)
        return {key: decode(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [decode(value) for value in tree]
    # In memory of torch's own, which is aligned: sums of what a file was read into may differ in their last bits.
    return tree.clone() if isinstance(tree, torch.Tensor) else tree


def optimizer_state(optimizer: torch.optim.Optimizer) -> Any:
    """The state of an optimizer as a plain tree."""
    return encode(optimizer.state_dict())


def restore_optimizer(optimizer: torch.optim.Optimizer, tree: Any) -> None:
    """Take up what `optimizer_state` gave, bit for bit."""
    state = decode(tree)
    optimizer.load_state_dict(state)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = [k for group in state["param_groups"] for k in group["params"]]
    # torch casts floating states to the dtype of their parameter, which loses bits of those kept in another one.
    for k, parameter in zip(numbers, parameters, strict=True):
        for name, value in state["state"].get(k, {}).items():
            held = optimizer.state[parameter].get(name)
            if isinstance(value, torch.Tensor) and isinstance(held, torch.Tensor) and held.dtype != value.dtype:
                optimizer.state[parameter][name] = value.to(held.device, copy=True)

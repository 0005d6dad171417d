"""The losses of a torch module for many values of one parameter entry each, evaluated together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import nn
from torch.func import functional_call, vmap

from infimum.errors import InputError
from infimum_cocd.linear_stack import LinearStack, linear_stack

BATCH_BYTES = 16 * 2**20
"""Bound on the bytes of one chunk of queries, as far as they are known; one query is always allowed."""
Loss = Callable[[Any, Any], torch.Tensor]
Path = Literal["auto", "rank-one", "vmap"]


def module_losses(module: nn.Module, loss_fn: Loss, inputs: Any, targets: Any, path: Path = "auto") -> ModuleLosses:
    """A closure for `CoCD.step` that evaluates all queries of a step together.

    Parameters
    ----------
    module : torch.nn.Module
        In evaluation mode if it has dropout or batch normalization.
    loss_fn : callable
        `loss_fn(module(inputs), targets)` is the loss, a tensor with one entry.
    inputs : tensor or tuple
        One batch. A tuple is handed over as several arguments.
    targets : object
        What `loss_fn` gets beside the outputs.
    path : {"auto", "rank-one", "vmap"}, default "auto"
        "rank-one" serves stacks of `nn.Linear`: one weight moves one column of one layer, so a query starts there and
        costs O(batch x next width) in the next layer. "vmap" serves any module: the tensor that owns the entries is
        batched, all others are shared. "auto" takes the first one that fits.

    Returns
    -------
    ModuleLosses
        Called, it gives the loss. Attribute `path` says which way was taken.

    Raises
    ------
    InputError
        For a module whose queries would differ by chance (dropout or batch normalization in training mode), or
        "rank-one" for a module that is no stack of linear layers.

    Examples
    --------
    >>> import torch
    >>> from infimum_cocd import CoCD, module_losses
    >>> model = torch.nn.Linear(3, 2)
    >>> optimizer = CoCD(model.parameters(), lr=0.1)
    >>> closure = module_losses(model, torch.nn.functional.cross_entropy, torch.ones(4, 3), torch.zeros(4).long())
    >>> closure.path
    'rank-one'
    >>> optimizer.step(closure) > optimizer.step(closure)
    True
    """
    return ModuleLosses(module, loss_fn, inputs, targets, path)


class ModuleLosses:
    """See `module_losses`. The parameters are never changed; they are read anew at each call."""

    def __init__(self, module: nn.Module, loss_fn: Loss, inputs: Any, targets: Any, path: Path = "auto") -> None:
        if path not in ("auto", "rank-one", "vmap"):
            raise InputError(f"module_losses: path={path!r}; expected 'auto', 'rank-one' or 'vmap'")
        _refuse_random(module)
        self.module, self.loss_fn, self.targets = module, loss_fn, targets
        self.inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        self._names = {id(p): name for name, p in module.named_parameters()}
        self._stack: LinearStack | None = None if path == "vmap" else linear_stack(module, self.inputs)
        if path == "rank-one" and self._stack is None:
            raise InputError(
                f"module_losses: path='rank-one' needs a stack of nn.Linear layers with elementwise activations and "
                f"inputs of shape (batch, features), {type(module).__name__} is none; take path='auto'"
            )
        self.path = "vmap" if self._stack is None else "rank-one"

    @torch.no_grad()
    def __call__(self) -> torch.Tensor:
        """The loss at the present parameters."""
        if self._stack is not None:
            return self.loss_fn(self._stack.forward(), self.targets)
        return self.loss_fn(self.module(*self.inputs), self.targets)

    @torch.no_grad()
    def perturbed(self, parameter: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """The losses with one entry of a parameter replaced, one at a time.

        Parameters
        ----------
        parameter : tensor
            One of the module's.
        index : tensor of int, shape (m,)
            Flat positions.
        values : tensor, shape (m,)
            What stands there instead.

        Returns
        -------
        tensor, shape (m,)
        """
        name = self._names.get(id(parameter))
        if name is None:
            raise InputError(
                f"the optimizer has a parameter of shape {tuple(parameter.shape)} that is none of "
                f"{type(self.module).__name__}'s; pass a plain closure, or the module that owns all parameters"
            )
        if self._stack is not None:
            rows = self._stack.rows(parameter, BATCH_BYTES)
            outputs = self._stack.perturbed
            many = vmap(self._of_outputs)
            found = [many(outputs(parameter, i, v)) for i, v in _chunks(index, values, rows)]
        else:
            found = self._by_vmap(name, parameter, index, values)
        losses = torch.cat(found).reshape(-1)
        if losses.numel() != index.numel():
            raise InputError(f"loss_fn returned {losses.numel() // index.numel()} numbers; expected one, the loss")
        return losses

    def _of_outputs(self, outputs: torch.Tensor) -> torch.Tensor:
        return self.loss_fn(outputs, self.targets)

    def _by_vmap(
        self, name: str, parameter: torch.Tensor, index: torch.Tensor, values: torch.Tensor
    ) -> list[torch.Tensor]:
        given = sum(one.numel() for one in self.inputs if isinstance(one, torch.Tensor))
        # Activations are taken to be eight times as large as the inputs.
        rows = max(1, BATCH_BYTES // (parameter.element_size() * (parameter.numel() + 8 * given)))

        def loss(tensor: torch.Tensor) -> torch.Tensor:
            return self.loss_fn(functional_call(self.module, {name: tensor}, self.inputs), self.targets)

        # Shared batches of a tensor with one entry changed in each.
        many = vmap(loss, randomness="same")
        found = []
        for i, v in _chunks(index, values, rows):
            tensors = parameter.detach().reshape(1, -1).repeat(len(i), 1)
            tensors[torch.arange(len(i), device=i.device), i] = v
            found.append(many(tensors.reshape(len(i), *parameter.shape)))
        return found


def _chunks(index: torch.Tensor, values: torch.Tensor, rows: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    return zip(torch.split(index, rows), torch.split(values, rows), strict=True)


def _refuse_random(module: nn.Module) -> None:
    """Queries of one step must see the same function."""
    for name, one in module.named_modules():
        if not one.training:
            continue
        if isinstance(one, nn.modules.dropout._DropoutNd) and one.p > 0:
            why = "each query would see another mask"
        elif isinstance(one, nn.modules.batchnorm._NormBase) and one.track_running_stats:
            why = "each query would change its statistics"
        else:
            continue
        raise InputError(
            f"module_losses: '{name or type(module).__name__}' ({type(one).__name__}) is in training mode: {why}; "
            "call module.eval()"
        )

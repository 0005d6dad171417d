"""What a training problem is made of: the loss of a module on a batch, and where the batches come from."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from infimum.arrays import describe
from infimum.errors import InputError, did_you_mean
from infimum.exactness import Exactness
from infimum.vocabulary import CAPABILITIES, Capability
from infimum_torch.batches import Stream, Tensors, make_stream, on_device, once, rows_of

Loss = Callable[[Any, Any], torch.Tensor]
Objective = Callable[[nn.Module, Any], torch.Tensor]

CAPABILITIES.setdefault(
    "forward", Capability("forward(module, batch) -> loss of the batch, a tensor without a graph", ("forward",))
)
CAPABILITIES.setdefault(
    "backward",
    Capability("backward(module, batch) -> loss of the batch; fills the gradients", ("forward", "backward")),
)
CAPABILITIES.setdefault("samples", Capability("samples(m): m samples are about to be used", ("samples",), points=int))


class TrainingLoss:
    """The loss of a module on batches of data; the term `loss` of a training problem.

    Parameters
    ----------
    objective : callable
        `objective(module, batch)` is the loss, a tensor with one entry.
    source : object
        Data as made by `as_source`.
    device : torch.device
    dtype : torch.dtype, optional
        Of floating tensors in batches; they stay as they are without it.
    """

    capabilities = frozenset({"forward", "backward", "samples"})

    def __init__(self, objective: Objective, source: Any, device: torch.device, dtype: torch.dtype | None) -> None:
        self.objective, self.source, self.device, self.dtype = objective, source, device, dtype
        self._seen = False
        self._listed: tuple[Callable[[], nn.Module | None], list[nn.Parameter]] = (_nothing, [])
        whole = isinstance(source, Tensors) and source.batch_size == source.n
        self.exactness = Exactness.exact if whole else Exactness.stochastic

    def make_stream(self, seed: int) -> Stream:
        """Batches of one epoch after another, in an order that depends on the seed."""
        return make_stream(self.source, seed, self.device, self.dtype)

    def samples(self, m: int) -> None:
        """Told before a batch of `m` samples is used; called so that they are counted."""

    def forward(self, module: nn.Module, batch: Any) -> torch.Tensor:
        """The loss of a batch, without a graph."""
        with torch.no_grad():
            loss = self.objective(module, batch)
        if not self._seen:
            require_scalar(loss)
        return loss

    def backward(self, module: nn.Module, batch: Any) -> torch.Tensor:
        """The loss of a batch; the gradients of the parameters are those of this loss."""
        for parameter in self._parameters(module):
            parameter.grad = None
        with torch.enable_grad():
            loss = self.objective(module, batch)
            if not self._seen:
                require_scalar(loss)
                _require_graph(loss)
                self._seen = True
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _parameters(self, module: nn.Module) -> list[nn.Parameter]:
        """The parameters of a module, listed once: walking through a module takes longer than clearing gradients."""
        of, listed = self._listed
        if of() is not module:
            listed = list(module.parameters())
            self._listed = weakref.ref(module), listed
        return listed

    def __repr__(self) -> str:
        return f"TrainingLoss({getattr(self.objective, '__name__', type(self.objective).__name__)})"


def _nothing() -> None:
    return None


def require_scalar(loss: Any) -> None:
    """Raise `InputError` unless a loss is one real floating-point number in a tensor."""
    if not isinstance(loss, torch.Tensor):
        raise InputError(f"the loss is a {type(loss).__name__}; expected a tensor with one entry")
    if loss.ndim:
        raise InputError(
            f"the loss is no scalar but {describe(loss)}; expected a tensor without axes: reduce it, with its mean() "
            "or reduction='mean'"
        )
    if not loss.dtype.is_floating_point:
        raise InputError(f"the loss is {describe(loss)}; expected a real floating-point number")


def _require_graph(loss: torch.Tensor) -> None:
    if not loss.requires_grad:
        raise InputError(
            "the loss does not depend on any parameter that requires a gradient: are all parameters frozen, or is the "
            "output detached?"
        )


class Supervised:
    """`loss(module(inputs), targets)` of batches `(inputs, targets)`.

    Parameters
    ----------
    loss : callable
        Of outputs and targets. A module, such as `nn.CrossEntropyLoss()`, must have no parameters of its own.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.__name__ = getattr(loss, "__name__", type(loss).__name__)

    def __call__(self, module: nn.Module, batch: Any) -> torch.Tensor:
        if not (isinstance(batch, list | tuple) and len(batch) == 2):
            kind = f"has {len(batch)} part(s)" if isinstance(batch, list | tuple) else f"is a {type(batch).__name__}"
            raise InputError(
                f"data: a batch {kind}; a loss of (outputs, targets) takes batches (inputs, targets): give "
                "objective=, a function of (module, batch), for others; arrays go as a tuple (inputs, targets)"
            )
        inputs, targets = batch
        return self.loss(module(inputs), targets)


def as_objective(loss: Any, objective: Any) -> Objective:
    """The loss of a module on a batch, from whichever of the two options was given."""
    if (loss is None) == (objective is None):
        raise InputError("give either loss=, a function of (outputs, targets), or objective=, of (module, batch)")
    given, name = (loss, "loss") if objective is None else (objective, "objective")
    if isinstance(given, str):
        given = _by_name(given, name)
    if not callable(given):
        raise InputError(f"{name}: expected a function or the name of one in torch.nn.functional, got {given!r}")
    return Supervised(given) if objective is None else given


def _by_name(name: str, option: str) -> Any:
    known = [one for one in dir(nn.functional) if one.endswith("_loss") or one in _OTHERS]
    if option == "objective" or name not in known:
        raise InputError(f"{option}='{name}': no such loss in torch.nn.functional; {did_you_mean(name, known)}")
    return getattr(nn.functional, name)


_OTHERS = ("cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")


def mean_loss(
    objective: Objective, source: Any, module: nn.Module, device: torch.device, dtype: torch.dtype | None
) -> float:
    """The mean of the loss over all batches of a source, weighted by their sizes.

    Raises
    ------
    InputError
        For a loss that is no scalar, or a source without a batch.
    """
    total: Any = 0.0
    rows = 0
    with torch.no_grad():
        for batch in once(source):
            moved = on_device(batch, device, dtype)
            loss = objective(module, moved)
            require_scalar(loss)
            m = rows_of(moved)
            total, rows = total + m * loss.double(), rows + m
    if rows == 0:
        raise InputError("the loader is empty: it gave no batch to evaluate the loss on")
    return float(total / rows)

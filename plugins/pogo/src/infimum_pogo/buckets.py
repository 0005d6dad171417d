"""Parameters of equal shape as one batch: gathered before a step, written back after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from infimum.errors import InputError
from infimum_pogo.checks import lies_in_rows
from infimum_pogo.small import lends, plain

Parameter = torch.Tensor
Flatten = Callable[[torch.Tensor], torch.Tensor]


def conv_rows(weight: torch.Tensor) -> torch.Tensor:
    """A convolution kernel (out, in, …) as one matrix (1, out, in * …), a view: one row per output channel."""
    return weight.view(1, weight.shape[0], -1)


def as_matrices(parameter: torch.Tensor, flatten: Flatten | None, what: str) -> torch.Tensor:
    """A parameter as matrices (p, n) or (b, p, n), a view.

    Raises
    ------
    InputError
        If it has fewer than two axes, or more than three without a flatten function, or that fails or makes no view.
    """
    if flatten is None:
        if parameter.ndim in (2, 3):
            return parameter
        shape = tuple(parameter.shape)
        remedy = (
            "pass flatten=infimum_pogo.conv_rows for a convolution kernel, or a function of your own"
            if parameter.ndim > 3
            else "give it to an ordinary optimizer, or reshape it into matrices"
        )
        raise InputError(f"{what} is {shape}; expected one matrix (p, n) or a batch (b, p, n): {remedy}")
    try:
        view = flatten(parameter)
    except RuntimeError as error:
        raise InputError(
            f"{what}: flatten failed for shape {tuple(parameter.shape)}, strides {parameter.stride()} ({error}); "
            "make the parameter contiguous, or flatten it along its own memory"
        ) from error
    same = (
        isinstance(view, torch.Tensor)
        and view.untyped_storage().data_ptr() == parameter.untyped_storage().data_ptr()
        and view.numel() == parameter.numel()
    )
    if not same:
        raise InputError(f"{what}: flatten must return a view of all of the parameter, such as weight.view(1, n, -1)")
    if view.ndim not in (2, 3):
        raise InputError(f"{what}: flatten gave {tuple(view.shape)}; expected one matrix (p, n) or a batch (b, p, n)")
    return view


def on_rows(matrices: torch.Tensor, rows: bool | str, what: str) -> torch.Tensor:
    """Matrices as a batch (b, p, n) with orthonormal rows, a view."""
    wide = matrices if lies_in_rows(tuple(matrices.shape), rows, what) else matrices.mT
    return wide.unsqueeze(0) if wide.ndim == 2 else wide


def laid_like(gradient: torch.Tensor, parameter: Parameter) -> torch.Tensor:
    """The gradient with the strides of its parameter, so that what makes a view of one does so of the other."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def _places(parameters: list[Parameter]) -> list[Any]:
    """Where parameters lie in memory, and how."""
    # A thousand are asked at each step: each is touched once, and strides, slow to tell, are asked for if need be.
    return [p.data_ptr() if p.is_contiguous() else (p.data_ptr(), p.stride()) for p in parameters]


class Bucket:
    """Parameters that move together, and what their base direction remembers, all as one batch.

    A single parameter is its own batch, without copies. What is remembered lives in one tensor per kind, of which
    `state[p]` holds views.
    """

    def __init__(self, parameters: list[Parameter], places: list[int], group: dict[str, Any], states: Any) -> None:
        self.parameters, self.places, self.group = parameters, places, group
        self.states: list[dict[str, Any]] = [states[p] for p in parameters]
        self.taken = int(self.states[0].get("step", 0))
        # One count for all: a step of a thousand parameters must not write a thousand numbers.
        self.step = torch.tensor(self.taken)
        for one in self.states:
            one["step"] = self.step
        self.flatten, self.rows = group["flatten"], group["rows"]
        self.single = len(parameters) == 1
        self._kept: dict[str, torch.Tensor] = {}
        first = self._matrices(parameters[0].detach())
        self.form, self.flat = tuple(first.shape), first.ndim == 2
        self.dtype, self.device = first.dtype, first.device
        self.counts = [1 if self.flat else int(first.shape[0])] * len(parameters)
        self._places = _places(parameters)
        # Views of the parameters; while they are kept, memory that was given up cannot come back at the same address.
        self.weights = [self._matrices(one.detach()) for one in parameters]
        if not self.single:
            # Contiguous in the layout of the parameters, so that gathering is one call.
            self.raw = first.new_empty(self._batch())
            self.slopes = first.new_empty(self._batch())
            self.X, self.G = (on_rows(one, self.rows, "bucket") for one in (self.raw, self.slopes))
            self.pieces = self._pieces(self.raw)
            # On a CPU small copies cost what their dispatch costs: NumPy's is a fifth of torch's.
            lent = self.pieces, self.weights
            self.lent = [tuple(map(plain, both)) for both in zip(*lent, strict=True)] if lends(first) else None

    def _batch(self) -> tuple[int, ...]:
        return (sum(self.counts), *self.form[-2:])

    def _matrices(self, of: torch.Tensor) -> torch.Tensor:
        return as_matrices(of, self.flatten, "parameter")

    def _pieces(self, whole: torch.Tensor) -> list[torch.Tensor]:
        """The parts of a batch that belong to the parameters, in the shapes of their matrices."""
        return list(whole.unbind(0) if self.flat else torch.split(whole, self.counts))

    def _join(self, parts: list[torch.Tensor], whole: torch.Tensor) -> None:
        if self.flat:
            torch.stack(parts, out=whole)
        else:
            torch.cat(parts, out=whole)

    def stale(self, states: Any) -> bool:
        """Whether parameters lie elsewhere now (`p.data = …`, `module.to`), or what they remembered was dropped."""
        first = self.parameters[0]
        if first.dtype is not self.dtype or first.device != self.device or states.get(first) is not self.states[0]:
            return True
        return _places(self.parameters) != self._places

    def gather(self, gradients: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """The matrices and their gradients, picked from those of the group, as two batches (b, p, n)."""
        if len(gradients) != len(self.places):
            gradients = [gradients[k] for k in self.places]
        if self.flatten is not None:
            both = zip(gradients, self.parameters, strict=True)
            gradients = [self._matrices(laid_like(one, p)) for one, p in both]
        if self.single:
            return on_rows(self.weights[0], self.rows, "parameter"), on_rows(gradients[0], self.rows, "gradient")
        self._join(self.weights, self.raw)
        self._join(gradients, self.slopes)
        return self.X, self.G

    def scatter(self) -> None:
        """Write the batch back into the parameters."""
        if self.single:
            return
        if self.lent is None:
            torch._foreach_copy_(self.weights, self.pieces)
            return
        for piece, weight in self.lent:
            weight[...] = piece
        torch.autograd.graph.increment_version(self.parameters)

    def advance(self) -> None:
        """Count a step."""
        self.taken += 1
        self.step.fill_(self.taken)

    def remembered(self, name: str, per_matrix: bool) -> torch.Tensor:
        """What is remembered under a name as one batch, which then lives on in views in the states."""
        if name not in self._kept:
            self._kept[name] = self._collect(name, per_matrix)
        return self._kept[name]

    def _collect(self, name: str, per_matrix: bool) -> torch.Tensor:
        if per_matrix:
            real = torch.empty(0, dtype=self.dtype).abs().dtype
            whole = torch.zeros(sum(self.counts), dtype=real, device=self.device)
            pieces = list(torch.split(whole, self.counts))
        else:
            whole = torch.zeros(self._batch(), dtype=self.dtype, device=self.device)
            pieces = self._pieces(whole)
        for state, piece in zip(self.states, pieces, strict=True):
            if name in state:
                piece.copy_(state[name].view(piece.shape))
            state[name] = piece
        return whole if per_matrix else on_rows(whole, self.rows, "bucket")


def bucketed(group: dict[str, Any], present: tuple[bool, ...], states: Any, apart: bool) -> list[Bucket]:
    """The parameters with gradients by shape, dtype, device and age, each kind one bucket; or each its own."""
    kinds: dict[Any, list[int]] = {}
    for k, (p, here) in enumerate(zip(group["params"], present, strict=True)):
        if here:
            shape = tuple(as_matrices(p.detach(), group["flatten"], "parameter").shape)
            kind = (shape, p.dtype, p.device, int(states[p].get("step", 0)), k if apart else -1)
            kinds.setdefault(kind, []).append(k)
    return [Bucket([group["params"][k] for k in places], places, group, states) for places in kinds.values()]

"""The optimizers of torch.optim as solvers, made from their signatures."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal

import torch
from annotated_types import Ge, Gt, Lt

from infimum_torch.solver import ParameterGroup, TorchSolver

LEFT_OUT = frozenset({"self", "params", "maximize", "differentiable", "capturable"})
"""Not options: `maximize` is the problem's sense; steps are neither differentiated nor captured in graphs."""
_SHARE = Annotated[float, Ge(0), Lt(1)]
TYPES: Mapping[str, Any] = {
    "lr": Annotated[float, Ge(0)],
    "eps": Annotated[float, Ge(0)],
    "weight_decay": Annotated[float, Ge(0)],
    "lr_decay": Annotated[float, Ge(0)],
    "initial_accumulator_value": Annotated[float, Ge(0)],
    "betas": tuple[_SHARE, _SHARE],
    "momentum": Annotated[float, Ge(0)],
    "dampening": float,
    "rho": Annotated[float, Ge(0), Lt(1)],
    "alpha": Annotated[float, Ge(0)],
    "lambd": Annotated[float, Ge(0)],
    "t0": Annotated[float, Ge(0)],
    "d": Annotated[float, Ge(1)],
    "etas": tuple[Annotated[float, Gt(0), Lt(1)], Annotated[float, Gt(1)]],
    "step_sizes": tuple[Annotated[float, Gt(0)], Annotated[float, Gt(0)]],
    "momentum_decay": Annotated[float, Ge(0)],
    "max_iter": Annotated[int, Ge(1)],
    "max_eval": Annotated[int, Ge(1)] | None,
    "tolerance_grad": Annotated[float, Ge(0)],
    "tolerance_change": Annotated[float, Ge(0)],
    "history_size": Annotated[int, Ge(1)],
    "line_search_fn": Literal["strong_wolfe"] | None,
    "ns_steps": Annotated[int, Ge(1)],
    "adjust_lr_fn": Literal["original", "match_rms_adamw"] | None,
}
"""Types of options with their bounds; others are read from the signature."""
SPECIAL: Mapping[tuple[str, str], Any] = {
    ("Adafactor", "eps"): tuple[Annotated[float, Gt(0)] | None, Annotated[float, Gt(0)]],
    ("SGD", "nesterov"): bool,
}
_SPARSE = {"use": "python:infimum_torch.samples:sparse_problem"}
_MATRIX = {"use": "python:infimum_torch.samples:matrix_problem"}
EXTRA: Mapping[str, Mapping[str, Any]] = {
    "LBFGS": {"closure": True, "examples": ({"max_iter": 4}, {"line_search_fn": "strong_wolfe", "max_iter": 4})},
    "SparseAdam": {"families": ("training",), "reference_problems": (_SPARSE,)},
    "Muon": {"families": ("training",), "reference_problems": (_MATRIX,)},
}
"""What class attributes of a solver differ from the base's."""


def optimizer_names() -> list[str]:
    """The optimizers that this torch has."""
    found = inspect.getmembers(torch.optim, inspect.isclass)
    return sorted(n for n, one in found if issubclass(one, torch.optim.Optimizer) and one is not torch.optim.Optimizer)


@cache
def solver_class(name: str) -> type[TorchSolver]:
    """The solver that is the optimizer `torch.optim.NAME`.

    Its options are the optimizer's parameters, under their names and with their defaults, but for those in `LEFT_OUT`.
    """
    optimizer: type[torch.optim.Optimizer] = getattr(torch.optim, name)
    hints = typing.get_type_hints(optimizer.__init__)
    options = []
    for one in inspect.signature(optimizer.__init__).parameters.values():
        if one.name not in LEFT_OUT:
            kind = SPECIAL.get((name, one.name), TYPES.get(one.name)) or _plain(hints[one.name])
            options.append((one.name, kind, dataclasses.field(default=_as(kind, one.default))))

    def make(self: Any, groups: Sequence[ParameterGroup]) -> torch.optim.Optimizer:
        given = {option: getattr(self, option) for option, *_ in options}
        made: torch.optim.Optimizer = optimizer([group.options() for group in groups], **given)
        return made

    body = {
        "make": make,
        "__module__": __name__,
        "__doc__": _docstring(optimizer, options),
        "examples": ({},),
        **EXTRA.get(name, {}),
    }
    return dataclasses.make_dataclass(name, options, bases=(TorchSolver,), namespace=body, frozen=True)


def _as(kind: Any, default: Any) -> Any:
    """The default as an option of that type has it: torch writes some numbers as integers."""
    bare = typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind
    return float(default) if bare is float else default


def _plain(hint: Any) -> Any:
    """A type without tensors: numbers only."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kept = tuple(one for one in typing.get_args(hint) if one is not torch.Tensor)
        return kept[0] if len(kept) == 1 else typing.Union[kept]  # noqa: UP007
    return hint


_ENTRY = re.compile(r"^ {4,8}(\w+) \(([^)]*(?:\([^)]*\))?[^)]*)\)\s*:\s*(.*)$")


def _torch_docs(optimizer: type) -> dict[str, str]:
    """What torch says of each option, without markup."""
    found: dict[str, list[str]] = {}
    at: list[str] | None = None
    for line in (optimizer.__doc__ or "").splitlines():
        entry = _ENTRY.match(line)
        if entry:
            at = found.setdefault(entry[1], [entry[3]])
        elif not line.strip() or not line.startswith(" " * 8):
            at = None
        elif at is not None:
            at.append(line.strip())
    return {name: _without_markup(" ".join(lines)) for name, lines in found.items()}


def _without_markup(text: str) -> str:
    text = re.sub(r":\w+:`([^`]*)`", r"\1", text)
    return re.sub(r"\s+", " ", text.replace("``", "").replace("`", "")).strip().rstrip(".,") + "."


def _docstring(optimizer: type, options: Sequence[tuple[str, Any, Any]]) -> str:
    told = _torch_docs(optimizer)
    lines = [f"`torch.optim.{optimizer.__name__}`; its options are torch's own.", "", "Parameters", "----------"]
    for name, _, option in options:
        lines += [f"{name} : default {option.default!r}", f"    {told.get(name) or OWN_WORDS.get(name, 'See torch.')}"]
    return "\n".join(lines)


OWN_WORDS = {
    "decoupled_weight_decay": "Whether weight decay is applied to the parameters rather than to the gradient.",
    "foreach": "Whether one call serves many parameters; torch chooses by default.",
    "fused": "Whether one kernel makes the whole step; torch chooses by default.",
}


def __getattr__(name: str) -> Any:
    # One class for each optimizer, made at first use.
    if name in optimizer_names():
        return solver_class(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

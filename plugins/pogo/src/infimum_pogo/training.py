"""POGO as an optimizer of modules in training: for the parameters under a Stiefel constraint."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import torch
from annotated_types import Ge, Gt, Lt

from infimum.errors import InputError
from infimum.solver import Metric
from infimum_pogo.kernel import SAFE
from infimum_pogo.optimizer import POGO, conv_rows
from infimum_torch.solver import ParameterGroup, State, TorchSolver

NAME = "pogo.optimizer"
ROWS: Mapping[str, Any] = {"rows": True, "columns": False, "auto": "auto"}
Share = Annotated[float, Ge(0), Lt(1)]


def _of_pogo(name: str) -> Callable[[State], Any]:
    def get(state: State) -> Any:
        known = [one.optimizer for one in state.members if isinstance(one.optimizer, POGO)]
        return getattr(known[0].diagnostics(), name) if known else None

    return get


@dataclass(frozen=True)
class PogoOptimizer(TorchSolver):
    """Train parameters that a `pogo.stiefel` constraint holds orthonormal, each step by POGO.

    For problems of the family `Training`. Parameters that are free go to another optimizer:

        problem: {use: torch.digits_mlp}
        constraints: [{use: pogo.stiefel, rows: auto, on: "layers.*.weight"}]
        solver:
          use: torch.groups
          groups:
            "layers.*.weight": {use: pogo.optimizer, start: project}
            "*": {use: torch.adam, lr: 1e-3}

    Metrics: `orthogonality`, the largest ||X X^H - I||; `guard_share`, the share of steps of single matrices that the
    guard shortened.

    Parameters
    ----------
    lr : float, default 1.0
        Step size; for base "vadam" 0.3 to 3, for "sgd" that of the gradient.
    base : {"sgd", "vadam"}, default "vadam"
        What makes the direction of the gradient.
    momentum : float, default 0
        For "sgd", in [0, 1).
    nesterov : bool, default False
        For "sgd".
    betas : list of two floats, default [0.9, 0.999]
        For "vadam".
    eps : float, default 1e-8
        For "vadam".
    weight_decay : float, default 0
        Adds weight_decay * X to the gradient.
    landing : {"half", "optimal"}, default "half"
        Landing step 1/2, or the one that leaves the smallest defect.
    safe : float or None, default 0.5
        Step guard.
    start : {"check", "project", "ignore"}, default "check"
        What happens to weights that are not orthonormal: refused, replaced by their nearest point, or landed.
    lr_schedule : schedule, optional
        Step sizes by iteration.
    schedule_every : {"iteration", "epoch"}, default "iteration"
        After what the schedule goes on by one.

    Raises
    ------
    InputError
        For parameters without a Stiefel constraint, and whatever `infimum_pogo.POGO` refuses.
    """

    lr: Annotated[float, Gt(0)] = 1.0
    base: Literal["sgd", "vadam"] = "vadam"
    momentum: Share = 0.0
    nesterov: bool = False
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Annotated[float, Gt(0)] = 1e-8
    weight_decay: Annotated[float, Ge(0)] = 0.0
    landing: Literal["half", "optimal"] = "half"
    safe: Annotated[float, Gt(0), Lt(math.sqrt(2.0))] | None = SAFE
    start: Literal["check", "project", "ignore"] = "check"

    families: ClassVar[tuple[str, ...]] = ("training",)
    keeps_sets: ClassVar[bool] = True
    set_needs: ClassVar[tuple[str, ...]] = ("matrices", "assemble")
    metrics: ClassVar[Mapping[str, Metric]] = {
        **TorchSolver.metrics,
        "orthogonality": Metric(_of_pogo("orthogonality")),
        "guard_share": Metric(_of_pogo("guard_share")),
    }
    examples: ClassVar[Sequence[Mapping[str, Any]]] = ({"lr": 0.5, "start": "project"},)
    reference_problems: ClassVar[Sequence[Mapping[str, Any]]] = ({"use": "python:infimum_pogo.samples:orthogonal"},)

    def make(self, groups: Sequence[ParameterGroup]) -> torch.optim.Optimizer:
        for one in groups:
            if not one.sets:
                raise InputError(
                    f"{NAME}: {', '.join(one.names)} have no Stiefel constraint; give them to another optimizer by "
                    "torch.groups, or add one: constraints: [{use: pogo.stiefel, rows: auto, on: PATTERN}]"
                )
        options = {name: getattr(self, name) for name in ("lr", "base", "momentum", "nesterov", "betas", "eps")}
        more = {name: getattr(self, name) for name in ("weight_decay", "landing", "safe")}
        made = [self._group(one.names, one.params, one.sets[0]) for one in groups]
        try:
            return POGO([group for some in made for group in some], **options, **more, init=self.start)
        except InputError as error:
            # The optimizer calls it init, which in a solver is the method.
            raise InputError(str(error).replace("run project_() or pass init=", "pass start=")) from error

    @staticmethod
    def _group(names: Sequence[str], params: Sequence[torch.Tensor], held: Any) -> list[dict[str, Any]]:
        """Parameters with the layout that their set says; those of more than three axes apart."""
        if held.packed:
            raise InputError(f"{NAME}: packed=True is for arrays of real numbers; modules hold complex parameters")
        plain = [(n, p) for n, p in zip(names, params, strict=True) if p.ndim <= 3 and not held.flatten]
        shaped = [(n, p) for n, p in zip(names, params, strict=True) if p.ndim > 3 or held.flatten]
        make, rows = conv_rows if held.flatten else _stacked, ROWS[held.layout]
        found = [{"params": plain, "rows": rows}] if plain else []
        return [*found, {"params": shaped, "rows": rows, "flatten": make}] if shaped else found


def _stacked(weight: torch.Tensor) -> torch.Tensor:
    """All matrices of a tensor of several axes as one batch."""
    return weight.view(-1, *weight.shape[-2:])

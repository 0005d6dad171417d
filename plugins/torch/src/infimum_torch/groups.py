"""Several optimizers for one module: each takes the parameters that its pattern matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from infimum.errors import InputError
from infimum.solver import Slot
from infimum_torch.patterns import matching
from infimum_torch.solver import Member, ParameterGroup, TorchSolver


@dataclass(frozen=True)
class Groups(TorchSolver):
    """Shares the parameters of a module out among several solvers of torch's kind. All step on the same gradients.

    In a run file:

        solver:
          use: torch.groups
          groups:
            "layers.*.weight": {use: torch.sgd, lr: 0.5}
            "*": {use: torch.adamw, lr: 1e-3}

    Parameters
    ----------
    groups : mapping of str to solver
        Pattern (`*`, `?`, `[…]`) of parameter names to the solver of those that it matches, such as `{use: torch.adam}`
        or one of another plugin. A parameter belongs to the first pattern that matches it; "*" at the end takes the
        rest. Each member has a schedule of its own.

    Raises
    ------
    InputError
        For a pattern that matches nothing, or nothing that is left; a parameter that no pattern matches; a member that
        evaluates the loss by itself (torch.lbfgs).
    """

    groups: Mapping[str, TorchSolver]

    families: ClassVar[tuple[str, ...]] = ("training",)
    examples: ClassVar[Sequence[Mapping[str, Any]]] = (
        {"groups": {"0.*": {"use": "torch.sgd", "lr": 0.05, "momentum": 0.9}, "*": {"use": "torch.adam", "lr": 0.01}}},
    )
    reference_problems: ClassVar[Sequence[Mapping[str, Any]]] = (
        {
            "use": "torch.training",
            "module": "python:infimum_torch.samples:small_module",
            "loss": "mse_loss",
            "data": "python:infimum_torch.samples:loader",
        },
    )

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("torch.groups: groups is empty; give at least one pattern with a solver")
        if self.lr_schedule is not None:
            raise InputError("torch.groups: lr_schedule goes into the members, each of which has its own step size")
        for pattern, one in self.groups.items():
            if not isinstance(one, TorchSolver):
                raise InputError(
                    f"torch.groups: '{pattern}': expected an optimizer of torch as a solver, such as "
                    f"{{use: torch.adam}}, got {type(one).__name__}"
                )
            if isinstance(one, Groups) or one.closure or one.uses != "gradient":
                raise InputError(
                    f"torch.groups: '{pattern}': {type(one).__name__} evaluates the loss by itself and cannot share it "
                    "with others"
                )
        object.__setattr__(self, "groups", dict(self.groups))
        theirs = {name: metric for one in self.groups.values() for name, metric in one.metrics.items()}
        object.__setattr__(self, "metrics", {**theirs, **TorchSolver.metrics})

    def __hash__(self) -> int:
        return hash(tuple(self.groups.items()))

    def slots(self) -> tuple[Slot, ...]:
        needed = [set(one.set_needs) for one in self.groups.values()]
        common = set.intersection(*needed)
        more = sorted(set.union(*needed) - common)
        sets = Slot("sets", needs=tuple(sorted(common)) or ("violation",), wants=tuple(more), each=True, empty=None)
        return (*super().slots()[1:2], sets)

    def check(self, parts: Any) -> None: ...

    def members(self, groups: Sequence[ParameterGroup]) -> list[Member]:
        left = {name: p for group in groups for name, p in zip(group.names, group.params, strict=True)}
        sets = {name: one for group in groups for one in group.sets for name in group.names}
        names = list(left)
        found: list[Member] = []
        for pattern, solver in self.groups.items():
            matched = matching(pattern, names, "torch.groups")
            mine = {name: left.pop(name) for name in matched if name in left}
            if not mine:
                raise InputError(
                    f"torch.groups: all parameters that pattern '{pattern}' matches ({', '.join(matched)}) belong to "
                    "patterns before it; put it before them, or leave it out"
                )
            found += solver.members(_by_set(mine, sets, solver, pattern))
        if left:
            raise InputError(
                f"torch.groups: no pattern matches {', '.join(left)}; add a last pattern '*' with a solver for the rest"
            )
        return found


def _by_set(
    mine: Mapping[str, torch.Tensor], sets: Mapping[str, Any], solver: TorchSolver, pattern: str
) -> list[ParameterGroup]:
    """The parameters of one member, the free ones first, then those of each set."""
    free = [name for name in mine if name not in sets]
    found = [ParameterGroup(tuple(free), tuple(mine[name] for name in free))] if free else []
    for one in dict.fromkeys(sets[name] for name in mine if name in sets):
        held = [name for name in mine if sets.get(name) is one]
        lacking = [need for need in solver.set_needs if not one.offers(need)]
        if lacking:
            raise InputError(
                f"torch.groups: '{pattern}': {type(solver).__name__} needs {' and '.join(lacking)} of the set of "
                f"{', '.join(held)}, which offers {', '.join(sorted(one.capabilities))}"
            )
        found.append(ParameterGroup(tuple(held), tuple(mine[name] for name in held), (one,)))
    return found

"""Any optimizer of torch as a solver: of arrays in a `Composite`, and of modules in training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from infimum.errors import InputError, NonFiniteError
from infimum.schedule import Schedule
from infimum.solver import Metric, Slot, Solver
from infimum_torch import work as works
from infimum_torch.codec import decode, encode, optimizer_state, restore_optimizer
from infimum_torch.dice import draw_seed
from infimum_torch.patterns import matching
from infimum_torch.schedules import attach


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Parameters that an optimizer treats alike.

    Attributes
    ----------
    names : tuple of str
    params : tuple of torch.Tensor
        Leaves that require a gradient, to be changed in place.
    sets : tuple
        The set that each of the parameters belongs to, as a part with the capabilities that the solver's `set_needs`
        names; empty for parameters that are free.
    """

    names: tuple[str, ...]
    params: tuple[torch.Tensor, ...]
    sets: tuple[Any, ...] = ()

    def options(self, **options: Any) -> dict[str, Any]:
        """A parameter group as optimizers take it."""
        return {"params": list(self.params), **options}


@dataclass(slots=True)
class Member:
    """An optimizer at work with its scheduler and the groups that it has."""

    solver: TorchSolver
    optimizer: torch.optim.Optimizer
    groups: tuple[ParameterGroup, ...]
    scheduler: Any = None


class State:
    """The state of a run: parameters and loss in `work`, optimizers in `members`."""

    def __init__(self, work: Any, pending: Mapping[str, Any] | None = None) -> None:
        self.work = work
        self.members: list[Member] = []
        self.pending = pending
        """Optimizers of a checkpoint, until the first step, which knows the sets."""
        self.loss: float | None = None
        """Loss of the last batch, at the point before the step."""

    @property
    def optimizer(self) -> torch.optim.Optimizer | None:
        """The first optimizer."""
        return self.members[0].optimizer if self.members else None

    def lr(self) -> float | None:
        """Present step size of the first group."""
        return float(self.members[0].optimizer.param_groups[0]["lr"]) if self.members else None


_COMPOSITE, _TRAINING = ("composite",), ("training",)


@dataclass(frozen=True, kw_only=True)
class TorchSolver(Solver):
    """Base of solvers that are optimizers of torch. Subclass it to make one of yours a solver.

    A subclass is a frozen dataclass whose fields are the optimizer's options, and says how the optimizer is made:

        @dataclass(frozen=True)
        class Mine(TorchSolver):
            lr: Annotated[float, Gt(0)] = 0.1

            def make(self, groups):
                return MyOptimizer([group.options() for group in groups], lr=self.lr)

    It then takes every `Composite` of smooth terms, NumPy or torch, and every problem of the family `Training`. One
    iteration is one `step` of the optimizer. Steps, schedules, checkpoints (through the optimizer's `state_dict`, with
    anything in it that is numbers, text, tensors, lists and dictionaries), counting and random numbers are the base's.

    Sets reach the optimizer as `ParameterGroup.sets`. The base projects parameters on their set after each step; an
    optimizer that keeps to the sets by itself says `keeps_sets = True` and names in `set_needs` what it needs of them.

    Parameters
    ----------
    lr_schedule : schedule, optional
        Step sizes by iteration: one of the kind `schedule` (`{use: core.power, …}`, whose numbers are the step sizes,
        or `{use: torch.cosine_annealing_lr, …}`, which starts from `lr`), a function of the iteration, or from Python
        a class or a `functools.partial` of one of torch.optim.lr_scheduler.
    schedule_every : {"iteration", "epoch"}, default "iteration"
        After what the schedule goes on by one.
    """

    lr_schedule: Schedule | None = None
    schedule_every: Literal["iteration", "epoch"] = "iteration"

    families: ClassVar[tuple[str, ...]] = ("composite", "training")
    inplace: ClassVar[bool] = True
    preference: ClassVar[int] = -3  # Methods that know their step or search for it come first.
    uses: ClassVar[works.Uses] = "gradient"
    """What a loss is asked for: "values" for optimizers without derivatives."""
    closure: ClassVar[bool] = False
    """Whether `step` gets a closure, to evaluate the loss as often as it likes; else gradients are there before."""
    keeps_sets: ClassVar[bool] = False
    """Whether the optimizer itself keeps parameters in their sets."""
    set_needs: ClassVar[tuple[str, ...]] = ("project",)
    """Capabilities that a set must have."""
    metrics: ClassVar[Mapping[str, Metric]] = {
        "value": Metric(lambda state: state.work.value, families=_COMPOSITE),
        "grad_norm": Metric(lambda state: state.work.grad_norm(), families=_COMPOSITE),
        "batch_loss": Metric(lambda state: state.loss, families=_TRAINING),
        "epoch": Metric(lambda state: state.work.epoch, families=_TRAINING),
        "samples": Metric(lambda state: state.work.samples, families=_TRAINING),
        "lr": Metric(lambda state: state.lr()),
    }

    def make(self, groups: Sequence[ParameterGroup]) -> torch.optim.Optimizer:
        """The optimizer of one run.

        Parameters
        ----------
        groups : sequence of ParameterGroup
            The free parameters, if there are any, and then those of each set.
        """
        raise NotImplementedError

    def slots(self) -> tuple[Slot, ...]:
        value = "value_and_gradient" if self.uses == "gradient" else "value"
        loss = "backward" if self.uses == "gradient" else "forward"
        return (
            Slot("smooth", needs=(value,)),
            Slot("loss", needs=(loss, "samples"), at_most=1, empty=None),
            Slot("sets", needs=self.set_needs, each=True, empty=None),
        )

    def check(self, parts: Any) -> None:
        whole = [one for one in parts.sets if one.on is None]
        if parts.loss is None and len(parts.sets) > 1 and whole:
            raise InputError(
                f"{_name(self)}: {len(parts.sets)} sets hold for the same variables; expected at most one for each: a "
                "projection on one set leaves the other"
            )

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> State:
        seed = draw_seed(rng)
        work: Any
        if parts.loss is None:
            work = works.ArrayWork.start(parts, start, seed, self.uses)
        else:
            work = works.ModuleWork(start, seed, draw_seed(rng))
        state = State(work)
        self._equip(parts, state)
        return state

    def _equip(self, parts: Any, state: State) -> None:
        """Make the optimizers, in the state of a checkpoint if there is one."""
        with state.work.dice:
            state.members = self.members(grouped(state.work.parameters(), parts.sets, _name(self)))
        if state.pending is not None:
            for member, tree in zip(state.members, state.pending["members"], strict=True):
                restore_optimizer(member.optimizer, tree["optimizer"])
                if member.scheduler is not None:
                    member.scheduler.load_state_dict(decode(tree["scheduler"]))
            state.pending = None

    def members(self, groups: Sequence[ParameterGroup]) -> list[Member]:
        """The optimizers with their schedulers; one here, several where parameters are shared out."""
        try:
            optimizer = self.make(groups)
        except (ValueError, TypeError, RuntimeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{_name(self)}: {type(self).__name__} refuses these parameters or options: {error}"
            ) from error
        scheduler = None if self.lr_schedule is None else attach(self.lr_schedule, optimizer)
        return [Member(self, optimizer, tuple(groups), scheduler)]

    def step(self, parts: Any, state: State) -> State:
        return self.advance(parts, state, 1)

    def advance(self, parts: Any, state: State, steps: int) -> State:
        if not state.members:
            self._equip(parts, state)
        with state.work.dice:
            for left in range(steps - 1, -1, -1):
                self._once(parts, state, look=left == 0)
        return state

    def _once(self, parts: Any, state: State, look: bool) -> None:
        """One step. With `look` the loss is read, which on a device waits for it; before parameters are changed."""
        work = state.work
        before = int(work.epoch) if self._by_epoch(state) else 0
        work.begin(parts)
        if self.closure:
            self._with_closure(parts, state, look)
        else:
            loss = work.loss(parts, self.uses)
            if look:
                state.loss = finite(loss)
            for member in state.members:
                member.optimizer.step()
        for member in state.members:
            if parts.sets and not member.solver.keeps_sets:
                project(member.groups, work)
            if member.scheduler is not None and (
                member.solver.schedule_every == "iteration" or int(work.epoch) > before
            ):
                member.scheduler.step()
        work.end(parts)

    @staticmethod
    def _by_epoch(state: State) -> bool:
        return any(one.scheduler is not None and one.solver.schedule_every == "epoch" for one in state.members)

    def _with_closure(self, parts: Any, state: State, look: bool) -> None:
        first: list[Any] = []

        def closure() -> torch.Tensor:
            with torch.enable_grad():
                loss: torch.Tensor = state.work.loss(parts, self.uses)
            if not first:
                first.append(finite(loss) if look else loss)
            return loss

        for member in state.members:
            member.optimizer.step(closure)  # type: ignore[arg-type]
        if look and first:
            state.loss = first[0]

    def solution(self, state: State) -> Any:
        """The present parameters: an array like the start, or the module."""
        return state.work.point

    def dump(self, state: State) -> Any:
        return {
            "work": state.work.dump(),
            "loss": state.loss,
            "members": state.pending["members"] if state.pending is not None else [_dumped(m) for m in state.members],
        }

    def load(self, tree: Any, start: Any) -> State:
        inside = tree["work"]
        module = isinstance(start, torch.nn.Module)
        work: Any = works.ModuleWork.load(inside, start) if module else works.ArrayWork.load(inside)
        state = State(work, pending={"members": tree["members"]})
        state.loss = tree["loss"]
        return state


def _dumped(member: Member) -> dict[str, Any]:
    scheduler = None if member.scheduler is None else encode(member.scheduler.state_dict())
    return {"optimizer": optimizer_state(member.optimizer), "scheduler": scheduler}


def _name(solver: Solver) -> str:
    return f"torch solver {type(solver).__name__}"


def finite(loss: torch.Tensor) -> float:
    """A loss as a number.

    Raises
    ------
    NonFiniteError
        If it is NaN or infinite.
    """
    number = loss.item()
    if not math.isfinite(number):
        raise NonFiniteError("term 'loss'", "the loss of the batch", "NaN" if number != number else f"{number}")
    return number


def project(groups: Sequence[ParameterGroup], work: works.Work) -> None:
    """Move parameters to the nearest points of their sets."""
    with torch.no_grad():
        for group in groups:
            for one in group.sets:
                for parameter in group.params:
                    parameter.copy_(work.through(one.project, parameter.detach()))


def grouped(parameters: Mapping[str, torch.Tensor], sets: Sequence[Any], who: str) -> list[ParameterGroup]:
    """Parameters by the set that they belong to, the free ones first.

    Raises
    ------
    InputError
        For a parameter in two sets, or a pattern that matches nothing.
    """
    names = list(parameters)
    taken: dict[str, Any] = {}
    found = []
    for one in sets:
        mine = matching(one.on, names, who) if one.on is not None and names != ["x"] else names
        for name in mine:
            if name in taken:
                raise InputError(
                    f"{who}: parameter '{name}' is in two sets, by '{taken[name]}' and '{one.on}'; a projection on one "
                    "set leaves the other: expected at most one"
                )
            taken[name] = one.on
        found.append(ParameterGroup(tuple(mine), tuple(parameters[name] for name in mine), (one,)))
    free = tuple(name for name in names if name not in taken)
    if free:
        found.insert(0, ParameterGroup(free, tuple(parameters[name] for name in free)))
    return found

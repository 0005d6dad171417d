"""Schedules of both kinds: ours drive an optimizer of torch, and those of torch serve wherever one of ours does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

import torch
from annotated_types import Ge, Gt, MinLen
from torch.optim import lr_scheduler

from infimum.errors import InputError
from infimum.schedule import Schedule


class ScheduleLR(lr_scheduler.LRScheduler):
    """Any schedule of infimum as a scheduler of torch: sets `lr` of every group to `schedule(k)` after k steps.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
    schedule : callable
        `schedule(k)`, k = 0, 1, …, is the step size; such as `infimum.schedule.Power(0.1, 0.5)`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, schedule: Schedule) -> None:
        self.schedule = schedule
        super().__init__(optimizer)

    def get_lr(self) -> list[float | torch.Tensor]:
        """The step size of the present iteration, for every group."""
        lr = float(self.schedule(self.last_epoch))
        return [lr for _ in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state without the schedule, which has none."""
        return {name: value for name, value in super().state_dict().items() if name != "schedule"}


def attach(schedule: Any, optimizer: torch.optim.Optimizer) -> Any:
    """A scheduler of torch on `optimizer`, from a schedule of either kind.

    Parameters
    ----------
    schedule : TorchSchedule, class or partial of a scheduler of torch, or callable
        Another callable gives step sizes by iteration.

    Raises
    ------
    InputError
        For options that torch refuses, or a scheduler that wants a metric.
    """
    if isinstance(schedule, TorchSchedule):
        return schedule.on(optimizer)
    target = schedule.func if isinstance(schedule, functools.partial) else schedule
    if inspect.isclass(target) and issubclass(target, lr_scheduler.LRScheduler):
        if issubclass(target, lr_scheduler.ReduceLROnPlateau):
            raise InputError("lr_schedule: ReduceLROnPlateau wants a metric at each step; expected one that needs none")
        return _refusing(schedule, optimizer)
    return ScheduleLR(optimizer, schedule)


@dataclass(frozen=True, kw_only=True)
class TorchSchedule:
    """Base of the schedulers of torch as schedules.

    On an optimizer of torch it is the scheduler itself, and starts from the optimizer's `lr`. Called with an iteration,
    as any other method does, it gives the step size of that iteration, starting from `initial`.

    Parameters
    ----------
    initial : float, default 1.0
        First step size where it stands alone; no use on an optimizer of torch.
    """

    initial: Annotated[float, Gt(0)] = 1.0
    scheduler: ClassVar[str]

    def on(self, optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
        """The scheduler on an optimizer."""
        made: lr_scheduler.LRScheduler = _refusing(getattr(lr_scheduler, self.scheduler), optimizer, **self._options())
        return made

    def _options(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "initial"}

    def __call__(self, k: int) -> float:
        """The step size of iteration k, from 0 on."""
        return _table(self, 1 << max(7, int(k).bit_length()))[k]


def _refusing(make: Any, *args: Any, **options: Any) -> Any:
    try:
        return make(*args, **options)
    except (ValueError, TypeError) as error:
        name = getattr(getattr(make, "func", make), "__name__", "lr_schedule")
        raise InputError(f"{name}: {error}") from error


@functools.lru_cache(maxsize=32)
def _table(schedule: TorchSchedule, n: int) -> tuple[float, ...]:
    """The first n step sizes, from a run of the scheduler on an optimizer that has nothing to do."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=schedule.initial, momentum=0.5)
    scheduler = schedule.on(optimizer)
    found = []
    for _ in range(n):
        found.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return tuple(found)


@dataclass(frozen=True)
class ConstantLR(TorchSchedule):
    """`factor` times the step size for the first steps, then the step size itself.

    Parameters
    ----------
    factor : float, default 1/3
        In (0, 1].
    total_iters : int, default 5
        How many steps.
    """

    factor: Annotated[float, Gt(0)] = 1.0 / 3
    total_iters: Annotated[int, Ge(0)] = 5
    scheduler: ClassVar[str] = "ConstantLR"


@dataclass(frozen=True)
class LinearLR(TorchSchedule):
    """From one factor of the step size to another, linearly.

    Parameters
    ----------
    start_factor : float, default 1/3
        First factor, in (0, 1].
    end_factor : float, default 1.0
        Last factor, in [0, 1].
    total_iters : int, default 5
        After how many steps it is reached.
    """

    start_factor: Annotated[float, Gt(0)] = 1.0 / 3
    end_factor: Annotated[float, Ge(0)] = 1.0
    total_iters: Annotated[int, Ge(1)] = 5
    scheduler: ClassVar[str] = "LinearLR"


@dataclass(frozen=True)
class StepLR(TorchSchedule):
    """`gamma` times smaller after every so many steps.

    Parameters
    ----------
    step_size : int
        How many steps.
    gamma : float, default 0.1
        Factor.
    """

    step_size: Annotated[int, Ge(1)]
    gamma: Annotated[float, Gt(0)] = 0.1
    scheduler: ClassVar[str] = "StepLR"


@dataclass(frozen=True)
class MultiStepLR(TorchSchedule):
    """`gamma` times smaller at each of some steps.

    Parameters
    ----------
    milestones : list of int
        At which steps, growing.
    gamma : float, default 0.1
        Factor.
    """

    milestones: tuple[int, ...]
    gamma: Annotated[float, Gt(0)] = 0.1
    scheduler: ClassVar[str] = "MultiStepLR"

    def __post_init__(self) -> None:
        object.__setattr__(self, "milestones", tuple(self.milestones))


@dataclass(frozen=True)
class ExponentialLR(TorchSchedule):
    """`gamma` times smaller at each step.

    Parameters
    ----------
    gamma : float
        Factor.
    """

    gamma: Annotated[float, Gt(0)]
    scheduler: ClassVar[str] = "ExponentialLR"


@dataclass(frozen=True)
class PolynomialLR(TorchSchedule):
    """Falls to zero like a power of the steps that are left.

    Parameters
    ----------
    total_iters : int, default 5
        Steps until zero.
    power : float, default 1.0
        Exponent.
    """

    total_iters: Annotated[int, Ge(1)] = 5
    power: Annotated[float, Gt(0)] = 1.0
    scheduler: ClassVar[str] = "PolynomialLR"


@dataclass(frozen=True)
class CosineAnnealingLR(TorchSchedule):
    """Falls along half a period of the cosine (and rises again after it).

    Parameters
    ----------
    T_max : int
        Steps of half a period.
    eta_min : float, default 0.0
        Smallest step size.
    """

    T_max: Annotated[int, Ge(1)]
    eta_min: Annotated[float, Ge(0)] = 0.0
    scheduler: ClassVar[str] = "CosineAnnealingLR"


@dataclass(frozen=True)
class CosineAnnealingWarmRestarts(TorchSchedule):
    """Falls along half a period of the cosine, and starts anew.

    Parameters
    ----------
    T_0 : int
        Steps until the first new start.
    T_mult : int, default 1
        How many times longer each next period is.
    eta_min : float, default 0.0
        Smallest step size.
    """

    T_0: Annotated[int, Ge(1)]
    T_mult: Annotated[int, Ge(1)] = 1
    eta_min: Annotated[float, Ge(0)] = 0.0
    scheduler: ClassVar[str] = "CosineAnnealingWarmRestarts"


@dataclass(frozen=True)
class CyclicLR(TorchSchedule):
    """To and fro between two step sizes.

    Parameters
    ----------
    base_lr, max_lr : float
        The two.
    step_size_up : int, default 2000
        Steps up.
    step_size_down : int, optional
        Steps down; as many by default.
    mode : {"triangular", "triangular2", "exp_range"}, default "triangular"
        Whether the way up stays, is halved by each cycle, or shrinks by `gamma` at each step.
    gamma : float, default 1.0
        That factor.
    cycle_momentum : bool, default False
        Whether the momentum (of an optimizer that has one) goes the other way.
    base_momentum, max_momentum : float, default 0.8 and 0.9
        Its limits.
    """

    base_lr: Annotated[float, Gt(0)]
    max_lr: Annotated[float, Gt(0)]
    step_size_up: Annotated[int, Ge(1)] = 2000
    step_size_down: Annotated[int, Ge(1)] | None = None
    mode: Literal["triangular", "triangular2", "exp_range"] = "triangular"
    gamma: Annotated[float, Gt(0)] = 1.0
    cycle_momentum: bool = False
    base_momentum: Annotated[float, Ge(0)] = 0.8
    max_momentum: Annotated[float, Ge(0)] = 0.9
    scheduler: ClassVar[str] = "CyclicLR"


@dataclass(frozen=True)
class OneCycleLR(TorchSchedule):
    """Up to a large step size, and down to almost nothing, within a fixed number of steps.

    Parameters
    ----------
    max_lr : float
        Largest step size.
    total_steps : int
        Steps of the cycle; afterwards it stays where it is.
    pct_start : float, default 0.3
        Share of the steps on the way up.
    anneal_strategy : {"cos", "linear"}, default "cos"
        Form of the way.
    cycle_momentum : bool, default False
        Whether the momentum (of an optimizer that has one) goes the other way.
    base_momentum, max_momentum : float, default 0.85 and 0.95
        Its limits.
    div_factor : float, default 25.0
        How many times smaller than the largest the first step size is,
    final_div_factor : float, default 1e4
        and than that the last.
    three_phase : bool, default False
        Whether the last part of the way down is a phase of its own.
    """

    max_lr: Annotated[float, Gt(0)]
    total_steps: Annotated[int, Ge(1)]
    pct_start: Annotated[float, Gt(0)] = 0.3
    anneal_strategy: Literal["cos", "linear"] = "cos"
    cycle_momentum: bool = False
    base_momentum: Annotated[float, Ge(0)] = 0.85
    max_momentum: Annotated[float, Ge(0)] = 0.95
    div_factor: Annotated[float, Gt(0)] = 25.0
    final_div_factor: Annotated[float, Gt(0)] = 1e4
    three_phase: bool = False
    scheduler: ClassVar[str] = "OneCycleLR"

    def on(self, optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
        """The scheduler on an optimizer; it stays at its last step size where torch's own would raise."""
        made: lr_scheduler.LRScheduler = _refusing(_LastingOneCycle, optimizer, **self._options())
        return made


class _LastingOneCycle(lr_scheduler.OneCycleLR):
    def step(self, epoch: Any = None) -> None:
        # A stopping rule ends the run, not the schedule.
        if self.last_epoch + 1 < self.total_steps:
            super().step(epoch)


@dataclass(frozen=True)
class SequentialLR(TorchSchedule):
    """One schedule after another.

    Parameters
    ----------
    schedules : list of schedules
        Those of torch.
    milestones : list of int
        Steps at which the next one begins; one fewer than schedules.
    """

    schedules: Annotated[tuple[TorchSchedule, ...], MinLen(2)]
    milestones: Annotated[tuple[int, ...], MinLen(1)]
    scheduler: ClassVar[str] = "SequentialLR"
    examples: ClassVar[Sequence[Any]] = (
        {
            "schedules": [{"use": "torch.linear_lr"}, {"use": "torch.exponential_lr", "gamma": 0.9}],
            "milestones": [5],
        },
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedules", tuple(self.schedules))
        object.__setattr__(self, "milestones", tuple(self.milestones))

    def on(self, optimizer: torch.optim.Optimizer) -> lr_scheduler.LRScheduler:
        """The scheduler on an optimizer."""
        inside = [one.on(optimizer) for one in self.schedules]
        made: lr_scheduler.LRScheduler = _refusing(
            lr_scheduler.SequentialLR, optimizer, schedulers=inside, milestones=list(self.milestones)
        )
        return made

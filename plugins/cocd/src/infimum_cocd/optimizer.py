"""Coherent coordinate descent as an optimizer of PyTorch."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch

from infimum.errors import InfimumWarning, InputError
from infimum_cocd.checks import (
    DIFFERENCES,
    below_noise,
    check_block,
    check_decay,
    check_memory,
    check_positive,
    check_unit,
    check_word,
    is_number,
)
from infimum_cocd.history import Diagnostics, History
from infimum_cocd.segments import Group, Segment, as_loss, losses, segments
from infimum_cocd.theory import gain, staleness_bound, unstable

NAME = "CoCD"
Active = list[tuple[torch.Tensor, Group]]


class CoCD(torch.optim.Optimizer):
    """Train without backward passes: at each step `block` coordinates get new difference quotients, all are moved.

    Each step multiplies the buffer by `gamma`, replaces its next `block` entries (in the order of the parameters,
    round and round) by difference quotients of the loss, and moves every parameter: `p <- (1 - lr weight_decay) p`,
    `p <- p - lr g`. gamma = 0 is block coordinate descent; block = n is descent along the full difference gradient.

    A step asks for the loss 2 block + 1 times (central) or block + 1 times (forward); one of these is the loss at the
    present point, which is returned. All must be on the same batch and without randomness: keep dropout off and
    batch normalization in evaluation mode.

    `lr`, `eps`, `gamma` and `weight_decay` may differ by parameter group and are read at every step, so schedulers
    work. Parameters that do not require a gradient are skipped. A parameter is never left perturbed: its old value is
    copied back, also when the closure raises. A step that fails changes nothing. `state_dict` holds all that steps
    depend on: a run that is saved in mid-cycle and loaded, with the same `block`, `memory` and `difference`, goes on
    bit for bit; diagnostics begin anew.

    Parameters
    ----------
    params : iterable of parameters or parameter groups
        Real floating-point parameters.
    lr : float, default 1e-2
        Step size. With gamma = 1 an entry serves n/block steps, so the effective step is (n/block) lr.
    block : int or "auto", default "auto"
        Coordinates per step, over all groups. "auto" is the square root of n, rounded.
    eps : float, default 0.1
        Distance of the points.
    gamma : float, default 1.0
        Decay of the buffer, from 0 (no reuse) to 1. If training is unstable: 0.99, 0.95, 0.9, or a smaller lr.
    memory : int, optional
        Only the entries of the last so many refreshes are kept; other coordinates are neither moved nor decayed.
    weight_decay : float, default 0.0
        Decoupled weight decay.
    difference : {"central", "forward"}, default "central"
        Forward needs about half as many queries and a smaller eps.

    Raises
    ------
    InputError
        For options out of range and parameters that are not real floating-point numbers.

    Warns
    -----
    InfimumWarning
        Once, if eps is below the noise floor of the loss; once, if the effective step exceeds 2/L for the largest
        second difference L along a coordinate, which central differences show and the true L exceeds.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        block: int | str = "auto",
        eps: float = 0.1,
        gamma: float = 1.0,
        memory: int | None = None,
        weight_decay: float = 0.0,
        difference: str = "central",
    ) -> None:
        check_word(difference, "difference", DIFFERENCES, NAME)
        self.block, self.memory, self.difference = block, memory, difference
        super().__init__(params, {"lr": lr, "eps": eps, "gamma": gamma, "weight_decay": weight_decay})
        self._sizes(sum(p.numel() for group in self.param_groups for p in group["params"]))
        self._restart()

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters, with options of their own if given; the cycle starts anew with them."""
        super().add_param_group(param_group)
        check_positive(self.param_groups[-1]["lr"], "lr", f"{NAME}: parameter group {len(self.param_groups) - 1}")
        _check_group(self.param_groups[-1], len(self.param_groups) - 1)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state; nothing is shared with where it came from."""
        super().load_state_dict(copy.deepcopy(state_dict))

    def __getstate__(self) -> dict[str, Any]:
        own = {"block": self.block, "memory": self.memory, "difference": self.difference}
        return {**super().__getstate__(), **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._restart()

    def _restart(self) -> None:
        self._history = History()
        self._noise_told = self._step_told = False

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> float:  # type: ignore[override]
        """Take one step.

        Parameters
        ----------
        closure : callable
            Returns the loss at the present parameters, a number or a tensor with one entry; it does not call
            `backward`. One made by `module_losses` evaluates all queries of a step at once.

        Returns
        -------
        float
            The loss before the step.

        Raises
        ------
        InputError
            Without a closure, if nothing can be trained, or if eps vanishes beside a parameter.
        NonFiniteError
            If a loss is NaN or infinite; parameters and buffer are as before.
        """
        if closure is None:
            raise InputError(f"{NAME}.step needs a closure that returns the loss: it asks for the loss several times")
        for number, group in enumerate(self.param_groups):
            _check_group(group, number)
        active, n = self._active()
        block, _ = self._sizes(n)
        shared = self._shared()
        taken = shared["taken"] if shared.get("n") == n else 0
        block_now = list(segments(active, taken, block, n))
        loss = as_loss(closure(), 0, 0)
        found = [self._slopes(closure, one, loss) for one in block_now]
        slopes = [slope for slope, _ in found]
        self._warn_of_noise(active, loss)
        self._history.measured(max(bend for _, bend in found), max(1, n // block))
        self._refresh(active, block_now, slopes, taken + block, n)
        self._descend(active, taken + block, n)
        shared["taken"], shared["n"] = taken + block, n
        shared["queries"] = shared.get("queries", 0) + 1 + block * (2 if self.difference == "central" else 1)
        self._warn_of_step(active, n)
        return loss

    def _active(self) -> tuple[Active, int]:
        """Parameters that are trained, with their groups, and the number of their entries."""
        active = [(p, group) for group in self.param_groups for p in group["params"] if p.requires_grad and p.numel()]
        n = sum(p.numel() for p, _ in active)
        if n == 0:
            raise InputError(f"{NAME}: no parameter requires a gradient, so there is nothing to train; unfreeze some")
        return active, n

    def _shared(self) -> dict[str, Any]:
        """Counters of the whole optimizer; they live where `state_dict` finds them."""
        shared: dict[str, Any] = self.state[self.param_groups[0]["params"][0]]
        return shared

    def _sizes(self, n: int) -> tuple[int, int]:
        check_block(self.block, NAME, n)
        check_memory(self.memory, NAME, n)
        block = max(1, round(math.sqrt(n))) if isinstance(self.block, str) else int(self.block)
        return block, n if self.memory is None else int(self.memory)

    def _slopes(self, closure: Callable[[], Any], one: Segment, loss: float) -> tuple[torch.Tensor, float]:
        """Difference quotients along a segment, in its dtype, and the largest second one, which is none for forward."""
        p, eps = one.parameter, float(one.group["eps"])
        here = p.detach().reshape(-1)[one.start : one.stop]
        up, down = here + eps, here - eps if self.difference == "central" else here
        width = up - down
        if not bool(width.all()):
            k = int((width == 0).nonzero()[0])
            raise InputError(
                f"{NAME}: eps={eps:g} vanishes beside coordinate {one.first + k} = {float(here[k]):g} in "
                f"{str(p.dtype).rpartition('.')[2]}; give a larger eps"
            )
        if self.difference == "forward":
            return ((losses(closure, one, [up])[0] - loss) / width.double()).to(p.dtype), 0.0
        ahead, behind = losses(closure, one, [up, down])
        noise = 4.0 * torch.finfo(p.dtype).eps * abs(loss)
        bend = float((ahead + behind - 2.0 * loss).max()) - noise
        return ((ahead - behind) / width.double()).to(p.dtype), max(0.0, bend / eps**2)

    def _buffer(self, p: torch.Tensor) -> torch.Tensor:
        state = self.state[p]
        if "buffer" not in state:
            state["buffer"] = torch.zeros_like(p, memory_format=torch.contiguous_format)
        buffer: torch.Tensor = state["buffer"]
        return buffer

    def _refresh(
        self, active: Active, block_now: list[Segment], slopes: list[torch.Tensor], taken: int, n: int
    ) -> None:
        """Decay, new entries, and zero for those that are no longer kept."""
        _, memory = self._sizes(n)
        buffers = [self._buffer(p) for p, _ in active]
        before = [one.clone() for one in buffers]
        for buffer, (_, group) in zip(buffers, active, strict=True):
            if group["gamma"] != 1.0:
                buffer.mul_(float(group["gamma"]))
        for one, fresh in zip(block_now, slopes, strict=True):
            self._buffer(one.parameter).view(-1)[one.start : one.stop] = fresh
        for one in segments(active, taken, n - memory, n):
            self._buffer(one.parameter).view(-1)[one.start : one.stop] = 0.0
        if taken > self._sizes(n)[0]:
            self._history.compared(zip(before, buffers, strict=True))

    def _descend(self, active: Active, taken: int, n: int) -> None:
        self._shrink(active, taken, n)
        block, _ = self._sizes(n)
        square = 0.0
        for p, group in active:
            buffer, lr = self._buffer(p).view(p.shape), float(group["lr"])
            p.add_(buffer, alpha=-lr)
            if group["weight_decay"]:
                buffer = buffer + float(group["weight_decay"]) * p
            square += lr**2 * float(buffer.double().square().sum())
        self._history.moved(math.sqrt(square), max(1, n // block))

    def _shrink(self, active: Active, taken: int, n: int) -> None:
        """Decoupled weight decay of the entries that the buffer covers."""
        _, memory = self._sizes(n)
        if memory == n:
            for p, group in active:
                if group["weight_decay"]:
                    p.mul_(1.0 - float(group["lr"]) * float(group["weight_decay"]))
            return
        for one in segments(active, taken - memory if taken > memory else 0, min(memory, taken), n):
            if one.group["weight_decay"]:
                weight = torch.ones(one.parameter.numel(), dtype=one.parameter.dtype, device=one.parameter.device)
                weight[one.start : one.stop] -= float(one.group["lr"]) * float(one.group["weight_decay"])
                one.parameter.mul_(weight.view(one.parameter.shape))

    @property
    def queries(self) -> int:
        """Loss evaluations so far."""
        return int(self._shared().get("queries", 0))

    def gradient(self, parameter: torch.Tensor) -> torch.Tensor:
        """The present estimate of the gradient with respect to one parameter, a copy."""
        return self._buffer(parameter).view(parameter.shape).clone()

    def diagnostics(self) -> Diagnostics:
        """What is known after the last step; numbers, none of which influences the steps."""
        active, n = self._active()
        block, memory = self._sizes(n)
        taken = int(self._shared().get("taken", 0))
        oldest = (taken - memory) // block if taken >= memory else -int(memory == n)
        curvature = self._history.curvature()
        bound = None
        if curvature and taken >= n and memory == n and all(group["gamma"] == 1.0 for _, group in active):
            bound = staleness_bound(curvature, self._history.longest(n // block), n, block)
        return Diagnostics(
            queries=self.queries,
            staleness=max(0, taken // block - 1 - oldest),
            cosine=self._history.cosine,
            change=self._history.change,
            curvature=curvature,
            staleness_bound=bound,
            effective_step=max(gain(n, block, group["gamma"], memory) * float(group["lr"]) for _, group in active),
        )

    def _warn_of_noise(self, active: Active, loss: float) -> None:
        if self._noise_told:
            return
        self._noise_told = True
        for group in {id(group): group for _, group in active}.values():
            dtype = next(p.dtype for p, of in active if of is group)
            name = str(dtype).rpartition(".")[2]
            text = below_noise(float(group["eps"]), loss, torch.finfo(dtype).eps, name, self.difference)
            if text is not None:
                warnings.warn(f"{NAME}: {text}", InfimumWarning, stacklevel=5)

    def _warn_of_step(self, active: Active, n: int) -> None:
        curvature = self._history.curvature()
        if self._step_told or not self._history.full:
            return
        block, memory = self._sizes(n)
        for _, group in active:
            text = unstable(n, block, float(group["gamma"]), memory, float(group["lr"]), curvature, "seen so far")
            if text is not None and not self._step_told:
                self._step_told = True
                warnings.warn(f"{NAME}: {text}", InfimumWarning, stacklevel=5)


def _check_group(group: Mapping[str, Any], number: int) -> None:
    """Options of a group and the dtypes of its parameters."""
    what = f"{NAME}: parameter group {number}"
    lr = float(group["lr"]) if isinstance(group["lr"], torch.Tensor) else group["lr"]
    # A scheduler may bring the step size down to zero.
    if not is_number(lr) or not 0 <= lr < math.inf:
        raise InputError(f"{what}: lr={lr!r}; expected a positive finite number")
    check_positive(group["eps"], "eps", what)
    check_unit(group["gamma"], "gamma", what)
    check_decay(group["weight_decay"], what)
    for k, p in enumerate(group["params"]):
        if not p.dtype.is_floating_point:
            raise InputError(
                f"{what}: parameter {k} of shape {tuple(p.shape)} is {str(p.dtype).rpartition('.')[2]}; expected real "
                "floating-point parameters"
            )

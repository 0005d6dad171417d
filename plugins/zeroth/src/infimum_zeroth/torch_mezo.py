"""Gradients and steps for the parameters of a torch module from values alone, in the memory of inference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from infimum.errors import InputError, NonFiniteError

Closure = Callable[[], Any]
_MIX = 0x9E3779B97F4A7C15


def direction(like: Tensor, seed: int) -> Tensor:
    """The standard normal direction of a seed, in the shape, dtype and device of a parameter."""
    source = torch.Generator(like.device).manual_seed(seed)
    return torch.randn(like.shape, generator=source, dtype=like.dtype, device=like.device)


class Displaced(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While this mode is on, every operation of torch sees parameters p as `p + step z`, with z from p's seed.

    No parameter is ever written: an operation gets displaced copies of the parameters that it uses, which are freed
    after it. So the parameters are the same bit for bit afterwards, also after an exception.
    """

    def __init__(self, steps: dict[int, tuple[int, float]], used: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps, self.used = steps, used

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.is_mutable:
            self._refuse_writes(func, args)
        args, kwargs = tree_map_only(Tensor, self._moved, (args, kwargs or {}))
        return func(*args, **kwargs)

    def _moved(self, tensor: Tensor) -> Tensor:
        found = self.steps.get(id(tensor))
        if found is None:
            return tensor
        self.used.add(id(tensor))
        seed, step = found
        return torch.add(tensor, direction(tensor, seed), alpha=step)

    def _refuse_writes(self, func: Any, args: Sequence[Any]) -> None:
        for said, given in zip(func._schema.arguments, args, strict=False):
            if said.alias_info is not None and said.alias_info.is_write and id(given) in self.steps:
                raise InputError(
                    f"MeZO: the closure writes to a parameter of shape {tuple(given.shape)} ({func}); "
                    "it must only compute the loss"
                )


class _Estimate:
    """Directional derivatives along m directions: what is kept of a direction is its seed and its slope."""

    def __init__(self, params: Sequence[Tensor], steps: Sequence[float], common: bool) -> None:
        self.params, self.steps, self.common = params, steps, common
        self.used: set[int] = set()
        self.kept: list[tuple[int, float]] = []
        self.values: list[float] = []

    def add(self, closure: Closure, seed: int) -> None:
        """One direction: two calls of the closure, the second with the random state of torch that the first had."""
        before = _random_state(self.params) if self.common else None
        above = self._value(closure, seed, 1.0, "+")
        if before is not None:
            _set_random_state(before)
        below = self._value(closure, seed, -1.0, "-")
        self.values += [above, below]
        self.kept.append((seed, (above - below) / 2))

    def _value(self, closure: Closure, seed: int, side: float, sign: str) -> float:
        pairs = enumerate(zip(self.params, self.steps, strict=True))
        moves = {id(p): (_seed(seed, j), side * step) for j, (p, step) in pairs}
        with torch.no_grad(), Displaced(moves, self.used):
            out = closure()
        value = _number(out)
        if not math.isfinite(value):
            raise NonFiniteError("the closure", f"loss at {sign}eps", str(value))
        return value

    def slopes(self, j: int) -> Iterable[tuple[float, Tensor]]:
        """Coefficient and direction of parameter j, one direction at a time; none if the loss does not use it."""
        p, step = self.params[j], self.steps[j]
        for seed, half in self.kept if id(p) in self.used else ():
            yield half / (step * len(self.kept)), direction(p, _seed(seed, j))

    @property
    def value(self) -> float:
        return math.fsum(self.values) / len(self.values)

    def check_used(self) -> None:
        if not self.used:
            raise InputError(
                f"MeZO: the closure used none of the {len(self.params)} parameters in operations of torch; "
                "a compiled or exported module hides them: pass the module itself"
            )


def _number(out: Any) -> float:
    if isinstance(out, Tensor):
        if out.numel() == 1 and not out.is_complex():
            return float(out.detach())
        what = f"a tensor {tuple(out.shape)} of {out.dtype}"
    elif isinstance(out, int | float):
        return float(out)
    else:
        what = type(out).__name__
    raise InputError(f"MeZO: the closure returned {what}; expected the loss, one real number")


def _seed(seed: int, j: int) -> int:
    """A seed for the j-th parameter."""
    return (seed + j * _MIX) % 2**63


def _draw(generator: torch.Generator) -> int:
    return int(torch.randint(2**63 - 1, (), generator=generator, dtype=torch.int64))


def _random_state(params: Sequence[Tensor]) -> dict[str, Tensor]:
    state = {"cpu": torch.get_rng_state()}
    for device in {p.device for p in params if p.is_cuda}:
        state[str(device)] = torch.cuda.get_rng_state(device)
    return state


def _set_random_state(state: dict[str, Tensor]) -> None:
    for device, one in state.items():
        torch.set_rng_state(one) if device == "cpu" else torch.cuda.set_rng_state(one, device)


def _check(name: str, number: float, least: float, *, strict: bool) -> None:
    if not (number > least if strict else number >= least) or not math.isfinite(number):
        raise InputError(f"MeZO: {name}={number!r}; expected a finite number {'above' if strict else 'from'} {least:g}")


def _check_params(params: Sequence[Tensor], eps: float) -> None:
    for p in params:
        if not p.is_floating_point():
            raise InputError(f"MeZO: a parameter {tuple(p.shape)} is {p.dtype}; expected real floating numbers")
        if eps < torch.finfo(p.dtype).tiny:
            raise InputError(f"MeZO: eps={eps:g} is nothing in {p.dtype}; give a larger eps")


def mezo_gradient(
    closure: Closure,
    params: Iterable[Tensor],
    *,
    eps: float = 1e-3,
    directions: int = 1,
    seed: int | torch.Generator = 0,
    common: bool = True,
) -> tuple[float, list[Tensor]]:
    """Estimate of a loss and of its gradient from 2 m values, without backward and without a copy of the parameters.

    Parameters
    ----------
    closure : callable
        Computes the loss from the parameters by operations of torch: a number or a tensor of one entry. It must not
        call `backward` or write to the parameters; gradients are off.
    params : iterable of torch.Tensor
        Real floating tensors; those with `requires_grad=False` get zeros.
    eps : float, default 1e-3
        How far entries move, in units of a standard normal number.
    directions : int, default 1
        Number m of directions.
    seed : int or torch.Generator, default 0
        Where the directions' seeds come from; a generator (on the CPU) goes on from call to call.
    common : bool, default True
        Let both evaluations of a direction start from the same state of torch's global generators, so that they
        share dropout masks.

    Returns
    -------
    value : float
        Mean of the evaluated losses: the loss up to O(eps^2).
    gradients : list of torch.Tensor
        One for each parameter: unbiased up to O(eps^2), with a variance of about `n ||g||^2 / m` in all.

    Raises
    ------
    InputError
        For an `eps` that is not positive, `directions` below 1, parameters that are not real, and a closure that
        returns no number, writes to a parameter or uses none.
    NonFiniteError
        If the loss is NaN or infinite.
    """
    given = list(params)
    _check("eps", eps, 0.0, strict=True)
    _check("directions", directions, 1, strict=False)
    moving = [p for p in given if p.requires_grad]
    if not moving:
        raise InputError("mezo_gradient: no parameter with requires_grad=True")
    _check_params(moving, eps)
    source = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(seed)
    estimate = _Estimate(moving, [eps] * len(moving), common)
    for _ in range(directions):
        estimate.add(closure, _draw(source))
    estimate.check_used()
    gradients = {id(p): torch.zeros_like(p, requires_grad=False) for p in given}
    for j, p in enumerate(moving):
        for slope, z in estimate.slopes(j):
            gradients[id(p)].add_(z, alpha=slope)
    return estimate.value, [gradients[id(p)] for p in given]


class MeZO(torch.optim.Optimizer):
    """Stochastic gradient descent on random-direction estimates, in the memory of inference.

    A step draws m directions z and moves by `-lr (s z + weight_decay p)` with the slope s of the loss along z, from
    2 m evaluations of the closure. Directions are drawn again from their seeds instead of being kept, and parameters
    are displaced only inside of the operations that use them: beside the parameters there are copies of those of one
    operation and one direction, and outside of the step's own update no parameter changes by a bit.

    Parameters that are frozen, or that the loss does not use, stay as they are. The groups are read at every step, so
    schedulers work. Randomness comes from the optimizer's own generator, which `state_dict` holds.

    Parameters
    ----------
    params : iterable
        Parameters or groups, as for any optimizer of torch.
    lr : float
        Step size, from 0. The estimate is about sqrt(n/m) times as long as the gradient, for n parameters: begin
        that much below what suits a gradient.
    eps : float, default 1e-3
        How far entries move, in units of a standard normal number.
    weight_decay : float, default 0
        Pulls parameters towards 0, apart from the estimate.
    directions : int, default 1
        Number m of directions a step.
    seed : int, default 0
        Of the generator.
    common : bool, default True
        Let both evaluations of a direction start from the same state of torch's global generators, so that they
        share dropout masks.

    Raises
    ------
    InputError
        For numbers out of range and parameters that are not real floating.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        *,
        eps: float = 1e-3,
        weight_decay: float = 0.0,
        directions: int = 1,
        seed: int = 0,
        common: bool = True,
    ) -> None:
        _check("directions", directions, 1, strict=False)
        super().__init__(params, {"lr": lr, "eps": eps, "weight_decay": weight_decay})
        self._check_groups()
        self.directions, self.common = directions, common
        self.generator = torch.Generator().manual_seed(seed)

    def _check_groups(self) -> None:
        for group in self.param_groups:
            _check("lr", float(group["lr"]), 0.0, strict=False)
            _check("eps", group["eps"], 0.0, strict=True)
            _check("weight_decay", group["weight_decay"], 0.0, strict=False)
            _check_params(group["params"], group["eps"])

    @torch.no_grad()
    def step(self, closure: Closure) -> float:  # type: ignore[override]
        """One step.

        Parameters
        ----------
        closure : callable
            Computes the loss, as in `mezo_gradient`; called 2 m times.

        Returns
        -------
        float
            Mean of the evaluated losses.
        """
        if closure is None:
            raise InputError("MeZO: step needs a closure that computes the loss: optimizer.step(closure)")
        self._check_groups()
        moving = [(p, group) for group in self.param_groups for p in group["params"] if p.requires_grad]
        if not moving:
            raise InputError("MeZO: every parameter is frozen (requires_grad=False); nothing can be trained")
        params = [p for p, _ in moving]
        estimate = _Estimate(params, [group["eps"] for _, group in moving], self.common)
        for _ in range(self.directions):
            estimate.add(closure, _draw(self.generator))
        estimate.check_used()
        for j, (p, group) in enumerate(moving):
            if id(p) not in estimate.used:
                continue
            lr = float(group["lr"])
            if group["weight_decay"]:
                p.mul_(1 - lr * group["weight_decay"])
            for slope, z in estimate.slopes(j):
                p.add_(z, alpha=-lr * slope)
        return estimate.value

    def state_dict(self) -> dict[str, Any]:
        """That of any optimizer, and the state of the generator under `generator`."""
        return {**super().state_dict(), "generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what `state_dict` gave; the same steps follow, bit for bit."""
        if "generator" not in state_dict:
            raise InputError("MeZO: this state has no 'generator'; it is of another optimizer")
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "generator"})
        self.generator.set_state(state_dict["generator"].cpu())

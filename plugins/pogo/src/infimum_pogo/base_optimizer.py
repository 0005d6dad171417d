"""What POGO and its rivals share as optimizers of PyTorch: layouts, buckets, base directions, checks."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from infimum.errors import InputError, NonFiniteError
from infimum_pogo import geometry, kernel
from infimum_pogo.buckets import Bucket, as_matrices, bucketed, laid_like, on_rows
from infimum_pogo.checks import INITS, admitted, check_number, check_word

Group = dict[str, Any]
CALLABLES = ("base", "flatten")
"""Options that may be functions; a state holds their names, and loading keeps the functions that are there."""
OPTIONS = ("base", "momentum", "dampening", "nesterov", "betas", "eps", "weight_decay", "landing", "safe", "attraction")
"""Options beside lr that are looked at anew when they change between steps."""
LOOK = 100
"""Steps between two looks for NaN where looking waits for the device."""


class NonFiniteGradient(NonFiniteError):
    """NaN or inf in a gradient; the step that met it changed nothing."""

    def __init__(self, text: str) -> None:
        super().__init__("the loss", "gradient", "NaN or inf")
        self.args = (text,)


def _most(G: torch.Tensor) -> float:
    """Norms of gradients from here on have squares that overflow, in the dtype of G."""
    return math.sqrt(torch.finfo(G.dtype).max)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """How the constrained parameters stand.

    Attributes
    ----------
    orthogonality : float
        The largest ||X X^H - I||_F.
    grad_norm : float or None
        ||R||_F of the gradients that are there, over all parameters; None without gradients.
    reach : float or None
        The largest lr ||R||_2 (a bound of it) that the last step wanted, before the guard.
    guard_share : float
        Share of steps of single matrices that the guard shortened.
    reflections : int or None
        Real square matrices with determinant -1, which steps do not change; None without square matrices.
    matrices : int
        How many there are.
    """

    orthogonality: float
    grad_norm: float | None
    reach: float | None
    guard_share: float
    reflections: int | None
    matrices: int


class StiefelOptimizer(torch.optim.Optimizer):
    """Base of optimizers of matrices with orthonormal rows or columns: layouts, buckets, base directions, checks."""

    title = "optimizer"

    def __init__(self, params: Any, defaults: Group, bucket: bool = True) -> None:
        if not isinstance(bucket, bool):
            raise InputError(f"{self.title}: bucket={bucket!r}; expected True or False")
        self.bucket = bucket
        self._restart()
        super().__init__(params, defaults)

    def _restart(self) -> None:
        self._plans: dict[int, tuple[Any, list[Bucket]]] = {}
        self._known = 0
        self._checked: dict[int, tuple[Any, ...]] = {}
        self._desk = kernel.Desk()
        self._guarded: list[Any] = []
        self._shortened = 0
        self._moved = 0
        self._last: list[kernel.Taken] = []
        self._steps = 0
        self._broken: Any = None
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "bucket": self.bucket}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._restart()

    def add_param_group(self, param_group: Group) -> None:
        """Add parameters, with options of their own if given, and check them or project them (`init`)."""
        super().add_param_group(param_group)
        number = len(self.param_groups) - 1
        group = self.param_groups[number]
        self._check_group(group, f"{self.title}: parameter group {number}")
        for k, p in enumerate(group["params"]):
            self._admit(p, group, self._named(group, k, number))

    def _named(self, group: Group, k: int, number: int) -> str:
        names = group.get("param_names")
        return f"{self.title}: parameter '{names[k]}'" if names else f"{self.title}: parameter {k} of group {number}"

    def _check_group(self, group: Group, what: str) -> None:
        lr = group["lr"]
        if isinstance(lr, torch.Tensor):
            if lr.numel() != 1:
                raise InputError(f"{what}: lr is a tensor of shape {tuple(lr.shape)}; expected one number")
            lr = float(lr)
        check_number(lr, "lr", what, 0.0, open_low=False)  # A scheduler may bring it down to zero.
        check_number(group["momentum"], "momentum", what, 0.0, 1.0, open_low=False)
        check_word(group["init"], "init", INITS, what)
        if group["flatten"] is not None and not callable(group["flatten"]):
            raise InputError(f"{what}: flatten={group['flatten']!r}; expected a function of the weight, or None")

    @torch.no_grad()
    def _admit(self, p: torch.Tensor, group: Group, what: str) -> None:
        if not (p.is_floating_point() or p.is_complex()):
            kind = str(p.dtype).rpartition(".")[2]
            raise InputError(f"{what} is {kind}; expected real or complex floating-point numbers")
        if p.layout is not torch.strided:
            raise InputError(f"{what} is sparse ({p.layout}); expected a dense tensor")
        if any(size > 1 and step == 0 for size, step in zip(p.shape, p.stride(), strict=True)):
            raise InputError(f"{what} has entries that share memory (an expanded tensor); expected a copy: p.clone()")
        if not p.numel():
            raise InputError(f"{what} is empty: its shape is {tuple(p.shape)}")
        X = on_rows(as_matrices(p.detach(), group["flatten"], what), group["rows"], what)
        better = admitted(X, group["init"], what, optimizer=True)
        if better is not None:
            X.copy_(better)

    @torch.no_grad()
    def project_(self) -> None:
        """Replace every constrained matrix by the nearest one with orthonormal rows (columns), in place."""
        for _, _, X in self._matrices():
            X.copy_(geometry.polar(X))

    def _matrices(self) -> list[tuple[torch.Tensor, Group, torch.Tensor]]:
        return [
            (p, group, on_rows(as_matrices(p.detach(), group["flatten"], "parameter"), group["rows"], "parameter"))
            for group in self.param_groups
            for p in group["params"]
        ]

    def state_dict(self) -> dict[str, Any]:
        """As for every optimizer; functions among the options are stored by name."""
        out = super().state_dict()
        for group in out["param_groups"]:
            for name in CALLABLES:
                if callable(group.get(name)):
                    group[name] = getattr(group[name], "__name__", "function")
        return out

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state; nothing is shared with where it came from, and functions are those that are here."""
        here = [{name: group.get(name) for name in CALLABLES} for group in self.param_groups]
        super().load_state_dict(copy.deepcopy(state_dict))
        for group, own in zip(self.param_groups, here, strict=True):
            for name, value in own.items():
                if callable(value):
                    group[name] = value
        self._plans = {}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step of every parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the gradients anew and returns the loss.

        Returns
        -------
        The loss of the closure, or None.

        Raises
        ------
        NonFiniteGradient
            If a gradient holds NaN or inf; found before anything is changed on a CPU, and within 100 steps elsewhere,
            where looking would wait for the device.
        InputError
            For sparse gradients, and options that were changed to something out of range.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        work = [self._gathered(bucket, slopes) for bucket, slopes in self._buckets()]
        for bucket, _, G in work:
            self._look_at(bucket, G)
        self._last = []
        for bucket, X, G in work:
            self._move(bucket, X, G)
            bucket.scatter()
            bucket.advance()
        self._steps += 1
        if self._broken is not None and self._steps % LOOK == 0:
            self._tell_broken()
        return loss

    def _buckets(self) -> list[tuple[Bucket, list[Any]]]:
        """The buckets of this step with the gradients of their groups; made anew when those with gradients change."""
        out: list[tuple[Bucket, list[Any]]] = []
        if len(self.state) != self._known:  # What some remembered was dropped.
            self._plans = {}
        for number, group in enumerate(self.param_groups):
            slopes = [p.grad for p in group["params"]]
            present = tuple([one is not None for one in slopes])
            key = (present, group["rows"], group["flatten"], group.get("base"))
            plan = self._plans.get(number)
            self._recheck(group, number)
            if plan is None or plan[0] != key or any(bucket.stale(self.state) for bucket in plan[1]):
                plan = self._plans[number] = (key, bucketed(group, present, self.state, self._apart(group)))
            out += [(bucket, slopes) for bucket in plan[1]]
        self._known = len(self.state)
        return out

    def _recheck(self, group: Group, number: int) -> None:
        """Check options that were changed since they were checked; schedules change lr all the time."""
        lr = group["lr"]
        seen = tuple([group.get(name) for name in OPTIONS])
        if self._checked.get(number) != seen or not (isinstance(lr, torch.Tensor) or 0.0 <= lr < math.inf):
            self._check_group(group, f"{self.title}: parameter group {number}")
            self._checked[number] = seen

    def _gathered(self, bucket: Bucket, slopes: list[Any]) -> tuple[Bucket, torch.Tensor, torch.Tensor]:
        try:
            X, G = bucket.gather(slopes)
        except (RuntimeError, NotImplementedError):
            self._refuse_sparse(slopes)
            raise
        if G.layout is not torch.strided:
            self._refuse_sparse(slopes)
        return bucket, X, G

    def _refuse_sparse(self, slopes: list[Any]) -> None:
        for one in slopes:
            if one is not None and one.layout is not torch.strided:
                raise InputError(f"{self.title}: a gradient is sparse ({one.layout}); make it dense")

    def _apart(self, group: Group) -> bool:
        return not self.bucket or callable(group.get("base"))

    def _look_at(self, bucket: Bucket, G: torch.Tensor) -> None:
        """Find NaN, inf and what overflows in gradients: at once on a CPU, as a flag on the device elsewhere."""
        size = torch.linalg.vector_norm(G)
        if G.device.type != "cpu":
            bad = ~torch.isfinite(size)
            self._broken = bad if self._broken is None else self._broken | bad
        elif not float(size) < _most(G):
            self._refuse(bucket)

    def _refuse(self, bucket: Bucket) -> None:
        for p in bucket.parameters:
            slope = as_matrices(laid_like(p.grad, p), bucket.flatten, "gradient") if p.grad is not None else None
            if slope is None:
                continue
            wide = slope.to(torch.complex128 if slope.is_complex() else torch.float64)
            size = float(torch.linalg.vector_norm(wide, dim=(-2, -1)).max())
            if not size < _most(slope):
                number, group = next(
                    (i, one) for i, one in enumerate(self.param_groups) if any(q is p for q in one["params"])
                )
                k = next(k for k, q in enumerate(group["params"]) if q is p)
                what = self._named(group, k, number)
                kind = str(slope.dtype).rpartition(".")[2]
                said = (
                    f"has norm {size:.3g}, whose square overflows in {kind}" if size < math.inf else "holds NaN or inf"
                )
                raise NonFiniteGradient(f"the gradient of {what.partition(': ')[2]} {said}; no step was taken")

    def _tell_broken(self) -> None:
        if self._broken is not None and bool(self._broken):
            self._broken = None
            raise NonFiniteGradient(f"{self.title}: a gradient held NaN or inf within the last {LOOK} steps")

    def _direction(self, bucket: Bucket, X: torch.Tensor, G: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The base direction of a bucket, and the factor of each matrix (or 1)."""
        group = bucket.group
        if group.get("weight_decay"):
            G = torch.add(G, X, alpha=group["weight_decay"])
        base = group.get("base", "sgd")
        if base == "vadam":
            return self._vadam(bucket, G)
        if callable(base):
            D = base(G, bucket.states[0].setdefault("base", {}))
            if not isinstance(D, torch.Tensor) or D.shape != G.shape:
                got = tuple(D.shape) if isinstance(D, torch.Tensor) else type(D).__name__
                raise InputError(f"{self.title}: base(G, state) gave {got} for G of {tuple(G.shape)}")
            return D, 1.0
        momentum = group["momentum"]
        if not momentum:
            return G, 1.0
        kept = bucket.remembered("momentum_buffer", False)
        if bucket.taken == 0:
            kept.copy_(G)
        else:
            kept.mul_(momentum).add_(G, alpha=1.0 - group.get("dampening", 0.0))
        return (torch.add(G, kept, alpha=momentum) if group.get("nesterov") else kept), 1.0

    def _vadam(self, bucket: Bucket, G: torch.Tensor) -> tuple[torch.Tensor, Any]:
        first, second = bucket.group["betas"]
        mean = bucket.remembered("exp_avg", False)
        seen = bucket.remembered("exp_avg_sq", True)
        t = bucket.taken + 1
        mean.lerp_(G, 1.0 - first)
        seen.mul_(second).add_(torch.linalg.vector_norm(G, dim=(-2, -1)).square_(), alpha=1.0 - second)
        size = (seen / (1.0 - second**t)).sqrt_().add_(bucket.group["eps"]).mul_(1.0 - first**t)
        return mean, size.reciprocal_()

    def _move(self, bucket: Bucket, X: torch.Tensor, G: torch.Tensor) -> None:
        """Move the matrices of a bucket in place."""
        raise NotImplementedError

    @torch.no_grad()
    def diagnostics(self) -> Diagnostics:
        """What is known after the last step; waits for the device."""
        self._tell_broken()
        gap, square, turned, count, slopes, squares = 0.0, 0.0, 0, 0, False, False
        for p, group, X in self._matrices():
            gap = max(gap, geometry.largest_gap(X))
            count += int(X.shape[0])
            if p.grad is not None:
                slopes = True
                flat = as_matrices(laid_like(p.grad, p), group["flatten"], "gradient")
                R = geometry.relative_gradient(X, on_rows(flat, group["rows"], "gradient"))
                square += float(torch.linalg.vector_norm(R)) ** 2
            if X.shape[-1] == X.shape[-2] and not X.is_complex():
                squares = True
                turned += int((geometry.determinant_signs(X) < 0).sum())
        reaches = [one.reach() for one in self._last]
        self._shortened += int(sum(int(one) for one in self._guarded))
        self._guarded = []
        return Diagnostics(
            orthogonality=gap,
            grad_norm=math.sqrt(square) if slopes else None,
            reach=max(reaches, default=None),
            guard_share=self._shortened / max(1, self._moved),
            reflections=turned if squares else None,
            matrices=count,
        )

"""POGO and its rivals as solvers of problems with one Stiefel constraint."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from infimum.arrays import Array, is_complex, namespace, norm
from infimum.errors import InfimumWarning, InputError
from infimum.schedule import Schedule
from infimum.solver import Metric, Slot, Solver
from infimum_pogo import geometry, kernel
from infimum_pogo.bases import Memory, sgd, vadam
from infimum_pogo.checks import INITS, admitted, check_betas, check_number, check_safe, check_word, too_long
from infimum_pogo.rivals import landing_step, riemannian_step

Rate = Annotated[float, Gt(0)] | Literal["auto"] | Schedule
Fraction = Annotated[float, Ge(0), Lt(1)]
Positive = Annotated[float, Gt(0)]


@dataclass(slots=True)
class StiefelState:
    """A point, the same as a batch (b, p, n) with its gradient there, what the base remembers, the last step."""

    x: Array
    batch: Array
    slope: Array
    value: float | None
    memory: Memory
    k: int
    seed: int
    lr: float
    reach: float | None
    guarded: int
    taken: int


def _grad_norm(state: StiefelState) -> float:
    return norm(kernel.directions(state.batch, state.slope, kernel.own_desk()).R)


def _gap(state: StiefelState) -> float:
    return geometry.largest_gap(state.batch)


def _reflections(state: StiefelState) -> float:
    X = state.batch
    if X.shape[-1] != X.shape[-2] or is_complex(X):
        return 0.0
    signs = geometry.determinant_signs(X)
    return float(namespace(X).mean(1.0 * (signs < 0)) if isinstance(X, np.ndarray) else (signs < 0).double().mean())


class _OnStiefel(Solver):
    """What the three share: the start, gradients exact or sampled, base directions, the metrics."""

    metrics: ClassVar[Mapping[str, Metric]] = {
        "grad_norm": Metric(_grad_norm),
        "value": Metric(attrgetter("value"), {"smooth": ("value_and_gradient",)}),
        "step": Metric(attrgetter("lr")),
        "orthogonality": Metric(_gap),
        "reflections": Metric(_reflections),
    }
    State: ClassVar[type] = StiefelState
    title: ClassVar[str] = "pogo"
    reference_problems: ClassVar[tuple[dict[str, Any], ...]] = (
        {"use": "pogo.procrustes", "batch": 3, "p": 2, "n": 4},
        {"use": "pogo.pca", "components": 2, "batch": 8},
    )

    lr: Any
    momentum: float
    gradient: Literal["exact", "sample"]
    start: Literal["check", "project", "ignore"]

    def slots(self) -> tuple[Slot, ...]:
        smooth = (
            Slot("smooth", needs=("gradient",), wants=("value_and_gradient",), at_least=1)
            if self.gradient == "exact"
            else Slot("smooth", needs=("sample_gradient",), at_least=1)
        )
        return (smooth, Slot("set", needs=("matrices", "assemble"), at_least=1, at_most=1, empty=None))

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> StiefelState:
        batch = parts.set.matrices(start)
        other = admitted(batch, self.start, "x0")
        x = start if other is None else parts.set.assemble(other, start)
        lr, seed = self._rate(parts, 0), int(rng.integers(2**62))
        state = StiefelState(x, batch if other is None else other, batch, None, {}, 0, seed, lr, None, 0, 0)
        return self._looked(parts, state)

    def _looked(self, parts: Any, state: StiefelState) -> StiefelState:
        """The state with gradient and value at its point."""
        if self.gradient == "sample":
            gradient = parts.smooth.sample_gradient(state.x, np.random.default_rng((state.seed, state.k)))
        elif parts.smooth.offers("value_and_gradient"):
            value, gradient = parts.smooth.value_and_gradient(state.x)
            state.value = float(value)
        else:
            gradient = parts.smooth.gradient(state.x)
        state.slope = parts.set.matrices(gradient)
        return state

    def step(self, parts: Any, state: StiefelState) -> StiefelState:
        lr = self._rate(parts, state.k)
        D, factor, memory = self._direction(state)
        X, reach, guarded = self._moved(state.batch, D, lr, factor)
        guarded, taken = state.guarded + guarded, state.taken + int(X.shape[0])
        x = parts.set.assemble(X, state.x)
        new = StiefelState(x, X, X, None, memory, state.k + 1, state.seed, lr, reach, guarded, taken)
        return self._looked(parts, new)

    def _direction(self, state: StiefelState) -> tuple[Array, Any, Memory]:
        raise NotImplementedError

    def _moved(self, X: Array, D: Array, lr: float, factor: Any) -> tuple[Array, float | None, int]:
        raise NotImplementedError

    def _rate(self, parts: Any, k: int) -> float:
        if callable(self.lr):
            lr = float(self.lr(k))
            if not 0 <= lr < math.inf:
                raise InputError(f"{self.title}: the schedule {self.lr!r} gave {lr} at k={k}; expected a number >= 0")
            return lr
        if self.lr != "auto":
            return float(self.lr)
        return self._auto(parts.smooth.lipschitz)

    def _auto(self, constant: float | None) -> float:
        if constant is None:
            raise InputError(
                f"{self.title}: lr='auto' is 1/L, but no Lipschitz constant L of the gradient of what stands in slot "
                "'smooth' is known; declare it on the function (lipschitz=L) or give a number as lr"
            )
        return 1.0 / constant if constant > 0 else 1.0


def _check_common(one: Any) -> None:
    """Options that types alone do not check, for solvers made in Python."""
    if one.lr != "auto" and not callable(one.lr):
        check_number(one.lr, "lr", one.title, 0.0)
    check_number(one.momentum, "momentum", one.title, 0.0, 1.0, open_low=False)
    check_word(one.gradient, "gradient", ("exact", "sample"), one.title)
    check_word(one.start, "start", INITS, one.title)


@dataclass(frozen=True)
class Pogo(_OnStiefel):
    """Minimize over matrices with orthonormal rows or columns: leap along the relative gradient, then land.

    With the base direction D, `R = 1/2 (X X^H D - X D^H X)`, `M = X - lr R`, `X+ = M + 1/2 (M - M M^H M)`. R is
    tangent for every X, so the defect of X+ is of fourth order in the step, and defects shrink quadratically: the
    matrices stay orthonormal at all times to about `3/4 (lr ||R||)^4`, by products of matrices alone. Reports `x`.

    Metrics: `grad_norm`, the norm of R of the gradient (1/2 of the Riemannian gradient where D leaves the row space,
    all of it within); `value`; `orthogonality`, the largest ||X X^H - I||; `step`; `reach`, a bound of lr ||R||_2 of
    the last step before the guard; `guard_share`, the share of steps of single matrices that the guard shortened;
    `reflections`, the share of real square matrices with determinant -1, which steps do not change.

    Parameters
    ----------
    lr : float, "auto" or a schedule, default "auto"
        Step size. "auto" is 1/L with a declared Lipschitz constant L of the gradient for base "sgd", and 1 for
        "vadam", whose directions have norm about one.
    base : {"sgd", "vadam"}, default "sgd"
        What makes D of the gradient: nothing or momentum, or VectorAdam.
    momentum : float, default 0
        For "sgd", in [0, 1).
    nesterov : bool, default False
        For "sgd".
    betas : list of two floats, default [0.9, 0.999]
        For "vadam".
    eps : float, default 1e-8
        For "vadam".
    weight_decay : float, default 0
        Adds weight_decay * X to the gradient. On the manifold it has no part along it: without effect for "sgd".
    landing : {"half", "optimal"}, default "half"
        Landing step 1/2, or the one that leaves the smallest defect: about four times smaller, for two more small
        products. Half is the sturdier one.
    safe : float or None, default 0.5
        Step guard: matrix i takes the step min(lr, safe / ||R_i||). Beyond sqrt(2) a step loses rank.
    gradient : {"exact", "sample"}, default "exact"
        "sample" asks the function for `sample_gradient`, an estimate from a batch.
    start : {"check", "project", "ignore"}, default "check"
        What happens to a start that is not orthonormal: refused, replaced by its nearest point, or landed.

    Raises
    ------
    InputError
        For options out of range, "auto" where no L is known, and a start that does not serve.

    Warns
    -----
    InfimumWarning
        Without a guard, once in a run, if lr ||R|| reaches sqrt(2).

    Source: A. Javaloy and A. Vergari, arXiv 2602.14656; the guard and the landing step by Newton's method are our own.
    """

    lr: Rate = "auto"
    base: Literal["sgd", "vadam"] = "sgd"
    momentum: Fraction = 0.0
    nesterov: bool = False
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Positive = 1e-8
    weight_decay: Annotated[float, Ge(0)] = 0.0
    landing: Literal["half", "optimal"] = "half"
    safe: Annotated[float, Gt(0), Lt(math.sqrt(2.0))] | None = kernel.SAFE
    gradient: Literal["exact", "sample"] = "exact"
    start: Literal["check", "project", "ignore"] = "check"

    title: ClassVar[str] = "pogo.pogo"
    preference: ClassVar[int] = 1
    metrics: ClassVar[Mapping[str, Metric]] = {
        **_OnStiefel.metrics,
        "reach": Metric(attrgetter("reach")),
        "guard_share": Metric(lambda state: state.guarded / max(1, state.taken)),
    }
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.5, "nesterov": True, "weight_decay": 0.1},
        {"lr": 0.5, "base": "vadam", "landing": "optimal"},
        {"lr": 0.1, "safe": None},
    )

    def __post_init__(self) -> None:
        _check_common(self)
        check_word(self.base, "base", ("sgd", "vadam"), self.title)
        check_word(self.landing, "landing", ("half", "optimal"), self.title)
        check_safe(self.safe, self.title)
        check_betas(self.betas, self.title)
        check_number(self.eps, "eps", self.title, 0.0)
        check_number(self.weight_decay, "weight_decay", self.title, 0.0, open_low=False)
        object.__setattr__(self, "betas", tuple(self.betas))

    def _auto(self, constant: float | None) -> float:
        return 1.0 if self.base == "vadam" else super()._auto(constant)

    def _direction(self, state: StiefelState) -> tuple[Array, Any, Memory]:
        G = state.slope
        if self.weight_decay:
            G = G + self.weight_decay * state.batch
        if self.base == "vadam":
            return vadam(G, state.memory, self.betas, self.eps, state.k)
        return sgd(G, state.memory, self.momentum, 0.0, self.nesterov)

    def _moved(self, X: Array, D: Array, lr: float, factor: Any) -> tuple[Array, float | None, int]:
        s = kernel.directions(X, D, kernel.own_desk())
        wanted = lr * factor
        Y, taken = kernel.move(X, s, wanted, self.safe, self.landing == "optimal")
        reach = taken.reach()
        if self.safe is None:
            if reach >= math.sqrt(2.0):
                warnings.warn(too_long(self.title, lr, reach), InfimumWarning, stacklevel=2)
            return Y, reach, 0
        return Y, reach, int(taken.shortened)


@dataclass(frozen=True)
class LandingSolver(_OnStiefel):
    """Landing, a rival: along `R + attraction (X X^H - I) X`, which draws near to orthonormal matrices over time.

    As cheap as POGO per step, but iterates stand off the set by an amount that a constant step does not bring to zero
    while the gradient moves. Reports `x`, which in general is not feasible: see the metric `orthogonality`.

    Parameters
    ----------
    lr : float, "auto" or a schedule, default "auto"
        Step size; "auto" is 1/L.
    momentum : float, default 0
        In [0, 1).
    attraction : float, default 1
        Weight of the normal direction.
    radius : float or None, default 0.5
        Each step is shortened so that ||X X^H - I|| stays within it; None trusts lr.
    gradient : {"exact", "sample"}, default "exact"
        "sample" asks the function for `sample_gradient`.
    start : {"check", "project", "ignore"}, default "check"
        What happens to a start that is not orthonormal.

    Source: P. Ablin and G. Peyre, AISTATS 2022; P. Ablin and others, arXiv 2303.16510.
    """

    lr: Rate = "auto"
    momentum: Fraction = 0.0
    attraction: Positive = 1.0
    radius: Annotated[float, Gt(0), Lt(1)] | None = 0.5
    gradient: Literal["exact", "sample"] = "exact"
    start: Literal["check", "project", "ignore"] = "check"

    title: ClassVar[str] = "pogo.landing"
    preference: ClassVar[int] = -2
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"lr": 0.1}, {"lr": 0.1, "momentum": 0.5, "radius": None})

    def __post_init__(self) -> None:
        _check_common(self)
        check_number(self.attraction, "attraction", self.title, 0.0)
        if self.radius is not None:
            check_number(self.radius, "radius", self.title, 0.0, 1.0)

    def _direction(self, state: StiefelState) -> tuple[Array, Any, Memory]:
        return sgd(state.slope, state.memory, self.momentum, 0.0, False)

    def _moved(self, X: Array, D: Array, lr: float, factor: Any) -> tuple[Array, float | None, int]:
        return landing_step(X, D, lr, self.attraction, self.radius)[0], None, 0


@dataclass(frozen=True)
class RiemannianSolver(_OnStiefel):
    """Riemannian gradient descent with QR retraction, a rival: feasible to rounding, one factorization per step.

    `X+ = qf(X - lr (D - 1/2 (D X^H + X D^H) X))`. Its direction has no factor 1/2 outside of the row space, so equal
    lr means longer steps than in `pogo.pogo`. Reports `x`.

    Parameters
    ----------
    lr : float, "auto" or a schedule, default "auto"
        Step size; "auto" is 1/L.
    momentum : float, default 0
        In [0, 1); the buffer lives in the ambient space, without vector transport.
    gradient : {"exact", "sample"}, default "exact"
        "sample" asks the function for `sample_gradient`.
    start : {"check", "project", "ignore"}, default "check"
        What happens to a start that is not orthonormal.
    """

    lr: Rate = "auto"
    momentum: Fraction = 0.0
    gradient: Literal["exact", "sample"] = "exact"
    start: Literal["check", "project", "ignore"] = "check"

    title: ClassVar[str] = "pogo.riemannian"
    preference: ClassVar[int] = -1
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"lr": 0.1}, {"lr": 0.1, "momentum": 0.5})

    def __post_init__(self) -> None:
        _check_common(self)

    def _direction(self, state: StiefelState) -> tuple[Array, Any, Memory]:
        return sgd(state.slope, state.memory, self.momentum, 0.0, False)

    def _moved(self, X: Array, D: Array, lr: float, factor: Any) -> tuple[Array, float | None, int]:
        return riemannian_step(X, D, lr), None, 0

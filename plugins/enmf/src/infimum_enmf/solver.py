"""Solvers of the family `nmf`: the exterior method and hierarchical alternating least squares."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from infimum.solver import Metric, Slot, Solver
from infimum_enmf import descent
from infimum_enmf.checks import check_flag, check_whole
from infimum_enmf.descent import Descent
from infimum_enmf.diagnostics import tolerance
from infimum_enmf.entry import Walk
from infimum_enmf.mapping import Mapping
from infimum_enmf.matrix import Array
from infimum_enmf.rotation import Rotation
from infimum_enmf.stages import Machine, Options, Preset, State, resolve

REFERENCE: Sequence[MappingType[str, Any]] = (
    {"use": "enmf.separable", "m": 24, "n": 18, "rank": 4, "sparsity": 0.3, "seed": 3},
)
_WORK: dict[str, type] = {one.__name__: one for one in (Rotation, Mapping, Walk, Descent)}
FIT = Slot("fit", needs=("times", "adjoint"), wants=("decompose",), at_least=1, at_most=1, empty=None)


class Products:
    """The data behind a slot, its products counted by the host."""

    def __init__(self, part: Any) -> None:
        self.times, self.adjoint, self.decompose = part.times, part.adjoint, part.decompose
        body = part.origin
        self.norm, self.shape, self.dtype, self.stored = body.norm, body.shape, body.dtype, body.stored
        self._body = body

    def error(self, U: Array, V: Array, *, XtU: Array | None = None) -> float:
        """||X - U V^T||; the product that it takes is counted."""
        found: float = self._body.error(U, V, XtU=self.adjoint(U) if XtU is None else XtU)
        return found


@dataclass(frozen=True)
class Exterior(Solver):
    """The exterior method: truncated SVD, rotation towards the orthant, entry walk, descent.

    All best unconstrained factorizations of rank r have the same error, that of the SVD, which no nonnegative one can
    beat. The one with the least negative mass is rotated to (ADMM, section "rotation" of the paper), carried on by
    invertible maps where that leads into the orthant (an extension of this package: `mapping_steps=0` leaves it out),
    walked in, and polished by HALS with extrapolation. An iteration is one short step of a stage, so time limits and
    targets hold in all stages; only the SVD is one piece. The solution is feasible at every iteration: what is
    negative is cut off. The start of the run is only shown: the method makes its own and does not depend on the seed.

    Parameters
    ----------
    preset : {"default", "fast", "paper"}, default "default"
        `fast`: an entry of 10 rounds. `paper`: 4000 steps of rotation without the plateau rule, no mapping, plain HALS.
        An option that is given goes before the preset's.
    rotation_steps : int, optional
        ADMM steps at most (4000).
    rotation_tol : float, optional
        Primal or dual residual at which the rotation ends (1e-4).
    rho : float, optional
        First penalty of ADMM (5).
    window : int, optional
        The rotation ends when the least negative mass fell by less than `plateau` over this many steps (50; 0: never).
    plateau : float, optional
        A share (0.001).
    mapping_steps : int, optional
        L-BFGS steps over invertible maps at most (3000; 0: rotations only).
    entry_steps : int, optional
        Rounds of the walk into the orthant (100; 0: cut off at once).
    inner : int, optional
        Projected line searches in a round of the walk (2).
    passes : int, optional
        Sweeps of HALS per product with X (2).
    extrapolate : bool, optional
        Whether HALS extrapolates; a round that would raise the error is taken back (true).

    References
    ----------
    Lu, Monsoor, Ebrahimzadeh, Sharma, Roychowdhury, "An Exterior Method for Nonnegative Matrix Factorization",
    ICML 2026, arXiv 2605.19325.
    """

    preset: Preset = "default"
    rotation_steps: Annotated[int, Ge(0)] | None = None
    rotation_tol: Annotated[float, Ge(0.0)] | None = None
    rho: Annotated[float, Gt(0.0)] | None = None
    window: Annotated[int, Ge(0)] | None = None
    plateau: Annotated[float, Ge(0.0)] | None = None
    mapping_steps: Annotated[int, Ge(0)] | None = None
    entry_steps: Annotated[int, Ge(0)] | None = None
    inner: Annotated[int, Ge(1)] | None = None
    passes: Annotated[int, Ge(1)] | None = None
    extrapolate: bool | None = None

    families: ClassVar[tuple[str, ...]] = ("nmf",)
    preference: ClassVar[int] = 1
    reference_problems: ClassVar[Sequence[MappingType[str, Any]]] = REFERENCE
    examples: ClassVar[Sequence[MappingType[str, Any]]] = (
        {},
        {"preset": "paper", "rotation_steps": 20},
        {"preset": "fast", "mapping_steps": 0},
    )
    metrics: ClassVar[MappingType[str, Metric]] = {
        "value": Metric(lambda at: at.error / at.norm),
        "negative_mass": Metric(lambda at: at.state.mass),
        "gap_to_bound": Metric(lambda at: None if at.state.bound is None else (at.error - at.state.bound) / at.norm),
    }

    def __post_init__(self) -> None:
        self.options()

    def options(self) -> Options:
        """The options in force."""
        names = [one.name for one in fields(Options)]
        return resolve(self.preset, **{name: getattr(self, name) for name in names})

    def slots(self) -> tuple[Slot, ...]:
        return (FIT,)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Standing:
        data = Products(parts.fit)
        state = Machine(data, start["U"].shape[1], self.options()).begin(start["U"], start["V"])
        return Standing(state, data.norm)

    def step(self, parts: Any, state: Standing) -> Standing:
        machine = Machine(Products(parts.fit), state.state.U.shape[1], self.options())
        return Standing(machine.advance(state.state), state.norm)

    def solution(self, state: Standing) -> dict[str, Array]:
        """The feasible pair of the present iteration."""
        return {"U": state.state.U, "V": state.state.V}

    def extras(self, state: Standing) -> dict[str, Any]:
        at = state.state
        bound = None if at.bound is None else at.bound / state.norm
        gap = None if bound is None else at.error / state.norm - bound
        return {
            "bound": bound,
            "gap": gap,
            "is_global": gap is not None and gap <= tolerance(at.U.dtype),
            "stage": at.stage,
            "feasible_before_cut": at.stage == "descent",
            "steps": dict(at.taken),
            "parts": np.ascontiguousarray(at.V.T) if at.V.shape[0] <= 4096 else None,
        }

    def dump(self, state: Standing) -> dict[str, Any]:
        at, work = state.state, state.state.work
        tree = {one.name: getattr(at, one.name) for one in fields(State) if one.name not in ("work", "taken")}
        tree["taken"] = [[name, steps] for name, steps in at.taken]
        tree["work"] = None if work is None else {one.name: getattr(work, one.name) for one in fields(work)}
        return {**tree, "kind": None if work is None else type(work).__name__, "norm": state.norm}

    def load(self, tree: Any, start: Any) -> Standing:
        tree = dict(tree)
        kind, work, norm = tree.pop("kind"), tree.pop("work"), tree.pop("norm")
        taken = tuple((name, steps) for name, steps in tree.pop("taken"))
        return Standing(State(**tree, taken=taken, work=None if kind is None else _WORK[kind](**work)), norm)


@dataclass(frozen=True)
class Standing:
    """State of a run: that of the machine, with the norm of X."""

    state: State
    norm: float

    @property
    def error(self) -> float:
        return self.state.error


@dataclass(frozen=True)
class HALS(Solver):
    """Hierarchical alternating least squares: exact minimization over one column after the other, from the run's start.

    Parameters
    ----------
    passes : int, default 1
        Sweeps over the columns of a factor per product with X; 2 or more where X is large beside the rank.
    extrapolate : bool, default False
        Whether points are extrapolated; a round that would raise the error is taken back.
    """

    passes: Annotated[int, Ge(1)] = 1
    extrapolate: bool = False

    families: ClassVar[tuple[str, ...]] = ("nmf",)
    State: ClassVar[type] = Descent
    reference_problems: ClassVar[Sequence[MappingType[str, Any]]] = REFERENCE
    metrics: ClassVar[MappingType[str, Metric]] = {"value": Metric(lambda at: at.error / at.norm)}

    def __post_init__(self) -> None:
        check_whole("passes", self.passes, 1)
        check_flag("extrapolate", self.extrapolate)

    def slots(self) -> tuple[Slot, ...]:
        return (FIT,)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Descent:
        return descent.start(Products(parts.fit), start["U"], start["V"], extrapolate=self.extrapolate)

    def step(self, parts: Any, state: Descent) -> Descent:
        return descent.advance(Products(parts.fit), state, self.passes)

    def solution(self, state: Descent) -> dict[str, Array]:
        """The accepted pair."""
        return {"U": state.Ut.T, "V": state.Vt.T}

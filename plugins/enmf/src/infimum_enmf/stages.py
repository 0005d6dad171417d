"""The method as a machine of short steps: SVD, rotation, mapping, entry, descent. Every step can be the last one."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge

from infimum_enmf import checks, descent, entry, mapping, rotation
from infimum_enmf.matrix import Array, Matrix
from infimum_enmf.svd import balanced, truncated

Preset = Literal["default", "fast", "paper"]
Stage = Literal["start", "rotation", "mapping", "entry", "descent"]
CHUNK, WORK = 10, 1e9
"""Steps of the rotation, of the mapping and of the entry between two looks at time and target: CHUNK at most, and fewer
where they would take more than WORK multiplications, about a second."""
FITS = 1e-3
"""Factors whose error after cutting off is within this share of the bound, or of 1e-6 ||X||, skip the entry."""
CLOSE = 1.1
"""The mapped pair replaces the rotated one where its error after cutting off is below this times the bound (or half
that of the rotated pair): elsewhere no map leads in, and the rotated pair proved the better start."""


@dataclass(frozen=True)
class Options:
    """What the stages read. Field by field as in `Exterior`."""

    rotation_steps: int = 4000
    rotation_tol: float = 1e-4
    rho: float = 5.0
    window: int = 50
    plateau: float = 1e-3
    mapping_steps: int = 3000
    entry_steps: int = 100
    inner: int = 2
    passes: int = 2
    extrapolate: bool = True


PRESETS: dict[str, Options] = {
    "default": Options(),
    "fast": Options(entry_steps=10),
    "paper": Options(window=0, mapping_steps=0, passes=1, extrapolate=False),
}


def resolve(preset: str, **given: Any) -> Options:
    """The options of a preset, with those that are given (not None) in their places.

    Raises
    ------
    InputError
        For a preset or a number that there is not.
    """
    checks.check_word("preset", preset, tuple(PRESETS))
    options = replace(PRESETS[preset], **{name: one for name, one in given.items() if one is not None})
    for one in fields(options):
        value = getattr(options, one.name)
        if isinstance(one.default, bool):
            checks.check_flag(one.name, value)
        elif isinstance(one.default, int):
            checks.check_whole(one.name, value, 1 if one.name in ("inner", "passes") else 0)
        else:
            checks.check_number(one.name, value, positive=one.name == "rho")
    return options


@dataclass(frozen=True)
class State:
    """Where the machine stands.

    Attributes
    ----------
    U, V : ndarray, (m, r) and (n, r)
        Feasible at every moment: an exterior pair with its negative entries cut off, or the iterate of the descent.
    error : float
        ||X - U V^T||_F.
    stage : str
        What the next step works on.
    bound : float or None
        Error of the truncated SVD, below that of every factorization of this rank.
    base_u, base_v : ndarray or None
        The exterior pair that the present stage starts from.
    work : object
        State of the stage.
    taken : dict
        Steps that each stage took.
    mass : float or None
        Negative mass of the exterior pair before it was cut off.
    """

    U: Array
    V: Array
    error: float
    stage: Stage = "start"
    bound: float | None = None
    base_u: Array | None = None
    base_v: Array | None = None
    work: Any = None
    taken: tuple[tuple[str, int], ...] = ()
    mass: float | None = None

    @property
    def settled(self) -> bool:
        """Whether the error has met the bound, to rounding: nothing is left to gain."""
        return self.bound is not None and self.error <= self.bound * (1.0 + 1e-9)


class Machine:
    """The stages over one matrix.

    Parameters
    ----------
    data : Matrix
        Or anything with its methods.
    rank : int
    options : Options
    """

    def __init__(self, data: Any, rank: int, options: Options) -> None:
        self.data, self.rank, self.options = data, rank, options

    def begin(self, U: Array, V: Array) -> State:
        """Before the first step: any nonnegative pair."""
        return State(U, V, self.data.error(U, V))

    def advance(self, at: State) -> State:
        """One short step: a new state, the old one untouched."""
        step = {
            "start": self._start,
            "rotation": self._rotate,
            "mapping": self._map,
            "entry": self._enter,
            "descent": self._descend,
        }[at.stage]
        return step(at)

    def _start(self, at: State) -> State:
        found = self._truncated()
        U, V = balanced(found)
        W = np.vstack([U, V])
        work = rotation.start(W, self.options.rho)
        return self._outside(at, U, V, "rotation", bound=found.bound, base_u=U, base_v=V, work=work)

    def _truncated(self) -> Any:
        decompose = getattr(self.data, "decompose", None)
        return decompose(self.rank) if decompose is not None else truncated(self.data, self.rank)

    def _rotate(self, at: State) -> State:
        o, work = self.options, at.work
        assert at.base_u is not None and at.base_v is not None
        W = np.vstack([at.base_u, at.base_v])
        allowed = min(self._chunk(2 * len(W) * self.rank**2), o.rotation_steps - work.steps)
        work = rotation.advance(W, work, allowed, o.rotation_tol, o.window, o.plateau)
        U, V = at.base_u @ work.best, at.base_v @ work.best
        if not work.settled and work.steps < o.rotation_steps:
            return self._outside(at, U, V, "rotation", work=work)
        now = replace(at, taken=(*at.taken, ("rotation", work.steps)))
        if o.mapping_steps and work.least > 0.0:
            start = mapping.start(U.astype(np.float64), V.astype(np.float64))
            return self._outside(now, U, V, "mapping", base_u=U, base_v=V, work=start)
        return self._arrive(now, U, V)

    def _map(self, at: State) -> State:
        o, work = self.options, at.work
        assert at.base_u is not None and at.base_v is not None
        U, V = at.base_u.astype(np.float64), at.base_v.astype(np.float64)
        allowed = min(self._chunk(2 * (len(U) + len(V)) * self.rank**2), o.mapping_steps - work.rounds)
        work = mapping.advance(U, V, work, allowed)
        left, right = (one.astype(at.base_u.dtype) for one in mapping.mapped(U, V, work.A))
        now = self._outside(at, left, right, "mapping", work=work)
        if not work.settled and work.rounds < o.mapping_steps:
            return now
        now = replace(now, taken=(*now.taken, ("mapping", work.rounds)))
        rotated = self._outside(at, at.base_u, at.base_v, "mapping")
        close = now.error <= max(CLOSE * (at.bound or 0.0), 0.5 * rotated.error)
        return self._arrive(now, *((left, right) if close else (at.base_u, at.base_v)))

    def _arrive(self, at: State, U: Array, V: Array) -> State:
        """The end of the exterior stages: into the descent where cutting off costs nothing, else into the walk."""
        cut = self._outside(at, U, V, "entry")
        bound = at.bound or 0.0
        near = cut.error <= max(bound * (1.0 + FITS), 1e-6 * self.data.norm)
        work = entry.start(self.data, U, V, 0 if near else self.options.entry_steps)
        return self._inside(cut, work) if work.inside else replace(cut, work=work, base_u=None, base_v=None)

    def _enter(self, at: State) -> State:
        o = self.options
        rounds = self._chunk(2 * self.data.stored * self.rank)
        work = entry.advance(self.data, at.work, rounds, o.inner, o.entry_steps)
        return self._inside(at, work) if work.inside else self._outside(at, work.U, work.V, "entry", work=work)

    def _inside(self, at: State, walk: entry.Walk) -> State:
        work = descent.start(self.data, walk.U, walk.V, extrapolate=self.options.extrapolate)
        taken = (*at.taken, ("entry", walk.rounds))
        return replace(
            at,
            U=walk.U,
            V=walk.V,
            error=work.error,
            stage="descent",
            work=work,
            taken=taken,
            mass=0.0,
            base_u=None,
            base_v=None,
        )

    def _descend(self, at: State) -> State:
        work = descent.advance(self.data, at.work, self.options.passes)
        return replace(at, U=work.Ut.T, V=work.Vt.T, error=work.error, work=work)

    def _chunk(self, work: int) -> int:
        """How many steps of so many multiplications are taken at once."""
        return max(1, min(CHUNK, int(WORK / work)))

    def _outside(self, at: State, U: Array, V: Array, stage: Stage, **changes: Any) -> State:
        """At an exterior pair, shown with its negative entries cut off."""
        mass = rotation.negative_mass(U, V)
        left, right = np.maximum(U, 0.0), np.maximum(V, 0.0)
        error = self.data.error(left, right)
        return replace(at, U=left, V=right, error=error, stage=stage, mass=mass, **changes)


@dataclass(frozen=True)
class ExteriorStart:
    """The exterior method without its descent, as a start for any NMF solver: `ExteriorStart()(X, rank)`.

    Parameters
    ----------
    preset : {"default", "fast", "paper"}, default "default"
        As in `Exterior`.
    floor : float, default 0.0
        Share of the mean entry of each factor to which zeros are raised; give 1e-3 to multiplicative updates, which
        never leave zero.
    """

    preset: Preset = "default"
    floor: Annotated[float, Ge(0.0)] = 0.0

    def __call__(self, X: Any, rank: int) -> tuple[Array, Array]:
        """Nonnegative U and V, (m, rank) and (n, rank), of equal column norms."""
        return exterior_start(X, rank, preset=self.preset, floor=self.floor)


def exterior_start(X: Any, rank: int, *, preset: Preset = "default", floor: float = 0.0) -> tuple[Array, Array]:
    """The start of any NMF solver: everything of the exterior method but the descent.

    Parameters
    ----------
    X : array or sparse matrix, (m, n)
        Entries >= 0.
    rank : int
        1 to min(m, n).
    preset : {"default", "fast", "paper"}, default "default"
        As in `Exterior`.
    floor : float, default 0.0
        Share of the mean entry of each factor to which zeros are raised; give 1e-3 to multiplicative updates, which
        never leave zero.

    Returns
    -------
    U, V : ndarray, (m, rank) and (n, rank)
        `NMF(init="custom").fit_transform(X, W=U, H=V.T)` of scikit-learn takes them.

    Raises
    ------
    InputError
        For a matrix, a rank, a preset or a floor that does not serve.
    """
    checks.check_number("floor", floor)
    data = Matrix(checks.checked_matrix(X))
    machine = Machine(data, checks.checked_rank(rank, data.shape), resolve(preset))
    m, n = data.shape
    at = machine.begin(np.zeros((m, rank), data.dtype), np.zeros((n, rank), data.dtype))
    while at.stage != "descent":
        at = machine.advance(at)
    U, V = mapping.balance(at.U, at.V)
    return (np.maximum(U, floor * U.mean()), np.maximum(V, floor * V.mean())) if floor else (U, V)

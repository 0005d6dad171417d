"""Methods that compare values only: Nelder–Mead, Powell, COBYLA, COBYQA. They end as `stalled`, never `converged`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from infimum.arrays import Array
from infimum.errors import InputError
from infimum.solver import Metric
from infimum_scipy.loop import Loop
from infimum_scipy.minimize import UNLIMITED, Minimize


class DerivativeFree(Minimize):
    """Base: asks for values only."""

    derivatives = "none"
    preference = -2  # What is known of the problem beyond its values is worth using.
    metrics: ClassVar[Mapping[str, Metric]] = {"value": Metric()}


@dataclass(frozen=True, eq=False)
class NelderMead(DerivativeFree):
    """Nelder–Mead simplex, for few variables. Reports the best vertex. Bounds clip the vertices.

    Parameters
    ----------
    xatol : float, default 1e-4
        SciPy ends the run once the vertices are this close together and
    fatol : float, default 1e-4
        their values this close; the status is then `stalled`. 0 in one of them leaves the end to the stopping rule.
    adaptive : bool, default False
        Parameters adapted to the number of variables.
    initial_simplex : array, shape (n + 1, n), optional
        Vertices to begin with; iteration 0 is still x0.
    """

    xatol: Annotated[float, Ge(0)] = 1e-4
    fatol: Annotated[float, Ge(0)] = 1e-4
    adaptive: bool = False
    initial_simplex: Array | None = None

    method = "nelder-mead"
    bounded = True
    unlimited: ClassVar[Mapping[str, Any]] = {"maxiter": UNLIMITED, "maxfev": UNLIMITED}

    def _options(self, loop: Loop) -> dict[str, Any]:
        return {**super()._options(loop), **_square(self.initial_simplex, "initial_simplex", loop.x0.size, 1)}


@dataclass(frozen=True, eq=False)
class Powell(DerivativeFree):
    """Powell's directions, line by line. One iteration is a search along every direction: many evaluations.

    Parameters
    ----------
    xtol : float, default 1e-4
        Relative accuracy of the line searches.
    ftol : float, default 1e-4
        SciPy ends the run when an iteration improves the value by less, relative to it; the status is `stalled`.
    direc : array, shape (n, n), optional
        Directions to begin with; the coordinates by default.
    """

    xtol: Annotated[float, Gt(0)] = 1e-4
    ftol: Annotated[float, Ge(0)] = 1e-4
    direc: Array | None = None

    method = "powell"
    bounded = True
    unlimited: ClassVar[Mapping[str, Any]] = {"maxiter": UNLIMITED, "maxfev": UNLIMITED}

    def _options(self, loop: Loop) -> dict[str, Any]:
        return {**super()._options(loop), **_square(self.direc, "direc", loop.x0.size, 0)}


@dataclass(frozen=True)
class COBYLA(DerivativeFree):
    """COBYLA: linear models on a simplex, under bounds and constraints. Reports its best point so far.

    It treats bounds as constraints: on the way it evaluates outside of them.

    Parameters
    ----------
    rhobeg : float, default 1.0
        First radius of the trust region.
    tol : float, default 1e-4
        Last radius: SciPy ends the run there, and the status is `stalled`.
    catol : float, optional
        Violation that SciPy tolerates in its best point; about 1.5e-8 by default.
    """

    rhobeg: Annotated[float, Gt(0)] = 1.0
    tol: Annotated[float, Gt(0)] = 1e-4
    catol: Annotated[float, Ge(0)] | None = None

    method = "cobyla"
    bounded = constrained = True


@dataclass(frozen=True)
class COBYQA(DerivativeFree):
    """COBYQA: quadratic models in a trust region, under bounds (never left) and constraints.

    An iteration is an evaluation after the first; reports the best point so far.

    Parameters
    ----------
    initial_tr_radius : float, default 1.0
        First radius of the trust region.
    final_tr_radius : float, default 1e-6
        Last radius: SciPy ends the run there, and the status is `stalled`.
    feasibility_tol : float, default 1e-8
        Violation that SciPy tolerates in its best point.
    scale : bool, default False
        Scale the variables to [-1, 1] where all bounds are finite.
    """

    initial_tr_radius: Annotated[float, Gt(0)] = 1.0
    final_tr_radius: Annotated[float, Gt(0)] = 1e-6
    feasibility_tol: Annotated[float, Ge(0)] = 1e-8
    scale: bool = False

    method = "cobyqa"
    preference = -1
    bounded = constrained = repeats_start = True
    unlimited: ClassVar[Mapping[str, Any]] = {"maxiter": UNLIMITED, "maxfev": UNLIMITED}


def _square(given: Any, name: str, n: int, more: int) -> dict[str, Any]:
    if given is None:
        return {}
    out = np.asarray(given, dtype=np.float64)
    if out.shape != (n + more, n):
        raise InputError(f"{name} is {out.shape}; expected ({n + more}, {n}) for x of {n} entries")
    return {name: out}

"""Methods with Hessians: Newton-CG and the trust regions of SciPy. They need a Hessian, or products with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Lt

from infimum.errors import InputError
from infimum_scipy.minimize import Derivatives, Minimize, fall, ordered


@dataclass(frozen=True)
class NewtonCG(Minimize):
    """Newton's method with conjugate gradients inside.

    Parameters
    ----------
    xtol : float, default 1e-5
        SciPy ends the run when the entries of a step are at most this on average. That is `converged` only if the
        gradient has fallen to xtol^(2/3) of that at the start; else `stalled`.
    c1, c2 : float, default 1e-4 and 0.9
        Parameters of the line search, 0 < c1 < c2 < 1.
    """

    xtol: Annotated[float, Ge(0)] = 1e-5
    c1: Annotated[float, Gt(0), Lt(1)] = 1e-4
    c2: Annotated[float, Gt(0), Lt(1)] = 0.9

    method = "newton-cg"
    derivatives = "hessian or hvp"

    def __post_init__(self) -> None:
        ordered("scipy.newton_cg", c1=self.c1, c2=self.c2)

    def _share(self) -> float:
        return fall(self.xtol**2)


@dataclass(frozen=True)
class TrustRegion(Minimize):
    """Options that the trust-region methods share.

    Parameters
    ----------
    initial_trust_radius : float, default 1.0
        First radius.
    max_trust_radius : float, default 1000.0
        Largest radius: no longer step is tried.
    eta : float, default 0.15
        A step is taken if the value falls by more than this share of what the model promises; below 0.25.
    gtol : float, default 1e-4
        SciPy ends the run as `converged` once the 2-norm of the gradient is below this.
    """

    initial_trust_radius: Annotated[float, Gt(0)] = 1.0
    max_trust_radius: Annotated[float, Gt(0)] = 1000.0
    eta: Annotated[float, Ge(0), Lt(0.25)] = 0.15
    gtol: Annotated[float, Ge(0)] = 1e-4

    asks: ClassVar[bool] = True
    derivatives: ClassVar[Derivatives] = "hessian or hvp"

    def __post_init__(self) -> None:
        if self.initial_trust_radius >= self.max_trust_radius:
            raise InputError(
                f"scipy.{self.method}: initial_trust_radius={self.initial_trust_radius:g}, "
                f"max_trust_radius={self.max_trust_radius:g}; expected the first below the second"
            )

    def _size(self, slope: np.ndarray) -> float:
        return float(np.linalg.norm(slope))


@dataclass(frozen=True)
class Dogleg(TrustRegion):
    """Dog-leg trust region; the Hessian must be positive definite wherever the method goes."""

    method = "dogleg"
    derivatives = "hessian"


@dataclass(frozen=True)
class TrustNCG(TrustRegion):
    """Newton conjugate gradients in a trust region."""

    method = "trust-ncg"


@dataclass(frozen=True)
class TrustKrylov(TrustRegion):
    """Trust region whose problems are solved almost exactly in a Krylov space, with Hessian products.

    Parameters
    ----------
    inexact : bool, default True
        Solve them less accurately: fewer products an iteration.
    """

    inexact: bool = True

    method = "trust-krylov"


@dataclass(frozen=True)
class TrustExact(TrustRegion):
    """Trust region whose problems are solved almost exactly by factorizations of the Hessian.

    Parameters
    ----------
    subproblem_maxiter : int, optional
        Iterations for one of them; SciPy's 25 by default (an option since SciPy 1.17).
    """

    subproblem_maxiter: Annotated[int, Ge(1)] | None = None

    method = "trust-exact"
    derivatives = "hessian"

"""Methods with gradients: CG, BFGS, L-BFGS-B and TNC."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Lt

from infimum.arrays import Array
from infimum.errors import InputError
from infimum_scipy.loop import Loop
from infimum_scipy.minimize import UNLIMITED, Minimize, fall, ordered

EPS = float(np.finfo(np.float64).eps)


class _Normed(Minimize):
    """What CG and BFGS share: the gradient is measured in a norm of the user's choice."""

    gtol: float
    norm: float
    c1: float
    c2: float

    def __post_init__(self) -> None:
        ordered(f"scipy.{self.method}", c1=self.c1, c2=self.c2)
        if math.isnan(self.norm):
            raise InputError(f"scipy.{self.method}: norm=nan; expected an order such as 2 or inf")

    def _size(self, slope: np.ndarray) -> float:
        if math.isinf(self.norm):
            size = np.max(np.abs(slope)) if self.norm > 0 else np.min(np.abs(slope))
            return float(size)
        return float(np.sum(np.abs(slope) ** self.norm) ** (1.0 / self.norm))


@dataclass(frozen=True)
class CG(_Normed):
    """Nonlinear conjugate gradients (Polak–Ribière).

    Parameters
    ----------
    gtol : float, default 1e-5
        SciPy ends the run as `converged` once the norm of the gradient is below this; 0 leaves it to the rule.
    norm : float, default inf
        Order of that norm.
    c1, c2 : float, default 1e-4 and 0.4
        Parameters of the line search, 0 < c1 < c2 < 1.
    """

    gtol: Annotated[float, Ge(0)] = 1e-5
    norm: float = math.inf
    c1: Annotated[float, Gt(0), Lt(1)] = 1e-4
    c2: Annotated[float, Gt(0), Lt(1)] = 0.4

    method = "cg"


@dataclass(frozen=True, eq=False)
class BFGS(_Normed):
    """Quasi-Newton method with a dense approximation of the inverse Hessian.

    Parameters
    ----------
    gtol : float, default 1e-5
        SciPy ends the run as `converged` once the norm of the gradient is below this; 0 leaves it to the rule.
    norm : float, default inf
        Order of that norm.
    xrtol : float, default 0.0
        SciPy ends the run when a step is shorter than this, relative to x.
    c1, c2 : float, default 1e-4 and 0.9
        Parameters of the line search, 0 < c1 < c2 < 1.
    hess_inv0 : array, shape (n, n), optional
        First approximation; the identity by default.
    """

    gtol: Annotated[float, Ge(0)] = 1e-5
    norm: float = math.inf
    xrtol: Annotated[float, Ge(0)] = 0.0
    c1: Annotated[float, Gt(0), Lt(1)] = 1e-4
    c2: Annotated[float, Gt(0), Lt(1)] = 0.9
    hess_inv0: Array | None = None

    method = "bfgs"

    def _options(self, loop: Loop) -> dict[str, Any]:
        out = super()._options(loop)
        if self.hess_inv0 is not None:
            n = loop.x0.size
            out["hess_inv0"] = np.asarray(self.hess_inv0, dtype=np.float64)
            if out["hess_inv0"].shape != (n, n):
                raise InputError(f"hess_inv0 is {out['hess_inv0'].shape}; expected ({n}, {n}) for x of {n} entries")
        return out


@dataclass(frozen=True)
class LBFGSB(Minimize):
    """Limited-memory BFGS under bounds, for many variables.

    Parameters
    ----------
    maxcor : int, default 10
        Pairs of steps and gradients that are remembered.
    ftol : float, default 2.2e-9
        SciPy ends the run when an iteration improves the value by less, relative to it. That is `converged` only if
        the projected gradient is at most `gtol`, or has fallen to a thousandth of that at the start; else `stalled`.
    gtol : float, default 1e-5
        SciPy ends the run as `converged` once no entry of the projected gradient exceeds this. With 0 in both the
        stopping rule decides alone.
    maxls : int, default 20
        Evaluations in one line search.
    """

    maxcor: Annotated[int, Ge(1)] = 10
    ftol: Annotated[float, Ge(0)] = 1e7 * EPS
    gtol: Annotated[float, Ge(0)] = 1e-5
    maxls: Annotated[int, Ge(1)] = 20

    method = "l-bfgs-b"
    preference = 1
    bounded = joint = True
    unlimited: ClassVar[Mapping[str, Any]] = {"maxiter": UNLIMITED, "maxfun": UNLIMITED}

    def _share(self) -> float:
        return fall(self.ftol)


@dataclass(frozen=True, eq=False)
class TNC(Minimize):
    """Truncated Newton method under bounds; Hessian products from differences of gradients.

    Parameters
    ----------
    scale, offset : array, shape (n,), optional
        Scaling and shift of the variables; from the bounds by default.
    maxCGit : int, default -1
        Products in one iteration; -1 chooses from n, 0 is steepest descent.
    eta : float, default -1.0
        Severity of the line search; -1 is 0.25.
    stepmx : float, default 0.0
        Longest step of a line search; 0 is 10.
    accuracy : float, default 0.0
        Relative accuracy of the differences; 0 is sqrt(eps).
    minfev : float, default 0.0
        SciPy's estimate of the smallest value.
    ftol, xtol, gtol : float, default -1.0
        SciPy ends the run on a change of the value, of x, or on a projected gradient below these; negative values
        choose 0, sqrt(eps) and 1e-2 sqrt(accuracy). The first two are `converged` only with a small projected gradient.
    rescale : float, default -1.0
        When to rescale the value, in log10; -1 is 1.3.
    """

    scale: Array | None = None
    offset: Array | None = None
    maxCGit: Annotated[int, Ge(-1)] = -1
    eta: float = -1.0
    stepmx: Annotated[float, Ge(0)] = 0.0
    accuracy: Annotated[float, Ge(0)] = 0.0
    minfev: float = 0.0
    ftol: float = -1.0
    xtol: float = -1.0
    gtol: float = -1.0
    rescale: float = -1.0

    method = "tnc"
    bounded = joint = True
    unlimited: ClassVar[Mapping[str, Any]] = {"maxfun": UNLIMITED}

    def _options(self, loop: Loop) -> dict[str, Any]:
        out = super()._options(loop)
        for name in ("scale", "offset"):
            if name in out:
                out[name] = np.asarray(out[name], dtype=np.float64)
                if out[name].shape != loop.x0.shape:
                    raise InputError(f"{name} is {out[name].shape}; expected {loop.x0.shape}, one entry per variable")
        return out

    def _callback(self, loop: Loop) -> Any:
        return lambda x: loop.tick(x)

    def _share(self) -> float:
        return fall(max(self.ftol, self.xtol**2 if self.xtol >= 0 else EPS))

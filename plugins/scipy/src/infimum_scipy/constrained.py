"""Methods with gradients under constraints: SLSQP and trust-constr."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Gt

from infimum.arrays import is_sparse
from infimum.solver import Metric, Slot
from infimum.status import Status
from infimum_scipy.limits import Signed
from infimum_scipy.loop import Evaluated, Loop
from infimum_scipy.minimize import SLOPE, Minimize, certified, fall


@dataclass(frozen=True)
class SLSQP(Minimize):
    """Sequential least squares programming: bounds, linear and nonlinear constraints.

    Parameters
    ----------
    ftol : float, default 1e-6
        SciPy ends the run when the change of the value (or the step) and the violation are below this. That is
        `converged` only if the gradient of the Lagrangian has fallen to a thousandth of the gradient at the start.
    """

    ftol: Annotated[float, Ge(0)] = 1e-6

    method = "slsqp"
    bounded = constrained = True

    def _callback(self, loop: Loop) -> Any:
        # SciPy 1.16 hands on the point alone.
        return lambda x: loop.tick(x)

    def _constraints(self, loop: Loop) -> Any:
        return Signed(loop.rows, loop.x0).constraints()

    def _certificate(self, loop: Loop, out: Any, one: Evaluated) -> tuple[str, float, float] | None:
        if not loop.rows:
            return super()._certificate(loop, out, one)
        gradient = loop.gradient(one.x) - Signed(loop.rows, one.x).pull(one.x, np.asarray(out.multipliers))
        return "gradient of the Lagrangian", self._size(loop.bounds.slope(one.x, gradient)), self._share()

    def _share(self) -> float:
        return fall(self.ftol)


@dataclass(frozen=True)
class TrustConstr(Minimize):
    """Trust region with an interior point for inequalities: bounds, linear and nonlinear constraints.

    Iterates may leave the bounds by a little until the run ends. The metric `residual` is the largest of the gradient
    of the Lagrangian (its largest entry), the violation and, with inequalities, the barrier parameter.

    Parameters
    ----------
    gtol : float, default 1e-8
        The run ends as `converged` once `residual` is below this (SciPy itself leaves the barrier out).
    xtol : float, default 1e-8
        SciPy ends the run when the trust region is smaller than this. That is `converged` only if the gradient of the
        Lagrangian has fallen to xtol^(2/3) of the gradient at the start.
    barrier_tol : float, default 1e-8
        Barrier parameter from which on that is allowed, where there are inequalities.
    hessian : {"auto", "exact", "bfgs", "sr1"}, default "auto"
        Exact from the terms, an approximation, or exact where the terms offer it and BFGS else. That of constraints
        is approximated by BFGS.
    initial_tr_radius : float, default 1.0
        First trust radius.
    initial_constr_penalty : float, default 1.0
        First penalty on the violation.
    initial_barrier_parameter, initial_barrier_tolerance : float, default 0.1
        Where the barrier begins.
    sparse_jacobian : bool, optional
        Whether Jacobians of constraints are made sparse or dense; as they come by default.
    factorization_method : str, optional
        "NormalEquation" (needs scikit-sparse), "AugmentedSystem", "QRFactorization" or "SVDFactorization".
    """

    gtol: Annotated[float, Ge(0)] = 1e-8
    xtol: Annotated[float, Ge(0)] = 1e-8
    barrier_tol: Annotated[float, Ge(0)] = 1e-8
    hessian: Literal["auto", "exact", "bfgs", "sr1"] = "auto"
    initial_tr_radius: Annotated[float, Gt(0)] = 1.0
    initial_constr_penalty: Annotated[float, Gt(0)] = 1.0
    initial_barrier_parameter: Annotated[float, Gt(0)] = 0.1
    initial_barrier_tolerance: Annotated[float, Gt(0)] = 0.1
    sparse_jacobian: bool | None = None
    factorization_method: Literal["NormalEquation", "AugmentedSystem", "QRFactorization", "SVDFactorization"] | None = (
        None
    )

    method = "trust-constr"
    bounded = constrained = repeats_start = True
    metrics: ClassVar[Mapping[str, Metric]] = {**SLOPE, "residual": Metric()}

    def _objective(self) -> Slot:
        needs, wants = ("value_and_gradient",), ("value", "gradient")
        if self.hessian == "exact":
            return Slot("objective", needs=(*needs, "hvp"), wants=(*wants, "hessian"), at_least=1)
        return Slot("objective", needs=needs, wants=(*wants, "hvp", "hessian"), at_least=1)

    def _options(self, loop: Loop) -> dict[str, Any]:
        out = super()._options(loop)
        del out["hessian"]
        if _interior(loop):
            out["gtol"] = 0.0
        kinds = {is_sparse(one.jacobian(loop.x0)) for one in loop.rows}
        if len(kinds) > 1:
            out.setdefault("sparse_jacobian", False)
        return out

    def _curvature(self, loop: Loop) -> dict[str, Any]:
        from scipy.optimize import BFGS, SR1

        if self.hessian in ("auto", "exact") and loop.part.offers("hvp"):
            dense = loop.part.offers("hessian") and "hvp" not in loop.part.native
            return {"hess": loop.hessian} if dense else {"hessp": loop.hvp}
        return {"hess": SR1() if self.hessian == "sr1" else BFGS()}

    def _tick(self, loop: Loop, report: Any) -> None:
        residual = self._residual(report)
        if residual <= self.gtol and "barrier_parameter" in report:
            # SciPy looks at the first two alone, and may end far from the minimum while the barrier is still there.
            one = loop.at(report.x)
            message = f"gradient of the Lagrangian, violation and barrier {residual:.3g} <= gtol = {self.gtol:g}"
            loop.end(one, Status.converged, message, residual=residual)
        loop.tick(report.x, report.fun, residual=residual)

    @staticmethod
    def _residual(report: Any) -> float:
        found = (report.optimality, report.constr_violation, report.get("barrier_parameter", 0.0))
        return max(float(one) for one in found)

    def _conclude(self, loop: Loop, out: Any, one: Evaluated) -> tuple[Status, str]:
        size, said = self._residual(out), str(out.message).strip()
        share = fall(self.xtol**2) if out.status in (1, 2, 4) else 0.0
        return certified(said, "gradient of the Lagrangian or violation", size, self.gtol, share, loop.first or 0.0)


def _interior(loop: Loop) -> bool:
    """Whether there are inequalities, for which SciPy takes its interior point method."""
    pairs = [(loop.bounds.lower, loop.bounds.upper), *(one.limits(loop.x0) for one in loop.rows)]
    return any(bool(np.any((low < high) & (np.isfinite(low) | np.isfinite(high)))) for low, high in pairs)

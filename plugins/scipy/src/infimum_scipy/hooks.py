"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

_SOLVERS = {
    "nelder_mead": ("derivative_free:NelderMead", "derivative-free", "Nelder–Mead simplex; bounds"),
    "powell": ("derivative_free:Powell", "derivative-free", "line searches along directions; bounds"),
    "cobyla": ("derivative_free:COBYLA", "derivative-free", "linear models; bounds and constraints"),
    "cobyqa": ("derivative_free:COBYQA", "derivative-free", "quadratic models; bounds and constraints"),
    "cg": ("first_order:CG", "first-order", "nonlinear conjugate gradients"),
    "bfgs": ("first_order:BFGS", "quasi-Newton", "dense quasi-Newton"),
    "l_bfgs_b": ("first_order:LBFGSB", "quasi-Newton", "limited-memory quasi-Newton; bounds"),
    "tnc": ("first_order:TNC", "first-order", "truncated Newton with gradients; bounds"),
    "slsqp": ("constrained:SLSQP", "constrained", "sequential least squares programming; bounds and constraints"),
    "trust_constr": ("constrained:TrustConstr", "constrained", "trust region, interior point; bounds and constraints"),
    "newton_cg": ("second_order:NewtonCG", "second-order", "Newton with conjugate gradients inside"),
    "dogleg": ("second_order:Dogleg", "second-order", "dog-leg trust region; positive definite Hessian"),
    "trust_ncg": ("second_order:TrustNCG", "second-order", "trust region with conjugate gradients"),
    "trust_exact": ("second_order:TrustExact", "second-order", "trust region with factorizations of the Hessian"),
    "trust_krylov": ("second_order:TrustKrylov", "second-order", "trust region in Krylov spaces"),
    "least_squares": ("least_squares:LeastSquares", "least squares", "half a squared residual; bounds"),
    "lsq_linear": ("least_squares:LsqLinear", "least squares", "linear least squares; bounds"),
    "linprog": ("linear:LinProg", "linear programming", "linear programs by HiGHS"),
}


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    for name, (target, label, summary) in _SOLVERS.items():
        register(name, f"infimum_scipy.{target}", kind=label, summary=summary)

"""The optimizers of SciPy as solvers of infimum."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_scipy.constrained import SLSQP, TrustConstr
    from infimum_scipy.derivative_free import COBYLA, COBYQA, NelderMead, Powell
    from infimum_scipy.first_order import BFGS, CG, LBFGSB, TNC
    from infimum_scipy.least_squares import LeastSquares, LsqLinear
    from infimum_scipy.linear import LinProg
    from infimum_scipy.second_order import Dogleg, NewtonCG, TrustExact, TrustKrylov, TrustNCG

__all__ = [
    "BFGS",
    "CG",
    "COBYLA",
    "COBYQA",
    "LBFGSB",
    "SLSQP",
    "TNC",
    "Dogleg",
    "LeastSquares",
    "LinProg",
    "LsqLinear",
    "NelderMead",
    "NewtonCG",
    "Powell",
    "TrustConstr",
    "TrustExact",
    "TrustKrylov",
    "TrustNCG",
]

_HOMES = {
    "constrained": ("SLSQP", "TrustConstr"),
    "derivative_free": ("COBYLA", "COBYQA", "NelderMead", "Powell"),
    "first_order": ("BFGS", "CG", "LBFGSB", "TNC"),
    "least_squares": ("LeastSquares", "LsqLinear"),
    "linear": ("LinProg",),
    "second_order": ("Dogleg", "NewtonCG", "TrustExact", "TrustKrylov", "TrustNCG"),
}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")

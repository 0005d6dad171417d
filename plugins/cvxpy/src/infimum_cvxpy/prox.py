"""The proximal oracle: a convex function that CVXPY knows gets its prox from a conic solver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np

from infimum.arrays import Array, like, to_numpy
from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum_cvxpy.proximal import ProximalProblem, checked_options, installed
from infimum_cvxpy.translate import express, untranslatable


@dataclass(frozen=True)
class Prox(Oracle):
    """The prox of a convex function through CVXPY, to the tolerance of a conic solver.

    It serves the functions of infimum (`infimum_cvxpy.to_cvxpy` says them in CVXPY), also under linear maps and in
    sums, and a user's own `Function` that is given with `expression=`, a function of a CVXPY variable. The problem is
    canonicalized at the first call; after that a call costs one solve. A function with a closed-form prox does not
    need it.

    Parameters
    ----------
    solver : str, default "CLARABEL"
        CVXPY's name of an installed solver. An interior point method is accurate; first-order methods (OSQP, SCS)
        leave errors of 1e-4 or so, which most splitting methods notice.
    options : dict, optional
        Passed to the solver: with CLARABEL its settings (`tol_gap_abs`, …, which are 1e-10 here).

    Raises
    ------
    InputError
        If the solver is not installed, or at the first call where CVXPY does not know the function as convex.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np, infimum
    >>> from infimum.functions import Function, SquaredL2
    >>> ramp = Function(lambda x: float(np.maximum(x, 0).sum()), expression=lambda x: cp.sum(cp.pos(x)), convex=True)
    >>> problem = infimum.Composite({"fit": SquaredL2().translate(np.array([2.0, -1.0])), "ramp": ramp})
    >>> result = infimum.solve(problem, solver="splitting.douglas_rachford", oracles={"ramp": "cvxpy.prox"}, seed=0)
    >>> bool(np.allclose(result.x, [1.0, -1.0], atol=1e-5))
    True
    """

    solver: str = "CLARABEL"
    options: Mapping[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "proximal"
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ("prox",)
    wants: ClassVar[tuple[str, ...]] = ("expression",)
    exactness: ClassVar[Exactness] = Exactness.tolerance  # type: ignore[misc]

    def __post_init__(self) -> None:
        installed(self.solver)
        checked_options(self.options)

    def refuses(self, function: Any) -> str | None:
        if getattr(function, "convex", None) is False:
            return "it is not convex"
        return untranslatable(function)

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        known = "expression" in function.capabilities
        return _Part(self, function.expression if known else partial(express, function))


class _Part:
    """The prox of one function; the problem is made for the shape of the first point and kept."""

    def __init__(self, oracle: Prox, expression: Any) -> None:
        self.oracle, self.expression = oracle, expression
        self.problem: ProximalProblem | None = None
        self.shape: tuple[int, ...] = ()

    def prox(self, v: Array, t: float) -> Array:
        host = np.asarray(to_numpy(v), dtype=np.float64)
        if self.problem is None or host.shape != self.shape:
            self.shape, u = host.shape, cp.Variable(host.shape)
            expression = self.expression(u)
            if not isinstance(expression, cp.Expression) or not expression.is_scalar():
                raise InputError(f"cvxpy.prox: expected a scalar CVXPY expression of the variable, got {expression!r}")
            self.problem = ProximalProblem([u], expression, (), self.oracle.solver, self.oracle.options)
        return like(self.problem.solve([host], float(t))[0], v)

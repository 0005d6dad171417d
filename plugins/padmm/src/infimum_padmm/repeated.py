"""The method without a host's run: one problem solved, or many that differ in right-hand sides and linear parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from infimum.errors import InputError, did_you_mean
from infimum_padmm.data import mapping, number, vector, whole
from infimum_padmm.engine import Engine, Linearize, Settings, choose
from infimum_padmm.options import (
    Penalty,
    Weight,
    check_linearize,
    check_penalty,
    check_tau,
    check_weight,
    penalties,
    weights,
)
from infimum_padmm.options import multipliers as given_multipliers
from infimum_padmm.problem import BlockProblem

DIVERGED = 1e12


@dataclass(frozen=True)
class Solution:
    """What `PADMM` found.

    Attributes
    ----------
    x : dict of str to array
        By block.
    multipliers : dict of str to array
        By row.
    status : {"converged", "limit", "diverged"}
    iterations : int
    primal_residual, dual_residual : float
        `max_i ||r_i|| / (1 + ||b_i||)` and the largest KKT defect of a block, at x.
    """

    x: dict[str, np.ndarray]
    multipliers: dict[str, np.ndarray]
    status: str
    iterations: int
    primal_residual: float
    dual_residual: float


class Repeated:
    """Solve a block problem again and again: factorizations, x and multipliers stay from one time to the next.

    Parameters
    ----------
    problem : BlockProblem
        Not changed.
    beta, prox_weight, linearize, tau
        As in the solver `padmm.padmm`; penalties stay as they are.

    Raises
    ------
    InputError
        As the solver.

    Examples
    --------
    >>> import numpy as np
    >>> from infimum.functions import SquaredL2
    >>> from infimum_padmm import BlockProblem, Repeated
    >>> p = BlockProblem({"x": SquaredL2(), "y": SquaredL2()}, {"sum": {"x": 1.0, "y": 1.0}}, {"sum": [2.0]})
    >>> again = Repeated(p)
    >>> [float(again.solve(rhs={"sum": [b]}, tol=1e-10).x["x"].round(8)[0]) for b in (2.0, 3.0)]
    [1.0, 1.5]
    """

    def __init__(
        self,
        problem: BlockProblem,
        *,
        beta: Penalty = 1.0,
        prox_weight: Weight = 0.0,
        linearize: Linearize = "auto",
        tau: float = 1.0,
    ) -> None:
        check_penalty(beta)
        check_weight(prox_weight)
        check_tau(tau)
        check_linearize(linearize)
        if not isinstance(problem, BlockProblem):
            raise InputError(f"expected a BlockProblem, got {type(problem).__name__}; `from_composite` makes one")
        self.problem, self.tau = problem, float(tau)
        self.engine = Engine(problem, choose(problem), Settings(weights(problem, prox_weight), linearize))
        self.beta = penalties(problem, beta)
        self.stages = self.engine.stages(self.beta)
        self.forget()

    def forget(self) -> None:
        """Begin again from zeros, with what was factored."""
        self.x = np.zeros(self.problem.layout.size)
        self.lam = np.zeros(self.engine.b.size)

    def solve(
        self,
        rhs: Mapping[str, Any] | None = None,
        linear: Mapping[str, Any] | None = None,
        *,
        start: Any = None,
        multipliers: Mapping[str, Any] | None = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        check_every: int = 5,
    ) -> Solution:
        """Solve the problem with other right-hand sides and linear parts, from where the last solve ended.

        Parameters
        ----------
        rhs : mapping of str to array, optional
            New b_i; the others stay as they were last.
        linear : mapping of str to array, optional
            New c_j in `1/2 <x, H x> + <c, x>` of quadratic blocks.
        start, multipliers : optional
            Where to begin instead: a packed vector or blocks, and multipliers by row.
        tol : float, default 1e-6
            For both residuals.
        max_iter : int, default 10000
        check_every : int, default 5
            Iterations between two looks at the residuals.

        Returns
        -------
        Solution

        Raises
        ------
        InputError
            For an unknown row or block, a wrong length, or a linear part of a block that is not quadratic.
        """
        number(tol, "tol", "a finite number >= 0", strict=False)
        whole(max_iter, "max_iter", 1)
        whole(check_every, "check_every", 1)
        self._change(mapping(rhs, "rhs", "row: array"), mapping(linear, "linear", "block: array"))
        if start is not None:
            self.x = self.problem.prepare(start)
        if multipliers is not None:
            self.lam = given_multipliers(self.problem, multipliers)
        return self._iterate(tol, max_iter, check_every)

    def _change(self, rhs: Mapping[str, Any], linear: Mapping[str, Any]) -> None:
        engine, structure = self.engine, self.problem.structure
        for key, value in rhs.items():
            if key not in structure.rows:
                raise InputError(f"rhs={{'{key}': …}}: there is no such row; {did_you_mean(key, structure.rows)}")
            i = structure.rows.index(key)
            engine.set_rhs(i, vector(value, f"rhs of row '{key}'", structure.lengths[i]))
        for key, value in linear.items():
            if key not in structure.blocks:
                raise InputError(f"linear={{'{key}': …}}: no such block; {did_you_mean(key, structure.blocks)}")
            j = structure.blocks.index(key)
            if j not in engine.forms:
                raise InputError(f"linear={{'{key}': …}}: expected a quadratic block; this one is solved otherwise")
            engine.relinear(j, vector(value, f"linear part of block '{key}'", structure.sizes[j]))

    def _iterate(self, tol: float, max_iter: int, check_every: int) -> Solution:
        engine, x, lam, stages = self.engine, self.x.copy(), self.lam.copy(), self.stages
        forward, b, weights_ = engine.stack.forward, engine.b, engine.spread(self.beta)
        xi, tau = np.zeros_like(x), self.tau
        primal = dual = largest = np.inf
        status, k = "limit", 0
        w = lam + weights_ * (forward(x) - b)
        while k < max_iter:
            k += 1
            checked = k % check_every == 0 or k == max_iter
            for stage in stages:
                stage(x, w, xi if checked else None, min(1e-3, 0.1 * largest))
            if not checked:
                # The stages keep w = lam + beta r, of which beta r is known without a product with A.
                moved = w - lam
                lam = w if tau == 1.0 else lam + tau * moved
                w = lam + moved
                continue
            r = forward(x) - b
            lam += (tau * weights_) * r
            w = lam + weights_ * r
            primal = float((engine.norms(r) / engine.row_scales).max(initial=0.0))
            dual = float(engine.dual_norms(engine.dual(self.beta, x, lam, xi)).max(initial=0.0))
            largest = max(primal, dual)
            if largest <= tol:
                status = "converged"
                break
            if not largest <= DIVERGED:
                status = "diverged"
                break
        if status != "diverged":
            self.x, self.lam = x, lam
        return Solution(
            {name: one.copy() for name, one in self.problem.layout.unpack(x).items()},
            engine.by_row(lam),
            status,
            k,
            primal,
            dual,
        )

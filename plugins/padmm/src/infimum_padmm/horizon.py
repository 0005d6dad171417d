"""Receding horizon control: the same problem from a new state again and again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum.functions import Quadratic, SquaredL2
from infimum_padmm.builders import control, dynamics
from infimum_padmm.data import number, vector, whole
from infimum_padmm.problem import BlockProblem
from infimum_padmm.repeated import Repeated, Solution

Plan = Literal["condensed", "joint", "inputs", "stages"]


SHARE = 1.0 / 3.0
"""Default beta of the condensed problem, over the geometric mean of the extreme eigenvalues of H."""


class RecedingHorizon:
    """Linear-quadratic control with a set for the inputs, solved from one state after the other.

    Everything is factored once; x and multipliers stay from one solve to the next.

    Parameters
    ----------
    A, B : array, shape (n, n) and (n, m)
        `s_{k+1} = A s_k + B u_k`.
    horizon : int
        Number of stages.
    inputs : Constraint
        Set of the inputs: of one u_k, or, for the groupings "joint" and "condensed", of all of them in one vector of
        `horizon * m` entries (a box with numbers as bounds is both).
    state_cost, input_cost : float, default 1 and 0.1
        `state_cost/2 sum ||s_k||^2 + input_cost/2 sum ||u_k||^2`.
    grouping : {"condensed", "joint", "inputs", "stages"}, default "condensed"
        The states eliminated, `min 1/2 u^T H u + <F s_0, u>` with a copy of u in the set: the smallest problem where
        the horizon is short and the dynamics stable. The others as in `infimum_padmm.control`; they keep the states.
    finish : bool, default True
        For the grouping "condensed" and sets with bounds (a box): try now and then whether the inputs that stand at
        their bounds are those of the optimum, by one small linear system, and end there if the optimality conditions
        hold. The answer is then exact.
    **options
        Of `Repeated`: beta, prox_weight, linearize, tau. For the grouping "condensed" beta is by default a third of
        the geometric mean of the extreme eigenvalues of H and tau is 1.6, which needed few iterations over random
        systems; else both are 1.

    Attributes
    ----------
    problem : BlockProblem
    repeated : Repeated

    Examples
    --------
    >>> import numpy as np
    >>> from infimum.constraints import Box
    >>> from infimum_padmm import RecedingHorizon
    >>> plant = RecedingHorizon(np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]]), 20, Box(-1.0, 1.0))
    >>> float(plant.control(np.array([1.0, 0.0])).round(3)[0])
    -1.0
    """

    def __init__(
        self,
        A: np.ndarray,
        B: np.ndarray,
        horizon: int,
        inputs: Constraint,
        *,
        state_cost: float = 1.0,
        input_cost: float = 0.1,
        grouping: Plan = "condensed",
        finish: bool = True,
        **options: Any,
    ) -> None:
        self.A, self.B = dynamics(A, B)
        self.horizon, self.grouping = whole(horizon, "horizon", 1), grouping
        state_cost = number(state_cost, "state_cost", "a finite number >= 0", strict=False)
        input_cost = number(input_cost, "input_cost", "a finite number >= 0", strict=False)
        if grouping not in get_args(Plan):
            raise InputError(f"grouping={grouping!r}: expected one of {', '.join(map(repr, get_args(Plan)))}")
        zero = np.zeros(self.A.shape[0])
        self._pull: np.ndarray | None = None
        self._bounds: tuple[np.ndarray, np.ndarray] | None = None
        if grouping == "condensed":
            self.problem, self._pull = condensed(self.A, self.B, horizon, inputs, state_cost, input_cost)
        else:
            costs = {"state_cost": state_cost, "input_cost": input_cost}
            self.problem = control(self.A, self.B, horizon, zero, inputs=inputs, grouping=grouping, **costs)
        if grouping == "condensed":
            low, high = self.problem.spectrum("u")
            self._H = self.problem.form("u").dense()  # type: ignore[union-attr]
            if finish and low > 0 and "bounds" in inputs.capabilities:
                self._bounds = inputs.bounds(np.zeros(self._H.shape[0]))
            options = {"beta": SHARE * float(np.sqrt(max(low, 1e-8 * high) * high)) or 1.0, "tau": 1.6, **options}
        self.repeated = Repeated(self.problem, **options)

    def solve(
        self, state: np.ndarray, *, tol: float = 1e-6, max_iter: int = 10_000, check_every: int = 5, **how: Any
    ) -> Solution:
        """The plan from `state`; the arguments are those of `Repeated.solve`.

        Raises
        ------
        InputError
            If the state has another length, or holds anything but finite numbers.
        """
        s = vector(state, "the state", self.A.shape[0])
        how |= {"tol": tol, "check_every": check_every}
        if self._pull is not None:
            return self._condensed(self._pull @ s, tol, whole(max_iter, "max_iter", 1), how)
        row = "dynamics" if self.grouping == "joint" else "dynamics0"
        b = np.zeros(self.problem.structure.lengths[self.problem.structure.rows.index(row)])
        b[: s.size] = self.A @ s
        return self.repeated.solve({row: b}, max_iter=max_iter, **how)

    def _condensed(self, c: np.ndarray, tol: float, max_iter: int, how: dict[str, Any]) -> Solution:
        """Iterations in growing batches, with a try to finish after each."""
        if self._bounds is None:
            return self.repeated.solve(linear={"u": c}, max_iter=max_iter, **how)
        batch = whole(how["check_every"], "check_every", 1)
        found = self.repeated.solve(linear={"u": c}, max_iter=min(batch, max_iter), **how)
        done = found.iterations
        how = {key: how[key] for key in ("tol", "check_every")}
        while found.status == "limit":
            found = self._finished(c, found, tol) or found
            if found.status != "limit" or done >= max_iter:
                break
            found = self.repeated.solve(max_iter=min(done, max_iter - done), **how)
            done += found.iterations
        return replace(found, iterations=done)

    def _finished(self, c: np.ndarray, found: Solution, tol: float) -> Solution | None:
        """The optimum with the inputs at their bounds that are there now, if it is one of the whole problem."""
        assert self._bounds is not None
        (lower, upper), u, lam = self._bounds, found.x["inputs"].copy(), found.multipliers["copy"]
        low, high = (u <= lower) & (lam < 0), (u >= upper) & (lam > 0)
        free = ~(low | high)
        u[free] = 0.0
        u[free] = np.linalg.solve(self._H[np.ix_(free, free)], -(self._H[free] @ u + c[free]))
        slope = self._H @ u + c
        left = float(np.linalg.norm(slope[free]))
        inside = (lower <= u).all() and (u <= upper).all() and (slope[low] >= 0).all() and (slope[high] <= 0).all()
        if not inside or left > tol:
            return None
        lam = np.where(free, 0.0, -slope)
        self.repeated.x, self.repeated.lam = np.concatenate([u, u]), lam.copy()
        return Solution({"u": u, "inputs": u.copy()}, {"copy": lam}, "converged", found.iterations, 0.0, left)

    def control(self, state: np.ndarray, **how: Any) -> np.ndarray:
        """The first input of the plan from `state`; it lies in the set."""
        x, m = self.solve(state, **how).x, self.B.shape[1]
        block = {"condensed": "inputs", "joint": "u"}.get(self.grouping, "u0")
        return x[block][:m].copy()


def condensed(
    A: np.ndarray, B: np.ndarray, horizon: int, inputs: Constraint, state_cost: float, input_cost: float
) -> tuple[BlockProblem, np.ndarray]:
    """The problem in the inputs alone, blocks `u` and its copy `inputs` in the set, and F of its linear part F s_0."""
    n, m = B.shape
    free, forced = np.zeros((horizon * n, n)), np.zeros((horizon * n, horizon * m))
    power, reach = np.eye(n), B
    columns = []
    for k in range(horizon):
        power = A @ power
        free[k * n : (k + 1) * n] = power
        columns.append(reach)
        reach = A @ reach
    for k in range(horizon):
        for lag, block in enumerate(columns[: k + 1]):
            forced[k * n : (k + 1) * n, (k - lag) * m : (k - lag + 1) * m] = block
    H = state_cost * (forced.T @ forced)
    H[np.diag_indices(horizon * m)] += input_cost
    problem = BlockProblem(
        {"u": Quadratic(0.5 * (H + H.T)), "inputs": 0.0 * SquaredL2()},
        {"copy": {"u": 1.0, "inputs": -1.0}},
        sets={"inputs": inputs},
        name=f"condensed control, {horizon} stages",
    )
    return problem, state_cost * (forced.T @ free)

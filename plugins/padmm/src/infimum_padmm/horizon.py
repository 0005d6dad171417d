"""Receding horizon control: the same problem from a new state again and again."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from infimum.constraints.base import Constraint
from infimum.errors import InputError
from infimum.functions import Quadratic, SquaredL2
from infimum_padmm.builders import control
from infimum_padmm.problem import BlockProblem
from infimum_padmm.repeated import Repeated, Solution


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
    **options
        Of `Repeated`: beta, prox_weight, linearize, tau. By default beta is the smallest eigenvalue of H for the
        grouping "condensed", where that needed the fewest iterations, else 1.

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
        grouping: Literal["condensed", "joint", "inputs", "stages"] = "condensed",
        **options: Any,
    ) -> None:
        self.A, self.B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
        self.horizon, self.grouping = horizon, grouping
        zero = np.zeros(self.A.shape[0])
        self._pull: np.ndarray | None = None
        if grouping == "condensed":
            self.problem, self._pull = condensed(self.A, self.B, horizon, inputs, state_cost, input_cost)
        else:
            costs = {"state_cost": state_cost, "input_cost": input_cost}
            self.problem = control(self.A, self.B, horizon, zero, inputs=inputs, grouping=grouping, **costs)
        if grouping == "condensed":
            options.setdefault("beta", self.problem.modulus("u") or 1.0)
        self.repeated = Repeated(self.problem, **options)

    def solve(self, state: np.ndarray, **how: Any) -> Solution:
        """The plan from `state`; `how` are arguments of `Repeated.solve` (tol, max_iter, check_every, start, …).

        Raises
        ------
        InputError
            If the state has another length.
        """
        s = np.asarray(state, dtype=float)
        if s.shape != self.A.shape[:1]:
            raise InputError(f"the state is {s.shape}; expected {self.A.shape[:1]}")
        if self._pull is not None:
            return self.repeated.solve(linear={"u": self._pull @ s}, **how)
        row = "dynamics" if self.grouping == "joint" else "dynamics0"
        b = np.zeros(self.problem.structure.lengths[self.problem.structure.rows.index(row)])
        b[: s.size] = self.A @ s
        return self.repeated.solve({row: b}, **how)

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

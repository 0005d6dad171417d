"""Least-squares temporal differences as a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Gt

from infimum.solver import Metric, Slot, Solver
from infimum_tdexp import checks, kernel
from infimum_tdexp.transitions import TRANSITIONS, Array, Batch, Request

NAME = "tdexp.lstd"


@dataclass(slots=True)
class LSTDState:
    """The solution, the sums that it solves, and where the chains stand."""

    x: Array
    A: Array
    b: Array
    k: int
    seed: int
    where: Array | None
    conditioning: float | None


@dataclass(frozen=True)
class LSTD(Solver):
    """The fixed point of the transitions seen so far: `(sum phi (phi - gamma phi')' + ridge I) w = sum r phi`.

    Statistically better than any step size: it uses every transition in full. It costs d^2 numbers of memory and of
    work a transition, and a d x d system at each check (TD(0): d). Reports the solution of that system, which is
    solved once per check: raise `check_every` where d is large.

    Metric: `conditioning`, the largest condition number of the systems.

    Parameters
    ----------
    ridge : float, default 1e-6
        Added to the diagonal of the sums, towards the start; above 0, so that the first systems can be solved.

    References
    ----------
    Bradtke and Barto, "Linear least-squares algorithms for temporal difference learning", 1996.
    """

    ridge: Annotated[float, Gt(0)] = 1e-6

    families: ClassVar[tuple[str, ...]] = ("policy evaluation",)
    metrics: ClassVar[Mapping[str, Metric]] = {"conditioning": Metric(attrgetter("conditioning"))}
    State: ClassVar[type] = LSTDState
    reference_problems: ClassVar[Sequence[Any]] = (
        {"use": "tdexp.garnet", "runs": 3},
        {"use": "tdexp.boyan_chain", "sampling": "iid"},
    )

    def __post_init__(self) -> None:
        checks.positive(self.ridge, "ridge", NAME)

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("process", needs=(TRANSITIONS,), at_least=1, at_most=1, empty=None),)

    def init(self, parts: Any, start: Array, rng: np.random.Generator) -> LSTDState:
        d, runs = start.shape[-1], 1 if start.ndim == 1 else len(start)
        A = np.tile(self.ridge * np.eye(d), (runs, 1, 1))
        b = self.ridge * start.reshape(runs, d)
        return LSTDState(start.copy(), A, b, 0, int(rng.integers(2**63)), None, None)

    def step(self, parts: Any, state: LSTDState) -> LSTDState:
        return self.advance(parts, state, 1)

    def advance(self, parts: Any, state: LSTDState, steps: int) -> LSTDState:
        A, b = state.A.copy(), state.b.copy()
        runs, d = b.shape
        done, where, end = state.k, state.where, state.k + steps
        while done < end:
            take = min(kernel.chunk(d, runs), end - done)
            batch = parts.process.transitions(Request(state.seed, done, take, runs, where))
            accumulate(A, b, batch)
            done, where = done + take, batch.where
        x = solved(A, b).reshape(state.x.shape)
        return LSTDState(x, A, b, done, state.seed, where, conditioning(A))

    def solution(self, state: LSTDState) -> Array:
        """The solution of the sums so far."""
        return state.x


def accumulate(A: Array, b: Array, batch: Batch) -> None:
    """Add transitions to sums (runs, d, d) and (runs, d), in place and in order, so that any cut gives the same."""
    outer, weighted = np.empty_like(A), np.empty_like(b)
    for phi, psi, reward in zip(batch.phi, batch.psi, batch.reward, strict=True):
        np.multiply(phi[:, :, None], psi[:, None, :], outer)
        np.subtract(A, outer, A)
        np.multiply(phi, reward[:, None], weighted)
        np.add(b, weighted, b)


def solved(A: Array, b: Array) -> Array:
    """Solutions of several systems; of smallest norm where one is singular."""
    try:
        found: Array = np.linalg.solve(A, b[..., None])[..., 0]
        if np.isfinite(found).all():
            return found
    except np.linalg.LinAlgError:
        pass
    return np.stack([np.linalg.lstsq(one, side, rcond=None)[0] for one, side in zip(A, b, strict=True)])


def conditioning(A: Array) -> float:
    """The largest condition number in the 1-norm."""
    return float(np.max(np.linalg.cond(A, 1)))

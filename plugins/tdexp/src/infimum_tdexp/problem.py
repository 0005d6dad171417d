"""The family of policy evaluation: the values of a policy, as linear functions of features, from transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from infimum.errors import InputError
from infimum.problem.base import PointMetric, Problem, Term
from infimum_tdexp import checks
from infimum_tdexp.transitions import TRANSITIONS, Array, Moments, Process


class PolicyEvaluation(Problem):
    """Find weights w such that `phi(s)'w` is the value of state s.

    Parameters
    ----------
    process : MRP, Stream, Environment or object
        Where transitions come from: an object with `capabilities` that name `transitions`, and `gamma`, `dimension`,
        `sampling`, `omega` (or None) and `moments` (or None).
    runs : int, default 1
        Independent runs at once: points then have shape (runs, d), and metrics are means over the runs. A start of
        that shape says the same.
    name : str, default ""

    Raises
    ------
    InputError
        If the process has no transitions to give, or `runs` is no integer >= 1.

    Notes
    -----
    Where the moments are known, metrics of a point are `value`, the mean squared distance of its values from those
    of the fixed point w* of TD(0) (which ranks points); `residual`, `||A w - b||`; `mspbe`; and, for a model,
    `value_error`, the distance from the true values, which includes what no weights can represent.

    Examples
    --------
    >>> import infimum
    >>> from infimum_tdexp import random_walk
    >>> problem = random_walk(runs=8)
    >>> solver = {"use": "tdexp.td0", "horizon": 2000}
    >>> result = infimum.solve(problem, solver=solver, stopping="max_iter(2000)", check_every=500, seed=0)
    >>> bool(result.value < 0.2 * problem.moments.energy), result.evaluations
    (True, {'process': {'transitions': 16000}})
    """

    family: ClassVar[str] = "policy evaluation"

    def __init__(self, process: Process, runs: int = 1, name: str = "") -> None:
        if TRANSITIONS not in getattr(process, "capabilities", ()):
            raise InputError(
                f"PolicyEvaluation: expected a process with transitions (MRP, Stream, …), got {checks.shown(process)}"
            )
        runs = checks.whole(runs, "runs", "PolicyEvaluation")
        self.process, self.runs, self.name = process, runs, name
        self._terms = (Term("process", process),)

    @property
    def terms(self) -> tuple[Term, ...]:
        return self._terms

    @property
    def moments(self) -> Moments | None:
        """A, b and the features' second moments, where they are known."""
        return self.process.moments

    @property
    def merit(self) -> str | None:
        return None if self.moments is None else "value"

    def start(self, rng: np.random.Generator) -> Array:
        """Zeros."""
        d = self.process.dimension
        return np.zeros(d if self.runs == 1 else (self.runs, d))

    def prepare(self, start: Any) -> Array:
        x = checks.numbers(start, "x0", remedy="a start must be finite")
        if x.ndim not in (1, 2) or x.shape[-1] != self.process.dimension:
            d = self.process.dimension
            raise InputError(f"x0: expected weights of shape ({d},), or (runs, {d}) for several runs, got {x.shape}")
        return x

    def copy(self, point: Array) -> Array:
        return point.copy()

    def dimension(self, term: Term | None = None) -> int:
        return self.process.dimension

    def square(self, point: Array) -> Any:
        return np.vdot(point, point)

    def size(self, point: Array) -> float:
        return float(np.linalg.norm(point))

    def metrics(self, point: Array) -> Mapping[str, PointMetric]:
        out: dict[str, PointMetric] = {"rel_change": _rel_change, "abs_change": _abs_change}
        out["norm"] = lambda x, _: float(np.linalg.norm(x, axis=-1).mean())
        moments = self.moments
        if moments is not None:
            out["value"] = lambda x, _: float(moments.errors(x).mean())
            out["residual"] = lambda x, _: float(moments.residuals(x).mean())
            out["mspbe"] = lambda x, _: float(moments.mspbe(x).mean())
        values = getattr(self.process, "values", None)
        if values is not None:
            phi, mu = self.process.features, self.process.mu  # type: ignore[attr-defined]
            out["value_error"] = lambda x, _: float((((x @ phi.T) - values) ** 2 @ mu).mean())
        return out

    def describe(self, point: Any = None) -> str:
        runs = self.runs if point is None else 1 if point.ndim == 1 else len(point)
        many = f", {runs} runs" if runs > 1 else ""
        return f"{self.name or 'policy evaluation'} ({self.process!r}{many})"


def _abs_change(x: Array, previous: Array | None) -> float | None:
    return None if previous is None else float(np.linalg.norm(x - previous))


def _rel_change(x: Array, previous: Array | None) -> float | None:
    if previous is None:
        return None
    return float(np.linalg.norm(x - previous)) / max(1.0, float(np.linalg.norm(previous)))

"""A stopping rule that knows the noise of a sampled prox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from infimum.errors import InputError
from infimum.status import Status
from infimum.stopping import UNKNOWN, Progress, Reason, StoppingRule
from infimum.stopping.base import Tracker, Unknown
from infimum.stopping.options import POSITIVE_COUNT, TOLERANCE

NOISES: Mapping[str, str] = {"residual": "residual_noise", "grad_norm": "grad_noise"}


@dataclass(frozen=True, repr=False)
class NoiseFloor(StoppingRule):
    """Stop when the solver's residual is no larger than `factor` times the sampling error of its prox; `stalled`.

    Below that the residual shows noise, not progress. The status is `stalled`, not `converged`: nothing is said of the
    bias of delta, nor of how far a noisy iterate is from the optimum. The error is the Monte Carlo standard error of
    the last prox in units of the residual: over the step t for `grad_norm`, times max(1, 1/t) for `residual` (where a
    linear map stands before the function, up to its norm). It is unknown, and the rule does not fire, while fewer than
    5 samples are effective.

    Parameters
    ----------
    factor : float, default 2
        At least 0.
    of : {"residual", "grad_norm"}, default "residual"
        The solver's metric: `grad_norm` for proximal point and proximal gradient, `residual` for the others.
    patience : int, default 3
        Number of checks in a row for which it must hold, 1 or more.
    """

    factor: float = field(default=2.0, metadata=TOLERANCE)
    of: Literal["residual", "grad_norm"] = "residual"
    patience: int = field(default=3, metadata=POSITIVE_COUNT)

    status: ClassVar[Status] = Status.stalled

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of not in NOISES:
            raise InputError(f"noise_floor: of={self.of!r}; expected 'residual' or 'grad_norm'")

    def metrics(self) -> frozenset[str]:
        return frozenset({self.of, NOISES[self.of]})

    def start(self) -> Tracker:
        return NoiseFloorTracker(self)


class NoiseFloorTracker:
    """Counts checks in a row at the noise floor. A check without the numbers neither adds nor breaks."""

    def __init__(self, rule: NoiseFloor) -> None:
        self.rule = rule
        self.met = 0

    def update(self, progress: Progress) -> Reason | Unknown | None:
        rule = self.rule
        value, noise = progress.metrics.get(rule.of), progress.metrics.get(NOISES[rule.of])
        if value is None or noise is None:
            return UNKNOWN
        if value > rule.factor * noise:
            self.met = 0
            return None
        if not value <= rule.factor * noise:
            self.met = 0
            return UNKNOWN
        self.met += 1
        if self.met < rule.patience:
            return None
        said = f"{rule.of} {float(value):.3g} <= {rule.factor:g} times the sampling error of the prox, {noise:.3g}"
        return Reason(str(rule), rule.status, said, {rule.of: float(value), NOISES[rule.of]: float(noise)})

    def state_dict(self) -> dict[str, Any]:
        return {"met": self.met}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.met = int(state["met"])

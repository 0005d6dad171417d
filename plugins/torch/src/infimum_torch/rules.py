"""Stopping rules of training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from infimum.status import Status
from infimum.stopping import UNKNOWN, Progress, StoppingRule
from infimum.stopping.base import Reason, Tracker, Unknown
from infimum.stopping.options import TOLERANCE


@dataclass(frozen=True, repr=False)
class MaxEpochs(StoppingRule):
    """Stop after `n` epochs of the data; status `limit`.

    Parameters
    ----------
    n : float
        Number of epochs, 0 or more; half an epoch may be asked for. Where a loader does not say its length, the first
        epoch is over once it has ended. Like every rule it is read at checks: with `check_every: 20` up to 19 batches
        may follow.
    """

    n: float = field(metadata=TOLERANCE)

    needs = ("epoch",)
    status = Status.limit
    limit = True

    def start(self) -> Tracker:
        return EpochTracker(self)


class EpochTracker:
    """Compares the metric `epoch`; has no memory."""

    def __init__(self, rule: MaxEpochs) -> None:
        self.rule = rule

    def update(self, progress: Progress) -> Reason | Unknown | None:
        epoch = progress.metrics.get("epoch")
        if epoch is None or epoch != epoch:
            return UNKNOWN
        if epoch < self.rule.n:
            return None
        return Reason(str(self.rule), Status.limit, f"epoch {epoch:g} >= {self.rule.n:g}", {"epoch": float(epoch)})

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...

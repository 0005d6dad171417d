"""Why a loop ends."""

from __future__ import annotations

from dataclasses import dataclass

from infimum.status import Status
from infimum.stopping.base import Reason


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a loop ends: the winning status, a sentence, and every rule that fired with its values."""

    status: Status
    message: str
    fired: tuple[Reason, ...] = ()

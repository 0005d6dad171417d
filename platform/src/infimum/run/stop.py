"""Why a loop ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infimum.status import Status
from infimum.stopping.base import Reason


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a loop ends: the winning status, a sentence, and every rule that fired with its values."""

    status: Status
    message: str
    fired: tuple[Reason, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` reads it back."""
        return {"status": str(self.status), "message": self.message, "fired": dump_reasons(self.fired)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Stop:
        return cls(Status(data["status"]), data["message"], load_reasons(data["fired"]))


def dump_reasons(reasons: Sequence[Reason]) -> list[dict[str, Any]]:
    """Simple reasons as plain data."""
    return [
        {"rule": one.rule, "status": str(one.status), "message": one.message, "values": dict(one.values)}
        for one in reasons
    ]


def load_reasons(data: Sequence[Mapping[str, Any]]) -> tuple[Reason, ...]:
    """What `dump_reasons` gave."""
    return tuple(Reason(one["rule"], Status(one["status"]), one["message"], one["values"]) for one in data)

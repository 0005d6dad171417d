"""What a member came to, as plain data; imports nothing, for the processes that only start members."""

from __future__ import annotations

from typing import Any

_TRACEBACK = 8000
"""Characters of a traceback that are kept, from its end."""


def outcome(status: str, error: str | None = None, trace: str | None = None, **more: Any) -> dict[str, Any]:
    """The outcome of a member: status, error in one line, traceback, seconds, notes, and whatever else is known."""
    said = None if error is None else " ".join(error.split())
    cut = None if trace is None else trace[-_TRACEBACK:]
    return {"status": status, "error": said, "traceback": cut, "seconds": 0.0, "notes": [], **more}

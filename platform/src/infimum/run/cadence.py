"""When checkpoints of a run are due, and which there are."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infimum.errors import InputError, did_you_mean

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
DURATION = r"^\s*\d+(\.\d*)?(e[+-]?\d+)?\s*(ms|s|min|h)\s*$"
"""Pattern of a time such as "30s"."""
_FORMS = "a number of iterations (500) or a time with its unit (30s, 5min, 2h)"


@dataclass(frozen=True, slots=True)
class Cadence:
    """When to write checkpoints.

    Attributes
    ----------
    iterations : int or None
        After every so many iterations, at the first check from there on.
    seconds : float or None
        After so many seconds of the run's own clock, at the first check from there on.
    keep : int, default 2
        How many to keep: the one before the last serves where the last cannot be read.
    """

    iterations: int | None = None
    seconds: float | None = None
    keep: int = 2

    @classmethod
    def of(cls, given: Any) -> Cadence:
        """From `{"every": "30s", "keep": 2}`, from `every` alone, or from None (no cadence).

        Raises
        ------
        InputError
            For another form.
        """
        if given is None or isinstance(given, Cadence):
            return given or cls()
        spec = dict(given) if isinstance(given, Mapping) else {"every": given}
        for name in spec:
            if name not in ("every", "keep"):
                raise InputError(f"checkpoint has no option '{name}'; {did_you_mean(name, ('every', 'keep'))}")
        keep = spec.get("keep", 2)
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise InputError(f"checkpoint: keep={keep!r}: expected an integer >= 1")
        if "every" not in spec:
            raise InputError(f"checkpoint: 'every' is missing; expected {_FORMS}")
        every = spec["every"]
        if isinstance(every, str) and (seconds := seconds_of(every)) is not None:
            return cls(seconds=seconds, keep=keep)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"checkpoint: every={every!r}: expected {_FORMS}")
        return cls(iterations=every, keep=keep)


def seconds_of(text: str) -> float | None:
    """The seconds of a time with its unit, or None where it is none (zero is none)."""
    if re.match(DURATION, text) is None:
        return None
    unit = re.search(r"[a-z]+\s*$", text)
    assert unit is not None
    seconds = float(text[: unit.start()]) * _UNITS[unit[0].strip()]
    return seconds if 0 < seconds < math.inf else None


def checkpoints(folder: Path) -> list[int]:
    """Iterations of the checkpoints in a folder, oldest first."""
    return sorted(int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal())


def remove_checkpoint(folder: Path, iteration: int) -> None:
    """Its JSON first: arrays alone are no checkpoint."""
    for suffix in ("json", "npz"):
        (folder / f"{iteration}.{suffix}").unlink(missing_ok=True)


def remove_torn(folder: Path) -> None:
    """What a killed process left of a checkpoint that it was writing."""
    for path in folder.iterdir():
        if path.suffix == ".part" or (path.suffix == ".npz" and not path.with_suffix(".json").exists()):
            path.unlink(missing_ok=True)

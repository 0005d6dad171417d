"""Parameters chosen by patterns of their names."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from infimum.errors import InputError, did_you_mean


def matching(pattern: str, names: Sequence[str], what: str) -> list[str]:
    """The names that a shell pattern (`*`, `?`, `[…]`) matches; frozen parameters have none, tied ones the first.

    Raises
    ------
    InputError
        If it matches none; names the nearest.
    """
    found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise InputError(f"{what}: pattern '{pattern}' matches no trained parameter; {did_you_mean(pattern, names)}")
    return found

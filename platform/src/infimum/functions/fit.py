"""Data of functions and sets in the form of a point."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from infimum.arrays import Array, like
from infimum.functions.maps import Map

Holder = TypeVar("Holder")


def fitted(holder: Holder, names: tuple[str, ...], x: Array) -> Holder:
    """`holder` with the named attributes in the namespace, dtype and device of `x`; itself if nothing changes."""
    changed: dict[str, Any] = {}
    for name in names:
        old = getattr(holder, name)
        if old is None or isinstance(old, int | float):
            continue
        new = old.to(x) if isinstance(old, Map) else like(old, x)
        if new is not old:
            changed[name] = new
    if not changed:
        return holder
    twin = copy.copy(holder)
    twin.__dict__.update(changed)
    return twin

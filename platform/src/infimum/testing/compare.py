"""Two results of runs, two trees of state: where they differ, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from infimum.arrays import is_array, to_numpy
from infimum.result import Result


def difference(one: Any, other: Any, path: str = "it") -> str | None:
    """Where two trees of plain data (or of arrays) differ first, bit by bit; None where they do not."""
    if is_array(one) and is_array(other):
        left, right = to_numpy(one), to_numpy(other)
        if left.shape != right.shape or left.dtype != right.dtype:
            return f"{path} is {left.shape} {left.dtype} and {right.shape} {right.dtype}"
        if np.array_equal(left, right, equal_nan=left.dtype.kind in "fc"):
            return None
        return f"{path} differs by up to {float(np.nanmax(np.abs(left - right), initial=0.0)):.3g}"
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if set(one) != set(other):
            return f"{path} has the keys {sorted(map(str, one))} and {sorted(map(str, other))}"
        found = (difference(one[key], other[key], f"{path}.{key}") for key in one)
        return next((said for said in found if said), None)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return f"{path} has {len(one)} and {len(other)} entries"
        found = (difference(a, b, f"{path}[{k}]") for k, (a, b) in enumerate(zip(one, other, strict=True)))
        return next((said for said in found if said), None)
    if type(one) is not type(other) and not (isinstance(one, int | float) and isinstance(other, int | float)):
        return f"{path} is {type(one).__name__} and {type(other).__name__}"
    alike = one is other or one == other or (one != one and other != other)
    return None if alike else f"{path} is {one!r} and {other!r}"


def result_difference(one: Result, other: Result, *, trace: bool = True) -> str | None:
    """Where two results of what should be the same run differ; clock times do not count."""
    fields = ["x", "value", "best_x", "best_value", "iterations", "evaluations", "calls"]
    if trace:
        fields += ["best_iteration", "monitored"]
    found = difference(_plain(one, fields), _plain(other, fields), "result")
    if found is None and one.status is not other.status:
        found = f"result.status is {one.status} ({one.message}) and {other.status} ({other.message})"
    if found is None and trace:
        found = difference(_columns(one), _columns(other), "trace")
    return found


def _plain(result: Result, fields: list[str]) -> dict[str, Any]:
    """Attributes of a result, points that are no arrays (modules) as the plain data that they are saved as."""
    found = {name: getattr(result, name) for name in fields}
    if result.dump is not None:
        found |= {name: result.dump(found[name]) for name in ("x", "best_x") if found[name] is not None}
    return found


def _columns(result: Result) -> dict[str, Any]:
    return {name: column for name, column in (result.trace or {}).items() if name != "time"}

"""What differs between two manifests and between two results, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from infimum import arrays
from infimum.result import Result

CODE = ("plugins", "files")
"""Parts of a manifest that say which code and data ran; the others are the surroundings."""
_SURROUNDINGS = ("versions", "torch", "environment", "machine")
_OUTCOME = ("status", "iterations", "value", "best_value", "best_iteration", "violation", "tail_value", "exactness")
_COUNTS = ("evaluations", "calls", "monitored", "metrics", "extras")


def code_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Plugins, the host and the user's own files that are not what they were."""
    said = []
    for name, (old, new) in _changed(then.get("plugins", {}), now.get("plugins", {})):
        if old is None or new is None:
            said.append(f"plugin {name} took part {'now only' if old is None else 'then only'}")
        elif old["version"] != new["version"]:
            said.append(f"plugin {name}: {old['distribution']} {old['version']} then, {new['version']} now")
        else:
            said.append(f"plugin {name}: {new['distribution']} {new['version']} has other content than then")
    for name, (old, new) in _changed(then.get("files", {}), now.get("files", {})):
        what = "is new" if old is None else "is gone" if new is None else "has changed"
        said.append(f"file {name} {what}")
    return said


def surroundings_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Libraries, threads, environment and machine: what may change the last bits."""
    said = []
    for part in _SURROUNDINGS:
        old, new = then.get(part), now.get(part)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            said += [f"{part}: {name} was {a!r}, is {b!r}" for name, (a, b) in _changed(old, new)]
    return said + _threads(then.get("threads", []), now.get("threads", []))


def _threads(then: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[str]:
    """Libraries that were loaded in one of the two cases only do not count: that depends on what else was imported."""
    old, new = _by_library(then), _by_library(now)
    return [
        f"threads: {name} was {'; '.join(sorted(old[name]))}, is {'; '.join(sorted(new[name]))}"
        for name in old
        if name in new and not (old[name] <= new[name] or new[name] <= old[name])
    ]


def _by_library(rows: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in rows:
        text = " ".join(f"{value} threads" if key == "num_threads" else str(value) for key, value in row.items())
        found.setdefault(str(row.get("internal_api")), set()).add(text)
    return found


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, tuple[Any, Any]]]:
    names = [*old, *(name for name in new if name not in old)]
    return [(name, (old.get(name), new.get(name))) for name in names if old.get(name) != new.get(name)]


def result_differences(one: Result, other: Result) -> list[str]:
    """Where two results of what should be the same run differ, bit by bit; clock times do not count."""
    said = []
    for name in _OUTCOME:
        old, new = getattr(one, name), getattr(other, name)
        if not _same(old, new):
            gap = f" ({new - old:+.3g})" if isinstance(old, float) and isinstance(new, float) else ""
            said.append(f"{name} was {old}, is {new}{gap}")
    for name in _COUNTS:
        said += [
            f"{name}: {key} was {old}, is {new}"
            for key, (old, new) in _changed(getattr(one, name), getattr(other, name))
            if not _same(old, new)
        ]
    for name in ("x", "best_x", "tail_x"):
        said += _tree(_plain(one, name), _plain(other, name), name)
    return said + _traces(one, other)


def _plain(result: Result, name: str) -> Any:
    point = getattr(result, name)
    return result.dump(point) if result.dump is not None and point is not None else point


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return set(old) == set(new) and all(_same(one, new[key]) for key, one in old.items())
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(_same, old, new))
    if arrays.is_array(old) or arrays.is_array(new):
        return not _tree(old, new, "")
    return bool(old == new or (old != old and new != new))


def _tree(old: Any, new: Any, path: str) -> list[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = dict.fromkeys((*old, *new))
        return [line for name in names for line in _tree(old.get(name), new.get(name), f"{path}.{name}")]
    if arrays.is_array(old) and arrays.is_array(new):
        left, right = np.asarray(arrays.to_numpy(old)), np.asarray(arrays.to_numpy(new))
        if left.shape != right.shape or left.dtype != right.dtype:
            return [f"{path} was {left.shape} {left.dtype}, is {right.shape} {right.dtype}"]
        wrong = ~((left == right) | ((left != left) & (right != right)))
        if not wrong.any():
            return []
        gap = float(np.max(np.abs(left[wrong] - right[wrong]))) if left.dtype.kind in "fciu" else float("nan")
        return [f"{path} differs in {int(wrong.sum())} of {left.size} entries, by at most {gap:.3g}"]
    if arrays.is_array(old) or arrays.is_array(new):
        return [f"{path} was {type(old).__name__}, is {type(new).__name__}"]
    return [] if _same(old, new) else [f"{path} was {old!r}, is {new!r}"]


def _traces(one: Result, other: Result) -> list[str]:
    if one.trace is None or other.trace is None:
        return [] if one.trace is other.trace else ["one of the two has no trace"]
    if set(one.trace) != set(other.trace):
        return [f"the trace had the columns {', '.join(one.trace)}, has {', '.join(other.trace)}"]
    if one.trace.rows != other.trace.rows:
        return [f"the trace had {one.trace.rows} rows, has {other.trace.rows}"]
    said = []
    for name in one.trace:
        left, right = one.trace[name], other.trace[name]
        wrong = ~((left == right) | (np.isnan(left) & np.isnan(right)))
        if name != "time" and wrong.any():
            first = int(np.argmax(wrong))
            at = one.trace["iteration"][first] if "iteration" in one.trace else first
            said.append(f"trace column {name} differs from iteration {at:.0f} on, in {int(wrong.sum())} rows")
    return said

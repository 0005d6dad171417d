"""Checks a plain value of a run file against the small JSON Schemas of `keys`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from infimum.errors import did_you_mean
from infimum.runfile.reader import kind_of
from infimum.runfile.tree import Node, Path

_WORDS: dict[str, str] = {"string": "text", "integer": "a whole number", "object": "a mapping", "array": "a list"}
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


def mistakes(node: Node, schema: dict[str, Any], name: str) -> Iterator[tuple[Path, str]]:
    """Path below `node`, and what is wrong there."""
    expected = schema.get("type")
    if expected is None:
        return
    least = schema.get("minimum")
    words = _WORDS[expected] + (f" >= {least}" if least is not None else "")
    value = node.value
    if not _TYPES[expected](value) or (least is not None and value < least):
        yield (), f"{name}: expected {words}, got {kind_of(node.plain)}"
    elif "pattern" in schema and not re.search(schema["pattern"], value):
        yield (), f"{name}: expected a name without slashes, got {value!r}"
    elif expected == "object":
        for key, child in value.items():
            if key not in schema["properties"]:
                yield (key,), f"{name} has no option '{key}'; {did_you_mean(key, schema['properties'])}"
                continue
            for path, message in mistakes(child, schema["properties"][key], f"{name}.{key}"):
                yield (key, *path), message
    elif expected == "array":
        for index, child in enumerate(value):
            for path, message in mistakes(child, schema["items"], f"{name}[{index}]"):
                yield (index, *path), message

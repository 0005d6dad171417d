"""Paths in a run file are relative to the file that names them; in what order mistakes are told."""

from __future__ import annotations

import os
from typing import Any

from infimum.runfile.tree import Node, Place, RunFileIssue

PATHS = ("file", "run")
"""Keys of `x0` that hold a path."""


def anchored(path: str, base: str) -> str:
    """A path relative to the folder of the file that names it, made absolute."""
    return os.path.normpath(os.path.join(base, os.path.expanduser(path)))


def anchored_plain(node: Node, key: str = "", paths: tuple[str, ...] = ("file",)) -> Any:
    """Plain data in which the relative path of every `file:` (of every key in `paths`) is made absolute."""
    if isinstance(node.value, dict):
        return {name: anchored_plain(child, name, paths) for name, child in node.value.items()}
    if isinstance(node.value, list):
        return [anchored_plain(child, "", paths) for child in node.value]
    if key in paths and isinstance(node.value, str) and node.base:
        return anchored(node.value, node.base)
    return node.value


def in_order(issues: list[RunFileIssue], main: str) -> list[RunFileIssue]:
    """The run file's own mistakes first, by line; then those of files that it extends and of the command line."""

    def rank(issue: RunFileIssue) -> tuple[int, str, int, int]:
        place: Place = issue.place
        group = 2 if not place.line and place.source.startswith("<") else 0 if place.source == main else 1
        return group, place.source, place.line, place.column

    return sorted(issues, key=rank)

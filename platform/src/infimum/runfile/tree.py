"""A run file as a tree that knows where each value and each key stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from infimum.errors import InfimumError

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a position in a file (lines and columns from 1), or an argument of the command line."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True, slots=True)
class RunFileIssue:
    """One mistake: the path of the value in the run file, where it stands, what is wrong with it, and what would help.

    As text it is one line, with the remedies indented below.
    """

    path: Path
    place: Place
    message: str
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n    ".join((f"{self.place}: {' '.join(self.message.split())}", *self.remedies))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "path": list(self.path),
            "source": self.place.source,
            "line": self.place.line or None,
            "column": self.place.column or None,
            "message": self.message,
            "remedies": list(self.remedies),
        }


class RunFileError(InfimumError):
    """A run file with mistakes; all of them at once.

    Attributes
    ----------
    issues : tuple of RunFileIssue
        In the order in which they stand in the file.
    """

    def __init__(self, issues: list[RunFileIssue] | tuple[RunFileIssue, ...]) -> None:
        self.issues = tuple(dict.fromkeys(issues))
        super().__init__("\n".join(str(one) for one in self.issues))


@dataclass(slots=True)
class Node:
    """A value of a run file: a scalar, a dict of nodes or a list of nodes.

    Attributes
    ----------
    value : scalar, dict of str to Node, or list of Node
    place : Place
        Where the value begins.
    key : Place, optional
        Where its key begins, for a value in a mapping.
    base : str
        Folder against which relative paths in this value are meant.
    text : tuple of (int, int)
        For a string: line and column of each of its characters, as far as they are known.
    """

    value: Any
    place: Place
    key: Place | None = None
    base: str = ""
    text: tuple[tuple[int, int], ...] = field(default=(), repr=False)

    @property
    def plain(self) -> Any:
        """The value as plain data."""
        if isinstance(self.value, dict):
            return {name: child.plain for name, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain for child in self.value]
        return self.value

    def find(self, path: Path) -> Node | None:
        """The node at `path`, or None."""
        node: Node | None = self
        for step in path:
            node = node.child(step) if node is not None else None
        return node

    def child(self, step: str | int) -> Node | None:
        """The value under a key or an index, or None."""
        if isinstance(self.value, dict):
            return self.value.get(step if isinstance(step, str) else str(step))
        if isinstance(self.value, list) and isinstance(step, int) and 0 <= step < len(self.value):
            found: Node = self.value[step]
            return found
        return None

    def place_of(self, path: Path, *, key: bool = False) -> Place:
        """Where the value (or its key) at `path` stands; the nearest ancestor that exists otherwise."""
        node: Node = self
        for step in path:
            below = node.child(step)
            if below is None:
                return node.place
            node = below
        return node.key if key and node.key is not None else node.place

    def at(self, offset: int) -> Place:
        """Where character `offset` of a string stands."""
        if not self.text or not self.place.line:
            return self.place
        line, column = self.text[min(max(offset, 0), len(self.text) - 1)]
        beyond = max(0, offset - len(self.text) + 1)
        return Place(self.place.source, line, column + beyond)

    def leaves(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """All values that are not mappings or lists, and empty mappings and lists, with their paths."""
        children = (
            self.value.items()
            if isinstance(self.value, dict)
            else enumerate(self.value)
            if isinstance(self.value, list)
            else ()
        )
        empty = True
        for step, child in children:
            empty = False
            yield from child.leaves((*path, step))
        if empty:
            yield path, self


def plain_tree(value: Any, place: Place, base: str = "") -> Node:
    """Plain data as a tree whose values all stand at one place."""
    if isinstance(value, dict):
        return Node({str(key): plain_tree(one, place, base) for key, one in value.items()}, place, place, base)
    if isinstance(value, list | tuple):
        return Node([plain_tree(one, place, base) for one in value], place, place, base)
    return Node(value, place, place, base)


def path_text(path: Path) -> str:
    """A path as it is written on the command line: `constraints.0.lower`."""
    return ".".join(str(step) for step in path)

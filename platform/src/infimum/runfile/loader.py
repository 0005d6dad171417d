"""From a path and command line overrides to one tree: `extends`, deep merge, overrides, origins kept."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from infimum.runfile.reader import kind_of, read_file, read_value
from infimum.runfile.tree import Node, Path, Place, RunFileError, RunFileIssue, path_text

COMPONENT_KEYS = frozenset({"problem", "solver"})
"""Top keys whose value is one component: a bare name stands for `{use: name}`."""
COMPONENT_GROUPS = frozenset({"oracles", "constraints", "observers"})
"""Top keys whose children are components."""
_WHOLE = frozenset({"stopping", "x0"})
"""Top keys that a later file replaces as a whole."""


def load_tree(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> tuple[Node, list[RunFileIssue]]:
    """Read a run file, what it extends, and the overrides on top.

    Parameters
    ----------
    path : str or path
        The run file.
    overrides : iterable of str
        `key=value`, with dots for nested keys and list positions. Their order does not matter, except that the
        last of two for the same key wins.

    Returns
    -------
    tree : Node
        The merged mapping; every value knows where it came from.
    issues : list of RunFileIssue
        Mistakes found on the way: keys given twice, overrides that fit nowhere.

    Raises
    ------
    RunFileError
        A file that cannot be read, or a cycle of `extends`.
    """
    issues: list[RunFileIssue] = []
    tree = _extended(os.fspath(path), (), issues)
    changes = []
    for number, argument in enumerate(overrides, start=1):
        try:
            changes.append(_parse(argument, number))
        except RunFileError as error:
            issues += error.issues
    for steps, node in sorted(changes, key=lambda change: (len(change[0]), change[0][-1] != "use")):
        problem = place_value(tree, steps, node)
        if problem is not None:
            issues.append(problem)
    tree.value = {name: node for name, node in tree.value.items() if node.value is not None}
    return tree, issues


def _extended(path: str, chain: tuple[str, ...], issues: list[RunFileIssue]) -> Node:
    tree = read_file(path, issues)
    named = tree.value.pop("extends", None)
    if named is None or named.value is None:
        return tree
    if not isinstance(named.value, str):
        message = f"'extends' takes the path of one run file, got {kind_of(named.value)}"
        raise RunFileError([*issues, RunFileIssue(("extends",), named.place, message)])
    below = os.path.normpath(os.path.join(os.path.dirname(path), os.path.expanduser(named.value)))
    chain = (*chain, path)
    real = [os.path.realpath(one) for one in chain]
    if os.path.realpath(below) in real:
        circle = [*chain[real.index(os.path.realpath(below)) :], below]
        message = f"'extends' goes in a circle: {' -> '.join(circle)}"
        raise RunFileError([*issues, RunFileIssue(("extends",), named.place, message)])
    if not os.path.isfile(below):
        message = f"'extends' names {below}, which is no file (paths are relative to the file that names them)"
        raise RunFileError([*issues, RunFileIssue(("extends",), named.place, message)])
    return merge(_extended(below, chain, issues), tree)


def merge(under: Node, over: Node, path: Path = ()) -> Node:
    """`over` on top of `under`: mappings are merged, anything else is replaced.

    A mapping that names another component (`use`) replaces the whole mapping, so that no option of the old component
    reaches the new one.
    """
    under = _spelled_out(under, path) if isinstance(over.value, dict) else under
    if not isinstance(under.value, dict) or not isinstance(over.value, dict):
        return over
    if (len(path) == 1 and path[0] in _WHOLE) or _other_component(under, over):
        return over
    joined = dict(under.value)
    for name, node in over.value.items():
        joined[name] = merge(joined[name], node, (*path, name)) if name in joined else node
    return Node(joined, over.place, over.key, over.base)


def _other_component(under: Node, over: Node) -> bool:
    old, new = under.value.get("use"), over.value.get("use")
    if new is None:
        return False
    return old is None or not same_name(old.value, new.value)


def same_name(one: object, other: object) -> bool:
    """Whether two component names are the same, one of them perhaps without its plugin."""
    if not isinstance(one, str) or not isinstance(other, str) or one == other:
        return one == other
    return one.endswith("." + other) or other.endswith("." + one)


def is_component(path: Path) -> bool:
    """Whether a run file has a component at `path`."""
    return (len(path) == 1 and path[0] in COMPONENT_KEYS) or (len(path) == 2 and path[0] in COMPONENT_GROUPS)


def _spelled_out(node: Node, path: Path) -> Node:
    """`name` as `{use: name}` where a component stands."""
    if not isinstance(node.value, str) or not is_component(path) or path == ("oracles",):
        return node
    name = Node(node.value, node.place, node.key, node.base, node.text)
    return Node({"use": name}, node.place, node.key, node.base)


def _parse(argument: str, number: int) -> tuple[Path, Node]:
    place = Place(f"<command line, argument {number}: '{argument}'>")
    name, equals, text = argument.partition("=")
    steps = tuple(name.strip().split("."))
    if not equals or not all(steps):
        message = "an override has the form key=value, such as solver.step=1e-3 or constraints.0.lower=1"
        raise RunFileError([RunFileIssue((), place, message)])
    if steps == ("extends",):
        raise RunFileError([RunFileIssue(steps, place, "'extends' can't be given on the command line")])
    return steps, read_value(text, place, base=os.getcwd())


def place_value(tree: Node, steps: Path, node: Node) -> RunFileIssue | None:
    """Put a value into the tree, in place; says what is wrong where it does not fit."""
    holder = tree
    for depth, step in enumerate(steps[:-1]):
        path = steps[: depth + 1]
        below, problem = _child(holder, step, path, node.place)
        if problem is not None:
            return problem
        if below is None or below.value is None:
            below = Node({}, node.place, node.place, node.base)
        below = _spelled_out(below, path)
        if not isinstance(below.value, dict | list):
            there = f"'{path_text(path)}' is {kind_of(below.value)} (at {below.place})"
            message = f"{there}, so '{path_text(steps)}' can't be set; set '{path_text(path)}' itself"
            return RunFileIssue(path, node.place, message)
        _store(holder, step, below)
        holder = below
    old, problem = _child(holder, steps[-1], steps, node.place)
    if problem is not None:
        return problem
    if steps[-1] == "use" and old is not None and not same_name(old.value, node.value):
        holder.value.clear()
    _store(holder, steps[-1], node)
    return None


def _child(holder: Node, step: str | int, path: Path, place: Place) -> tuple[Node | None, RunFileIssue | None]:
    if isinstance(holder.value, dict):
        return holder.value.get(str(step)), None
    count = len(holder.value)
    if re.fullmatch(r"[0-9]+", str(step)) and int(step) < count:
        return holder.value[int(step)], None
    where = f"'{path_text(path[:-1])}' is a list of {count} (at {holder.place})"
    message = f"{where}; '{step}' is no position in it" + (f", positions are 0 to {count - 1}" if count else "")
    return None, RunFileIssue(path, place, message)


def _store(holder: Node, step: str | int, node: Node) -> None:
    holder.value[str(step) if isinstance(holder.value, dict) else int(step)] = node

"""`sweep` and `repeat` of a run file: which values vary, and every combination of them with its place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from infimum.errors import did_you_mean
from infimum.runfile.keys import MANY_KEYS, TOP_KEYS
from infimum.runfile.loader import is_component, place_value, same_name
from infimum.runfile.reader import kind_of
from infimum.runfile.tree import Node, Path, RunFileIssue, path_text

WAYS = ("product", "zip", "components", "exclude")
RANGES = ("linspace", "logspace", "range")
FIXED = frozenset({"name", "extends", "output", "python_path", *MANY_KEYS})
"""Top keys that are the same for all runs of a file."""
LARGEST = 100_000
"""More members than this are refused: such a sweep was not meant."""
Fail = Callable[[Node, Path, str], None]


@dataclass(frozen=True, eq=False)
class Choice:
    """One value at one place of the run file.

    Attributes
    ----------
    path : tuple
    node : Node
    label : str
        For names of members.
    """

    path: Path
    node: Node
    label: str


@dataclass(frozen=True, eq=False)
class Axis:
    """Places that vary together (one, or several under `zip`), and the values that they take."""

    paths: tuple[Path, ...]
    points: tuple[tuple[Choice, ...], ...]


@dataclass(frozen=True, eq=False)
class Variant:
    """One combination: what is put where."""

    choices: tuple[Choice, ...] = ()
    repetition: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)
    """Labels that were given: "problem" and "solver" of a comparison."""

    @property
    def values(self) -> dict[str, Any]:
        """Path to plain value."""
        return {path_text(one.path): one.node.plain for one in self.choices}

    def apply(self, tree: Node, issues: list[RunFileIssue]) -> Node:
        """A copy of the file's tree with these values in it."""
        changed = copied(tree)
        for one in sorted(self.choices, key=lambda one: len(one.path)):
            problem = place_value(changed, one.path, copied(one.node))
            if problem is not None:
                issues.append(problem)
        return changed


def copied(node: Node) -> Node:
    """A node whose mappings and lists may be changed."""
    value = node.value
    if isinstance(value, dict):
        value = {name: copied(child) for name, child in value.items()}
    elif isinstance(value, list):
        value = [copied(child) for child in value]
    return Node(value, node.place, node.key, node.base, node.text)


def read_sweep(node: Node, fail: Fail) -> list[Variant]:
    """Every combination that `sweep` states; mistakes go to `fail(node, path, message)`."""
    if not isinstance(node.value, dict) or not node.value:
        fail(node, ("sweep",), f"sweep: expected a mapping with {', '.join(WAYS)}, got {kind_of(node.plain)}")
        return []
    axes: list[Axis] = []
    for name, child in node.value.items():
        path: Path = ("sweep", name)
        if name in ("product", "components"):
            axes += _apart(child, path, fail, whole=name == "components")
        elif name == "zip":
            axes += _together(child, path, fail)
        elif name != "exclude":
            fail(child, path, f"sweep has no option '{name}'; {did_you_mean(name, WAYS)}")
    _clashes(node, axes, fail)
    variants = _combined(node, axes, fail)
    excluded = node.child("exclude")
    return variants if excluded is None else _without(variants, excluded, fail)


def _apart(node: Node, above: Path, fail: Fail, *, whole: bool) -> list[Axis]:
    """Each key an axis of its own."""
    axes = []
    for path, values in _listed(node, above, fail, whole):
        choices = tuple((one,) for one in _choices(path, values))
        if choices:
            axes.append(Axis((path,), choices))
    # Components come first, so that their options can vary beside them.
    return axes


def _together(node: Node, above: Path, fail: Fail) -> list[Axis]:
    """All keys one axis."""
    columns = [(path, _choices(path, values)) for path, values in _listed(node, above, fail, False)]
    lengths = {path_text(path): len(column) for path, column in columns}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} has {count}" for name, count in lengths.items())
        fail(node, above, f"zip: values that go together must be as many: {said}")
        return []
    points = tuple(zip(*(column for _, column in columns), strict=True))
    return [Axis(tuple(path for path, _ in columns), points)] if points else []


def _listed(node: Node, above: Path, fail: Fail, whole: bool) -> Iterator[tuple[Path, list[tuple[str | None, Node]]]]:
    """Places with their values, each with a label where the file gives one."""
    what = above[-1]
    if not isinstance(node.value, dict):
        fail(
            node,
            above,
            f"{what}: expected {{place: [values]}}, such as {{solver.step: [0.1, 1]}}, got {kind_of(node.plain)}",
        )
        return
    for name, child in node.value.items():
        place: Path = (*above, name)
        steps = tuple(name.split("."))
        if not all(steps) or steps[0] not in TOP_KEYS or steps[0] in FIXED:
            known = [key for key in TOP_KEYS if key not in FIXED]
            fail(child, place, f"{what}: '{name}' is no place whose value can vary; {did_you_mean(steps[0], known)}")
            continue
        values = _values(child, place, fail, whole)
        if values:
            yield steps, values


def _values(node: Node, place: Path, fail: Fail, whole: bool) -> list[tuple[str | None, Node]]:
    if isinstance(node.value, list):
        if not node.value:
            fail(node, place, f"{place[-1]}: there are no values; give at least one")
        return [(None, one) for one in node.value]
    if whole and isinstance(node.value, dict) and node.value and "use" not in node.value:
        return list(node.value.items())
    if not whole and isinstance(node.value, dict) and len(node.value) == 1 and next(iter(node.value)) in RANGES:
        return [(None, one) for one in _range(node, place, fail)]
    wanted = (
        "a list of components, or {label: component}"
        if whole
        else (
            "a list of values, {linspace: [from, to, count]}, {logspace: [from, to, count]} or "
            "{range: [from, to, step]}"
        )
    )
    fail(node, place, f"{place[-1]}: expected {wanted}, got {kind_of(node.plain)}")
    return []


def _range(node: Node, place: Path, fail: Fail) -> list[Node]:
    """`{linspace: [0, 1, 5]}` and its like, as nodes."""
    name, given = next(iter(node.value.items()))
    numbers = given.plain
    good = (
        isinstance(numbers, list)
        and 2 <= len(numbers) <= 3
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers)
    )
    if name != "range":
        good = good and len(numbers) == 3 and isinstance(numbers[2], int) and 1 <= numbers[2] <= LARGEST
        good = good and (name == "linspace" or (numbers[0] > 0 and numbers[1] > 0))
        wanted = "[from, to, count]" + ("" if name == "linspace" else " with positive ends")
    else:
        good = good and all(isinstance(one, int) for one in numbers) and (len(numbers) < 3 or numbers[2] != 0)
        wanted = "[from, to] or [from, to, step] of whole numbers; `to` is left out"
    if not good:
        fail(given, (*place, name), f"{name}: expected {wanted}, got {numbers!r}")
        return []
    if name == "range":
        counted = range(*numbers)
        if len(counted) > LARGEST:
            fail(given, (*place, name), f"range: {numbers!r} holds more than {LARGEST} values")
            return []
        found: list[Any] = list(counted)
    else:
        space = np.linspace if name == "linspace" else np.geomspace
        found = [float(f"{one:.12g}") for one in space(*numbers)]
    if not found:
        fail(given, (*place, name), f"{name}: {numbers!r} holds no value")
    return [Node(one, given.place, given.key, given.base) for one in found]


def _choices(path: Path, values: Sequence[tuple[str | None, Node]]) -> list[Choice]:
    """Values with labels that tell them apart."""
    said = short if is_component(path) else longer
    labels = [label if label is not None else said(node.plain) for label, node in values]
    if len(set(labels)) < len(labels):
        labels = [label if values[k][0] is not None else longer(values[k][1].plain) for k, label in enumerate(labels)]
    return [Choice(path, node, label) for label, (_, node) in zip(labels, values, strict=True)]


def short(value: Any) -> str:
    """A value in a word: of a component its bare name."""
    if isinstance(value, dict) and isinstance(value.get("use"), str):
        value = value["use"]
    if isinstance(value, str):
        return value.rpartition(":")[2] if value.startswith("python:") else value.rpartition(".")[2] or value
    return longer(value)


def longer(value: Any) -> str:
    """A value with its options."""
    if isinstance(value, dict) and isinstance(value.get("use"), str):
        options = [f"{name}={longer(one)}" for name, one in value.items() if name != "use"]
        return f"{short(value)}({', '.join(options)})" if options else short(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {longer(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(longer, value)) + "]"
    if isinstance(value, str) and value.startswith("python:"):
        return value.rpartition(":")[2]
    if isinstance(value, str | int):
        return str(value)
    # An object given from Python.
    return str(getattr(value, "__name__", None) or getattr(value, "name", None) or type(value).__name__).strip("<>")


def _clashes(node: Node, axes: Sequence[Axis], fail: Fail) -> None:
    """The same place twice."""
    seen: set[Path] = set()
    for axis in axes:
        for path in axis.paths:
            if path in seen:
                fail(node, ("sweep",), f"sweep: '{path_text(path)}' varies twice; keep one")
            seen.add(path)


def _combined(node: Node, axes: Sequence[Axis], fail: Fail) -> list[Variant]:
    total = 1
    for axis in axes:
        total *= len(axis.points)
    if total > LARGEST:
        fail(node, ("sweep",), f"sweep: {total} combinations are more than {LARGEST}; vary less, or leave some out")
        return []
    if not axes:
        return []
    ordered = sorted(axes, key=lambda axis: min(len(path) for path in axis.paths))
    picked = itertools.product(*(axis.points for axis in ordered))
    return [Variant(tuple(choice for point in points for choice in point)) for points in picked]


def _without(variants: list[Variant], node: Node, fail: Fail) -> list[Variant]:
    """Leave out those that match an entry of `exclude`."""
    above: Path = ("sweep", "exclude")
    if not isinstance(node.value, list):
        fail(node, above, f"exclude: expected a list of {{place: value}}, got {kind_of(node.plain)}")
        return variants
    places = {path_text(choice.path) for variant in variants for choice in variant.choices}
    for k, one in enumerate(node.value):
        if not isinstance(one.value, dict) or not one.value:
            fail(one, (*above, k), f"exclude: expected {{place: value}}, got {kind_of(one.plain)}")
            continue
        unknown = [name for name in one.value if name not in places]
        for name in unknown:
            fail(one.value[name], (*above, k, name), f"exclude: '{name}' does not vary; {did_you_mean(name, places)}")
        left = [variant for variant in variants if unknown or not _matches(variant, one.plain)]
        if len(left) == len(variants) and not unknown:
            fail(one, (*above, k), "exclude: no combination has these values")
        variants = left
    if not variants:
        fail(node, above, "exclude: nothing is left")
    return variants


def _matches(variant: Variant, wanted: Mapping[str, Any]) -> bool:
    found = {path_text(one.path): one for one in variant.choices}
    return all(
        name in found and (value == found[name].label or _same(value, found[name].node.plain))
        for name, value in wanted.items()
    )


def _same(wanted: Any, value: Any) -> bool:
    """Whether a value is meant: a component by its name, or by its name and some of its options."""
    if isinstance(value, dict) and isinstance(wanted, str):
        return same_name(wanted, value.get("use"))
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(
            (same_name(one, value.get(name)) if name == "use" else name in value and value[name] == one)
            for name, one in wanted.items()
        )
    if isinstance(wanted, str) and isinstance(value, str):
        return same_name(wanted, value)
    return bool(wanted == value and isinstance(wanted, bool) == isinstance(value, bool))


def repeated(variants: Iterable[Variant], times: int) -> list[Variant]:
    """Each variant `times` times, with repetitions from 0."""
    return [Variant(one.choices, repetition, one.parts) for one in variants for repetition in range(times)]

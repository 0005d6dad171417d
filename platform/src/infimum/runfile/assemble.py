"""From a tree to objects: every component checked and built, every mistake collected with its place."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any

from infimum.errors import InputError, did_you_mean
from infimum.plugins.build import Built, check_build
from infimum.plugins.options import Issue
from infimum.plugins.python_target import PREFIX
from infimum.plugins.records import article, words
from infimum.plugins.registry import Registry, get_registry
from infimum.run.cadence import Cadence
from infimum.runfile.anchors import anchored, anchored_plain
from infimum.runfile.keys import TOP_KEYS
from infimum.runfile.reader import kind_of
from infimum.runfile.scalars import mistakes
from infimum.runfile.start import check_start
from infimum.runfile.stopping import read_stopping
from infimum.runfile.tree import Node, Path, RunFileIssue

_AT_KEY = (" has no option ", "unknown key ")
"""Messages about a key rather than about its value."""


@dataclass(slots=True)
class Assembled:
    """What a run file states, as objects.

    Attributes
    ----------
    problem, solver : Built or None
    oracles : "auto", or a mapping of term names to Built
    constraints : list of (name or None, Built, block that it is on or None)
    assign : mapping of str to str or list of str
    stopping : StoppingRule or None
    observers : list of Built
    folders : dict of str to None
        Where the modules of `python:` references were looked up first, in order.
    """

    problem: Built | None = None
    solver: Built | None = None
    oracles: Any = None
    constraints: list[tuple[str | None, Built, str | None]] = field(default_factory=list)
    assign: dict[str, Any] = field(default_factory=dict)
    stopping: Any = None
    observers: list[Built] = field(default_factory=list)
    folders: dict[str, None] = field(default_factory=dict)
    start_folder: str | None = None


class Assembler:
    """Builds everything that can be built and collects what is wrong with the rest."""

    def __init__(
        self,
        tree: Node,
        issues: list[RunFileIssue],
        *,
        folder: str = "",
        allow_python: bool = True,
        registry: Registry | None = None,
        memo: dict[Any, Any] | None = None,
    ) -> None:
        self.memo = memo
        """Components that were built before, for trees that have much in common."""
        self.tree, self.issues, self.allow_python = tree, issues, allow_python
        self.registry = registry or get_registry()
        self._spoiled = {(issue.path, issue.place) for issue in issues}
        self.made = Assembled()
        more = tree.find(("python_path",))
        children = more.value if more is not None and isinstance(more.value, list) else []
        self._python_path = [anchored(one.value, one.base) for one in children if isinstance(one.value, str)]
        self._python_path.append(os.path.abspath(folder))

    def run(self) -> Assembled:
        """Look at every key of the file."""
        for name, node in self.tree.value.items():
            if name not in TOP_KEYS:
                self.fail((name,), f"unknown key '{name}'; {did_you_mean(name, TOP_KEYS)}")
                continue
            for path, message in mistakes(node, TOP_KEYS[name], name):
                self.fail((name, *path), message)
        if "problem" not in self.tree.value:
            self.issues.append(
                RunFileIssue((), self.tree.place, "'problem' is missing; a run file needs one: problem: {use: ...}")
            )
        for name, read in (
            ("problem", self._problem),
            ("oracles", self._oracles),
            ("constraints", self._constraints),
            ("solver", self._solver),
            ("x0", self._start),
            ("stopping", self._stopping),
            ("observers", self._observers),
            ("checkpoint", self._checkpoint),
        ):
            if name in self.tree.value:
                read(self.tree.value[name])
        return self.made

    def fail(self, path: Path, message: str, *, offset: int | None = None) -> None:
        """Note a mistake at a path; a second one at a value that could not even be read is left out."""
        node = self.tree.find(path)
        at_key = any(sign in message for sign in _AT_KEY)
        place = self.tree.place_of(path, key=at_key)
        if offset is not None and node is not None:
            place = node.at(offset)
        if (path, place) not in self._spoiled:
            self.issues.append(RunFileIssue(path, place, message))

    def component(self, node: Node, kind: str, path: Path, beside: tuple[str, ...] = ()) -> Built | None:
        """Build one component; `beside` are keys of the run file's own among its options."""
        if not isinstance(node.value, str | dict):
            what = article(words(kind))
            self.fail(path, f"expected the name of {what} or {{use: name, ...}}, got {kind_of(node.plain)}")
            return None
        spec = anchored_plain(node)
        if isinstance(spec, dict):
            spec = {key: value for key, value in spec.items() if key not in beside}
        built, issues = self._built(spec, kind, path, self.folder_of(node))
        for issue in issues:
            self.fail(_narrowed(issue, node, path), issue.message)
        return built

    def _built(self, spec: Any, kind: str, path: Path, folder: str | None) -> tuple[Built | None, list[Issue]]:
        """A component, or the one that was built from the same words before."""
        key = (kind, path, folder, repr(spec)) if self.memo is not None else None
        if self.memo is not None and key in self.memo:
            known: tuple[Built | None, list[Issue]] = self.memo[key]
            return known
        found = check_build(spec, kind, path, base=folder, allow_python=self.allow_python, registry=self.registry)
        if self.memo is not None:
            self.memo[key] = found
        return found

    def folder_of(self, node: Node) -> str | None:
        """Where the `python:` reference in a value is looked up first: beside the file that names it, else in
        `python_path`, else beside the run file."""
        reference = _reference(node)
        if reference is None:
            return None
        module = reference.value.removeprefix(PREFIX).partition(":")[0].partition(".")[0]
        folders = [reference.base, *self._python_path]
        found = (
            one
            for one in folders
            if os.path.exists(os.path.join(one, f"{module}.py")) or os.path.isdir(os.path.join(one, module))
        )
        folder = next(found, folders[0])
        self.made.folders[folder] = None
        return folder

    def _problem(self, node: Node) -> None:
        self.made.problem = self.component(node, "problem", ("problem",))

    def _solver(self, node: Node) -> None:
        self.made.solver = self.component(node, "solver", ("solver",), beside=("assign",))
        assign = node.child("assign")
        if assign is None or assign.value is None:
            return
        if not isinstance(assign.value, dict):
            self.fail(("solver", "assign"), f"assign: expected {{slot: term}}, got {kind_of(assign.plain)}")
            return
        for slot, term in assign.value.items():
            value = term.plain
            if isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
                self.made.assign[slot] = value
            else:
                self.fail(
                    ("solver", "assign", slot),
                    f"assign: expected the name of a term, or a list of names, got {kind_of(value)}",
                )

    def _oracles(self, node: Node) -> None:
        if node.value == "auto":
            self.made.oracles = "auto"
        elif isinstance(node.value, dict):
            made = {name: self.component(child, "oracle", ("oracles", name)) for name, child in node.value.items()}
            self.made.oracles = {name: built for name, built in made.items() if built is not None}
        else:
            self.fail(("oracles",), f"oracles: expected {{term: oracle}} or auto, got {kind_of(node.plain)}")

    def _constraints(self, node: Node) -> None:
        if isinstance(node.value, dict) and "use" in node.value:
            self.fail(
                ("constraints",),
                "constraints: expected a list or {name: constraint}; put '- ' or a name before this one",
            )
            return
        if not isinstance(node.value, dict | list):
            self.fail(
                ("constraints",), f"constraints: expected a list or {{name: constraint}}, got {kind_of(node.plain)}"
            )
            return
        children = node.value.items() if isinstance(node.value, dict) else enumerate(node.value)
        for key, child in children:
            path: Path = ("constraints", key)
            built = self.component(child, "constraint", path, beside=("on",))
            on = child.child("on")
            if on is not None and not isinstance(on.value, str):
                self.fail((*path, "on"), f"on: expected the name of a block, got {kind_of(on.plain)}")
            if built is not None:
                block = on.value if on is not None and isinstance(on.value, str) else None
                self.made.constraints.append((key if isinstance(key, str) else None, built, block))

    def _observers(self, node: Node) -> None:
        if not isinstance(node.value, list):
            self.fail(("observers",), f"observers: expected a list of observers, got {kind_of(node.plain)}")
            return
        made = [self.component(child, "observer", ("observers", k)) for k, child in enumerate(node.value)]
        self.made.observers = [built for built in made if built is not None]

    def _checkpoint(self, node: Node) -> None:
        if not isinstance(node.value, dict) or any(name not in ("every", "keep") for name in node.value):
            return
        try:
            Cadence.of(node.plain)
        except InputError as error:
            named = next((name for name in node.value if f"{name}=" in str(error)), None)
            self.fail(("checkpoint", named) if named else ("checkpoint",), str(error))

    def _start(self, node: Node) -> None:
        check_start(node, lambda path, message: self.fail(("x0", *path), message))
        if isinstance(node.value, str) and node.value.startswith(PREFIX) and not self.allow_python:
            self.fail(("x0",), f"'{node.value}': references to Python code are refused (--no-python)")
        self.made.start_folder = self.folder_of(node)

    def _stopping(self, node: Node) -> None:
        def resolve(name: str) -> Any:
            return self.registry.find(name, "stopping_rule").load()

        def fail(path: Path, message: str, offset: int | None) -> None:
            self.fail(("stopping", *path), message, offset=offset)

        self.made.stopping = read_stopping(node, resolve, fail)


def _narrowed(issue: Issue, node: Node, path: Path) -> Path:
    """Where a component refuses its options as a whole: the first of them that the message names."""
    if issue.path == path and issue.cause is not None and isinstance(node.value, dict):
        _, _, said = issue.message.partition(": ")
        for word in re.findall(r"\w+", said):
            if word in node.value and word != "use":
                return (*path, word)
    return issue.path


def _reference(node: Node) -> Node | None:
    """The first `python:` reference in a value."""
    found = (leaf for _, leaf in node.leaves() if isinstance(leaf.value, str) and leaf.value.startswith(PREFIX))
    return next(found, None)

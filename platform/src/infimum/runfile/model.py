"""A run file, read and checked: its objects, its resolved form, where each value comes from, and the run it states."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any

from infimum.errors import InfimumError, PlanError
from infimum.plugins.build import Built
from infimum.plugins.options import describe_options
from infimum.plugins.python_target import PREFIX, import_python
from infimum.plugins.registry import Registry, get_registry
from infimum.run.arguments import as_seed
from infimum.runfile.anchors import PATHS, anchored_plain, in_order
from infimum.runfile.assemble import Assembled, Assembler
from infimum.runfile.dump import dump_yaml, is_plain, plain
from infimum.runfile.keys import MANY_KEYS, TOP_KEYS
from infimum.runfile.loader import load_tree
from infimum.runfile.start import make_start
from infimum.runfile.tree import Node, Path, Place, RunFileError, RunFileIssue, path_text, plain_tree

_RUN_KEYS: dict[Path, str] = {
    ("check_every",): "check_every",
    ("value_every",): "value_every",
    ("trace", "max_rows"): "max_rows",
    ("trace", "metrics"): "record",
}
"""Path in a run file to the option of `infimum.api.prepare`."""
_KEY_OF_WORD = {
    "x0": "x0",
    "stopping": "stopping",
    "rule": "stopping",
    "constraint": "constraints",
    "constraints": "constraints",
    "oracle": "oracles",
    "oracles": "oracles",
    "observer": "observers",
    "observers": "observers",
    "trace": "trace",
}
"""A word of a message to the key of the run file that it is about."""


class RunFile:
    """A run file without mistakes. Make one with `RunFile.load`.

    Attributes
    ----------
    path : str
        As given.
    name : str
        `name:` of the file, else the file's own name without its suffix.
    seed : int
        `seed:` of the file, else drawn at random.
    problem, solver : Built or None
        The objects with their qualified names.
    """

    def __init__(self, path: str, tree: Node, made: Assembled, registry: Registry) -> None:
        self.path, self.tree, self.made, self.registry = path, tree, made, registry
        given = tree.child("name")
        self.name: str = given.value if given is not None else FilePath(path).stem
        drawn = tree.child("seed")
        self.seed = as_seed(drawn.value if drawn is not None else None)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        overrides: Iterable[str] = (),
        *,
        allow_python: bool = True,
        registry: Registry | None = None,
    ) -> RunFile:
        """Read a run file and build what it names.

        Parameters
        ----------
        path : str or path
            A YAML file.
        overrides : iterable of str
            `key=value` on top of the file, such as `solver.step=1e-3`.
        allow_python : bool, default True
            False refuses `python:module:attribute`.
        registry : Registry, optional
            Whose components to know; by default what is installed.

        Raises
        ------
        RunFileError
            With every mistake in the file, what it extends and the overrides.
        """
        shown = os.fspath(path)
        registry = registry or get_registry()
        tree, issues = load_tree(shown, overrides)
        issues += _states_many(tree)
        folder = os.path.dirname(shown)
        made = Assembler(tree, issues, folder=folder, allow_python=allow_python, registry=registry).run()
        if issues:
            raise RunFileError(in_order(issues, shown))
        return cls(shown, tree, made, registry)

    @classmethod
    def of(cls, config: Mapping[str, Any], path: str = "run.yaml", *, registry: Registry | None = None) -> RunFile:
        """A run file from its resolved form, as `resolved` gives it; `path` is what messages name.

        Raises
        ------
        RunFileError
            With every mistake in it.
        """
        place = Place(path)
        tree, issues = plain_tree(config, place, os.path.dirname(os.path.abspath(path))), list[RunFileIssue]()
        made = Assembler(tree, issues, folder=os.path.dirname(path), registry=registry or get_registry()).run()
        if issues:
            raise RunFileError(in_order(issues, path))
        return cls(path, tree, made, registry or get_registry())

    @property
    def problem(self) -> Built:
        """The problem with its name and options."""
        assert self.made.problem is not None
        return self.made.problem

    @property
    def solver(self) -> Built | None:
        """The solver with its name and options, if the file names one."""
        return self.made.solver

    @property
    def output(self) -> str:
        """Folder of all runs."""
        node = self.tree.find(("output", "dir"))
        return str(node.value) if node is not None else "runs"

    def resolved(self) -> dict[str, Any]:
        """The run file as plain data: qualified names, defaults filled in, absolute paths, the seed."""
        data: dict[str, Any] = {}
        for key in TOP_KEYS:
            value = self._resolved(key)
            if value is not None:
                data[key] = value
        return data

    def dump_yaml(self) -> str:
        """`resolved()` as YAML text that `RunFile.load` reads again."""
        return dump_yaml(self.resolved())

    def origins(self) -> dict[str, str]:
        """Path of each value of `resolved()` to where it comes from: a file, the command line, or a default."""
        found = {}
        for path, _ in leaves(self.resolved()):
            found[path_text(path)] = self._origin(path)
        return found

    def prepare(self, **more: Any) -> Any:
        """The run that the file states, ready to `solve()`.

        Parameters
        ----------
        **more
            Passed to `infimum.api.prepare` on top of what the file says, such as `callback`.

        Raises
        ------
        RunFileError
            If the parts do not fit together; placed at the key to change.
        """
        from infimum import api

        try:
            return api.prepare(self.stated(), **{**self.arguments(), **more})
        except RunFileError:
            raise
        except InfimumError as error:
            raise self._placed(error) from error

    def explain(self, *, every: bool = False) -> Any:
        """How the problem fits the file's solver, or all installed ones without a solver (or with `every`)."""
        from infimum import api

        arguments = self.arguments(start=False)
        names = ("oracles",) if every or self.solver is None else ("oracles", "solver", "assign")
        try:
            return api.explain(self.stated(), **{name: arguments[name] for name in names if name in arguments})
        except InfimumError as error:
            raise self._placed(error) from error

    def stated(self) -> Any:
        """The problem with the file's constraints."""
        from infimum.inputs import as_problem, place_constraints

        sets = [(name, built.instance, block) for name, built, block in self.made.constraints]
        return place_constraints(as_problem(self.problem.instance), sets)

    def arguments(self, *, start: bool = True) -> dict[str, Any]:
        """Keyword arguments of `infimum.api.prepare`; those that the file does not give are absent."""
        made = self.made
        found: dict[str, Any] = {"seed": self.seed}
        if made.solver is not None:
            found["solver"] = made.solver
        if made.assign:
            found["assign"] = made.assign
        if made.observers:
            found["observers"] = made.observers
        for name, value in (("oracles", made.oracles), ("stopping", made.stopping)):
            if value is not None:
                found[name] = value
        for path, name in _RUN_KEYS.items():
            node = self.tree.find(path)
            if node is not None:
                found[name] = node.plain
        if start and (point := self.start()) is not None:
            found["x0"] = point
        return found

    def start(self) -> Any:
        """The point that `x0` describes, or None."""
        node = self.tree.child("x0")
        if node is None:
            return None
        try:
            return make_start(
                anchored_plain(node, paths=PATHS),
                self.problem.instance,
                lambda text: import_python(text, FilePath(self.made.start_folder or node.base)),
            )
        except InfimumError as error:
            raise RunFileError([RunFileIssue(("x0",), node.place, str(error))]) from error

    def _placed(self, error: InfimumError) -> RunFileError:
        """An error about how the parts fit, at the key that it is most likely about."""
        message, remedies = (error.reason, error.remedies) if isinstance(error, PlanError) else (str(error), ())
        path = self._culprit(message, plan=isinstance(error, PlanError))
        place = self.tree.place_of(path)
        return RunFileError([RunFileIssue(path, place, message, tuple(line.strip() for line in remedies))])

    def _culprit(self, message: str, *, plan: bool) -> Path:
        """The key that a message is about: by the words that it uses, else the solver."""
        words = re.findall(r"\w+", message)
        solver = self.tree.find(("solver",))
        if solver is not None and isinstance(solver.value, dict) and not plan:
            for word in words[:6]:
                if word in solver.value and word != "use":
                    return ("solver", word)
        for word in words[:1] if plan else words:
            key = _KEY_OF_WORD.get(word, "")
            node = self.tree.child(key)
            if node is not None:
                inside = (one for one in words if isinstance(node.value, dict) and one in node.value)
                return (key, *list(inside)[:1])
        return ("solver",) if solver is not None else ("problem",)

    def _resolved(self, key: str) -> Any:
        made, node = self.made, self.tree.child(key)
        if key == "name":
            return self.name
        if key == "seed":
            return self.seed
        if key in ("problem", "solver"):
            built = made.problem if key == "problem" else made.solver
            if built is None:
                return None
            assign = {"assign": made.assign} if key == "solver" and made.assign else {}
            return {**self._component(built, key), **assign}
        if key == "python_path":
            return list(made.folders) or None
        if key == "oracles":
            return (
                made.oracles
                if not isinstance(made.oracles, Mapping)
                else {name: self._component(built, "oracle") for name, built in made.oracles.items()}
            )
        if key == "constraints":
            return self._constraints() or None
        if key == "observers":
            return [self._component(built, "observer") for built in made.observers] or None
        if key == "stopping":
            return str(made.stopping) if made.stopping is not None else None
        return anchored_plain(node, paths=PATHS if key == "x0" else ("file",)) if node is not None else None

    def _constraints(self) -> Any:
        written = [
            self._component(built, "constraint") | ({"on": block} if block is not None else {})
            for _, built, block in self.made.constraints
        ]
        node = self.tree.child("constraints")
        if node is not None and isinstance(node.value, dict):
            return dict(zip([name for name, _, _ in self.made.constraints], written, strict=True))
        return written

    def _component(self, built: Built, kind: str | None) -> dict[str, Any]:
        """`use` and all options, those that were not given with their defaults."""
        given = {name: self._value(value) for name, value in built.options.items()}
        defaults = {}
        if not built.name.startswith(PREFIX):
            for option in describe_options(self.registry.find(built.name, kind)):
                if not option.required and option.name not in given and is_plain(option.default):
                    defaults[option.name] = plain(option.default)
        return {"use": built.name, **given, **defaults}

    def _value(self, value: Any) -> Any:
        if isinstance(value, Mapping) and isinstance(value.get("use"), str):
            options = {name: one for name, one in value.items() if name != "use"}
            return self._component(Built(None, value["use"], options), None)
        if isinstance(value, Mapping):
            return {name: self._value(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(one) for one in value]
        return plain(value)

    def _origin(self, path: Path) -> str:
        node = self.tree.find(path)
        if node is not None:
            return str(node.place)
        if path == ("name",):
            return "the file's name"
        if path == ("python_path",):
            return "where python: references were found"
        if path == ("seed",):
            return "drawn at random"
        above = self.tree.find(path[:-1])
        if path[-1] == "use" and above is not None and isinstance(above.value, str):
            return str(above.place)
        if above is not None and not isinstance(above.value, dict):
            return str(above.place)
        return "default"


def _states_many(tree: Node) -> list[RunFileIssue]:
    """A file that states many runs is none that states one."""
    many = [name for name in MANY_KEYS if name in tree.value]
    return [
        RunFileIssue((name,), tree.value[name].key or tree.value[name].place, f"'{name}' states many runs: {command}")
        for name in many
        for command in ("infimum compare FILE" if name == "compare" or "compare" in many else "infimum sweep FILE",)
    ]


def leaves(data: Any, path: Path = ()) -> Iterable[tuple[Path, Any]]:
    """Values of resolved data with their paths; a list of scalars is one value."""
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    if not children or (isinstance(data, list) and not any(isinstance(one, dict | list) for one in data)):
        yield path, data
        return
    for step, child in children:
        yield from leaves(child, (*path, step))

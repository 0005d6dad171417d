"""A run file that states many runs, read and checked: all members, and every mistake in any of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infimum.errors import InfimumError
from infimum.plugins.registry import Registry, get_registry
from infimum.run.arguments import as_seed
from infimum.runfile.anchors import in_order
from infimum.runfile.budget import Terms, read_compare
from infimum.runfile.command_line import set_budget, vary_from_text
from infimum.runfile.keys import MANY_KEYS
from infimum.runfile.loader import load_tree
from infimum.runfile.reader import kind_of
from infimum.runfile.tree import Node, Path, Place, RunFileError, RunFileIssue, path_text, plain_tree
from infimum.runfile.vary import Variant, copied, read_sweep, repeated, short

if TYPE_CHECKING:
    from infimum.runfile.model import RunFile

CHECK_SECONDS = 20.0
"""Seconds after which, of members that differ in numbers only, one is put together before the runs and the others
when their turn comes."""


@dataclass(frozen=True, eq=False)
class Stated:
    """One member before it runs.

    Attributes
    ----------
    name, problem, solver : str
        Labels.
    values : dict
        The varied values by place.
    repetition : int
    run_file : RunFile
    refused : str or None
        Why its parts do not fit together, where that is no mistake of the file but an answer (a comparison).
    """

    name: str
    problem: str
    solver: str
    values: dict[str, Any]
    repetition: int
    run_file: RunFile
    refused: str | None = None


@dataclass(frozen=True, eq=False)
class ManyFile:
    """What a file with `sweep`, `repeat` or `compare` states.

    Attributes
    ----------
    path, name, output : str
    members : tuple of Stated
    varied : tuple of str
    seed : int
    seeded : bool
        Whether the seed was given rather than drawn.
    terms : Terms or None
        Of a comparison.
    """

    path: str
    name: str
    output: str
    members: tuple[Stated, ...]
    varied: tuple[str, ...]
    seed: int
    seeded: bool
    terms: Terms | None = None


@dataclass
class ManyReader:
    """Reads the tree of a run file that states many runs.

    Parameters
    ----------
    path : str
        For messages.
    tree : Node
    issues : list of RunFileIssue
        Mistakes found so far.
    compares : bool
        Whether a comparison is wanted, else a sweep.
    repeat : int, optional
        In place of the file's.
    allow_python : bool, default True
    registry : Registry, optional
    """

    path: str
    tree: Node
    issues: list[RunFileIssue]
    compares: bool = False
    repeat: int | None = None
    allow_python: bool = True
    registry: Registry = field(default_factory=get_registry)
    terms: Terms | None = None

    def read(self) -> ManyFile:
        """All members.

        Raises
        ------
        RunFileError
            With every mistake in the file and in any member.
        """
        given = {name: self.tree.value.pop(name, None) for name in MANY_KEYS}
        variants = self._variants(given)
        seed = self.tree.child("seed")
        if seed is None:
            drawn = Node(as_seed(None), self.tree.place, self.tree.place, self.tree.base)
            self.tree.value["seed"] = drawn
        base = copied(self.tree)
        members = self._members(base, variants)
        if self.issues:
            raise RunFileError(in_order(self.issues, self.path))
        first = members[0].run_file
        return ManyFile(
            self.path,
            first.name,
            first.output,
            tuple(members),
            tuple(dict.fromkeys(path_text(one.path) for variant in variants for one in variant.choices)),
            first.seed,
            seed is not None,
            self.terms,
        )

    def fail(self, node: Node, path: Path, message: str) -> None:
        """Note a mistake at a node."""
        at_key = " has no option " in message or "is no place" in message or "does not vary" in message
        self.issues.append(RunFileIssue(path, node.key if at_key and node.key is not None else node.place, message))

    def _variants(self, given: Mapping[str, Node | None]) -> list[Variant]:
        sweep, compare, times = given["sweep"], given["compare"], given["repeat"]
        variants = [Variant()]
        if self.compares:
            if sweep is not None:
                self.fail(sweep, ("sweep",), "a comparison takes no sweep; list the problems under compare: problems")
            if compare is None:
                message = "there is no 'compare'; say what to compare: compare: {solvers: [...], budget: {...}}"
                self.issues.append(RunFileIssue((), self.tree.place, message))
            else:
                variants, self.terms = read_compare(compare, self.fail)
        elif compare is not None:
            self.fail(compare, ("compare",), "this file states a comparison: infimum compare FILE")
        elif sweep is not None:
            variants = read_sweep(sweep, self.fail)
        elif times is None and self.repeat is None:
            message = "there is no 'sweep' and no 'repeat'; say what varies: sweep: {product: {solver.step: [0.1, 1]}}"
            self.issues.append(RunFileIssue((), self.tree.place, message))
        return repeated(variants or [Variant()], self._times(times))

    def _times(self, node: Node | None) -> int:
        if self.repeat is not None:
            return self.repeat
        if node is None:
            return 1
        if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < 1:
            self.fail(node, ("repeat",), f"repeat: expected a whole number >= 1, got {kind_of(node.plain)}")
            return 1
        return node.value

    def _members(self, base: Node, variants: Sequence[Variant]) -> list[Stated]:
        names = member_names(variants)
        memo: dict[Any, Any] = {}
        check = _Fit(self.terms)
        members = []
        kept: dict[int, RunFile | None] = {}
        for variant, name in zip(variants, names, strict=True):
            # Repetitions share everything but their number.
            shared = id(variant.choices)
            if shared not in kept:
                kept[shared] = self._run_file(base, variant, memo)
            run_file = kept[shared]
            if run_file is None:
                continue
            refused = check.refusal(run_file, shared, self.issues)
            problem, solver = _labels(variant, run_file)
            members.append(Stated(name, problem, solver, variant.values, variant.repetition, run_file, refused))
        if members and all(one.refused for one in members):
            for one in members:
                self.issues.append(RunFileIssue(("solver",), self.tree.place, f"{one.name}: {one.refused}"))
        return members

    def _run_file(self, base: Node, variant: Variant, memo: dict[Any, Any]) -> RunFile | None:
        from infimum.runfile.assemble import Assembler
        from infimum.runfile.model import RunFile

        issues: list[RunFileIssue] = []
        tree = variant.apply(base, issues)
        tree.value = {name: node for name, node in tree.value.items() if node.value is not None}
        if self.terms is not None and "value_every" not in tree.value:
            # The targets are looked for in the trace; evaluations for the record are in no budget.
            tree.value["value_every"] = plain_tree(1, self.tree.place)
        made = Assembler(
            tree,
            issues,
            folder=os.path.dirname(self.path),
            allow_python=self.allow_python,
            registry=self.registry,
            memo=memo,
        ).run()
        self.issues += issues
        if issues:
            return None
        if self.terms is not None:
            rule = self.terms.rule()
            made.stopping = rule if made.stopping is None else made.stopping | rule
        return RunFile(self.path, tree, made, self.registry)


class _Fit:
    """Puts members together before the first run, to find what does not fit."""

    def __init__(self, terms: Terms | None) -> None:
        self.terms = terms
        self.began = time.monotonic()
        self.known: dict[Any, str | None] = {}

    def refusal(self, run_file: RunFile, shared: int, issues: list[RunFileIssue]) -> str | None:
        """Why the parts do not fit: None for a sweep, where it is a mistake of the file."""
        if shared in self.known:
            return self.known[shared]
        key = shared
        if time.monotonic() - self.began > CHECK_SECONDS:
            key = _shape(run_file.tree.plain)
            if key in self.known:
                return self.known[key]
        found = None
        try:
            self._fits(run_file)
        except RunFileError as error:
            found = error.issues[0].message if self.terms is not None else None
            if self.terms is None:
                issues += error.issues
        except InfimumError as error:
            found = str(error)
            if self.terms is None:
                issues.append(RunFileIssue((), run_file.tree.place, found))
        self.known[shared] = self.known[key] = found
        return found

    def _fits(self, run_file: RunFile) -> None:
        run = run_file.prepare()
        budget = self.terms.budget if self.terms is not None else "iterations"
        if budget not in ("iterations", "seconds") and budget not in run.monitor.counted:
            has = ", ".join(run.monitor.counted) or "nothing that is counted"
            raise InfimumError(
                f"the budget counts evaluations of {budget}, and {run.plan.solver_name} makes none here; it uses {has}"
            )


def _shape(value: Any) -> Any:
    """Plain data without the numbers in it."""
    if isinstance(value, dict):
        return tuple((name, _shape(one)) for name, one in value.items())
    if isinstance(value, list):
        return ("list", *(_shape(one) for one in value)) if len(value) < 20 else "list"
    return type(value).__name__ if isinstance(value, int | float) and not isinstance(value, bool) else value


def _labels(variant: Variant, run_file: RunFile) -> tuple[str, str]:
    """Labels of the problem and of the method: names, with what varies of each."""
    problem = run_file.problem.name
    solver = run_file.solver.name if run_file.solver is not None else "default"
    own = {path_text(one.path): one.label for one in variant.choices}
    inside = {name: label for name, label in own.items() if name.partition(".")[0] in ("problem", "constraints", "x0")}
    beside = {name: label for name, label in own.items() if name not in inside and name != "seed"}
    return (
        variant.parts.get("problem") or _labelled(short(problem), "problem", inside),
        variant.parts.get("solver") or _labelled(short(solver), "solver", beside),
    )


def _labelled(name: str, key: str, more: Mapping[str, str]) -> str:
    """A name with the values that vary: `lasso(penalty=0.1)`."""
    name = more.get(key, name)
    options = [f"{path.removeprefix(f'{key}.')}={label}" for path, label in more.items() if path != key]
    return f"{name}({', '.join(options)})" if options else name


def member_names(variants: Sequence[Variant]) -> list[str]:
    """Unique short labels: what differs, then `#k` for repetitions."""
    paths = list(dict.fromkeys(path_text(one.path) for variant in variants for one in variant.choices))
    tails = [path.rpartition(".")[2] for path in paths]
    spelled = {path: tail if tails.count(tail) == 1 else path for path, tail in zip(paths, tails, strict=True)}
    several = any(variant.repetition for variant in variants)
    names = []
    for variant in variants:
        said = " / ".join(label for label in variant.parts.values() if label) or ", ".join(
            one.label if path_text(one.path) in ("solver", "problem") else f"{spelled[path_text(one.path)]}={one.label}"
            for one in variant.choices
        )
        name = f"{said} #{variant.repetition}" if several and said else f"#{variant.repetition}" if several else said
        names.append(name or "run")
    counted: dict[str, int] = {}
    for k, name in enumerate(names):
        counted[name] = counted.get(name, 0) + 1
        if counted[name] > 1:
            names[k] = f"{name} ({counted[name]})"
    return names


def load_many_file(path: str | os.PathLike[str], overrides: Iterable[str] = (), **options: Any) -> ManyFile:
    """Read a run file that states many runs; parameters are those of `many_reader`.

    Raises
    ------
    RunFileError
        With every mistake in the file and in any member.
    """
    return many_reader(path, overrides, **options).read()


def many_reader(
    path: str | os.PathLike[str],
    overrides: Iterable[str] = (),
    *,
    compares: bool = False,
    sweep: Iterable[str] = (),
    budget: str | None = None,
    repeat: int | None = None,
    more: Mapping[str, Any] | None = None,
    allow_python: bool = True,
    registry: Registry | None = None,
) -> ManyReader:
    """The tree of a run file that states many runs, ready to be read.

    Parameters
    ----------
    path : str or path
    overrides : iterable of str
        `key=value` on top of the file.
    compares : bool, default False
        Whether a comparison is wanted, else a sweep.
    sweep : iterable of str
        `place=value,value,…` beside what the file varies; the same place in the file gives way.
    budget : str, optional
        `name=amount` in place of the file's.
    repeat : int, optional
        In place of the file's.
    more : mapping, optional
        `sweep`, `repeat` or `compare` as plain data, in place of the file's.
    allow_python : bool, default True
    registry : Registry, optional

    Raises
    ------
    RunFileError
        If the file cannot be read.
    """
    tree, issues = load_tree(path, overrides)
    for name, value in (more or {}).items():
        tree.value[name] = plain_tree(value, Place(f"<{name}=…>"), os.getcwd())
    for number, text in enumerate(sweep, start=1):
        vary_from_text(tree, text, number, issues)
    if budget is not None:
        set_budget(tree, budget, issues)
    return ManyReader(os.fspath(path), tree, issues, compares, repeat, allow_python, registry or get_registry())

"""From what a user states, in a file or in Python, to the members to run."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from infimum.checkpoint import write_whole
from infimum.errors import InfimumError, InputError, PlanError, did_you_mean
from infimum.many.planned import Agenda, Planned
from infimum.many.references import reference_members
from infimum.many.sources import digest, facts
from infimum.run.arguments import as_seed
from infimum.runfile.anchors import PATHS, anchored_plain
from infimum.runfile.budget import Terms, read_compare
from infimum.runfile.dump import is_plain, plain
from infimum.runfile.keys import MANY_KEYS, TOP_KEYS
from infimum.runfile.many import ManyFile, ManyReader, many_reader, member_names
from infimum.runfile.tree import Node, Place, RunFileError, RunFileIssue, path_text, plain_tree
from infimum.runfile.tree import Path as ValuePath
from infimum.runfile.vary import Variant, longer, read_sweep, repeated, short

_IRRELEVANT = ("name", "output")
_PLACES = {"record": ("trace", "metrics"), "max_rows": ("trace", "max_rows"), "assign": ("solver", "assign")}
"""Options of `infimum.solve` that a run file calls otherwise."""


def from_file(stated: ManyFile) -> Agenda:
    """The members of a run file, with the resolved form of each."""
    configs: dict[int, dict[str, Any]] = {}
    members = []
    for one in stated.members:
        shared = id(one.run_file)
        if shared not in configs:
            configs[shared] = one.run_file.resolved()
        config = configs[shared]
        member = Planned("", one.name, one.problem, one.solver, one.values, one.repetition, config, None, one.refused)
        members.append(_identified(member))
    terms = _with_labels(stated.terms, members)
    common = (stated.varied, stated.seed, stated.seeded, terms, stated.output)
    references = _unique([_identified(one) for one in reference_members(terms, members, stated.path)])
    return Agenda(stated.name, stated.path, tuple(_unique(members)), *common, tuple(references))


def _identified(one: Planned) -> Planned:
    """A member with what it is among many: the same for the same statement."""
    if one.config:
        relevant = {name: value for name, value in one.config.items() if name not in _IRRELEVANT}
        return replace(one, id=digest([relevant, one.repetition])[:12])
    assert one.stated is not None
    return replace(one, id=digest([one.name, one.values, one.repetition, one.stated["seed"]])[:12])


def _unique(members: Sequence[Planned]) -> list[Planned]:
    """Members that state the same get ids of their own."""
    counted: dict[str, int] = {}
    found = []
    for one in members:
        counted[one.id] = counted.get(one.id, 0) + 1
        found.append(one if counted[one.id] == 1 else replace(one, id=f"{one.id}-{counted[one.id]}"))
    return found


def _with_labels(terms: Terms | None, members: Sequence[Planned]) -> Terms | None:
    """References by problem label.

    Raises
    ------
    InputError
        For a label that no problem has.
    """
    if terms is None or not terms.references:
        return terms
    labels = list(dict.fromkeys(one.problem for one in members))
    if set(terms.references) == {""}:
        return replace(terms, references=dict.fromkeys(labels, terms.references[""]))
    for name in terms.references:
        if name not in labels:
            raise InputError(f"references: no problem is called '{name}'; {did_you_mean(name, labels)}")
    return terms


def plan_many(
    source: Any,
    options: Mapping[str, Any],
    *,
    compares: bool,
    many: Mapping[str, Any],
    overrides: Sequence[str] = (),
    allow_python: bool = True,
    memo: Memo | None = None,
) -> Agenda:
    """The members that a user states.

    Parameters
    ----------
    source : path, mapping or object
        A run file, one as data (with the key `problem`), or a problem in any form that `solve` takes.
    options : mapping
        Of `infimum.solve`, beside a problem.
    compares : bool
        Whether a comparison is wanted.
    many : mapping
        `sweep`, `repeat` and `compare` as a run file has them; None for those that were not given.
    overrides : sequence of str
        `key=value` on top of a file.
    allow_python : bool, default True
    memo : Memo, optional
    """
    given = {name: value for name, value in many.items() if value is not None}
    _check_names(options, compares)
    if is_file(source):
        if options:
            listed = ", ".join(options)
            raise InputError(f"{listed}: a run file states these itself; give overrides=['solver.step=0.1', …]")
        return from_path(source, overrides, memo=memo, compares=compares, more=plain(given), allow_python=allow_python)
    name = "comparison" if compares else "sweep"
    stated = dict(source) if isinstance(source, Mapping) and "problem" in source else {"problem": source, **options}
    if source is None:
        stated.pop("problem")
    stated |= given
    place = Place(f"<infimum.{'compare' if compares else 'sweep'}>")
    if _is_statement(stated):
        tree = plain_tree(plain(_as_run_file(stated)), place, os.getcwd())
        tree.value.setdefault("name", plain_tree(name, place))
        reader = ManyReader(place.source, tree, [], compares, allow_python=allow_python)
        return from_file(reader.read())
    return _from_objects(stated, place, compares, name)


def _check_names(options: Mapping[str, Any], compares: bool) -> None:
    """Refuse options that neither `solve` nor a run file has; those of `sweep` and `compare` may be meant."""
    unknown = [name for name in options if name not in TOP_KEYS and name not in _PLACES]
    if not unknown:
        return
    from infimum import api
    from infimum.many import comparing, sweeping

    command = comparing.compare if compares else sweeping.sweep
    own = [one.name for one in inspect.signature(command).parameters.values() if one.kind is one.KEYWORD_ONLY]
    known = [*api.option_names(), "folder", "checkpoint"]
    for name in unknown:
        if name not in known:
            raise InputError(f"{command.__name__} has no option '{name}'; {did_you_mean(name, [*known, *own])}")


def is_file(source: Any) -> bool:
    """Whether a source is the path of a run file."""
    if isinstance(source, Path):
        return True
    return isinstance(source, str) and (source.endswith((".yaml", ".yml")) or os.path.isfile(source))


def from_path(source: Any, overrides: Sequence[str] = (), *, memo: Memo | None = None, **options: Any) -> Agenda:
    """The members of a run file; options are those of `many_reader`.

    With a memo, a file that was found in order before, and of which nothing has changed, is not put together again.
    """
    reader = many_reader(source, overrides, **options)
    if memo is None or reader.issues or reader.tree.child("seed") is None:
        return from_file(reader.read())
    stamp = memo.stamp(reader)
    known = memo.recall(stamp)
    if known is not None:
        return known
    agenda = from_file(reader.read())
    memo.keep(stamp, agenda)
    return agenda


class Memo:
    """Agendas of run files that were found in order, by the content of everything that they name.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stamp(self, reader: ManyReader) -> str:
        """A hash of the file's words and of all code and data that could matter to them."""
        leaves = [(path_text(path), node.plain, node.base) for path, node in reader.tree.leaves()]
        bases = dict.fromkeys([os.path.dirname(os.path.abspath(reader.path)), *(base for _, _, base in leaves if base)])
        data = anchored_plain(reader.tree, paths=PATHS)
        folders = [*data.get("python_path", ()), *bases] if isinstance(data.get("python_path", []), list) else []
        found = facts({"stated": data, "python_path": [os.path.abspath(one) for one in folders]})
        asked = [reader.path, os.getcwd(), reader.compares, reader.repeat, reader.allow_python]
        return digest([asked, leaves, found])[:40]

    def recall(self, stamp: str) -> Agenda | None:
        """The agenda, if it is there."""
        try:
            found = json.loads((self.folder / f"{stamp}.json").read_text(encoding="utf-8"))
            members = tuple(Planned(**one) for one in found.pop("members"))
            references = tuple(Planned(**one) for one in found.pop("references"))
            terms = found.pop("terms")
            if terms is not None:
                terms = Terms(**{**terms, "targets": tuple(terms["targets"])})
            found |= {name: tuple(found[name]) for name in ("varied", "notes")}
            return Agenda(**found, members=members, references=references, terms=terms)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, stamp: str, agenda: Agenda) -> None:
        """Write it down, where that is possible."""
        with contextlib.suppress(OSError, TypeError, ValueError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / f"{stamp}.json", json.dumps(asdict(agenda)))


def _is_statement(stated: Mapping[str, Any]) -> bool:
    """Whether everything can stand in a run file."""
    return is_plain(stated) and all(name in TOP_KEYS or name in _PLACES for name in stated) and not _arrays(stated)


def _arrays(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_arrays, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_arrays, value))
    return hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0


def _as_run_file(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `solve` as keys of a run file."""
    data = {name: value for name, value in stated.items() if name not in _PLACES and value is not None}
    for name, (key, inner) in _PLACES.items():
        if stated.get(name) is not None:
            held = data.get(key, {})
            data[key] = {**({"use": held} if isinstance(held, str) else held), inner: stated[name]}
    return data


def _from_objects(stated: Mapping[str, Any], place: Place, compares: bool, name: str) -> Agenda:
    """Members that no file could state: their arguments go to `solve` as they are."""
    issues: list[RunFileIssue] = []

    def fail(node: Node, path: ValuePath, message: str) -> None:
        issues.append(RunFileIssue(path, place, message))

    given = {key: plain_tree(stated[key], place) for key in MANY_KEYS if key in stated}
    base = plain_tree({key: value for key, value in stated.items() if key not in MANY_KEYS}, place)
    terms = None
    if compares:
        variants, terms = read_compare(given["compare"], fail)
    else:
        variants = read_sweep(given["sweep"], fail) if "sweep" in given else [Variant()]
    variants = repeated(variants, given["repeat"].value if "repeat" in given else 1)
    seeded = stated.get("seed") is not None
    seed = as_seed(stated.get("seed"))
    members = _object_members(base, variants, seed, terms, issues)
    if issues:
        raise RunFileError(issues)
    varied = tuple(dict.fromkeys(path_text(one.path) for variant in variants for one in variant.choices))
    terms = _with_labels(terms, members)
    references = _unique([_identified(one) for one in reference_members(terms, members, place.source)])
    return Agenda(
        name, place.source, tuple(_unique(members)), varied, seed, seeded, terms, references=tuple(references)
    )


def _object_members(
    base: Node, variants: Sequence[Variant], seed: int, terms: Terms | None, issues: list[RunFileIssue]
) -> list[Planned]:
    from infimum.inputs import as_rule

    members: list[Planned] = []
    refusals: dict[int, str | None] = {}
    for variant, name in zip(variants, member_names(variants), strict=True):
        arguments = {key: node.plain for key, node in variant.apply(base, issues).value.items()}
        arguments["seed"] = arguments.get("seed") if arguments.get("seed") is not None else seed
        if terms is not None:
            rule = as_rule(arguments.get("stopping"))
            arguments["stopping"] = terms.rule() if rule is None else rule | terms.rule()
            arguments.setdefault("value_every", 1)
        shared = id(variant.choices)
        if shared not in refusals and not issues:
            refusals[shared] = _refusal(arguments, terms)
        refused = refusals.get(shared)
        values = {place: _shown(value) for place, value in variant.values.items()}
        problem = variant.parts.get("problem") or short(_shown(arguments.get("problem")))
        solver = variant.parts.get("solver") or longer(_shown(arguments.get("solver", "default")))
        member = Planned("", name, problem, solver, values, variant.repetition, {}, arguments, refused)
        members.append(_identified(member))
    lost = [one for one in members if one.refused]
    if lost and (terms is None or len(lost) == len(members)):
        raise InputError("\n".join(dict.fromkeys(f"{one.name}: {one.refused}" for one in lost)))
    return members


def _refusal(arguments: Mapping[str, Any], terms: Terms | None) -> str | None:
    """Why a member cannot start."""
    from infimum.api import prepare

    try:
        run = prepare(**{name: value for name, value in arguments.items() if name != "observers"})
    except InfimumError as error:
        return error.reason if isinstance(error, PlanError) and terms is not None else str(error)
    if terms is not None and terms.budget not in ("iterations", "seconds", *run.monitor.counted):
        has = ", ".join(run.monitor.counted) or "nothing that is counted"
        return f"the budget counts evaluations of {terms.budget}, and this method makes none; it uses {has}"
    return None


def _shown(value: Any) -> Any:
    """A value as plain data; an object by its name."""
    if is_plain(value) and not hasattr(value, "tolist"):
        return plain(value)
    return longer(value) if not hasattr(value, "tolist") else f"array of {getattr(value, 'shape', ())}"

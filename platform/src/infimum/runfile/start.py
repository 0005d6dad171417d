"""`x0` of a run file: its forms, checked when the file is read and turned into a point when the run is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np

from infimum.errors import InputError, did_you_mean
from infimum.plugins.python_target import PREFIX
from infimum.problem import START_WORDS
from infimum.result import Result
from infimum.runfile.anchors import anchored
from infimum.runfile.reader import kind_of
from infimum.runfile.tree import Node, Path

FORMS = "expected zeros, random, a list of numbers, {file: x.npz, key: x}, {run: FOLDER} or python:module:attribute"
_SUFFIXES = (".npz", ".npy")
Fail = Callable[[Path, str], None]


def check_start(node: Node, fail: Fail) -> None:
    """Say what is wrong with the form of `x0`."""
    value = node.plain
    if isinstance(value, str):
        if value not in START_WORDS and not value.startswith(PREFIX):
            near = did_you_mean(value, START_WORDS) if not value.endswith(_SUFFIXES) else f"write {{file: {value}}}"
            fail((), f"x0: no start is called '{value}'; {near} ({FORMS})")
    elif isinstance(value, list):
        _check_numbers(node, (), fail)
    elif isinstance(value, dict):
        _check_run(node, fail) if "run" in value else _check_file(node, fail)
    else:
        fail((), f"x0: {FORMS}, got {kind_of(value)}")


def _check_numbers(node: Node, path: Path, fail: Fail) -> None:
    lengths = set()
    for index, child in enumerate(node.value):
        if isinstance(child.value, list):
            lengths.add(len(child.value))
            _check_numbers(child, (*path, index), fail)
        else:
            lengths.add(-1)
            if isinstance(child.value, bool) or not isinstance(child.value, int | float):
                fail((*path, index), f"x0: expected a number, got {kind_of(child.value)}")
    if len(lengths) > 1:
        fail(path, "x0: the rows differ in length")
    if not lengths:
        fail(path, "x0: the list is empty")


def _check_file(node: Node, fail: Fail) -> None:
    for key in node.value:
        if key not in ("file", "key"):
            fail((key,), f"x0 has no option '{key}'; {did_you_mean(key, ('file', 'key'))}")
    file, key = node.value.get("file"), node.value.get("key")
    if file is None:
        fail((), f"x0: 'file' is missing; {FORMS}")
    elif not isinstance(file.value, str) or not file.value.endswith(_SUFFIXES):
        fail(("file",), f"x0: expected the path of an .npz or .npy file, got {kind_of(file.value)}")
    elif not os.path.isfile(anchored(file.value, file.base)):
        fail(("file",), f"x0: there is no file {anchored(file.value, file.base)}")
    if key is not None and not isinstance(key.value, str):
        fail(("key",), f"x0: expected the name of an array in the file, got {kind_of(key.value)}")


def _check_run(node: Node, fail: Fail) -> None:
    for key in node.value:
        if key != "run":
            fail((key,), f"x0 has no option '{key}' beside 'run'; a saved result starts at its best point")
    run = node.value["run"]
    if not isinstance(run.value, str) or not run.value:
        fail(("run",), f"x0: expected the folder of a saved result, got {kind_of(run.value)}")
    elif not os.path.isfile(os.path.join(anchored(run.value, run.base), "result.json")):
        fail(("run",), f"x0: there is no result.json in {anchored(run.value, run.base)}")


def make_start(spec: Any, problem: Any, load_python: Callable[[str], Any]) -> Any:
    """The start that `spec` describes, for `infimum.api.prepare`; None leaves it to the problem.

    Raises
    ------
    InputError
        Where the file holds no such array, or the folder no result.
    """
    if spec is None:
        return None
    if isinstance(spec, str) and spec.startswith(PREFIX):
        target = load_python(spec)
        return _called(spec, target, problem) if callable(target) else target
    if isinstance(spec, str):
        return spec
    if isinstance(spec, Mapping) and "run" in spec:
        return Result.load(spec["run"])
    if isinstance(spec, Mapping):
        return _from_file(spec["file"], spec.get("key"))
    return np.asarray(spec, dtype=float)


def _called(spec: str, target: Callable[[Any], Any], problem: Any) -> Any:
    try:
        signature(target).bind(problem)
    except TypeError as error:
        raise InputError(f"x0: '{spec}' is called with the problem, start(problem), but: {error}") from None
    except ValueError:  # some built-in callables do not tell their signature
        pass
    return target(problem)


def _from_file(path: str, key: str | None) -> Any:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"x0: {path} cannot be read: {error}") from None
    if not hasattr(found, "files"):
        if key is not None:
            raise InputError(f"x0: {path} holds one array without a name; leave out key: {key}")
        return found
    with found:
        names = list(found.files)
        if key is None and len(names) == 1:
            key = names[0]
        if key is None and "x" in names:
            key = "x"
        if key is None:
            raise InputError(f"x0: {path} holds {', '.join(names) or 'nothing'}; choose one with key:")
        if key not in names:
            raise InputError(f"x0: {path} holds no '{key}'; {did_you_mean(key, names)}")
        return found[key]

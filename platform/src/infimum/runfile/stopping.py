"""`stopping` of a run file: text or mapping form, with mistakes placed inside the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infimum.errors import InputError
from infimum.runfile.tree import Node, Path
from infimum.stopping.base import StoppingRule
from infimum.stopping.grammar import GrammarError, Resolve, parse
from infimum.stopping.mapping import MappingError, from_mapping

Fail = Callable[[Path, str, int | None], None]


def read_stopping(node: Node, resolve: Resolve, fail: Fail) -> StoppingRule | None:
    """The rule, or None: where it is empty, and with every mistake said through `fail(path, message, offset or None)`.

    An offset is the position of the mistake in a text.
    """
    if node.value in ([], {}) or (isinstance(node.value, str) and not node.value.strip()):
        return None
    texts: dict[int, StoppingRule | None] = {}
    form = _with_rules(node, (), resolve, fail, texts)
    if None in texts.values():
        _leaves_alone(form, resolve, fail)
        return None
    if isinstance(form, StoppingRule):
        return form
    try:
        return from_mapping(form, resolve)
    except MappingError as error:
        for path, message in error.issues:
            fail(path, message, None)
    except InputError as error:
        fail((), str(error), None)
    return None


class _Broken(StoppingRule):
    """Stands where a text had mistakes, so that the rest of the tree can still be checked."""

    def __str__(self) -> str:
        return "a rule with mistakes"


def _with_rules(node: Node, path: Path, resolve: Resolve, fail: Fail, texts: dict[int, StoppingRule | None]) -> Any:
    """The mapping form with every text that is a rule parsed, so that its mistakes have their column."""
    if isinstance(node.value, str):
        rule = _parsed(node.value, path, resolve, fail)
        texts[id(node)] = rule
        return _Broken() if rule is None else rule
    if isinstance(node.value, list):
        return [_with_rules(child, (*path, index), resolve, fail, texts) for index, child in enumerate(node.value)]
    if isinstance(node.value, dict):
        return {
            name: _with_rules(child, (*path, name), resolve, fail, texts)
            if name in ("any", "all", "not")
            else child.plain
            for name, child in node.value.items()
        }
    return node.value


def _parsed(text: str, path: Path, resolve: Resolve, fail: Fail) -> StoppingRule | None:
    try:
        return parse(text, resolve)
    except GrammarError as error:
        for column, message in error.issues:
            fail(path, f"stopping: {message}", column)
        return None


def _leaves_alone(form: Any, resolve: Resolve, fail: Fail) -> None:
    """Mistakes of the mapping around a text that has mistakes itself."""
    if isinstance(form, _Broken):
        return
    try:
        from_mapping(form, resolve)
    except MappingError as error:
        for path, message in error.issues:
            fail(path, message, None)

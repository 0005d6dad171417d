"""YAML text to a tree with places: YAML 1.2 scalars, no duplicate keys, no tags, no merge keys, bounded aliases."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import yaml

from infimum.runfile.tree import Node, Path, Place, RunFileError, RunFileIssue

MAX_VALUES = 200_000
"""More values than this (aliases followed) are refused: large data belongs into a file of its own."""
MAX_DEPTH = 60
_TAG = "tag:yaml.org,2002:"
_IMPLICIT: tuple[tuple[str, str], ...] = (
    ("null", r"~|null|Null|NULL|"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    ),
)


class CoreLoader(yaml.SafeLoader):
    """PyYAML's scanner, parser and composer with the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012  PyYAML's own attribute


for _name, _pattern in _IMPLICIT:
    CoreLoader.add_implicit_resolver(_TAG + _name, re.compile(rf"^(?:{_pattern})$"), None)


def read_file(path: str | os.PathLike[str], issues: list[RunFileIssue] | None = None) -> Node:
    """Read a run file.

    Parameters
    ----------
    path : str or path
        A UTF-8 file.
    issues : list of RunFileIssue, optional
        Mistakes that leave a tree to go on with (a key given twice) are added here; without it they are raised.

    Returns
    -------
    Node
        A mapping.

    Raises
    ------
    RunFileError
        When the file cannot be read, is no YAML, or is no mapping.
    """
    shown = os.fspath(path)
    where = Place(shown)
    try:
        raw = FilePath(path).read_bytes()
    except FileNotFoundError:
        raise RunFileError([RunFileIssue((), where, "there is no such file")]) from None
    except IsADirectoryError:
        raise RunFileError([RunFileIssue((), where, "this is a folder, a run file was expected")]) from None
    except OSError as error:
        reason = error.strerror or error
        raise RunFileError([RunFileIssue((), where, f"cannot be read: {reason}")]) from None
    text = _decode(raw, where)
    return read_text(text, shown, base=os.path.dirname(os.path.abspath(path)), issues=issues)


def _decode(raw: bytes, where: Place) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = error.start - (before.rfind(b"\n") + 1) + 1
        place = Place(where.source, before.count(b"\n") + 1, column)
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise RunFileError([RunFileIssue((), place, message)]) from None


def read_text(text: str, source: str, *, base: str = "", issues: list[RunFileIssue] | None = None) -> Node:
    """Read the text of a run file; `source` is the name that messages show. See `read_file`."""
    root = _compose(text, source)
    if root is None:
        message = "the file is empty; a run file needs at least a line 'problem: ...'"
        raise RunFileError([RunFileIssue((), Place(source, 1, 1), message)])
    build = _Builder(text, source, base)
    node = build.node(root, (), frozenset())
    whole = isinstance(node.value, dict)
    if not build.issues and not whole:
        message = f"a mapping such as 'problem: ...' was expected, got {kind_of(node.value)}"
        build.issues.append(RunFileIssue((), node.place, message))
    if build.issues and (issues is None or not whole):
        raise RunFileError(build.issues)
    if issues is not None:
        issues += build.issues
    return node


def read_value(text: str, where: Place, *, base: str = "") -> Node:
    """Read the value of a command line override: a scalar by the same rules, `[…]` or `{…}`, else the text itself."""
    try:
        root = _compose(text, where.source)
    except RunFileError as error:
        if text.lstrip()[:1] in "[{\"'":
            raise RunFileError([RunFileIssue((), where, one.message) for one in error.issues]) from None
        return Node(text.strip(), where, where, base)
    if root is None:
        return Node(None, where, where, base)
    if isinstance(root, yaml.CollectionNode) and not root.flow_style:
        return Node(text.strip(), where, where, base)
    build = _Builder(text, where.source, base, only=where)
    node = build.node(root, (), frozenset())
    node.key = where
    if build.issues:
        raise RunFileError(build.issues)
    return node


def kind_of(value: Any) -> str:
    """A word for the type of a plain value, with the value where it is short."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    shown = repr(value)
    return f"{type(value).__name__} {shown if len(shown) <= 60 else shown[:57] + '...'}"


def _compose(text: str, source: str) -> yaml.Node | None:
    try:
        loader = CoreLoader(text)
        try:
            root: yaml.Node | None = loader.get_single_node()
            return root
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(source, before.count("\n") + 1, error.position - before.rfind("\n"))
        code = error.character if isinstance(error.character, int) else ord(error.character)
        message = f"character U+{code:04X} may not stand in YAML"
        raise RunFileError([RunFileIssue((), place, message)]) from None
    except yaml.MarkedYAMLError as error:
        raise RunFileError([_syntax(error, source)]) from None
    except RecursionError:
        message = f"the values are nested too deeply (more than {MAX_DEPTH} levels)"
        raise RunFileError([RunFileIssue((), Place(source, 1, 1), message)]) from None


_WORDS = (
    ("'\\t' that cannot start any token", "a tab may not be used to indent; use spaces"),
    ("but found another document", "a run file is one YAML document; remove everything from this '---' on"),
    (
        "mapping values are not allowed",
        "a ':' followed by a space is not expected here; check the indentation of "
        "this line and put text with ': ' in quotes",
    ),
    ("could not find expected ':'", "a ':' is missing after the key above; write 'key: value'"),
    ("found undefined alias", "there is no anchor for this alias; text that begins with '*' needs quotes"),
    ("unexpected end of stream", "the quote is not closed"),
    ("got '<stream end>'", "a '[' or '{' is not closed"),
    ("expected <block end>, but found '-'", "a list item is not expected here; check the indentation of this line"),
)


def _syntax(error: yaml.MarkedYAMLError, source: str) -> RunFileIssue:
    mark = error.problem_mark or error.context_mark
    place = Place(source, mark.line + 1, mark.column + 1) if mark is not None else Place(source, 1, 1)
    problem = error.problem or "cannot be read"
    for sign, words in _WORDS:
        if sign in problem or sign in problem.replace('"', "'"):
            opened = error.context_mark
            if opened is not None and opened is not mark and ("closed" in words):
                words = f"{words} (it opens at line {opened.line + 1}, column {opened.column + 1})"
            return RunFileIssue((), place, f"this is not YAML: {words}")
    if "cannot start any token" in problem:
        return RunFileIssue((), place, f"this is not YAML: {problem.partition(' that')[0]}; such text needs quotes")
    context = f" ({error.context})" if error.context else ""
    return RunFileIssue((), place, f"this is not YAML: {problem}{context}")


class _Builder:
    """Composed nodes to `Node`s, collecting mistakes."""

    def __init__(self, text: str, source: str, base: str, only: Place | None = None) -> None:
        self.text, self.source, self.base, self.only = text, source, base, only
        self.issues: list[RunFileIssue] = []
        self.count = 0

    def place(self, mark: Any) -> Place:
        return self.only or Place(self.source, mark.line + 1, mark.column + 1)

    def fail(self, path: Path, place: Place, message: str) -> None:
        self.issues.append(RunFileIssue(path, place, message))

    def node(self, raw: yaml.Node, path: Path, above: frozenset[int]) -> Node:
        self.count += 1
        place = self.place(raw.start_mark)
        if self.count > MAX_VALUES:
            if self.count == MAX_VALUES + 1:
                message = f"more than {MAX_VALUES} values (aliases followed); put data in a file of its own"
                self.fail(path, place, message)
            return Node(None, place, None, self.base)
        if id(raw) in above:
            self.fail(path, place, "an alias stands inside the value that it repeats")
            return Node(None, place, None, self.base)
        if len(path) > MAX_DEPTH:
            self.fail(path, place, f"the values are nested too deeply (more than {MAX_DEPTH} levels)")
            return Node(None, place, None, self.base)
        if isinstance(raw, yaml.MappingNode):
            self.tagged(raw, "map", path)
            value: Any = self.mapping(raw, path, above | {id(raw)})
        elif isinstance(raw, yaml.SequenceNode):
            self.tagged(raw, "seq", path)
            value = self.sequence(raw, path, above | {id(raw)})
        else:
            value = self.scalar(raw, path)
            if isinstance(value, str) and self.only is None:
                return Node(value, place, None, self.base, tuple(_positions(self.text, raw, value)))
        return Node(value, place, None, self.base)

    def sequence(self, raw: yaml.SequenceNode, path: Path, above: frozenset[int]) -> list[Node]:
        nodes: list[Node] = []
        for index, child in enumerate(raw.value):
            nodes.append(self.node(child, (*path, index), above))
            if self.count > MAX_VALUES:
                break
        return nodes

    def mapping(self, raw: yaml.MappingNode, path: Path, above: frozenset[int]) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for key, child in raw.value:
            place = self.place(key.start_mark)
            name = self.key(key, path, place)
            if name is None:
                continue
            if name in found:
                first = found[name].key
                self.fail((*path, name), place, f"key '{name}' is given twice (first at {first}); keep one")
                continue
            node = self.node(child, (*path, name), above)
            node.key = place
            found[name] = node
            if self.count > MAX_VALUES:
                break
        return found

    def key(self, raw: yaml.Node, path: Path, place: Place) -> str | None:
        if not isinstance(raw, yaml.ScalarNode):
            self.fail(path, place, "a key must be text, got a mapping or a list")
            return None
        if raw.value == "<<" and raw.style is None:
            self.fail(path, place, "merge keys ('<<') are not used in run files; write the keys out or use 'extends'")
            return None
        if raw.tag != _TAG + "str":
            self.fail(path, place, f"a key must be text, got {kind_of(self.scalar(raw, path))}; put it in quotes")
            return None
        return str(raw.value)

    def tagged(self, raw: yaml.Node, expected: str, path: Path) -> bool:
        if raw.tag == _TAG + expected:
            return False
        shown = raw.tag.replace(_TAG, "!!")
        self.fail(path, self.place(raw.start_mark), f"tags such as '{shown}' are not used in run files; remove it")
        return True

    def scalar(self, raw: yaml.Node, path: Path) -> Any:
        tag, text = raw.tag.removeprefix(_TAG), raw.value
        if tag not in ("str", "null", "bool", "int", "float"):
            self.tagged(raw, "str", path)
            return None
        if tag == "str":
            return text
        if not re.fullmatch(dict(_IMPLICIT)[tag], text):
            self.fail(path, self.place(raw.start_mark), f"'{text}' is not of the type that its tag '!!{tag}' says")
            return None
        return self.number(tag, text, raw, path)

    def number(self, tag: str, text: str, raw: yaml.Node, path: Path) -> Any:
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() == "true"
        if tag == "float":
            return float(text.replace(".", "", 1) if text[-1] in "fFnN" else text)
        if len(text) > 1000:
            self.fail(path, self.place(raw.start_mark), f"a whole number of {len(text)} digits is too long")
            return None
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_JOINED = re.compile(r"\\\r?\n[ \t]*")


def _positions(text: str, raw: yaml.Node, value: str) -> Iterator[tuple[int, int]]:
    """Line and column of each character of a string, found by walking along its source text.

    White space that YAML folds is taken to stand where the source has its first blank.
    """
    start, end = raw.start_mark.index, raw.end_mark.index
    line, column, style = raw.start_mark.line + 1, raw.start_mark.column + 1, getattr(raw, "style", None)
    index = start

    def advance(steps: int) -> None:
        nonlocal index, line, column
        for _ in range(steps):
            if index < len(text) and text[index] == "\n":
                line, column = line + 1, 1
            else:
                column += 1
            index += 1

    if style in ("|", ">"):
        advance(max(0, text.find("\n", start, end) + 1 - start))
    elif style in ("'", '"'):
        advance(1)
    for letter in value:
        blank = letter.isspace()
        while style == '"' and (joined := _JOINED.match(text, index)):
            advance(len(joined.group()))
        while not blank and index < end and text[index].isspace():
            advance(1)
        yield line, column
        if style == "'" and text[index : index + 2] == "''":
            advance(2)
        elif style == '"' and (escape := _ESCAPE.match(text, index)):
            advance(len(escape.group()))
        elif index < end and (not blank or text[index].isspace()):
            advance(1)

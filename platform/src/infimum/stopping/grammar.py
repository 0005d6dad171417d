"""Text form of stopping rules: `max_iter(1e4) | (grad_norm(1e-6) & rel_change(1e-9, patience=10))`.

The text is read by Python's own parser and walked over a white list of nodes; nothing is evaluated.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infimum.errors import InfimumError, InputError, UnknownNameError, did_you_mean
from infimum.stopping.base import StoppingRule
from infimum.stopping.combine import AllOf, AnyOf, alone, negative
from infimum.stopping.options import Option, options_of
from infimum.stopping.rules import BUILT_IN

Resolve = Callable[[str], Callable[..., Any]]

MAX_LENGTH = 4000
MAX_DEPTH = 40


class GrammarError(InputError):
    """The text of a stopping rule cannot be used; every mistake in it is listed.

    Attributes
    ----------
    text : str
        The text as given.
    issues : list of (int, str)
        Position in `text`, counted from 0 (the column, where the text is one line), and what is wrong there.
    column : int
        Position of the first issue.
    """

    def __init__(self, text: str, issues: Sequence[tuple[int, str]]) -> None:
        self.text = text
        self.issues = sorted(issues)
        self.column = self.issues[0][0]
        super().__init__("\n".join(self._shown(column, message) for column, message in self.issues))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.issues)

    def _shown(self, column: int, message: str) -> str:
        before = self.text[:column]
        line, start = before.count("\n") + 1, before.rfind("\n") + 1
        place = f"line {line}, column {column - start + 1}" if "\n" in self.text.strip() else f"column {column + 1}"
        return f"stopping rule, {place}: {message}\n    {_line_around(self.text, column, start)}"


def _line_around(text: str, column: int, start: int) -> str:
    """The line of `column`, cut to a readable piece, with a caret below."""
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    left = max(start, column - 60)
    return f"{text[left : min(end, left + 110)]}\n    {' ' * (column - left)}^"


def resolve_built_in(name: str) -> type[StoppingRule]:
    """The built-in rule called `name` or `core.name`.

    Raises
    ------
    UnknownNameError
        With the nearest name.
    """
    rule = BUILT_IN.get(name.removeprefix("core."))
    if rule is None:
        raise UnknownNameError(f"unknown stopping rule '{name}'; {did_you_mean(name, BUILT_IN)}")
    return rule


def parse(text: str, resolve: Resolve | None = None) -> StoppingRule:
    """Read a stopping rule from text.

    Parameters
    ----------
    text : str
        Rules as calls with literal options, joined by `|`, `&` and `~`; `&` binds tighter than `|`. May span lines.
    resolve : callable, optional
        `resolve(name)` gives the rule class (or a function that returns a rule) and raises `UnknownNameError`; by
        default the built-in rules are known.

    Returns
    -------
    StoppingRule

    Raises
    ------
    GrammarError
        Listing every mistake with its position and, for a misspelled name, the nearest right one.

    Examples
    --------
    >>> parse("max_iter(1e4) | grad_norm(1e-6) & rel_change(1e-9, patience=10)")
    max_iter(10000) | (grad_norm(1e-06) & rel_change(1e-09, patience=10))
    """
    if not isinstance(text, str):
        raise InputError(f"a stopping rule is read from a string, got {text!r}")
    reader = _Reader(text, resolve or resolve_built_in)
    rule = reader.read()
    if reader.issues or rule is None:
        raise GrammarError(text, reader.issues)
    return rule


@dataclass(slots=True)
class _Found:
    """A part of the tree: its rule (None after a mistake), its position, and whether it is a lone negation."""

    rule: StoppingRule | None
    column: int

    @property
    def negative(self) -> bool:
        return self.rule is not None and negative(self.rule)


class _Reader:
    def __init__(self, text: str, resolve: Resolve) -> None:
        self.text, self.resolve = text, resolve
        self.issues: list[tuple[int, str]] = []
        self.line = re.sub(r"[\r\n\t\f]", " ", text).rstrip()
        self.shift = len(self.line) - len(self.line.lstrip())
        self.line = self.line[self.shift :]

    def read(self) -> StoppingRule | None:
        tree = self._tree()
        if tree is None:
            return None
        found = self._visit(tree.body, 0)
        if found.negative:
            self._say(found.column, alone(str(found.rule)))
        return found.rule

    def _say(self, column: int, message: str) -> None:
        self.issues.append((column, message))

    def _tree(self) -> ast.Expression | None:
        """The syntax tree, or None with an issue."""
        if not self.line:
            self._say(0, "the text is empty; write a rule such as max_iter(1000)")
        elif len(self.text) > MAX_LENGTH:
            self._say(MAX_LENGTH, f"the text has {len(self.text)} characters, at most {MAX_LENGTH} are read")
        elif (column := _foreign_sign(self.text)) is not None:
            sign = self.text[column : column + 2]
            self._say(column, _SIGNS.get(sign) or _SIGNS[sign[0]])
        else:
            return self._parsed()
        return None

    def _parsed(self) -> ast.Expression | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return ast.parse(self.line, mode="eval")
        except SyntaxError as error:
            # The parser gives offset 0 when the text ends too early.
            column = min(error.offset - 1 if error.offset else len(self.line), len(self.line)) + self.shift
            self._say(
                column,
                f"this is not a rule expression: {error.msg}; write rules such as max_iter(1000), joined by | and &",
            )
        except (RecursionError, MemoryError):
            self._say(self.shift, f"the rule is nested too deeply; at most {MAX_DEPTH} levels are read")
        except ValueError as error:
            self._say(self.shift, f"the text cannot be read: {error}")
        return None

    def _column(self, node: ast.expr | ast.keyword) -> int:
        """Position in characters; the parser counts bytes of UTF-8."""
        return len(self.line.encode()[: node.col_offset].decode(errors="ignore")) + self.shift

    def _source(self, node: ast.expr) -> str:
        source = ast.get_source_segment(self.line, node) or ""
        return source if len(source) <= 40 else f"{source[:37]}..."

    def _visit(self, node: ast.expr, depth: int) -> _Found:
        column = self._column(node)
        if depth > MAX_DEPTH:
            self._say(column, f"the rule is nested too deeply here; at most {MAX_DEPTH} levels are read")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd):
            return self._combination(node, depth)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self._negation(node, depth)
        elif isinstance(node, ast.Call):
            return _Found(self._call(node), column)
        else:
            self._say(column, self._not_a_rule(node))
        return _Found(None, column)

    def _combination(self, node: ast.BinOp, depth: int) -> _Found:
        either = isinstance(node.op, ast.BitOr)
        parts = [self._visit(operand, depth + 1) for operand in _operands(node)]
        column = self._column(node)
        if either:
            for part in parts:
                if part.negative:
                    self._say(part.column, alone(str(part.rule)))
        rules = [part.rule for part in parts if part.rule is not None]
        if len(rules) < len(parts) or (either and any(part.negative for part in parts)):
            return _Found(None, column)
        return _Found(AnyOf(tuple(rules)) if either else AllOf(tuple(rules)), column)

    def _negation(self, node: ast.UnaryOp, depth: int) -> _Found:
        found, column = self._visit(node.operand, depth + 1), self._column(node)
        if found.rule is not None and found.negative and isinstance(found.rule, AllOf):
            self._say(found.column, alone(str(found.rule)))
            return _Found(None, column)
        return _Found(None if found.rule is None else ~found.rule, column)

    def _not_a_rule(self, node: ast.expr) -> str:
        """The message for a node that is not on the white list."""
        if (name := _dotted(node)) is not None:
            return f"'{name}' is a rule only with parentheses: write {name}() or {name}(...)"
        if isinstance(node, ast.BoolOp | ast.UnaryOp):
            word = {ast.And: "'&' for 'and'", ast.Or: "'|' for 'or'", ast.Not: "'~' for 'not'"}.get(type(node.op))
            if word:
                return f"write {word}"
        if isinstance(node, ast.Compare) and (name := _dotted(node.left)) is not None:
            return f"a comparison is not a rule: write the bound as an option, as in {name}(1e-6)"
        return f"'{self._source(node)}' is not a rule; write rules such as max_iter(1000), joined by |, & and ~"

    def _call(self, node: ast.Call) -> StoppingRule | None:
        name, before = _dotted(node.func), len(self.issues)
        if name is None:
            self._say(self._column(node), f"'{self._source(node.func)}' is not the name of a rule")
            return None
        target = self._resolved(name, self._column(node))
        arguments = self._arguments(name, node, target)
        if target is None or len(self.issues) > before:
            return None
        try:
            return made(target, name, arguments)
        except InfimumError as error:
            self._say(self._column(node), str(error))
            return None

    def _resolved(self, name: str, column: int) -> Callable[..., Any] | None:
        try:
            return self.resolve(name)
        except InfimumError as error:
            self._say(column, str(error))
            return None

    def _arguments(self, name: str, node: ast.Call, target: Callable[..., Any] | None) -> dict[str, Any]:
        """Options by name, each checked; the mistakes are said. Without a target only the literals are looked at."""
        options = options_of(target) if target else {}
        positional = [option.name for option in options.values() if option.positional]
        values: dict[str, Any] = {}
        for position, argument in enumerate(node.args):
            option = positional[position] if position < len(positional) else None
            if target and position == len(positional):
                self._say(self._column(argument), too_many(name, positional))
            self._take(name, option, argument, self._column(argument), options, values)
        for keyword in node.keywords:
            column = self._column(keyword)
            if keyword.arg is None:
                self._say(column, "'**' is not read here; write the options one by one")
                continue
            if target and keyword.arg not in options:
                self._say(column, unknown_option(name, keyword.arg, options))
            elif keyword.arg in values:
                self._say(column, f"{name}: option '{keyword.arg}' is given twice")
            self._take(name, keyword.arg, keyword.value, self._column(keyword.value), options, values)
        for missing in (o.name for o in options.values() if o.required and o.name not in values):
            self._say(self._column(node), f"{name} needs the option '{missing}': write {name}({missing}=...)")
        return values

    def _take(
        self,
        name: str,
        option: str | None,
        node: ast.expr,
        column: int,
        options: Mapping[str, Option],
        values: dict[str, Any],
    ) -> None:
        """Put one literal under its option, or say why not."""
        if option is not None:
            values[option] = None
        try:
            value = _literal(node)
        except ValueError:
            self._say(column, f"'{self._source(node)}' is not a plain number, text in quotes, True or False")
            return
        if option is not None and option in options:
            try:
                values[option] = options[option].check(value)
            except ValueError as error:
                self._say(column, f"{name}: {option} {error}")


def made(target: Callable[..., Any], name: str, options: Mapping[str, Any]) -> StoppingRule:
    """Call a rule class or function; whatever it refuses becomes an `InputError` that names the rule."""
    try:
        rule = target(**options)
    except InfimumError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}") from error
    if not isinstance(rule, StoppingRule):
        raise InputError(f"{name} gave {rule!r}, which is no stopping rule; its class must derive from StoppingRule")
    return rule


def unknown_option(rule: str, option: str, options: Mapping[str, Option]) -> str:
    """The message about an option that a rule does not have."""
    there = f"; {did_you_mean(option, options)}" if options else "; it has none"
    return f"{rule} has no option '{option}'{there}"


def too_many(rule: str, positional: Sequence[str]) -> str:
    """The message about one positional option too many."""
    if not positional:
        return f"{rule} takes no option without its name"
    options = "option" if len(positional) == 1 else "options"
    return f"{rule} takes at most {len(positional)} {options} without a name: {', '.join(positional)}"


def _operands(node: ast.BinOp) -> list[ast.expr]:
    """All operands of a chain of the same sign, left to right, however it is grouped."""
    found: list[ast.expr] = []
    waiting: list[ast.expr] = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, ast.BinOp) and type(current.op) is type(node.op):
            waiting += (current.right, current.left)
        else:
            found.append(current)
    return found


def _dotted(node: ast.expr) -> str | None:
    """`a.b` for a chain of plain names, else None."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(names))) if isinstance(node, ast.Name) else None


def _literal(node: ast.expr) -> float | str | bool:
    sign = None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign, node = node.op, node.operand
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float, str, bool):
        raise ValueError
    value = node.value
    if sign is None:
        return value  # type: ignore[return-value]
    if type(value) not in (int, float):
        raise ValueError
    return -value if isinstance(sign, ast.USub) else value  # type: ignore[operator, return-value]


_SIGNS = {
    "||": "write '|', not '||'",
    "&&": "write '&', not '&&'",
    "#": "a comment is not read here; take it out",
    "!": "write '~' for 'not'",
}

_STRING_OR_SIGN = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|(\|\||&&|#|!)""")


def _foreign_sign(text: str) -> int | None:
    """Position of a sign of another language, outside strings."""
    return next((match.start() for match in _STRING_OR_SIGN.finditer(text) if match.group(1)), None)

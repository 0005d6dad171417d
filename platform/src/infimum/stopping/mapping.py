"""Mapping form of stopping rules, as a run file writes it; equal to the text form.

``{any: [{max_iter: 1e4}, {all: [{grad_norm: 1e-6}, {not: {max_iter: 10}}]}]}``: a list alone means `any`, a string is
text form, one value after a rule's name is its first option, a mapping there gives options by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from infimum.errors import InfimumError, InputError
from infimum.stopping.base import StoppingRule
from infimum.stopping.combine import AllOf, AnyOf, Not, alone, negative
from infimum.stopping.grammar import (
    MAX_DEPTH,
    GrammarError,
    Resolve,
    made,
    parse,
    resolve_built_in,
    too_many,
    unknown_option,
)
from infimum.stopping.options import options_of, shown

Path = tuple[str | int, ...]

MAX_PARTS = 1000


class MappingError(InputError):
    """The mapping form of a stopping rule cannot be used; every mistake in it is listed.

    Attributes
    ----------
    issues : list of (tuple, str)
        Path of keys and indices from the given object, and what is wrong there.
    """

    def __init__(self, issues: Sequence[tuple[Path, str]]) -> None:
        self.issues = list(issues)
        super().__init__("\n".join(f"{_path_text(path)}: {message}" for path, message in self.issues))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.issues,)


def _path_text(path: Path) -> str:
    return "stopping" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)


def from_mapping(form: object, resolve: Resolve | None = None) -> StoppingRule:
    """Read a stopping rule from plain data.

    Parameters
    ----------
    form : mapping, list or str
        `{any: [...]}`, `{all: [...]}`, `{not: ...}`, `{rule: value}` or `{rule: {option: value}}`; a list means `any`,
        a string is text form. Forms nest.
    resolve : callable, optional
        `resolve(name)` gives the rule class; by default the built-in rules are known.

    Returns
    -------
    StoppingRule

    Raises
    ------
    MappingError
        Listing every mistake with its path.

    Examples
    --------
    >>> from_mapping([{"max_iter": 1e4}, {"all": [{"grad_norm": 1e-6}, {"rel_change": {"tol": 1e-9, "patience": 10}}]}])
    max_iter(10000) | (grad_norm(1e-06) & rel_change(1e-09, patience=10))
    """
    reader = _Reader(resolve or resolve_built_in)
    rule = reader.positive(form, ())
    if reader.issues or rule is None:
        raise MappingError(reader.issues)
    return rule


class _Reader:
    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        self.issues: list[tuple[Path, str]] = []
        self.parts = 0

    def _say(self, path: Path, message: str) -> None:
        self.issues.append((path, message))

    def positive(self, form: object, path: Path) -> StoppingRule | None:
        """A rule that is no lone negation."""
        rule = self.visit(form, path)
        if rule is not None and negative(rule):
            self._say(path, alone(rule))
            return None
        return rule

    def visit(self, form: object, path: Path) -> StoppingRule | None:
        self.parts += 1
        if self.parts == MAX_PARTS:
            self._say(path, f"the rule has too many parts; at most {MAX_PARTS} are read")
        if len(path) > 2 * MAX_DEPTH:
            self._say(path, f"the rule is nested too deeply here; at most {MAX_DEPTH} levels are read")
        if self.parts >= MAX_PARTS or len(path) > 2 * MAX_DEPTH:
            return None
        return self._rule(form, path)

    def _rule(self, form: object, path: Path) -> StoppingRule | None:
        if isinstance(form, StoppingRule):
            return form
        if isinstance(form, str):
            return self._text(form, path)
        if isinstance(form, list | tuple):
            return self._group("any", form, path)
        if not isinstance(form, Mapping):
            self._say(path, f"expected a rule such as {{max_iter: 1000}}, a list of rules or text, got {shown(form)}")
            return None
        if len(form) != 1:
            names = ", ".join(map(str, form)) or "none"
            self._say(path, f"expected one rule name, got {len(form)} ({names}); write several rules as a list")
            return None
        name, inside = next(iter(form.items()))
        if name in ("any", "all"):
            return self._group(name, inside, (*path, name))
        if name == "not":
            rule = self.visit(inside, (*path, "not"))
            return self._negated(rule, (*path, "not"))
        return self._leaf(name, inside, path)

    def _text(self, text: str, path: Path) -> StoppingRule | None:
        try:
            return parse(text, self.resolve)
        except GrammarError as error:
            for column, message in error.issues:
                self._say(path, f"column {column + 1} of '{text}': {message}")
            return None

    def _group(self, kind: str, members: object, path: Path) -> StoppingRule | None:
        if not isinstance(members, list | tuple) or not members:
            self._say(path, f"'{kind}' takes a list of rules, got {shown(members)}")
            return None
        read = self.positive if kind == "any" and len(members) > 1 else self.visit
        rules = [read(member, (*path, index)) for index, member in enumerate(members)]
        known = tuple(rule for rule in rules if rule is not None)
        if len(known) < len(rules):
            return None
        if len(known) == 1:
            return known[0]
        return AnyOf(known) if kind == "any" else AllOf(known)

    def _negated(self, rule: StoppingRule | None, path: Path) -> StoppingRule | None:
        if rule is not None and negative(rule) and not isinstance(rule, Not):
            self._say(path, alone(rule))
            return None
        return None if rule is None else ~rule

    def _leaf(self, name: object, inside: object, path: Path) -> StoppingRule | None:
        if not isinstance(name, str):
            self._say(path, f"expected the name of a rule, got {shown(name)}")
            return None
        try:
            target = self.resolve(name)
        except InfimumError as error:
            self._say((*path, name), str(error))
            return None
        before = len(self.issues)
        options = self._options(name, target, inside, (*path, name))
        if len(self.issues) > before:
            return None
        try:
            return made(target, name, options)
        except InfimumError as error:
            self._say((*path, name), str(error))
            return None

    def _options(self, name: str, target: Callable[..., Any], inside: object, path: Path) -> dict[str, Any]:
        """Options by name, each checked; the mistakes are said."""
        options = options_of(target)
        positional = [option.name for option in options.values() if option.positional]
        by_name = isinstance(inside, Mapping)
        if isinstance(inside, Mapping):
            given = {str(key): value for key, value in inside.items()}
        elif inside is None:
            given = {}
        elif positional:
            given = {positional[0]: inside}
        else:
            self._say(path, too_many(name, positional))
            return {}
        values = {}
        for option, value in given.items():
            place = (*path, option) if by_name else path
            if option not in options:
                self._say(place, unknown_option(name, option, options))
                continue
            try:
                values[option] = options[option].check(value)
            except ValueError as error:
                self._say(place, f"{name}: {option} {error}")
        for missing in (o.name for o in options.values() if o.required and o.name not in given):
            self._say(path, f"{name} needs the option '{missing}': write {{{name}: {{{missing}: ...}}}}")
        return values

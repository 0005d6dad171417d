"""Checks of a rule's options: each takes a value and returns it converted, or raises with what was expected.

A rule names its check in the field's metadata, `tol: float = field(metadata=TOLERANCE)`; text and mapping forms use
the same checks, so that a mistake is located at its option.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

_LARGEST_COUNT = 2**63 - 1


def number(value: object) -> float:
    """A finite real number."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            converted = float(value)
        except OverflowError:
            raise ValueError("must be a finite number, got an integer beyond 1e308") from None
        if math.isfinite(converted):
            return converted
        raise ValueError(f"must be a finite number, got {converted}")
    raise ValueError(f"must be a number, got {shown(value)}")


def not_negative(value: object) -> float:
    """A finite number, 0 or larger."""
    converted = number(value)
    if converted < 0:
        raise ValueError(f"must be >= 0, got {value}")
    return converted


def count(value: object) -> int:
    """A whole number, 0 or larger; `1e4` is one."""
    converted = whole(value)
    if converted < 0:
        raise ValueError(f"must be a whole number >= 0, got {value}")
    return converted


def positive_count(value: object) -> int:
    """A whole number, 1 or larger."""
    converted = whole(value)
    if converted < 1:
        raise ValueError(f"must be a whole number >= 1, got {value}")
    return converted


def whole(value: object) -> int:
    """A whole number, written as an integer or as a float without fraction."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        converted = int(value)
        if abs(converted) > _LARGEST_COUNT:
            raise ValueError(f"must be at most {_LARGEST_COUNT}, got an integer of {len(str(converted))} digits")
        return converted
    if isinstance(value, Real) and not isinstance(value, bool):
        converted_float = float(value)
        if math.isfinite(converted_float) and converted_float.is_integer():
            return whole(int(converted_float))
    raise ValueError(f"must be a whole number, got {shown(value)}")


def identifier(value: object) -> str:
    """A plain word such as a capability name."""
    if isinstance(value, str) and value.isidentifier():
        return value
    raise ValueError(f"must be a name such as 'value' or 'gradient', got {shown(value)}")


NUMBER: Final = {"check": number}
TOLERANCE: Final = {"check": not_negative}
COUNT: Final = {"check": count}
POSITIVE_COUNT: Final = {"check": positive_count}
IDENTIFIER: Final = {"check": identifier}


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a rule, as text and mappings see it."""

    name: str
    required: bool
    positional: bool
    check: Callable[[Any], Any]


@lru_cache(maxsize=256)
def options_of(target: Callable[..., Any]) -> Mapping[str, Option]:
    """The options of a rule class, or of a function that returns a rule, in their order."""
    try:
        hints = get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError):
        hints = {}
    checks = {f.name: f.metadata.get("check") for f in fields(target)} if is_dataclass(target) else {}
    found = {}
    for name, parameter in inspect.signature(target).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        check = checks.get(name) or _by_type(hints.get(name, Any))
        positional = parameter.kind is not parameter.KEYWORD_ONLY
        found[name] = Option(name, parameter.default is parameter.empty, positional, check)
    return found


def _by_type(hint: Any) -> Callable[[Any], Any]:
    """The check that a type annotation implies; what is not a simple type passes."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        return _one_of(tuple(_by_type(choice) for choice in get_args(hint)))
    if get_origin(hint) is Literal:
        return _among(get_args(hint))
    return _SIMPLE.get(hint, _anything) if isinstance(hint, type) else _anything


def _one_of(checks: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    def check(value: object) -> Any:
        messages = []
        for one in checks:
            try:
                return one(value)
            except ValueError as error:
                messages.append(str(error).partition(", got ")[0].removeprefix("must be "))
        raise ValueError(f"must be {' or '.join(messages)}, got {shown(value)}")

    return check


def _among(choices: tuple[Any, ...]) -> Callable[[Any], Any]:
    def check(value: object) -> Any:
        if any(value == choice and type(value) is type(choice) for choice in choices):
            return value
        raise ValueError(f"must be one of {', '.join(map(repr, choices))}, got {shown(value)}")

    return check


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"must be a text in quotes, got {shown(value)}")


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"must be True or False, got {shown(value)}")


def _nothing(value: object) -> None:
    if value is not None:
        raise ValueError(f"must be None, got {shown(value)}")


def _anything(value: Any) -> Any:
    return value


_SIMPLE: Mapping[type, Callable[[Any], Any]] = {
    int: whole,
    float: number,
    str: _text,
    bool: _truth,
    type(None): _nothing,
}


def shown(value: object) -> str:
    """A value for a message, cut when long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

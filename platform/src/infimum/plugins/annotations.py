"""What an option's annotation means: in words for messages and lists, and as a type that pydantic can check.

Numbers are strict where pydantic is not (no text, no booleans) and lenient where YAML asks for it (`1e4` is an
integer). Arrays may come as nested lists. Classes that are neither are checked by `isinstance`.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from infimum.plugins.records import article


class ArrayMark:
    """Metadata of an annotation: an array of any namespace, or nested lists of numbers."""


ARRAY: Final = Annotated[Any, ArrayMark()]

_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
_MAPPINGS = (dict, collections.abc.Mapping)
_PLAIN = {
    int: "an integer",
    float: "a number",
    complex: "a complex number",
    bool: "true or false",
    str: "a string",
    bytes: "bytes",
    type(None): "null",
    Any: "anything",
    object: "anything",
}
_PYDANTIC_KNOWS = frozenset({"pathlib", "datetime", "decimal", "fractions", "uuid", "re", "collections.abc", "typing"})
_PLURALS = {"a number": "numbers", "an integer": "integers", "a path": "paths", "a string": "strings"}
_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
_BOUNDS = ("gt", "ge", "lt", "le", "multiple_of")


class Mismatch(ValueError):
    """A value is not of the annotated type; the message is made elsewhere, from the annotation."""


def members(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, else the annotation itself."""
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


def split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The bare annotation and the metadata of `Annotated` around it."""
    if get_origin(annotation) is Annotated:
        bare, *metadata = get_args(annotation)
        return bare, tuple(metadata)
    return annotation, ()


def is_array(annotation: Any, metadata: tuple[Any, ...] = ()) -> bool:
    if any(isinstance(one, ArrayMark) for one in metadata):
        return True
    bare = get_origin(annotation) or annotation
    return getattr(bare, "__module__", "") == "numpy" and getattr(bare, "__name__", "") == "ndarray"


# Words ---------------------------------------------------------------------------------------------------------------


def phrase(annotation: Any) -> str:
    """What an annotation expects: "a number > 0 or 'auto'"."""
    bare, metadata = split(annotation)
    options = [one for member in members(bare) for one in _phrases(member, metadata)]
    return _listed(list(dict.fromkeys(options)))


def _listed(options: list[str]) -> str:
    return options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"


def _phrases(annotation: Any, outer: tuple[Any, ...]) -> list[str]:
    bare, metadata = split(annotation)
    metadata = (*metadata, *outer)
    if is_array(bare, metadata):
        return ["an array"]
    if len(members(bare)) > 1:
        return [one for member in members(bare) for one in _phrases(member, metadata)]
    if get_origin(bare) is Literal:
        return [_literal(value) for value in get_args(bare)]
    if inspect.isclass(bare) and issubclass(bare, enum.Enum):
        return [repr(member.name) for member in bare]
    noun = _noun(bare)
    return [noun if bare in (bool, type(None), Any) else noun + _bounds(metadata)]


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else repr(value)


def takes_component(annotation: Any) -> bool:
    """Whether an object of some class may stand here, which a run file writes as `{use: name}`."""
    return any(_needs_isinstance(split(one)[0]) for one in members(split(annotation)[0]))


def _noun(annotation: Any) -> str:
    if isinstance(annotation, collections.abc.Hashable) and annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin in _LISTS:
        return _list_noun(origin, arguments)
    if origin in _MAPPINGS:
        return f"a mapping of names to {plural(phrase(arguments[1]))}" if len(arguments) == 2 else "a mapping"
    if origin is collections.abc.Callable:
        return "a function"
    if origin is type:
        return "a class"
    if hasattr(annotation, "__supertype__"):
        return _noun(annotation.__supertype__)
    name = getattr(origin, "__name__", None)
    if not name or isinstance(annotation, typing.TypeVar):
        return "anything"
    return "a path" if issubclass_of(origin, "pathlib", "PurePath") else article(name)


def issubclass_of(candidate: Any, module: str, name: str) -> bool:
    """Whether `candidate` derives from a class named so, without importing it."""
    return inspect.isclass(candidate) and any(
        one.__module__.partition(".")[0] == module and one.__name__ == name for one in candidate.__mro__
    )


def _list_noun(origin: Any, arguments: tuple[Any, ...]) -> str:
    if not arguments:
        return "a list"
    if origin is tuple and arguments[-1] is not Ellipsis:
        words = [phrase(one) for one in arguments]
        if len(set(words)) == 1:
            return f"a list of {len(words)} {plural(words[0])}"
        return f"a list ({', '.join(words)})"
    return f"a list of {plural(phrase(arguments[0]))}"


def plural(words: str) -> str:
    """The phrase for many: "numbers > 0" for "a number > 0"; what does not bend is left in brackets."""
    for one, many in _PLURALS.items():
        if words == one or words.startswith((f"{one} >", f"{one} <", f"{one} in ")):
            return many + words.removeprefix(one)
    return f"items ({words})"


def flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    """Metadata with the contents of pydantic's `Field(...)` unpacked."""
    for one in metadata:
        inner = getattr(one, "metadata", None)
        if isinstance(inner, list | tuple):
            yield from flat(tuple(inner))
        yield one


def _bounds(metadata: tuple[Any, ...]) -> str:
    found: dict[str, Any] = {}
    for one in flat(metadata):
        for name in (*_BOUNDS, "min_length", "max_length"):
            value = getattr(one, name, None)
            if value is not None and not callable(value):
                found[name] = value
    low = next((name for name in ("gt", "ge") if name in found), None)
    high = next((name for name in ("lt", "le") if name in found), None)
    said = ""
    if low and high:
        said = f" in {'(' if low == 'gt' else '['}{found[low]}, {found[high]}{')' if high == 'lt' else ']'}"
    elif low or high:
        name = low or high or ""
        said = f" {_SIGNS[name]} {found[name]}"
    if "multiple_of" in found:
        said += f" that is a multiple of {found['multiple_of']}"
    return said + _length(found.get("min_length"), found.get("max_length"))


def _length(least: int | None, most: int | None) -> str:
    if least and most is not None:
        return f" of length {least}" if least == most else f" of length {least} to {most}"
    if least:
        return f" of length {least} or more"
    return f" of length {most} or less" if most is not None else ""


# Types for pydantic --------------------------------------------------------------------------------------------------


def checked(annotation: Any) -> Any:
    """The annotation as pydantic shall check it; the rules of this module are written into it."""
    bare, metadata = split(annotation)
    if is_array(bare, metadata):
        return _array_type()
    if len(members(bare)) > 1:
        return Union[tuple(_member(one, metadata) for one in members(bare))]  # noqa: UP007
    base, extra = _base(bare)
    return _annotated(base, (*metadata, *extra))


def _annotated(base: Any, metadata: tuple[Any, ...]) -> Any:
    return Annotated.__class_getitem__((base, *metadata)) if metadata else base  # type: ignore[attr-defined]


def _member(annotation: Any, outer: tuple[Any, ...]) -> Any:
    """A member of a union; bounds around the union hold for its members that have an order or a length."""
    bare, metadata = split(annotation)
    if bare is type(None) or bare in (bool, Any) or get_origin(bare) is Literal:
        return checked(annotation)
    return checked(_annotated(bare, (*metadata, *outer)))


def _base(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type itself with its parts rewritten, and the validators that belong to it."""
    from pydantic import BeforeValidator, WithJsonSchema

    before = {int: _integer, float: _number, bool: _boolean}
    if annotation in (int, float, bool):
        return annotation, (BeforeValidator(before[annotation]),)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if (origin or annotation) in _LISTS:
        shape = list if (origin or annotation) in _LISTS[5:] or origin is collections.abc.Sequence else origin
        inner = tuple(one if one is Ellipsis else checked(one) for one in arguments)
        return (shape[inner] if inner else annotation), (BeforeValidator(_listlike),)
    if (origin or annotation) in _MAPPINGS:
        return (dict.__class_getitem__(tuple(checked(one) for one in arguments)) if arguments else dict), ()
    if inspect.isclass(annotation) and issubclass(annotation, enum.Enum):
        names = WithJsonSchema({"enum": list(annotation.__members__)})
        return annotation, (BeforeValidator(_member_of(annotation)), names)
    if hasattr(annotation, "__supertype__"):
        return _base(annotation.__supertype__)
    if _needs_isinstance(origin or annotation):
        return _instance_type(origin or annotation)
    return annotation, ()


def _needs_isinstance(bare: Any) -> bool:
    if not inspect.isclass(bare) or bare in _PLAIN or bare is type:
        return False
    return (
        bare.__module__.partition(".")[0] not in _PYDANTIC_KNOWS
        and bare.__module__ != "collections.abc"
        and (not hasattr(bare, "__get_pydantic_core_schema__"))
    )


def _instance_type(cls: type) -> tuple[Any, tuple[Any, ...]]:
    from pydantic import PlainValidator, WithJsonSchema

    def instance(value: Any) -> Any:
        try:
            fits = isinstance(value, cls)
        except TypeError:  # a Protocol that is not runtime_checkable
            fits = True
        if not fits:
            raise Mismatch
        return value

    component = {"type": "object", "properties": {"use": {"type": "string"}}, "required": ["use"]}
    return Any, (PlainValidator(instance), WithJsonSchema(component))


def _array_type() -> Any:
    from pydantic import PlainValidator, WithJsonSchema

    return Annotated[Any, PlainValidator(_array), WithJsonSchema({"type": ["array", "number"]})]


def _integer(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise Mismatch
    try:
        whole = int(float(value)) if not isinstance(value, numbers.Integral) else int(value)
    except (ValueError, OverflowError):  # nan, inf
        raise Mismatch from None
    if whole != value:
        raise Mismatch
    return whole


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise Mismatch
    return float(value)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool) or (type(value).__name__ in ("bool_", "bool") and hasattr(value, "dtype")):
        return bool(value)
    raise Mismatch


def _listlike(value: Any) -> Any:
    """Arrays are taken where a list is asked for; text never is one."""
    if isinstance(value, str | bytes | collections.abc.Mapping):
        raise Mismatch
    return value.tolist() if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0 else value


def _array(value: Any) -> Any:
    if hasattr(value, "shape") or (isinstance(value, numbers.Number) and not isinstance(value, bool)):
        return value
    if not isinstance(value, list | tuple):
        raise Mismatch
    import numpy as np

    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        raise Mismatch from None
    if array.dtype.kind not in "biufc":
        raise Mismatch
    return array


def _member_of(cls: type[enum.Enum]) -> Callable[[Any], Any]:
    return lambda value: cls.__members__.get(value, value) if isinstance(value, str) else value


def resolve(text: str, names: dict[str, Any]) -> Any:
    """A string annotation evaluated on its own; `Any` when a name in it exists for type checkers only."""
    try:
        found = eval(text, names)  # annotations of code that is imported already
    except Exception:
        return Any
    return Any if isinstance(found, str) else found


def module_names(target: Any) -> dict[str, Any]:
    module = sys.modules.get(getattr(target, "__module__", "") or "")
    return dict(vars(module)) if module is not None else {}

"""Options of a component: the parameters of its target, checked against their annotations.

A target is a dataclass, another class, or a function; a plugin's author writes plain annotations (with bounds as
`Annotated[float, annotated_types.Gt(0)]`) and imports nothing of the checker.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
import reprlib
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

from infimum.errors import did_you_mean
from infimum.plugins import docs
from infimum.plugins.annotations import (
    ARRAY,
    Mismatch,
    checked,
    flat,
    members,
    module_names,
    phrase,
    resolve,
    split,
    takes_component,
)
from infimum.plugins.records import Component

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["REQUIRED", "Issue", "Option", "Parameter", "check_options", "describe_options", "json_schema", "parameters"]


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""Default of an option that has none."""


@dataclass(frozen=True, slots=True)
class Issue:
    """A mistake in a specification: where (keys and positions from its root), and a sentence.

    `cause` is the exception that told of it, if there was one.
    """

    path: tuple[str | int, ...]
    message: str
    cause: BaseException | None = dataclasses.field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a target: its name, resolved annotation, and default (`REQUIRED` without one)."""

    name: str
    annotation: Any
    default: Any

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True)
class Option:
    """An option as lists and help show it.

    Attributes
    ----------
    name, type : str
        The name, and what it takes in words ("number > 0 or 'auto'").
    default : object
        `REQUIRED` when there is none.
    doc : str
        From the docstring of the target; may be empty.
    """

    name: str
    type: str
    default: Any
    doc: str

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


def parameters(target: Any) -> tuple[tuple[Parameter, ...], bool]:
    """Parameters of a target that can be given by name, and whether it takes any other name as well."""
    try:
        return _cached_parameters(target)
    except TypeError:  # a target without a hash
        return _read_parameters(target)


def _read_parameters(target: Any) -> tuple[tuple[Parameter, ...], bool]:
    try:
        signature = inspect.signature(target)
    except (ValueError, TypeError):
        return (), True
    hints = _hints(target)
    factories = _factories(target)
    found = []
    for one in signature.parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        default = REQUIRED if one.default is one.empty else one.default
        if one.name in factories:
            default = factories[one.name]
        found.append(Parameter(one.name, hints.get(one.name, Any), default))
    return tuple(found), any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())


_cached_parameters = functools.lru_cache(maxsize=1024)(_read_parameters)
"""Reading the annotations of a target costs more than checking its options."""


def return_type(target: Any) -> Any:
    """The resolved return annotation of a function; `Any` without one."""
    return _hints(target).get("return", Any)


def _factories(target: Any) -> dict[str, Any]:
    """Defaults that a dataclass makes afresh for each object."""
    if not _generated(target):
        return {}
    return {
        one.name: one.default_factory()
        for one in dataclasses.fields(target)
        if one.init and one.default_factory is not dataclasses.MISSING
    }


def _generated(target: Any) -> bool:
    """Whether the fields of a class are its options: a dataclass that does not write its own `__init__`."""
    if not (inspect.isclass(target) and dataclasses.is_dataclass(target)):
        return False
    code = getattr(target.__init__, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _hints(target: Any) -> dict[str, Any]:
    if isinstance(target, functools.partial):
        return _hints(target.func)
    owner = target
    if inspect.isclass(target):
        owner = target if _generated(target) else target.__init__
    elif not inspect.isroutine(target):
        owner = type(target).__call__
    names = module_names(target if inspect.isclass(target) else owner)
    # `Array` is an alias of Any for type checkers; here it also says that nested lists will do.
    local = {"Array": ARRAY} if names.get("Array") is Any else None
    try:
        found = typing.get_type_hints(owner, localns=local, include_extras=True)
    except Exception:  # a name that only type checkers import
        found = _one_by_one(owner, local or {})
    return {name: one.type if isinstance(one, dataclasses.InitVar) else one for name, one in found.items()}


def _one_by_one(owner: Any, local: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in reversed(owner.__mro__) if inspect.isclass(owner) else (owner,):
        names = {**module_names(part), **local}
        for name, one in getattr(part, "__annotations__", {}).items():
            found[name] = resolve(one, names) if isinstance(one, str) else one
    return found


def check_options(
    target: Any,
    options: Mapping[str, Any],
    what: str,
    *,
    unchecked: Collection[str] = (),
    positional: bool = True,
) -> tuple[dict[str, Any], list[Issue]]:
    """Check options against the parameters of a target.

    Parameters
    ----------
    target : class or function
        Its parameters are the options.
    options : mapping of str to object
        As written in a run file or given from Python.
    what : str
        How messages call the component, such as "solver splitting.proximal_gradient".
    unchecked : collection of str, default ()
        Names that were given but have been refused already; they do not count as missing.
    positional : bool, default True
        False leaves the first parameter out: it is the point at which a function is evaluated.

    Returns
    -------
    values : dict
        Those of `options` that passed, in the annotated types (`1e4` becomes 10000 for an `int`). Defaults are left
        to the target.
    issues : list of Issue
        One for each unknown, missing or unfit option; paths start with the option's name.
    """
    known, takes_any = parameters(target)
    known = known if positional else known[1:]
    by_name = {one.name: one for one in known}
    values: dict[str, Any] = {}
    issues: list[Issue] = []
    for name, value in options.items():
        if name in by_name:
            found, wrong = _check(by_name[name], value, what)
            issues += wrong
            if not wrong:
                values[name] = found
        elif takes_any:
            values[name] = value
        else:
            issues.append(Issue((name,), _unknown(str(name), by_name, what)))
    issues += [
        Issue((), f"{what} needs option '{one.name}' ({_without_article(phrase(one.annotation))})")
        for one in known
        if one.required and one.name not in options and one.name not in unchecked
    ]
    unknown = [name for name in unchecked if name not in by_name and not takes_any]
    issues += [Issue((name,), _unknown(name, by_name, what)) for name in unknown]
    return values, issues


def _unknown(name: str, known: Mapping[str, Parameter], what: str) -> str:
    if not known:
        return f"{what} has no option '{name}'; it takes none"
    said = f"{what} has no option '{name}'"
    near = did_you_mean(name, known)
    if near.startswith("did you mean"):
        said += f"; {near}"
    return f"{said} (options: {', '.join(known)})"


def _check(parameter: Parameter, value: Any, what: str) -> tuple[Any, list[Issue]]:
    from pydantic import ValidationError

    try:
        return _adapter(parameter.annotation).validate_python(value), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    found: dict[tuple[str | int, ...], str] = {}
    for detail in details:
        path, annotation, culprit = _walk(parameter.annotation, value, detail["loc"])
        name = parameter.name + "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in path)
        expected = _own_words(detail) or f"expected {phrase(annotation)}"
        if isinstance(culprit, Mapping) and takes_component(annotation):
            expected += " (a component is written {use: name, …})"
        found.setdefault((parameter.name, *path), f"{what}: option '{name}': {expected}, got {_shown(culprit)}")
    return None, [Issue(path, message) for path, message in found.items()]


def _walk(annotation: Any, value: Any, location: tuple[str | int, ...]) -> tuple[tuple[str | int, ...], Any, Any]:
    """Follow a location into lists and mappings as far as their items have one type: path, item type, item."""
    path: list[str | int] = []
    for step in location:
        bare, _ = split(annotation)
        arguments = get_args(bare)
        if len(members(bare)) > 1 or not arguments or get_origin(bare) is Literal:
            break
        try:
            inner = value[step]
        except (LookupError, TypeError):
            break
        if isinstance(value, Mapping):
            annotation = arguments[-1]
        elif get_origin(bare) is tuple and arguments[-1] is not Ellipsis:
            annotation = arguments[step] if isinstance(step, int) and step < len(arguments) else Any
        else:
            annotation = arguments[0]
        path.append(step)
        value = inner
    return tuple(path), annotation, value


def _own_words(detail: Any) -> str | None:
    """What a validator of the plugin's author says; None where the annotation says it all."""
    error = detail.get("ctx", {}).get("error")
    if detail["type"] in ("value_error", "assertion_error"):
        return None if isinstance(error, Mismatch) else str(error)
    if detail["type"] in ("predicate_failed", "string_pattern_mismatch"):
        message = str(detail["msg"])
        return message[0].lower() + message[1:]
    return None


def _shown(value: Any) -> str:
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    text, name = short.repr(value), type(value).__name__
    return text if value is None or text.startswith(name) else f"{name} {text}"


def _without_article(words: str) -> str:
    return words.removeprefix("a ").removeprefix("an ")


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        return _cached_adapter(annotation)
    except TypeError:  # metadata without a hash
        return _make_adapter(annotation)


def _make_adapter(annotation: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(checked(annotation), config=ConfigDict(arbitrary_types_allowed=True))
    except (PydanticUserError, TypeError, NameError, AttributeError):  # nothing that pydantic can check
        return TypeAdapter(Any)


_cached_adapter = functools.lru_cache(maxsize=1024)(_make_adapter)


def describe_options(target: Any) -> list[Option]:
    """The options of a target (or of a `Component`, which is imported) in the order of its signature."""
    target = target.load() if isinstance(target, Component) else target
    told = docs.option_docs(target)
    return [
        Option(
            one.name,
            _without_article(phrase(one.annotation)),
            one.default,
            told.get(one.name) or _annotated_doc(one.annotation),
        )
        for one in parameters(target)[0]
    ]


def _annotated_doc(annotation: Any) -> str:
    for one in flat(split(annotation)[1]):
        text = getattr(one, "documentation", None) or getattr(one, "description", None)
        if isinstance(text, str):
            return text
    return ""


def json_schema(target: Any) -> dict[str, Any]:
    """JSON Schema of the options of a target (or of a `Component`, which is imported)."""
    loaded = target.load() if isinstance(target, Component) else target
    known, takes_any = parameters(loaded)
    told = docs.option_docs(loaded)
    definitions: dict[str, Any] = {}
    properties = {}
    for one in known:
        schema = _field_schema(one.annotation)
        definitions.update(schema.pop("$defs", {}))
        if text := told.get(one.name) or _annotated_doc(one.annotation):
            schema["description"] = text
        default = one.default.name if isinstance(one.default, enum.Enum) else one.default
        if not one.required and _is_json(default):
            schema["default"] = json.loads(json.dumps(default))  # Tuples become the lists that a file can hold.
        properties[one.name] = schema
    text = (target.summary if isinstance(target, Component) else "") or docs.summary(loaded)
    return {
        "type": "object",
        **({"description": text} if text else {}),
        "properties": properties,
        "required": [one.name for one in known if one.required],
        "additionalProperties": takes_any,
        **({"$defs": definitions} if definitions else {}),
    }


def _field_schema(annotation: Any) -> dict[str, Any]:
    from pydantic.errors import PydanticInvalidForJsonSchema

    try:
        return dict(_adapter(annotation).json_schema())
    except PydanticInvalidForJsonSchema:
        return {}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True

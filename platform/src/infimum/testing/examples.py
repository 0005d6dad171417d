"""Options with which a component can be built: its own `examples`, else its defaults, else invented from its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infimum.errors import InfimumError
from infimum.plugins.build import Built, build
from infimum.plugins.options import json_schema
from infimum.plugins.records import Component
from infimum.plugins.registry import Registry

_BY_TYPE: dict[str, Any] = {"integer": 3, "number": 0.5, "string": "value", "boolean": True}


def examples(component: Component) -> list[dict[str, Any]]:
    """Options to build a component with, the plainest first; never empty.

    A target may say them itself, as an attribute or a class method `examples`: a sequence of mappings of options, in
    the form of a run file. Without it the defaults serve, with numbers, words and lists of the right type for options
    that have none.
    """
    target = component.load()
    own = getattr(target, "examples", None)
    if own is not None:
        found = own() if callable(own) else own
        return [dict(one) for one in found] or [{}]
    schema = json_schema(target)
    return [{name: _invented(schema["properties"][name], schema) for name in schema["required"]}]


def _invented(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """A value that fits a JSON schema, for the kinds of options that components have."""
    if "$ref" in schema:
        return _invented(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _invented(schema[key][0], root)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "number")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "array":
        return [_invented(schema.get("items", {}), root)] * max(1, int(schema.get("minItems", 2)))
    if kind == "object":
        return {}
    value = _BY_TYPE.get(kind, 0.5)
    if kind not in ("integer", "number"):
        return value
    low, high = _bound(schema, "minimum", "exclusiveMinimum"), _bound(schema, "maximum", "exclusiveMaximum")
    if low is not None and value <= low:
        value = low + 1 if kind == "integer" or high is None else 0.5 * (low + high)
    if high is not None and value >= high:
        value = high - 1 if kind == "integer" or low is None else 0.5 * (low + high)
    return value


def _bound(schema: Mapping[str, Any], *names: str) -> Any:
    return next((schema[name] for name in names if name in schema), None)


def built(component: Component, options: Mapping[str, Any], registry: Registry | None = None) -> Built:
    """The component with these options.

    Raises
    ------
    InfimumError
        With what `build` says, and how to give an example.
    """
    try:
        return build({"use": component.name, **options}, component.kind, registry=registry)
    except InfimumError as error:
        own = hasattr(component.load(), "examples")
        hint = "correct its `examples`" if own else f"give {component.target} an attribute `examples`"
        raise type(error)(f"{error}\n  with the options {dict(options)}; {hint}") from error

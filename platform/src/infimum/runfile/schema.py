"""JSON Schema of run files, made from the installed plugins."""

from __future__ import annotations

import copy
import logging
from typing import Any

from infimum.errors import PluginError
from infimum.plugins.options import json_schema
from infimum.plugins.registry import Component, Registry, get_registry
from infimum.runfile.keys import TOP_KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PYTHON = {"type": "string", "pattern": r"^python:[\w.]+:[\w.]+$"}
_log = logging.getLogger("infimum")


def run_file_schema(registry: Registry | None = None) -> dict[str, Any]:
    """The schema of a run file (JSON Schema 2020-12).

    Parameters
    ----------
    registry : Registry, optional
        Whose components to offer; by default what is installed. A component that cannot be imported is left out with
        a warning in the log.

    Returns
    -------
    dict
        Plain data. Every component stands under `$defs` as `kind.plugin.name`.
    """
    registry = registry or get_registry()
    return {
        "$schema": DIALECT,
        "title": "infimum run file",
        "type": "object",
        "properties": _properties(),
        "additionalProperties": False,
        # A file that extends another may leave the problem, and the name of a component, to it.
        "if": {"required": ["extends"]},
        "else": {
            "required": ["problem"],
            "properties": {kind: {"$ref": f"#/$defs/{kind}"} for kind in ("problem", "solver")},
        },
        "$defs": _definitions(registry),
    }


def _definitions(registry: Registry) -> dict[str, Any]:
    """Every component, every kind, and the forms of `stopping` and `x0`."""
    names: dict[str, list[str]] = {}
    definitions: dict[str, Any] = {}
    for component in registry.components():
        try:
            options = json_schema(component)
        except PluginError as error:
            _log.warning("%s is left out of the schema: %s", component.name, error)
            continue
        definitions[_key(component)] = _component(component, options, registry, definitions)
        names.setdefault(component.kind, []).append(component.name)
    for kind in ("problem", "oracle", "constraint", "solver", "stopping_rule", "observer"):
        definitions[kind] = _choice(kind, names.get(kind, []), registry)
    definitions["stopping"] = _stopping(names.get("stopping_rule", []), registry)
    definitions["numbers"] = {
        "type": "array",
        "minItems": 1,
        "items": {"anyOf": [{"type": "number"}, {"$ref": "#/$defs/numbers"}]},
    }
    return definitions


def _key(component: Component) -> str:
    return f"{component.kind}.{component.name}"


def _properties() -> dict[str, Any]:
    refs: dict[str, Any] = {
        "problem": _or_options_alone("problem"),
        "solver": _or_options_alone("solver"),
        "oracles": {
            "anyOf": [
                {"const": "auto"},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/oracle"}},
            ]
        },
        "constraints": {
            "anyOf": [
                {"type": "array", "items": {"$ref": "#/$defs/constraint"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/constraint"}},
            ]
        },
        "x0": {
            "anyOf": [
                {"enum": ["zeros", "random"]},
                _PYTHON,
                {"$ref": "#/$defs/numbers"},
                {
                    "type": "object",
                    "properties": {"file": {"type": "string"}, "key": {"type": "string"}},
                    "required": ["file"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"run": {"type": "string"}},
                    "required": ["run"],
                    "additionalProperties": False,
                },
            ]
        },
        "stopping": {"$ref": "#/$defs/stopping"},
        "sweep": _sweep(),
        "compare": _compare(),
        "observers": {"type": "array", "items": {"$ref": "#/$defs/observer"}},
    }
    return {name: {**copy.deepcopy(known), **refs.get(name, {})} for name, known in TOP_KEYS.items()}


def _sweep() -> dict[str, Any]:
    """Values that vary."""
    numbers = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}
    spread = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": dict.fromkeys(("linspace", "logspace", "range"), numbers),
        "additionalProperties": False,
    }
    values = {"anyOf": [{"type": "array", "minItems": 1}, spread]}
    places = {"type": "object", "additionalProperties": values}
    whole = {"type": "object", "additionalProperties": {"type": ["array", "object"]}}
    excluded = {"type": "array", "items": {"type": "object", "minProperties": 1}}
    return {
        "type": "object",
        "minProperties": 1,
        "properties": {"product": places, "zip": places, "components": whole, "exclude": excluded},
        "additionalProperties": False,
    }


def _compare() -> dict[str, Any]:
    """Methods, problems, and the terms of the comparison."""
    entries = {"type": ["array", "object"]}
    numbers = {"type": "array", "items": {"type": "number"}, "minItems": 1}
    measured = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {name: {"anyOf": [{"type": "number"}, numbers]} for name in ("decrease", "gap", "value")},
        "additionalProperties": False,
    }
    budget = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": {"type": "number", "exclusiveMinimum": 0},
    }
    return {
        "type": "object",
        "properties": {
            "solvers": entries,
            "problems": entries,
            "budget": budget,
            "targets": {"anyOf": [{"type": "number"}, numbers, measured]},
            "references": {"type": ["number", "string", "object"]},
        },
        "additionalProperties": False,
    }


def _or_options_alone(kind: str) -> dict[str, Any]:
    return {"anyOf": [{"$ref": f"#/$defs/{kind}"}, {"type": "object", "not": {"required": ["use"]}}]}


def _spellings(component_names: list[str], kind: str, registry: Registry) -> list[str]:
    """Qualified names, and bare ones where they are unique."""
    bare = [name.rpartition(".")[2] for name in component_names]
    everywhere = [one.bare for one in registry.components(kind)]
    return sorted({*component_names, *(name for name in bare if everywhere.count(name) == 1)})


def _component(
    component: Component, options: dict[str, Any], registry: Registry, definitions: dict[str, Any]
) -> dict[str, Any]:
    """The mapping form of one component: its options beside `use`."""
    inner = options.pop("$defs", {})
    renamed = {name: f"{_key(component)}.{name}" for name in inner}
    for name, schema in inner.items():
        definitions[renamed[name]] = _renamed(schema, renamed)
    properties = {name: _renamed(schema, renamed) for name, schema in options.get("properties", {}).items()}
    properties.update(_beside_options(component.kind))
    return {
        "type": "object",
        "description": options.get("description", component.summary),
        "properties": {"use": {"enum": _spellings([component.name], component.kind, registry)}, **properties},
        "required": ["use", *options.get("required", [])],
        "additionalProperties": options.get("additionalProperties", False),
    }


def _beside_options(kind: str) -> dict[str, Any]:
    """Keys that a run file allows beside a component's options."""
    if kind == "solver":
        return {
            "assign": {
                "type": "object",
                "additionalProperties": {"type": ["string", "array"]},
                "description": "Slot to the term, or terms, that stand in it.",
            }
        }
    if kind == "constraint":
        return {"on": {"type": "string", "description": "Block or parameter pattern that it acts on."}}
    return {}


def _renamed(schema: Any, renamed: dict[str, str]) -> Any:
    if isinstance(schema, dict):
        return {
            name: f"#/$defs/{renamed.get(value.rpartition('/')[2], value.rpartition('/')[2])}"
            if name == "$ref" and isinstance(value, str) and value.startswith("#/$defs/")
            else _renamed(value, renamed)
            for name, value in schema.items()
        }
    return [_renamed(one, renamed) for one in schema] if isinstance(schema, list) else schema


def _choice(kind: str, names: list[str], registry: Registry) -> dict[str, Any]:
    """A component of one kind: a name, or a mapping with `use`."""
    return {
        "anyOf": [
            *([{"enum": _spellings(names, kind, registry)}] if names else []),
            _PYTHON,
            *({"$ref": f"#/$defs/{kind}.{name}"} for name in names),
            {"type": "object", "properties": {"use": _PYTHON}, "required": ["use"]},
        ]
    }


def _stopping(names: list[str], registry: Registry) -> dict[str, Any]:
    """Text, a list (any of them), or a mapping with one rule, `any`, `all` or `not`."""
    many = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/stopping"}}
    leaf = {"type": ["number", "string", "object", "null", "boolean"]}
    return {
        "anyOf": [
            {"type": "string"},
            many,
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
                "properties": {
                    "any": many,
                    "all": many,
                    "not": {"$ref": "#/$defs/stopping"},
                    **dict.fromkeys(_spellings(names, "stopping_rule", registry), leaf),
                },
            },
        ]
    }

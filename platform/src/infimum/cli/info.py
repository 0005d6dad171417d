"""`infimum info NAME`: what a component does, its options, and what it needs and gives."""

from __future__ import annotations

import inspect
from typing import Any

from infimum.cli.installed import list_components, plugin_data
from infimum.cli.output import as_json, say, table
from infimum.errors import InfimumError, UnknownNameError
from infimum.plugins.options import describe_options
from infimum.plugins.records import words
from infimum.plugins.registry import Component, get_registry


def describe(name: str, *, json: bool) -> None:
    """Print one component (or each that has this name), or a plugin with its components."""
    registry = get_registry()
    found = [one for one in registry.components() if one.name == name]
    found = found or [one for one in registry.components() if one.bare == name]
    plugin = next((one for one in registry.plugins if one.name == name), None)
    if not found and plugin is None:
        registry.find(name)
        raise UnknownNameError(f"no component and no plugin is called '{name}'")
    if json:
        data = [component_data(one) for one in found] if found else [plugin_data(plugin)] if plugin else []
        as_json(data[0] if len(data) == 1 else data)
        return
    if not found and plugin is not None:
        _plugin(plugin)
    for number, one in enumerate(found):
        if number:
            say()
        _component(component_data(one))


def component_data(component: Component) -> dict[str, Any]:
    """Everything that is known of a component, as plain data."""
    target = component.load()
    return {
        "name": component.name,
        "kind": component.kind,
        "label": component.label,
        "summary": component.summary,
        "plugin": component.plugin,
        "distribution": component.distribution,
        "target": component.target,
        "doc": _prose(target),
        "options": [
            {
                "name": one.name,
                "type": one.type,
                "required": one.required,
                "default": None if one.required else repr(one.default),
                "doc": one.doc,
            }
            for one in describe_options(target)
        ],
        **_contract(component.kind, target),
    }


def _prose(target: Any) -> str:
    """The docstring up to its first section."""
    text = inspect.cleandoc(getattr(target, "__doc__", None) or "")
    kept: list[str] = []
    for line in text.splitlines():
        if kept and line and set(line) == {"-"}:
            kept.pop()
            break
        kept.append(line)
    return "\n".join(kept).strip()


def _contract(kind: str, target: Any) -> dict[str, Any]:
    """What the component asks for and gives, by its kind; plain attributes, so that no problem is loaded."""
    if kind == "solver":
        return {
            "families": list(target.families),
            "metrics": list(target.metrics),
            "slots": _slots(target),
            "resume": target.resume,
            "stops": target.stops,
        }
    if kind == "oracle":
        return {
            "needs": _listed(target, "needs"),
            "supplies": _listed(target, "supplies"),
            "uses": _listed(target, "wants"),
            "exactness": str(_plain_default(target, "exactness")),
            "resume": target.resume,
        }
    if kind == "constraint" and hasattr(target, "provides"):
        return {"provides": list(target.provides)}
    if kind == "stopping_rule" and hasattr(target, "needs"):
        return {"reads": list(target.needs), "gives": str(target.status), "limit": bool(target.limit)}
    return {}


def _listed(target: Any, name: str) -> list[str]:
    value = _plain_default(target, name)
    return [value] if isinstance(value, str) else list(value)


def _plain_default(target: Any, name: str) -> Any:
    value = getattr(target, name, None)
    return "depends on options" if isinstance(value, property) or value is None else value


def _slots(target: Any) -> list[dict[str, Any]] | str:
    """The slots under default options, where the solver has defaults for all of them."""
    try:
        slots = target().slots()
    except (TypeError, InfimumError):
        return "depend on options"
    return [
        {
            "name": slot.name,
            "needs": list(slot.needs),
            "wants": list(slot.wants),
            "terms": f"{slot.at_least} to {'any number' if slot.at_most is None else slot.at_most}",
            "maps": slot.takes_map,
            "accepts": str(slot.accepts),
        }
        for slot in slots
    ]


def _component(data: dict[str, Any]) -> None:
    label = f", {data['label']}" if data["label"] else ""
    say(f"{data['name']} ({words(data['kind'])}{label}) of {data['distribution'] or data['plugin']}")
    say(f"target: {data['target']}")
    say()
    say(data["doc"] or data["summary"] or "no description")
    say()
    _options(data["options"])
    _slots_table(data.get("slots"))
    lines = [(name, data[name]) for name in _FACTS if data.get(name)]
    if lines:
        say()
    for name, value in lines:
        say(f"{name}: {', '.join(value) if isinstance(value, list) else value}")


_FACTS = (
    *("families", "metrics"),
    *("needs", "supplies", "uses", "exactness"),
    *("provides", "reads", "gives"),
    *("resume", "stops"),
)
"""What `_contract` says beside the slots, in the order in which it is shown."""


def _options(options: list[dict[str, Any]]) -> None:
    if not options:
        say("no options")
        return
    rows = [
        (one["name"], one["type"], "required" if one["required"] else one["default"], one["doc"]) for one in options
    ]
    table(rows, ("option", "type", "default", "meaning"))


def _slots_table(slots: list[dict[str, Any]] | str | None) -> None:
    if isinstance(slots, str):
        say(f"slots: {slots}")
    elif slots is not None:
        say()
        table(
            [(s["name"], ", ".join(s["needs"]), s["terms"], "yes" if s["maps"] else "no", s["accepts"]) for s in slots],
            ("slot", "needs", "terms", "maps inside", "accepts at worst"),
        )


def _plugin(record: Any) -> None:
    say(f"{record.name} (plugin, {record.status}) of {record.distribution} {record.version}")
    for label, text in (("reason", record.reason), ("module", record.module), ("needs infimum", record.requires)):
        if text:
            say(f"{label}: {' '.join(text.split())}")
    for text in record.warnings:
        say(f"warning: {' '.join(text.split())}")
    if record.components:
        say()
        list_components(None, json=False, plugin=record.name)

"""`infimum list` and `infimum plugins`: nothing but light plugin modules is imported."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from infimum.cli.output import as_json, say, table
from infimum.errors import UnknownNameError, did_you_mean
from infimum.plugins.records import Component, PluginRecord, words
from infimum.plugins.registry import get_registry

_KINDS = ("problem", "oracle", "constraint", "solver", "stopping_rule", "schedule")
"""Kinds in the order in which a run file names them; others follow by name."""


def list_components(kind: str | None, *, json: bool, plugin: str | None = None) -> None:
    """Print the installed components of one kind, or of all; of one plugin, or of all."""
    registry = get_registry()
    known = [*_KINDS, *(one for one in registry.kinds() if one not in _KINDS)]
    wanted = known if kind is None else [_kind(kind, known)]
    found = [one for name in wanted for one in registry.components(name) if plugin in (None, one.plugin)]
    if json:
        as_json([asdict(one) for one in found])
        return
    if not found:
        say(f"no {words(wanted[0]) if kind else 'component'} is installed")
        return
    table([(words(one.kind), one.name, _line(one)) for one in found], ("kind", "name", "summary"))
    aside = [one for one in registry.plugins if one.broken]
    if aside and plugin is None:
        say()
        say(f"set aside: {', '.join(f'{one.name} ({one.status})' for one in aside)}; see: infimum plugins")


def list_plugins(*, json: bool) -> None:
    """Print the installed plugins with their status and its reason."""
    registry = get_registry()
    if json:
        as_json({"plugins": [plugin_data(one) for one in registry.plugins], "warnings": list(registry.warnings)})
        return
    rows = [
        (one.name, one.status, f"{one.distribution} {one.version}".strip(), str(len(one.components)))
        for one in registry.plugins
    ]
    table(rows, ("plugin", "status", "distribution", "components"))
    notes: list[tuple[str, str, str]] = [(one.name, one.status, one.reason) for one in registry.plugins if one.reason]
    notes += [(one.name, "warning", text) for one in registry.plugins for text in one.warnings]
    notes += [("", "warning", text) for text in registry.warnings]
    if notes:
        say()
    for name, status, text in notes:
        say(": ".join(part for part in (name, status, " ".join(text.split())) if part))


def plugin_data(record: PluginRecord) -> dict[str, Any]:
    """A plugin as plain data."""
    return {
        "name": record.name,
        "status": record.status,
        "reason": record.reason,
        "distribution": record.distribution,
        "version": record.version,
        "module": record.module,
        "requires": record.requires,
        "warnings": list(record.warnings),
        "components": [one.name for one in record.components],
    }


def _line(one: Component) -> str:
    label = f"[{one.label}] " if one.label else ""
    return f"{label}{one.summary}"


def _kind(text: str, known: list[str]) -> str:
    """A kind from how a user may write it: `solvers`, `stopping-rules`."""
    word = text.lower().replace("-", "_").replace(" ", "_")
    for kind in known:
        if word in (kind, kind + "s"):
            return kind
    raise UnknownNameError(f"no kind of component is called '{text}'; {did_you_mean(word, known)}")

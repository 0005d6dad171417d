"""`infimum doctor`: Python, libraries, plugins; metadata and light plugin modules only, unless asked for more."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

from packaging.requirements import Requirement

from infimum.cli.installed import plugin_data
from infimum.cli.output import as_json, say, table
from infimum.errors import PluginError
from infimum.plugins.registry import Registry, get_registry
from infimum.versions import version_of

_OPTIONAL = ("torch", "cvxpy", "optuna", "scikit-learn", "matplotlib", "plotly", "joblib")
_OLDEST = (3, 11)


def examine(*, json: bool, load: bool = False) -> int:
    """Print the state of this installation; 1 if something is broken. `load` imports every component too."""
    libraries = _libraries()
    registry = get_registry()
    problems = [one["problem"] for one in libraries if one["problem"]]
    if sys.version_info[:2] < _OLDEST:
        problems.insert(0, f"Python {platform.python_version()} is too old; infimum needs 3.11 or later")
    if version_of("infimum") is None:
        problems.append("infimum itself is not installed, only on the path: no entry point works; pip install infimum")
    for plugin in registry.plugins:
        if plugin.broken:
            problems.append(f"plugin {plugin.name} is {plugin.status}: {' '.join(plugin.reason.split())}")
    if load:
        problems += _unloadable(registry)
    hints = [f"plugin {one.name}: {' '.join(text.split())}" for one in registry.plugins for text in one.warnings]
    hints += registry.warnings
    if json:
        as_json(
            {
                "python": platform.python_version(),
                "executable": sys.executable,
                "platform": platform.platform(),
                "infimum": version_of("infimum"),
                "libraries": libraries,
                "problems": problems,
                "hints": hints,
                "plugins": [plugin_data(one) for one in registry.plugins],
            }
        )
    else:
        _print(libraries, registry.plugins, problems, hints, loaded=load)
    return 1 if problems else 0


def _unloadable(registry: Registry) -> list[str]:
    """Components whose target cannot be imported, each with the reason."""
    faults = []
    for component in registry.components():
        try:
            component.load()
        except PluginError as error:
            faults.append(" ".join(str(error).split()))
    return faults


def _libraries() -> list[dict[str, Any]]:
    """What infimum itself requires, against what is installed; then libraries that plugins build on."""
    rows = []
    for text in importlib.metadata.requires("infimum") or () if version_of("infimum") else ():
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = version_of(requirement.name)
        problem = ""
        if found is None:
            problem = f"{requirement.name} is not installed: pip install '{text}'"
        elif not requirement.specifier.contains(found, prereleases=True):
            problem = f"{requirement.name} {found} does not meet {requirement.specifier}: pip install '{text}'"
        rows.append(
            {"name": requirement.name, "version": found, "range": str(requirement.specifier), "problem": problem}
        )
    rows.sort(key=lambda one: str(one["name"]))
    rows += [{"name": name, "version": version_of(name), "range": "optional", "problem": ""} for name in _OPTIONAL]
    return rows


def _print(
    libraries: list[dict[str, Any]], plugins: Any, problems: list[str], hints: list[str], *, loaded: bool
) -> None:
    say(f"infimum {version_of('infimum') or '(not installed)'}")
    say(f"Python {platform.python_version()} ({sys.executable}) on {platform.platform()}")
    say()
    table([(one["name"], one["version"] or "-", one["range"]) for one in libraries], ("library", "version", "needed"))
    say()
    rows = [(one.name, one.status, f"{one.distribution} {one.version}".strip()) for one in plugins]
    table(rows, ("plugin", "status", "distribution"))
    say()
    for line in problems:
        say(f"problem: {line}")
    for line in hints:
        say(f"hint: {line}")
    if not problems:
        say("nothing is broken" if loaded else "nothing is broken (components are not imported for this: see --load)")

"""Import plugins and collect what they register; a plugin that fails is set aside and everything else goes on.

pluggy's own `load_setuptools_entrypoints` stops at the first import error and drops the second of two
distributions with one entry-point name without a word.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import pluggy

from infimum.errors import InfimumError, did_you_mean
from infimum.plugins import hookspecs
from infimum.plugins.failure import explain
from infimum.plugins.hookspecs import REGISTRATION, RUN_HOOKS, Register
from infimum.plugins.records import SNAKE_CASE, TARGET, Component, PluginRecord

_HOOKS = (*REGISTRATION, *RUN_HOOKS)


def new_manager() -> pluggy.PluginManager:
    manager = pluggy.PluginManager("infimum")
    manager.add_hookspecs(hookspecs)
    return manager


def load(records: Iterable[PluginRecord], manager: pluggy.PluginManager) -> None:
    """Import every record with status `found`, fill in its components and register its hooks with `manager`."""
    for record in records:
        if record.status == "found":
            _load(record, manager)


def _load(record: PluginRecord, manager: pluggy.PluginManager) -> None:
    try:
        plugin = _import(record)
        # A manager of its own: a plugin that fails half way leaves no trace in the common one.
        trial = new_manager()
        trial.register(plugin, record.name)
        warnings = lint(plugin, trial)
        collected = _Collector(record, warnings)
        for name, kind in REGISTRATION.items():
            getattr(trial.hook, name)(register=collected.register(kind))
        manager.register(plugin, record.name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        record.set_aside("failed", _reason(error, record))
        return
    record.status = "active"
    record.components = tuple(sorted(collected.components.values(), key=lambda one: (one.kind, one.name)))
    record.warnings = (*record.warnings, *warnings)


def _import(record: PluginRecord) -> object:
    assert record.entry is not None
    plugin: object = record.entry.load()
    if inspect.isclass(plugin) or inspect.isroutine(plugin):
        raise InfimumError(f"entry point '{record.module}' names a class or a function; it must name a module")
    return plugin


def _reason(error: BaseException, record: PluginRecord) -> str:
    module = record.module.partition(":")[0].strip()
    root = module.partition(".")[0]
    if isinstance(error, InfimumError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"its entry point names module '{module}', but '{error.name}' does not exist; reinstall the plugin"
    if isinstance(error, pluggy.PluginValidationError):
        return "; ".join(str(error).splitlines())
    return explain(error, root)


class _Collector:
    """Gathers the components of one plugin; what is malformed becomes a warning and is left out."""

    def __init__(self, record: PluginRecord, warnings: list[str]) -> None:
        self.record, self.warnings = record, warnings
        self.components: dict[tuple[str, str], Component] = {}

    def register(self, fixed: str | None) -> Register:
        """The function that a hook receives; `fixed` is the component kind of the hook, if it has one."""

        def register(name: str, target: str, *, kind: str | None = None, summary: str = "") -> None:
            self._add(name, target, fixed or kind, (kind or "") if fixed else "", summary)

        return register

    def _add(self, name: Any, target: Any, kind: Any, label: str, summary: Any) -> None:
        fault = _fault(name, target, kind)
        if fault is None and (kind, name) in self.components:
            fault = (
                f"is registered twice, as '{self.components[kind, name].target}' and as '{target}'; the first is used"
            )
        if fault is not None:
            self.warnings.append(f"{kind or 'component'} {name!r} {fault}")
            return
        self.components[kind, name] = Component(
            name=f"{self.record.name}.{name}",
            kind=kind,
            target=target,
            summary=str(summary),
            label=label,
            plugin=self.record.name,
            distribution=self.record.distribution,
        )


def _fault(name: Any, target: Any, kind: Any) -> str | None:
    if not isinstance(name, str) or not SNAKE_CASE.fullmatch(name):
        return "is left out: its name must be in snake_case, without the plugin's own name"
    if not isinstance(target, str) or not TARGET.fullmatch(target):
        return f"is left out: its target must be a string 'package.module:attribute', got {target!r}"
    if not isinstance(kind, str) or not SNAKE_CASE.fullmatch(kind):
        return f"is left out: infimum_components needs kind='schedule' or another word, got {kind!r}"
    return None


def lint(plugin: object, manager: pluggy.PluginManager) -> list[str]:
    """What looks wrong in a plugin's hooks although pluggy takes it: they would be ignored without a word."""
    found = [fault for name in dir(plugin) if (fault := _unmarked(name, getattr(plugin, name, None)))]
    for caller in manager.get_hookcallers(plugin) or ():
        for impl in caller.get_hookimpls():
            if not caller.has_spec() and not impl.optionalhook:
                found.append(f"hook '{caller.name}' is unknown and never called; {did_you_mean(caller.name, _HOOKS)}")
            found.extend(
                f"argument '{name}' of hook {caller.name} has a default value and is never filled; remove the default"
                for name in impl.kwargnames
            )
            if impl.wrapper or impl.hookwrapper:
                found.append(f"hook {caller.name} is a wrapper; wrappers are not called")
    return found


def _unmarked(name: str, function: object) -> str | None:
    if not name.startswith("infimum_") or not inspect.isroutine(function) or hasattr(function, "infimum_impl"):
        return None
    code = getattr(function, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"function {name} has no @hook and is ignored; add it: from infimum.plugins import hook{place}"

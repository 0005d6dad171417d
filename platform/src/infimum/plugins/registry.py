"""The registry: installed plugins and their components, found by name and imported at first use."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution
from typing import Any

import pluggy

from infimum.errors import InputError, PluginError, UnknownNameError, did_you_mean
from infimum.plugins.discovery import discover
from infimum.plugins.failure import explain
from infimum.plugins.loader import load, new_manager
from infimum.plugins.records import Component, PluginRecord, article, words

__all__ = ["Component", "PluginRecord", "Registry", "build_registry", "get_registry", "reset_registry"]

_log = logging.getLogger("infimum")


class Registry:
    """Installed plugins and what they registered.

    Attributes
    ----------
    plugins : tuple of PluginRecord
        Sorted by name, with those that were set aside.
    hooks : pluggy.PluginManager
        The active plugins; use `call_hook`, which outlives a hook that fails.
    warnings : tuple of str
        About the environment variables that choose plugins.
    """

    def __init__(
        self, plugins: Iterable[PluginRecord], hooks: pluggy.PluginManager | None = None, warnings: Iterable[str] = ()
    ) -> None:
        self.plugins = tuple(plugins)
        self.hooks = new_manager() if hooks is None else hooks
        self.warnings = tuple(warnings)
        self._components = tuple(
            sorted((one for plugin in self.plugins for one in plugin.components), key=lambda one: (one.kind, one.name))
        )

    def components(self, kind: str | None = None) -> tuple[Component, ...]:
        """All components, or those of one kind, sorted by kind and name."""
        return tuple(one for one in self._components if kind is None or one.kind == kind)

    def kinds(self) -> tuple[str, ...]:
        """Component kinds of which something is registered."""
        return tuple(sorted({one.kind for one in self._components}))

    def find(self, name: str, kind: str | None = None) -> Component:
        """The component called `name`.

        Parameters
        ----------
        name : str
            Qualified (`splitting.proximal_gradient`), or bare while only one component has it.
        kind : str, optional
            Component kind; None looks in all.

        Raises
        ------
        UnknownNameError
            If there is none; names the nearest, or the kind under which the name exists, or the plugin that was set
            aside.
        InputError
            If a bare name fits several.
        """
        fitting = self._fitting(name, kind)
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            raise UnknownNameError(self._unknown(name, kind))
        listed = [f"{one.name} ({words(one.kind)})" if kind is None else one.name for one in fitting]
        raise InputError(f"{words(kind or 'component')} '{name}' is ambiguous: {', '.join(listed)}; write one of them")

    def _fitting(self, name: str, kind: str | None) -> list[Component]:
        of_kind = self.components(kind)
        return [one for one in of_kind if one.name == name] or [one for one in of_kind if one.bare == name]

    def _unknown(self, name: str, kind: str | None) -> str:
        said = f"no {words(kind or 'component')} called '{name}'"
        elsewhere = self._fitting(name, None)
        if elsewhere:
            return f"{said}; {elsewhere[0].name} is {article(words(elsewhere[0].kind))}"
        plugin = name.partition(".")[0]
        aside = [one for one in self.plugins if one.name == plugin and one.status not in ("active", "shadowed")]
        if aside and "." in name:
            return f"{said}: plugin {plugin} is {aside[0].status}: {aside[0].reason}"
        where = f"`infimum list{f' {kind}' if kind else ''}`"
        return f"{said}; {did_you_mean(name, (one.name for one in self.components(kind)), where=where)}"

    def call_hook(self, hook: str, **context: Any) -> list[Any]:
        """Call a run-level hook of every active plugin; one that raises is logged and the others go on.

        Returns
        -------
        list
            What they returned, sorted by plugin name, without None.
        """
        caller = getattr(self.hooks.hook, hook)
        results = []
        for impl in sorted(caller.get_hookimpls(), key=lambda one: one.plugin_name):
            if impl.wrapper or impl.hookwrapper:
                continue
            try:
                answer = impl.function(*(context[name] for name in impl.argnames))
            except (Exception, SystemExit) as error:
                _log.error("plugin %s: hook %s failed: %s", impl.plugin_name, hook, explain(error))
                _log.debug("plugin %s: hook %s", impl.plugin_name, hook, exc_info=True)
            else:
                if answer is not None:
                    results.append(answer)
        return results

    def require_clean(self) -> None:
        """Raise `PluginError`, listing everything, if a plugin was set aside or has warnings (not if disabled)."""
        faults = [*self.warnings, *(fault for plugin in self.plugins for fault in plugin.faults)]
        if faults:
            raise PluginError("\n  ".join(("strict plugins: not everything that is installed is in order", *faults)))


def build_registry(
    distributions: Iterable[Distribution] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    host: str | None = None,
) -> Registry:
    """A registry of its own, from `distributions` and `environ` (by default the process's); see `discover`."""
    records, warnings = discover(distributions, environ=environ, host=host)
    manager = new_manager()
    load(records, manager)
    return Registry(records, manager, warnings)


_registry: Registry | None = None


def get_registry(strict: bool = False) -> Registry:
    """The registry of this process, built at the first call.

    Parameters
    ----------
    strict : bool, default False
        Raise `PluginError` with all faults if any plugin was set aside or has warnings.
    """
    global _registry
    if _registry is None:
        _registry = build_registry()
    if strict:
        _registry.require_clean()
    return _registry


def reset_registry() -> None:
    """Forget the registry, so that the next `get_registry` looks at what is installed then."""
    global _registry
    _registry = None

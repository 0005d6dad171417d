"""From a name or a mapping to a component: `{"use": "splitting.proximal_gradient", "step": 0.1}`."""

from __future__ import annotations

import functools
import inspect
import numbers
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from infimum.errors import InfimumError, InputError, PluginError
from infimum.plugins.failure import explain
from infimum.plugins.options import Issue, check_options, parameters, return_type
from infimum.plugins.python_target import PREFIX, import_python
from infimum.plugins.records import words
from infimum.plugins.registry import Registry, get_registry

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Built:
    """A component ready for use.

    Attributes
    ----------
    instance : object
    name : str
        Qualified name, `python:module:attribute`, or the class name of an object given from Python.
    options : dict
        The options that were given, checked; nested components as mappings with `use`.
    """

    instance: Any
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> dict[str, Any]:
        """What builds the same again."""
        return {"use": self.name, **self.options}


def build(
    spec: Any,
    kind: str | None,
    *,
    base: str | pathlib.Path | None = None,
    allow_python: bool = True,
    registry: Registry | None = None,
) -> Built:
    """Build a component.

    Parameters
    ----------
    spec : str, mapping, class, object or Built
        A name, `python:module:attribute`, a mapping `{"use": name, option: value, …}`, or the object itself.
        A `Built` comes back as it is.
        Mappings with `use` among the options are built first.
    kind : str or None
        Component kind, such as "solver"; None takes any.
    base : path, optional
        Folder that comes first for `python:` references.
    allow_python : bool, default True
        False refuses `python:` references.
    registry : Registry, optional
        By default that of the process.

    Raises
    ------
    InputError
        With all mistakes, one a line.
    PluginError
        If the component's plugin cannot be imported.
    """
    built, issues = check_build(spec, kind, base=base, allow_python=allow_python, registry=registry)
    if built is not None:
        return built
    cause = issues[0].cause
    if len(issues) == 1 and isinstance(cause, InputError | PluginError) and str(cause) == issues[0].message:
        raise cause
    raise InputError("\n".join(one.message for one in issues)) from cause


def check_build(
    spec: Any,
    kind: str | None,
    path: Path = (),
    *,
    base: str | pathlib.Path | None = None,
    allow_python: bool = True,
    registry: Registry | None = None,
) -> tuple[Built | None, list[Issue]]:
    """Build a component or say everything that is wrong with its specification.

    Parameters are those of `build`; `path` is where the specification stands in the run file.

    Returns
    -------
    built : Built or None
        None when there are issues.
    issues : list of Issue
        With paths from the root of the run file.
    """
    folder = None if base is None else pathlib.Path(base)
    return _Builder(folder, allow_python, registry).build(spec, kind, path)


class _Builder:
    def __init__(self, base: pathlib.Path | None, allow_python: bool, registry: Registry | None) -> None:
        self.base, self.allow_python, self.registry = base, allow_python, registry

    def build(self, spec: Any, kind: str | None, path: Path) -> tuple[Built | None, list[Issue]]:
        if isinstance(spec, Built):
            return spec, []
        if isinstance(spec, str):
            return self._by_name(spec, kind, {}, path, path)
        if inspect.isclass(spec):
            return self._construct(spec, kind, spec.__name__, {}, path)
        if not isinstance(spec, Mapping):
            return Built(spec, _name_of(spec)), []
        options = {str(name): value for name, value in spec.items() if name != "use"}
        name = spec.get("use")
        if not isinstance(name, str):
            what = words(kind or "component")
            said = f"got {type(name).__name__} {name!r}" if "use" in spec else "there is no 'use'"
            where = (*path, "use") if "use" in spec else path
            return None, [Issue(where, f"{what}: 'use' must name a {what}, such as use: plugin.name; {said}")]
        return self._by_name(name, kind, options, path, (*path, "use"))

    def _by_name(
        self, name: str, kind: str | None, options: dict[str, Any], path: Path, name_path: Path
    ) -> tuple[Built | None, list[Issue]]:
        try:
            target, name, kind = self._target(name, kind)
        except InfimumError as error:
            # The options cannot be checked, but what is nested in them can.
            return None, [Issue(name_path, str(error), error), *self._nested_all(options, path)[3]]
        return self._construct(target, kind, name, options, path)

    def _target(self, name: str, kind: str | None) -> tuple[Any, str, str | None]:
        """What a name stands for, its qualified form, and its kind."""
        if not name.startswith(PREFIX):
            registry = get_registry() if self.registry is None else self.registry
            component = registry.find(name, kind)
            return component.load(), component.name, component.kind
        if not self.allow_python:
            raise InputError(f"'{name}': references to Python code are refused (--no-python)")
        return import_python(name, self.base), name, kind

    def _construct(
        self, target: Any, kind: str | None, name: str, options: dict[str, Any], path: Path
    ) -> tuple[Built | None, list[Issue]]:
        what = f"{words(kind or 'component')} {name}"
        given, plain, failed, issues = self._nested_all(options, path)
        if not (inspect.isclass(target) or inspect.isroutine(target) or isinstance(target, functools.partial)):
            issues += [
                Issue((*path, one), f"{what} is a ready object and takes no options, got '{one}'") for one in options
            ]
            return (None if issues else Built(target, name)), issues
        as_it_is = kind == "problem" and not inspect.isclass(target) and is_objective(target, options)
        values, found = check_options(target, given, what, unchecked=failed, positional=not as_it_is)
        issues += [Issue((*path, *one.path), one.message, one.cause) for one in found]
        if issues:
            return None, issues
        try:
            instance = (functools.partial(target, **values) if values else target) if as_it_is else target(**values)
        except KeyboardInterrupt:
            raise
        except Exception as error:
            # A solver that names itself in its own errors is not named twice.
            return None, [Issue(path, f"{what}: {_said(error, target).removeprefix(f'{name}: ')}", error)]
        return Built(instance, name, {one: plain.get(one, value) for one, value in values.items()}), []

    def _nested_all(
        self, options: Mapping[str, Any], path: Path
    ) -> tuple[dict[str, Any], dict[str, Any], frozenset[str], list[Issue]]:
        """Options with nested components built; those as mappings; names of options that failed; issues."""
        given: dict[str, Any] = {}
        plain: dict[str, Any] = {}
        failed: set[str] = set()
        issues: list[Issue] = []
        for name, value in options.items():
            built, written, wrong = self._nested(value, (*path, name))
            issues += wrong
            if wrong:
                failed.add(name)
                continue
            given[name] = built
            if built is not value:
                plain[name] = written
        return given, plain, frozenset(failed), issues

    def _nested(self, value: Any, path: Path) -> tuple[Any, Any, list[Issue]]:
        """A value with components and references built, the same as it was written but with qualified names, issues."""
        if isinstance(value, Mapping) and "use" in value:
            built, issues = self.build(value, None, path)
            return (built.instance, built.spec, []) if built is not None else (None, None, issues)
        if isinstance(value, str) and value.startswith(PREFIX):
            return self._reference(value, path)
        if isinstance(value, Mapping):
            parts = {key: self._nested(one, (*path, key)) for key, one in value.items()}
            if all(part[0] is value[key] for key, part in parts.items()) and not _issues(parts.values()):
                return value, value, []
            return (
                {key: part[0] for key, part in parts.items()},
                {key: part[1] for key, part in parts.items()},
                _issues(parts.values()),
            )
        if isinstance(value, list | tuple):
            items = [self._nested(one, (*path, place)) for place, one in enumerate(value)]
            if all(item[0] is one for item, one in zip(items, value, strict=True)) and not _issues(items):
                return value, value, []
            return [item[0] for item in items], [item[1] for item in items], _issues(items)
        return value, value, []

    def _reference(self, reference: str, path: Path) -> tuple[Any, Any, list[Issue]]:
        """What an option names by `python:module:attribute`: the object as it is, where `{use: python:…}` calls it."""
        try:
            return self._target(reference, None)[0], reference, []
        except InfimumError as error:
            return None, None, [Issue(path, str(error), error)]


def _issues(parts: Any) -> list[Issue]:
    return [issue for part in parts for issue in part[2]]


def _name_of(instance: Any) -> str:
    return getattr(instance, "__name__", None) or type(instance).__name__


def _said(error: Exception, target: Any) -> str:
    """What a target that refused its options says; the place is told where the error is not meant for users."""
    if isinstance(error, InfimumError) or type(error) is ValueError:
        return str(error) or type(error).__name__
    module = getattr(target, "__module__", "") or ""
    return explain(error, module.partition(".")[0])


def is_objective(target: Any, options: Mapping[str, Any]) -> bool:
    """Whether a function is an objective `f(x, …)` itself rather than one that makes a problem from options.

    It is when its first parameter has no default, is not among the options and is not annotated as an option would
    be, and its return type is not that of a problem.
    """
    made = return_type(target)
    if inspect.isclass(made) and any(hasattr(made, name) for name in ("family", "terms", "capabilities")):
        return False
    known, _ = parameters(target)
    if not known or not known[0].required or known[0].name in options:
        return False
    return not (inspect.isclass(known[0].annotation) and issubclass(known[0].annotation, _OPTION_TYPES))


_OPTION_TYPES = (str, numbers.Number, pathlib.PurePath, Mapping)

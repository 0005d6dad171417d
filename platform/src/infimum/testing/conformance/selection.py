"""What the tests are parametrized over: plugins, components by kind, cases of solvers and oracles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from infimum.errors import PluginError
from infimum.plugins.records import Component, PluginRecord, words
from infimum.plugins.registry import get_registry

SUPPORTS = ("numpy", "torch", "float32")


class Broken:
    """Stands for cases that could not be made; the test that gets it fails with the error."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name, self.error = name, error


def wanted(config: pytest.Config) -> list[str]:
    """Plugins that the user narrowed the kit to; empty for all."""
    return list(config.getoption("infimum_plugin", default=[]))


def plugins(config: pytest.Config) -> list[PluginRecord]:
    """The installed plugins that are looked at, disabled ones left out."""
    names = wanted(config)
    return [one for one in get_registry().plugins if one.name in names or not (names or one.status == "disabled")]


def components(config: pytest.Config, kind: str | None = None) -> list[Component]:
    """Their components, of one kind or of all."""
    names = wanted(config)
    return [one for one in get_registry().components(kind) if not names or one.plugin in names]


def parametrize(metafunc: pytest.Metafunc, argument: str, found: Sequence[Any], what: str) -> None:
    """One test for each of `found`, which have names; fails where there is nothing at all to look at.

    A kind of which the chosen plugins register nothing is skipped.
    """
    if argument not in metafunc.fixturenames:
        return
    names = wanted(metafunc.config)
    if not components(metafunc.config):
        chosen = f"plugin {', '.join(names)}" if names else "what is installed"
        pytest.fail(f"{chosen} has no components: there is nothing to test", pytrace=False)
    if found:
        metafunc.parametrize(argument, found, ids=[one.name for one in found])
    else:
        reason = f"no {what} is registered" + (f" by {', '.join(names)}" if names else "")
        metafunc.parametrize(argument, [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="none")])


def cases(config: pytest.Config, kind: str, make: Callable[[Component], Iterable[Any]]) -> list[Any]:
    """Cases of all components of a kind. A component without any becomes one that fails, with what to do."""
    found: list[Any] = []
    for component in components(config, kind):
        try:
            mine = list(make(component))
        except Exception as error:
            mine = [Broken(component.name, error)]
        found += mine
    return found


def sound(case: Any) -> Any:
    """The case, unless it could not be made."""
    if isinstance(case, Broken):
        pytest.fail(f"{case.name}: no case could be made: {type(case.error).__name__}: {case.error}", pytrace=False)
    return case


def load(component: Component) -> Any:
    """The target of a component; a test fails without it."""
    try:
        return component.load()
    except PluginError as error:
        pytest.fail(str(error), pytrace=False)


def supports(target: Any, word: str) -> None:
    """Skip what a component does not claim."""
    claimed = getattr(target, "supports", SUPPORTS)
    if word not in (claimed() if callable(claimed) else claimed):
        pytest.skip(f"not claimed: supports = {tuple(claimed)}")


def call_it(component: Component) -> str:
    """A component in a sentence."""
    return f"{words(component.kind)} {component.name}"

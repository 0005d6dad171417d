"""The pytest plugin: options of the conformance kit, its exclusions, and two fixtures. Imports nothing until asked.

Options: `--infimum-plugin NAME` (again for more) looks at the components of these plugins only.

Exclusions, each with its reason, stand in the ini file or come from a hook:

    [pytest]
    infimum_exclude =
        test_resume_is_exact acme.annealing: the sampler has no public state

    # conftest.py
    def pytest_infimum_exclude():
        return [("test_resume_is_exact acme.*", "the sampler has no public state")]

The first word is a pattern of test names, the second one of the names that stand in the test's brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from infimum.plugins.registry import Registry
    from infimum.result import Result

KIT = "infimum.testing.conformance"


class Hooks:
    """Hooks of the kit."""

    @pytest.hookspec
    def pytest_infimum_exclude(self, config: pytest.Config) -> Iterable[tuple[str, str]]:  # type: ignore[empty-body]
        """Pairs of a pattern "TEST COMPONENT" and a reason: tests of the conformance kit to leave out."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("infimum", "conformance kit of infimum")
    group.addoption(
        "--infimum-plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="conformance kit: only the components of this plugin (may be given several times)",
    )
    parser.addini("infimum_exclude", "conformance kit: lines 'TEST COMPONENT: reason' to leave out", type="linelist")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kit = [item for item in items if getattr(item, "module", None) and item.module.__name__.startswith(KIT)]  # type: ignore[attr-defined]
    if not kit:
        return
    excluded = list(exclusions(config))
    for item in kit:
        name, _, inside = item.name.partition("[")
        for test, component, reason in excluded:
            inner = inside.removesuffix("]")
            if fnmatchcase(name, test) and (fnmatchcase(inner, component) or fnmatchcase(inner, f"{component}-*")):
                item.add_marker(pytest.mark.skip(reason=f"excluded: {reason}"))


def exclusions(config: pytest.Config) -> Iterable[tuple[str, str, str]]:
    """Test pattern, component pattern and reason of every exclusion.

    Raises
    ------
    pytest.UsageError
        For one without a reason or of another form.
    """
    given: list[tuple[str, str]] = []
    for line in config.getini("infimum_exclude"):
        pattern, _, reason = line.partition(":")
        given.append((pattern, reason))
    for group in config.hook.pytest_infimum_exclude(config=config):
        given += list(group)
    for pattern, reason in given:
        words = pattern.split()
        if len(words) != 2 or not reason.strip():
            raise pytest.UsageError(f"infimum_exclude: {pattern!r}: expected 'TEST COMPONENT: reason'")
        yield words[0], words[1], reason.strip()


@pytest.fixture
def infimum_host() -> Registry:
    """A registry with the host's own components only, whatever is installed."""
    from infimum.plugins.registry import build_registry

    return build_registry([], environ={})


@pytest.fixture
def run_text(tmp_path: Path) -> Callable[..., Result]:
    """`run_text(yaml, *overrides)`: solve what the text of a run file states, with the installed plugins."""

    def run(text: str, *overrides: str) -> Any:
        from infimum.runfile import RunFile

        file = tmp_path / "run.yaml"
        file.write_text(text, encoding="utf-8")
        return RunFile.load(file, overrides).prepare().solve()

    return run

"""Every plugin: active without complaints, in range, with a light entry module."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from infimum.plugins.records import PluginRecord
from infimum.testing.conformance.selection import parametrize, plugins

HEAVY = ("numpy", "scipy", "torch", "cvxpy", "optuna", "sklearn", "matplotlib", "plotly", "pandas", "joblib", "dask")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "plugin", plugins(metafunc.config), "plugin")


def test_it_is_active_without_warnings(plugin: PluginRecord) -> None:
    assert plugin.status == "active", f"plugin {plugin.name} is {plugin.status}: {plugin.reason}"
    assert not plugin.warnings, "\n".join(plugin.warnings)


def test_it_registers_something(plugin: PluginRecord) -> None:
    assert plugin.components, f"plugin {plugin.name} registers no component"


def test_it_says_which_host_it_fits(plugin: PluginRecord) -> None:
    if plugin.distribution == "infimum":
        pytest.skip("part of the host")
    assert ">" in plugin.requires and "<" in plugin.requires, (
        f"{plugin.distribution} requires infimum{plugin.requires or ' in any version'}; state a range: 'infimum>=A,<B'"
    )


def test_its_entry_module_is_light(plugin: PluginRecord) -> None:
    """A fresh interpreter imports it without any heavy library and without the modules of its components."""
    targets = {one.target.partition(":")[0] for one in plugin.components} - {plugin.module}
    watched = sorted({*HEAVY, *targets})
    code = f"import sys, json; import {plugin.module}; print(json.dumps([n for n in {watched!r} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert not loaded, f"importing {plugin.module} loads {', '.join(loaded)}; name targets as strings"

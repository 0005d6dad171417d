"""The registry: finding components by name, loading targets, calling run-level hooks."""

from __future__ import annotations

import logging
import sys

import pytest

from infimum.errors import InputError, PluginError, UnknownNameError, did_you_mean
from infimum.plugins import hook, registry
from infimum.plugins.loader import new_manager
from infimum.plugins.records import Component, PluginRecord
from infimum.plugins.registry import Registry, build_registry, get_registry, reset_registry


def component(name, kind, target="collections:OrderedDict", **more):
    plugin = name.partition(".")[0]
    return Component(name, kind, target, plugin=plugin, distribution=f"infimum-{plugin}", **more)


@pytest.fixture
def small():
    return Registry(
        [
            PluginRecord(
                "alpha",
                "infimum-alpha",
                "1.0",
                "active",
                components=(
                    component("alpha.prox", "oracle"),
                    component("alpha.lasso", "problem"),
                    component("alpha.descent", "solver"),
                ),
            ),
            PluginRecord(
                "beta",
                "infimum-beta",
                "1.0",
                "active",
                components=(
                    component("beta.prox", "oracle"),
                    component("beta.spsa", "oracle"),
                    component("beta.spsa", "solver"),
                ),
            ),
            PluginRecord("gamma", "infimum-gamma", "1.0", "failed", "ImportError: no licence"),
        ]
    )


def test_components_are_sorted_and_filtered(small):
    assert [one.name for one in small.components("oracle")] == ["alpha.prox", "beta.prox", "beta.spsa"]
    assert len(small.components()) == 6
    assert small.kinds() == ("oracle", "problem", "solver")


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("alpha.lasso", "problem", "alpha.lasso"),
        ("lasso", "problem", "alpha.lasso"),
        ("lasso", None, "alpha.lasso"),
        ("spsa", "solver", "beta.spsa"),
        ("beta.prox", "oracle", "beta.prox"),
    ],
)
def test_find(small, name, kind, found):
    assert small.find(name, kind).name == found


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("alpha.laso", "problem", "no problem called 'alpha.laso'; did you mean 'alpha.lasso'?"),
        ("descnt", "solver", "no solver called 'descnt'; did you mean 'alpha.descent'?"),
        ("zzz", "problem", "no problem called 'zzz'; there are: alpha.lasso"),
        ("alpha.descent", "oracle", "no oracle called 'alpha.descent'; alpha.descent is a solver"),
        ("alpha.prox", "solver", "no solver called 'alpha.prox'; alpha.prox is an oracle"),
        ("gamma.tool", "solver", "no solver called 'gamma.tool': plugin gamma is failed: ImportError: no licence"),
        ("any", "stopping_rule", "no stopping rule called 'any'; there is none"),
    ],
)
def test_unknown_names_help(small, name, kind, said):
    with pytest.raises(UnknownNameError) as caught:
        small.find(name, kind)
    assert str(caught.value) == said


def test_of_many_names_the_nearest_are_shown():
    names = [f"plugin{k}.method{k}" for k in range(200)]
    said = did_you_mean("zzz3", names, where="`infimum list solver`")
    assert said.startswith("the nearest of 200 are: ") and said.endswith("; `infimum list solver` lists all")
    assert said.count(", ") == 4 and "3" in said
    with pytest.raises(UnknownNameError) as caught:
        get_registry().find("zzz")
    assert len(str(caught.value)) < 300 and str(caught.value).endswith("; `infimum list` lists all")


def test_an_ambiguous_bare_name_lists_all(small):
    with pytest.raises(InputError, match=r"oracle 'prox' is ambiguous: alpha\.prox, beta\.prox; write one of them"):
        small.find("prox", "oracle")
    with pytest.raises(InputError, match=r"beta\.spsa \(oracle\), beta\.spsa \(solver\)"):
        small.find("beta.spsa")


def test_load_gives_the_target():
    import fractions

    assert component("a.b", "solver", "fractions:Fraction").load() is fractions.Fraction
    assert component("a.b", "solver", "fractions:Fraction.limit_denominator").load() is (
        fractions.Fraction.limit_denominator
    )


def test_load_names_the_nearest_attribute():
    with pytest.raises(PluginError) as caught:
        component("a.b", "solver", "fractions:Fracton").load()
    assert str(caught.value) == (
        "solver a.b of plugin a points to 'fractions:Fracton', but 'fractions' has no 'Fracton'; "
        "did you mean 'Fraction'?"
    )


def test_load_names_the_missing_library(tmp_path, monkeypatch):
    (tmp_path / "heavy_component_module.py").write_text("import absent_library_of_weight\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError) as caught:
        component("a.b", "solver", "heavy_component_module:Solver").load()
    said = str(caught.value)
    assert "solver a.b of plugin a could not be imported" in said
    assert "heavy_component_module.py:1" in said
    assert "module 'absent_library_of_weight' is not installed: pip install --upgrade infimum-a" in said


def test_load_survives_system_exit(tmp_path, monkeypatch):
    (tmp_path / "exiting_component_module.py").write_text("import sys\nsys.exit('bye')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match="SystemExit: bye"):
        component("a.b", "solver", "exiting_component_module:Solver").load()


class Watcher:
    def __init__(self, answer):
        self.answer = answer

    @hook
    def infimum_observers(self, run):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def test_run_hooks_go_on_after_one_fails_and_sort_by_plugin(caplog):
    manager = new_manager()
    manager.register(Watcher("of b"), "b")
    manager.register(Watcher(None), "d")
    manager.register(Watcher(ValueError("out of paper")), "c")
    manager.register(Watcher(SystemExit(1)), "e")
    manager.register(Watcher("of a"), "a")
    with caplog.at_level(logging.ERROR, logger="infimum"):
        found = Registry([], manager).call_hook("infimum_observers", run=object())
    assert found == ["of a", "of b"]
    first, second = (one.getMessage() for one in caplog.records)
    assert "plugin c: hook infimum_observers failed: ValueError: out of paper" in first
    assert "test_registry_object.py:" in first
    assert "plugin e" in second


def test_run_hooks_let_keyboard_interrupt_through():
    manager = new_manager()
    manager.register(Watcher(KeyboardInterrupt()), "a")
    with pytest.raises(KeyboardInterrupt):
        Registry([], manager).call_hook("infimum_observers", run=None)


@pytest.fixture
def fresh_registry():
    reset_registry()
    yield
    reset_registry()


@pytest.mark.usefixtures("fresh_registry")
def test_the_registry_of_the_process_is_built_once(monkeypatch):
    calls = []
    broken = [PluginRecord("bad", "infimum-bad", "1.0", "failed", "ImportError: x")]
    monkeypatch.setattr(registry, "build_registry", lambda: calls.append(1) or Registry(broken))
    assert get_registry() is get_registry()
    with pytest.raises(PluginError, match=r"plugin bad \(infimum-bad 1\.0\) failed: ImportError: x"):
        get_registry(strict=True)
    assert calls == [1]
    reset_registry()
    get_registry()
    assert calls == [1, 1]


def test_every_component_of_the_core_loads():
    core = build_registry((), environ={})
    names = {one.name for one in core.components()}
    assert {"core.box", "core.nonnegative", "core.max_iter", "core.stall", "core.constant", "core.power"} <= names
    for one in core.components():
        assert callable(one.load()), one.name
        assert one.summary, one.name
    assert sys.modules["infimum.schedule"].Power is core.find("power", "schedule").load()

"""Discovery and loading against fake installed distributions: what goes wrong in one plugin stays in it."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from infimum.errors import PluginError
from infimum.plugins.registry import Registry, build_registry

GOOD = """
    from infimum.plugins import hook

    @hook
    def infimum_oracles(register):
        register("prox", "{module}_heavy:Prox", kind="proximal", summary="a prox")
"""


class Site:
    """A folder that looks like site-packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def add(
        self,
        name: str,
        code: str,
        *,
        plugin: str | None = None,
        version: str = "1.0",
        requires: str = "",
        module: str | None = None,
        value: str | None = None,
    ) -> None:
        module = module or name.replace("-", "_")
        self.modules.append(module)
        (self.folder / f"{module}.py").write_text(textwrap.dedent(code).replace("{module}", module))
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {one}" for one in requires.split(";;") if one]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        (info / "entry_points.txt").write_text(f"[infimum]\n{plugin or module} = {value or module}\n")

    def registry(self, host: str = "0.5.0", **environ: str) -> Registry:
        return build_registry(importlib.metadata.distributions(path=[str(self.folder)]), environ=environ, host=host)


@pytest.fixture
def site(tmp_path, monkeypatch):
    made = Site(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield made
    for name in set(sys.modules) - before:
        if name in made.modules or name.startswith("fake_"):
            del sys.modules[name]


def record(registry, name):
    return next(one for one in registry.plugins if one.name == name)


def test_a_plugin_registers_its_components_by_string(site):
    site.add("fake-good", GOOD, plugin="good", requires="infimum>=0.1,<1;;numpy>=1")
    registry = site.registry()
    good = record(registry, "good")
    assert (good.status, good.reason, good.warnings) == ("active", "", ())
    assert (good.distribution, good.version, good.module) == ("fake-good", "1.0", "fake_good")
    assert good.requires == "<1,>=0.1"
    (component,) = good.components
    assert (component.name, component.kind, component.label) == ("good.prox", "oracle", "proximal")
    assert component.target == "fake_good_heavy:Prox"
    assert "fake_good_heavy" not in sys.modules
    registry.require_clean()


def test_a_plugin_that_raises_is_set_aside_with_the_place(site):
    site.add("fake-broken", "value = 1\nraise RuntimeError('no licence')\n", plugin="broken")
    site.add("fake-good", GOOD, plugin="good")
    registry = site.registry()
    broken = record(registry, "broken")
    assert broken.status == "failed"
    assert "RuntimeError: no licence" in broken.reason
    assert f"{site.folder / 'fake_broken.py'}:2" in broken.reason
    assert record(registry, "good").status == "active"
    assert [one.name for one in registry.components("oracle")] == ["good.prox"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("class Odd(BaseException): pass\nraise Odd('odd')\n", "Odd: odd"),
        ("def f(:\n    pass\n", "SyntaxError"),
        ("import fake_absent_library\n", "No module named 'fake_absent_library'"),
    ],
)
def test_whatever_an_import_raises_does_not_end_the_host(site, code, said):
    site.add("fake-bad", code, plugin="bad")
    bad = record(site.registry(), "bad")
    assert bad.status == "failed"
    assert said in bad.reason
    assert "fake_bad.py:" in bad.reason


def test_keyboard_interrupt_passes_through(site):
    site.add("fake-slow", "raise KeyboardInterrupt\n", plugin="slow")
    with pytest.raises(KeyboardInterrupt):
        site.registry()


def test_an_entry_point_to_nowhere_says_so(site):
    site.add("fake-moved", "", plugin="moved", value="fake_moved_away.hooks")
    moved = record(site.registry(), "moved")
    assert moved.status == "failed"
    assert "'fake_moved_away' does not exist" in moved.reason


def test_a_hook_that_fails_half_way_leaves_nothing_behind(site):
    site.add(
        "fake-half",
        """
        from infimum.plugins import hook

        @hook
        def infimum_problems(register):
            register("first", "fake_half:First")
            raise KeyError("second")

        @hook
        def infimum_run_started(run):
            raise AssertionError("must not be called")
        """,
        plugin="half",
    )
    registry = site.registry()
    half = record(registry, "half")
    assert (half.status, half.components) == ("failed", ())
    assert "KeyError: 'second'" in half.reason
    assert "fake_half.py:7" in half.reason
    assert registry.components("problem") == ()
    assert not registry.hooks.has_plugin("half")
    assert registry.call_hook("infimum_run_started", run=None) == []


def test_a_class_as_entry_point_fails_with_advice(site):
    site.add("fake-class", "class Plugin: pass\n", plugin="klass", value="fake_class:Plugin")
    assert "must name a module" in record(site.registry(), "klass").reason


def test_unknown_argument_of_a_hook_fails(site):
    site.add(
        "fake-args",
        "from infimum.plugins import hook\n@hook\ndef infimum_oracles(registrar):\n    pass\n",
        plugin="args",
    )
    reason = record(site.registry(), "args").reason
    assert "infimum_oracles" in reason
    assert "registrar" in reason


@pytest.mark.parametrize(
    ("requires", "remedy"),
    [
        ("infimum>=2", 'pip install --upgrade "infimum>=2"'),
        ("infimum<0.4", "pip install --upgrade fake-picky"),
        ("Infimum[all] ==1.*", 'pip install --upgrade "infimum==1.*"'),
    ],
)
def test_an_unmet_range_is_found_before_the_import(site, requires, remedy):
    site.add("fake-picky", "raise AssertionError('imported')\n", plugin="picky", requires=requires)
    picky = record(site.registry(host="0.5.0"), "picky")
    assert picky.status == "incompatible"
    assert "this is 0.5.0" in picky.reason
    assert remedy in picky.reason


@pytest.mark.parametrize(
    "requires", ["infimum>=0.1,<1", "infimum>=2; python_version<'3'", "infimum>=2; extra=='new'", "not a requirement!"]
)
def test_ranges_that_do_not_apply_are_no_obstacle(site, requires):
    site.add("fake-easy", GOOD, plugin="easy", requires=requires)
    assert record(site.registry(host="0.5.0"), "easy").status == "active"


def test_two_distributions_with_one_name_are_told_apart(site):
    site.add("fake-zeta", GOOD, plugin="same")
    site.add("fake-alpha", GOOD, plugin="same")
    registry = site.registry()
    first, second = (one for one in registry.plugins if one.name == "same")
    assert (first.distribution, first.status) == ("fake-alpha", "active")
    assert (second.distribution, second.status) == ("fake-zeta", "shadowed")
    assert "fake-alpha" in second.reason
    assert "fake-zeta" in second.reason
    assert registry.find("same.prox").target == "fake_alpha_heavy:Prox"
    with pytest.raises(PluginError, match="shadowed"):
        registry.require_clean()


def test_an_incompatible_plugin_shadows_nobody(site):
    site.add("fake-alpha", GOOD, plugin="same", requires="infimum>=9")
    site.add("fake-zeta", GOOD, plugin="same")
    assert [one.status for one in site.registry().plugins if one.name == "same"] == ["incompatible", "active"]


def test_nobody_takes_the_name_of_the_core(site):
    site.add("a-core", GOOD, plugin="core")
    first, second = (one for one in site.registry().plugins if one.name == "core")
    assert (first.distribution, first.status) == ("infimum", "active")
    assert (second.distribution, second.status) == ("a-core", "shadowed")


def test_a_distribution_listed_twice_is_no_clash(site, tmp_path):
    site.add("fake-good", GOOD, plugin="good")
    other = tmp_path / "checkout"
    info = other / "Fake.Good-0.9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Fake.Good\nVersion: 0.9\n")
    (info / "entry_points.txt").write_text("[infimum]\ngood = fake_good\n")
    found = importlib.metadata.distributions(path=[str(site.folder), str(other)])
    registry = build_registry(found, environ={}, host="0.5.0")
    (good,) = (one for one in registry.plugins if one.name == "good")
    assert (good.status, good.version) == ("active", "1.0")
    registry.require_clean()


def test_duplicate_component_and_bad_targets_are_warnings(site):
    site.add(
        "fake-sloppy",
        """
        from infimum.plugins import hook

        class Thing: pass

        @hook
        def infimum_solvers(register):
            register("fine", "fake_sloppy:Thing")
            register("fine", "fake_sloppy:Other")
            register("klass", Thing)
            register("no_colon", "fake_sloppy.Thing")
            register("sloppy.dotted", "fake_sloppy:Thing")

        @hook
        def infimum_components(register):
            register("fine", "fake_sloppy:Thing", kind="schedule")
            register("kindless", "fake_sloppy:Thing")
        """,
        plugin="sloppy",
    )
    registry = site.registry()
    sloppy = record(registry, "sloppy")
    assert sloppy.status == "active"
    assert [(one.kind, one.name) for one in sloppy.components] == [
        ("schedule", "sloppy.fine"),
        ("solver", "sloppy.fine"),
    ]
    assert registry.find("sloppy.fine", "solver").target == "fake_sloppy:Thing"
    said = "\n".join(sloppy.warnings)
    for piece in ("'fine' is registered twice", "'klass'", "'fake_sloppy.Thing'", "'sloppy.dotted'", "'kindless'"):
        assert piece in said
    assert len(sloppy.warnings) == 5
    with pytest.raises(PluginError, match="registered twice"):
        registry.require_clean()


def test_hooks_that_would_be_ignored_are_warnings(site):
    site.add(
        "fake-silent",
        """
        from infimum.plugins import hook

        def infimum_oracles(register):
            register("lost", "fake_silent:Lost")

        @hook
        def infimum_solver(register):
            register("lost", "fake_silent:Lost")

        @hook
        def infimum_problems(register, extra=None):
            register("kept", "fake_silent:Kept")

        @hook(optionalhook=True)
        def infimum_of_a_later_version(register):
            pass
        """,
        plugin="silent",
    )
    silent = record(site.registry(), "silent")
    assert [one.name for one in silent.components] == ["silent.kept"]
    said = "\n".join(silent.warnings)
    assert "function infimum_oracles has no @hook" in said
    assert "'infimum_solver' is unknown and never called; did you mean 'infimum_solvers'?" in said
    assert "argument 'extra' of hook infimum_problems has a default" in said
    assert len(silent.warnings) == 3


def test_disabled_and_allowed_plugins(site):
    site.add("fake-one", GOOD, plugin="one")
    site.add("fake-two", "raise AssertionError('imported')\n", plugin="two")
    registry = site.registry(INFIMUM_DISABLE="two, ghost")
    assert record(registry, "one").status == "active"
    assert (record(registry, "two").status, record(registry, "two").reason) == ("disabled", "named in INFIMUM_DISABLE")
    assert registry.warnings == ("INFIMUM_DISABLE names 'ghost', which no installed plugin carries",)

    assert [one.status for one in site.registry(INFIMUM_PLUGINS="one").plugins] == ["active", "active", "disabled"]
    nothing = site.registry(INFIMUM_PLUGINS="")
    assert [one.name for one in nothing.plugins if one.status == "active"] == ["core"]
    nothing.require_clean()


def test_the_core_cannot_be_disabled(site):
    registry = site.registry(INFIMUM_DISABLE="core")
    assert record(registry, "core").status == "active"
    assert "cannot be disabled" in registry.warnings[0]


def test_strict_lists_every_fault(site):
    site.add("fake-broken", "raise RuntimeError('one')\n", plugin="broken")
    site.add("fake-newer", GOOD, plugin="newer", requires="infimum>=9")
    site.add("fake-alpha", GOOD, plugin="same")
    site.add("fake-beta", GOOD, plugin="same")
    site.add("fake-off", "raise RuntimeError\n", plugin="off")
    registry = site.registry(INFIMUM_DISABLE="off")
    with pytest.raises(PluginError) as caught:
        registry.require_clean()
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert "plugin broken (fake-broken 1.0) failed: RuntimeError: one" in lines[1]
    assert "plugin newer (fake-newer 1.0) incompatible" in lines[2]
    assert "plugin same (fake-beta 1.0) shadowed" in lines[3]


def test_damaged_metadata_of_a_stranger_is_skipped(site):
    (site.folder / "stranger-1.0.dist-info").mkdir()
    (site.folder / "stranger-1.0.dist-info" / "entry_points.txt").write_bytes(b"[infimum]\n\xff\xfe = nonsense")
    site.add("fake-good", GOOD, plugin="good")
    assert record(site.registry(), "good").status == "active"


def test_listing_stays_light():
    code = (
        "import sys\n"
        "from infimum.plugins.registry import build_registry\n"
        "registry = build_registry((), environ={})\n"
        "assert registry.components('stopping_rule')\n"
        "print(sorted({'pydantic', 'numpy', 'scipy', 'torch', 'yaml', 'rich'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stderr

"""The conformance kit: first-party plugins pass it, and on a plugin of planted faults it finds every one."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infimum.plugins.registry import build_registry

BROKEN = Path(__file__).with_name("broken")
KIT = ("--pyargs", "infimum.testing.conformance")

NOT_EXACT: dict[str, set[str]] = {
    # One call of another library's solver.
    "cvxpy": {"cvxpy.solve"},
    # SciPy owns its loops.
    "scipy": {
        *("scipy.nelder_mead", "scipy.powell", "scipy.cobyla", "scipy.cobyqa", "scipy.cg", "scipy.bfgs"),
        *("scipy.l_bfgs_b", "scipy.tnc", "scipy.slsqp", "scipy.trust_constr", "scipy.newton_cg", "scipy.dogleg"),
        *("scipy.trust_ncg", "scipy.trust_exact", "scipy.trust_krylov", "scipy.least_squares", "scipy.lsq_linear"),
        *("scipy.linprog",),
    },
}
"""By plugin, the solvers and oracles whose runs cannot be taken up bit for bit. The list is to shrink."""

FAULTS = {
    "mutates_start": {"test_steps_are_pure"},
    "global_state": {"test_steps_are_pure", "test_seeds_repeat", "test_resume_is_exact"},
    "own_state": {"test_steps_are_pure", "test_two_runs_of_one_object_do_not_meet", "test_resume_is_exact"},
    "forgets": {"test_resume_is_exact"},
    "global_draws": {"test_seeds_repeat", "test_no_global_generator_is_read_or_written"},
    "vector_metric": {"test_metrics_are_known_before_the_run_and_are_scalars"},
    "steps_without_state": {"test_steps_are_pure"},
    "deaf": {"test_a_stop_is_heard"},
    "never_seen": {"test_the_kit_has_a_problem_for_it"},
    "shared_buffer": {"test_two_parts_share_nothing", "test_seeds_repeat"},
    "reused_array": {"test_results_and_arguments_are_left_alone"},
    "hidden_memory": {"test_its_state_round_trips"},
    "eager": {"test_binding_evaluates_nothing_and_the_part_supplies_what_it_says"},
    "doubled": {"test_it_is_as_accurate_as_it_says"},
    "half_prox": {"test_it_is_as_accurate_as_it_says"},
    "loose_ball": {"test_what_it_offers_fits_together"},
    "wrong_prox": {"test_its_terms_are_what_they_say"},
    "moving_start": {"test_its_start_is_valid_and_repeats"},
    "shared_tracker": {"test_trackers_share_nothing_and_their_state_round_trips"},
    "open_options": {"test_unknown_options_are_refused"},
    "bare": {"test_it_is_described"},
    "absent": {"test_it_loads_and_is_of_its_kind"},
}
"""Component to tests that must fail on it."""


def installed() -> list[str]:
    """The active first-party plugins."""
    records = build_registry(environ={}).plugins
    return [one.name for one in records if one.status == "active" and one.distribution.startswith("infimum")]


def plugin_option() -> list[str]:
    """Nothing where pytest finds the plugin by itself, as it does wherever infimum was installed with it."""
    entries = importlib.metadata.entry_points(group="pytest11")
    known = any(one.value == "infimum.testing.pytest_plugin" for one in entries)
    return [] if known else ["-p", "infimum.testing.pytest_plugin"]


def run_pytest(folder: Path, *arguments: str, path: Path | None = None, **environment: str) -> Any:
    """pytest in a process of its own, started in `folder`."""
    env = {name: one for name, one in os.environ.items() if not name.startswith(("PYTEST_", "INFIMUM_"))}
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment}
    if path is not None:
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-rf", "-p", "no:cacheprovider", *plugin_option()]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=580, check=False
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", installed())
def test_first_party_plugins_pass(name: str, tmp_path: Path) -> None:
    done = run_pytest(tmp_path, *KIT, "--infimum-plugin", name)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert re.search(r"\d+ passed", done.stdout)


def test_what_cannot_be_resumed_exactly_is_pinned() -> None:
    found: dict[str, set[str]] = {}
    for component in build_registry(environ={}).components():
        if component.kind not in ("solver", "oracle") or not component.distribution.startswith("infimum"):
            continue
        if component.load().resume != "exact":
            found.setdefault(component.plugin, set()).add(component.name)
    assert found == NOT_EXACT


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that, on the path, is an installed plugin `acme` with faults."""
    folder = tmp_path_factory.mktemp("broken")
    for file in BROKEN.glob("*.py"):
        shutil.copy(file, folder)
    info = folder / "infimum_acme-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: infimum-acme\nVersion: 0.1\nRequires-Dist: infimum>=0.1,<1\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text("[infimum]\nacme = acme_broken_hooks\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def failures(broken: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Component (without its plugin) to the tests of the kit that failed on it."""
    done = run_pytest(tmp_path_factory.mktemp("empty"), *KIT, "--infimum-plugin", "acme", path=broken)
    assert done.returncode == 1, done.stdout[-4000:] + done.stderr[-2000:]
    found: dict[str, set[str]] = {}
    for test, component in re.findall(r"^FAILED .*::(\w+)\[(?:acme\.)?(\w+)", done.stdout, re.MULTILINE):
        found.setdefault(component, set()).add(test)
    return found


@pytest.mark.parametrize("component", FAULTS)
def test_a_planted_fault_is_found(component: str, failures: dict[str, set[str]]) -> None:
    missed = FAULTS[component] - failures.get(component, set())
    assert not missed, f"{component}: {', '.join(sorted(missed))} passed; failed: {failures.get(component)}"


def test_what_is_sound_passes(failures: dict[str, set[str]]) -> None:
    sound = ("sound", "sound_oracle", "sound_counter", "countdown")
    assert {name: failures[name] for name in sound if name in failures} == {}


def test_a_heavy_entry_module_is_found(failures: dict[str, set[str]]) -> None:
    assert "test_its_entry_module_is_light" in failures["acme"]


def test_nothing_to_test_is_a_failure(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, *KIT, "--infimum-plugin", "no_such_plugin")
    assert done.returncode not in (0, 5)
    assert "plugin no_such_plugin has no components" in done.stdout


def test_exclusions_come_from_the_ini_file_and_from_a_hook_with_a_reason(tmp_path: Path, broken: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\ninfimum_exclude =\n    test_unknown_options_are_refused acme.open_options: it is open\n",
        encoding="utf-8",
    )
    (tmp_path / "conftest.py").write_text(
        "def pytest_infimum_exclude():\n    return [('test_it_is_desc* acme.bare', 'it is bare')]\n", encoding="utf-8"
    )
    tests = ("-k", "test_components and (open_options or bare)", "--infimum-plugin", "acme", "-rs")
    done = run_pytest(
        tmp_path, *KIT, *tests, f"--confcutdir={tmp_path}", "-p", "conftest", path=broken, PYTHONSAFEPATH=""
    )
    assert "excluded: it is open" in done.stdout, done.stdout
    assert "excluded: it is bare" in done.stdout
    assert "FAILED" not in done.stdout


def test_an_exclusion_needs_a_reason(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, *KIT, "--infimum-plugin", "core", "-o", "infimum_exclude=test_a core.box", "--co")
    assert done.returncode == 4
    assert "TEST COMPONENT: reason" in done.stderr + done.stdout


def test_the_fixtures_serve_a_plugin_s_own_tests(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import numpy as np\n"
        "def test_run(run_text):\n"
        "    text = 'problem: {use: problems.rosenbrock}\\nsolver: scipy.bfgs\\nstopping: max_iter(3)\\nseed: 1\\n'\n"
        "    assert run_text(text, 'stopping=max_iter(2)').iterations == 2\n"
        "def test_host(infimum_host):\n"
        "    assert [one.name for one in infimum_host.plugins] == ['core']\n",
        encoding="utf-8",
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_without_pytest_the_kit_says_what_to_install() -> None:
    code = "import sys; sys.modules['pytest'] = None; from infimum.testing.conformance.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install pytest" in done.stderr


def test_the_pytest_plugin_is_light() -> None:
    heavy = ("numpy", "scipy", "pydantic", "infimum.functions", "infimum.plugins")
    code = f"import sys, infimum.testing.pytest_plugin; print([n for n in {heavy!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr

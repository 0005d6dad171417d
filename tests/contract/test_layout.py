"""Where things stand: the top level, the plugin folders, the metadata, and what must never stand below platform/."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import infimum

FILES = {
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "constraints.txt",
    "pyproject.toml",
    "registry.yaml",
}
FOLDERS = {"benchmarks", "platform", "plugins", "problems", "tests"}
LATER = {"docs"}
HIDDEN = {".ci", ".gitignore"}


def shadows_of_platform(folder: Path) -> list[str]:
    """Files that make pytest's importlib mode replace the standard library's `platform` by this folder."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        if path.relative_to(folder).parts[0] != "src"
        and any(fnmatch(path.name, pattern) for pattern in ("test_*.py", "conftest.py", "__init__.py"))
    )


def requirements(project: dict[str, Any]) -> Iterator[Requirement]:
    """All requirements of a distribution, those of its extras too."""
    yield from map(Requirement, project.get("dependencies", []))
    for extra in project.get("optional-dependencies", {}).values():
        yield from map(Requirement, extra)


def test_nothing_below_platform_shadows_the_standard_library(root: Path) -> None:
    assert shadows_of_platform(root / "platform") == []


@pytest.mark.parametrize(
    "name", ["test_a.py", "conftest.py", "__init__.py", "tests/test_a.py", "tests/deep/__init__.py"]
)
def test_a_shadow_of_platform_is_seen(tmp_path: Path, name: str) -> None:
    for path in (tmp_path / "src" / "infimum" / "__init__.py", tmp_path / name):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert shadows_of_platform(tmp_path) == [name]


def test_the_top_level_is_complete(root: Path) -> None:
    missing = [name for name in sorted(FILES) if not (root / name).is_file()]
    missing += [f"{name}/" for name in sorted(FOLDERS) if not (root / name).is_dir()]
    assert not missing, "\n".join(missing)


def test_the_top_level_holds_nothing_else(root: Path) -> None:
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        pytest.skip("not a git checkout: scratch files cannot be told from the project's own")
    listed = subprocess.run([git, "-C", str(root), "ls-files", "-z"], capture_output=True, check=True, text=True)
    tracked = {path.partition("/")[0] for path in listed.stdout.split("\0") if path}
    extra = tracked - FILES - FOLDERS - LATER - HIDDEN
    assert not extra, f"{sorted(extra)} at the top level; put it into a folder or give the reason in this test"


def test_the_root_pyproject_holds_tool_settings_only(root: Path) -> None:
    assert set(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))) == {"tool"}


def test_ci_run_is_executable(root: Path) -> None:
    assert (root / ".ci" / "run").stat().st_mode & 0o111


def test_every_plugin_folder_is_whole(plugin_folders: dict[str, Path]) -> None:
    missing = []
    for slug, folder in plugin_folders.items():
        package = f"src/infimum_{slug}"
        for name in ("pyproject.toml", "README.md", f"{package}/__init__.py", f"{package}/hooks.py"):
            if not (folder / name).is_file():
                missing.append(f"plugins/{slug}/{name}")
        if not any((folder / "tests").glob("test_*.py")):
            missing.append(f"plugins/{slug}/tests/test_*.py")
    assert not missing, "\n".join(missing)


def test_metadata_states_ranges(manifests: dict[str, dict[str, Any]]) -> None:
    pinned = [
        f"{project['name']}: {requirement}"
        for project in manifests.values()
        for requirement in requirements(project)
        if any(clause.operator.startswith("==") for clause in requirement.specifier)
    ]
    assert pinned == [], "exact versions stand in constraints.txt alone"


def test_members_say_which_host_they_fit(manifests: dict[str, dict[str, Any]]) -> None:
    wrong = []
    for slug, project in manifests.items():
        if slug == "core":
            continue
        hosts = [one for one in map(Requirement, project["dependencies"]) if canonicalize_name(one.name) == "infimum"]
        operators = {clause.operator for one in hosts for clause in one.specifier}
        if not {">=", "<"} <= operators:
            wrong.append(f"{project['name']} needs infimum in a range: 'infimum>=A,<B'")
    assert not wrong, "\n".join(wrong)


def test_one_version(manifests: dict[str, dict[str, Any]]) -> None:
    assert infimum.__version__ == manifests["core"]["version"]


def test_extras_name_every_available_plugin(
    manifests: dict[str, dict[str, Any]], catalog: dict[str, dict[str, Any]]
) -> None:
    extras: dict[str, list[str]] = manifests["core"]["optional-dependencies"]
    available = {slug: row for slug, row in catalog.items() if row["status"] == "available" and slug != "core"}
    wrong = []
    for slug, row in available.items():
        named = {canonicalize_name(Requirement(text).name) for text in extras.get(slug, [])}
        if named != {canonicalize_name(row["distribution"])}:
            wrong.append(
                f"platform/pyproject.toml: the extra '{slug}' must name {row['distribution']} and nothing else"
            )
    everything = {extra for text in extras["all"] for extra in Requirement(text).extras}
    if everything != set(available):
        wrong.append(f"the extra 'all' names {sorted(everything)}; available are {sorted(available)}")
    assert not wrong, "\n".join(wrong)


def test_constraints_pin_torch_and_the_back_end(root: Path) -> None:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    assert all(len(pin.specifier) == 1 and next(iter(pin.specifier)).operator == "==" for pin in pins)
    assert {"torch", "hatchling", "editables", "numpy", "scipy"} <= {canonicalize_name(pin.name) for pin in pins}

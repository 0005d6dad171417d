"""Who may import whom: the layers inside the host, plugins among themselves, and what must stay light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LAYERS: tuple[set[str], ...] = (
    {"errors", "exactness", "status", "vocabulary", "arrays", "versions", "lazy"},
    {"functions", "constraints"},
    {"problem", "oracle", "solver", "stopping", "schedule", "counters"},
    {"plan"},
    {"run", "trace", "result", "checkpoint"},
    {"api", "scipy_method", "explanation", "inputs", "paths", "observers"},
    {"runfile"},
    {"records"},
    {"many"},
    {"reporting"},
    {"cli", "testing", "__main__"},
)
"""Rooms of the host, lowest first: a room may import those of its own layer and below."""
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
FRONT = "__init__"
"""`infimum` itself: a front that loads lazily what it names, so it may name everything; below `api` nobody uses it."""
PLUGINS = "plugins"
"""Knows the errors alone, so that listing what is installed is quick. From the plan upward everybody may use it."""
PLUGINS_MAY_USE = {"pluggy", "pydantic", "packaging"}

HEAVY = (
    "torch",
    "cvxpy",
    "optuna",
    "sklearn",
    "matplotlib",
    "plotly",
    "pandas",
    "dask",
    "joblib",
    "tensorboard",
    "mlflow",
)
DISTRIBUTION = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}
"""Distributions that are not called like the package that they bring."""
NUMERICAL = ("numpy", "scipy", "array_api_compat")


@dataclass(frozen=True)
class Import:
    """One import statement's module: `room` is set for the host's own, the first folder or file below infimum."""

    module: str
    line: int
    at_load: bool

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def room(self) -> str | None:
        parts = self.module.split(".")
        if parts[0] != "infimum":
            return None
        return parts[1] if len(parts) > 1 and (parts[1] in RANK or parts[1] == PLUGINS) else FRONT


def is_type_checking(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`, whose imports serve annotations alone."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(source: str, module: str = "", is_package: bool = False) -> list[Import]:
    """All imports of a module but those for annotations, in functions too."""
    home = module.split(".") if is_package else module.split(".")[:-1]

    def walk(node: ast.AST, at_load: bool) -> Iterator[Import]:
        if is_type_checking(node):
            return
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(name.name, node.lineno, at_load)
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for name in node.names:
                yield Import(f"{origin}.{name.name}", node.lineno, at_load)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, at_load and not inside)

    return list(walk(ast.parse(source), True))


def sources(package: Path) -> Iterator[tuple[str, Path, list[Import]]]:
    """Modules of a package: room or file below it, path, imports."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(parts)
        is_package = parts[-1] == "__init__"
        found = imports(path.read_text(encoding="utf-8"), module.removesuffix(".__init__"), is_package)
        yield parts[1], path, found


def fault(room: str, one: Import) -> str | None:
    """Why a module in `room` of the host must not import this; None when it may."""
    if one.package.startswith("infimum_"):
        return f"the host knows no plugin, here {one.package}"
    if one.at_load and one.package in HEAVY:
        return f"{one.package} is imported at first use, not when the module is loaded"
    if room == PLUGINS and one.at_load and one.package in NUMERICAL:
        return f"plugins/ is read by every listing and stays without {one.package}"
    target = one.room
    if target is None or target == room or room == FRONT:
        return None
    if room == PLUGINS:
        return None if target == "errors" else f"plugins/ knows the errors alone, not {target}"
    here = RANK.get(room, len(LAYERS))
    if target == PLUGINS:
        return None if here >= RANK["plan"] else f"{room} stands below the plan and knows no plugins/"
    rank = RANK["api"] if target == FRONT else RANK[target]
    return None if rank <= here else f"{room} stands below {target}"


def test_every_room_of_the_host_has_a_layer(root: Path) -> None:
    rooms = {room for room, _, _ in sources(root / "platform" / "src" / "infimum")}
    unplaced = rooms - set(RANK) - {FRONT, PLUGINS}
    assert not unplaced, f"give {sorted(unplaced)} a place in LAYERS"
    assert {"errors", "functions", "plan", "run", PLUGINS, "cli"} <= rooms


def test_the_host_keeps_its_layers(root: Path) -> None:
    wrong = [
        f"{path.relative_to(root)}:{one.line} imports {one.module}: {reason}"
        for room, path, found in sources(root / "platform" / "src" / "infimum")
        for one in found
        if (reason := fault(room, one)) is not None
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("room", "source", "allowed"),
    [
        ("functions", "from infimum.errors import InputError", True),
        ("functions", "from infimum.plan import Plan", False),
        ("functions", "def f():\n    import infimum.run.loop", False),
        ("functions", "from infimum import solve", False),
        ("functions", "from infimum import arrays", True),
        ("functions", "from .. import run", False),
        ("functions", "if TYPE_CHECKING:\n    from infimum.run import Run", True),
        ("plan", "from infimum.plugins.registry import get_registry", True),
        ("stopping", "from infimum.plugins.registry import get_registry", False),
        ("plugins", "from infimum.errors import PluginError", True),
        ("plugins", "from infimum.arrays import Array", False),
        ("plugins", "import numpy as np", False),
        ("plugins", "import pydantic", True),
        ("run", "import torch", False),
        ("run", "def f():\n    import torch", True),
        ("run", "def f():\n    from infimum_splitting import ProximalGradient", False),
        ("cli", "from infimum.runfile import load", True),
        ("runfile", "from infimum.cli import main", False),
    ],
)
def test_a_breach_is_seen(room: str, source: str, allowed: bool) -> None:
    faults = [fault(room, one) for one in imports(source, f"infimum.{room}.module")]
    assert (not any(faults)) is allowed


def test_plugins_depend_on_the_host_and_on_no_paper(
    catalog: dict[str, dict[str, Any]], member_folders: dict[str, Path]
) -> None:
    papers = {f"infimum_{slug}" for slug, row in catalog.items() if row["kind"] == "paper"}
    wrong = []
    for slug, folder in member_folders.items():
        for _, path, found in sources(folder / "src" / f"infimum_{slug}"):
            others = {one for one in found if one.package in papers - {f"infimum_{slug}"}}
            wrong += [f"{path}:{one.line} imports {one.module}; paper plugins meet in the plan" for one in others]
    assert not wrong, "\n".join(wrong)


def test_metadata_depends_on_no_paper(catalog: dict[str, dict[str, Any]], manifests: dict[str, dict[str, Any]]) -> None:
    papers = {f"infimum-{slug}" for slug, row in catalog.items() if row["kind"] == "paper"}
    wrong = [
        f"{project['name']} depends on {text}"
        for project in manifests.values()
        for text in project["dependencies"]
        if any(text.replace("_", "-").lower().startswith(paper) for paper in papers)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_imported_stands_in_the_metadata(
    root: Path, manifests: dict[str, dict[str, Any]], member_folders: dict[str, Path]
) -> None:
    packages = {
        slug: folder / "src" / f"infimum_{slug}" for slug, folder in member_folders.items() if slug in manifests
    }
    packages["core"] = root / "platform" / "src" / "infimum"
    wrong = []
    for slug, package in packages.items():
        project = manifests[slug]
        # What an extra brings serves the modules that need it, which nothing else of the package loads.
        extras = (
            []
            if slug == "core"
            else [one for extra in project.get("optional-dependencies", {}).values() for one in extra]
        )
        needed = [*project["dependencies"], *extras]
        declared = {canonicalize_name(Requirement(text).name) for text in needed} | {project["name"]}
        for room, path, found in sources(package):
            for one in found:
                distribution = canonicalize_name(DISTRIBUTION.get(one.package, one.package))
                # What the host can do without is imported in functions, for those who have it; only pytest loads its
                # plugin and the conformance kit.
                free = slug == "core" and (not one.at_load or (room == "testing" and one.package == "pytest"))
                if one.package not in sys.stdlib_module_names and distribution not in declared and not free:
                    wrong.append(
                        f"{path.relative_to(root)}:{one.line} imports {one.module}: {distribution} is not declared"
                    )
    assert not wrong, "\n".join(wrong)


def test_hook_modules_import_the_host_and_the_standard_library_only(member_folders: dict[str, Path]) -> None:
    allowed = {*sys.stdlib_module_names, "infimum"}
    wrong = []
    for slug, folder in member_folders.items():
        path = folder / "src" / f"infimum_{slug}" / "hooks.py"
        assert path.is_file(), f"{path} is missing"
        for one in imports(path.read_text(encoding="utf-8")):
            if not one.at_load and one.package == f"infimum_{slug}":
                continue  # hooks of runs and reports import their work when they are called
            if one.package not in allowed or (one.package == "infimum" and one.room != PLUGINS):
                wrong.append(f"{path}:{one.line} imports {one.module}; name targets as strings")
    assert not wrong, "\n".join(wrong)


def loaded_by(*statements: str) -> set[str]:
    """Which of the watched packages a fresh interpreter has loaded after these statements."""
    watched = (*HEAVY, *NUMERICAL)
    code = "\n".join(
        ("import json, sys", *statements, f"print(json.dumps([n for n in {watched!r} if n in sys.modules]))")
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_hook_modules_load_nothing_heavy(member_folders: dict[str, Path]) -> None:
    modules = ["infimum", "infimum.plugins.core", *(f"infimum_{slug}.hooks" for slug in member_folders)]
    assert loaded_by(*(f"import {module}" for module in modules)) == set()


def test_the_registry_loads_nothing_heavy() -> None:
    asked = "assert len(get_registry().components()) > 10"
    assert loaded_by("from infimum.plugins.registry import get_registry", asked) == set()


def test_a_heavy_import_is_seen() -> None:
    assert {"sklearn", "numpy", "scipy"} <= loaded_by("import sklearn")


def test_the_host_loads_no_optional_library() -> None:
    assert loaded_by("from infimum import solve, Composite").isdisjoint(HEAVY)


def test_plugins_need_little(root: Path) -> None:
    allowed = {*sys.stdlib_module_names, *PLUGINS_MAY_USE, "infimum"}
    wrong = [
        f"{path.relative_to(root)}:{one.line} imports {one.module}"
        for room, path, found in sources(root / "platform" / "src" / "infimum")
        for one in found
        if room == PLUGINS and one.at_load and one.package not in allowed
    ]
    assert not wrong, "\n".join(wrong)

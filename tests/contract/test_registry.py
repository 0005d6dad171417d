"""The catalog registry.yaml against the papers, the folders, the metadata and what the installed plugins register."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from infimum.errors import PluginError
from infimum.plugins.registry import Registry, build_registry

PAPERS = {
    "amdp",
    "cocd",
    "costbo",
    "cpd",
    "dmol",
    "dream",
    "dsgdtopo",
    "efgda",
    "enmf",
    "geomis",
    "hjprox",
    "opic",
    "padmm",
    "paso",
    "pogo",
    "rmcts",
    "sads",
    "spf",
    "tdexp",
}
COMPANIONS = {"splitting", "zeroth", "scipy", "torch", "cvxpy", "optuna", "problems", "core"}
KINDS = {"core", "companion", "bridge", "problems", "paper"}


@pytest.fixture(scope="module")
def registry() -> Registry:
    """What is installed, whatever the environment of the test run disables."""
    return build_registry(environ={})


def plural(kind: str) -> str:
    """The key under `provides` for a component kind."""
    return f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"


def differences(slug: str, provides: dict[str, list[str]], registered: Iterable[tuple[str, str]]) -> list[str]:
    """How a row's `provides` differs from pairs (kind, qualified name); one line for each component."""
    said = {(group, name) for group, names in provides.items() for name in names}
    done = {(plural(kind), name) for kind, name in registered}
    lines = [f"{slug} registers {name} ({group}), which registry.yaml does not list" for group, name in done - said]
    lines += [f"registry.yaml lists {name} ({group}), which {slug} does not register" for group, name in said - done]
    return sorted(lines)


def available(catalog: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {slug: row for slug, row in catalog.items() if row["status"] == "available"}


def test_the_nineteen_papers_are_there(catalog: dict[str, dict[str, Any]]) -> None:
    papers = {slug: row for slug, row in catalog.items() if row["kind"] == "paper"}
    assert len(PAPERS) == 19
    assert set(papers) == PAPERS
    bare = [
        f"{slug}: {key}" for slug, row in papers.items() for key in ("title", "source", "becomes") if not row.get(key)
    ]
    assert not bare, "\n".join(bare)


def test_the_companions_are_there(catalog: dict[str, dict[str, Any]]) -> None:
    assert {slug for slug, row in catalog.items() if row["kind"] != "paper"} == COMPANIONS


def test_rows_are_well_formed(catalog: dict[str, dict[str, Any]]) -> None:
    known = {"kind", "status", "title", "source", "becomes", "distribution", "provides"}
    wrong = []
    for slug, row in catalog.items():
        wrong += [f"{slug}: unknown key '{key}'" for key in set(row) - known]
        if row["kind"] not in KINDS:
            wrong.append(f"{slug}: kind '{row['kind']}', expected one of {sorted(KINDS)}")
        if row["status"] not in ("planned", "available"):
            wrong.append(f"{slug}: status '{row['status']}', expected planned or available")
        if row["status"] == "available" and not (row.get("distribution") and row.get("provides")):
            wrong.append(f"{slug} is available, so it names its distribution and what it provides")
        if row["status"] == "planned" and ("distribution" in row or "provides" in row):
            wrong.append(f"{slug} is planned, so it provides nothing yet")
        for names in row.get("provides", {}).values():
            wrong += [f"{slug}: '{name}' is not a name of this plugin" for name in names if name.split(".")[0] != slug]
    assert not wrong, "\n".join(wrong)


def test_folders_and_rows_agree(catalog: dict[str, dict[str, Any]], member_folders: dict[str, Path]) -> None:
    here, listed = set(member_folders), set(available(catalog)) - {"core"}
    wrong = [f"plugins/{slug}/ exists; registry.yaml must say 'status: available'" for slug in sorted(here - listed)]
    wrong += [f"registry.yaml says that {slug} is available, but there is no folder" for slug in sorted(listed - here)]
    assert not wrong, "\n".join(wrong)


def test_metadata_and_rows_agree(
    catalog: dict[str, dict[str, Any]], manifests: dict[str, dict[str, Any]], member_folders: dict[str, Path]
) -> None:
    wrong = []
    for slug, folder in member_folders.items():
        if slug not in manifests:
            wrong.append(f"{folder.name}/ has no pyproject.toml")
            continue
        project, name = manifests[slug], catalog.get(slug, {}).get("distribution")
        if not project["name"] == name == f"infimum-{slug}":
            wrong.append(f"{slug}: the distribution is '{project['name']}', registry.yaml says '{name}'")
        entries = project.get("entry-points", {}).get("infimum")
        if entries != {slug: f"infimum_{slug}.hooks"}:
            wrong.append(f'{slug}: entry points are {entries}, expected {slug} = "infimum_{slug}.hooks"')
    assert not wrong, "\n".join(wrong)


def test_available_plugins_are_installed_and_active(catalog: dict[str, dict[str, Any]], registry: Registry) -> None:
    records = {record.name: record for record in registry.plugins if record.status != "shadowed"}
    wrong = []
    for slug, row in available(catalog).items():
        record = records.get(slug)
        if record is None:
            wrong.append(f"{slug} is not installed; `make test` installs it, as does pip install -e")
        elif record.status != "active":
            wrong.append(f"{slug} is {record.status}: {record.reason}")
        elif record.distribution != row["distribution"]:
            wrong.append(f"{slug} comes from '{record.distribution}', registry.yaml says '{row['distribution']}'")
        else:
            wrong += [f"{slug}: {text}" for text in record.warnings]
    assert not wrong, "\n".join(wrong)


def test_what_is_registered_and_rows_agree(catalog: dict[str, dict[str, Any]], registry: Registry) -> None:
    wrong = []
    for slug, row in available(catalog).items():
        mine = [(one.kind, one.name) for one in registry.components() if one.plugin == slug]
        wrong += differences(slug, row["provides"], mine)
    assert not wrong, "\n".join(wrong)


def test_differences_name_what_is_missing_on_either_side() -> None:
    provides = {"solvers": ["a.one", "a.two"], "topologies": ["a.ring"]}
    registered = [("solver", "a.one"), ("topology", "a.ring"), ("stopping_rule", "a.two")]
    assert differences("a", provides, registered) == [
        "a registers a.two (stopping_rules), which registry.yaml does not list",
        "registry.yaml lists a.two (solvers), which a does not register",
    ]


def test_every_component_can_be_imported(catalog: dict[str, dict[str, Any]], registry: Registry) -> None:
    wrong = []
    for component in registry.components():
        if component.plugin not in catalog:
            continue
        try:
            component.load()
        except PluginError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


def test_every_component_has_a_summary(catalog: dict[str, dict[str, Any]], registry: Registry) -> None:
    assert [one.name for one in registry.components() if one.plugin in catalog and not one.summary] == []

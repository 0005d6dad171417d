"""What the contract tests look at: the checkout, its catalogue and the metadata of its distributions."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def catalog() -> dict[str, dict[str, Any]]:
    """The rows of registry.yaml by slug."""
    rows: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "registry.yaml").read_text(encoding="utf-8"))["plugins"]
    return rows


@pytest.fixture(scope="session")
def plugin_folders() -> dict[str, Path]:
    """Folders below plugins/ by slug; what a branch of another state left behind as bytecode does not count."""
    found = {}
    for folder in sorted((ROOT / "plugins").iterdir()):
        if folder.is_dir() and any(path.suffix != ".pyc" for path in folder.rglob("*") if path.is_file()):
            found[folder.name] = folder
    assert found, "plugins/ holds no plugin"
    return found


@pytest.fixture(scope="session")
def member_folders(plugin_folders: dict[str, Path]) -> dict[str, Path]:
    """Folders of all distributions but the host, by the name of their plugin."""
    return {**plugin_folders, "problems": ROOT / "problems"}


@pytest.fixture(scope="session")
def manifests(member_folders: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """The `project` table of every distribution that has one, by the name of its plugin; the host's is `core`."""
    folders = {"core": ROOT / "platform", **member_folders}
    paths = {slug: folder / "pyproject.toml" for slug, folder in folders.items()}
    return {
        slug: tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for slug, path in paths.items()
        if path.is_file()
    }

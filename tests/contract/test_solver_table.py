"""The generated table docs/solvers-by-problems.md knows what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from infimum.plugins.registry import Registry, build_registry


@pytest.fixture(scope="module")
def registry() -> Registry:
    return build_registry(environ={})


@pytest.fixture(scope="module")
def pairs(root: Path) -> list[tuple[str, str]]:
    """Problem and solver of each row."""
    text = (root / "docs" / "solvers-by-problems.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return [(row[0], row[1]) for row in cells[1:]]


def test_every_registered_problem_has_a_row(pairs: list[tuple[str, str]], registry: Registry) -> None:
    wanted = {one.name for one in registry.components("problem") if one.distribution == "infimum-problems"}
    missing = wanted - {problem for problem, _ in pairs}
    assert not missing, f"python benchmarks/solvers_by_problems.py --write; it has no row for {sorted(missing)}"


def test_every_row_is_installed(pairs: list[tuple[str, str]], registry: Registry) -> None:
    known = {one.name for kind in ("problem", "solver") for one in registry.components(kind)}
    gone = {name for pair in pairs for name in pair if name not in known and name != "none"}
    assert not gone, f"python benchmarks/solvers_by_problems.py --write; it has rows of {sorted(gone)}"

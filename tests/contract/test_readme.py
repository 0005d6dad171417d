"""What the README shows is run: its Python, and its run file as a run file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.S)


def test_the_python_example_runs_and_reaches_the_optimum(capsys: pytest.CaptureFixture[str]) -> None:
    code = next(block for block in blocks("python") if "infimum.solve" in block)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    out = capsys.readouterr().out
    assert "splitting.proximal_gradient" in out and "converged" in out
    result = names["result"]
    assert result.success  # type: ignore[attr-defined]


def test_the_run_file_example_runs(tmp_path: Path) -> None:
    from infimum.runfile import RunFile

    path = tmp_path / "run.yaml"
    path.write_text(blocks("yaml")[0], encoding="utf8")
    assert RunFile.load(path).prepare().solve().success


def test_what_the_readme_names_exists() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target
    for name in re.findall(r"problems/runs/[\w-]+\.yaml", TEXT):
        assert (ROOT / name).exists(), name


def test_readme_starts_with_the_two_commands() -> None:
    first = blocks("sh")[0]
    assert "make demo" in first and "make test" in first

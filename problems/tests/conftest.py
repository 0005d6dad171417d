"""The optima of the problems, from outside."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def references():
    """The module benchmarks/references.py, which needs CVXPY."""
    pytest.importorskip("cvxpy")
    path = Path(__file__).parents[2] / "benchmarks" / "references.py"
    spec = importlib.util.spec_from_file_location("references", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

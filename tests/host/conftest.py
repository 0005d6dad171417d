"""Toy solvers and oracles under the name `toys`, and a registry that holds nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location("toys", Path(__file__).with_name("toys.py"))
assert _spec is not None
assert _spec.loader is not None
toys = importlib.util.module_from_spec(_spec)
sys.modules["toys"] = toys
_spec.loader.exec_module(toys)


@pytest.fixture
def toy_registry(monkeypatch):
    """The process-wide registry, for the time of a test made of the toys alone."""
    from infimum.plugins import registry

    made = toys.make_registry()
    monkeypatch.setattr(registry, "_registry", made)
    return made

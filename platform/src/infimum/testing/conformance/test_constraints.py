"""Every constraint: what it offers fits together, in every precision and namespace that it claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infimum.errors import InfimumError
from infimum.plugins.records import Component
from infimum.testing import check_constraint
from infimum.testing.conformance.selection import components, load, parametrize, supports
from infimum.testing.examples import built, examples

SHAPES = ((5,), (3,), (4,), (2,), (1,), (6,), (8,), (4, 4), (5, 3), (3, 3), (2, 2), (6, 3), (2, 5, 3))
"""Shapes of points that are tried, for sets that do not say theirs."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "component", components(metafunc.config, "constraint"), "constraint")


def _point(constraint: Any) -> np.ndarray:
    own = getattr(constraint, "shape", None)
    rng = np.random.default_rng(5)
    for shape in (*([own] if own is not None else []), *SHAPES):
        x: np.ndarray = rng.standard_normal(shape)
        try:
            constraint.check(x)
            constraint.violation(x)
        except (InfimumError, ValueError, IndexError):
            continue
        return x
    pytest.fail(f"{constraint!r} takes no point of the shapes {SHAPES}; give it an attribute `shape`", pytrace=False)


@pytest.mark.parametrize("form", ["numpy", "float32", "torch"])
def test_what_it_offers_fits_together(component: Component, form: str) -> None:
    supports(load(component), form)
    for options in examples(component):
        constraint = built(component, options).instance
        x: Any = _point(constraint)
        if form == "float32":
            x = x.astype(np.float32)
        elif form == "torch":
            x = pytest.importorskip("torch").as_tensor(x)
        report = check_constraint(constraint, x)
        assert report.ok, report

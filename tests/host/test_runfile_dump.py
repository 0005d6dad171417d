"""Plain data to YAML and back."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infimum.exactness import Exactness
from infimum.runfile.dump import dump_yaml, is_plain, plain
from infimum.runfile.reader import read_text

TRICKY = [
    "1e-3",
    "yes",
    "on",
    "010",
    "0o7",
    "1:30",
    "<<",
    "=",
    "null",
    "~",
    "",
    "max_iter(1e4) | x",
    "a: b",
    " x",
    "# c",
    "*a",
    "&a",
    "%a",
    "@a",
    "\n",
    "a\n b\n",
    "é",
    "- a",
    ".inf",
    "1_0",
    "0x1",
    "2001-01-01",
    "\x85",
    "\u2028x",
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(TRICKY)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(TRICKY) | st.text(max_size=4), VALUES, min_size=1, max_size=3))
def test_what_is_written_reads_back_the_same(data: dict[str, Any]) -> None:
    assert read_text(dump_yaml(data), "f.yaml").plain == data


@pytest.mark.parametrize("text", TRICKY)
def test_text_is_text_for_older_readers_too(text: str) -> None:
    assert yaml.safe_load(dump_yaml({"a": text})) == {"a": text}


def test_values_of_python_become_plain() -> None:
    data = {
        "a": (1, 2.5),
        "b": np.float32(0.5),
        "c": np.arange(3),
        "d": Exactness.tolerance,
        "e": Path("x/y"),
        "f": {
            1,
        },
        "g": np.bool_(True),
        "h": math.inf,
    }
    assert plain(data) == {
        "a": [1, 2.5],
        "b": 0.5,
        "c": [0, 1, 2],
        "d": "tolerance",
        "e": "x/y",
        "f": [1],
        "g": True,
        "h": math.inf,
    }


@pytest.mark.parametrize("value", [object(), print, b"bytes", {1: 2}, [object()]])
def test_what_has_no_form_is_known(value: object) -> None:
    assert not is_plain(value)

"""Runs in processes that are killed at any moment end, taken up again, bit for bit like runs in one go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("interrupted.py")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")


def interrupted(case: str, folder: Path, kills: str, seed: int = 0) -> tuple[int, int, str]:
    """How many children were killed, how many checkpoints were lost, and what else was printed."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), case, str(folder), str(seed), kills],
        capture_output=True,
        text=True,
        timeout=280,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    killed, lost, said = done.stdout.splitlines()[-1].split(" ", 2)
    return int(killed), int(lost), said


@pytest.mark.parametrize("case", ["hjprox", "torch"])
def test_kill_at_random_moments(case: str, tmp_path: Path) -> None:
    if case == "torch":
        pytest.importorskip("torch")
    killed, lost, said = interrupted(case, tmp_path, "4")
    assert killed >= 2 and not lost and said == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("case", ["hjprox", "cocd", "zeroth", "cadence", "torch"])
def test_kill_fifty_times(case: str, tmp_path: Path) -> None:
    killed, lost, said = interrupted(case, tmp_path, "50", seed=1)
    assert killed >= 5 and not lost and said == "[]"


def test_kill_in_the_middle_of_writing(tmp_path: Path) -> None:
    killed, lost, said = interrupted("zeroth", tmp_path, "fsync:6,replace:5,write_array:4")
    assert killed >= 13 and not lost and said == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "least"), [("fsync:40", 12), ("replace:40", 10), ("write_array:20", 5), ("unlink:20", 10)]
)
def test_kill_at_every_point_of_writing(call: str, least: int, tmp_path: Path) -> None:
    # The n-th child gets n calls further, so the run ends long before all of them are dead.
    killed, lost, said = interrupted("zeroth", tmp_path, call)
    assert killed >= least and not lost and said == "[]"

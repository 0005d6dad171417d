"""Sweeps that are killed and interrupted at random moments lose no finished run and end like sweeps in one go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("interrupted_sweep.py")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
@pytest.mark.parametrize(("jobs", "kills"), [(2, 30), (1, 20)])
def test_fifty_interruptions_lose_no_finished_run(jobs: int, kills: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "7", str(kills), str(jobs)],
        capture_output=True,
        text=True,
        timeout=1700,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ended, lost, said = done.stdout.splitlines()[-1].split(" ", 2)
    assert int(ended) >= 8 and lost == "0" and said == "[]"

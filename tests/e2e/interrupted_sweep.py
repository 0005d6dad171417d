"""A process that lets sweeps be killed and interrupted at random moments until they are done.

`python interrupted_sweep.py FOLDER SEED KILLS JOBS` ends the sweep's process KILLS times at most, by SIGKILL, SIGINT or
SIGTERM, each time with `--resume` after it, and prints how often it did, how many finished members were lost or
changed, and where the end differs from a sweep in one go.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from infimum import Runs
from infimum.testing.compare import result_difference

MODULE = """
import time
import numpy as np
from infimum import Composite, Function

def make(nap: float = 0.0, scale: float = 1.0) -> Composite:
    def gradient(x):
        time.sleep(nap)
        return scale * x
    return Composite(Function(lambda x: 0.5 * scale * float(x @ x), gradient=gradient), start=np.full(3, 2.0))
"""
SWEEP = """
problem: {use: "python:x_sweep_own:make", nap: 0.01}
solver: {use: splitting.gradient_descent, step: 0.1}
stopping: max_iter(20)
seed: 1
checkpoint: {every: 5}
repeat: 8
sweep: {product: {solver.step: [0.1, 0.2, 0.3, 0.4], problem.scale: [0.5, 1.0, 1.5]}}
"""
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def command(folder: Path, name: str, jobs: int) -> list[str]:
    # A shell starts what goes on in the background with SIGINT ignored, and what is ignored stays ignored.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "import sys; from infimum.cli import main; sys.argv[0] = 'infimum'; main()"
    options = ["sweep.yaml", "--output", str(folder / name), "--jobs", str(jobs), "--quiet", "--resume", "--fresh"]
    return [sys.executable, "-c", code, "sweep", *options]


def finished(folder: Path) -> dict[str, str]:
    """Members whose lines are complete, and a hash over the files that hold their results."""
    try:
        lines = (folder / "members.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return {}
    done = [one["id"] for one in map(json.loads, lines) if one["status"] != "interrupted"]
    return {name: contents(folder / "members" / name) for name in done}


def lines(folder: Path) -> int:
    """How many members have come to an end."""
    path = folder / "members.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def contents(folder: Path) -> str:
    total = hashlib.sha256()
    for name in ("run.yaml", "result.json", "x.npz", "trace.npz", "member.json"):
        total.update((folder / name).read_bytes())
    return total.hexdigest()


def piece(folder: Path, jobs: int, rng: random.Random, armed: bool) -> bool:
    """One process at the sweep; whether it was ended before its time."""
    before = lines(folder / "pieces")
    log = (folder / "said.txt").open("ab")
    said = {"stdout": log, "stderr": log}
    child = subprocess.Popen(command(folder, "pieces", jobs), cwd=folder, start_new_session=True, **said)
    if not armed:
        assert child.wait(600) == 0, (folder / "said.txt").read_text()[-3000:]
        return False
    # Now and then while it starts, mostly while members come to an end.
    if rng.random() < 0.8:
        goal, until = before + 1, time.monotonic() + 120
        while child.poll() is None and lines(folder / "pieces") < goal and time.monotonic() < until:
            time.sleep(0.005)
    time.sleep(rng.uniform(0.0, 0.2))
    if child.poll() is not None:
        assert child.returncode == 0, (folder / "said.txt").read_text()[-3000:]
        return False
    number = rng.choice(SIGNALS)
    os.kill(child.pid, number)
    code = child.wait(120)
    assert code in (0, 130, -number), (code, number, (folder / "said.txt").read_text()[-3000:])
    return True


def main() -> None:
    folder, seed, kills, jobs = Path(sys.argv[1]), *map(int, sys.argv[2:])
    (folder / "x_sweep_own.py").write_text(MODULE)
    (folder / "sweep.yaml").write_text(SWEEP)
    subprocess.run(command(folder, "whole", jobs), cwd=folder, check=True)
    rng, ended, lost = random.Random(seed), 0, 0
    kept: dict[str, str] = {}
    again = True
    while again:
        again = piece(folder, jobs, rng, armed=ended < kills)
        ended += again
        now = finished(folder / "pieces")
        lost += sum(now.get(name) != one for name, one in kept.items())
        kept = now
    print(ended, lost, differences(folder))


def differences(folder: Path) -> list[str]:
    """What differs between the sweep in pieces and the one in one go."""
    whole, pieces = Runs.load(folder / "whole"), Runs.load(folder / "pieces")
    said = [f"{len(whole)} and {len(pieces)} runs"] if len(whole) != len(pieces) else []
    for one, other in zip(whole, pieces, strict=False):
        if (one.name, one.status) != (other.name, other.status):
            said.append(f"{one.name} {one.status}: {other.name} {other.status}")
        elif differs := result_difference(one.result, other.result):
            said.append(f"{one.name}: {differs}")
    told = (folder / "pieces" / "members.jsonl").read_text().splitlines()
    names = [one["id"] for one in map(json.loads, told) if one["status"] != "interrupted"]
    if len(names) != len(set(names)):
        said.append("a finished run was run again")
    left = {one.name for one in (folder / "pieces" / "members").iterdir()} - set(names)
    return said + ([f"left behind: {sorted(left)}"] if left else [])


if __name__ == "__main__":
    main()

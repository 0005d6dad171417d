"""What many runs cost beside the runs: a sweep of short runs on two workers against the ideal.

    python benchmarks/many.py [--runs 200] [--milliseconds 50] [--jobs 2]

Each run sleeps for its time, so that the figure is about the host: starting, sending, writing run folders, lines. The
workers are up before the clock starts. `second compare` is the wall time of a whole `infimum compare` whose runs are
all cached. `cpu/ms` is the CPU time a run of this process and of all processes below it, which a busy machine inflates
less than wall time; `of it solving` is that of putting a run together and solving it alone. /proc is needed for both.
The folders stay until the end, as a user's do: a file system may take long to make files right after many were removed
(ext4 passes over every inode that was freed within the last half minute).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULE = """
import time
import numpy as np
from infimum import Composite, Function

def make(nap: float = 0.0) -> Composite:
    def gradient(x):
        time.sleep(nap)
        return x
    return Composite(Function(lambda x: 0.5 * float(x @ x), gradient=gradient), start=np.ones(3))
"""
RUN = """
problem: {{use: "python:many_bench_own:make", nap: {nap}}}
solver: {{use: splitting.gradient_descent, step: 0.1}}
stopping: max_iter(4)
seed: 1
repeat: {runs}
value_every: 1000
"""
COMPARE = """
problem: {use: problems.sparse_logistic, data: breast_cancer, penalty: 1e-2}
seed: 7
repeat: 3
compare:
  solvers:
    plain: {use: splitting.proximal_gradient}
    accelerated: {use: splitting.proximal_gradient, acceleration: true}
  budget: {gradient: 300}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--milliseconds", type=float, default=50.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["INFIMUM_CACHE"] = str(Path(folder) / "cache")
        Path("many_bench_own.py").write_text(MODULE)
        Path("compare.yaml").write_text(COMPARE)
        sweeps(options)
        compares()


def sweeps(options: argparse.Namespace) -> None:
    import infimum

    # Five evaluations a run: one at the start and one an iteration.
    Path("run.yaml").write_text(RUN.format(nap=options.milliseconds / 5000, runs=options.runs))
    (alone,) = infimum.sweep("run.yaml", repeat=1, jobs=1, cache=False, folder="alone")
    per_run = alone.seconds
    solving = alone_cpu()
    print(
        f"{'engine':10} {'runs':>5} {'one run/ms':>10} {'ideal/s':>8} {'wall/s':>8} {'wall/ideal':>10} {'cpu/ms':>7}"
        f" {'of it solving':>13}"
    )
    for engine in ("loky", "threading"):
        warm = {"repeat": 4 * options.jobs, "folder": f"{engine}-warm"}
        infimum.sweep("run.yaml", jobs=options.jobs, cache=False, engine=engine, **warm)
        for number in range(options.repeats):
            before, began = tree_cpu(), time.perf_counter()
            runs = infimum.sweep("run.yaml", jobs=options.jobs, cache=False, engine=engine, folder=f"{engine}-{number}")
            wall, cpu = time.perf_counter() - began, 1e3 * (tree_cpu() - before) / options.runs
            lost = [one.error for one in runs if one.lost]
            assert not lost, lost[:2]
            ideal = statistics.fmean(one.seconds for one in runs) * options.runs / options.jobs
            print(
                f"{engine:10} {options.runs:5} {1e3 * per_run:10.1f} {ideal:8.2f} {wall:8.2f} {wall / ideal:10.2f}"
                f" {cpu:7.1f} {solving:13.1f}",
                flush=True,
            )


def alone_cpu() -> float:
    """CPU milliseconds of putting a run together and solving it, without a folder: the median of many."""
    from infimum.many.planning import from_path
    from infimum.runfile import RunFile

    config = from_path("run.yaml").members[0].config
    times = []
    for _ in range(30):
        began = time.process_time()
        RunFile.of(config, "run.yaml").prepare().solve()
        times.append(1e3 * (time.process_time() - began))
    return statistics.median(times)


def tree_cpu() -> float:
    """CPU seconds of this process and of all below it, with those that have ended and were waited for."""
    ticks, spent, below = os.sysconf("SC_CLK_TCK"), {}, {}
    for path in Path("/proc").iterdir():
        try:
            cells = (path / "stat").read_text().rpartition(")")[2].split() if path.name.isdigit() else []
        except OSError:
            continue
        if cells:
            below.setdefault(int(cells[1]), []).append(int(path.name))
            spent[int(path.name)] = sum(map(int, cells[11:15])) / ticks
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        one = waiting.pop()
        total += spent.get(one, 0.0)
        waiting += below.get(one, [])
    return total


def compares() -> None:
    command = [sys.executable, "-m", "infimum", "compare", "compare.yaml", "--quiet"]
    for name in ("first compare", "second compare"):
        times = []
        for _ in range(1 if name.startswith("first") else 5):
            began = time.perf_counter()
            subprocess.run(command, check=True)
            times.append(time.perf_counter() - began)
        print(f"{name:15} {statistics.median(times):8.2f} s wall (median of {len(times)})", flush=True)


if __name__ == "__main__":
    main()

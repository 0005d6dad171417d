"""What training under the host costs beside a bare torch loop of the same optimizer, and that both give the same bits.

CPU time of epochs on the handwritten digits, the loops in turn, one thread. The bare loop draws batches from arrays in
memory and reads the loss at every iteration, as loops that log do; `unread` never reads it. Services as they are by
default: counters, finiteness of the loss at every check, the rules `max_epochs | max_iter | max_time`, a trace row
whenever one is due, random numbers of the run's own. The column `with value` adds the loss on the held-out images and
the best point once an epoch, beside a bare loop that evaluates and copies as often.

    python benchmarks/torch_bridge.py            # about a minute
    python benchmarks/torch_bridge.py --epochs 2 --repeats 7
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

import infimum
from infimum_torch import TorchFunction, Training
from infimum_torch.digits import HELD_OUT, DigitsCNN, DigitsMLP, _images

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear, 650": (lambda: nn.Linear(64, 10), (64,)),
    "mlp 64-64, 9k": (lambda: DigitsMLP(64, 2, 0.0, True), (64,)),
    "mlp 256-256, 85k": (lambda: DigitsMLP(256, 2, 0.0, True), (64,)),
    "cnn 16, 3k": (lambda: DigitsCNN(16, 3, False), (1, 8, 8)),
}
BATCH = 64
PER_EPOCH = -(-(1797 - HELD_OUT) // BATCH)


class Bare:
    """A loop as users write it."""

    def __init__(self, module: nn.Module, shape: tuple[int, ...], epochs: int, *, read: bool, evaluate: bool) -> None:
        images, labels = _images()
        self.inputs, self.labels = images[HELD_OUT:].reshape(-1, *shape), labels[HELD_OUT:]
        self.held = images[:HELD_OUT].reshape(-1, *shape), labels[:HELD_OUT]
        self.module, self.epochs, self.read, self.evaluate = copy.deepcopy(module), epochs, read, evaluate

    def __call__(self) -> float:
        optimizer = torch.optim.Adam(self.module.parameters(), lr=1e-3)
        generator = torch.Generator().manual_seed(0)
        best = float("inf")
        began = time.process_time()
        for _ in range(self.epochs):
            order = torch.randperm(len(self.labels), generator=generator)
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.module(self.inputs[rows]), self.labels[rows])
                loss.backward()
                optimizer.step()
                if self.read:
                    loss.item()
            if self.evaluate:
                best = min(best, self._evaluated())
        return time.process_time() - began

    def _evaluated(self) -> float:
        self.module.eval()
        with torch.no_grad():
            value = nn.functional.cross_entropy(self.module(self.held[0]), self.held[1]).item()
        copy.deepcopy(self.module)
        self.module.train()
        return value


def hosted(module: nn.Module, shape: tuple[int, ...], epochs: int, *, evaluate: bool, check_every: int = 1) -> float:
    """The same under the host, without what is done once a run."""
    images, labels = _images()
    problem = Training(
        module,
        "cross_entropy",
        (images[HELD_OUT:].reshape(-1, *shape), labels[HELD_OUT:]),
        batch_size=BATCH,
        validation=(images[:HELD_OUT].reshape(-1, *shape), labels[:HELD_OUT]) if evaluate else None,
        value="loss" if evaluate else "none",
    )
    run = infimum.prepare(
        problem,
        solver={"use": "torch.adam", "lr": 1e-3},
        stopping=f"torch.max_epochs({epochs}) | max_iter({epochs * PER_EPOCH}) | max_time(600)",
        seed=0,
        check_every=check_every,
    )
    began = time.process_time()
    run.advance(10**6)
    return time.process_time() - began


def ratios(loops: dict[str, Callable[[], float]], base: dict[str, str], repeats: int) -> dict[str, tuple[float, float]]:
    """Median seconds of each loop and its ratio to its base; the loops take turns."""
    times: dict[str, list[float]] = {name: [] for name in loops}
    for one in loops.values():
        one()
    for _ in range(repeats):
        for name, one in loops.items():
            times[name].append(one())
    return {
        name: (
            statistics.median(times[name]),
            statistics.median(a / b for a, b in zip(times[name], times[base[name]], strict=True)),
        )
        for name in loops
    }


def training_table(epochs: int, repeats: int) -> None:
    """Ratios of training loops."""
    print(f"training, Adam, batches of {BATCH}: microseconds an iteration of the bare loop, then ratios of CPU time")
    print(f"{'module':<18}{'bare':>8}{'unread':>9}{'host':>9}{'every 20':>10}{'with value':>12}")
    for name, (make, shape) in MODELS.items():
        torch.manual_seed(0)
        module = make()
        loops = {
            "bare": lambda m=module, s=shape: Bare(m, s, epochs, read=True, evaluate=False)(),
            "unread": lambda m=module, s=shape: Bare(m, s, epochs, read=False, evaluate=False)(),
            "bare value": lambda m=module, s=shape: Bare(m, s, epochs, read=True, evaluate=True)(),
            "host": lambda m=module, s=shape: hosted(m, s, epochs, evaluate=False),
            "host 20": lambda m=module, s=shape: hosted(m, s, epochs, evaluate=False, check_every=20),
            "host value": lambda m=module, s=shape: hosted(m, s, epochs, evaluate=True),
        }
        base = {one: "bare value" if one == "host value" else "bare" for one in loops}
        found = ratios(loops, base, repeats)
        micro = 1e6 * found["bare"][0] / (epochs * PER_EPOCH)
        row = "".join(
            f"{found[one][1]:>{width}.2f}"
            for one, width in (("unread", 9), ("host", 9), ("host 20", 10), ("host value", 12))
        )
        print(f"{name:<18}{micro:>8.0f}{row}")


def array_table(repeats: int) -> None:
    """Ratios of optimizers on arrays."""

    def value(x: torch.Tensor) -> torch.Tensor:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    steps, start = 300, np.zeros(1000)

    def bare() -> float:
        x = torch.as_tensor(start).clone().requires_grad_()
        optimizer = torch.optim.Adam([x], lr=1e-3)
        began = time.process_time()
        for _ in range(steps):
            optimizer.zero_grad()
            loss = value(x)
            loss.backward()
            optimizer.step()
            loss.item()
        return time.process_time() - began

    def host(point: Any) -> float:
        run = infimum.prepare(
            TorchFunction(value), point, solver="torch.adam", stopping=f"max_iter({steps}) | max_time(600)", seed=0
        )
        began = time.process_time()
        run.advance(steps)
        return time.process_time() - began

    loops = {"bare": bare, "torch": lambda: host(torch.as_tensor(start)), "numpy": lambda: host(start)}
    found = ratios(loops, dict.fromkeys(loops, "bare"), repeats)
    print(
        f"\nAdam on a function of 1000 variables: bare {1e6 * found['bare'][0] / steps:.0f} microseconds an iteration"
    )
    print(f"ratio with a torch start {found['torch'][1]:.2f}, with a NumPy start {found['numpy'][1]:.2f}")


def same_bits() -> bool:
    """Whether a bare loop and the host end at the same weights (batches in order)."""
    images, labels = _images()
    torch.manual_seed(0)
    module = DigitsMLP(64, 2, 0.0, True)
    problem = Training(module, "cross_entropy", (images, labels), batch_size=BATCH, shuffle=False, value="none")
    found = infimum.solve(problem, solver="torch.adam", stopping="torch.max_epochs(2)", seed=0).x
    optimizer = torch.optim.Adam(module.parameters())
    for _ in range(2):
        for start in range(0, len(labels), BATCH):
            optimizer.zero_grad()
            rows = slice(start, start + BATCH)
            nn.functional.cross_entropy(module(images[rows]), labels[rows]).backward()
            optimizer.step()
    return all(torch.equal(a, b) for a, b in zip(found.parameters(), module.parameters(), strict=True))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {arguments.repeats} repeats of {arguments.epochs} epochs, medians")
    print(f"same weights as the bare loop, bit for bit: {'yes' if same_bits() else 'NO'}")
    training_table(arguments.epochs, arguments.repeats)
    array_table(arguments.repeats)


if __name__ == "__main__":
    main()

"""Coherent coordinate descent: where reuse of old difference quotients helps, and where it does not.

Four tables, all at equal function queries and fixed seeds: a small net on digits at the same lr and with lr tuned per
method; a quadratic of condition number 100; a separable quadratic with ripples; seconds a step for a net of 267,594
parameters. The step sizes tried are printed, not only the best one. RGE is the mean of 24 central differences along
random Gaussian directions, written here. One thread.

    python benchmarks/cocd.py [--queries 96000] [--write curves.png]      # the picture needs matplotlib
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import itertools
import math
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

import infimum
from infimum import Composite
from infimum.errors import InfimumWarning
from infimum.functions import Function
from infimum_cocd import CoCD, Descent, module_losses

Curve = list[tuple[int, float]]
"""Queries so far and the value."""
DIRECTIONS = 24


def digits() -> tuple[torch.Tensor, ...]:
    """Standardized pixels and classes, 1437 for training and 360 for the test."""
    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(0)) / (X.std(0) + 1e-8)
    order = np.random.default_rng(0).permutation(len(y))
    inputs, targets = torch.as_tensor(X[order], dtype=torch.float32), torch.as_tensor(y[order])
    return inputs[:1437], targets[:1437], inputs[1437:], targets[1437:]


def stack(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU between them, from a fixed seed."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inside, outside in itertools.pairwise(widths):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def train(net: nn.Module, step: Callable[[torch.Tensor, torch.Tensor], int], queries: int) -> tuple[Curve, float]:
    """Steps on random batches of 128 until the queries are spent; the curve of the training loss, test accuracy."""
    X, y, X_test, y_test = digits()
    draw, used, curve = np.random.default_rng(1), 0, []
    with torch.no_grad():
        while used < queries:
            if len(curve) * queries <= 40 * used:
                curve.append((used, float(F.cross_entropy(net(X), y))))
            rows = draw.choice(len(X), 128, replace=False)
            used += step(X[rows], y[rows])
        curve.append((used, float(F.cross_entropy(net(X), y))))
        return curve, float((net(X_test).argmax(1) == y_test).float().mean())


def by_cocd(net: nn.Module, **options: Any) -> Callable[[torch.Tensor, torch.Tensor], int]:
    optimizer = CoCD(net.parameters(), **options)

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> int:
        before = optimizer.queries
        optimizer.step(module_losses(net, F.cross_entropy, inputs, targets))
        return optimizer.queries - before

    return step


def by_directions(net: nn.Module, lr: float, eps: float = 1e-3) -> Callable[[torch.Tensor, torch.Tensor], int]:
    """RGE: every query moves all parameters along a random direction."""
    draw = torch.Generator().manual_seed(3)

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> int:
        x = nn.utils.parameters_to_vector(net.parameters())
        move = torch.zeros_like(x)
        for _ in range(DIRECTIONS):
            u, losses = torch.randn(x.shape, generator=draw), []
            for sign in (1.0, -1.0):
                nn.utils.vector_to_parameters(x + sign * eps * u, net.parameters())
                losses.append(float(F.cross_entropy(net(inputs), targets)))
            move += (losses[0] - losses[1]) / (2 * eps) / DIRECTIONS * u
        nn.utils.vector_to_parameters(x - lr * move, net.parameters())
        return 2 * DIRECTIONS

    return step


def by_sgd(net: nn.Module, lr: float) -> Callable[[torch.Tensor, torch.Tensor], int]:
    """Stochastic gradients by backpropagation; a step is charged what a step of CoCD is."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> int:
        with torch.enable_grad():
            optimizer.zero_grad()
            F.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
        return 2 * DIRECTIONS + 1

    return step


def small_net(queries: int) -> dict[str, Curve]:
    """2,410 parameters at the same lr, then with lr tuned."""
    cases: list[tuple[str, Callable[[nn.Module], Any]]] = [
        ("SGD lr .01, same number of steps", lambda net: by_sgd(net, 0.01)),
        ("CoCD lr .01 gamma 1", lambda net: by_cocd(net, lr=0.01, block=24)),
        ("BCCD lr .01 (gamma 0)", lambda net: by_cocd(net, lr=0.01, block=24, gamma=0.0)),
        ("CoCD lr .02 gamma 1", lambda net: by_cocd(net, lr=0.02, block=24)),
        ("CoCD lr .03 gamma .99", lambda net: by_cocd(net, lr=0.03, block=24, gamma=0.99)),
        ("CoCD forward eps .01 lr .01", lambda net: by_cocd(net, lr=0.01, block=24, eps=0.01, difference="forward")),
        ("BCCD lr 1", lambda net: by_cocd(net, lr=1.0, block=24, gamma=0.0)),
        ("BCCD lr 3", lambda net: by_cocd(net, lr=3.0, block=24, gamma=0.0)),
        ("RGE lr .03", lambda net: by_directions(net, 0.03)),
        ("RGE lr .1", lambda net: by_directions(net, 0.1)),
    ]
    print(f"\nMLP 64-32-10 (2,410 parameters) on digits, batch 128, {queries} queries, block 24, central, eps .1")
    print(f"{'':36}{'train loss':>12}{'test acc.':>11}{'seconds':>9}")
    curves = {}
    for name, make in cases:
        net, begin = stack(64, 32, 10), time.perf_counter()
        curves[name], accuracy = train(net, make(net), queries)
        seconds = time.perf_counter() - begin
        print(f"{name:36}{curves[name][-1][1]:12.3f}{accuracy:11.1%}{seconds:9.1f}", flush=True)
    return curves


def descend(function: Function, start: np.ndarray, queries: int, **options: Any) -> Curve:
    """The curve of f by `cocd.descent`."""
    curve: Curve = []
    solver = Descent(**options)

    def watch(progress: Any) -> None:
        used = int(progress.calls.total("value"))
        if len(curve) * queries <= 40 * used or used >= queries:
            curve.append((used, float(function.value(progress.point))))

    infimum.solve(
        Composite({"f": function}),
        start,
        solver=solver,
        stopping=f"max_calls({queries})",
        seed=0,
        callback=watch,
    )
    return curve


def quadratic(queries: int = 40_000) -> dict[str, Curve]:
    """Dense, n = 200, condition number 100."""
    n, draw = 200, np.random.default_rng(0)
    Q, _ = np.linalg.qr(draw.standard_normal((n, n)))
    P, start = (Q * np.geomspace(0.01, 1.0, n)) @ Q.T, draw.standard_normal(n)
    f = Function(lambda x: float(0.5 * x @ P @ x), values=lambda X: 0.5 * ((X @ P) * X).sum(1))
    cases = {
        "central, gamma 1": {"difference": "central", "eps": 0.1},
        "forward, gamma 1": {"difference": "forward", "eps": 1e-6},
        "central, gamma .9": {"gamma": 0.9, "eps": 0.1},
        "BCCD (gamma 0)": {"gamma": 0.0, "eps": 0.1},
    }
    rates = {"BCCD (gamma 0)": (0.075, 2.0, 5.0), "central, gamma .9": (0.075, 0.1, 0.15)}
    print(f"\nquadratic n=200, condition number 100, f0={f.value(start):.3g}, {queries} queries, block 10")
    curves = {}
    for name, options in cases.items():
        for lr in rates.get(name, (0.025, 0.05, 0.075)):
            curve = descend(f, start, queries, lr=lr, block=10, **options)
            print(f"{name + f', lr {lr:g}':36}{curve[-1][1]:12.2e}", flush=True)
            if name not in curves or curve[-1][1] < curves[name][-1][1]:
                curves[name] = curve
    return curves


def ripples(queries: int = 20_000) -> dict[str, Curve]:
    """Separable, n = 100, condition number 10, with ripples of period 2 pi / 40."""
    n, h = 100, np.linspace(0.1, 1.0, 100)

    def values(X: np.ndarray) -> np.ndarray:
        return np.asarray(0.5 * (h * X * X).sum(-1) + 0.05 * (1 - np.cos(40 * X)).sum(-1))

    f, start = Function(lambda x: float(values(x)), values=values), np.random.default_rng(0).standard_normal(n)
    print(f"\nseparable quadratic with ripples, n=100, f0={f.value(start):.3g}, {queries} queries, block 10, central")
    print(f"{'':16}{'CoCD lr .05':>14}{'BCCD lr .05':>14}{'BCCD lr .5':>14}")
    curves = {}
    for name, eps in (("1e-3", 1e-3), (".02", 0.02), ("pi/40", math.pi / 40), (".5", 0.5), ("1", 1.0)):
        found = [
            descend(f, start, queries, lr=lr, block=10, eps=eps, gamma=gamma)
            for lr, gamma in ((0.05, 1.0), (0.05, 0.0), (0.5, 0.0))
        ]
        print(f"{'eps ' + name:16}" + "".join(f"{curve[-1][1]:14.4g}" for curve in found), flush=True)
        curves[f"eps {name}"] = found[0]
    return curves


def large_net(steps: int = 3) -> None:
    """64-512-448-10, block 2048, batch 64."""
    X, y, *_ = digits()
    print("\nMLP 64-512-448-10 (267,594 parameters), block 2048, batch 64, central: 4,097 queries a step")
    for path in ("rank-one", "vmap", "plain closure"):
        net = stack(64, 512, 448, 10)
        optimizer = CoCD(net.parameters(), lr=0.1, gamma=0.95, block=2048 if path == "rank-one" else 64)
        seconds = []
        for k in range(steps):
            rows, begin = slice(64 * k, 64 * (k + 1)), time.perf_counter()
            if path == "plain closure":
                optimizer.step(lambda net=net, rows=rows: F.cross_entropy(net(X[rows]), y[rows]))
            else:
                optimizer.step(module_losses(net, F.cross_entropy, X[rows], y[rows], path=path))
            seconds.append(time.perf_counter() - begin)
        each = sorted(seconds)[steps // 2] / (optimizer.queries / steps)
        print(f"{path:36}{1e3 * each:12.3f} ms a query{4.097 * each * 1e3:10.1f} s a step of 4,097", flush=True)


def draw(pictures: dict[str, dict[str, Curve]], file: Path) -> None:
    """One panel a table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(pictures), figsize=(6 * len(pictures), 4.5))
    for axis, (title, curves) in zip(axes, pictures.items(), strict=True):
        for name, curve in curves.items():
            axis.semilogy(*zip(*curve, strict=True), label=name)
        axis.set(title=title, xlabel="queries", ylabel="value")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    print(f"\ncurves: {file}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=96_000, help="of the small net")
    parser.add_argument("--write", type=Path, metavar="FILE", help="draw the curves (needs matplotlib)")
    arguments = parser.parse_args()
    if arguments.write and find_spec("matplotlib") is None:
        parser.error("--write needs matplotlib: pip install matplotlib")
    torch.set_num_threads(1)
    # Step sizes beyond stability are part of the tables.
    warnings.simplefilter("ignore", InfimumWarning)
    pictures = {
        "2,410-parameter net on digits": small_net(arguments.queries),
        "quadratic": quadratic(),
        "quadratic with ripples, CoCD": ripples(),
    }
    large_net()
    if arguments.write:
        draw(pictures, arguments.write)


if __name__ == "__main__":
    main()

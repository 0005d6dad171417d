"""The parts of `pogo.py` on handwritten digits: online principal components, and a perceptron with orthogonal layers.

Seeds that choose step sizes judge nothing: what is printed comes from others.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from typing import Any

import numpy as np
import torch

from infimum_pogo import POGO, gaps, polar

WIDTH = 128
EPOCHS, BATCHES, BATCH = 10, 14, 64
REST = (3e-2, 1e-1, 3e-1)
GRIDS = {"POGO": (0.03, 0.1, 0.3, 1.0), "POGO vadam": (1.0, 3.0, 10.0, 30.0), "parametrized": (3e-3, 1e-2, 3e-2, 1e-1)}
"""Step sizes of the orthogonal layers; each is tried with each of `REST` for Adam on all others."""
TUNING, JUDGING = (100, 101, 102), range(200, 210)


def online_pca(args: argparse.Namespace) -> None:
    """Explained variance of digits from batches of 64."""
    from infimum_pogo.problems.digits import pca

    problem = pca(components=10, batch=64)
    print(
        "\nOnline PCA of digits (p = 10, batches of 64 drawn with replacement): explained variance over the best one,"
    )
    print("lr falls as (1 - k/n)^2, the best of some by the mean of 3 seeds; mean, error and smallest of 10 others.")
    print("betas of vadam are (.8, .999)")
    runs = {
        "POGO sgd": ({"use": "pogo.pogo"}, (1.0, 1.5, 2.0, 3.0, 4.0)),
        "POGO vadam": ({"use": "pogo.pogo", "base": "vadam", "betas": (0.8, 0.999)}, (4.0, 6.0, 8.0, 12.0, 16.0)),
        "Riemannian QR": ({"use": "pogo.riemannian"}, (0.75, 1.0, 1.5, 2.0)),
        "Landing": ({"use": "pogo.landing"}, (1.0, 1.5, 2.0, 3.0)),
    }
    for n in (300, 600):
        for name, (solver, rates) in runs.items():
            lr = max(rates, key=lambda lr: _explained(problem, solver, lr, n, TUNING)[0].mean())
            shares, gap = _explained(problem, solver, lr, n, JUDGING)
            error = shares.std(ddof=1) / math.sqrt(len(shares))
            told = f"mean {shares.mean():.5f} ({error:.5f})  min {shares.min():.5f}  gap {gap:.1e}"
            print(f"  {n} steps  {name:14} {told}  (lr {lr:g}{_edge(lr, rates)})")


def _explained(problem: Any, solver: dict[str, Any], lr: float, n: int, seeds: Any) -> tuple[np.ndarray, float]:
    """Explained over the best variance for each seed, and the largest gap at the end."""
    import infimum

    shares, gap = [], 0.0
    for seed in seeds:
        options = {**solver, "gradient": "sample", "lr": lambda k: lr * max(0.0, 1.0 - k / n) ** 2}
        result = infimum.solve(problem, solver=options, stopping=f"max_iter({n})", value_every=n, seed=seed)
        shares.append(problem.value(polar(result.x)) / problem.reference)
        gap = max(gap, float(gaps(result.x[None])[0]))
    return np.array(shares), gap


def _edge(value: float, grid: tuple[float, ...]) -> str:
    return ", edge of the grid" if value in (min(grid), max(grid)) else ""


def mlp(args: argparse.Namespace) -> None:
    """An orthogonal perceptron by POGO and by the parametrization."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    inputs, labels = torch.tensor(X[order] / 16, dtype=torch.float32), torch.tensor(y[order])
    fitted, held, kept = slice(0, 897), slice(897, 1257), slice(1257, None)
    print(f"\nPerceptron 64-{WIDTH}-{WIDTH}-10 on digits, both hidden layers orthogonal, {EPOCHS} epochs of {BATCHES}")
    print(f"batches of {BATCH}. lr of the orthogonal layers and of the rest: the best of 12 pairs by the mean of")
    print("3 seeds on 360 validation pictures. Accuracy on 540 others: mean of 10 other seeds (standard error).")
    chosen = {}
    for name, rates in GRIDS.items():
        pairs = list(itertools.product(rates, REST))
        scores = {
            pair: np.mean([fit(name, pair, seed, inputs, labels, fitted, held)[0] for seed in TUNING]) for pair in pairs
        }
        chosen[name] = max(scores, key=lambda pair: scores[pair])
        told = "  ".join(f"{pair[0]:g}/{pair[1]:g} {scores[pair]:.4f}" for pair in sorted(scores, key=scores.get)[-4:])
        print(f"  {name:13} best on validation (lr/rest): {told}")
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in GRIDS}
    for seed in JUDGING:
        for name, found in runs.items():
            found.append(fit(name, chosen[name], seed, inputs, labels, fitted, kept))
    for name, found in runs.items():
        scores = np.array([one[0] for one in found])
        error, spent = scores.std(ddof=1) / math.sqrt(len(scores)), float(np.median([one[1] for one in found]))
        lr, rest = chosen[name]
        where = f"lr {lr:g}{_edge(lr, GRIDS[name])}, rest {rest:g}{_edge(rest, REST)}"
        print(f"  {name:13} {scores.mean():.4f} ({error:.4f})  {spent:6.2f} s  {where}")
    other = np.array(runs["parametrized"])
    for name in list(GRIDS)[:-1]:
        mine = np.array(runs[name])
        off, slower = mine[:, 0] - other[:, 0], np.median(other[:, 1] / mine[:, 1])
        error = off.std(ddof=1) / math.sqrt(len(off))
        print(f"  {name} against the parametrized one: {off.mean():+.4f} ({error:.4f}), {slower:.1f} times as fast")


def network(name: str, rates: tuple[float, float]) -> tuple[torch.nn.Module, list[torch.optim.Optimizer]]:
    """The perceptron and its optimizers: one for the orthogonal layers, Adam for the rest."""
    layers = [torch.nn.Linear(64, WIDTH), torch.nn.Linear(WIDTH, WIDTH)]
    for one in layers:
        torch.nn.init.orthogonal_(one.weight)
    if name == "parametrized":
        layers = [torch.nn.utils.parametrizations.orthogonal(one, orthogonal_map="matrix_exp") for one in layers]
        held = [one.parametrizations.weight.original for one in layers]
    else:
        held = [one.weight for one in layers]
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), torch.nn.Linear(WIDTH, 10))
    rest = [p for p in net.parameters() if not any(p is q for q in held)]
    others = torch.optim.Adam(rest, lr=rates[1])
    if name == "parametrized":
        return net, [torch.optim.Adam(held, lr=rates[0]), others]
    options = {} if name == "POGO vadam" else {"base": "sgd", "momentum": 0.9}
    return net, [POGO(held, lr=rates[0], rows="auto", **options), others]


def fit(
    name: str, rates: tuple[float, float], seed: int, x: Any, y: Any, fitted: slice, judged: slice
) -> tuple[float, float]:
    """Accuracy and CPU seconds of one training run; both lr fall to zero by half a cosine."""
    inputs, labels = x[fitted], y[fitted]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net, optimizers = network(name, rates)
        schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(one, EPOCHS * BATCHES) for one in optimizers]
        begun = time.thread_time()
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(labels))[: BATCHES * BATCH].split(BATCH):
                loss = torch.nn.functional.cross_entropy(net(inputs[rows]), labels[rows])
                for one in optimizers:
                    one.zero_grad()
                loss.backward()
                for one, schedule in zip(optimizers, schedules, strict=True):
                    one.step()
                    schedule.step()
        spent = time.thread_time() - begun
    with torch.no_grad():
        return float((net(x[judged]).argmax(1) == y[judged]).double().mean()), spent

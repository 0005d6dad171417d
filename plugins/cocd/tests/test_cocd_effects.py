"""What the method is for, in small: the same-lr effect, shared base values, smoothing, and where it has no edge."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import infimum
from infimum import Composite
from infimum.functions.base import Function
from infimum_cocd import Descent

RNG = np.random.default_rng(0)


def after(function, start, queries, **options):
    run = {"stopping": f"max_calls({queries})", "seed": 0}
    return infimum.solve(Composite({"f": function}), start, solver=Descent(**options), **run).value


def dense_quadratic(n=60):
    """Condition number 100, random axes."""
    Q, _ = np.linalg.qr(RNG.standard_normal((n, n)))
    P = (Q * np.geomspace(0.01, 1.0, n)) @ Q.T
    return Function(lambda x: float(0.5 * x @ P @ x), values=lambda X: 0.5 * ((X @ P) * X).sum(1))


def test_forward_with_a_shared_base_beats_central_at_equal_queries():
    f, start = dense_quadratic(), np.random.default_rng(1).standard_normal(60)
    central = after(f, start, 12_000, lr=0.15, block=6)
    forward = after(f, start, 12_000, lr=0.15, block=6, difference="forward", eps=1e-6)
    assert forward < 0.2 * central


def test_tuned_block_descent_beats_reuse_on_the_quadratic():
    """gamma = 0 at a step size of its own: no reuse of old entries is needed to be fast."""
    f, start = dense_quadratic(), np.random.default_rng(1).standard_normal(60)
    reuse = min(after(f, start, 12_000, lr=lr, block=6) for lr in (0.05, 0.1, 0.15))
    without = min(after(f, start, 12_000, lr=lr, block=6, gamma=0.0) for lr in (2.0, 3.0, 5.0))
    same = after(f, start, 12_000, lr=0.15, block=6, gamma=0.0)
    assert without < reuse < same


def test_a_large_eps_smooths_ripples_away():
    """eps = pi / 40 averages the ripples cos(40 x_i) over a whole period."""
    n = 40
    h = np.linspace(0.1, 1.0, n)

    def values(X):
        return 0.5 * (h * X * X).sum(-1) + 0.05 * (1 - np.cos(40 * X)).sum(-1)

    f, start = Function(lambda x: float(values(x)), values=values), np.random.default_rng(2).standard_normal(n)
    first = float(values(start))
    small = after(f, start, 8_000, lr=0.05, block=4, eps=1e-3)
    whole = after(f, start, 8_000, lr=0.05, block=4, eps=math.pi / 40)
    assert small > 0.1 * first
    assert whole < 1e-3 * first


def test_noise_is_averaged_by_a_large_eps():
    noise = np.random.default_rng(3)
    f = Function(lambda x: float(0.5 * x @ x) + 1e-2 * noise.standard_normal())
    start = np.ones(20)

    def reached(eps):
        run = {"stopping": "max_iter(400)", "seed": 0}
        x = infimum.solve(Composite({"f": f}), start, solver=Descent(lr=0.05, block=4, eps=eps), **run).x
        return 0.5 * float(x @ x)

    assert reached(1.0) < 0.01 * reached(0.01)


torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from infimum_cocd import CoCD, module_losses  # noqa: E402


def digits():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(0)) / (X.std(0) + 1e-8)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = torch.as_tensor(X[order], dtype=torch.float32), torch.as_tensor(y[order])
    return X[:1437], y[:1437], X[1437:], y[1437:]


def initialized(*layers):
    """The usual uniform initialization, from a generator of its own."""
    net, draw = nn.Sequential(*layers), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for layer in net:
            for p in layer.parameters():
                p.uniform_(-1.0, 1.0, generator=draw).div_(math.sqrt(layer.in_features))
    return net


def train(net, queries, gamma, lr, block):
    """Loss on the training set and accuracy on the test set."""
    X, y, X_test, y_test = digits()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    optimizer, draw = CoCD(net.parameters(), lr=lr, gamma=gamma, block=block), np.random.default_rng(1)
    while optimizer.queries < queries:
        rows = draw.choice(len(X), 128, replace=False)
        optimizer.step(module_losses(net, F.cross_entropy, X[rows], y[rows]))
    torch.set_num_threads(threads)
    with torch.no_grad():
        return float(F.cross_entropy(net(X), y)), float((net(X_test).argmax(1) == y_test).float().mean())


def test_reuse_learns_where_block_descent_at_the_same_lr_stands_still():
    """Softmax regression, 650 parameters; the large net is a slow test."""
    loss, accuracy = train(initialized(nn.Linear(64, 10)), 6_750, gamma=1.0, lr=0.02, block=13)
    still, _ = train(initialized(nn.Linear(64, 10)), 6_750, gamma=0.0, lr=0.02, block=13)
    assert loss < 0.6
    assert accuracy > 0.88
    assert still > 2.0


def mlp():
    return initialized(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


@pytest.mark.slow
def test_the_same_lr_row_of_the_table():
    """2,410 parameters, 96,000 queries: reuse trains, no reuse at the same lr does not."""
    assert sum(p.numel() for p in mlp().parameters()) == 2410
    loss, accuracy = train(mlp(), 96_000, gamma=1.0, lr=0.01, block=24)
    assert loss < 0.6
    assert accuracy > 0.90
    still, _ = train(mlp(), 96_000, gamma=0.0, lr=0.01, block=24)
    assert still > 2.2


def test_a_net_of_268_thousand_parameters_takes_its_steps():
    X, y, *_ = digits()
    net = initialized(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 448), nn.ReLU(), nn.Linear(448, 10))
    assert sum(p.numel() for p in net.parameters()) == 267_594
    optimizer = CoCD(net.parameters(), lr=0.1, gamma=0.95, block=128)
    before = [p.clone() for p in net.parameters()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            optimizer.step(module_losses(net, F.cross_entropy, X[:64], y[:64]))
    assert optimizer.queries == 2 * 257
    assert not torch.equal(next(net.parameters()), before[0])

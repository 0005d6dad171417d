"""The torch optimizer: formulas, restored parameters, schedulers, checkpoints, and the batched evaluators."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import warnings

import numpy as np
import pytest

from infimum.errors import InfimumWarning, InputError, NonFiniteError
from infimum_cocd import Coherent
from infimum_cocd.checks import NonFiniteQuery

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from infimum_cocd import CoCD, module_losses  # noqa: E402
from infimum_cocd import modules as evaluators  # noqa: E402


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def network(dtype=torch.float64, activation=nn.Tanh, widths=(5, 7, 6, 3)):
    """A stack whose parameters do not come from the global generator."""
    layers = []
    for inside, outside in itertools.pairwise(widths):
        layers += [nn.Linear(inside, outside), activation()]
    net = nn.Sequential(*layers[:-1]).to(dtype)
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(0.5 * torch.randn(p.shape, generator=generator(k), dtype=dtype))
    return net


def batch(dtype=torch.float64, rows=9, features=5):
    x = torch.randn(rows, features, generator=generator(50), dtype=dtype)
    return x, torch.arange(rows) % 3


def plain(net, x, y):
    return lambda: F.cross_entropy(net(x), y)


def flat(net):
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


@pytest.mark.parametrize("difference", ["central", "forward"])
@pytest.mark.parametrize(
    ("block", "gamma", "memory"), [(7, 1.0, None), (5, 0.9, None), (9, 0.0, None), (6, 0.8, 20), (30, 1.0, 10)]
)
def test_the_optimizer_is_the_oracle(block, gamma, memory, difference):
    """Both come from the same formulas by different code."""
    x, y = batch()
    one, twin = network(), network()
    options = {"block": block, "gamma": gamma, "memory": memory, "difference": difference, "eps": 0.05}
    optimizer = CoCD(one.parameters(), lr=0.1, **options)

    def value(vector):
        nn.utils.vector_to_parameters(torch.as_tensor(vector), twin.parameters())
        with torch.no_grad():
            return float(plain(twin, x, y)())

    from infimum.functions.base import Function

    part = Coherent(**options).bind(Function(value), np.random.default_rng(0))
    point = flat(one).numpy().copy()
    for _ in range(25):
        expected = value(point)
        assert optimizer.step(plain(one, x, y)) == pytest.approx(expected, abs=1e-10)
        estimate = part.gradient(point)
        point = point - 0.1 * estimate
        ours = torch.cat([optimizer.gradient(p).reshape(-1) for p in one.parameters()])
        np.testing.assert_allclose(ours.numpy(), estimate, atol=1e-9)
        assert optimizer.diagnostics().staleness == part.staleness
    np.testing.assert_allclose(flat(one).numpy(), point, atol=1e-9)
    assert optimizer.diagnostics().cosine == pytest.approx(part.coherence, abs=1e-6)
    assert optimizer.diagnostics().change == pytest.approx(part.estimate_change, rel=1e-6)


def test_diagnostics_agree_with_the_oracle():
    n = 20
    h = torch.linspace(0.5, 2.0, n, dtype=torch.float64)
    p = nn.Parameter(torch.ones(n, dtype=torch.float64))
    optimizer = CoCD([p], lr=0.1, block=4)
    for _ in range(15):
        optimizer.step(lambda: 0.5 * (h * p * p).sum())
    found = optimizer.diagnostics()
    assert found.curvature == pytest.approx(2.0)
    assert found.effective_step == pytest.approx(0.5)
    error = float((optimizer.gradient(p) - h * p.detach()).abs().sum())
    assert 0 < error <= found.staleness_bound
    assert found.queries == optimizer.queries == 15 * 9


@pytest.mark.parametrize("batched", [True, False])
def test_parameters_come_back_bit_for_bit(batched):
    net = network(torch.float32)
    x, y = batch(torch.float32)
    before = flat(net)
    optimizer = CoCD(net.parameters(), lr=1e-3, block=40, eps=0.1)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for _ in range(5):
        optimizer.step(module_losses(net, F.cross_entropy, x, y) if batched else plain(net, x, y))
    assert torch.equal(flat(net), before)


def test_a_closure_that_raises_leaves_everything_as_it_was():
    net = network()
    x, y = batch()
    optimizer = CoCD(net.parameters(), block=10)
    optimizer.step(plain(net, x, y))
    before, state, calls = flat(net), copy.deepcopy(optimizer.state_dict()), 0

    def broken():
        nonlocal calls
        calls += 1
        if calls == 8:
            raise RuntimeError("no more")
        return plain(net, x, y)()

    with pytest.raises(RuntimeError, match="no more"):
        optimizer.step(broken)
    assert torch.equal(flat(net), before)
    assert str(optimizer.state_dict()) == str(state)


@pytest.mark.parametrize("batched", [True, False])
def test_nan_names_the_coordinate_and_is_not_kept(batched):
    net = nn.Sequential(nn.Linear(3, 1, bias=False)).double()
    with torch.no_grad():
        net[0].weight.zero_()
    x = torch.eye(3, dtype=torch.float64)

    def loss_fn(out, target):
        return torch.where(out[2, 0] > 0.05, math.nan, (out - target).square().mean())

    optimizer = CoCD(net.parameters(), block=3)
    closure = module_losses(net, loss_fn, x, 0.0) if batched else lambda: loss_fn(net(x), 0.0)
    with pytest.raises(NonFiniteError, match=r"closure returned NaN at coordinate 2 \(\+eps\); nothing of this step"):
        optimizer.step(closure)
    assert not flat(net).any()
    assert optimizer.queries == 0
    with pytest.raises(NonFiniteQuery, match="closure returned inf at the present point"):
        optimizer.step(lambda: math.inf)


def test_groups_and_schedulers_are_read_at_every_step():
    a, b = (nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(2))
    groups = [{"params": [a]}, {"params": [b], "lr": 0.01, "eps": 0.5, "gamma": 0.5, "weight_decay": 0.1}]
    optimizer = CoCD(groups, lr=0.1, block=4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    expected_a, expected_b = 1.0, 1.0
    for k in range(4):
        optimizer.step(lambda: 0.5 * (a @ a + b @ b))
        scheduler.step()
        expected_a *= 1 - 0.1 * 0.5**k
        lr = 0.01 * 0.5**k
        expected_b = (1 - lr * 0.1) * expected_b - lr * expected_b
    np.testing.assert_allclose(a.detach(), expected_a, atol=1e-12)
    np.testing.assert_allclose(b.detach(), expected_b, atol=1e-12)


def test_frozen_parameters_are_skipped():
    net = network()
    x, y = batch()
    net[0].weight.requires_grad_(False)
    before = net[0].weight.clone()
    n = sum(p.numel() for p in net.parameters() if p.requires_grad)
    optimizer = CoCD(net.parameters(), lr=0.1, block=n)
    optimizer.step(plain(net, x, y))
    assert optimizer.queries == 2 * n + 1
    assert torch.equal(net[0].weight, before)
    assert not torch.equal(net[0].bias, network()[0].bias)
    net[0].weight.requires_grad_(True)
    for _ in range(3):
        optimizer.step(plain(net, x, y))
    assert not torch.equal(net[0].weight, before)


@pytest.mark.parametrize("memory", [None, 25])
@pytest.mark.parametrize("way", ["state_dict", "file", "deepcopy", "pickle"])
def test_a_run_goes_on_bit_for_bit_in_mid_cycle(way, memory, tmp_path):
    x, y = batch(torch.float32)

    def fresh():
        net = network(torch.float32)
        return net, CoCD(net.parameters(), lr=0.05, block=11, gamma=0.9, memory=memory, weight_decay=0.1)

    net, optimizer = fresh()
    for _ in range(7):
        optimizer.step(plain(net, x, y))
    twin, other = fresh()
    twin.load_state_dict(net.state_dict())
    if way == "deepcopy":
        twin, other = copy.deepcopy((net, optimizer))
    elif way == "pickle":
        twin, other = pickle.loads(pickle.dumps((net, optimizer)))
    elif way == "file":
        torch.save(optimizer.state_dict(), tmp_path / "state.pt")
        other.load_state_dict(torch.load(tmp_path / "state.pt"))
    else:
        other.load_state_dict(optimizer.state_dict())
    for _ in range(9):
        assert optimizer.step(plain(net, x, y)) == other.step(plain(twin, x, y))
    assert torch.equal(flat(net), flat(twin))
    assert optimizer.queries == other.queries == 16 * 23


def test_weight_decay_moves_what_the_buffer_covers():
    p = nn.Parameter(torch.ones(5, dtype=torch.float64))
    optimizer = CoCD([p], lr=0.5, block=2, memory=2, weight_decay=0.2)
    for _ in range(2):
        optimizer.step(lambda: 1.0)
    np.testing.assert_allclose(p.detach(), [0.9, 0.9, 0.9, 0.9, 1.0])


def test_strided_and_zero_dimensional_parameters():
    a = nn.Parameter(torch.ones(3, 4, dtype=torch.float64).T)
    b = nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    weight = torch.arange(12.0, dtype=torch.float64).reshape(4, 3)
    optimizer = CoCD([a, b], lr=0.01, block=13)
    optimizer.step(lambda: (weight * a).sum() + b * b)
    np.testing.assert_allclose(a.detach(), 1 - 0.01 * weight, atol=1e-12)
    assert b.item() == pytest.approx(2.0 - 0.04)


@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU, lambda: nn.ReLU(inplace=True), nn.GELU, nn.Identity])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_rank_one_path_agrees_with_the_generic_one(activation, dtype):
    net = nn.Sequential(nn.Flatten(), network(dtype, activation), nn.Dropout(0.5)).eval()
    x, y = batch(dtype)
    fast = module_losses(net, F.cross_entropy, x, y)
    generic = module_losses(net, F.cross_entropy, x, y, path="vmap")
    assert (fast.path, generic.path) == ("rank-one", "vmap")
    tolerance = 1e-6 if dtype == torch.float32 else 1e-13
    assert float(fast()) == pytest.approx(float(generic()), abs=tolerance)
    for p in net.parameters():
        index = torch.arange(p.numel())
        values = p.detach().reshape(-1) + 0.1
        one, other = fast.perturbed(p, index, values), generic.perturbed(p, index, values)
        torch.testing.assert_close(one, other, atol=tolerance, rtol=0)
        slow = []
        for i in index[:: max(1, p.numel() // 5)]:
            old = p.detach().reshape(-1)[i].clone()
            p.detach().view(-1)[i] = values[i]
            slow.append(F.cross_entropy(net(x), y).detach())
            p.detach().view(-1)[i] = old
        torch.testing.assert_close(one[:: max(1, p.numel() // 5)], torch.stack(slow), atol=tolerance, rtol=0)


def test_both_paths_give_the_gradient():
    net = network()
    x, y = batch()
    exact = torch.autograd.grad(F.cross_entropy(net(x), y), list(net.parameters()))
    for path in ("rank-one", "vmap"):
        twin = copy.deepcopy(net)
        n = sum(p.numel() for p in twin.parameters())
        optimizer = CoCD(twin.parameters(), lr=1e-9, block=n, eps=1e-4)
        optimizer.step(module_losses(twin, F.cross_entropy, x, y, path=path))
        for p, slope in zip(twin.parameters(), exact, strict=True):
            torch.testing.assert_close(optimizer.gradient(p), slope, atol=1e-8, rtol=0)


def test_queries_are_cut_into_chunks(monkeypatch):
    net = network()
    x, y = batch()
    for path in ("rank-one", "vmap"):
        whole = module_losses(net, F.cross_entropy, x, y, path=path)
        p = net[2].weight
        args = p, torch.arange(p.numel()), torch.zeros(p.numel(), dtype=p.dtype)
        expected = whole.perturbed(*args)
        monkeypatch.setattr(evaluators, "BATCH_BYTES", 2000)
        torch.testing.assert_close(whole.perturbed(*args), expected, atol=1e-13, rtol=0)
        monkeypatch.undo()


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(5, 5)
        self.outer = nn.Linear(5, 3)

    def forward(self, x, scale):
        return self.outer(scale * x + torch.tanh(self.inner(x)))


def test_any_module_goes_the_generic_way():
    net = Residual().double()
    x, y = batch()
    closure = module_losses(net, F.cross_entropy, (x, 2.0), y)
    assert closure.path == "vmap"
    twin = copy.deepcopy(net)
    one, other = CoCD(net.parameters(), lr=0.1), CoCD(twin.parameters(), lr=0.1)
    for _ in range(10):
        assert one.step(closure) == pytest.approx(other.step(lambda: F.cross_entropy(twin(x, 2.0), y)), abs=1e-10)
    torch.testing.assert_close(flat(net), flat(twin), atol=1e-10, rtol=0)


def test_hooks_ties_and_other_layers_are_no_stack():
    x, y = batch()
    hooked = network()
    hooked[2].register_forward_hook(lambda *_: None)
    tied = nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5)).double()
    tied[1].weight = tied[0].weight
    normed = nn.Sequential(nn.Linear(5, 5), nn.LayerNorm(5)).double()
    for net in (hooked, tied, normed):
        assert module_losses(net, F.cross_entropy, x, y).path == "vmap"
        with pytest.raises(InputError, match=r"path='rank-one' needs a stack of nn\.Linear"):
            module_losses(net, F.cross_entropy, x, y, path="rank-one")
    assert module_losses(network(), F.cross_entropy, x[None], y).path == "vmap"


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (nn.Dropout(0.1), r"'1' \(Dropout\) is in training mode: each query would see another mask; call module\.eval"),
        (nn.BatchNorm1d(5), r"'1' \(BatchNorm1d\) is in training mode: each query would change its statistics"),
    ],
)
def test_modules_that_differ_from_query_to_query_are_refused(layer, message):
    net = nn.Sequential(nn.Linear(5, 5), layer).double()
    with pytest.raises(InputError, match=message):
        module_losses(net, F.cross_entropy, *batch())
    net.eval()
    module_losses(net, F.cross_entropy, *batch())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 0}, r"block=0: refresh at least 1 of the n=111 coordinates per step"),
        ({"block": 112}, r"block=112: there are only n=111 coordinates"),
        ({"block": 1.5}, r"block=1\.5; expected a whole number of n=111 coordinates"),
        ({"memory": 0}, r"memory=0: keep from 1 entry to n=111"),
        ({"memory": 200}, r"memory=200: keep from 1 entry to n=111"),
        ({"lr": 0.0}, r"parameter group 0: lr=0\.0; expected a positive finite number"),
        ({"eps": -1.0}, r"parameter group 0: eps=-1\.0; expected a positive"),
        ({"gamma": 2.0}, r"gamma=2\.0; expected a number from 0 \(no reuse\) to 1"),
        ({"weight_decay": -1.0}, r"weight_decay=-1\.0; expected a finite number >= 0"),
        ({"difference": "backward"}, r"difference='backward'; expected 'central' or 'forward'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        CoCD(network().parameters(), **options)


def test_parameters_that_cannot_be_trained_are_refused():
    with pytest.raises(InputError, match=r"parameter 0 of shape \(2,\) is complex64; expected real"):
        CoCD([nn.Parameter(torch.zeros(2, dtype=torch.complex64))])
    with pytest.raises(InputError, match=r"is int64; expected real"):
        CoCD([nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False)])
    with pytest.raises(ValueError, match="empty parameter list"):
        CoCD([])
    frozen = CoCD([nn.Parameter(torch.zeros(2), requires_grad=False)])
    with pytest.raises(InputError, match="no parameter requires a gradient"):
        frozen.step(lambda: 1.0)


def test_closures_that_do_not_serve_are_refused():
    optimizer = CoCD([nn.Parameter(torch.ones(2))])
    with pytest.raises(InputError, match="needs a closure that returns the loss"):
        optimizer.step()
    with pytest.raises(InputError, match="closure returned NoneType; expected the loss"):
        optimizer.step(lambda: None)
    with pytest.raises(InputError, match=r"tensor of shape \(2,\); expected one number"):
        optimizer.step(lambda: torch.ones(2))
    with pytest.raises(InputError, match=r"has a parameter of shape \(2,\) that is none of Sequential's"):
        optimizer.step(module_losses(network(), F.cross_entropy, *batch()))
    net = network()
    with pytest.raises(InputError, match=r"loss_fn returned 27 numbers; expected one"):
        module_losses(net, lambda out, _: out, *batch()).perturbed(
            net[0].bias, torch.zeros(1).long(), torch.zeros(1).double()
        )
    with pytest.raises(InputError, match="path='fast'; expected"):
        module_losses(net, F.cross_entropy, *batch(), path="fast")


def test_an_eps_that_vanishes_is_refused():
    optimizer = CoCD([nn.Parameter(torch.tensor([1.0, 1e9]))], block=2)
    with pytest.raises(InputError, match=r"eps=0\.1 vanishes beside coordinate 1 = 1e\+09 in float32"):
        optimizer.step(lambda: 1.0)


def test_an_eps_below_the_noise_floor_warns_once():
    p = nn.Parameter(torch.full((3,), 1e-3))
    optimizer = CoCD([p], eps=1e-6, lr=1e-6)
    with pytest.warns(InfimumWarning, match=r"eps=1e-06 is below the float32 noise floor \(~0\.006\) of f≈2\.3"):
        optimizer.step(lambda: 2.3 + (p * p).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step(lambda: 2.3 + (p * p).sum())


@pytest.mark.parametrize(("lr", "warns"), [(0.3, False), (0.5, True)])
def test_a_step_beyond_stability_warns_from_what_was_measured(lr, warns):
    p = nn.Parameter(torch.ones(10, dtype=torch.float64))
    optimizer = CoCD([p], lr=lr, block=2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(20):
            optimizer.step(lambda: 0.5 * (p * p).sum())
    texts = [str(one.message) for one in seen]
    assert len(texts) == warns, texts
    if warns:
        assert "K*lr=2.5: with gamma=1 the effective step is (n/block)*lr" in texts[0]
        assert "reduce lr or gamma" in texts[0]

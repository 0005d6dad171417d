"""MeZO for torch: parameters untouched bit for bit, exact resume, groups, dropout, every message."""

from __future__ import annotations

import copy
import math

import pytest

from infimum.errors import InputError, NonFiniteError

torch = pytest.importorskip("torch")
nn = torch.nn

from infimum_zeroth import MeZO, mezo_gradient  # noqa: E402
from infimum_zeroth.torch_mezo import Displaced, _seed, direction  # noqa: E402


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(5, 4), nn.Linear(4, 5)
        self.out.weight = self.embed.weight

    def forward(self, index):
        return self.out(self.embed(index))


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1)), lambda: torch.randn(3, 5)),
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)),
        lambda: torch.randn(2, 1, 6, 6),
    ),
    "lstm": (lambda: nn.LSTM(4, 3, 2), lambda: torch.randn(5, 2, 4)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), lambda: torch.randn(2, 3, 8)),
    "tied": (Tied, lambda: torch.tensor([1, 2])),
}


def mlp(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(dtype)


def loss_of(model, dtype=torch.float64):
    x = torch.linspace(-1, 1, 12, dtype=dtype).reshape(4, 3)
    y = x.sum(1, keepdim=True) ** 2
    return lambda: ((model(x) - y) ** 2).mean()


def bits(model):
    return [p.detach().clone() for p in model.parameters()]


def same(model, before):
    return all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_operations_see_the_displaced_parameters_and_these_stay_bit_for_bit(name):
    torch.manual_seed(0)
    make, data = MODELS[name]
    model, x = make().eval(), data()
    params, before = list(model.parameters()), bits(model)

    def output():
        out = model(x)
        return out[0] if isinstance(out, tuple) else out

    used = set()
    with torch.no_grad():
        with Displaced({id(p): (j, 0.1) for j, p in enumerate(params)}, used):
            found = output()
        assert same(model, before)
        assert used == {id(p) for p in params}
        for j, p in enumerate(params):
            p.add_(direction(p, j), alpha=0.1)
        torch.testing.assert_close(found, output(), rtol=1e-6, atol=1e-6)


def test_the_estimate_is_unbiased():
    model = mlp()
    loss = loss_of(model)
    exact = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss(), list(model.parameters()))])
    many, source = [], torch.Generator().manual_seed(1)
    for _ in range(30):
        value, gradients = mezo_gradient(loss, model.parameters(), eps=1e-4, directions=20, seed=source)
        assert value == pytest.approx(loss().item(), rel=1e-4)
        many.append(torch.cat([g.reshape(-1) for g in gradients]))
    many = torch.stack(many)
    assert ((many.mean(0) - exact).abs() <= 5 * many.std(0) / math.sqrt(30) + 1e-6).all()
    assert many.var(0).sum() == pytest.approx(float((len(exact) + 1) / 20 * exact @ exact), rel=0.4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_gradient_leaves_the_parameters_alone(dtype):
    model = mlp(dtype)
    before = bits(model)
    _, gradients = mezo_gradient(loss_of(model, dtype), model.parameters(), eps=0.05, directions=3)
    assert same(model, before)
    assert [g.dtype for g in gradients] == [dtype] * 4
    assert all(p.grad is None for p in model.parameters())


def test_an_exception_in_the_closure_leaves_the_parameters_alone():
    model = mlp()
    before, optimizer = bits(model), MeZO(model.parameters(), 0.1)
    calls = []

    def failing():
        calls.append(loss_of(model)())
        if len(calls) == 2:
            raise KeyboardInterrupt
        return calls[-1]

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(failing)
    assert same(model, before)


def test_a_step_is_the_estimate_times_lr():
    model = mlp()
    twin = copy.deepcopy(model)
    optimizer = MeZO(model.parameters(), 0.1, directions=3, seed=4, weight_decay=0.5)
    calls = []
    loss = loss_of(model)
    value = optimizer.step(lambda: calls.append(1) or loss())
    assert len(calls) == 6
    expected, gradients = mezo_gradient(loss_of(twin), twin.parameters(), directions=3, seed=4)
    assert value == expected
    for p, q, g in zip(model.parameters(), twin.parameters(), gradients, strict=True):
        torch.testing.assert_close(p, q * (1 - 0.05) - 0.1 * g, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)])
def test_it_is_the_method_that_displaces_in_place(dtype, tolerance):
    """As it is usually written: to +eps, to -eps, back, and along the same direction drawn once more."""
    model, twin = mlp(dtype), mlp(dtype)
    optimizer = MeZO(model.parameters(), 0.01, eps=1e-3, weight_decay=0.1, seed=3)
    params, source = list(twin.parameters()), torch.Generator().manual_seed(3)
    loss, other = loss_of(model, dtype), loss_of(twin, dtype)

    @torch.no_grad()
    def step():
        seed = int(torch.randint(2**63 - 1, (), generator=source, dtype=torch.int64))
        z = [direction(p, _seed(seed, j)) for j, p in enumerate(params)]
        values = []
        for move in (1e-3, -2e-3, 1e-3):
            for p, u in zip(params, z, strict=True):
                p.add_(u, alpha=move)
            values.append(float(other()))
        for p, u in zip(params, z, strict=True):
            p.mul_(1 - 0.01 * 0.1).add_(u, alpha=-0.01 * (values[0] - values[1]) / 2e-3)

    for _ in range(50):
        optimizer.step(loss)
        step()
    for p, q in zip(model.parameters(), params, strict=True):
        torch.testing.assert_close(p, q, rtol=tolerance, atol=tolerance)


def test_it_trains():
    model = mlp(torch.float32)
    optimizer = MeZO(model.parameters(), 0.02, directions=4)
    loss = loss_of(model, torch.float32)
    first = loss().item()
    for _ in range(200):
        optimizer.step(loss)
    assert loss().item() < 0.5 * first


def test_groups_schedulers_and_frozen_parameters():
    model = mlp()
    model[0].bias.requires_grad_(False)
    groups = [{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters(), "eps": 1e-4}]
    optimizer = MeZO(groups, 0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.0)
    before = bits(model)
    optimizer.step(loss_of(model))
    after = bits(model)
    assert [torch.equal(p, q) for p, q in zip(before, after, strict=True)] == [True, True, False, False]
    scheduler.step()
    optimizer.step(loss_of(model))
    assert same(model, after)


def test_the_eps_of_a_group_scales_its_displacement_and_not_its_estimate():
    a, b = (torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64)) for _ in range(2))
    optimizer = MeZO([{"params": [a], "eps": 1e-2}, {"params": [b], "eps": 1e-6}], 1.0, seed=1)
    total = torch.zeros(4, dtype=torch.float64)
    for _ in range(300):
        optimizer.step(lambda: (3 * a).sum())
        total += torch.cat([1 - a.detach()[:1], 2 - a.detach()[1:], b.detach() * 0])
        with torch.no_grad():
            a.copy_(torch.tensor([1.0, 2.0]))
    torch.testing.assert_close(total[:2] / 300, torch.full((2,), 3.0, dtype=torch.float64), rtol=0.35, atol=0)
    assert torch.equal(b.detach(), torch.tensor([1.0, 2.0], dtype=torch.float64))


def test_a_state_is_taken_up_bit_for_bit(tmp_path):
    def fresh():
        model = mlp(torch.float32)
        return model, MeZO(model.parameters(), 0.01, directions=2, seed=3)

    whole, first = fresh(), fresh()
    for _ in range(6):
        whole[1].step(loss_of(whole[0], torch.float32))
    for _ in range(2):
        first[1].step(loss_of(first[0], torch.float32))
    torch.save({"model": first[0].state_dict(), "optimizer": first[1].state_dict()}, tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    model = mlp(torch.float32)
    optimizer = MeZO(model.parameters(), 9.0, seed=99)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.01
    optimizer.directions = 2
    for _ in range(4):
        optimizer.step(loss_of(model, torch.float32))
    assert same(model, bits(whole[0]))


@pytest.mark.parametrize("common", [True, False])
def test_both_sides_share_dropout_masks_if_common(common):
    torch.manual_seed(0)
    p, masks = torch.nn.Parameter(torch.ones(50)), []

    def loss():
        masks.append(torch.nn.functional.dropout(torch.ones(50)))
        return (masks[-1] * p).sum()

    optimizer = MeZO([p], 1e-3, common=common)
    optimizer.step(loss)
    optimizer.step(loss)
    assert torch.equal(masks[0], masks[1]) is common
    assert not torch.equal(masks[1], masks[2])


def test_memory_stays_at_one_displaced_tensor_at_a_time():
    """Living displaced copies, counted by weak references while the closure runs."""
    import gc
    import weakref

    params = [torch.nn.Parameter(torch.ones(10)) for _ in range(8)]
    alive, most = weakref.WeakSet(), []

    class Watched(Displaced):
        def _moved(self, tensor):
            out = super()._moved(tensor)
            if out is not tensor:
                alive.add(out)
            return out

    with torch.no_grad(), Watched({id(p): (j, 0.1) for j, p in enumerate(params)}, set()):
        for p in params:
            p.sum()
            gc.collect()
            most.append(len(alive))
    assert max(most) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": -1.0}, r"MeZO: lr=-1\.0; expected a finite number from 0"),
        ({"eps": 0.0}, r"MeZO: eps=0\.0; expected a finite number above 0"),
        ({"weight_decay": -1.0}, r"MeZO: weight_decay=-1\.0; expected a finite number from 0"),
        ({"directions": 0}, r"MeZO: directions=0; expected a finite number from 1"),
        ({"eps": 1e-300}, r"MeZO: eps=1e-300 is nothing in torch\.float32; give a larger eps"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(InputError, match=message):
        MeZO(mlp(torch.float32).parameters(), **{"lr": 0.1, **options})


def test_what_is_wrong_with_a_closure_is_named():
    model = mlp()
    optimizer = MeZO(model.parameters(), 0.1)
    before = bits(model)
    inside = model[0].weight
    cases = [
        (
            lambda: model(torch.ones(2, 3, dtype=torch.float64)),
            InputError,
            r"returned a tensor \(2, 1\) of torch\.float64",
        ),
        (lambda: None, InputError, r"returned NoneType; expected the loss, one real number"),
        (lambda: torch.tensor(1.0), InputError, r"used none of the 4 parameters"),
        (lambda: inside.sum() * math.nan, NonFiniteError, r"loss at \+eps of the closure returned nan"),
        (lambda: inside.zero_().sum(), InputError, r"writes to a parameter of shape \(4, 3\) \(aten\.zero_"),
    ]
    for closure, error, message in cases:
        with pytest.raises(error, match=message):
            optimizer.step(closure)
        assert same(model, before)
    with pytest.raises(InputError, match="needs a closure"):
        optimizer.step(None)


def test_parameters_that_cannot_move_are_named():
    with pytest.raises(InputError, match=r"a parameter \(2,\) is torch\.complex64; expected real"):
        MeZO([torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))], 0.1)
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    with pytest.raises(InputError, match="every parameter is frozen"):
        MeZO([frozen], 0.1).step(lambda: frozen.sum())
    with pytest.raises(InputError, match="no parameter with requires_grad=True"):
        mezo_gradient(lambda: frozen.sum(), [frozen])
    p = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(InputError, match="it is of another optimizer"):
        MeZO([p], 0.1).load_state_dict(torch.optim.SGD([p], 0.1).state_dict())


def test_a_loss_may_be_a_number_and_unused_parameters_stay():
    p, q = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    MeZO([p, q], 0.1, weight_decay=0.5).step(lambda: p.sum().item())
    assert torch.equal(q.detach(), torch.ones(2))
    assert not torch.equal(p.detach(), torch.ones(2))

"""The optimizer of torch: layouts, buckets, bases, states, late gradients, refusals, and its rivals."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from infimum.errors import InfimumWarning, InputError, NonFiniteError  # noqa: E402
from infimum_pogo import POGO, Landing, RiemannianSGD, conv_rows, gaps, polar, relative_gradient  # noqa: E402
from infimum_pogo.kernel import pogo_step  # noqa: E402
from infimum_pogo.landing import land  # noqa: E402

DOUBLE = torch.float64
LAYOUTS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "matrix": ((3, 5), {}),
    "batch": ((4, 3, 5), {}),
    "tall": ((5, 3), {"rows": False}),
    "tall batch": ((4, 5, 3), {"rows": False}),
    "short side": ((5, 3), {"rows": "auto"}),
    "square": ((4, 4), {}),
    "kernel": ((4, 2, 3, 3), {"flatten": conv_rows}),
    "small kernel": ((16, 1, 3, 3), {"flatten": conv_rows, "rows": "auto"}),
}
BASES: dict[str, dict[str, Any]] = {
    "plain": {"base": "sgd", "lr": 0.1},
    "momentum": {"base": "sgd", "lr": 0.1, "momentum": 0.5, "dampening": 0.2},
    "nesterov": {"base": "sgd", "lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.1},
    "vadam": {"base": "vadam", "lr": 0.3},
    "optimal": {"base": "vadam", "lr": 0.3, "landing": "optimal"},
    "callable": {"base": lambda G, state: G / (1.0 + state.setdefault("n", 0)), "lr": 0.1},
}


def weights(count: int, shape: tuple[int, ...], seed: int = 0, dtype: Any = DOUBLE) -> list[Any]:
    """Parameters with orthonormal rows or columns along the first axis."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        flat = rng.standard_normal(shape)
        wide = flat.reshape(shape[0], -1) if len(shape) > 3 else flat
        if dtype.is_complex:
            wide = wide + 1j * rng.standard_normal(wide.shape)
        turned = wide.shape[-2] > wide.shape[-1]
        fitted = polar(wide.swapaxes(-1, -2)).swapaxes(-1, -2) if turned else polar(wide)
        out.append(torch.nn.Parameter(torch.tensor(fitted.reshape(shape), dtype=dtype)))
    return out


def targets(params: list[Any], seed: int = 1) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(p.shape, dtype=p.dtype, generator=generator) for p in params]


def losses(params: list[Any], aims: list[Any], use: Callable[[int], bool] = lambda k: True) -> Any:
    return sum((p - c).abs().square().sum() for k, (p, c) in enumerate(zip(params, aims, strict=True)) if use(k))


def train(optimizer: Any, params: list[Any], steps: int = 7, use: Any = None) -> None:
    aims = targets(params)
    for k in range(steps):
        optimizer.zero_grad()
        losses(params, aims, (lambda j, k=k: use(j, k)) if use else lambda j: True).backward()
        optimizer.step()


def twins(params: list[Any]) -> list[Any]:
    return [torch.nn.Parameter(p.detach().clone()) for p in params]


# The step


def test_a_step_is_the_formula() -> None:
    (p,) = weights(1, (3, 5))
    (c,) = targets([p])
    before = p.detach().clone()[None]
    G = 2.0 * (before - c)
    R = relative_gradient(before, G)
    square = torch.linalg.matrix_norm(R @ R.mT)
    lr = min(0.1, 0.5 / float(square) ** 0.5)
    M = before - lr * R
    expected = 1.5 * M - 0.5 * M @ M.mT @ M
    optimizer = POGO([p], lr=0.1, base="sgd")
    losses([p], [c]).backward()
    optimizer.step()
    assert torch.allclose(p[None], expected, atol=1e-14)


def test_vector_adam_follows_its_definition() -> None:
    (p,) = weights(1, (2, 3, 5))
    optimizer = POGO([p], lr=0.7, betas=(0.8, 0.95), eps=1e-3)
    (c,) = targets([p])
    X, m, v = p.detach().clone(), torch.zeros_like(p), torch.zeros(2, dtype=DOUBLE)
    for t in range(1, 6):
        optimizer.zero_grad()
        losses([p], [c]).backward()
        G = p.grad.clone()
        m, v = 0.8 * m + 0.2 * G, 0.95 * v + 0.05 * G.square().sum((1, 2))
        D = (m / (1 - 0.8**t)) / ((v / (1 - 0.95**t)).sqrt() + 1e-3)[:, None, None]
        X = pogo_step(X, D, 0.7)
        optimizer.step()
        assert torch.allclose(p, X, atol=1e-13)


@pytest.mark.parametrize("layout", ["matrix", "batch", "tall", "short side", "kernel", "small kernel"])
@pytest.mark.parametrize("base", BASES)
def test_buckets_change_nothing(layout: str, base: str) -> None:
    shape, options = LAYOUTS[layout]
    params = weights(4, shape)
    others = twins(params)
    train(POGO(params, **options, **BASES[base]), params)
    train(POGO(others, **options, **BASES[base], bucket=False), others)
    for p, q in zip(params, others, strict=True):
        assert torch.allclose(p, q, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrices_stay_orthonormal_and_the_loss_falls(layout: str) -> None:
    shape, options = LAYOUTS[layout]
    params = weights(3, shape)
    aims = targets(params)
    before = float(losses(params, aims).detach())
    optimizer = POGO(params, lr=0.5, **options)
    train(optimizer, params, 40)
    assert optimizer.diagnostics().orthogonality < 5e-3 and float(losses(params, aims).detach()) < before - 1.0


@pytest.mark.parametrize("base", BASES)
def test_rows_are_columns_transposed(base: str) -> None:
    wide = weights(2, (3, 5))
    tall = [torch.nn.Parameter(p.detach().mT.contiguous()) for p in wide]
    train(POGO(wide, **BASES[base]), wide)
    optimizer = POGO(tall, rows=False, **BASES[base])
    aims = [one.mT for one in targets(wide)]
    for _ in range(7):
        optimizer.zero_grad()
        losses(tall, aims).backward()
        optimizer.step()
    for p, q in zip(wide, tall, strict=True):
        assert torch.allclose(p, q.mT, atol=1e-12)


@pytest.mark.parametrize("base", ["plain", "momentum", "vadam", "optimal"])
def test_real_is_complex_without_imaginary_part(base: str) -> None:
    real = weights(2, (3, 5))
    wide = [torch.nn.Parameter(p.detach() + 0j) for p in real]
    aims = targets(real)
    a, b = POGO(real, **BASES[base]), POGO(wide, **BASES[base])
    for _ in range(10):
        for optimizer, params in ((a, real), (b, wide)):
            optimizer.zero_grad()
            losses(params, aims).backward()
            optimizer.step()
    for p, q in zip(real, wide, strict=True):
        assert torch.allclose(p, q.real, atol=1e-13) and float(q.detach().imag.abs().max()) < 1e-15


@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 4)])
def test_unitary_matrices(shape: tuple[int, ...]) -> None:
    params = weights(2, shape, dtype=torch.complex128)
    best = [torch.as_tensor(polar(c.numpy())) for c in targets(params)]
    optimizer = POGO(params, lr=0.2, base="sgd")
    train(optimizer, params, 600)
    for p, x in zip(params, best, strict=True):
        assert torch.allclose(p, x, atol=1e-3)
    assert optimizer.diagnostics().orthogonality < 1e-12


def test_thousands_of_small_matrices_move_as_a_few_would() -> None:
    (many,) = weights(1, (800, 3, 3))
    few = [torch.nn.Parameter(many.detach()[k : k + 40].clone()) for k in range(0, 800, 40)]
    aim = targets([many])
    a, b = POGO([many], lr=0.4), POGO(few, lr=0.4, bucket=False)
    for _ in range(8):
        many.grad = None
        losses([many], aim).backward()
        a.step()
        for k, p in enumerate(few):
            p.grad = None
            losses([p], [aim[0][40 * k : 40 * k + 40]]).backward()
        b.step()
    assert torch.allclose(many, torch.cat([p.detach() for p in few]), atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 48, 80), (60, 60)])
@pytest.mark.parametrize("landing", ["half", "optimal"])
def test_large_matrices_move_as_by_the_formula(shape: tuple[int, ...], landing: str) -> None:
    (p,) = weights(1, shape)
    (tall,) = [torch.nn.Parameter(p.detach().mT.contiguous())]
    X, (c,) = p.detach().clone().reshape(-1, *shape[-2:]), targets([p])
    for made, rows in ((p, True), (tall, False)):
        optimizer = POGO([made], lr=0.1, base="sgd", landing=landing, rows=rows)
        (0.5 * (made - (c if rows else c.mT)).square()).sum().backward()
        optimizer.step()
    R = relative_gradient(X, X - c)
    eta = torch.clamp(0.5 * torch.linalg.matrix_norm(R @ R.mT) ** -0.5, max=0.1)
    expected = land(X - eta[:, None, None] * R, landing == "optimal").reshape(shape)
    assert torch.allclose(p, expected, atol=1e-13) and torch.allclose(tall.mT, expected, atol=1e-13)


# What an optimizer of torch must do


def test_a_closure_is_called_with_gradients_and_its_loss_returned() -> None:
    params = weights(2, (3, 5))
    aims, optimizer = targets(params), POGO(params, lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = losses(params, aims)
        loss.backward()
        return loss

    first, second = optimizer.step(closure), optimizer.step(closure)
    assert float(second.detach()) < float(first.detach())


def test_gradients_may_arrive_late_and_pause() -> None:
    params = weights(3, (3, 5))
    others = twins(params)
    use = lambda j, k: j == 0 or (j == 1 and k >= 4) or (j == 2 and k % 3 == 0)  # noqa: E731
    train(POGO(params, lr=0.3), params, 12, use)
    train(POGO(others, lr=0.3, bucket=False), others, 12, use)
    for p, q in zip(params, others, strict=True):
        assert torch.allclose(p, q, atol=1e-12)
    optimizer = POGO(weights(1, (3, 5)), base="sgd", momentum=0.9)
    optimizer.step()  # Nothing has a gradient yet.
    assert not optimizer.state


def test_tiny_gradients_are_not_skipped() -> None:
    (p,) = weights(1, (3, 5))
    before = p.detach().clone()
    optimizer = POGO([p], lr=1e6, base="sgd")
    (1e-9 * (p * targets([p])[0]).sum()).backward()
    optimizer.step()
    assert float((p.detach() - before).abs().max()) > 1e-5


def test_gradients_and_other_groups_stay_as_they_are() -> None:
    (p,) = weights(1, (3, 5))
    free = torch.nn.Parameter(torch.ones(3, dtype=DOUBLE))
    optimizer = POGO([p], lr=0.1, base="sgd", weight_decay=0.5)
    ((p * targets([p])[0]).sum() + free.sum()).backward()
    kept = p.grad.clone()
    optimizer.step()
    assert torch.equal(p.grad, kept) and torch.equal(free, torch.ones(3, dtype=DOUBLE))


def test_groups_have_options_of_their_own_and_schedulers_work() -> None:
    a, b = weights(1, (3, 5), 0) + weights(1, (5, 3), 1)
    optimizer = POGO([{"params": [a], "lr": 0.4}, {"params": [b], "rows": False, "base": "sgd"}], lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.0)
    train(optimizer, [a, b], 1)
    scheduler.step()
    here = [p.detach().clone() for p in (a, b)]
    assert [group["lr"] for group in optimizer.param_groups] == [0.0, 0.0]
    train(optimizer, [a, b], 4)  # The rest of a landing is all that moves.
    for p, q in zip((a, b), here, strict=True):
        assert torch.allclose(p, q, atol=1e-2)


def test_the_step_size_may_be_a_tensor() -> None:
    params = weights(2, (3, 5))
    others = twins(params)
    train(POGO(params, lr=torch.tensor(0.3, dtype=DOUBLE)), params)
    train(POGO(others, lr=0.3), others)
    assert torch.allclose(params[0], others[0], atol=1e-14)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("bucket", [True, False])
def test_a_saved_state_goes_on_bit_for_bit(base: str, bucket: bool) -> None:
    params = weights(3, (3, 5))
    optimizer = POGO(params, **BASES[base], bucket=bucket)
    train(optimizer, params, 5)
    state = copy.deepcopy(optimizer.state_dict())
    others = twins(params)
    again = POGO(others, **BASES[base], bucket=bucket)
    again.load_state_dict(state)
    train(optimizer, params, 5)
    train(again, others, 5)
    for p, q in zip(params, others, strict=True):
        assert torch.equal(p, q)


def test_states_are_plain_and_functions_are_kept_by_name(tmp_path: Any) -> None:
    params = weights(2, (4, 2, 3, 3))
    optimizer = POGO(params, lr=0.2, flatten=conv_rows)
    train(optimizer, params, 3)
    torch.save(optimizer.state_dict(), tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["param_groups"][0]["flatten"] == "conv_rows"
    again = POGO(twins(params), lr=9.0, flatten=conv_rows)
    again.load_state_dict(state)
    assert again.param_groups[0]["flatten"] is conv_rows and again.param_groups[0]["lr"] == 0.2


def test_copies_and_pickles_share_nothing() -> None:
    params = weights(2, (3, 5))
    optimizer = POGO(params, lr=0.2)
    train(optimizer, params, 3)
    twin = copy.deepcopy(optimizer)
    other = twin.param_groups[0]["params"]
    train(optimizer, params, 3)
    train(twin, other, 3)
    assert all(torch.equal(p, q) for p, q in zip(params, other, strict=True))
    assert not np.shares_memory(params[0].detach().numpy(), other[0].detach().numpy())
    back = pickle.loads(pickle.dumps(optimizer))
    train(optimizer, params, 2)
    train(back, back.param_groups[0]["params"], 2)
    assert torch.equal(params[0], back.param_groups[0]["params"][0])


def test_a_parameter_may_get_other_memory() -> None:
    params = weights(3, (3, 5))
    others = twins(params)
    a, b = POGO(params, lr=0.3), POGO(others, lr=0.3)
    train(a, params, 3)
    train(b, others, 3)
    for p in params:
        p.data = p.data.clone()
    train(a, params, 3)
    train(b, others, 3)
    assert all(torch.equal(p, q) for p, q in zip(params, others, strict=True))


@pytest.mark.parametrize("shape", [(3, 5), (600, 3, 3), (60, 70), (4, 2, 3, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex128])
@pytest.mark.parametrize("count", [1, 2])
def test_backward_through_an_old_graph_is_noticed(count: int, dtype: Any, shape: tuple[int, ...]) -> None:
    """Writing back counts as a change of the parameter, so that a stale graph is an error and not a wrong gradient."""
    params = weights(count, shape, dtype=dtype)
    optimizer = POGO(params, lr=0.1, flatten=conv_rows if len(shape) > 3 else None)
    loss = sum((p**3).abs().sum() for p in params)
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_float32_ends_near_the_set() -> None:
    params = weights(3, (8, 12), dtype=torch.float32)
    optimizer = POGO(params, lr=0.5)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    aims = targets(params)
    for _ in range(100):
        optimizer.zero_grad()
        losses(params, aims).backward()
        optimizer.step()
        scheduler.step()
    assert optimizer.diagnostics().orthogonality < 1e-5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_losses_and_a_compiled_step_give_the_same_iterates() -> None:
    """`torch.compile` traces the loss; of the step it leaves what it cannot trace as it is."""
    params = weights(2, (3, 5))
    others = twins(params)
    aims = targets(params)
    a, b = POGO(params, lr=0.3), POGO(others, lr=0.3)
    compiled = torch.compile(b.step, backend="eager")
    for _ in range(5):
        for optimizer, mine, step in ((a, params, a.step), (b, others, compiled)):
            optimizer.zero_grad()
            losses(mine, aims).backward()
            step()
    assert all(torch.allclose(p, q, atol=1e-14) for p, q in zip(params, others, strict=True))


# Starts, the guard, diagnostics


def test_starts_are_checked_projected_or_landed() -> None:
    far = [torch.nn.Parameter(1.3 * p.detach()) for p in weights(1, (3, 5))]
    with pytest.raises(InputError, match=r"parameter 0 of group 0 is not orthonormal: .*project_\(\) or pass init="):
        POGO(far)
    named = [("layer.weight", far[0])]
    with pytest.raises(InputError, match=r"parameter 'layer\.weight' is not orthonormal"):
        POGO(named)
    other = twins(far)
    POGO(other, init="project")
    assert torch.allclose(other[0], far[0] / 1.3, atol=1e-12)
    landed = twins(far)
    optimizer = POGO(landed, init="ignore")
    optimizer.project_()
    assert optimizer.diagnostics().orthogonality < 1e-12
    beyond = [torch.nn.Parameter(1.8 * p.detach()) for p in weights(1, (3, 5))]
    with pytest.raises(InputError, match=r"singular value 1\.8 >= sqrt\(3\)"):
        POGO(beyond, init="ignore")


@pytest.mark.parametrize("lr", [0.1, 0.8, 6.4, 1e3])
def test_guarded_steps_of_any_length_stay_finite(lr: float) -> None:
    params = weights(8, (4, 8), dtype=torch.float32)
    optimizer = POGO(params, lr=lr, base="sgd", momentum=0.3)
    train(optimizer, params, 40)
    told = optimizer.diagnostics()
    assert told.orthogonality < 0.06 and (told.guard_share > 0.9) is (lr > 0.1)


def test_unguarded_steps_that_are_too_long_are_told_once() -> None:
    params = weights(1, (4, 8))
    optimizer = POGO(params, lr=3.0, base="sgd", safe=None)
    with pytest.warns(InfimumWarning, match=r"lr \|\|R\|\| may reach .* take lr of at most"):
        train(optimizer, params, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        params[0].data = weights(1, (4, 8))[0].data
        train(optimizer, params, 1)


def test_diagnostics_say_how_it_stands() -> None:
    params = weights(4, (3, 3))
    signs = sum(int(torch.linalg.det(p) < 0) for p in params)
    optimizer = POGO(params, lr=0.1, base="sgd")
    told = optimizer.diagnostics()
    assert (told.matrices, told.reflections, told.grad_norm, told.reach) == (4, signs, None, None)
    train(optimizer, params, 3)
    told = optimizer.diagnostics()
    assert told.reflections == signs and told.grad_norm > 0 and told.reach > 0 and 0 <= told.guard_share <= 1


# Refusals


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: POGO([torch.nn.Parameter(torch.eye(5)[:, :3])]), "row-orthogonal needs p <= n.*pass rows=False"),
        (lambda: POGO([torch.nn.Parameter(torch.ones(3))]), r"is \(3,\); expected one matrix .*ordinary optimizer"),
        (lambda: POGO(weights(1, (4, 2, 3, 3))), r"is \(4, 2, 3, 3\); .*flatten=infimum_pogo\.conv_rows"),
        (lambda: POGO(weights(1, (3, 5)), flatten=lambda w: w.clone()), "flatten must return a view of all"),
        (lambda: POGO(weights(1, (3, 5)), flatten=lambda w: w.view(-1)), r"flatten gave \(15,\)"),
        (lambda: POGO(weights(1, (3, 5)), flatten="conv"), "flatten='conv'; expected a function"),
        (lambda: POGO([torch.zeros(2, 3, dtype=torch.int64)]), "is int64; expected real or complex"),
        (lambda: POGO([torch.eye(3).to_sparse()]), "is sparse"),
        (lambda: POGO([torch.nn.Parameter(torch.zeros(0, 3))]), r"is empty: its shape is \(0, 3\)"),
        (lambda: POGO([torch.nn.Parameter(torch.full((2, 3), math.nan))]), "holds NaN or inf"),
        (lambda: POGO(weights(1, (3, 5)), lr=-0.1), r"lr=-0\.1; expected a finite number >= 0"),
        (lambda: POGO(weights(1, (3, 5)), base="adam"), "base='adam'; expected 'sgd' or 'vadam'; did you mean 'vadam'"),
        (lambda: POGO(weights(1, (3, 5)), landing="best"), "landing='best'"),
        (lambda: POGO(weights(1, (3, 5)), safe=2.0), r"safe=2\.0; expected a bound"),
        (lambda: POGO(weights(1, (3, 5)), betas=(0.9,)), r"betas=\(0\.9,\)"),
        (lambda: POGO(weights(1, (3, 5)), base="sgd", nesterov=True), "nesterov=True needs momentum above 0"),
        (lambda: POGO(weights(1, (3, 5)), rows="wide"), "rows='wide'; expected rows=True"),
        (lambda: POGO(weights(1, (3, 5)), init="fix"), "init='fix'"),
        (lambda: Landing(weights(1, (3, 5)), attraction=0.0), r"Landing: parameter group 0: attraction=0\.0"),
        (lambda: RiemannianSGD(weights(1, (3, 5)), momentum=1.0), r"momentum=1\.0"),
    ],
)
def test_bad_input_is_refused(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize("base", ["momentum", "vadam"])
def test_a_gradient_with_nan_is_refused_before_anything_changes(base: str) -> None:
    params = weights(3, (3, 5))
    optimizer = POGO([(f"layer{k}.weight", p) for k, p in enumerate(params)], **BASES[base])
    train(optimizer, params, 2)
    before, state = [p.detach().clone() for p in params], copy.deepcopy(optimizer.state_dict()["state"])
    losses(params, targets(params)).backward()
    params[1].grad[0, 0] = math.nan
    with pytest.raises(NonFiniteError, match=r"gradient of parameter 'layer1\.weight' holds NaN or inf"):
        optimizer.step()
    assert all(torch.equal(p, q) for p, q in zip(params, before, strict=True))
    for key, kept in state.items():
        for name, one in kept.items():
            now = optimizer.state_dict()["state"][key][name]
            assert torch.equal(now, one) if isinstance(one, torch.Tensor) else now == one


def test_bad_directions_and_sparse_gradients_are_refused() -> None:
    params = weights(1, (3, 5))
    optimizer = POGO(params, base=lambda G, state: G[0])
    losses(params, targets(params)).backward()
    with pytest.raises(InputError, match=r"base\(G, state\) gave \(3, 5\) for G of \(1, 3, 5\)"):
        optimizer.step()
    again = POGO(params)
    params[0].grad = params[0].grad.to_sparse()
    with pytest.raises(InputError, match="a gradient is sparse"):
        again.step()


# Rivals


@pytest.mark.parametrize("layout", ["matrix", "tall batch", "square", "small kernel"])
def test_rivals_minimize_too(layout: str) -> None:
    shape, options = LAYOUTS[layout]
    for make, most in ((Landing, 0.5), (RiemannianSGD, 1e-12)):
        params = weights(3, shape)
        aims = targets(params)
        before = float(losses(params, aims).detach())
        optimizer = make(params, lr=0.05, momentum=0.3, **options)
        train(optimizer, params, 40)
        assert optimizer.diagnostics().orthogonality <= most and float(losses(params, aims).detach()) < before - 1.0


def test_landing_stands_off_the_set_where_pogo_does_not() -> None:
    found = []
    for make in (lambda p: POGO(p, lr=0.1, base="sgd"), lambda p: Landing(p, lr=0.1, radius=None)):
        params = weights(4, (8, 12))
        optimizer, aims, worst = make(params), targets(params), 0.0
        for _ in range(60):
            optimizer.zero_grad()
            (0.5 * losses(params, aims)).backward()
            optimizer.step()
            worst = max(worst, float(gaps(torch.stack([p.detach() for p in params])).max()))
        found.append(worst)
    assert found[0] < 0.05 < 0.1 < found[1]

"""What users change after the optimizer was made: dtypes, memory, states, options, gradients; half precision."""

from __future__ import annotations

import collections
import copy
import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from infimum.errors import InputError, NonFiniteError  # noqa: E402
from infimum_pogo import (  # noqa: E402
    POGO,
    Landing,
    RiemannianSGD,
    conv_rows,
    minimize_stiefel,
    polar,
    relative_gradient,
)


def matrices(count: int, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    made = [torch.randn(shape, generator=generator) for _ in range(count)]
    return [torch.nn.Parameter(polar(one).to(dtype)) for one in made]


def pushed(optimizer: Any, params: list[Any], steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        sum((p.float() ** 3).sum() for p in params).backward()
        optimizer.step()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("make", [POGO, Landing, RiemannianSGD])
def test_half_precision_trains_within_its_rounding(dtype: Any, make: Any) -> None:
    eps = torch.finfo(dtype).eps
    params = [*matrices(2, (4, 4), dtype), *matrices(1, (40, 60), dtype)]
    # Directions of POGO have norm about one: shorter steps would be lost in rounding.
    optimizer = make(params, lr=0.2 if make is POGO else 0.02)
    before = sum(float((p.detach().float() ** 3).sum()) for p in params)
    pushed(optimizer, params, 20)
    found = optimizer.diagnostics()
    # Landing stands off the set besides: by less than lr times its step.
    assert found.orthogonality < 4.0 * eps * math.sqrt(40.0) + (0.1 if make is Landing else 0.0)
    assert sum(float((p.detach().float() ** 3).sum()) for p in params) < before
    assert {p.dtype for p in params} == {dtype}
    assert found.reflections == sum(float(torch.linalg.det(p.detach().float())) < 0 for p in params[:2])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_projected_and_admitted_however_large(dtype: Any) -> None:
    weight = torch.nn.Parameter(torch.randn(300, 400, generator=torch.Generator().manual_seed(0)).to(dtype))
    optimizer = POGO([weight], init="project")
    assert optimizer.diagnostics().orthogonality < 2.0 * torch.finfo(dtype).eps * math.sqrt(300.0)
    POGO([weight])  # What has just been projected serves as a start.


@pytest.mark.parametrize("base", ["sgd", "vadam"])
@pytest.mark.parametrize("count", [1, 2])
def test_parameters_may_go_to_another_precision(base: str, count: int) -> None:
    params = matrices(count, (3, 5), torch.float32)
    optimizer = POGO(params, lr=1e-3, base=base, momentum=0.5 if base == "sgd" else 0.0)
    pushed(optimizer, params, 2)
    for p in params:
        p.data, p.grad = p.data.double(), None
    for _ in range(40):
        optimizer.zero_grad()
        sum((p**3).sum() for p in params).backward()
        optimizer.step()
    name = "momentum_buffer" if base == "sgd" else "exp_avg"
    assert all(optimizer.state[p][name].dtype == torch.float64 for p in params)
    # Single precision stays above; the steps themselves leave 3/4 (lr ||R||)^4, about 1e-11.
    assert optimizer.diagnostics().orthogonality < 1e-9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lr": -1.0}, "lr=-1.0; expected a finite number >= 0"),
        ({"lr": math.nan}, "lr=nan"),
        ({"safe": 7.0}, "safe=7.0"),
        ({"betas": (0.9, 1.5)}, "betas="),
        ({"landing": "haf"}, "did you mean 'half'"),
    ],
)
def test_options_changed_between_steps_are_checked(change: dict[str, Any], said: str) -> None:
    params = matrices(1, (3, 5), torch.float32)
    optimizer = POGO(params)
    pushed(optimizer, params, 1)
    before = params[0].detach().clone()
    optimizer.param_groups[0].update(change)
    with pytest.raises(InputError, match="group 0") as caught:
        pushed(optimizer, params, 1)
    assert said in str(caught.value)
    assert torch.equal(params[0], before)


@pytest.mark.parametrize("count", [1, 2])
def test_gradients_that_become_sparse_are_refused(count: int) -> None:
    params = matrices(count, (3, 3), torch.float32)
    optimizer = POGO(params)
    pushed(optimizer, params, 1)
    before = params[0].detach().clone()
    params[0].grad = None
    params[0].grad = torch.eye(3).to_sparse()
    with pytest.raises(InputError, match="a gradient is sparse"):
        optimizer.step()
    assert torch.equal(params[0], before)


def test_minimize_names_what_it_does_not_know() -> None:
    X0 = np.eye(2, 3)
    with pytest.raises(InputError, match="no option 'momentun'; did you mean 'momentum'"):
        minimize_stiefel(np.sum, X0, jac=np.ones_like, momentun=0.5)
    with pytest.raises(InputError, match=r"f\(X\) gave an array of shape \(2, 3\); expected a number"):
        minimize_stiefel(lambda X: X, X0, jac=np.ones_like)


def test_minimize_takes_a_leaf_of_a_graph_as_start() -> None:
    X0 = torch.eye(2, 3, dtype=torch.float64).requires_grad_(True)
    result = minimize_stiefel(lambda X: -X[0, 2] - X[1, 1], X0, lr=0.5, seed=0)
    assert result.value == pytest.approx(-2.0, abs=1e-9)
    assert X0.grad is None
    assert not result.x.requires_grad


# Memory: a step writes where the parameters are now, in the layout that they have now


def strided(data: Any) -> Any:
    out = torch.zeros(2 * data.shape[0], 2 * data.shape[1], dtype=data.dtype)[::2, 1::2]
    out.copy_(data)
    return out


MOVES: dict[str, Any] = {
    "copied": lambda data: data.clone(),
    "transposed where it lies": lambda data: data.mT,
    "transposed in memory": lambda data: data.mT.contiguous().mT,
    "strided": strided,
    "another precision": lambda data: data.double(),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("moved", [(0,), (1,), (0, 1)])
def test_parameters_may_be_laid_elsewhere_between_steps(move: str, moved: tuple[int, ...]) -> None:
    params = matrices(2, (4, 4), torch.float32)
    optimizer = POGO(params, lr=0.05, base="sgd")
    pushed(optimizer, params, 1)
    for k in moved:
        data, params[k].grad = MOVES[move](params[k].data), None
        params[k].data = data
    fresh = [torch.nn.Parameter(p.detach().clone(memory_format=torch.contiguous_format)) for p in params]
    other = POGO(fresh, lr=0.05, base="sgd", bucket=False)
    for _ in range(3):
        for one, some in ((optimizer, params), (other, fresh)):
            one.zero_grad()
            for p in some:
                (p**3).sum().backward()
            one.step()
    for p, q in zip(params, fresh, strict=True):
        assert p.dtype == q.dtype and torch.allclose(p, q, atol=1e-6 if p.dtype == torch.float32 else 1e-14)


def test_parameters_may_be_parts_of_one_storage() -> None:
    apart = matrices(3, (3, 5), torch.float64)
    whole = torch.cat([p.detach().reshape(-1) for p in apart])
    parts = [torch.nn.Parameter(whole[15 * k : 15 * (k + 1)].view(3, 5)) for k in range(3)]
    for params in (apart, parts):
        pushed(POGO(params, lr=0.3), params, 5)
    assert torch.equal(whole, torch.cat([p.detach().reshape(-1) for p in apart]))


@pytest.mark.parametrize("count", [1, 2])
def test_entries_that_share_memory_are_refused(count: int) -> None:
    params = [torch.nn.Parameter(torch.eye(3, 5).expand(4, 3, 5)) for _ in range(count)]
    with pytest.raises(InputError, match=r"parameter 0 of group 0 has entries that share memory .*p\.clone\(\)"):
        POGO(params)


@pytest.mark.parametrize("count", [1, 2])
def test_kernels_with_channels_last(count: int) -> None:
    """`conv_rows` has no view of them, and says so at any time; a function along their memory moves them as well."""
    made = torch.nn.ModuleList([torch.nn.Conv2d(4, 8, 3, dtype=torch.float64) for _ in range(count)])
    params = [one.weight for one in made]
    optimizer = POGO(params, flatten=conv_rows, init="project")
    pushed(optimizer, params, 1)
    twins = [torch.nn.Parameter(p.detach().clone()) for p in params]
    made.to(memory_format=torch.channels_last)
    with pytest.raises(InputError, match=r"flatten failed for shape \(8, 4, 3, 3\).*make the parameter contiguous"):
        pushed(optimizer, params, 1)
    with pytest.raises(InputError, match="parameter 0 of group 0: flatten failed"):
        POGO(params, flatten=conv_rows)
    along = POGO(params, lr=0.5, flatten=lambda w: w.permute(0, 2, 3, 1).flatten(1))
    pushed(along, params, 3)
    pushed(POGO(twins, lr=0.5, flatten=conv_rows), twins, 3)
    assert all(torch.allclose(p, q, atol=1e-12) for p, q in zip(params, twins, strict=True))
    assert along.diagnostics().grad_norm == pytest.approx(norm_on_rows(twins), rel=1e-9)


def norm_on_rows(params: list[Any]) -> float:
    """||R||_F of the gradients that are there, of kernels as matrices."""
    pairs = [(p.detach().flatten(1), p.grad.flatten(1)) for p in params]
    return math.sqrt(sum(float(relative_gradient(X, G).square().sum()) for X, G in pairs))


@pytest.mark.parametrize("base", ["plain", "momentum"])
def test_gradients_may_be_lazy_negatives(base: str) -> None:
    for shape in ((3, 5), (600, 3, 3), (80, 90)):
        for count in (1, 2):
            some, others = matrices(count, shape, torch.float32), matrices(count, shape, torch.float32)
            for p, q in zip(some, others, strict=True):
                made = torch.randn(shape, dtype=torch.complex64, generator=torch.Generator().manual_seed(0)).conj()
                p.grad, q.grad = made.imag, made.imag.resolve_neg()
                assert p.grad.is_neg()
            for params in (some, others):
                POGO(params, lr=0.1, base="sgd", momentum=0.5 if base == "momentum" else 0.0).step()
            assert all(torch.equal(p, q) for p, q in zip(some, others, strict=True))


# What is remembered: dropped, counted, taken up


@pytest.mark.parametrize("drop", ["clear", "anew", "one"])
def test_a_dropped_memory_is_forgotten(drop: str) -> None:
    params = matrices(2, (3, 5), torch.float64)
    optimizer = POGO(params, lr=0.3, base="sgd", momentum=0.9)
    pushed(optimizer, params, 3)
    if drop == "clear":
        optimizer.state.clear()
    elif drop == "anew":
        optimizer.state = collections.defaultdict(dict)
    else:
        del optimizer.state[params[1]]
    gone = params[1:] if drop == "one" else params
    fresh = [torch.nn.Parameter(p.detach().clone()) for p in gone]
    pushed(optimizer, params, 3)
    pushed(POGO(fresh, lr=0.3, base="sgd", momentum=0.9), fresh, 3)
    assert all(torch.allclose(p, q, atol=1e-14) for p, q in zip(gone, fresh, strict=True))
    assert len(optimizer.state_dict()["state"]) == 2


def test_steps_are_counted_by_parameter_and_taken_up_as_numbers_too() -> None:
    params = matrices(3, (3, 5), torch.float64)
    optimizer = POGO(params, lr=0.3)
    pushed(optimizer, params[:2], 2)
    pushed(optimizer, params, 3)
    pushed(optimizer, params[1:], 1)
    assert [int(optimizer.state[p]["step"]) for p in params] == [5, 6, 4]
    state = copy.deepcopy(optimizer.state_dict())
    for one in state["state"].values():
        one["step"] = int(one["step"])
    twins = [torch.nn.Parameter(p.detach().clone()) for p in params]
    again = POGO(twins)
    again.load_state_dict(state)
    pushed(optimizer, params, 2)
    pushed(again, twins, 2)
    assert all(torch.equal(p, q) for p, q in zip(params, twins, strict=True))
    assert [int(again.state[p]["step"]) for p in twins] == [7, 8, 6]


# Large gradients


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("shape", [(3, 5), (600, 3, 3), (60, 70)])
def test_large_gradients_are_guarded_like_others(dtype: Any, shape: tuple[int, ...]) -> None:
    """||R R^H|| is of fourth order in them and overflows long before they do."""
    slope = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    found = []
    for size in (1e2, 1e10, 1e16):
        (p,) = matrices(1, shape, dtype)
        optimizer = POGO([p], lr=1.0, base="sgd")
        p.grad = size * slope
        optimizer.step()
        assert optimizer.diagnostics().guard_share == 1.0
        found.append(p.detach())
    eps = torch.finfo(dtype).eps
    assert all(float((one - found[0]).abs().max()) < 16 * eps for one in found[1:])


@pytest.mark.parametrize(("dtype", "size"), [(torch.float32, 1e20), (torch.float16, 400.0), (torch.complex64, 1e30)])
def test_gradients_whose_squares_overflow_are_refused(dtype: Any, size: float) -> None:
    params = matrices(3, (3, 5), dtype)
    optimizer = POGO(params)
    for k, p in enumerate(params):
        p.grad = torch.full_like(p, size if k == 1 else 1.0)
    before = [p.detach().clone() for p in params]
    with pytest.raises(NonFiniteError, match=r"gradient of parameter 1 of group 0 has norm .*, whose square overflows"):
        optimizer.step()
    assert all(torch.equal(p, q) for p, q in zip(params, before, strict=True))


def test_many_moderate_gradients_are_no_large_one() -> None:
    params = matrices(400, (3, 5), torch.float16)
    for p in params:
        p.grad = torch.full_like(p, 10.0)
    POGO(params).step()  # The norm of all of them is 775, of one of them 39.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bucket": "no"}, "POGO: bucket='no'; expected True or False"),
        ({"lr": torch.tensor([0.1, 0.2])}, r"lr is a tensor of shape \(2,\); expected one number"),
    ],
)
def test_more_bad_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        POGO(matrices(1, (3, 5), torch.float32), **options)


def test_minimize_checks_its_start_word() -> None:
    with pytest.raises(InputError, match="start='proj'; expected 'check' or 'project' or 'ignore'; did you mean"):
        minimize_stiefel(np.sum, np.eye(2, 3), jac=np.ones_like, start="proj")

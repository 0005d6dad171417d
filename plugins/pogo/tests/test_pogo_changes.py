"""What users change after the optimizer was made: dtypes, options, kinds of gradients; half precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from infimum.errors import InputError  # noqa: E402
from infimum_pogo import POGO, Landing, RiemannianSGD, minimize_stiefel, polar  # noqa: E402


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

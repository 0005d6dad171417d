"""Without a start: zeros in the dtype and the kind of array of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import infimum
from infimum import Composite, Function
from infimum.functions import L1, LeastSquares, SquaredL2

A = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
B = A @ np.ones(4, np.float32)
PG = "splitting.proximal_gradient"


def solved(loss: Function, **options: Any) -> infimum.Result:
    problem = Composite({"loss": loss, "penalty": 0.1 * L1()})
    return infimum.solve(problem, solver=PG, stopping="max_iter(4)", seed=0, **options)


@pytest.mark.parametrize(
    "loss",
    [
        LeastSquares(A, B),
        2.0 * LeastSquares(A, B) + SquaredL2(),
        LeastSquares(scipy.sparse.csr_array(A), B),
        SquaredL2().translate(B) @ A,
    ],
    ids=["plain", "sum", "sparse", "map"],
)
@pytest.mark.parametrize("x0", [None, "random"])
def test_float32_data_stay_float32(loss: Function, x0: Any) -> None:
    assert solved(loss, x0=x0).x.dtype == np.float32


def test_a_start_that_is_given_decides() -> None:
    assert solved(LeastSquares(A, B), x0=np.zeros(4)).x.dtype == np.float64
    assert solved(LeastSquares(A.astype(float), B), x0=np.zeros(4, np.float32)).x.dtype == np.float32


@pytest.mark.parametrize(
    "loss",
    [LeastSquares((10 * A).astype(int), B), LeastSquares(A.astype(float), B)],
    ids=["integers", "float64"],
)
def test_other_data_start_in_float64(loss: Function) -> None:
    assert solved(loss).x.dtype == np.float64


def test_a_function_without_data_starts_in_float64() -> None:
    f = Function(lambda x: float(x @ x), gradient=lambda x: 2 * x, lipschitz=2.0, shape=(3,))
    assert solved(f).x.dtype == np.float64


def test_blocks() -> None:
    problem = Composite({"loss": LeastSquares(A, B)}, blocks={"u": (1,), "v": (3,)})
    x = infimum.solve(problem, solver="splitting.gradient_descent", stopping="max_iter(4)", seed=0).x
    assert {name: one.dtype for name, one in x.items()} == {"u": np.float32, "v": np.float32}


def test_torch_data_start_in_torch() -> None:
    torch = pytest.importorskip("torch")
    result = solved(LeastSquares(torch.tensor(A), torch.tensor(B)))
    assert isinstance(result.x, torch.Tensor) and result.x.dtype == torch.float32
    np.testing.assert_allclose(result.x.numpy(), solved(LeastSquares(A, B)).x, rtol=1e-4)

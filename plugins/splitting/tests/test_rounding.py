"""Numbers in every precision: declared constants keep float32, and steps lost to rounding certify nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import infimum
from infimum import Composite, Function, InputError, Status
from infimum.functions import L1, Linear, SquaredL2
from infimum.functions.maps import LinearMap
from infimum_splitting import (
    ADMM,
    PDHG,
    CondatVu,
    DavisYin,
    DouglasRachford,
    GradientDescent,
    ProximalGradient,
    ProximalPoint,
)

A = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
SQUARE = np.linalg.norm(A.astype(np.float64), 2) ** 2
ALL = (ADMM, PDHG, CondatVu, DavisYin, DouglasRachford, GradientDescent, ProximalGradient, ProximalPoint)
SLOPED = (CondatVu, DavisYin, GradientDescent, ProximalGradient)
C = np.array([1.0, -2.0])


def loss(constant, **more):
    return Function(
        lambda x: 0.5 * float(np.sum((A @ x - 1) ** 2)),
        gradient=lambda x: A.T @ (A @ x - 1),
        convex=True,
        lipschitz=constant,
        **more,
    )


def problem(kind, constant):
    """One that the solver takes as it is, with a constant of NumPy's wherever one may stand."""
    if kind in SLOPED:
        return Composite({"loss": loss(constant)})
    half = Function(lambda x: 0.5 * float(x @ x), prox=lambda v, t: v / (1 + t), convex=True, lipschitz=constant)
    if kind in (ADMM, PDHG):
        return Composite({"half": half, "under": L1() @ LinearMap(A, norm=np.sqrt(np.float64(SQUARE)))})
    return Composite({"half": half})


@pytest.mark.parametrize("number", [np.float64, np.float32, float])
@pytest.mark.parametrize("kind", ALL)
def test_declared_constants_of_any_type_keep_float32(kind, number):
    start = np.ones(3, np.float32)
    result = infimum.solve(problem(kind, number(SQUARE)), start, solver=kind(), stopping="max_iter(4)", seed=0)
    assert result.x.dtype == np.float32
    assert result.status is Status.limit


@pytest.mark.parametrize("kind", [GradientDescent, ProximalGradient, ProximalPoint])
def test_schedules_that_give_numbers_of_numpy_keep_float32(kind):
    solver = kind(step=lambda k: np.float64(0.01) / (k + 1))
    result = infimum.solve(problem(kind, SQUARE), np.ones(3, np.float32), solver=solver, stopping="max_iter(4)", seed=0)
    assert result.x.dtype == np.float32


@pytest.mark.parametrize("step", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("kind", [GradientDescent, ProximalGradient, ProximalPoint])
def test_a_schedule_that_gives_no_step_is_named(kind, step):
    solver = kind(step=lambda k: 0.01 if k < 3 else step)
    result = infimum.solve(problem(kind, SQUARE), np.ones(3, np.float32), solver=solver, stopping="max_iter(9)", seed=0)
    assert result.status is Status.failed
    assert f"gave step {step:g} at k = 3; expected a positive finite number" in result.message
    with pytest.raises(InputError, match="at k = 0; expected"):
        infimum.solve(problem(kind, SQUARE), np.ones(3, np.float32), solver=kind(step=lambda k: step), seed=0)


FAR = {
    "proximal gradient": (ProximalGradient(step=1e-18), {"cost": Linear(C), "penalty": 0.1 * L1()}),
    "accelerated": (ProximalGradient(step=1e-18, acceleration=True), {"cost": Linear(C)}),
    "proximal point": (ProximalPoint(step=1e-18), {"cost": Linear(C)}),
    "Douglas-Rachford": (DouglasRachford(step=1e-18), {"cost": Linear(C), "penalty": 0.1 * L1()}),
    "Davis-Yin": (DavisYin(step=1e-18), {"cost": Linear(C), "penalty": 0.1 * L1()}),
    "PDHG": (PDHG(tau=1e-18), {"cost": Linear(C), "penalty": 0.1 * L1() @ np.eye(2)[:1]}),
    "Condat-Vu": (CondatVu(tau=1e-18), {"cost": Linear(C), "penalty": 0.1 * L1() @ np.eye(2)[:1]}),
    "ADMM": (ADMM(tau=1e-18), {"cost": Linear(C), "penalty": 0.1 * L1() @ np.eye(2)[:1]}),
}


@pytest.mark.parametrize("name", FAR)
def test_a_step_that_rounding_swallows_is_no_certificate(name):
    solver, terms = FAR[name]
    metric = "grad_norm" if "grad_norm" in solver.metrics else "residual"
    result = infimum.solve(
        Composite(terms), np.array([0.3, 0.7]), solver=solver, stopping=f"{metric}(1e-6) | max_iter(9)", seed=0
    )
    assert result.status is Status.limit
    assert result.metrics[metric] > 1.0


def test_a_coordinate_far_away_is_not_taken_for_optimal():
    # The second column is zero: the penalty alone moves that entry, by less than its rounding.
    f = SquaredL2() @ np.diag([1e6, 0.0])
    problem = Composite({"fit": f, "penalty": L1()})
    solver = ProximalGradient()
    result = infimum.solve(problem, np.array([0.0, 1e6]), solver=solver, stopping="grad_norm(1e-6) | max_iter(50)")
    assert result.x[1] == 1e6
    assert result.status is Status.limit

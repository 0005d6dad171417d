"""torch.optim on arrays: bit for bit what a bare loop gives, NumPy or torch, and what the signatures say."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np
import pytest
import torch

import infimum
import infimum_torch.optimizers as optimizers
from infimum.constraints import Box
from infimum.errors import InputError, PlanError
from infimum.functions import L1, Function, LeastSquares
from infimum.plugins.options import describe_options
from infimum.schedule import Power
from infimum.testing import check_function
from infimum_torch import Autograd, ScheduleLR, TorchFunction, TorchSolver
from infimum_torch.hooks import OPTIMIZERS, SCHEDULES

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((12, 5)), RNG.standard_normal(12)
X0 = RNG.standard_normal(5)


def rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


OPTIONS: dict[str, dict[str, Any]] = {
    "adam": {"lr": 0.05},
    "adamw": {"lr": 0.05, "weight_decay": 0.1},
    "sgd": {"lr": 1e-4, "momentum": 0.9, "nesterov": True},
    "rmsprop": {"lr": 0.01, "momentum": 0.5, "centered": True},
    "lbfgs": {"line_search_fn": "strong_wolfe", "max_iter": 5},
    "rprop": {},
    "asgd": {"lr": 1e-4},
    "nadam": {},
    "adafactor": {},
}


@pytest.mark.parametrize("start", ["numpy", "torch", "float32"])
@pytest.mark.parametrize("name", OPTIONS)
def test_it_is_the_bare_loop_bit_for_bit(name: str, start: str) -> None:
    x0: Any = X0 if start == "numpy" else torch.tensor(X0, dtype=torch.float32 if start == "float32" else None)
    options = OPTIONS[name]
    x = torch.as_tensor(x0).clone().requires_grad_()
    optimizer = getattr(torch.optim, OPTIMIZERS[name][0])([x], **options)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = rosenbrock(x)
        loss.backward()
        return loss

    for _ in range(15):
        optimizer.step(closure)
    method = {"use": f"torch.{name}", **options}
    result = infimum.solve(TorchFunction(rosenbrock), x0, solver=method, stopping="max_iter(15)", seed=0)
    assert type(result.x) is type(x0)
    assert np.array_equal(np.asarray(result.x), x.detach().numpy())
    assert result.value == rosenbrock(x).item()


def test_one_evaluation_more_than_a_bare_loop() -> None:
    result = infimum.solve(LeastSquares(A, B), X0, solver="torch.adam", stopping="max_iter(20)", seed=0)
    assert result.evaluations["objective"] == {"value": 21, "gradient": 21}
    assert result.monitored == {}


def test_every_optimizer_of_this_torch_is_there() -> None:
    assert {cls for cls, _ in OPTIMIZERS.values()} == set(optimizers.optimizer_names())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_options_are_those_of_torch(name: str) -> None:
    own = getattr(torch.optim, OPTIMIZERS[name][0])
    signature = inspect.signature(own).parameters
    cls = optimizers.solver_class(OPTIMIZERS[name][0])
    options = {one.name: one for one in describe_options(cls)}
    assert set(options) - {"lr_schedule", "schedule_every"} == set(signature) - optimizers.LEFT_OUT
    for option, one in options.items():
        assert one.doc and one.doc != "See torch."
        if option in signature:
            assert one.default == signature[option].default


def test_bad_options_are_refused_by_name() -> None:
    for option, value in (("lr", -1.0), ("betas", [0.9, 1.0]), ("eps", "small"), ("amsgrad", 3)):
        with pytest.raises(InputError, match=option):
            infimum.prepare(LeastSquares(A, B), X0, solver={"use": "torch.adam", option: value})
    with pytest.raises(InputError, match="did you mean 'momentum'"):
        infimum.prepare(LeastSquares(A, B), X0, solver={"use": "torch.sgd", "momentun": 0.9})
    with pytest.raises(InputError, match="Nesterov"):
        infimum.solve(LeastSquares(A, B), X0, solver={"use": "torch.sgd", "nesterov": True}, seed=0)
    with pytest.raises(PlanError, match="value_and_gradient"):
        infimum.prepare(infimum.Composite({"f": LeastSquares(A, B), "g": L1()}), X0, solver="torch.adam")


def test_a_box_is_kept() -> None:
    problem = infimum.Composite({"f": LeastSquares(A, B)}, constraints=[Box(lower=0.0)])
    result = infimum.solve(problem, X0, solver={"use": "torch.sgd", "lr": 0.1}, stopping="max_iter(500)", seed=0)
    reference = infimum.solve(problem, X0, solver="splitting.proximal_gradient", seed=0)
    assert result.violation == 0.0
    np.testing.assert_allclose(result.x, reference.x, atol=1e-6)
    problem = infimum.Composite({"f": LeastSquares(A, B)}, constraints=[Box(lower=0.0), Box(upper=1.0)])
    with pytest.raises(InputError, match="2 sets"):
        infimum.prepare(problem, X0, solver="torch.adam")


# Schedules ------------------------------------------------------------------------------------------------------------


def bare_with(make: Any, steps: int = 12, lr: float = 0.01) -> np.ndarray:
    x = torch.tensor(X0, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=lr, momentum=0.5)
    scheduler = make(optimizer)
    for _ in range(steps):
        optimizer.zero_grad()
        rosenbrock(x).backward()
        torch.nn.utils.clip_grad_norm_([x], 1e9)
        optimizer.step()
        scheduler.step()
    return x.detach().numpy()


def scheduled(schedule: Any, lr: float = 1e-4) -> np.ndarray:
    method = {"use": "torch.sgd", "lr": lr, "momentum": 0.5, "lr_schedule": schedule}
    return infimum.solve(TorchFunction(rosenbrock), X0, solver=method, stopping="max_iter(12)", seed=0).x


TORCH_SCHEDULES: dict[str, dict[str, Any]] = {
    "constant_lr": {"factor": 0.5},
    "cosine_annealing_lr": {"T_max": 8},
    "cosine_annealing_warm_restarts": {"T_0": 4, "T_mult": 2},
    "cyclic_lr": {"base_lr": 1e-5, "max_lr": 1e-4, "step_size_up": 3, "cycle_momentum": True},
    "exponential_lr": {"gamma": 0.9},
    "linear_lr": {},
    "multi_step_lr": {"milestones": [3, 7]},
    "one_cycle_lr": {"max_lr": 1e-4, "total_steps": 13},
    "polynomial_lr": {"total_iters": 9},
    "step_lr": {"step_size": 4},
}


@pytest.mark.parametrize("name", TORCH_SCHEDULES)
def test_schedulers_of_torch_are_the_bare_ones(name: str) -> None:
    options = TORCH_SCHEDULES[name]
    own = getattr(torch.optim.lr_scheduler, SCHEDULES[name][0])
    expected = bare_with(
        lambda optimizer: (
            own(optimizer, **{"cycle_momentum": False} | options)
            if "cycle_momentum" in inspect.signature(own).parameters
            else own(optimizer, **options)
        ),
        lr=1e-4,
    )
    assert np.array_equal(scheduled({"use": f"torch.{name}", **options}), expected)


def test_schedulers_from_python() -> None:
    make = functools.partial(torch.optim.lr_scheduler.LambdaLR, lr_lambda=lambda k: 0.9**k)
    assert np.array_equal(scheduled(make), bare_with(make, lr=1e-4))
    assert np.array_equal(
        scheduled(lambda k: 1e-4 / (k + 1)), bare_with(lambda o: ScheduleLR(o, lambda k: 1e-4 / (k + 1)))
    )


def test_our_schedules_drive_a_torch_optimizer() -> None:
    ours = Power(1e-4, 0.5)
    assert np.array_equal(scheduled({"use": "core.power", "initial": 1e-4, "exponent": 0.5}), scheduled(ours))
    x = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=7.0)
    scheduler = ScheduleLR(optimizer, ours)
    seen = []
    for _ in range(4):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    assert seen == [ours(k) for k in range(4)]


def test_a_torch_schedule_stands_alone() -> None:
    from infimum_torch.schedules import CosineAnnealingLR, LinearLR, SequentialLR

    cosine = CosineAnnealingLR(10, initial=0.2)
    assert cosine(0) == 0.2
    assert cosine(5) == pytest.approx(0.1)
    assert cosine(10) == pytest.approx(0.0, abs=1e-12)
    both = SequentialLR([LinearLR(total_iters=5), CosineAnnealingLR(10)], [5], initial=0.3)
    assert both(0) == pytest.approx(0.1)
    assert both(5) == pytest.approx(0.3)


# Derivatives ----------------------------------------------------------------------------------------------------------


def test_torch_functions_are_what_they_say() -> None:
    f = TorchFunction(lambda x: torch.logsumexp(x, 0) + (x**4).sum(), batched=True)
    for x in (X0, torch.tensor(X0)):
        assert check_function(f, x).ok
    assert isinstance(f.gradient(X0), np.ndarray)
    assert isinstance(f.values(np.stack([X0, 2 * X0])), np.ndarray)
    np.testing.assert_allclose(f.hessian(X0) @ B[:5], f.hvp(X0, B[:5]), rtol=1e-10)


def test_functions_without_dependence_have_zero_derivatives() -> None:
    f = TorchFunction(lambda x: x.detach().sum() * 0.0 + 3.0)
    assert not f.gradient(X0).any()
    assert not f.hvp(X0, X0).any()
    linear = TorchFunction(lambda x: x.sum())
    assert not linear.hessian(X0).any()


def test_the_oracle_gives_derivatives_to_a_function_of_tensors() -> None:
    problem = infimum.Composite({"f": Function(rosenbrock)})
    start = torch.tensor(X0)
    result = infimum.solve(
        problem,
        start,
        solver={"use": "torch.lbfgs", "line_search_fn": "strong_wolfe", "tolerance_change": 0.0},
        oracles={"f": "torch.autograd"},
        seed=0,
        stopping="grad_norm(1e-6) | max_iter(100)",
    )
    assert result.success
    np.testing.assert_allclose(result.x.numpy(), 1.0, atol=1e-4)
    assert result.exactness == "exact"
    newton = infimum.solve(problem, X0, solver="scipy.newton_cg", oracles={"f": "torch.autograd"}, seed=0)
    assert isinstance(newton.x, np.ndarray)
    np.testing.assert_allclose(newton.x, 1.0, atol=1e-2)


def test_auto_takes_it_only_where_it_is_known_to_fit() -> None:
    only_values = Function(lambda x: float(np.sum(x * x)))
    plan = infimum.explain(infimum.Composite({"f": only_values}), "torch.adam", oracles="auto")
    assert "torch.autograd" not in str(plan)
    marked = Function(rosenbrock)
    marked.torch_value = rosenbrock  # type: ignore[attr-defined]
    assert "torch.autograd" in str(infimum.explain(infimum.Composite({"f": marked}), "torch.adam", oracles="auto"))
    assert Autograd().volunteers(TorchFunction(rosenbrock))


def test_the_oracle_says_what_is_wrong() -> None:
    for wrong, said in ((lambda x: 1.0, "float"), (lambda x: x, "must return one number")):
        problem = infimum.Composite({"f": Function(wrong)})
        with pytest.raises(InputError, match=said):
            infimum.solve(problem, X0, solver="torch.adam", oracles={"f": "torch.autograd"}, seed=0)


def test_torchs_generators_are_left_alone() -> None:
    before = torch.get_rng_state()
    infimum.solve(LeastSquares(A, B), X0, solver="torch.adam", stopping="max_iter(3)", seed=0)
    assert torch.equal(before, torch.get_rng_state())


def test_a_solver_of_an_optimizer_of_ones_own() -> None:
    from dataclasses import dataclass

    class Sign(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    noise = torch.rand_like(p)
                    p.sub_(group["lr"] * noise * p.grad.sign())

    @dataclass(frozen=True)
    class SignDescent(TorchSolver):
        """Signs, with noise from torch's global generator.

        Parameters
        ----------
        lr : float, default 0.01
            Step size.
        """

        lr: float = 0.01

        def make(self, groups: Any) -> torch.optim.Optimizer:
            return Sign([group.options() for group in groups], lr=self.lr)

    first, second = (
        infimum.solve(LeastSquares(A, B), X0, solver=SignDescent(), stopping="max_iter(9)", seed=4) for _ in range(2)
    )
    assert np.array_equal(first.x, second.x)
    other = infimum.solve(LeastSquares(A, B), X0, solver=SignDescent(), stopping="max_iter(9)", seed=5)
    assert not np.array_equal(first.x, other.x)

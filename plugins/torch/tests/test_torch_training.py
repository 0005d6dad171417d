"""Training: bit for bit a bare loop, taken up bit for bit, counted, stopped, watched, and refused with reasons."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import infimum
from infimum.checkpoint import load_tree, save_tree
from infimum.constraints import Box, L2Ball
from infimum.errors import InfimumError, InputError
from infimum.testing.compare import difference, result_difference
from infimum_torch import Training
from infimum_torch.samples import small_data

X, Y = small_data()


def net(dropout: float = 0.0, norm: bool = False) -> nn.Module:
    middle = [nn.BatchNorm1d(8)] if norm else []
    return nn.Sequential(nn.Linear(3, 8), *middle, nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))


def seeded(dropout: float = 0.0, norm: bool = False) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return net(dropout, norm)


def problem(module: Any = None, **options: Any) -> Training:
    options = {"loss": "mse_loss", "data": (X, Y), "batch_size": 16, **options}
    return Training(seeded() if module is None else module, **options)


def solve(of: Any, solver: Any = "torch.adam", stopping: str = "max_iter(12)", **more: Any) -> infimum.Result:
    return infimum.solve(of, solver=solver, stopping=stopping, **{"seed": 0, **more})


def weights(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: one.detach().numpy().copy() for name, one in module.state_dict().items()}


def bare(module: nn.Module, batches: Any, make: Any) -> nn.Module:
    module = copy.deepcopy(module)
    optimizer = make(module.parameters())
    for inputs, targets in batches:

        def closure(inputs: Any = inputs, targets: Any = targets) -> torch.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(module(inputs), targets)
            loss.backward()
            return loss

        optimizer.step(closure)
    return module


def in_order(times: int = 4) -> list[Any]:
    return [(X[k : k + 16], Y[k : k + 16]) for _ in range(times) for k in (0, 16, 32)]


# What it computes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adam", "lbfgs"])
def test_it_is_the_bare_loop_bit_for_bit(name: str) -> None:
    options: dict[str, Any] = {"lr": 0.01} if name == "adam" else {"max_iter": 3, "line_search_fn": "strong_wolfe"}
    make = {"adam": torch.optim.Adam, "lbfgs": torch.optim.LBFGS}[name]
    module = seeded(norm=True)
    expected = bare(module, in_order(), lambda p: make(p, **options))
    result = solve(problem(module, shuffle=False), {"use": f"torch.{name}", **options})
    assert difference(weights(expected), weights(result.x)) is None
    assert difference(weights(module), weights(seeded(norm=True))) is None, "the user's module was changed"


def test_a_loader_gives_the_bare_loop_too() -> None:
    module = seeded()
    data = torch.utils.data.TensorDataset(X, Y)
    loader = torch.utils.data.DataLoader(data, batch_size=16)
    expected = bare(module, in_order(), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))
    result = solve(problem(module, data=loader, batch_size=None), {"use": "torch.sgd", "lr": 0.1, "momentum": 0.9})
    assert difference(weights(expected), weights(result.x)) is None


def test_value_is_the_mean_loss_in_evaluation_mode() -> None:
    module = seeded(dropout=0.5)
    result = solve(problem(module), stopping="max_iter(0)")
    module.eval()
    assert result.value == pytest.approx(nn.functional.mse_loss(module(X), Y).item(), rel=1e-6)
    assert result.x.training


def test_modes_of_parts_are_kept() -> None:
    module = seeded(dropout=0.5)
    module[2].eval()
    result = solve(problem(module))
    assert result.x.training
    assert not result.x[2].training


def test_best_is_a_point_that_was_evaluated() -> None:
    result = solve(problem(metrics={"size": lambda m: m[0].weight.abs().max().item()}), {"use": "torch.sgd", "lr": 3.0})
    found = problem().metrics(result.best_x)["value"](result.best_x, None)
    assert found == result.best_value
    assert result.best_value <= result.value
    assert not any(p.grad is not None for p in result.best_x.parameters())


# Counting, epochs, metrics -------------------------------------------------------------------------------------------


def test_passes_and_samples_are_counted() -> None:
    result = solve(problem(batch_size=20), stopping="max_iter(7)")
    assert result.evaluations["loss"] == {"forward": 7, "backward": 7, "samples": 20 + 20 + 8 + 20 + 20 + 8 + 20}
    lbfgs = solve(problem(), {"use": "torch.lbfgs", "max_iter": 4, "line_search_fn": "strong_wolfe"}, "max_iter(3)")
    assert lbfgs.evaluations["loss"]["forward"] > 3
    assert lbfgs.evaluations["loss"]["samples"] == 48
    budget = solve(problem(), stopping="max_calls(100, of='samples') | max_iter(99)")
    assert budget.iterations == 7


def test_epochs_end_a_run() -> None:
    result = solve(problem(), stopping="torch.max_epochs(3)")
    assert result.iterations == 9
    assert str(result.status) == "limit"
    assert solve(problem(), stopping="torch.max_epochs(1.5)").iterations == 5
    assert solve(problem(data=Sized(), batch_size=None), stopping="torch.max_epochs(2)").iterations == 6
    assert solve(problem(data=Unsized(), batch_size=None), stopping="torch.max_epochs(2)").iterations == 6


class Sized:
    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        return iter(in_order(1))


class Unsized:
    def __iter__(self) -> Any:
        return iter(in_order(1))


def test_metrics_at_their_cadence_and_rules_on_them() -> None:
    calls = []

    def accuracy(module: nn.Module) -> float:
        calls.append(module.training)
        with torch.no_grad():
            return float(((module(X) - Y).abs() < 0.5).double().mean())

    of = problem(metrics={"accuracy": accuracy}, value="accuracy", sense="max", evaluate_every=5)
    result = solve(of, {"use": "torch.adam", "lr": 0.05}, "target(0.6) | max_iter(300)")
    assert str(result.status) == "target_reached"
    assert result.iterations % 5 == 0
    assert result.value >= 0.6 and result.best_value == result.value
    assert calls and not any(calls)
    column = result.trace["accuracy"]
    assert np.isfinite(column[result.trace["iteration"] % 5 == 0]).all()
    assert not np.isfinite(column[result.trace["iteration"] % 5 != 0]).any()
    assert {"batch_loss", "epoch"} <= set(result.trace)


def test_without_a_value_nothing_is_evaluated() -> None:
    result = solve(problem(value="none"))
    assert result.value is None and result.best_x is None and result.monitored == {}
    with pytest.raises(InputError, match="value"):
        solve(problem(value="none"), stopping="target(0.1)")


def test_checks_between_steps_change_nothing() -> None:
    module = seeded(dropout=0.3)
    one = solve(problem(module))
    other = solve(problem(module), check_every=5)
    assert difference(weights(one.x), weights(other.x)) is None


# Random numbers and checkpoints --------------------------------------------------------------------------------------


def loader(shuffle: bool = True, own: bool = False) -> Any:
    data = torch.utils.data.TensorDataset(X, Y)
    generator = torch.Generator().manual_seed(9) if own else None
    return torch.utils.data.DataLoader(data, batch_size=16, shuffle=shuffle, generator=generator)


class Noisy(torch.utils.data.Dataset[Any]):
    """Draws from torch's global generator."""

    def __len__(self) -> int:
        return 48

    def __getitem__(self, k: int) -> Any:
        return X[k] + 0.1 * torch.randn(3), Y[k]


DATA: dict[str, Any] = {
    "arrays": lambda: {},
    "loader": lambda: {"data": loader(), "batch_size": None},
    "own generator": lambda: {"data": loader(own=True), "batch_size": None},
    "noisy": lambda: {
        "data": torch.utils.data.DataLoader(Noisy(), batch_size=16, shuffle=True),
        "batch_size": None,
    },
    "unsized": lambda: {"data": Unsized(), "batch_size": None},
}


@pytest.mark.parametrize("split", [1, 5, 6])
@pytest.mark.parametrize("data", DATA)
def test_resume_is_exact(data: str, split: int, tmp_path: Path) -> None:
    """With dropout, batch normalization, momentum, a schedule, and shuffling, in the middle of an epoch or not."""
    method = {
        **{"use": "torch.sgd", "lr": 0.05, "momentum": 0.9},
        "lr_schedule": {"use": "torch.one_cycle_lr", "max_lr": 0.1, "total_steps": 11, "cycle_momentum": True},
    }

    def run() -> Any:
        of = problem(lambda: net(dropout=0.4, norm=True), **DATA[data]())
        return infimum.prepare(of, solver=method, stopping="max_iter(11)", seed=3)

    whole = run().solve()
    first = run()
    first.advance(split)
    save_tree(tmp_path, "state", first.state_dict())
    torch.rand(3)
    second = run().load_state_dict(load_tree(tmp_path, "state")).solve()
    assert result_difference(whole, second) is None


@pytest.mark.slow  # The conformance kit takes up every optimizer.
def test_states_of_optimizers_survive(tmp_path: Path) -> None:
    for k, name in enumerate(("lbfgs", "adafactor", "asgd", "rprop")):

        def run(name: str = name) -> Any:
            return infimum.prepare(problem(), solver=f"torch.{name}", stopping="max_iter(8)", seed=3)

        first = run()
        first.advance(3)
        save_tree(tmp_path / str(k), "state", first.state_dict())
        second = run().load_state_dict(load_tree(tmp_path / str(k), "state")).solve()
        assert result_difference(run().solve(), second) is None, name


def test_seeds_decide_everything_and_globals_are_left_alone() -> None:
    def of() -> Training:
        return problem(lambda: net(dropout=0.5), data=loader(), batch_size=None)

    before = torch.get_rng_state()
    one = solve(of(), seed=1)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(77)
    again, other = solve(of(), seed=1), solve(of(), seed=2)
    torch.set_rng_state(before)
    assert result_difference(one, again) is None
    assert difference(weights(one.x), weights(other.x)) is not None
    fixed = [solve(problem(net, seed=4), stopping="max_iter(0)", seed=k).x for k in (1, 2)]
    assert difference(weights(fixed[0]), weights(fixed[1])) is None


def test_a_loaders_own_generator_is_left_alone() -> None:
    data = loader(own=True)
    before = data.generator.get_state()
    solve(problem(data=data, batch_size=None))
    assert torch.equal(before, data.generator.get_state())


def test_a_result_is_saved_and_started_from(tmp_path: Path) -> None:
    result = solve(problem())
    loaded = infimum.Result.load(result.save(tmp_path / "out"))
    assert difference(weights(result.x), {k: np.asarray(v) for k, v in loaded.x.items()}) is None
    for start in (result, loaded, result.x, dict(result.x.state_dict())):
        more = solve(problem(), stopping="max_iter(0)", x0=start)
        best = result.best_x if isinstance(start, infimum.Result) else result.x
        assert difference(weights(more.x), weights(best)) is None


# Sets and groups -----------------------------------------------------------------------------------------------------


def test_sets_hold_for_the_parameters_that_a_pattern_matches() -> None:
    of = problem(constraints={"box": Box(-0.1, 0.1), "ball": L2Ball(0.5)}, on={"box": "*.weight", "ball": "*.bias"})
    result = solve(of, {"use": "torch.adam", "lr": 0.1})
    assert result.violation <= 1e-6
    assert result.x[0].weight.abs().max() <= 0.1 + 1e-7
    assert result.x[0].bias.norm() <= 0.5 + 1e-6
    assert solve(problem(), {"use": "torch.adam", "lr": 0.1}).x[0].weight.detach().abs().max() > 0.2
    by_api = solve(
        problem(),
        {"use": "torch.adam", "lr": 0.1},
        constraints=[{"use": "core.box", "lower": -0.1, "upper": 0.1, "on": "*.weight"}],
    )
    assert by_api.violation == 0.0


def test_groups_share_the_parameters_out() -> None:
    module = seeded()
    method = {
        "use": "torch.groups",
        "groups": {"0.*": {"use": "torch.sgd", "lr": 0.1, "momentum": 0.9}, "*": {"use": "torch.adam", "lr": 0.01}},
    }
    result = solve(problem(module, shuffle=False), method)

    class Both:
        def __init__(self, parameters: Any) -> None:
            a, b, c, d = parameters
            self.parts = [torch.optim.SGD([a, b], lr=0.1, momentum=0.9), torch.optim.Adam([c, d], lr=0.01)]

        def zero_grad(self) -> None:
            for one in self.parts:
                one.zero_grad()

        def step(self, closure: Any) -> None:
            closure()
            for one in self.parts:
                one.step()

    assert difference(weights(bare(module, in_order(), Both)), weights(result.x)) is None


def failing(solver: Any) -> None:
    result = solve(problem(), solver)
    assert result.error is not None
    raise InputError(str(result.error))


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        ({"use": "torch.groups", "groups": {"*": "torch.adam"}}, "expected a TorchSolver"),
        ({"use": "torch.groups", "groups": {"0.wieght": {"use": "torch.sgd"}}}, "did you mean '0.weight'"),
        ({"use": "torch.groups", "groups": {"0.*": {"use": "torch.sgd"}}}, "no pattern matches 3.weight, 3.bias"),
        (
            {"use": "torch.groups", "groups": {"*": {"use": "torch.sgd"}, "3.*": {"use": "torch.adam"}}},
            "patterns before it",
        ),
        ({"use": "torch.groups", "groups": {"*": {"use": "torch.lbfgs"}}}, "evaluates the loss by itself"),
        ({"use": "torch.groups", "groups": {}}, "empty"),
        ({"use": "torch.muon"}, "only supports 2D"),
        ({"use": "torch.sparse_adam"}, "dense"),
    ],
)
def test_bad_groups(solver: Any, said: str) -> None:
    with pytest.raises(InfimumError, match=said):
        failing(solver)


# What is refused, and what breaks ------------------------------------------------------------------------------------


def several() -> nn.Module:
    module = seeded()
    module[3] = nn.Linear(8, 1, device="meta")
    return module


class Shrinking:
    n = 3

    def __iter__(self) -> Any:
        self.n -= 1
        return iter(in_order(1)[: self.n + 1])


class Wrong(Sized):
    def __iter__(self) -> Any:
        return iter(in_order(1)[:2])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": lambda out, y: (out - y) ** 2}, r"no scalar but \(16, 1\) float32"),
        ({"loss": lambda out, y: 1.0}, "the loss is a float"),
        ({"loss": lambda out, y: out.detach().mean()}, "does not depend on any parameter"),
        ({"loss": "mse_los"}, "did you mean 'mse_loss'"),
        ({"loss": None}, "either loss="),
        ({"data": [], "batch_size": None}, "empty"),
        ({"data": (X[:0], Y[:0])}, "empty"),
        ({"data": (X, Y[:5])}, "same number"),
        ({"data": None}, "data is missing"),
        ({"data": 7}, "expected arrays"),
        ({"data": (b for b in in_order()), "batch_size": None}, "only once"),
        ({"data": loader()}, "batch_size=16 goes with data as arrays"),
        ({"module": several()}, "on device meta"),
        ({"module": 3}, "expected a torch.nn.Module"),
        ({"device": "cuda:7"}, "not available"),
        ({"device": "meta"}, "meta"),
        ({"constraints": [Box(0.0)], "on": {"box": "0.wieght"}}, "did you mean '0.weight'"),
        ({"constraints": [Box(0.0)]}, "needs on"),
        ({"constraints": {"a": Box(0.0), "b": Box(0.0)}, "on": {"a": "0.*", "b": "*.bias"}}, "'0.bias' is in two sets"),
        ({"metrics": {"value": len}}, "no name for a metric"),
        ({"value": "acuracy", "metrics": {"accuracy": len}}, "did you mean 'accuracy'"),
        ({"objective": "mse_loss", "loss": None}, "no such loss"),
    ],
)
def test_bad_problems(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        solve(problem(**options))


@pytest.mark.parametrize(
    ("data", "steps", "said"),
    [
        (Shrinking(), 3, "changes its length: epoch 2 has 1 batches"),
        (Wrong(), 2, "changes its length: epoch 1 has 2 batches, expected 3"),
    ],
)
def test_a_loader_that_changes_its_length_ends_the_run_with_what_it_reached(data: Any, steps: int, said: str) -> None:
    result = solve(problem(data=data, batch_size=None))
    assert result.status == "failed" and said in result.message
    assert result.iterations == steps and all(p.isfinite().all() for p in result.best_x.parameters())


def test_a_metric_that_ranks_is_evaluated_once() -> None:
    seen = []

    def size(module: nn.Module) -> float:
        seen.append(sum(float(p.abs().sum()) for p in module.parameters()))
        return seen[-1]

    result = solve(problem(metrics={"size": size}, value="size", evaluate_every=2), stopping="max_iter(6)")
    assert len(seen) == 4 and result.monitored["problem"] == {"value": 4}
    assert np.array_equal(result.trace["size"], result.trace["value"], equal_nan=True)


def test_a_frozen_module_and_a_foreign_start() -> None:
    module = seeded()
    for p in module.parameters():
        p.requires_grad_(False)
    with pytest.raises(InputError, match="unfreeze"):
        problem(module)
    with pytest.raises(InputError, match=r"x0: '0\.weight' is on meta"):
        solve(problem(), x0=seeded().to("meta"))
    with pytest.raises(InputError, match="has no tensor"):
        solve(problem(), x0={"nothing": X})


def test_a_nonfinite_loss_ends_the_run_and_the_best_is_kept() -> None:
    seen = [0]

    def loss(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        found = nn.functional.mse_loss(outputs, targets)
        if found.requires_grad:
            seen[0] += 1
        return found * float("nan") if seen[0] == 6 and found.requires_grad else found

    result = solve(problem(loss=loss), {"use": "torch.adam", "lr": 0.05}, "max_iter(20)")
    assert str(result.status) == "nonfinite"
    assert "iteration 6" in result.message and "backward of term 'loss'" in result.message
    assert result.iterations == 5
    assert np.isfinite(result.best_value)
    assert all(torch.isfinite(p).all() for p in [*result.x.parameters(), *result.best_x.parameters()])


def test_divergence_ends_as_nonfinite() -> None:
    result = solve(problem(), {"use": "torch.sgd", "lr": 1e6}, "max_iter(500)")
    assert str(result.status) in ("nonfinite", "diverged")
    assert result.iterations < 500
    assert all(torch.isfinite(p).all() for p in result.best_x.parameters())


def test_dtype_and_batches_of_any_form() -> None:
    def objective(module: nn.Module, batch: Any) -> torch.Tensor:
        return nn.functional.mse_loss(module(batch["x"]), batch["y"])

    batches = [{"x": x, "y": y.numpy()} for x, y in in_order(1)]
    result = solve(problem(data=batches, batch_size=None, loss=None, objective=objective, dtype="float64"))
    assert next(result.x.parameters()).dtype == torch.float64
    assert result.evaluations["loss"]["samples"] == 12 * 16


def test_optimizers_without_derivatives_train_too() -> None:
    from dataclasses import dataclass

    from infimum_cocd import CoCD
    from infimum_torch import TorchSolver

    @dataclass(frozen=True)
    class Coherent(TorchSolver):
        """Differences of losses.

        Parameters
        ----------
        lr : float, default 0.01
            Step size.
        """

        lr: float = 0.01
        uses = "values"
        closure = True

        def make(self, groups: Any) -> torch.optim.Optimizer:
            return CoCD([group.options() for group in groups], lr=self.lr, eps=1e-2, block=8)

    result = solve(problem(batch_size=None), Coherent(), "max_iter(40)")
    assert result.evaluations["loss"]["forward"] == 40 * 17
    assert "backward" not in result.evaluations["loss"]
    assert result.value < 0.9 * solve(problem(batch_size=None), stopping="max_iter(0)").value


@pytest.mark.slow
def test_workers_that_persist_are_taken_up_too(tmp_path: Path) -> None:
    def run() -> Any:
        data = torch.utils.data.DataLoader(Noisy(), 16, shuffle=True, num_workers=1, persistent_workers=True)
        return infimum.prepare(problem(data=data, batch_size=None), solver="torch.adam", stopping="max_iter(8)", seed=3)

    first = run()
    first.advance(4)
    save_tree(tmp_path, "state", first.state_dict())
    assert result_difference(run().solve(), run().load_state_dict(load_tree(tmp_path, "state")).solve()) is None


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 1)
        self.c = nn.Linear(3, 3)
        self.c.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.tanh(self.c(torch.tanh(self.a(x)))))


def test_shared_parameters_stay_shared() -> None:
    result = solve(problem(Tied()))
    assert result.x.a.weight is result.x.c.weight and result.best_x.a.weight is result.best_x.c.weight
    again = solve(problem(Tied()), stopping="max_iter(0)", x0=dict(result.x.state_dict()))
    assert difference(weights(result.x), weights(again.x)) is None


def test_what_raises_later_ends_the_run_as_failed() -> None:
    calls = []

    def metric(module: nn.Module) -> float:
        calls.append(1)
        if len(calls) == 3:
            raise OSError("disk gone")
        return 1.0

    result = solve(problem(metrics={"m": metric}))
    assert str(result.status) == "failed" and "disk gone" in result.message and result.x is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metrics": {"m": lambda module: 1 / 0}}, "m at its first evaluation: ZeroDivisionError"),
        ({"metrics": {"m": lambda module: module(X)}}, r"expected one number, got \(48, 1\) float32"),
        ({"data": (X.double(), Y)}, "casts module and data alike"),
        ({"module": nn.LazyLinear(1)}, "no shape yet"),
        ({"dtype": "f64"}, "expected one of float64"),
        ({"validation": (X[:0], Y[:0])}, "validation: the arrays are empty"),
        ({"data": [X, Y], "batch_size": None}, "arrays go as a tuple"),
        ({"data": torch.utils.data.TensorDataset(X, Y)}, "a dataset goes into a DataLoader"),
        ({"batch_size": 2.5}, "expected an integer"),
    ],
)
def test_more_bad_problems(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        solve(problem(**options))


def test_a_schedule_that_wants_a_metric_is_refused() -> None:
    with pytest.raises(InputError, match="wants a metric"):
        solve(problem(), {"use": "torch.adam", "lr_schedule": torch.optim.lr_scheduler.ReduceLROnPlateau})

"""The six citizens walk through the same host: composed, run, dumped, taken up again, stopped, refused."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, Function, InputError, Monitor, PlanError, Status
from infimum.checkpoint import load_tree, save_tree
from infimum.functions import L1, LeastSquares

_spec = importlib.util.spec_from_file_location("citizens", Path(__file__).with_name("citizens.py"))
assert _spec is not None and _spec.loader is not None
citizens: Any = importlib.util.module_from_spec(_spec)
sys.modules["citizens"] = citizens
_spec.loader.exec_module(citizens)

RNG = np.random.default_rng(3)
A = RNG.standard_normal((30, 6))
B = A @ np.array([1.0, -2.0, 0, 0, 0, 3.0])


def lasso() -> Composite:
    return Composite({"loss": LeastSquares(A, B), "penalty": 0.1 * L1()})


def value_only() -> Composite:
    loss = LeastSquares(A, B)
    return Composite({"loss": Function(loss.value, lipschitz=loss.lipschitz, shape=(6,))})


def resumed(make: Any, steps: int, tmp_path: Path) -> tuple[infimum.Result, infimum.Result]:
    """One run in one go, and one stopped after `steps`, written to files, rebuilt and gone on with."""
    whole = make().solve()
    first = make()
    first.advance(steps)
    save_tree(tmp_path, "state", first.state_dict())
    second = make().load_state_dict(load_tree(tmp_path, "state"))
    return whole, second.solve()


def assert_same(one: infimum.Result, other: infimum.Result) -> None:
    assert one.iterations == other.iterations and one.status is other.status and one.message == other.message
    assert one.evaluations == other.evaluations and one.calls == other.calls and one.monitored == other.monitored
    assert one.best_value == other.best_value and one.best_iteration == other.best_iteration
    assert list(one.trace) == list(other.trace)
    for name in one.trace:
        if name != "time":
            np.testing.assert_array_equal(one.trace[name], other.trace[name], err_msg=name)


class TestStochasticProx:
    def make(self, **options: Any) -> infimum.Run:
        defaults = {
            "solver": "splitting.proximal_gradient",
            "oracles": {"penalty": citizens.SampledProx()},
            "stopping": "max_iter(25)",
            "seed": 5,
        }
        return infimum.prepare(lasso(), **{**defaults, **options})

    def test_the_plan_names_it_and_the_result_carries_its_exactness(self) -> None:
        result = self.make().solve()
        assert result.exactness == "stochastic"
        assert "by oracle SampledProx" in result.plan and "in place of its own prox" in result.plan
        note = "oracle SampledProx was named for 'penalty', which needs none: it replaces its own prox"
        assert result.notes == [note] and note in str(result)

    def test_queries_are_charged_to_the_function(self) -> None:
        result = self.make().solve()
        assert result.evaluations["penalty"] == {"value": 50 * result.calls["rest"]["prox"]}

    def test_same_seed_same_bits_and_another_seed_differs(self) -> None:
        one, two, other = (self.make(seed=seed).solve().x for seed in (5, 5, 6))
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, other)

    def test_resume_is_bitwise(self, tmp_path: Path) -> None:
        whole, second = resumed(self.make, 11, tmp_path)
        np.testing.assert_array_equal(whole.x, second.x)
        assert_same(whole, second)

    def test_a_slot_that_wants_better_refuses_it(self) -> None:
        with pytest.raises(PlanError, match="stochastic"):
            self.make(solver={"use": "splitting.proximal_gradient", "acceleration": True})


class TestBufferedGradient:
    def make(self) -> infimum.Run:
        return infimum.prepare(
            value_only(),
            solver={"use": "splitting.gradient_descent", "step": 0.05},
            oracles={"loss": citizens.Buffered()},
            stopping="max_iter(40)",
            seed=1,
        )

    def test_the_buffer_survives_a_checkpoint(self, tmp_path: Path) -> None:
        whole, second = resumed(self.make, 7, tmp_path)
        np.testing.assert_array_equal(whole.x, second.x)
        assert_same(whole, second)

    def test_two_runs_share_nothing(self) -> None:
        oracle = citizens.Buffered()
        runs = [
            infimum.prepare(
                value_only(),
                solver={"use": "splitting.gradient_descent", "step": step},
                oracles={"loss": oracle},
                stopping="max_iter(20)",
                seed=1,
            )
            for step in (0.05, 0.01)
        ]
        alone = runs[0].solve()
        for _ in range(20):
            runs[1].advance(1)
        again = infimum.prepare(
            value_only(),
            solver={"use": "splitting.gradient_descent", "step": 0.05},
            oracles={"loss": oracle},
            stopping="max_iter(20)",
            seed=1,
        ).solve()
        np.testing.assert_array_equal(alone.x, again.x)

    def test_it_can_lift_the_sum_in_a_slot(self) -> None:
        result = infimum.solve(
            Composite({"a": Function(lambda x: float(x @ x)), "b": Function(lambda x: float(x.sum()))}),
            np.ones(4),
            solver={"use": "splitting.gradient_descent", "step": 0.1},
            oracles={"slot:smooth": citizens.Buffered(block=4)},
            stopping="max_iter(200)",
            seed=0,
        )
        np.testing.assert_allclose(result.x, -0.5, atol=1e-4)
        assert result.evaluations["a"] == result.evaluations["b"]


class TestInPlaceTorch:
    def problem(self) -> Any:
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()
        generator = torch.Generator().manual_seed(1)
        inputs = torch.randn(20, 3, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            module[0].weight /= module[0].weight.norm(dim=1, keepdim=True)
        return citizens.Training(
            module, citizens.ModuleLoss(inputs, inputs.sum(1, keepdim=True)), {"0.weight": citizens.UnitRows()}
        )

    def make(self) -> infimum.Run:
        return infimum.prepare(self.problem(), solver=citizens.InPlaceSGD(lr=0.1), stopping="max_iter(30)", seed=0)

    def test_it_trains_in_place_on_the_host_s_own_copy_and_keeps_the_best(self) -> None:
        problem = self.problem()
        before = {name: one.clone() for name, one in problem.module.state_dict().items()}
        result = infimum.solve(problem, solver=citizens.InPlaceSGD(lr=0.1), stopping="max_iter(30)", seed=0)
        for name, one in problem.module.state_dict().items():
            assert (one == before[name]).all(), name
        assert result.best_value < 0.5 * result.trace["value"][0]
        loss = problem.terms[0].body.backward(result.best_x)
        assert loss == pytest.approx(result.best_value, rel=1e-12)
        rows = result.x[0].weight.detach().norm(dim=1)
        assert float((rows - 1).abs().max()) < 1e-12

    def test_resume_is_bitwise(self, tmp_path: Path) -> None:
        whole, second = resumed(self.make, 12, tmp_path)
        for one, other in zip(whole.x.parameters(), second.x.parameters(), strict=True):
            assert (one == other).all()
        assert_same(whole, second)

    def test_the_result_saves_as_plain_data(self, tmp_path: Path) -> None:
        result = self.make().solve()
        loaded = infimum.Result.load(result.save(tmp_path / "out"))
        np.testing.assert_array_equal(np.asarray(loaded.x["0.weight"]), result.x[0].weight.detach().numpy())


class TestRuleInAForeignLoop:
    def test_it_stops_a_loop_that_only_has_callbacks(self) -> None:
        rule = citizens.Plateau(window=3)
        seen = []

        def callback(value: float, monitor: Monitor) -> bool:
            seen.append(value)
            return monitor.tick({"value": value}) is not None

        monitor = Monitor(rule | infimum.stopping.max_iter(100), metrics=["value"])
        for value in (5.0, 3.0, 2.0, 2.0, 2.0, 1.0):
            if callback(value, monitor):
                break
        assert seen == [5.0, 3.0, 2.0, 2.0, 2.0]
        assert monitor.stop.status is Status.stalled and monitor.iteration == 5
        assert Monitor(rule, metrics=["value"]).tick({"value": 2.0}) is None

    def test_a_rule_whose_metric_the_loop_lacks_is_refused_when_made(self) -> None:
        with pytest.raises(InputError, match=r"'grad_norm'.*supplies value"):
            Monitor("grad_norm(1e-3) | max_iter(5)", metrics=["value"])

    def test_ticks_are_numbered_under_threads(self) -> None:
        monitor = Monitor("max_iter(1000)", metrics=["value"])

        def work() -> None:
            for _ in range(200):
                monitor.tick({"value": 1.0})

        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert monitor.iteration == 1000 and monitor.stop.status is Status.limit

    def test_the_same_rule_in_our_own_run_resumes(self, tmp_path: Path) -> None:
        def make() -> infimum.Run:
            rule = citizens.Plateau(window=5, tol=1e-4) | infimum.stopping.max_iter(500)
            return infimum.prepare(lasso(), solver="splitting.proximal_gradient", stopping=rule, seed=0)

        whole, second = resumed(make, 4, tmp_path)
        assert whole.status is Status.stalled
        assert_same(whole, second)


class TestForeignLoop:
    def problem(self) -> Composite:
        return Composite({"loss": LeastSquares(A, B)})

    def test_it_runs_under_our_rules_and_counters(self) -> None:
        result = infimum.solve(self.problem(), solver=citizens.Minimize(), stopping="max_iter(3)", seed=0)
        assert result.status is Status.limit and result.iterations == 3
        assert result.evaluations["loss"]["value"] == result.evaluations["loss"]["gradient"] >= 4
        assert result.trace["iteration"].tolist() == [0, 1, 2, 3]

    def test_rules_read_what_the_family_adds(self) -> None:
        result = infimum.solve(
            self.problem(), solver=citizens.Minimize(), stopping="rel_change(1e-2) | max_iter(100)", seed=0
        )
        assert result.status is Status.stalled
        np.testing.assert_allclose(result.x, np.linalg.lstsq(A, B, rcond=None)[0], atol=1e-2)

    def test_a_loop_that_ends_by_itself_says_so(self) -> None:
        result = infimum.solve(self.problem(), solver=citizens.Minimize(), stopping="max_iter(1000)", seed=0)
        assert result.iterations < 1000 and result.best_value == pytest.approx(result.value)
        assert result.status is Status.converged and "CONVERGENCE" in result.message

    def test_what_it_cannot_do_is_refused(self) -> None:
        run = infimum.prepare(self.problem(), solver=citizens.Minimize(), stopping="max_iter(3)", seed=0)
        assert run.plan.resume == "none"
        with pytest.raises(InputError, match="cannot be advanced"):
            run.advance(1)
        with pytest.raises(InputError, match="cannot be resumed"):
            run.state_dict()
        with pytest.raises(InputError, match="grad_norm"):
            infimum.prepare(self.problem(), solver=citizens.Minimize(), stopping="grad_norm(1e-3)", seed=0)

    def test_nan_stops_it_and_keeps_the_best_point(self) -> None:
        count = 0

        def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal count
            count += 1
            r = A @ x - B
            return (float("nan") if count > 3 else float(r @ r)), 2 * A.T @ r

        result = infimum.solve(
            Composite({"loss": Function(value_and_gradient=loss, shape=(6,))}), solver=citizens.Minimize(), seed=0
        )
        assert (
            result.status is Status.nonfinite and "term 'loss'" in result.message and "evaluation 4" in result.message
        )
        assert np.isfinite(result.best_value) and np.isfinite(result.x).all()


class TestNoPoint:
    def make(self) -> infimum.Run:
        return infimum.prepare(
            citizens.Game(7), solver=citizens.DepthSearch(), stopping="residual(0) | max_iter(50)", seed=0
        )

    def test_it_searches_to_the_end(self) -> None:
        result = self.make().solve()
        assert result.status is Status.converged and result.iterations == 7
        assert result.x == {"policy": [1.0, 0.0], "value": 1.0}
        assert result.value is None and result.best_x is None and result.success
        assert result.evaluations["rules"]["transition"] > 0
        assert "nim" in str(result)

    def test_rules_on_points_are_refused_before_the_run(self) -> None:
        for rule in ("target(1)", "rel_change(1e-3)"):
            with pytest.raises(InputError, match="does not supply"):
                infimum.prepare(citizens.Game(7), solver=citizens.DepthSearch(), stopping=rule, seed=0)

    def test_resume_is_bitwise(self, tmp_path: Path) -> None:
        whole, second = resumed(self.make, 3, tmp_path)
        assert whole.x == second.x
        assert_same(whole, second)

    def test_families_do_not_mix(self) -> None:
        with pytest.raises(PlanError, match=r"family 'citizen game'.*family 'composite'"):
            infimum.prepare(lasso(), solver=citizens.DepthSearch())
        with pytest.raises(PlanError, match="family 'composite'"):
            infimum.prepare(citizens.Game(3), solver="splitting.proximal_gradient")

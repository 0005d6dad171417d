"""The run loop: watching changes nothing, limits and defaults hold, statuses mean what they say."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import infimum
from infimum import Composite, Constraint, Function, InputError, Metric, Slot, Solver, Status
from infimum.constraints import Box
from infimum.functions import L1, LeastSquares, Logistic
from infimum.run.defaults import DEFAULT_LIMIT
from infimum.run.monitor import Observer
from infimum.stopping import max_iter

RNG = np.random.default_rng(8)
A = RNG.standard_normal((20, 5))
B = A @ np.array([1.0, -2.0, 0.0, 0.0, 3.0]) + 0.1
X0 = np.linspace(-1.0, 1.0, 5)
PG = "splitting.proximal_gradient"
GD = "splitting.gradient_descent"
DR = "splitting.douglas_rachford"


def smooth(**options: Any) -> Composite:
    return Composite({"loss": LeastSquares(A, B)}, **options)


def lasso(**options: Any) -> Composite:
    return Composite({"loss": LeastSquares(A, B), "penalty": 0.1 * L1()}, **options)


def two_sets_distance(gap: float) -> Composite:
    """Two boxes; the intersection is empty for a positive gap."""
    return Composite({"low": indicator(-np.inf, 0.0), "high": indicator(gap, np.inf)})


def indicator(lower: float, upper: float) -> Function:
    inside = lambda x: bool(np.all((x >= lower - 1e-12) & (x <= upper + 1e-12)))  # noqa: E731
    return Function(
        lambda x: 0.0 if inside(x) else math.inf, prox=lambda v, t: np.clip(v, lower, upper), extended=True, convex=True
    )


CASES: dict[str, tuple[Callable[..., Composite], Any, dict[str, str]]] = {
    "gradient_descent": (smooth, GD, {}),
    "proximal_gradient": (lasso, PG, {}),
    "accelerated": (lasso, {"use": PG, "acceleration": True}, {}),
    "douglas_rachford": (lasso, {"use": DR, "step": 0.3}, {}),
    "forward_difference": (smooth, {"use": GD, "step": 0.05}, {"loss": "zeroth.forward_difference"}),
}


def iterates(case: str, n: int = 25, **options: Any) -> list[np.ndarray]:
    """Every iterate, taken from the solver's state between steps, as bytes would have it."""
    make, solver, oracles = CASES[case]
    run = infimum.prepare(
        make(), X0, solver=solver, oracles=oracles, **{"stopping": f"max_iter({n})", "seed": 3, **options}
    )
    points = []
    while run.monitor.stop is None:
        run.advance(1)
        points.append(run.current.copy())
    return points


class TestWatchingChangesNothing:
    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize(
        "options",
        [
            {"max_rows": 0},
            {"max_rows": 8},
            {"record": ["rel_change", "abs_change"]},
            {"value_every": 1},
            {"value_every": 7},
            {"callback": lambda progress: dict(progress.metrics) and None},
            {"check_every": 4},
            {"stopping": "max_iter(25) | target(-1e9) | rel_change(1e-300) | stall(1000)"},
        ],
        ids=["off", "thin", "changes", "value each", "value 7", "callback", "check_every", "rules"],
    )
    def test_bits_of_every_iterate(self, case: str, options: dict[str, Any]) -> None:
        plain, watched = iterates(case), iterates(case, **options)
        assert len(plain) == len(watched) == 25
        for one, other in zip(plain, watched, strict=True):
            np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize("case", CASES)
    def test_the_progress_bar_too(self, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
        make, solver, oracles = CASES[case]
        options = {"solver": solver, "oracles": oracles, "stopping": "max_iter(25)", "seed": 3}
        plain = infimum.solve(make(), X0, **options)
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        run = infimum.prepare(make(), X0, verbose=True, **options)
        assert [one.name for one in run.monitor.observers] == ["progress bar"]
        np.testing.assert_array_equal(plain.x, run.solve().x)

    def test_no_bar_where_standard_error_is_no_terminal(self) -> None:
        run = infimum.prepare(smooth(), X0, solver=GD, verbose=True, seed=0)
        assert run.monitor.observers == ()

    def test_the_bar_goes_when_the_run_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)

        def stop(progress: Any) -> None:
            if progress.iteration == 3:
                raise InputError("enough")

        run = infimum.prepare(smooth(), X0, solver=GD, verbose=True, callback=stop, stopping="max_iter(9)", seed=0)
        before = set(threading.enumerate())
        result = run.solve()
        assert result.status == "failed" and "enough" in result.message
        for thread in set(threading.enumerate()) - before:
            thread.join(5)
            assert not thread.is_alive()

    @pytest.mark.parametrize("case", CASES)
    def test_every_recorded_value_belongs_to_the_point_it_was_computed_at(self, case: str) -> None:
        make, solver, oracles = CASES[case]
        problem = make()
        run = infimum.prepare(
            problem, X0, solver=solver, oracles=oracles, stopping="max_iter(40)", value_every=1, seed=1
        )
        points = [X0]
        while run.advance(1) is None:
            points.append(run.current.copy())
        result = run.solve()
        points.append(result.x)
        assert result.trace["iteration"].tolist() == list(range(41))
        np.testing.assert_allclose(result.trace["value"], [problem.value(x) for x in points], rtol=1e-13)
        assert result.value == result.trace["value"][-1]
        assert problem.value(result.best_x) == pytest.approx(result.best_value, rel=1e-13)

    def test_iteration_0_is_x0(self) -> None:
        for case, (make, solver, oracles) in CASES.items():
            result = infimum.solve(make(), X0, solver=solver, oracles=oracles, stopping="max_iter(0)", seed=0)
            np.testing.assert_array_equal(result.x, X0)
            assert result.iterations == 0 and result.status is Status.limit
            assert result.trace["iteration"].tolist() == [0]
            assert result.value == pytest.approx(make().value(X0)), case

    def test_x0_is_never_touched(self) -> None:
        start = X0.copy()
        result = infimum.solve(smooth(), start, solver=GD, stopping="max_iter(3)", seed=0)
        np.testing.assert_array_equal(start, X0)
        result.x[:] = 0
        result.best_x[:] = 1
        np.testing.assert_array_equal(start, X0)

    def test_the_final_value_is_not_a_copy_of_an_old_one(self) -> None:
        result = infimum.solve(lasso(), X0, solver=PG, stopping="max_iter(17)", seed=0)
        assert result.trace["iteration"][-1] == 17
        assert result.value == result.trace["value"][-1] == pytest.approx(lasso().value(result.x), rel=1e-14)
        np.testing.assert_array_equal(np.flatnonzero(~np.isnan(result.trace["value"])), [0, 10, 17])
        assert result.monitored == {"problem": {"value": 3}}


class TestLimits:
    @pytest.mark.parametrize("n", [0, 1, 7])
    def test_max_iter(self, n: int) -> None:
        assert infimum.solve(smooth(), X0, solver=GD, stopping=f"max_iter({n})", seed=0).iterations == n

    def test_max_iter_below_and_is_a_condition(self) -> None:
        rule = "(max_iter(5) & grad_norm(1e-3)) | max_iter(300)"
        result = infimum.solve(smooth(), X0, solver=GD, stopping=rule, seed=0)
        assert 5 < result.iterations < 300 and result.status is Status.converged
        lonely = infimum.prepare(smooth(), X0, solver=GD, stopping="max_iter(5) & grad_norm(1e-3)", seed=0)
        assert "max_iter(10000) was added" in lonely.notes[0]

    def test_a_default_limit_is_added_and_noted(self) -> None:
        run = infimum.prepare(smooth(), X0, solver=GD, stopping="grad_norm(1e-30)", seed=0)
        assert str(run.rule) == f"grad_norm(1e-30) | max_iter({DEFAULT_LIMIT})"
        result = run.solve()
        assert result.iterations <= DEFAULT_LIMIT and "was added" in str(result)

    @pytest.mark.parametrize("nothing", [None, "", "  ", {}, []])
    def test_no_rule_at_all(self, nothing: Any) -> None:
        result = infimum.solve(smooth(), X0, solver=GD, stopping=nothing, seed=0)
        assert result.status is Status.converged
        assert any("no stopping rule was given: grad_norm(1e-06) | max_iter(10000)" in note for note in result.notes)
        assert "no stopping rule was given" in str(result)

    def test_no_rule_with_a_residual(self) -> None:
        run = infimum.prepare(lasso(), X0, solver=DR, seed=0)
        assert str(run.rule) == "residual(1e-06) | max_iter(10000)"

    def test_a_rule_with_its_own_limit_stays_as_it_is(self) -> None:
        for rule in ("max_time(1)", "max_calls(10) | grad_norm(0)", "max_iter(3)"):
            run = infimum.prepare(smooth(), X0, solver=GD, stopping=rule, seed=0)
            assert str(run.rule) == rule and run.notes == []

    @settings(max_examples=20, deadline=None)
    @given(n=st.integers(0, 60))
    def test_max_calls_goes_over_by_one_step_at_most_and_says_so(self, n: int) -> None:
        result = infimum.solve(
            smooth(),
            X0,
            solver={"use": GD, "step": 0.05},
            oracles={"loss": "zeroth.forward_difference"},
            stopping=f"max_calls({n})",
            seed=0,
        )
        spent = result.evaluations["loss"]["value"]
        assert n <= spent < n + 6 or spent == 6
        assert result.status is Status.limit
        assert (f"({spent - n} over)" in result.message) == (spent > n)
        assert result.nfev == spent

    def test_max_time(self) -> None:
        slow = Function(value_and_gradient=lambda x: (time.sleep(0.01), (float(x @ x), 2 * x))[1], lipschitz=2.0)
        result = infimum.solve(Composite(slow), X0, solver={"use": GD, "step": 1e-6}, stopping="max_time(0.1)", seed=0)
        assert result.status is Status.limit and "elapsed" in result.message
        assert 0.1 <= result.elapsed < 5.0 and result.iterations <= 10
        assert infimum.solve(smooth(), X0, solver=GD, stopping="max_time(0)", seed=0).iterations == 0

    def test_elapsed_adds_up_over_pieces_and_leaves_pauses_out(self) -> None:
        run = infimum.prepare(smooth(), X0, solver=GD, stopping="max_iter(4)", seed=0)
        run.advance(2)
        first = run.monitor.elapsed
        time.sleep(0.3)
        assert run.monitor.elapsed == first
        result = run.solve()
        assert first < result.elapsed < first + 0.3
        assert np.all(np.diff(result.trace["time"]) >= 0)

    def test_time_for_the_record_is_not_charged(self) -> None:
        slow = Function(
            lambda x: (time.sleep(0.02), float(x @ x))[1], gradient=lambda x: 2 * x, prox=lambda v, t: v, lipschitz=2.0
        )
        result = infimum.solve(
            Composite(slow), X0, solver={"use": DR, "step": 0.3}, stopping="max_iter(3)", value_every=1, seed=0
        )
        assert result.elapsed >= 0.08 and result.trace["time"][-1] <= result.elapsed - 0.08


class TestCheckEvery:
    @settings(max_examples=25, deadline=None)
    @given(m=st.integers(1, 12), n=st.integers(0, 40))
    def test_the_iteration_limit_is_met_exactly(self, m: int, n: int) -> None:
        result = infimum.solve(smooth(), X0, solver=GD, stopping=f"max_iter({n})", check_every=m, seed=0)
        assert result.iterations == n
        assert result.calls["smooth"]["value_and_gradient"] == n + 1
        assert set(result.trace["iteration"]) == {*range(0, n, m), n}
        plain = infimum.solve(smooth(), X0, solver=GD, stopping=f"max_iter({n})", seed=0)
        np.testing.assert_array_equal(result.x, plain.x)

    def test_a_stop_is_found_late_by_less_than_one_chunk(self) -> None:
        options: dict[str, Any] = {"solver": GD, "stopping": "grad_norm(1e-4) | max_iter(5000)", "seed": 0}
        exact = infimum.solve(smooth(), X0, **options).iterations
        for m in (2, 7, 50):
            late = infimum.solve(smooth(), X0, check_every=m, **options)
            assert late.status is Status.converged
            assert exact <= late.iterations < exact + m and late.iterations % m == 0

    def test_cadences_that_do_not_divide(self) -> None:
        told: list[int] = []
        run = infimum.prepare(lasso(), X0, solver=PG, stopping="max_iter(35)", check_every=7, value_every=10, seed=0)
        run.monitor.observers = (Observer(lambda p: told.append(p.iteration), every=10),)
        result = run.solve()
        known = result.trace["iteration"][~np.isnan(result.trace["value"])]
        # 10, 20 and 30 fall between checks: the first check after each has the value.
        assert known.tolist() == [0, 14, 21, 35] and told == [0, 14, 21, 35]

    def test_the_grid_does_not_depend_on_how_the_run_is_cut(self) -> None:
        run = infimum.prepare(smooth(), X0, solver=GD, stopping="max_iter(12)", check_every=5, seed=0)
        run.advance(3)
        assert run.monitor.iteration == 3
        result = run.solve()
        assert result.trace["iteration"].tolist() == [0, 3, 5, 10, 12]

    @pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None])
    def test_bad_numbers_are_refused(self, bad: Any) -> None:
        with pytest.raises(InputError, match="check_every"):
            infimum.prepare(smooth(), X0, solver=GD, check_every=bad)
        with pytest.raises(InputError, match="steps"):
            infimum.prepare(smooth(), X0, solver=GD).advance(bad)
        if bad is not None:
            with pytest.raises(InputError, match="value_every"):
                infimum.prepare(smooth(), X0, solver=GD, value_every=bad)
        if bad != 0 or isinstance(bad, bool):
            for name in ("max_rows", "repetition"):
                with pytest.raises(InputError, match=name):
                    infimum.prepare(smooth(), X0, solver=GD, **{name: bad})

    @pytest.mark.parametrize("bad", [-1.0, math.nan, "1", None, True])
    def test_bad_bounds_are_refused(self, bad: Any) -> None:
        for name in ("feasibility_tol", "divergence"):
            with pytest.raises(InputError, match=rf"{name}=.*expected a number >= 0"):
                infimum.prepare(smooth(), X0, solver=GD, **{name: bad})


class TestObservers:
    def run(self, *observers: Observer, stopping: str = "max_iter(10)") -> infimum.Result:
        run = infimum.prepare(smooth(), X0, solver=GD, stopping=stopping, seed=0)
        run.monitor.observers = observers
        return run.solve()

    def test_cadence(self) -> None:
        told: dict[int, list[int]] = {1: [], 3: [], 20: []}
        self.run(*(Observer(lambda p, every=every: told[every].append(p.iteration), every) for every in told))
        assert told == {1: [*range(11)], 3: [0, 3, 6, 9], 20: [0]}

    @pytest.mark.parametrize("how", ["true", "raise"])
    def test_they_may_ask_for_a_stop(self, how: str) -> None:
        others: list[int] = []

        def ask(progress: Any) -> bool:
            if progress.iteration == 4:
                if how == "raise":
                    raise StopIteration
                return True
            return False

        result = self.run(Observer(ask), Observer(lambda p: others.append(p.iteration)))
        assert result.status is Status.interrupted and result.iterations == 4
        assert "callback asked to stop" in result.message
        assert others == [0, 1, 2, 3, 4]

    def test_only_true_itself_stops(self) -> None:
        assert self.run(Observer(lambda p: 1), Observer(lambda p: "yes")).iterations == 10  # type: ignore[arg-type]

    def test_an_interrupt_wins_and_the_rules_that_fired_are_kept(self) -> None:
        result = self.run(Observer(lambda p: p.iteration == 10))
        assert result.status is Status.interrupted
        assert [one.rule for one in result.fired] == ["max_iter(10)"]

    def test_a_failing_observer_ends_the_run_after_a_complete_step(self) -> None:
        def burst(progress: Any) -> None:
            if progress.iteration == 5:
                raise RuntimeError("no space left")

        run = infimum.prepare(smooth(), X0, solver=GD, stopping="max_iter(10)", callback=burst, seed=0)
        result = run.solve()
        assert result.status is Status.failed and result.message == "RuntimeError in iteration 5: no space left"
        assert result.iterations == 5 and isinstance(result.error, RuntimeError)
        other = infimum.solve(smooth(), X0, solver=GD, stopping="max_iter(5)", seed=0)
        np.testing.assert_array_equal(result.x, other.x)

    @pytest.mark.parametrize(("call", "every"), [(print, 0), (print, -2), (print, 1.5), (print, True), ("print", 1)])
    def test_bad_ones_are_refused(self, call: Any, every: Any) -> None:
        with pytest.raises(InputError, match="observer"):
            Observer(call, every)


class TestFailures:
    def problem(self, at: int, error: type[BaseException] = ZeroDivisionError) -> Composite:
        count = 0

        def both(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal count
            count += 1
            if count == at:
                raise error("broken")
            return float(x @ x), 2 * x

        return Composite(Function(value_and_gradient=both, lipschitz=2.0))

    def test_at_iteration_0_it_is_raised(self) -> None:
        run = infimum.prepare(self.problem(1), X0, solver=GD, seed=0)
        with pytest.raises(ZeroDivisionError, match="broken"):
            run.solve()
        # The next try starts afresh.
        assert run.solve().status is Status.converged

    def test_later_the_run_is_failed_and_keeps_what_it_had(self) -> None:
        result = infimum.solve(self.problem(5), X0, solver={"use": GD, "step": 0.1}, stopping="max_iter(9)", seed=0)
        assert result.status is Status.failed and not result.success
        assert result.message == "ZeroDivisionError in iteration 4: broken"
        assert isinstance(result.error, ZeroDivisionError)
        assert result.iterations == 3 and result.best_iteration == 3
        np.testing.assert_allclose(result.x, 0.8**3 * X0)

    def test_a_mistake_that_shows_late_loses_no_result(self) -> None:
        """An error of our own is raised while there is nothing to keep, else it ends the run."""
        with pytest.raises(InputError, match="broken"):
            infimum.solve(self.problem(2, InputError), X0, solver=GD, seed=0)
        late = self.problem(5, InputError)
        result = infimum.solve(late, X0, solver={"use": GD, "step": 0.1}, stopping="max_iter(9)", seed=0)
        assert result.status is Status.failed and result.message == "in iteration 4: broken"
        assert result.iterations == 3 and isinstance(result.error, InputError)
        np.testing.assert_allclose(result.best_x, 0.8**3 * X0)
        assert result.evaluations["objective"] == {"value": 5, "gradient": 5}

    def test_inside_a_chunk_the_iteration_is_still_named(self) -> None:
        result = infimum.solve(
            self.problem(9), X0, solver={"use": GD, "step": 0.1}, stopping="max_iter(20)", check_every=5, seed=0
        )
        assert result.status is Status.failed and "in iteration 8" in result.message
        np.testing.assert_allclose(result.x, 0.8**5 * X0)
        assert result.iterations == 5

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_these_pass(self, error: type[BaseException]) -> None:
        with pytest.raises(error):
            infimum.solve(self.problem(5, error), X0, solver=GD, stopping="max_iter(9)", seed=0)

    def test_stopiteration_of_a_function_is_a_failure(self) -> None:
        result = infimum.solve(
            self.problem(5, StopIteration), X0, solver={"use": GD, "step": 0.1}, stopping="max_iter(9)", seed=0
        )
        assert result.status is Status.failed and result.iterations == 3

    def test_a_change_of_shape_in_the_first_step_is_named_before_it_does_harm(self) -> None:
        problem = Composite(Function(lambda x: float(x @ x), prox=lambda v, t: np.ones((5, 1)) * v, shape=(5,)))
        with pytest.raises(InputError, match=r"returned shape \(5, 5\) for x of \(5,\)"):
            infimum.solve(problem, X0, solver=DR, stopping="max_iter(9)", seed=0)


class TestNeverConvergedBySmallStepsAlone:
    RULE = "grad_norm(1e-8) | rel_change(1e-10, patience=3) | max_iter(400)"

    def solve(self, value: Any, gradient: Any, step: float, n: int = 3, **options: Any) -> infimum.Result:
        problem = Composite(Function(value, gradient=gradient))
        return infimum.solve(
            problem, np.ones(n), solver={"use": GD, "step": step}, **{"stopping": self.RULE, "seed": 0, **options}
        )

    def test_a_linear_function(self) -> None:
        c = np.array([1.0, -2.0, 0.5])
        assert self.solve(lambda x: float(c @ x), lambda x: c, 1.0).status is Status.limit
        tiny = self.solve(lambda x: float(c @ x), lambda x: c, 1e-14)
        assert tiny.status is Status.stalled and not tiny.success
        far = self.solve(lambda x: float(c @ x), lambda x: c, 1e14)
        assert far.status is Status.diverged and "passed the bound" in far.message

    def test_minus_x_squared(self) -> None:
        result = self.solve(lambda x: -float(x @ x), lambda x: -2 * x, 0.5)
        assert result.status is Status.diverged and "value = " in result.message
        assert np.isfinite(result.x).all() and np.isfinite(result.best_value)
        assert result.iterations < 60

    def test_x_passes_the_bound_where_the_value_does_not(self) -> None:
        result = self.solve(lambda x: -math.log1p(float(x @ x)), lambda x: -x, 1.0)
        assert result.status is Status.diverged and "||x||" in result.message

    def test_exp_of_minus_x(self) -> None:
        result = self.solve(lambda x: float(np.exp(-x).sum()), lambda x: -np.exp(-x), 1.0)
        assert result.status is Status.limit
        slow = self.solve(lambda x: float(np.exp(-x).sum()), lambda x: -np.exp(-x), 1e-12)
        assert slow.status is Status.stalled

    def test_separable_logistic_regression_without_penalty(self) -> None:
        data = np.array([[1.0, 0.2], [2.0, -0.1], [-1.0, 0.1], [-1.5, 0.3]])
        problem = Composite(Logistic(data, np.array([1, 1, -1, -1])))
        result = infimum.solve(problem, np.zeros(2), solver=GD, stopping=self.RULE, seed=0)
        assert result.status is Status.limit
        assert np.linalg.norm(result.x) > 1

    def test_an_empty_intersection_of_two_sets(self) -> None:
        rule = "residual(1e-8) | rel_change(1e-12, patience=5) | max_iter(300)"
        result = infimum.solve(
            two_sets_distance(1.0), np.zeros(3), solver={"use": DR, "step": 1.0}, stopping=rule, seed=0
        )
        assert result.status in (Status.stalled, Status.limit)
        assert result.metrics["residual"] == pytest.approx(math.sqrt(3.0))
        touching = infimum.solve(
            two_sets_distance(0.0), np.ones(3), solver={"use": DR, "step": 1.0}, stopping=rule, seed=0
        )
        assert touching.status is Status.converged

    def test_a_dual_unbounded_linear_program(self) -> None:
        # min x_1 + x_2, x >= 0, x_1 + x_2 = -1: infeasible, so its dual is unbounded.
        ones = np.ones(2)
        plane = Function(
            lambda x: 0.0 if abs(ones @ x + 1) < 1e-9 else math.inf,
            prox=lambda v, t: (v - t * ones) - (ones @ (v - t * ones) + 1) / 2 * ones,
            extended=True,
        )
        problem = Composite({"orthant": indicator(0.0, np.inf), "plane": plane})
        rule = "residual(1e-8) | rel_change(1e-12, patience=5) | max_iter(300)"
        result = infimum.solve(problem, np.ones(2), solver={"use": DR, "step": 1.0}, stopping=rule, seed=0)
        assert result.status in (Status.stalled, Status.limit) and not result.success

    def test_the_bound_can_be_set(self) -> None:
        result = self.solve(lambda x: -float(x @ x), lambda x: -2 * x, 0.5, divergence=100.0)
        assert result.status is Status.diverged and result.iterations == 4
        assert self.solve(lambda x: 0.0, lambda x: -x, 1.0, divergence=math.inf).status is Status.limit

    @pytest.mark.parametrize("size", [1e120, 1e160, 1e200, 1e300])
    def test_a_leap_beyond_the_square_root_of_the_largest_float_is_divergence(self, size: float) -> None:
        result = self.solve(lambda x: 0.0, lambda x: np.full(3, -size), 1.0)
        assert result.status is Status.diverged and "passed the bound" in result.message

    @pytest.mark.parametrize("shape", [(3,), (2, 2)])
    def test_a_huge_start_is_no_divergence(self, shape: tuple[int, ...]) -> None:
        problem = Composite(Function(lambda x: 0.0, gradient=lambda x: x))
        result = infimum.solve(
            problem, np.full(shape, 1e200), solver={"use": GD, "step": 0.1}, stopping="max_iter(5)", seed=0
        )
        assert result.status is Status.limit

    def test_all_rules_that_fired_are_reported_beside_a_divergence(self) -> None:
        result = self.solve(lambda x: -float(x @ x), lambda x: -2 * x, 0.5, divergence=100.0, stopping="max_iter(4)")
        assert result.status is Status.diverged
        assert [one.rule for one in result.fired] == ["max_iter(4)"]


class Band(Constraint):
    """0.5 <= sum x; violated below."""

    capabilities = frozenset({"violation"})

    def violation(self, x: Any) -> float:
        return max(0.0, 0.5 - float(x.sum()))


@dataclass(frozen=True)
class Walk(Solver):
    """Visits given points; knows the value at each step when `knows`."""

    points: tuple[tuple[float, ...], ...]
    knows: bool = True

    metrics: ClassVar[dict[str, Metric]] = {"value": Metric(lambda state: state["value"])}

    def slots(self) -> tuple[Slot, ...]:
        return (
            Slot("f", needs=("value",), at_least=1),
            Slot("sets", needs=("violation",), each=True, empty=None),
        )

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "k": 0, "value": parts.f.value(start)}

    def step(self, parts: Any, state: Any) -> Any:
        x = np.asarray(self.points[state["k"] % len(self.points)])
        return {"x": x, "k": state["k"] + 1, "value": parts.f.value(x) if self.knows else None}


class TestBest:
    POINTS = ((0.3, 0.0), (0.6, 0.0), (0.2, 0.25), (0.0, 0.1), (2.0, 0.0), (0.1, 0.1))

    def solve(self, points: Any = POINTS, stopping: str = "max_iter(6)", **options: Any) -> infimum.Result:
        problem = Composite(
            {"f": Function(lambda x: float(x[0] ** 2 + x[1] ** 2))},
            constraints=[Band()],
            sense=options.pop("sense", "min"),
        )
        return infimum.solve(
            problem, np.zeros(2), solver=Walk(tuple(points)), stopping=stopping, seed=0, value_every=1, **options
        )

    def test_smallest_value_among_feasible_points(self) -> None:
        result = self.solve()
        np.testing.assert_array_equal(result.best_x, [0.6, 0.0])
        assert result.best_value == pytest.approx(0.36) and result.best_iteration == 2
        assert result.violation == pytest.approx(0.3)

    def test_least_violation_while_nothing_is_feasible(self) -> None:
        result = self.solve(points=((0.1, 0.0), (0.3, 0.1), (0.0, 0.0)), stopping="max_iter(3)")
        np.testing.assert_array_equal(result.best_x, [0.3, 0.1])

    def test_feasibility_tol(self) -> None:
        result = self.solve(feasibility_tol=0.06)
        np.testing.assert_array_equal(result.best_x, [0.2, 0.25])
        assert result.best_value == pytest.approx(0.1025)

    def test_points_whose_violation_is_not_known_are_not_taken_for_feasible(self) -> None:
        problem = Composite({"f": Function(lambda x: float(x @ x))}, constraints=[Band()])
        result = infimum.solve(
            problem, np.array([2.0, 0.0]), solver=Walk(((0.0, 0.0),) * 10), stopping="max_iter(9)", seed=0
        )
        # Violation is taken at 0 and at the end; the points between, of value 0, would all look better.
        np.testing.assert_array_equal(result.best_x, [2.0, 0.0])
        assert result.best_iteration == 0

    def test_maximize(self) -> None:
        result = self.solve(sense="max")
        np.testing.assert_array_equal(result.best_x, [2.0, 0.0])
        assert result.best_value == pytest.approx(4.0)
        assert result.trace["value"].max() == pytest.approx(4.0) and result.value == pytest.approx(0.02)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=12))
    def test_law(self, points: list[tuple[float, float]]) -> None:
        result = self.solve(points=points, stopping=f"max_iter({len(points)})")
        seen = [np.zeros(2), *map(np.asarray, points)]
        lacking = [max(0.0, 0.5 - float(x.sum())) for x in seen]
        violations = [0.0 if one <= 1e-8 else one for one in lacking]
        values = [float(x @ x) for x, one in zip(seen, violations, strict=True) if one == min(violations)]
        assert result.best_value == pytest.approx(min(values))
        row = result.trace["iteration"].tolist().index(result.best_iteration)
        assert result.trace["value"][row] == result.best_value

    def test_the_best_stays_when_later_points_are_worse(self) -> None:
        noisy = Composite(Function(lambda x: float(x @ x), gradient=lambda x: -2 * x))
        result = infimum.solve(noisy, X0, solver={"use": GD, "step": 0.1}, stopping="max_iter(9)", seed=0)
        np.testing.assert_array_equal(result.best_x, X0)
        assert result.best_iteration == 0 and result.best_value == pytest.approx(float(X0 @ X0))
        assert result.value > result.best_value


class TestMaximize:
    def test_everything_is_in_the_users_sense(self) -> None:
        hill = Function(lambda x: 5.0 - float(x @ x), gradient=lambda x: -2 * x)
        for watch in ({"stopping": "target(4.99) | max_iter(100)"}, {"stopping": "max_iter(30)"}):
            result = infimum.solve(hill, X0, maximize=True, solver={"use": GD, "step": 0.1}, seed=0, **watch)
            values = result.trace["value"]
            assert np.all(np.diff(values) > 0) and result.value == values[-1] == result.best_value
            assert result.fun == result.value <= 5.0
            np.testing.assert_allclose(hill.value(result.x), result.value)
        first = infimum.solve(
            hill, X0, maximize=True, solver={"use": GD, "step": 0.1}, stopping="target(4.99) | max_iter(100)", seed=0
        )
        assert first.status is Status.target_reached and first.value >= 4.99

    def test_without_bound_it_diverges_upwards(self) -> None:
        result = infimum.solve(
            Function(lambda x: float(x @ x), gradient=lambda x: 2 * x),
            X0,
            maximize=True,
            solver={"use": GD, "step": 0.5},
            stopping="max_iter(500)",
            seed=0,
        )
        assert result.status is Status.diverged and "value = " in result.message and "-" not in result.message[:10]
        assert result.best_value > 0

    def test_a_monitored_value(self) -> None:
        problem = Composite(
            {"f": Function(lambda x: 1.0 - float(x @ x), gradient=lambda x: -2 * x, lipschitz=2.0)}, sense="max"
        )
        result = infimum.solve(problem, X0, solver=PG, stopping="max_iter(50)", value_every=1, seed=0)
        assert result.value == pytest.approx(1.0) and result.value == pytest.approx(problem.value(result.x))


class TestSeeds:
    def test_same_seed_same_trace(self) -> None:
        def make(seed: int) -> infimum.Result:
            return infimum.solve(lasso(), X0, solver=PG, stopping="max_iter(20)", value_every=1, seed=seed)

        one, two = make(5), make(5)
        for name in one.trace:
            if name != "time":
                np.testing.assert_array_equal(one.trace[name], two.trace[name])
        assert one.seed == 5

    def test_a_drawn_seed_is_stored_and_repeats_the_run(self) -> None:
        first = infimum.solve(smooth(), X0, solver=GD, stopping="max_iter(3)")
        assert isinstance(first.seed, int) and 0 <= first.seed < 2**32 and f"seed            {first.seed}" in str(first)
        assert infimum.solve(smooth(), X0, solver=GD, stopping="max_iter(3)", seed=first.seed).seed == first.seed

    @pytest.mark.parametrize("bad", [-1, 1.5, "7", True])
    def test_bad_seeds_are_refused(self, bad: Any) -> None:
        with pytest.raises(InputError, match="seed"):
            infimum.prepare(smooth(), X0, solver=GD, seed=bad)

    def test_no_global_generator_is_read_or_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        torch = pytest.importorskip("torch")

        def state() -> tuple[Any, ...]:
            return random.getstate(), str(np.random.get_state()), bytes(torch.get_rng_state().numpy())

        before = state()
        results = []
        for global_seed in (1, 2):
            random.seed(global_seed)
            np.random.seed(global_seed)
            torch.manual_seed(global_seed)
            here = state()
            results.append(
                [
                    infimum.solve(make(), X0, solver=solver, oracles=oracles, stopping="max_iter(9)", seed=0).x
                    for make, solver, oracles in CASES.values()
                ]
            )
            results[-1].append(infimum.solve(lasso(), X0, solver=PG, stopping="max_iter(2)").x)
            assert state() == here
        for one, other in zip(*results, strict=True):
            np.testing.assert_array_equal(one, other)
        assert before is not None


class TestWarmStartAndRepeats:
    def test_solve_twice_is_the_same_result(self) -> None:
        run = infimum.prepare(smooth(), X0, solver=GD, stopping="max_iter(7)", seed=0)
        first, second = run.solve(), run.solve()
        np.testing.assert_array_equal(first.x, second.x)
        assert first.iterations == second.iterations == 7 and first.evaluations == second.evaluations
        assert first.monitored == second.monitored and first.message == second.message
        for name in first.trace:
            np.testing.assert_array_equal(first.trace[name], second.trace[name])

    def test_solve_twice_after_a_broken_start(self) -> None:
        run = infimum.prepare(
            Composite(Function(lambda x: math.nan, gradient=lambda x: x)), X0, solver={"use": GD, "step": 0.1}, seed=0
        )
        assert [run.solve().evaluations["objective"]["value"] for _ in range(2)] == [1, 1]

    def test_from_a_result(self) -> None:
        first = infimum.solve(smooth(), X0, solver=GD, stopping="max_iter(40)", seed=0)
        second = infimum.solve(smooth(), first, solver=GD, stopping="max_iter(40)", seed=0)
        whole = infimum.solve(smooth(), X0, solver=GD, stopping="max_iter(80)", seed=0)
        np.testing.assert_array_equal(second.x, whole.x)
        assert second.trace["value"][0] == first.value

    def test_a_warm_start_is_the_best_point(self) -> None:
        up = Composite(Function(lambda x: float(x @ x), gradient=lambda x: -2 * x))
        options: dict[str, Any] = {"solver": {"use": GD, "step": 0.1}, "seed": 0}
        first = infimum.solve(up, X0, stopping="max_iter(3)", **options)
        second = infimum.solve(up, first, stopping="max_iter(0)", **options)
        np.testing.assert_array_equal(second.x, X0)

    def test_advance_then_solve_is_one_run(self) -> None:
        whole = infimum.solve(lasso(), X0, solver=PG, stopping="max_iter(20)", seed=0)
        run = infimum.prepare(lasso(), X0, solver=PG, stopping="max_iter(20)", seed=0)
        assert run.advance(5) is None and run.monitor.iteration == 5
        result = run.solve()
        np.testing.assert_array_equal(result.x, whole.x)
        assert run.advance(5) is run.monitor.stop

    def test_hooks_run_once_around_a_solve(self) -> None:
        run = infimum.prepare(smooth(), X0, solver=GD, stopping="max_iter(2)", seed=0)
        told: list[Any] = []
        run.started.append(lambda one: told.append(one))
        run.finished.append(lambda one, result: told.append(result))
        run.closing.append(lambda: told.append("closed"))
        result = run.solve()
        assert told == [run, "closed", result]


class TestWhatItSays:
    def test_record_takes_known_names_only(self) -> None:
        result = infimum.solve(smooth(), X0, solver=GD, stopping="max_iter(3)", record="grad_norm", seed=0)
        assert list(result.trace) == ["iteration", "time", "value", "grad_norm", "calls.gradient", "calls.value"]
        with pytest.raises(InputError, match="no metric 'gradnorm'; did you mean 'grad_norm'"):
            infimum.prepare(smooth(), X0, solver=GD, record=["gradnorm"])

    def test_the_plan_says_where_values_come_from(self) -> None:
        run = infimum.prepare(lasso(), X0, solver=PG, stopping="max_iter(3)", seed=11)
        text = run.describe()
        assert "value: from the terms, every 10 iterations, counted as monitor" in text
        assert "stopping max_iter(3)" in text and "seed 11" in text
        ruled = infimum.prepare(lasso(), X0, solver=PG, stopping="target(0) | max_iter(3)", seed=11)
        assert "at every check (a rule reads it)" in ruled.describe()
        assert np.isfinite(ruled.solve().trace["value"]).all()

    def test_a_rule_on_a_metric_nobody_supplies_is_refused_before_the_run(self) -> None:
        with pytest.raises(InputError, match=r"'residual', which splitting.gradient_descent does not supply"):
            infimum.prepare(smooth(), X0, solver=GD, stopping="residual(1)")

    def test_repr_of_a_run(self) -> None:
        run = infimum.prepare(smooth(), X0, solver=GD, stopping="max_iter(3)", seed=0)
        assert "iteration -1" in repr(run)
        run.advance(2)
        assert repr(run) == "Run(splitting.gradient_descent on Composite (5 variables, float64), iteration 2)"

    def test_counts_in_the_trace(self) -> None:
        result = infimum.solve(
            smooth(),
            X0,
            solver={"use": GD, "step": 0.01},
            oracles={"loss": "zeroth.forward_difference"},
            stopping="max_iter(3)",
            seed=0,
        )
        assert result.trace["calls.value"].tolist() == [6, 12, 18, 24]

    def test_gap_uses_the_reference(self) -> None:
        best = infimum.solve(smooth(), X0, solver=GD, stopping="grad_norm(1e-10) | max_iter(9999)", seed=0).best_value
        result = infimum.solve(smooth(reference=best), X0, solver=GD, stopping="gap(1e-6) | max_iter(5000)", seed=0)
        assert result.status is Status.converged and result.metrics["gap"] <= 1e-6

    def test_a_merit_in_float32_or_torch_is_a_number_in_the_result(self) -> None:
        for x0 in (X0.astype(np.float32), pytest.importorskip("torch").ones(5)):
            problem = Composite(Function(lambda x: (x * x).sum(), gradient=lambda x: 2 * x, lipschitz=2.0))
            result = infimum.solve(problem, x0, solver={"use": GD, "step": 0.1}, stopping="max_iter(4)", seed=0)
            assert type(result.value) is type(result.best_value) is float
            assert result.value == pytest.approx(result.trace["value"][-1])
            assert result.x.dtype == x0.dtype

    def test_constraints_of_the_box_are_reported(self) -> None:
        problem = Composite({"loss": LeastSquares(A, B)}, constraints=[Box(lower=0.0)])
        result = infimum.solve(problem, X0, solver=PG, stopping=max_iter(50), seed=0)
        assert result.violation == 0.0 and result.best_x.min() >= 0
        assert result.trace["violation"][0] == pytest.approx(np.linalg.norm(np.minimum(X0, 0)))

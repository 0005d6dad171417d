"""NaN and inf from anywhere: the run ends within one check, keeps the best finite point and names the source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import infimum
from infimum import Composite, Constraint, Function, Metric, Oracle, Slot, Solver, Status
from infimum.functions import L1, LeastSquares

X0 = np.linspace(-1.0, 1.0, 4)
GD: dict[str, Any] = {"use": "splitting.gradient_descent", "step": 0.1}
PG: dict[str, Any] = {"use": "splitting.proximal_gradient", "step": 0.1}
DR: dict[str, Any] = {"use": "splitting.douglas_rachford", "step": 0.5}
STOP = "max_iter(100)"


class Turns:
    """`x @ x` with capabilities that go bad after `good` evaluations, each counted by itself."""

    def __init__(self, bad: float = math.nan, good: int = 30, *, entry: bool = False) -> None:
        self.bad, self.good, self.entry = bad, good, entry
        self.counts: dict[str, int] = {}

    def spoiled(self, what: str, out: Any) -> Any:
        self.counts[what] = self.counts.get(what, 0) + 1
        if self.counts[what] <= self.good:
            return out
        if isinstance(out, float):
            return self.bad
        out = np.array(out)
        out[-1 if self.entry else slice(None)] = self.bad
        return out

    def value(self, x: np.ndarray) -> float:
        return self.spoiled("value", float(x @ x))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.spoiled("gradient", 2 * x)

    def prox(self, v: np.ndarray, t: float) -> np.ndarray:
        return self.spoiled("prox", v / (1 + 2 * t))


def plain(x: np.ndarray) -> float:
    return float(x @ x)


def check(result: infimum.Result, *words: str, near: int) -> None:
    """`near` is the last iteration whose point is finite."""
    assert result.status is Status.nonfinite and not result.success
    for word in words:
        assert word in result.message, result.message
    assert np.isfinite(result.x).all() and np.isfinite(result.best_x).all() and np.isfinite(result.best_value)
    assert near <= result.iterations <= near + 1
    assert result.best_value <= plain(X0)
    assert plain(result.best_x) == pytest.approx(result.best_value)


class TestWhereItComesFrom:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_value(self, bad: float) -> None:
        f = Turns(bad)
        problem = Composite({"loss": Function(f.value, gradient=lambda x: 2 * x)})
        result = infimum.solve(problem, X0, solver=GD, stopping=STOP, seed=0)
        # Evaluation 1 is the start, so evaluation 31 is in iteration 30.
        kind = "NaN" if math.isnan(bad) else str(bad)
        check(result, f"value of term 'loss' returned {kind} at its evaluation 31", "in iteration 30", near=29)
        assert result.iterations == 29 and result.best_iteration == 29
        assert f.counts["value"] == 31

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    @pytest.mark.parametrize("entry", [True, False])
    def test_gradient_while_the_value_is_finite(self, bad: float, entry: bool) -> None:
        f = Turns(bad, entry=entry)
        problem = Composite({"loss": Function(plain, gradient=f.gradient)})
        result = infimum.solve(problem, X0, solver=GD, stopping=STOP, seed=0)
        check(result, "gradient of term 'loss' returned NaN or inf at its evaluation 31", "iteration 31", near=30)
        assert f.counts["gradient"] <= 32

    @pytest.mark.parametrize("what", ["value", "gradient"])
    def test_value_and_gradient(self, what: str) -> None:
        f = Turns()
        both = {
            "value": lambda x: (f.value(x), 2 * x),
            "gradient": lambda x: (plain(x), f.gradient(x)),
        }[what]
        result = infimum.solve(
            Composite({"loss": Function(value_and_gradient=both)}), X0, solver=GD, stopping=STOP, seed=0
        )
        named = "value of term 'loss' returned NaN" if what == "value" else "value_and_gradient of term 'loss' returned"
        check(result, named, "at its evaluation 31", near=29 if what == "value" else 30)

    def test_gradient_in_the_middle_of_a_sum(self) -> None:
        f = Turns()
        problem = Composite(
            {
                "first": Function(plain, gradient=lambda x: 2 * x, lipschitz=2.0),
                "second": Function(plain, gradient=f.gradient, lipschitz=2.0),
                "third": 0.1 * L1(),
            }
        )
        result = infimum.solve(problem, X0, solver=PG, stopping=STOP, seed=0)
        assert result.status is Status.nonfinite
        assert "gradient of term 'second' returned NaN or inf at its evaluation 31" in result.message
        assert "iteration 31" in result.message and result.iterations <= 31 and np.isfinite(result.x).all()

    @pytest.mark.parametrize("bad", [math.nan, math.inf])
    @pytest.mark.parametrize("solver", [PG, {**PG, "acceleration": True}])
    def test_prox(self, bad: float, solver: Any) -> None:
        f = Turns(bad)
        problem = Composite({"loss": LeastSquares(np.eye(4), X0), "penalty": Function(plain, prox=f.prox)})
        result = infimum.solve(problem, X0, solver=solver, stopping=STOP, value_every=1, seed=0)
        assert result.status is Status.nonfinite and result.iterations in (30, 31)
        assert "prox of term 'penalty' returned NaN or inf at its evaluation 31" in result.message
        assert np.isfinite(result.x).all() and np.isfinite(result.best_value)

    @pytest.mark.parametrize("which", ["first", "second"])
    def test_either_prox_of_douglas_rachford(self, which: str) -> None:
        """The second prox leaves x finite; its NaN comes back through the first one, which must not be blamed."""
        f = Turns()
        good = Function(plain, prox=lambda v, t: v / (1 + 2 * t))
        terms = {"first": good, "second": good, which: Function(plain, prox=f.prox)}
        result = infimum.solve(Composite(terms), X0, solver=DR, stopping=STOP, seed=0)
        assert result.status is Status.nonfinite
        assert f"prox of term '{which}' returned NaN or inf at its evaluation 31" in result.message
        assert np.isfinite(result.x).all() and result.iterations <= 32

    def test_an_oracle_s_queries(self) -> None:
        f = Turns(good=30)
        problem = Composite({"loss": Function(f.value)})
        result = infimum.solve(
            problem, X0, solver=GD, oracles={"loss": "zeroth.forward_difference"}, stopping=STOP, seed=0
        )
        # Five values a gradient: evaluation 31 is the first of iteration 6.
        asked = "value of term 'loss' (under oracle zeroth.forward_difference)"
        check(result, f"{asked} returned NaN at its evaluation 31", "in iteration 6", near=5)

    def test_an_oracle_s_own_nan(self) -> None:
        @dataclass(frozen=True)
        class Broken(Oracle):
            needs: ClassVar[tuple[str, ...]] = ("value",)
            supplies: ClassVar[tuple[str, ...]] = ("gradient",)

            def bind(self, function: Any, rng: np.random.Generator) -> Any:
                return Turns()

        problem = Composite({"loss": Function(plain)})
        for key in ("loss", "slot:smooth"):
            result = infimum.solve(problem, X0, solver=GD, oracles={key: Broken()}, stopping=STOP, seed=0)
            where = "gradient of slot 'smooth' (under oracle Broken) returned NaN or inf at its evaluation 31"
            assert result.status is Status.nonfinite and where in result.message and "iteration 31" in result.message
            assert np.isfinite(result.x).all() and result.iterations <= 32

    def test_a_value_that_only_the_monitor_asks_for(self) -> None:
        f = Turns(good=3)
        problem = Composite({"loss": LeastSquares(np.eye(4), X0), "odd": Function(f.value, prox=lambda v, t: v)})
        result = infimum.solve(problem, np.zeros(4), solver=PG, stopping=STOP, value_every=1, seed=0)
        assert result.status is Status.nonfinite and result.best_iteration == 2
        assert "value of term 'odd' returned NaN, in iteration 3" in result.message
        assert np.isfinite(result.x).all() and np.isfinite(result.best_value)

    def test_a_value_that_is_asked_for_at_the_end_only(self) -> None:
        f = Turns(good=1)
        problem = Composite({"loss": LeastSquares(np.eye(4), X0), "odd": Function(f.value, prox=lambda v, t: v)})
        result = infimum.solve(problem, np.zeros(4), solver=PG, stopping="max_iter(7)", seed=0)
        assert result.status is Status.nonfinite and "at the last point (iteration 7)" in result.message
        assert [one.rule for one in result.fired] == ["max_iter(7)"]
        assert result.value is None and result.best_iteration == 0 and np.isfinite(result.x).all()

    def test_a_set_s_violation(self) -> None:
        class Odd(Constraint):
            capabilities = frozenset({"violation", "project"})

            def violation(self, x: Any) -> float:
                return math.nan

            def project(self, x: Any) -> Any:
                return x

        problem = Composite({"loss": LeastSquares(np.eye(4), X0)}, constraints={"odd": Odd()})
        result = infimum.solve(problem, np.zeros(4), solver=PG, stopping="max_iter(7)", seed=0)
        assert result.status is Status.nonfinite and "violation of term 'odd' returned NaN" in result.message

    def test_in_float32_and_torch(self) -> None:
        torch = pytest.importorskip("torch")
        for x0 in (X0.astype(np.float32), torch.tensor(X0)):
            count = 0

            def value(x: Any) -> Any:
                nonlocal count
                count += 1
                return (x * x).sum() * (math.nan if count > 30 else 1.0)

            problem = Composite({"loss": Function(value, gradient=lambda x: 2 * x)})
            result = infimum.solve(problem, x0, solver=GD, stopping=STOP, seed=0)
            assert result.status is Status.nonfinite and "value of term 'loss'" in result.message, result.message
            assert "evaluation 31" in result.message and result.iterations in (29, 30)
            assert result.best_iteration == 29 and math.isfinite(result.best_value)

    def test_a_nan_in_a_torch_gradient(self) -> None:
        torch = pytest.importorskip("torch")
        count = 0

        def gradient(x: Any) -> Any:
            nonlocal count
            count += 1
            return 2 * x * (math.nan if count > 30 else 1.0)

        problem = Composite({"loss": Function(lambda x: x.dot(x), gradient=gradient)})
        result = infimum.solve(problem, torch.tensor(X0), solver=GD, stopping=STOP, seed=0)
        assert result.status is Status.nonfinite
        assert "gradient of term 'loss' returned NaN or inf at its evaluation 31" in result.message
        assert bool(torch.isfinite(result.x).all())


class TestAtTheStart:
    @pytest.mark.parametrize(
        "f",
        [
            Function(lambda x: math.nan, gradient=lambda x: 2 * x),
            Function(value_and_gradient=lambda x: (math.nan, 2 * x)),
            Function(lambda x: -math.inf, gradient=lambda x: 2 * x),
        ],
    )
    def test_value(self, f: Function) -> None:
        result = infimum.solve(Composite({"f": f}), X0, solver=GD, stopping=STOP, seed=0)
        assert result.status is Status.nonfinite and result.iterations == 0
        assert "value of term 'f'" in result.message and "at iteration 0 (the start)" in result.message
        np.testing.assert_array_equal(result.x, X0)
        assert result.best_x is None and result.value is None and result.best_value is None
        assert "nonfinite" in str(result)

    def test_value_for_the_record(self) -> None:
        problem = Composite({"f": Function(lambda x: math.nan, prox=lambda v, t: v)})
        result = infimum.solve(problem, X0, solver=DR, stopping=STOP, seed=0)
        assert result.status is Status.nonfinite and "value of term 'f' returned NaN, at iteration 0" in result.message

    def test_gradient(self) -> None:
        problem = Composite({"f": Function(plain, gradient=lambda x: x * math.nan)})
        result = infimum.solve(problem, X0, solver=GD, stopping=STOP, seed=0)
        assert result.status is Status.nonfinite and result.iterations <= 1
        assert "gradient of term 'f' returned NaN or inf at its evaluation 1" in result.message
        np.testing.assert_array_equal(result.x, X0)
        np.testing.assert_array_equal(result.best_x, X0)


class TestWhatIsNoFault:
    def test_infinity_of_an_extended_valued_term(self) -> None:
        inside = lambda x: bool(np.all(x >= 0))  # noqa: E731
        indicator = Function(
            lambda x: 0.0 if inside(x) else math.inf, prox=lambda v, t: np.maximum(v, 0), extended=True, convex=True
        )
        problem = Composite({"loss": LeastSquares(np.eye(4), X0, reduction="sum"), "set": indicator})
        result = infimum.solve(problem, X0, solver={**PG, "step": 0.5}, stopping="max_iter(60)", value_every=1, seed=0)
        assert result.status is Status.limit
        assert result.trace["value"][0] == math.inf and np.isfinite(result.trace["value"][1:]).all()
        assert np.isfinite(result.best_value) and result.best_iteration > 0

    def test_the_same_term_without_the_declaration(self) -> None:
        indicator = Function(lambda x: 0.0 if np.all(x >= 0) else math.inf, prox=lambda v, t: np.maximum(v, 0))
        problem = Composite({"loss": LeastSquares(np.eye(4), X0), "set": indicator})
        result = infimum.solve(problem, X0, solver=PG, stopping="max_iter(60)", value_every=1, seed=0)
        assert result.status is Status.nonfinite and "value of term 'set' returned inf" in result.message

    def test_nan_of_an_extended_valued_term_is_one(self) -> None:
        f = Function(lambda x: math.nan, gradient=lambda x: 2 * x, extended=True)
        assert infimum.solve(Composite(f), X0, solver=GD, stopping=STOP, seed=0).status is Status.nonfinite

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_squares_that_overflow(self, dtype: Any) -> None:
        big = dtype(1e30 if dtype is np.float32 else 1e200)
        f = Function(lambda x: float(np.abs(x).max()), gradient=lambda x: x * 0)
        result = infimum.solve(
            Composite(f), np.full(4, big, dtype), solver=GD, stopping="max_iter(5)", divergence=math.inf, seed=0
        )
        assert result.status is Status.limit

    def test_user_warnings_of_numpy_are_not_needed_to_notice(self) -> None:
        """Overflow makes inf, inf - inf makes NaN: no warning gets out, the status says it."""
        f = Function(lambda x: float(np.exp(x).sum() - np.exp(x).sum()), gradient=lambda x: np.exp(x * 1e3) * -1)
        result = infimum.solve(Composite({"f": f}), np.ones(3), solver=GD, stopping=STOP, seed=0)
        assert result.status in (Status.nonfinite, Status.diverged)


@dataclass(frozen=True)
class Foreign(Solver):
    """A loop of its own that may be deaf to a stop; reports given points."""

    points: tuple[Any, ...]
    deaf: bool = False

    metrics: ClassVar[dict[str, Metric]] = {"value": Metric()}
    resume: ClassVar[str] = "none"

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("f", needs=("value",), at_least=1),)

    def drive(self, parts: Any, start: Any, rng: np.random.Generator, monitor: Any) -> Any:
        for point in (start, *self.points):
            x = np.asarray(point, dtype=float)
            if monitor.tick({"value": plain(x)}, x) is not None and not self.deaf:
                break
        return {"x": x}


class TestForeignLoops:
    POINTS = ((0.5, 0.5), (0.1, 0.2), (math.nan, 0.0), (0.0, 0.0))

    @pytest.mark.parametrize("deaf", [True, False])
    def test_the_last_finite_point_is_the_solution(self, deaf: bool) -> None:
        problem = Composite(Function(plain, shape=(2,)))
        result = infimum.solve(problem, np.ones(2), solver=Foreign(self.POINTS, deaf), stopping=STOP, seed=0)
        assert result.status is Status.nonfinite and "iterate holds NaN at iteration 3" in result.message
        np.testing.assert_array_equal(result.x, [0.1, 0.2])
        np.testing.assert_array_equal(result.best_x, [0.1, 0.2])
        assert result.value == result.best_value == pytest.approx(0.05) and result.best_iteration == 2

    def test_ticks_after_a_stop_change_nothing(self) -> None:
        problem = Composite(Function(plain, shape=(2,)))
        result = infimum.solve(
            problem,
            np.ones(2),
            solver=Foreign(((0.5, 0.5), (0.1, 0.2), (0.0, 0.0)), deaf=True),
            stopping="max_iter(1)",
            seed=0,
        )
        assert result.status is Status.limit and result.iterations == 1 and result.best_value == 0.5
        assert result.trace["iteration"].tolist() == [0, 1]


class TestChunks:
    def test_found_at_the_next_check_with_the_iteration_that_failed(self) -> None:
        f = Turns()
        problem = Composite({"loss": Function(f.value, gradient=lambda x: 2 * x)})
        result = infimum.solve(problem, X0, solver=GD, stopping=STOP, check_every=8, seed=0)
        assert result.status is Status.nonfinite and "in iteration 30" in result.message
        assert result.iterations == 24
        np.testing.assert_allclose(result.x, 0.8**24 * X0)

    def test_a_resumed_run_says_the_same(self) -> None:
        def make() -> infimum.Run:
            f = Turns()
            problem = Composite({"loss": Function(f.value, gradient=lambda x: 2 * x)})
            return infimum.prepare(problem, X0, solver=GD, stopping=STOP, seed=0)

        whole, first = make().solve(), make()
        first.advance(12)
        again = first.solve()
        assert again.message == whole.message
        np.testing.assert_array_equal(again.best_x, whole.best_x)
        # A run that ended so comes to the same end when it is taken up.
        other = make().load_state_dict(first.state_dict()).solve()
        assert other.message == whole.message and other.evaluations == whole.evaluations

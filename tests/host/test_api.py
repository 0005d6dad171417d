"""The front door: `solve`, `prepare`, and every kind of wrong input."""

from __future__ import annotations

import numpy as np
import pytest
from toys import Descent, ForwardBackward, Lifting, ToGradient, TwoProxes, half_square

import infimum
from infimum import Composite, Function, InputError, PlanError, Status
from infimum.constraints import Box, Nonnegative
from infimum.errors import UnknownNameError
from infimum.functions import L1, LeastSquares, SquaredL2

RNG = np.random.default_rng(8)
A = RNG.standard_normal((442, 10))
B = A @ np.r_[1.0, -2.0, np.zeros(8)]
LOSS = LeastSquares(A, B)


@pytest.fixture(autouse=True)
def _toys(toy_registry):
    pass


def lasso(**more):
    return Composite({"loss": LOSS, "penalty": 0.1 * L1()}, **more)


def quadratic(x, *center):
    c = center[0] if center else 1.0
    return float((x - c) @ (x - c))


def slope(x, *center):
    return 2.0 * (x - (center[0] if center else 1.0))


def solve(problem=None, x0=None, **options):
    options = {"solver": ForwardBackward(), "stopping": "max_iter(20)", "seed": 0, **options}
    return infimum.solve(problem if problem is not None else lasso(), x0, **options)


class TestPlainCallables:
    def test_a_function_and_its_gradient(self):
        result = solve(quadratic, np.zeros(2), jac=slope, solver=Descent(0.25), stopping=None)
        np.testing.assert_allclose(result.x, 1.0, atol=1e-6)
        assert (result.success, result.status) == (True, Status.converged)
        assert result.nfev == result.njev == result.nit + 1
        assert result.fun == result.value
        assert str(result).startswith("Descent on quadratic")

    @pytest.mark.parametrize("args", [(3.0,), 3.0])
    def test_arguments(self, args):
        result = solve(quadratic, np.zeros(2), args=args, jac=slope, solver=Descent(0.25), stopping=None)
        np.testing.assert_allclose(result.x, 3.0, atol=1e-6)

    def test_a_callable_that_returns_both(self):
        both = solve(lambda x: (quadratic(x), slope(x)), np.zeros(2), jac=True, solver=Descent(0.25), stopping=None)
        np.testing.assert_allclose(both.x, 1.0, atol=1e-6)

    def test_maximize_is_minimize_of_minus_f(self):
        options = {"solver": Descent(0.25), "stopping": "max_iter(15)"}
        up = solve(lambda x: -quadratic(x), np.zeros(2), jac=lambda x: -slope(x), maximize=True, **options)
        down = solve(quadratic, np.zeros(2), jac=slope, **options)
        np.testing.assert_array_equal(up.x, down.x)
        assert (up.value, up.best_value) == (-down.value, -down.best_value)
        np.testing.assert_array_equal(up.trace["value"], -down.trace["value"])
        assert np.all(np.diff(up.trace["value"]) >= 0)

    @pytest.mark.parametrize(
        "bounds", [[(None, 0.5), (0, None)], np.array([[-9, 0.5], [0, 9]]), ([None, 0.5], (0.0, None))]
    )
    def test_bounds(self, bounds):
        result = solve(quadratic, np.zeros(2), jac=slope, bounds=bounds, solver=ForwardBackward(0.25))
        np.testing.assert_allclose(result.x, [0.5, 1.0], atol=1e-5)
        assert result.violation == 0.0

    def test_bounds_of_scipy_and_bounds_beside_constraints(self):
        from scipy.optimize import Bounds

        result = solve(quadratic, np.zeros(2), jac=slope, bounds=Bounds([-1, -1], 0.5), solver=ForwardBackward(0.25))
        np.testing.assert_allclose(result.x, 0.5)
        run = infimum.prepare(
            SquaredL2(),
            np.zeros(2),
            bounds=[(0, 1)] * 2,
            constraints={"cone": Nonnegative()},
            solver=TwoProxesAndMore(),
        )
        assert [t.name for t in run.problem.terms] == ["objective", "cone", "bounds"]

    def test_bounds_that_bound_nothing_are_no_constraint(self):
        result = solve(quadratic, np.zeros(2), jac=slope, bounds=[(None, None)] * 2, solver=Descent(0.25))
        assert result.violation is None

    def test_a_callback_sees_the_progress_and_can_stop(self):
        seen = []

        def tell(progress):
            seen.append(progress.iteration)
            return progress.iteration >= 3

        result = solve(quadratic, np.zeros(2), jac=slope, solver=Descent(0.25), callback=tell)
        assert seen == [0, 1, 2, 3]
        assert (result.status, result.iterations) == (Status.interrupted, 3)

    def test_a_callback_may_raise_stop_iteration(self):
        def tell(progress):
            if progress.iteration == 2:
                raise StopIteration

        assert solve(quadratic, np.zeros(2), jac=slope, solver=Descent(0.25), callback=tell).iterations == 2

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: solve(3), "problem: expected a Problem, a Function, a callable or the name .* got int"),
            (lambda: solve(quadratic, np.zeros(2), jac=3), "jac=3: expected the gradient as a callable, or True"),
            (
                lambda: solve(SquaredL2(), np.zeros(2), jac=slope),
                "jac= and args= go with a plain callable; SquaredL2 states",
            ),
            (lambda: solve(lasso(), args=(1,)), "jac= and args= go with a plain callable; Composite states"),
            (lambda: solve(lasso(), maximize=True), "maximize=True contradicts the problem's own sense='min'"),
            (lambda: solve(lasso(sense="max"), maximize=False), "maximize=False contradicts .* sense='max'"),
            (
                lambda: solve(quadratic, np.zeros(2), bounds=3),
                r"bounds: expected a sequence of \(lower, upper\) pairs, got 3",
            ),
            (lambda: solve(quadratic, np.zeros(2), bounds=[(0, 1, 2)]), r"bounds: .* got \[\(0, 1, 2\)\]"),
            (lambda: solve(quadratic, np.zeros(2), bounds=[(1, 0), (0, 1)]), "the bounds of the box cross"),
            (
                lambda: solve(quadratic, np.zeros(2), jac=slope, bounds=[(0, 1)] * 3),
                r"lower of the box is \(3,\), x0 is \(2,\)",
            ),
            (lambda: solve(quadratic, jac=slope), "no term says the shape of x: pass x0="),
        ],
    )
    def test_what_does_not_fit(self, call, message):
        with pytest.raises(InputError, match=message):
            call()


class TwoProxesAndMore(TwoProxes):
    def slots(self):
        return (*super().slots(), infimum.Slot("third", ("prox",), at_most=1))


class TestStarts:
    def test_wrong_shapes(self):
        with pytest.raises(InputError, match=r"A is \(442, 10\), x0 is \(9,\); expected x0 of shape \(10,\)"):
            solve(x0=np.zeros(9))

    @pytest.mark.parametrize(
        ("x0", "message"),
        [
            (np.r_[np.zeros(9), np.nan], r"x0\[9\] is nan"),
            (np.zeros(10) + 0j, r"x0 is complex \(\(10,\) complex128\); expected real numbers"),
            ("ones", "x0='ones': expected an array, 'zeros' or 'random'"),
            ([], r"x0 is empty"),
            ({"u": 1}, "the problem has no blocks"),
        ],
    )
    def test_what_cannot_be_a_start(self, x0, message):
        with pytest.raises(InputError, match=message):
            solve(x0=x0)

    def test_integers_become_floats(self):
        result = solve(x0=np.arange(10))
        assert result.x.dtype == np.float64

    def test_float32_stays_float32_through_a_whole_solve(self):
        start = np.ones(10, np.float32)
        problem = lasso(constraints={"box": Box(np.full(10, -0.5), 0.5)})
        run = infimum.prepare(problem, start, solver=TwoProxesAndMore(0.5), stopping="max_iter(50)", seed=0)
        result = run.solve()
        assert result.x.dtype == result.best_x.dtype == np.float32
        # Douglas-Rachford is not made for three; the dtype is what counts here.
        lassoed = solve(x0=start, stopping="max_iter(300)")
        assert lassoed.x.dtype == np.float32
        assert np.abs(lassoed.x - solve(stopping="max_iter(300)").x).max() < 1e-5

    def test_a_function_that_returns_float64_for_float32_is_named(self):
        with pytest.raises(
            InputError, match=r"gradient of term 'objective' returned \(2,\) float64 for x of \(2,\) float32"
        ):
            solve(quadratic, np.zeros(2, np.float32), jac=lambda x: slope(x).astype(float), solver=Descent(0.1))

    def test_a_prox_that_does_so_is_named(self):
        wide = Function(lambda x: 0.0, prox=lambda v, t: v.astype(float))
        with pytest.raises(InputError, match=r"prox of term 'wide' returned .* float64 for x of .* float32"):
            solve(Composite({"loss": LOSS, "wide": wide}), np.zeros(10, np.float32))

    def test_the_user_s_start_is_never_changed(self):
        start = np.ones(10)
        result = solve(x0=start)
        assert (start == 1).all()
        result.x[:] = 7.0
        assert (start == 1).all()

    def test_a_function_that_changes_x_in_place_is_caught(self):
        def spoils(x):
            x -= 1.0
            return 2.0 * x

        start = np.zeros(2)
        with pytest.raises(InputError, match="gradient of term 'objective' changed its argument in place"):
            solve(quadratic, start, jac=spoils, solver=Descent(0.1))
        assert not start.any()

    def test_so_is_one_that_is_called_for_the_record_only(self):
        def spoils(x):
            x *= 2.0
            return 0.0

        problem = Composite({"loss": Function(spoils, gradient=slope, lipschitz=2.0)})
        with pytest.raises(InputError, match="value of term 'loss' changed its argument in place"):
            solve(problem, np.ones(2))

    def test_words_and_earlier_results(self):
        assert not infimum.prepare(lasso(start=np.ones(10)), "zeros", solver=ForwardBackward()).point.any()
        first, again = (infimum.prepare(lasso(), "random", solver=ForwardBackward(), seed=4).point for _ in range(2))
        np.testing.assert_array_equal(first, again)
        earlier = solve()
        np.testing.assert_array_equal(infimum.prepare(lasso(), earlier, solver=ForwardBackward()).point, earlier.best_x)

    @pytest.mark.parametrize("out", [lambda x: slope(x)[:, None], lambda x: 1.0, lambda x: slope(x)[:1]])
    def test_gradients_of_another_shape(self, out):
        with pytest.raises(InputError, match="gradient of term 'objective'"):
            solve(quadratic, np.zeros(2), jac=out, solver=Descent(0.1))

    def test_values_that_are_arrays(self):
        with pytest.raises(InputError, match=r"value of term 'objective' must return one number, got \(2,\) float64"):
            solve(lambda x: x, np.zeros(2), jac=slope, solver=Descent(0.1))


class TestNames:
    @pytest.mark.parametrize(
        ("options", "kind", "message"),
        [
            ({"solver": "toy.forward_backwrd"}, UnknownNameError, "did you mean 'toy.forward_backward'?"),
            (
                {"solver": {"use": "toy.forward_backward", "stp_size": 1}},
                InputError,
                "no option 'stp_size'; did you mean 'step_size'",
            ),
            ({"solver": "to_prox"}, UnknownNameError, "no solver called 'to_prox'; toy.to_prox is an oracle"),
            ({"oracles": {"penalty": "toy.to_prx"}}, UnknownNameError, "did you mean 'toy.to_prox'?"),
            (
                {"oracles": {"penlty": "toy.to_prox"}},
                InputError,
                "the problem has no term 'penlty'; did you mean 'penalty'?",
            ),
            ({"oracles": "all"}, InputError, "oracles: expected {term: oracle} or 'auto', got 'all'"),
            ({"oracles": {"penalty": ForwardBackward()}}, InputError, "expected an Oracle"),
            ({"assign": {"rst": "penalty"}}, InputError, "has no slot 'rst'; did you mean 'rest'?"),
            ({"assign": {"rest": "penlty"}}, InputError, "the problem has no term 'penlty'; did you mean 'penalty'?"),
            (
                {"assign": {"rest": "loss", "smooth": "loss"}},
                InputError,
                "term 'loss' stands in slots 'rest' and 'smooth'",
            ),
            ({"stoping": "max_iter(1)"}, InputError, "solve has no option 'stoping'; did you mean 'stopping'?"),
            ({"check_evry": 2}, InputError, "solve has no option 'check_evry'; did you mean 'check_every'?"),
            ({"trace": {"metrics": ["grad_norm"]}}, InputError, 'is record=["METRIC", …] and max_rows=N here'),
            ({"repeat": 3}, InputError, "is infimum.sweep(…, repeat=N) here"),
            ({"jacobian": slope}, InputError, "solve has no option 'jacobian'"),
            ({"stopping": "max_itr(3)"}, InputError, "did you mean 'core.max_iter'?"),
            ({"stopping": "gap(1e-3) | max_iter(3)"}, InputError, "reads metric 'gap', which"),
            ({"stopping": "grad_norm(1e-3)"}, InputError, "reads metric 'grad_norm', which"),
            ({"stopping": 3}, InputError, "stopping: expected text, a mapping or a rule, got int"),
            ({"constraints": "core.bx"}, UnknownNameError, "did you mean 'core.box'?"),
            ({"seed": -1}, InputError, "seed=-1: expected an integer >= 0"),
            ({"record": ["valeu"]}, InputError, "no metric 'valeu'; did you mean 'value'?"),
        ],
    )
    def test_unknown_ones_are_answered_with_the_nearest(self, options, kind, message):
        with pytest.raises(kind) as caught:
            solve(**options)
        assert message in str(caught.value)

    def test_an_oracle_for_a_term_that_has_no_use_for_it(self):
        with pytest.raises(
            PlanError, match=r"cannot take term 'penalty': in slot 'smooth' or 'rest' it offers|gets only"
        ):
            solve(oracles={"penalty": Lifting(supplies=("hvp",))})

    def test_a_term_that_fits_no_slot(self):
        with pytest.raises(
            PlanError,
            match=r"needs gradient \(slot smooth\) or prox \(slot rest\) of term 'tv', which offers only value",
        ):
            solve(Composite({"loss": LOSS, "tv": half_square("value")}))

    def test_assign_as_argument_and_inside_the_solver(self):
        problem = Composite({"a": SquaredL2(), "b": SquaredL2()}, start=np.ones(2))
        beside = infimum.explain(problem, "toy.forward_backward", assign={"rest": ["a"]})
        inside = infimum.explain(problem, {"use": "toy.forward_backward", "assign": {"rest": "a"}})
        assert str(beside) == str(inside)
        assert beside.placements[1].term == "a"

    def test_problems_and_constraints_by_name(self):
        with pytest.raises(UnknownNameError, match=r"no problem called 'toy.lasso'"):
            solve("toy.lasso")
        result = solve(LOSS, constraints={"use": "core.box", "lower": 0.5})
        assert result.x.min() >= 0.5
        named = infimum.prepare(
            lasso(), constraints={"cage": {"use": "core.box", "upper": 1}}, solver=TwoProxesAndMore()
        )
        assert [t.name for t in named.problem.terms] == ["loss", "penalty", "cage"]
        twice = infimum.prepare(LOSS, constraints=["core.nonnegative", "core.nonnegative"], solver=TwoProxesAndMore())
        assert [t.name for t in twice.problem.terms][1:] == ["nonnegative", "nonnegative_2"]

    def test_constraints_on_a_block(self):
        problem = Composite({"f": SquaredL2()}, blocks={"u": 2, "v": 2}, start=np.full(4, -1.0))
        result = solve(problem, constraints={"use": "core.box", "lower": 0.3, "on": "v"}, stopping="max_iter(60)")
        np.testing.assert_allclose(result.x["u"], 0.0, atol=1e-9)
        np.testing.assert_allclose(result.x["v"], 0.3)

    def test_a_family_with_sets_of_its_own(self):
        class Game(infimum.Problem):
            family = "game"

        with pytest.raises(InputError, match="constraints: a problem of family 'game' brings its own"):
            solve(Game(), constraints=[Box(0, 1)])


class TestRuns:
    def test_two_solvers_agree_and_counts_add_up(self):
        one = solve(stopping="residual(1e-10) | max_iter(5000)")
        two = solve(solver=TwoProxes(1.0), stopping="max_iter(2000)")
        np.testing.assert_allclose(one.x, two.x, atol=1e-6)
        assert one.status is Status.converged
        assert one.evaluations == {"loss": {"gradient": one.iterations}, "penalty": {"prox": one.iterations}}
        assert one.calls == {"smooth": {"gradient": one.iterations}, "rest": {"prox": one.iterations}}
        assert one.monitored["problem"]["value"] >= 1
        assert two.evaluations == {"loss": {"prox": 2000}, "penalty": {"prox": 2000}}

    def test_maximizing_shows_everything_in_the_user_s_sense(self):
        options = {"solver": ForwardBackward(), "stopping": "max_iter(30)", "value_every": 1}
        low = solve(lasso(), **options)
        high = solve(Composite({"loss": -1.0 * LOSS, "penalty": -0.1 * L1()}, sense="max"), **options)
        np.testing.assert_array_equal(high.x, low.x)
        np.testing.assert_array_equal(high.trace["value"], -low.trace["value"])
        assert high.best_value == -low.best_value
        assert high.best_iteration == low.best_iteration
        target = high.trace["value"][10]
        hit = solve(
            Composite({"loss": -1.0 * LOSS, "penalty": -0.1 * L1()}, sense="max"),
            stopping=f"target({float(target)!r}) | max_iter(30)",
        )
        assert (hit.status, hit.iterations) == (Status.target_reached, 10)

    def test_a_run_without_the_solver_s_value_still_has_one(self):
        # The oracle gives no value along, so the solver knows none: the record evaluates the plain function.
        problem = Composite({"f": Function(quadratic, lipschitz=2.0)}, start=np.zeros(2))
        result = solve(
            problem, solver=Descent(0.25), oracles={"f": ToGradient()}, stopping="target(1e-6) | max_iter(99)"
        )
        assert result.status is Status.target_reached
        assert result.evaluations["f"] == {"value": 4 * (result.iterations + 1)}
        assert result.monitored == {"problem": {"value": result.iterations + 1}}

    def test_the_best_point_is_feasible(self):
        # Douglas-Rachford reports the prox of the loss, which leaves the box on its way.
        problem = Composite({"loss": LOSS}, constraints={"box": Box(0.0, 0.5)})
        result = solve(problem, np.full(10, 0.2), solver=TwoProxes(1.0), stopping="max_iter(15)", value_every=1)
        assert problem.violation(result.best_x) <= 1e-8
        assert result.violation > 1e-8
        assert result.best_value >= result.value

    def test_an_empty_rule_gets_the_default_and_a_note(self):
        for rule in (None, "", "  ", [], {}):
            run = infimum.prepare(lasso(), solver=ForwardBackward(), stopping=rule, seed=0)
            assert any("no stopping rule was given: residual(1e-06) | max_iter(10000)" in note for note in run.notes)

    def test_nan_in_data_is_named_before_anything_runs(self):
        bad = A.copy()
        bad[3, 4] = np.nan
        with pytest.raises(InputError, match=r"A\[3, 4\] is nan; clean the data first"):
            LeastSquares(bad, B)
        with pytest.raises(InputError, match="b is empty"):
            LeastSquares(np.zeros((0, 3)), np.zeros(0))

    def test_life_cycle_hooks_and_watching_change_nothing(self):
        plain = solve(max_rows=0)
        watched = solve(value_every=1, callback=lambda progress: None, record=["rel_change"])
        np.testing.assert_array_equal(plain.x, watched.x)
        assert plain.evaluations == watched.evaluations

"""`Composite`: what it accepts and refuses, its values, starts, blocks, sense and metrics."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

from infimum import Composite, Function, InputError, Problem
from infimum.constraints import Box, Nonnegative
from infimum.functions import L1, L2, LeastSquares, SquaredL2
from infimum.problem import Term, start_by

RNG = np.random.default_rng(5)
A = RNG.standard_normal((6, 4))
LOSS = LeastSquares(A, A[:, 0])
x = RNG.standard_normal(4)


def lasso(**more):
    return Composite({"loss": LOSS, "penalty": 0.1 * L1()}, **more)


class TestMaking:
    def test_names_and_roles(self):
        problem = lasso(constraints=[Box(0, 1), Nonnegative(), Box(-1, 1)])
        assert [(t.name, t.role) for t in problem.terms] == [
            ("loss", "term"),
            ("penalty", "term"),
            ("box", "constraint"),
            ("nonnegative", "constraint"),
            ("box_2", "constraint"),
        ]
        assert [t.name for t in Composite(LOSS).terms] == ["objective"]
        assert [t.name for t in lasso(constraints=Box(0, 1)).terms][-1] == "box"
        assert [t.name for t in lasso(constraints={"cage": Box(0, 1)}).terms][-1] == "cage"

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Composite({}), "Composite without terms: give at least one function"),
            (lambda: Composite([LOSS]), r"terms: expected \{name: Function\} or one Function, got list"),
            (lambda: Composite(lambda x: 0.0), "terms: expected .* got function"),
            (
                lambda: Composite({"f": lambda x: 0.0}),
                r"term 'f': expected a Function, got function; wrap it: Function\(value=",
            ),
            (lambda: Composite({"f": Box(0, 1)}), "term 'f': expected a Function, got Box; sets go into constraints="),
            (lambda: Composite({"f": None}), "term 'f': expected a Function, got NoneType"),
            (lambda: Composite({1: LOSS}), "1 is no name for a term"),
            (lambda: Composite({"": LOSS}), "'' is no name for a term"),
            (lambda: Composite({"slot:f": LOSS}), "'slot:f' is no name for a term"),
            (lambda: lasso(constraints=[LOSS]), "constraint 'leastsquares': expected a Constraint, got LeastSquares"),
            (lambda: lasso(constraints=3), "constraints: expected sets, one or several, got int"),
            (lambda: lasso(constraints={"loss": Box(0, 1)}), "a term and a constraint are both called 'loss'"),
            (lambda: lasso(sense="up"), "sense='up': expected 'min' or 'max'"),
            (lambda: lasso(on={"los": "u"}), r"on=\{'los': …\}: no such term; did you mean 'loss'\?"),
            (lambda: lasso(on={"loss": "u"}), r"term 'loss' acts on block 'u'; give blocks=\{'u': shape, …\}"),
            (
                lambda: lasso(blocks={"left": 4}, on={"loss": "lef"}),
                r"'loss' acts on block 'lef'; did you mean 'left'\?",
            ),
            (lambda: Composite({"f": 2.0 * (L1() @ {"v": 1.0})}, blocks={"u": 3}), "term 'f' acts on block 'v'"),
            (lambda: Composite(L1() @ {"v": 1.0}), "'objective' acts on block 'v'; give blocks="),
            (
                lambda: Composite({"f": L1() @ {"u": 1.0}}, blocks={"u": 3}, on={"f": "u"}),
                "term 'f' is on block 'u' and maps named blocks itself; leave it out of on=",
            ),
            (
                lambda: Composite({"f": L1() @ {"u": np.ones((2, 5))}}, blocks={"u": 3}),
                r"term 'f': the linear map of block 'u' is \(2, 5\), the block is \(3,\)",
            ),
        ],
    )
    def test_what_does_not_fit_is_named(self, make, message):
        with pytest.raises(InputError, match=message):
            make()

    def test_an_empty_term_is_refused(self):
        nothing_in_common = Function(prox=lambda v, t: v) + Function(lambda x: 0.0)
        with pytest.raises(
            InputError, match=r"term 'sum' is empty: .* offers nothing, since its parts have no capability"
        ):
            Composite({"sum": nothing_in_common})

    def test_further_constraints(self):
        first = lasso(constraints=[Box(0, 1)], start=np.ones(4), reference=1.0, name="mine", sense="max")
        more = first.with_constraints([Box(-1, 1)]).with_constraints({"cone": Nonnegative()})
        assert [t.name for t in more.terms][2:] == ["box", "box_2", "cone"]
        # A known optimum is that of the problem without the new sets.
        assert (more.name, more.sense, more.reference) == ("mine", "max", None)
        assert first.with_constraints({}).reference == 1.0
        np.testing.assert_array_equal(more.start(np.random.default_rng()), np.ones(4))
        with pytest.raises(InputError, match="already has a constraint called 'cone'"):
            more.with_constraints({"cone": Box(0, 1)})
        blocks = Composite({"f": L2()}, blocks={"u": 2, "v": 3}, on={"f": "u"})
        assert blocks.with_constraints([Box(0, 1)], on={"box": "v"}).terms[1].on == "v"


class TestValue:
    def test_it_is_the_sum_in_the_user_s_sense(self):
        expected = LOSS.value(x) + 0.1 * np.abs(x).sum()
        assert lasso().value(x) == pytest.approx(expected)
        assert lasso(sense="max").value(x) == pytest.approx(expected)
        assert lasso(constraints=[Box(9, 10)]).value(x) == pytest.approx(expected)

    @pytest.mark.parametrize("sense", ["min", "max"])
    @pytest.mark.parametrize("wrap", [lambda f: f, lambda f: 1.0 * f @ np.eye(4), lambda f: f.translate(np.zeros(4))])
    def test_a_pair_alone_has_a_value(self, sense, wrap):
        f = Function(value_and_gradient=lambda x: (float(x @ x), 2 * x))
        problem = Composite({"f": wrap(f)}, sense=sense)
        assert problem.merit == "value"
        assert problem.value(x) == pytest.approx(float(x @ x))
        on_block = Composite({"f": f}, blocks={"u": 4, "v": 2}, on={"f": "u"}, sense=sense)
        assert on_block.value(np.r_[x, 1, 1]) == pytest.approx(float(x @ x))

    def test_without_a_value_it_says_which_term_has_none(self):
        problem = Composite({"a": LOSS, "set": Function(prox=lambda v, t: v)})
        assert problem.merit is None
        with pytest.raises(InputError, match="Composite has no value: term 'set' offers none"):
            problem.value(x)
        with pytest.raises(InputError, match="it has constraints only"):
            Composite({}, constraints=[Box(0, 1)]).value(x)

    def test_violation_is_the_largest(self):
        problem = lasso(constraints=[Box(0.0, 1.0), Box(-0.5, 0.5)])
        point = np.array([2.0, 0.7, 0.0, 0.0])
        assert problem.violation(point) == pytest.approx(np.hypot(1.5, 0.2))
        assert lasso().violation(point) == 0.0

    def test_metrics(self):
        problem = lasso(reference=2.0, constraints=[Box(0, 1)])
        metrics = problem.metrics(x)
        assert set(metrics) == {"rel_change", "abs_change", "value", "gap", "violation"}
        assert metrics["gap"](x, None) == pytest.approx(abs(problem.value(x) - 2.0) / 2.0)
        assert metrics["abs_change"](x, 0 * x) == pytest.approx(np.linalg.norm(x))
        assert metrics["rel_change"](100 * x, 0 * x) == pytest.approx(1.0)
        assert metrics["rel_change"](0.001 * x, 0 * x) == pytest.approx(0.001 * np.linalg.norm(x))
        assert metrics["rel_change"](x, None) is None

    def test_the_first_value_for_the_record_is_checked_like_any_other(self):
        def spoils(x):
            x *= 2.0
            return float(x @ x)

        with pytest.raises(InputError, match="value of term 'f' changed its argument in place"):
            Composite({"f": Function(spoils)}).value(x.copy())
        with pytest.raises(InputError, match=r"value of term 'f' must return one number, got \(4,\) float64; sum it"):
            Composite({"f": Function(lambda x: x)}).value(x)


class TestStarts:
    def test_zeros_of_the_shape_that_a_term_asks_for(self):
        np.testing.assert_array_equal(lasso().start(RNG), np.zeros(4))
        np.testing.assert_array_equal(
            Composite({"a": L1(), "b": L2().translate(np.ones((2, 3)))}).start(RNG), np.zeros((2, 3))
        )
        np.testing.assert_array_equal(Composite({"a": L1() @ A}).start(RNG), np.zeros(4))
        np.testing.assert_array_equal(Composite({"a": 0 * LOSS}).start(RNG), np.zeros(4))
        with pytest.raises(InputError, match="no term says the shape of x: pass x0="):
            Composite(L1()).start(RNG)

    def test_the_user_s_array_is_copied_and_made_floating(self):
        problem, start = lasso(), np.array([1, 2, 3, 4])
        point = problem.prepare(start)
        assert point.dtype == np.float64
        point += 1.0
        assert start.tolist() == [1, 2, 3, 4]
        assert problem.prepare([True, False, True, True]).tolist() == [1, 0, 1, 1]
        assert problem.prepare(np.ones(4, np.float32)).dtype == np.float32

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            (np.zeros(9), r"term 'loss': A is \(6, 4\), x0 is \(9,\); expected x0 of shape \(4,\)"),
            (np.zeros((4, 1)), r"x0 is \(4, 1\)"),
            (np.array([0, np.nan, 0, np.inf]), r"x0\[1\] is nan \(2 such entries\); a start must be finite"),
            (np.zeros(4) + 1j, r"x0 is complex \(\(4,\) complex128\); expected real numbers; split"),
            (np.zeros(0), r"x0 is empty: its shape is \(0,\)"),
            (["a", "b"], "x0 holds <U1 entries; expected numbers"),
            ([[1, 2], [3]], "x0 is no array of numbers"),
            (None, "x0 holds object entries; expected numbers"),
            (sp.eye_array(4), "x0 is a SciPy sparse matrix; expected a dense array"),
            ({"u": x}, r"x0 is a mapping of \['u'\], but the problem has no blocks; pass an array"),
        ],
    )
    def test_what_cannot_be_a_start(self, start, message):
        with pytest.raises(InputError, match=message):
            lasso().prepare(start)

    def test_a_set_of_another_shape_is_named(self):
        with pytest.raises(InputError, match=r"term 'box': lower of the box is \(3,\), x0 is \(4,\)"):
            lasso(constraints=[Box([0.0] * 3)]).prepare(x)

    def test_starts_by_word(self):
        zeros, drawn = (
            start_by(word, lasso(start=np.ones(4, int)), np.random.default_rng(3)) for word in ("zeros", "random")
        )
        assert not zeros.any()
        np.testing.assert_array_equal(drawn, np.random.default_rng(3).standard_normal(4))
        single = start_by("random", lasso(start=np.ones(4, np.float32)), np.random.default_rng(3))
        assert single.dtype == np.float32
        with pytest.raises(InputError, match="x0='ones': expected an array, 'zeros' or 'random'"):
            start_by("ones", lasso(), np.random.default_rng(3))

        class Opaque(Problem):
            def start(self, rng):
                return 7

        with pytest.raises(InputError, match="zeros needs a problem whose points are arrays"):
            start_by("zeros", Opaque(), np.random.default_rng(3))

    def test_torch_starts_stay_torch(self):
        torch = pytest.importorskip("torch")
        start = torch.ones(4, dtype=torch.float32, requires_grad=True)
        point = lasso().prepare(start)
        assert point.dtype == torch.float32
        assert not point.requires_grad
        assert lasso().value(start) == pytest.approx(lasso().value(np.ones(4)), rel=1e-5)
        with pytest.raises(InputError, match=r"x0\[1\] is nan"):
            lasso().prepare(torch.tensor([0.0, float("nan"), 0.0, 0.0]))


class TestBlocks:
    problem = Composite(
        {"fit": SquaredL2() @ {"u": 1.0, "v": 2.0}, "pen": L1()},
        constraints={"box": Box(0.0, 1.0)},
        blocks={"u": (2,), "v": (2,), "w": ()},
        on={"pen": "u", "box": "w"},
    )

    def test_values_and_violations(self):
        point = {"u": np.array([1.0, -1.0]), "v": np.array([0.5, 0.5]), "w": np.array(3.0)}
        assert self.problem.value(point) == pytest.approx(0.5 * 4.0 + 2.0)
        assert self.problem.violation(point) == 2.0
        packed = self.problem.prepare(point)
        assert packed.tolist() == [1.0, -1.0, 0.5, 0.5, 3.0]
        assert self.problem.value(packed) == self.problem.value(point)
        assert {k: v.shape for k, v in self.problem.unpack(packed).items()} == {"u": (2,), "v": (2,), "w": ()}

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            (np.zeros(4), r"x0 is \(4,\), the blocks .* pack into \(5,\)"),
            ({"u": np.zeros(2), "v": np.zeros(2)}, "no array for block 'w'; expected u, v, w"),
            (
                {"u": np.zeros(3), "v": np.zeros(2), "w": 0.0},
                r"block 'u' is \(3,\) float64; expected an array of shape \(2,\)",
            ),
            ({"u": [1j, 0], "v": np.zeros(2), "w": 0.0}, r"x0\['u'\] is complex \(\(2,\) complex128\)"),
            ({"u": [0, 0], "v": [0, np.nan], "w": 0}, r"x0\['v'\]\[1\] is nan"),
            ({"u": [0, 0], "v": [0, 0], "ww": 0}, "there is no block 'ww'; did you mean 'w'"),
        ],
    )
    def test_what_cannot_be_a_start(self, start, message):
        with pytest.raises(InputError, match=message):
            self.problem.prepare(start)

    def test_dimensions(self):
        fit, pen, box = self.problem.terms
        assert [self.problem.dimension(one) for one in (fit, pen, box, None)] == [5, 2, 1, 5]
        assert lasso().dimension() == 4
        assert lasso().dimension(lasso().terms[1]) == 4
        assert Composite(L1(), start=np.zeros((2, 3))).dimension() == 6
        assert Composite(L1()).dimension() is None

    def test_terms_of_a_problem_print(self):
        assert repr(self.problem).startswith("Composite(fit: SquaredL2() @ BlockMap(u, v), pen: L1() on u")


class TestSense:
    def test_the_view_is_to_be_minimized(self):
        problem = lasso(sense="max")
        view = problem.view(problem.terms[0])
        np.testing.assert_allclose(view.gradient(x), -LOSS.gradient(x))
        assert view.value(x) == -LOSS.value(x)
        assert view.lipschitz == LOSS.lipschitz
        assert view.convex is None

    def test_minus_a_proximable_function_keeps_its_prox_when_it_is_maximized(self):
        problem = Composite({"pen": -2.0 * L1()}, sense="max")
        view = problem.view(problem.terms[0])
        np.testing.assert_allclose(view.prox(x, 0.1), (2.0 * L1()).prox(x, 0.1))
        assert problem.value(x) == pytest.approx(-2.0 * np.abs(x).sum())

    def test_sets_are_not_flipped(self):
        box = Box(0, 1)
        problem = Composite({"f": LOSS}, constraints=[box], sense="max")
        assert problem.view(problem.terms[1]) is box


def test_the_defaults_of_a_family():
    problem, term = Problem(), Term("a", LOSS)
    assert problem.view(term) is LOSS
    assert problem.embed(LOSS, term) is LOSS
    assert problem.joined([term], [frozenset({"value"})]) == {"value"}
    assert problem.joined([term, term], [frozenset({"value"})] * 2) == frozenset()
    assert problem.dimension() is None
    assert problem.describe() == "Problem"
    with pytest.raises(InputError, match="does not join terms"):
        problem.join([term, term], [LOSS, LOSS])


class TestDataInTheFormOfThePoint:
    problem = Composite({"loss": LeastSquares(np.eye(3), np.ones(3)), "penalty": L1()}, constraints={"box": Box(0, 1)})

    def test_it_is_converted_once_for_one_point(self):
        point = np.zeros(3, np.float32)
        (loss, *_) = self.problem.terms
        first = self.problem.view(loss, point)
        assert first.A.dtype == np.float32
        assert self.problem.view(loss, point) is first

    def test_another_point_gets_data_of_its_own_dtype(self):
        (loss, *_) = self.problem.terms
        self.problem.view(loss, np.zeros(3, np.float32))
        assert self.problem.view(loss, np.zeros(3)).A.dtype == np.float64

    def test_nothing_converted_outlives_its_point(self):
        (loss, *_) = self.problem.terms
        point = np.zeros(3, np.float32)
        made = weakref.ref(self.problem.view(loss, point))
        del point
        gc.collect()
        assert made() is None

    def test_the_problem_can_still_be_sent_to_another_process(self):
        point = np.zeros(3, np.float32)
        self.problem.view(self.problem.terms[0], point)
        twin = pickle.loads(pickle.dumps(self.problem))
        assert twin.value(point) == self.problem.value(point)

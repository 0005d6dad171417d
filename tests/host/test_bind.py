"""Parts as solvers see them: maps, blocks, oracles, facts, counts, states; and problems solved through them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from toys import (
    Descent,
    ForwardBackward,
    Lifting,
    PrimalDual,
    Slots,
    ToGradient,
    TwoProxes,
    choice,
    half_square,
)

import infimum
from infimum import Composite, Exactness, Function, Slot
from infimum.constraints import Box, Nonnegative
from infimum.counters import Counters
from infimum.functions import L1, L2, LeastSquares, SquaredL2
from infimum.plan.bind import Bound, streams
from infimum.plan.plan import make_plan

RNG = np.random.default_rng(11)
A, MAP = RNG.standard_normal((12, 4)), RNG.standard_normal((3, 4))
B = A @ np.array([1.0, -2.0, 0.0, 0.5])
x, d = RNG.standard_normal((2, 4))
SMOOTH = Slot("smooth", ("gradient",), wants=("value_and_gradient", "value"))
REST = Slot("rest", ("prox",))
DUAL = Slot("dual", ("prox_conjugate",), each=True, takes_map=True)


def bind(problem, *slots, point=None, **options):
    """The parts of a plan, and the counters behind them."""
    counters = Counters()
    made = make_plan(problem, Slots(slots), **options)
    start = problem.prepare(problem.start(np.random.default_rng(0)) if point is None else point)
    return Bound(made, start, streams(0), counters), counters


def parts(problem, *slots, **options):
    return bind(problem, *slots, **options)[0].parts


class TestAlgebra:
    def test_a_scaled_function_keeps_its_prox(self):
        part = parts(Composite({"a": 0.1 * L1(), "loss": LeastSquares(A, B)}), REST, SMOOTH).rest
        np.testing.assert_allclose(part.prox(x, 2.0), np.sign(x) * np.maximum(abs(x) - 0.2, 0), atol=1e-15)

    def test_a_translated_function_keeps_its_prox(self):
        part = parts(Composite({"a": L1().translate(d)}), REST).rest
        np.testing.assert_allclose(part.prox(x, 0.3), d + L1().prox(x - d, 0.3))

    def test_the_chain_rule(self):
        part = parts(Composite({"a": SquaredL2().translate(MAP @ d) @ MAP}), SMOOTH).smooth
        np.testing.assert_allclose(part.gradient(x), MAP.T @ (MAP @ (x - d)))
        assert part.lipschitz == pytest.approx(np.linalg.norm(MAP, 2) ** 2)

    def test_the_prox_under_a_semi_orthogonal_map(self):
        rows = 2.0 * np.linalg.qr(RNG.standard_normal((4, 2)))[0].T
        part = parts(Composite({"a": L1() @ rows}), REST).rest
        best, value = part.prox(x, 0.4), lambda u: np.abs(rows @ u).sum() + (u - x) @ (u - x) / 0.8
        assert all(value(best) <= value(best + 1e-3 * one) for one in RNG.standard_normal((50, 4)))

    def test_a_sum_of_smooth_terms_adds_up(self):
        loss, ridge = LeastSquares(A, B), 0.5 * SquaredL2()
        part = parts(Composite({"a": loss, "b": ridge, "c": 2.0 * (loss @ np.eye(4))}), SMOOTH).smooth
        np.testing.assert_allclose(part.gradient(x), 3.0 * loss.gradient(x) + 0.5 * x)
        value, gradient = part.value_and_gradient(x)
        assert value == pytest.approx(part.value(x)) == pytest.approx(3.0 * loss.value(x) + 0.25 * float(x @ x))
        np.testing.assert_allclose(gradient, part.gradient(x))
        assert part.lipschitz == pytest.approx(3.0 * loss.lipschitz + 0.5)
        assert part.strongly_convex == 0.5
        assert part.convex
        unknown = Composite({"a": loss, "b": half_square("gradient")})
        assert parts(unknown, SMOOTH).smooth.lipschitz is None


class TestMaps:
    def test_the_map_stands_beside_f(self):
        (part,) = parts(Composite({"a": 0.5 * L1() @ MAP}), DUAL).dual
        np.testing.assert_array_equal(part.map(x), MAP @ x)
        np.testing.assert_array_equal(part.adjoint(x[:3]), MAP.T @ x[:3])
        assert part.norm == pytest.approx(np.linalg.norm(MAP, 2))
        np.testing.assert_array_equal(part.prox_conjugate(4 * x[:3], 2.0), np.clip(4 * x[:3], -0.5, 0.5))

    def test_a_term_without_a_map_gets_the_identity(self):
        loss = LeastSquares(A, B)
        (part,) = parts(Composite({"a": loss}), DUAL).dual
        assert part.map(x) is x
        assert part.adjoint(x) is x
        assert part.norm == 1.0
        np.testing.assert_allclose(part.prox_conjugate(x, 2.0), x - 2.0 * loss.prox(x / 2.0, 0.5))

    def test_an_oracle_lifts_f_alone_where_the_map_is_taken_and_f_after_the_map_elsewhere(self):
        for slot, need, size in ((DUAL, "prox_conjugate", 3), (Slot("rest", ("prox",)), "prox", 4)):
            oracle = Lifting(supplies=("prox",))
            body = half_square("value") @ MAP
            bound, counters = bind(Composite({"a": body}, start=x), slot, oracles={"a": choice(oracle)})
            part = bound.parts.dual[0] if slot is DUAL else bound.parts.rest
            got = getattr(part, need)(np.ones(size), 0.5)
            assert got.shape == (size,)
            (seen,) = oracle.bound
            point = np.ones(size)
            assert seen.value(point) == 0.5 * float(point @ point if slot is DUAL else (MAP @ point) @ (MAP @ point))
            assert counters.total("value") == 2

    def test_a_slot_with_one_map_at_most(self):
        one = Slot("dual", ("prox_conjugate",), at_most=1, takes_map=True)
        part = parts(Composite({"a": L1() @ MAP}), one).dual
        np.testing.assert_array_equal(part.map(x), MAP @ x)
        empty = parts(Composite({"b": half_square("gradient")}, start=x), SMOOTH, one).dual
        assert empty.map(x) is x
        assert (empty.norm, empty.prox_conjugate(x, 1.0).any()) == (1.0, False)

    def test_float32_maps_and_data_follow_the_start(self):
        problem = Composite({"a": L1().translate(B[:3]) @ MAP})
        (part,) = parts(problem, DUAL, point=x.astype(np.float32)).dual
        assert part.map(x.astype(np.float32)).dtype == np.float32
        assert part.prox_conjugate(x[:3].astype(np.float32), 0.5).dtype == np.float32


class TestBlocks:
    SHAPES: ClassVar = {"u": (2, 2), "v": (3,)}
    point = RNG.standard_normal(7)

    def problem(self, terms, sets=None, **on):
        return Composite(terms, constraints=sets or {}, blocks=self.SHAPES, on=on)

    def test_terms_see_their_block_in_its_shape(self):
        shapes = []
        body = Function(lambda u: shapes.append(u.shape) or float((u * u).sum()), gradient=lambda u: 2 * u)
        part = parts(self.problem({"a": body}, a="u"), SMOOTH).smooth
        assert part.value(self.point) == pytest.approx(float(self.point[:4] @ self.point[:4]))
        assert shapes == [(2, 2)]
        np.testing.assert_allclose(part.gradient(self.point), np.r_[2 * self.point[:4], 0, 0, 0])

    def test_disjoint_blocks_are_one_separable_part(self):
        part = parts(self.problem({"a": L2(), "b": 0.5 * L1()}, a="u", b="v"), REST).rest
        expected = np.r_[L2().prox(self.point[:4], 0.3), L1().prox(self.point[4:], 0.15)]
        np.testing.assert_allclose(part.prox(self.point, 0.3), expected)

    def test_a_function_and_a_set_on_disjoint_blocks(self):
        part = parts(self.problem({"a": L2()}, {"box": Box(0.0, 0.1)}, a="u", box="v"), REST).rest
        expected = np.r_[L2().prox(self.point[:4], 0.3), np.clip(self.point[4:], 0.0, 0.1)]
        np.testing.assert_allclose(part.prox(self.point, 0.3), expected)
        assert part.lipschitz is None
        assert part.strongly_convex == 0.0

    def test_a_set_on_a_block_in_every_kind_of_slot(self):
        problem = self.problem({}, {"box": Box(0.0, 0.1)}, box="v")
        inside = np.r_[self.point[:4], np.clip(self.point[4:], 0.0, 0.1)]
        assert_close = np.testing.assert_allclose
        assert_close(parts(problem, Slot("s", ("prox",))).s.prox(self.point, 1.0), inside)
        assert_close(parts(problem, Slot("s", ("project",))).s.project(self.point), inside)
        assert_close(parts(problem, Slot("s", ("project",), each=True)).s[0].project(self.point), inside)
        assert_close(parts(problem, Slot("s", ("step",))).s.step(self.point, 0 * self.point), inside)
        lower, upper = parts(problem, Slot("s", ("bounds",))).s.bounds(self.point)
        assert lower.tolist() == [-np.inf] * 4 + [0.0] * 3
        assert upper.tolist() == [np.inf] * 4 + [0.1] * 3
        assert parts(problem, Slot("s", ("violation",))).s.violation(self.point) == problem.violation(self.point)

    def test_a_map_of_a_block_is_a_map_of_the_packed_vector(self):
        C = RNG.standard_normal((5, 3))
        first, second = parts(self.problem({"a": L1() @ C, "b": L2()}, a="v", b="u"), DUAL).dual
        np.testing.assert_allclose(first.map(self.point), C @ self.point[4:])
        np.testing.assert_allclose(first.adjoint(np.ones(5)), np.r_[0, 0, 0, 0, C.T @ np.ones(5)])
        assert first.norm == pytest.approx(np.linalg.norm(C, 2))
        assert second.map(self.point).shape == (2, 2)
        np.testing.assert_array_equal(second.adjoint(np.ones((2, 2))), [1, 1, 1, 1, 0, 0, 0])

    def test_a_map_from_two_blocks(self):
        U = RNG.standard_normal((6, 3))
        blocks = {"u": (6,), "v": (3,)}
        problem = Composite({"fit": SquaredL2().translate(np.arange(6.0)) @ {"u": 2.0, "v": U}}, blocks=blocks)
        point = RNG.standard_normal(9)
        gap = 2 * point[:6] + U @ point[6:] - np.arange(6.0)
        part = parts(problem, SMOOTH).smooth
        np.testing.assert_allclose(part.gradient(point), np.r_[2 * gap, U.T @ gap])
        (dual,) = parts(problem, DUAL).dual
        np.testing.assert_allclose(dual.map(point), gap + np.arange(6.0))
        inside = Composite({"fit": 3.0 * (SquaredL2() @ {"u": 1.0} + L2() @ {"v": 1.0})}, blocks=blocks)
        assert inside.value({"u": np.ones(6), "v": np.ones(3)}) == pytest.approx(9 + 3 * np.sqrt(3))

    def test_an_oracle_works_in_the_dimension_of_the_block(self):
        oracle = Lifting(supplies=("gradient",))
        problem = self.problem({"a": half_square("value"), "b": half_square("gradient")}, a="v")
        bound, _ = bind(problem, SMOOTH, oracles={"a": choice(oracle)})
        assert bound.plan.placements[0].dimension == 3
        np.testing.assert_allclose(bound.parts.smooth.gradient(self.point), np.r_[self.point[:4], 2 * self.point[4:]])
        both = self.problem({"a": half_square("value"), "b": half_square("value")}, a="v")
        whole, _ = bind(both, SMOOTH, oracles={"slot:smooth": choice(Lifting())})
        assert whole.plan.placements[-1].dimension == 7

    def test_capabilities_that_do_not_carry_over_are_no_basis_of_a_plan(self):
        body = half_square("gradient", "residual")
        with pytest.raises(infimum.PlanError, match="has no residual"):
            make_plan(self.problem({"a": body}, a="u"), Slots((Slot("s", ("residual",)),)))

    def test_x_comes_back_in_blocks(self):
        problem = self.problem({"a": half_square("gradient", "value_and_gradient", lipschitz=1.0)})
        result = infimum.solve(problem, {"u": np.ones((2, 2)), "v": np.ones(3)}, solver=Descent(0.5), seed=0)
        assert {name: one.shape for name, one in result.x.items()} == self.SHAPES


class TestOracles:
    def test_what_it_is_bound_to_offers_its_needs_and_no_more(self):
        oracle = Lifting(wants=("values", "hvp"))
        bind(
            Composite({"a": half_square("value", "values", "gradient")}, start=x), SMOOTH, oracles={"a": choice(oracle)}
        )
        (seen,) = oracle.bound
        assert seen.capabilities == {"value", "values"}
        with pytest.raises(AttributeError, match="does not offer 'gradient'"):
            seen.gradient(x)

    def test_needs_may_follow_from_what_the_function_offers(self):
        oracle = Lifting()
        problem = Composite({"a": half_square("value_and_gradient")}, start=x)
        bound, counters = bind(problem, SMOOTH, oracles={"a": choice(oracle)})
        np.testing.assert_allclose(bound.parts.smooth.gradient(x), x)
        assert not bound.parts.smooth.offers("value_and_gradient")
        assert bound.parts.smooth.value(x) == 0.5 * float(x @ x)
        assert counters.table()["evaluations"] == {"a": {"value": 2, "gradient": 2}}

    def test_it_is_not_gone_around(self):
        oracle = Lifting(supplies=("prox",))
        bound, _ = bind(Composite({"a": L1() @ MAP}), DUAL, oracles={"a": choice(oracle)})
        # prox of 1/2 ||x||^2 instead of that of l1: its conjugate prox is v / (1 + s).
        np.testing.assert_allclose(bound.parts.dual[0].prox_conjugate(x[:3], 3.0), x[:3] / 4.0)

    def test_the_exactness_is_marked_on_the_part(self):
        oracle = Lifting(exactness=Exactness.stochastic)
        problem = Composite({"a": half_square("value"), "b": half_square("gradient")}, start=x)
        bound, _ = bind(problem, SMOOTH, REST, oracles={"a": choice(oracle)})
        assert bound.parts.smooth.exactness is Exactness.stochastic
        assert bound.parts.rest.exactness is Exactness.exact

    def test_facts_of_the_function_travel_unless_the_oracle_states_its_own(self):
        problem = Composite({"a": half_square("value", lipschitz=3.0, convex=True)}, start=x)
        assert parts(problem, SMOOTH, oracles={"a": choice(Lifting())}).smooth.lipschitz == 3.0
        part = parts(problem, SMOOTH, oracles={"a": choice(Lifting(lipschitz=7.0))}).smooth
        assert (part.lipschitz, part.convex) == (7.0, True)

    def test_every_slot_and_term_gets_its_own_generator_and_part(self):
        oracle = Lifting()
        problem = Composite({k: half_square("value") for k in "ab"}, start=x)
        bind(problem, SMOOTH, oracles={k: choice(oracle) for k in "ab"})
        drawn = []
        for role in ("oracle/smooth/a", "oracle/smooth/b"):
            drawn.append(streams(0)(role).random())
        assert drawn[0] != drawn[1]
        assert streams(0)("oracle/smooth/a").random() == drawn[0]
        assert streams(0, 1)("oracle/smooth/a").random() != drawn[0]

    def test_the_oracle_of_a_slot_sees_the_sum_and_charges_every_term(self):
        oracle = Lifting()
        problem = Composite({"a": half_square("value"), "b": 2.0 * half_square("value")}, start=x)
        bound, counters = bind(problem, SMOOTH, oracles={"slot:smooth": choice(oracle)})
        bound.parts.smooth.gradient(x)
        assert oracle.bound[0].value(x) == pytest.approx(1.5 * float(x @ x))
        assert counters.table() == {
            "evaluations": {"a": {"value": 2}, "b": {"value": 2}},
            "calls": {"smooth": {"gradient": 1}},
            "monitor": {},
        }


class TestParts:
    def test_only_what_the_slot_asked_for_is_there(self):
        part = parts(Composite({"a": LeastSquares(A, B)}), Slot("s", ("gradient",))).s
        assert part.capabilities == {"gradient"}
        assert not part.offers("value")
        with pytest.raises(AttributeError, match="does not offer 'value'"):
            part.value(x)

    def test_facts_have_values_even_where_nobody_declared_them(self):
        part = parts(Composite({}, constraints=[Nonnegative()], start=x), REST).rest
        assert (part.lipschitz, part.strongly_convex, part.convex, part.shape, part.extended) == (
            None,
            0.0,
            True,
            None,
            False,
        )

    def test_an_empty_slot_holds_the_zero_function_or_the_whole_space(self):
        slots = [
            Slot("f", ("gradient",), wants=("value_and_gradient",)),
            Slot("g", ("prox",)),
            Slot("each", ("prox",), each=True),
        ]
        slots += [
            Slot("set", ("project", "step")),
            Slot("none", ("evaluate",), empty=None),
            Slot("h", ("prox_conjugate",)),
        ]
        held = parts(Composite({"a": half_square("residual")}, start=x), Slot("r", ("residual",)), *slots)
        assert not held.f.gradient(x).any()
        assert held.f.value_and_gradient(x)[0] == 0.0
        assert held.f.lipschitz == 0.0
        np.testing.assert_array_equal(held.g.prox(x, 1.0), x)
        np.testing.assert_array_equal(held.set.project(x), x)
        np.testing.assert_array_equal(held.set.step(x, d), x + d)
        assert not held.h.prox_conjugate(x, 1.0).any()
        assert held.each == ()
        assert held.none is None

    def test_a_call_is_an_evaluation_where_nothing_stands_between(self):
        bound, counters = bind(Composite({"a": LeastSquares(A, B), "c": L1()}), SMOOTH, REST, assign={"c": "rest"})
        for _ in range(3):
            bound.parts.smooth.gradient(x)
        bound.parts.smooth.value_and_gradient(x)
        bound.parts.rest.prox(x, 1.0)
        assert counters.table()["evaluations"] == {"a": {"gradient": 4, "value": 1}, "c": {"prox": 1}}
        assert counters.table()["calls"] == {"smooth": {"gradient": 3, "value_and_gradient": 1}, "rest": {"prox": 1}}

    def test_moreau_counts_the_prox(self):
        bound, counters = bind(Composite({"a": LeastSquares(A, B), "b": L1() @ MAP}), DUAL)
        for part in bound.parts.dual:
            part.prox_conjugate(part.map(x), 1.0)
        assert counters.table()["evaluations"] == {"a": {"prox": 1}, "b": {"prox_conjugate": 1}}
        assert counters.table()["calls"] == {"dual/a": {"prox_conjugate": 1}, "dual/b": {"prox_conjugate": 1}}

    def test_a_projection_counts_as_one(self):
        bound, counters = bind(Composite({}, constraints={"box": Box(0, 1)}, start=x), REST)
        bound.parts.rest.prox(x, 1.0)
        assert counters.table()["evaluations"] == {"box": {"project": 1}}

    def test_a_pair_from_two_counts_one_of_each(self):
        bound, counters = bind(Composite({"a": half_square("value", "gradient")}, start=x), SMOOTH)
        bound.parts.smooth.value_and_gradient(x)
        assert counters.table()["evaluations"] == {"a": {"value": 1, "gradient": 1}}


class TestSolving:
    """Whole problems through the plan, against CVXPY."""

    def solve(self, problem, solver, limit, **options):
        return infimum.solve(problem, solver=solver, stopping=f"max_iter({limit})", seed=0, **options)

    def test_low_rank_plus_sparse_in_two_blocks(self):
        cp = pytest.importorskip("cvxpy")
        M = np.outer(RNG.standard_normal(5), RNG.standard_normal(4))
        M[1, 2] += 4.0
        problem = Composite(
            {"fit": 5.0 * SquaredL2().translate(M) @ {"L": 1.0, "S": 1.0}, "low": L2(), "sparse": 0.4 * L1()},
            blocks={"L": (5, 4), "S": (5, 4)},
            on={"low": "L", "sparse": "S"},
        )
        result = self.solve(problem, ForwardBackward(), 800)
        L, S = cp.Variable((5, 4)), cp.Variable((5, 4))
        exact = cp.Problem(cp.Minimize(2.5 * cp.sum_squares(L + S - M) + cp.norm(L, "fro") + 0.4 * cp.sum(cp.abs(S))))
        exact.solve(solver="CLARABEL")
        assert result.value == pytest.approx(exact.value, rel=1e-6)
        np.testing.assert_allclose(result.x["S"], S.value, atol=1e-2)

    def test_two_blocks_with_a_set_each(self):
        cp = pytest.importorskip("cvxpy")
        U, V = RNG.standard_normal((10, 2)), RNG.standard_normal((10, 3))
        b = RNG.standard_normal(10)
        problem = Composite(
            {"fit": SquaredL2().translate(b) @ {"u": U, "v": V}},
            constraints={"box": Box(-0.1, 0.1), "cone": Nonnegative()},
            blocks={"u": (2,), "v": (3,)},
            on={"box": "u", "cone": "v"},
        )
        result = self.solve(problem, ForwardBackward(), 2000)
        u, v = cp.Variable(2), cp.Variable(3, nonneg=True)
        exact = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(U @ u + V @ v - b)), [cp.abs(u) <= 0.1])
        exact.solve(solver="CLARABEL")
        assert result.value == pytest.approx(exact.value, rel=1e-6)
        assert result.violation == 0.0

    @pytest.mark.parametrize("lifted", [False, True])
    def test_a_primal_dual_solver_with_maps(self, lifted):
        cp = pytest.importorskip("cvxpy")
        D = np.diff(np.eye(12), axis=0)
        b = np.repeat([0.0, 2.0, 1.0], 4) + 0.1 * RNG.standard_normal(12)
        terms = {"fit": SquaredL2().translate(b), "tv": 0.5 * L1() @ D, "small": 0.1 * L2()}
        if lifted:
            terms["small"] = Function(value=(0.1 * L2()).value, prox=(0.1 * L2()).prox, convex=True)
        result = self.solve(Composite(terms), PrimalDual(), 4000)
        u = cp.Variable(12)
        exact = cp.Minimize(0.5 * cp.sum_squares(u - b) + 0.5 * cp.norm1(cp.diff(u)) + 0.1 * cp.norm(u))
        optimal = cp.Problem(exact).solve(solver="CLARABEL")
        assert result.value == pytest.approx(optimal, rel=1e-6)

    def test_two_overlapping_sets_meet_by_two_proxes(self):
        problem = Composite({}, constraints=[Box(-1.0, 0.5), Box([0.2, -9, -9, -9], [9, 0.0, 9, 9])])
        result = self.solve(problem, TwoProxes(), 200, x0=2 * d)
        assert problem.violation(result.x) <= 1e-9
        assert result.value is None

    def test_gradients_by_an_oracle_go_into_the_sum_with_exact_ones(self):
        loss = LeastSquares(A, B)
        problem = Composite(
            {"a": Function(loss.value, lipschitz=loss.lipschitz), "b": SquaredL2(), "c": 0.1 * L1()}, start=0 * x
        )
        result = self.solve(problem, ForwardBackward(), 3000, oracles={"a": ToGradient()}, assign={"rest": "c"})
        exact = self.solve(Composite({"a": loss, "b": SquaredL2(), "c": 0.1 * L1()}), ForwardBackward(), 3000)
        np.testing.assert_allclose(result.x, exact.x, atol=1e-6)
        assert result.exactness == "approximate"
        assert result.evaluations["a"] == {"value": 8 * 3000}
        assert result.evaluations["b"] == {"gradient": 3000}

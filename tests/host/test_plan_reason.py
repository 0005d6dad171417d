"""Refusals: the sentence, what would help, and that it is the same wherever it is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from toys import ForwardBackward, Lifting, Slots, ToGradient, TwoProxes, choice, half_square

import infimum
from infimum import Composite, Exactness, PlanError, Slot
from infimum.constraints import Box
from infimum.counters import Counters
from infimum.functions import L1, LeastSquares
from infimum.plan.bind import Bound, streams
from infimum.plan.plan import make_plan

TV = infimum.Function(lambda x: float(np.abs(np.diff(x)).sum()), shape=(3,))
LOSS = LeastSquares(np.eye(3), np.ones(3))


def refusal(problem, slots, **options):
    with pytest.raises(PlanError) as caught:
        make_plan(problem, Slots(tuple(slots)), solver_name="toy.solver", **options)
    return caught.value


class TestTheDesignsExample:
    """The refusal as the design prints it."""

    problem = Composite({"loss": LOSS, "tv": TV})
    text = (
        "toy.two_proxes needs prox of term 'tv', which offers only value.\n"
        "  installed oracles that supply prox: toy.to_prox (stochastic)      add  oracles: {tv: toy.to_prox}"
    )

    def test_solve_prepare_and_explain_say_the_same(self, toy_registry):
        said = []
        for call in (infimum.solve, infimum.prepare, infimum.explain):
            with pytest.raises(PlanError) as caught:
                call(self.problem, solver="toy.two_proxes")
            said.append(str(caught.value))
            assert caught.value.reason == self.text.splitlines()[0]
        assert set(said) == {self.text}

    def test_so_does_the_list_of_all_solvers(self, toy_registry):
        # Without any oracle that helps, the row is the refusal.
        problem = Composite({"tv": infimum.Function(subgradient=lambda x: x, shape=(3,))})
        (row,) = [row for row in infimum.explain(problem).rows if row.solver == "toy.two_proxes"]
        with pytest.raises(PlanError) as caught:
            infimum.explain(problem, "toy.two_proxes")
        assert row.reason == str(caught.value)
        assert row.verdict == "cannot"

    def test_solvers_that_would_take_it_are_named(self, toy_registry):
        problem = Composite({"loss": LOSS, "ridge": half_square("gradient")})
        with pytest.raises(PlanError) as caught:
            infimum.solve(problem, solver="toy.two_proxes")
        assert caught.value.remedies[-1] == "solvers that take the problem as it is: toy.descent, toy.forward_backward"

    def test_what_it_says_to_add_is_what_works(self, toy_registry):
        made = infimum.explain(self.problem, "toy.two_proxes", oracles={"tv": "toy.to_prox"})
        assert made.placements[1].oracle == "toy.to_prox"


class TestATermWithoutAPlace:
    def test_several_slots_with_different_needs(self):
        error = refusal(Composite({"a": half_square("value")}), ForwardBackward().slots())
        assert (
            error.reason
            == "toy.solver needs gradient (slot smooth) or prox (slot rest) of term 'a', which offers only value."
        )
        assert error.remedies == ("no installed oracle supplies gradient or prox of 'a'",)

    def test_slots_with_the_same_needs_are_not_told_apart(self):
        error = refusal(Composite({"a": half_square("value")}), TwoProxes().slots())
        assert error.reason == "toy.solver needs prox of term 'a', which offers only value."

    def test_constraints_are_called_so(self):
        error = refusal(Composite({}, constraints=[Box(0, 1)]), [Slot("s", ("tangent",))])
        assert error.reason.startswith(
            "toy.solver needs tangent of constraint 'box', which offers only bounds, project,"
        )

    def test_slots_that_only_sets_could_fill_are_not_offered_to_functions(self):
        slots = [Slot("cost", ("coefficients",)), Slot("bounds", ("bounds",)), Slot("linear", ("violation", "rows"))]
        error = refusal(Composite({"a": half_square("value")}), slots)
        assert error.reason == "toy.solver needs coefficients of term 'a', which offers only value."

    def test_nor_are_slots_for_functions_to_sets(self):
        slots = [Slot("smooth", ("gradient",)), Slot("moves", ("tangent",))]
        error = refusal(Composite({}, constraints=[Box(0, 1)]), slots)
        assert error.reason.startswith("toy.solver needs tangent of constraint 'box', which offers only bounds,")

    def test_where_no_slot_could_be_filled_all_are_named(self):
        slots = [Slot("smooth", ("gradient",)), Slot("more", ("subgradient", "own_name"))]
        error = refusal(Composite({}, constraints=[Box(0, 1)]), slots)
        assert error.reason.startswith(
            "toy.solver needs gradient (slot smooth) or subgradient and own_name (slot more) of constraint 'box'"
        )

    def test_helping_oracles_must_be_able_to_help(self):
        oracles = [
            choice(Lifting(), "toy.gradient"),
            choice(Lifting(needs=("residual",)), "toy.needs_more"),
            choice(Lifting(refusal="no"), "toy.refuses"),
            choice(Lifting(supplies=("prox",)), "toy.prox"),
        ]
        error = refusal(Composite({"a": half_square("value")}), [Slot("s", ("gradient",))], installed=oracles)
        (line,) = error.remedies
        assert line.startswith(
            "installed oracles that supply gradient: toy.gradient (approximate)      add  oracles: {a: toy.gradient}"
        )
        assert "needs_more" not in line

    def test_an_oracle_helps_through_an_exact_rule_too(self):
        prox = choice(Lifting(supplies=("prox",)), "toy.prox")
        error = refusal(Composite({"a": half_square("value")}), [Slot("s", ("prox_conjugate",))], installed=[prox])
        assert "installed oracles that supply prox_conjugate: toy.prox" in error.remedies[0]

    def test_oracles_that_are_too_rough_are_told_with_the_reason(self):
        slot = Slot("s", ("gradient",), accepts=Exactness.exact)
        error = refusal(Composite({"a": half_square("value")}), [slot], installed=[choice(Lifting(), "toy.gradient")])
        expected = "toy.gradient (approximate) would supply gradient, but slot 's' accepts exact at worst"
        assert error.remedies == (expected,)

    def test_a_named_oracle_explains_itself_slot_by_slot(self):
        error = refusal(
            Composite({"a": half_square("value")}),
            [Slot("f", ("prox",)), Slot("g", ("prox",)), Slot("h", ("hvp",))],
            oracles={"a": choice(Lifting(), "toy.gradient")},
        )
        expected = "cannot take term 'a': in slot 'f', 'g' or 'h' it gets only gradient from oracle toy.gradient"
        assert error.reason == f"toy.solver {expected}"

    def test_an_oracle_whose_needs_are_not_met(self):
        error = refusal(
            Composite({"a": half_square("gradient")}), [Slot("f", ("prox",))], oracles={"a": choice(Lifting(), "toy.g")}
        )
        assert "it offers no value, which oracle toy.g needs" in error.reason

    def test_only_what_is_missing_is_asked_for(self):
        error = refusal(Composite({"a": half_square("gradient")}), [Slot("s", ("gradient", "hvp"))])
        assert error.reason.startswith("toy.solver needs hvp of term 'a'")


class TestASlotThatReads:
    """A slot may refuse a function for a reason of its own, since it reads what stands there."""

    @staticmethod
    def reads(function):
        return None if isinstance(function, LeastSquares) else f"{function!r} is no least squares"

    def test_the_reason_is_in_the_refusal(self):
        slot = Slot("terms", needs=("value",), each=True, refuses=self.reads)
        error = refusal(Composite({"loss": LOSS, "tv": TV}), [slot])
        assert error.reason == (
            "toy.solver cannot take term 'tv': in slot 'terms' it cannot stand: Function(value) is no least squares"
        )

    def test_what_it_takes_is_found_behind_the_part(self):
        made = make_plan(Composite({"loss": LOSS}), Slots((Slot("terms", needs=("value",), refuses=self.reads),)))
        bound = Bound(made, np.zeros(3), streams(0), Counters())
        assert bound.parts.terms.origin is LOSS


class TestNotAllAtOnce:
    def test_too_many_for_one_slot(self):
        problem = Composite({"loss": LOSS, "a": L1(), "b": L1()})
        error = refusal(problem, ForwardBackward().slots())
        assert error.reason == "toy.solver: 'a' and 'b' each fit only slot 'rest', which takes at most 1"

    def test_a_term_and_a_set_for_one_slot(self):
        problem = Composite({"loss": LOSS, "a": L1()}, constraints={"box": Box(0, 1)})
        error = refusal(problem, ForwardBackward().slots())
        assert "'a' and 'box' each fit only slot 'rest'" in error.reason
        assert "intersection" not in error.reason

    def test_too_many_for_all_slots_together(self):
        error = refusal(Composite({k: L1() for k in "abc"}), TwoProxes().slots())
        assert error.reason == (
            "toy.solver has no place for 'a', 'b' and 'c' together: slot 'first' takes exactly 1 with prox; "
            "slot 'second' takes at most 1 with prox"
        )

    def test_sums_that_are_fine_are_not_blamed(self):
        # Two gradients add up; it is the proxes that are too many.
        terms = {"a": half_square("gradient"), "b": half_square("gradient"), **{k: L1() for k in "cde"}}
        slots = [Slot("smooth", ("gradient",)), *TwoProxes().slots()]
        error = refusal(Composite(terms), slots)
        assert "would hold the sum" not in error.reason
        assert "any number of terms with gradient" in error.reason


class TestFamilies:
    def test_a_solver_of_another_family(self):
        class Game(infimum.Problem):
            family = "game"
            name = "nim"

        with pytest.raises(PlanError, match=r"toy takes problems of family 'composite'; nim is of family 'game'"):
            make_plan(Game(), Slots(), solver_name="toy")


def test_an_error_reads_as_one_text():
    error = PlanError("one reason", ["do this", "or that"])
    assert str(error) == "one reason\n  do this\n  or that"
    assert (error.reason, error.remedies) == ("one reason", ("do this", "or that"))


def test_oracles_of_a_solver_by_name_in_the_plan(toy_registry):
    made = infimum.explain(Composite({"a": TV}), ForwardBackward(), oracles={"a": ToGradient()})
    assert "by oracle ToGradient in dimension 3" in str(made)

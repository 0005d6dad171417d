"""Matching: against an exhaustive search on small problems, and the rules one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import Lifting, Slots, choice, half_square

from infimum import Composite, Exactness, InputError, PlanError, Slot
from infimum.constraints import Box, Nonnegative
from infimum.functions import L1, LeastSquares, SquaredL2
from infimum.plan.match import Lift, Matcher, Missing, beside, lift
from infimum.plan.plan import make_plan

CAPABILITIES = ("value", "gradient", "value_and_gradient", "prox", "residual")
SUMMABLE = {"value", "gradient", "value_and_gradient"}


def plan(terms, slots, **options):
    problem = terms if isinstance(terms, Composite) else Composite(terms)
    return make_plan(problem, Slots(tuple(slots)), solver_name="toy.solver", **options)


def seats(made):
    """Slot by term, with the oracle behind it."""
    return {one.term: (one.slot, one.oracle) for one in made.placements if not one.term.startswith("slot:")}


# The reference: all assignments, one after the other, judged from the definitions.
def closed(offers):
    """Everything that follows exactly from `offers`, for the five names of this test."""
    out = set(offers)
    if "value_and_gradient" in out:
        out |= {"value", "gradient"}
    if {"value", "gradient"} <= out:
        out.add("value_and_gradient")
    return out


def way_is_good(offers, slot, oracle):
    """Whether a term with `offers` may stand in `slot`, by itself (None) or through an oracle."""
    if oracle is None:
        return set(slot.needs) <= closed(offers)
    supplied = set(oracle.supplies)
    if not set(oracle.needs) <= closed(offers) or oracle.exactness > slot.accepts:
        return False
    own = {name for name in closed(offers) if not closed({name}) & supplied}
    used = not set(slot.needs) <= closed(own) or set(slot.needs) & closed(supplied)
    return set(slot.needs) <= closed(own | supplied) and bool(used)


def seated_well(slots, seating, offers):
    """Whether numbers are right and every joined slot has what it needs."""
    for slot in slots:
        here = [k for k, (where, _) in enumerate(seating) if where is slot]
        if len(here) < slot.at_least or (slot.at_most is not None and len(here) > slot.at_most):
            return False
        if len(here) > 1 and not slot.each and not set(slot.needs) <= SUMMABLE:
            return False
    return True


def exhaustive(offers, slots, named, allowed, assign):
    best = None
    for seating in product(
        *([(slot, way) for slot in slots for way in [None, *allowed, *named.values()]] for _ in offers)
    ):
        wrong = False
        for k, (slot, way) in enumerate(seating):
            name = f"t{k}"
            may = [named[name]] if name in named else [None, *allowed]
            wrong |= not any(way is one for one in may) or assign.get(name, slot.name) != slot.name
            wrong = wrong or not way_is_good(offers[k], slot, way and way.oracle)
        if wrong or not seated_well(slots, seating, offers):
            continue
        used = [way for _, way in seating if way is not None]
        worst = max((one.oracle.exactness for one in used if not one.named), default=Exactness.exact)
        if best is None or (len(used), worst) < best[0]:
            best = (
                (len(used), worst),
                {f"t{k}": (slot.name, way and way.name) for k, (slot, way) in enumerate(seating)},
            )
    return best and best[1]


names = st.lists(st.sampled_from(CAPABILITIES), min_size=1, max_size=3, unique=True).map(tuple)
levels = st.sampled_from(list(Exactness))


@st.composite
def small_problems(draw):
    offers = draw(st.lists(names, min_size=1, max_size=3))
    slots = []
    for k in range(draw(st.integers(1, 3))):
        most = draw(st.sampled_from([None, 1, 2]))
        least = draw(st.sampled_from([0, 0, 1]))
        needs = draw(st.lists(st.sampled_from(CAPABILITIES), min_size=1, max_size=2, unique=True))
        slots.append(
            Slot(f"s{k}", tuple(needs), at_least=least, at_most=most, each=draw(st.booleans()), accepts=draw(levels))
        )
    oracle = st.builds(
        Lifting,
        needs=st.lists(st.sampled_from(CAPABILITIES), min_size=1, max_size=2, unique=True).map(tuple),
        supplies=st.lists(st.sampled_from(CAPABILITIES), min_size=1, max_size=2, unique=True).map(tuple),
        exactness=levels,
    )
    allowed = [choice(one, f"o{k}", named=False) for k, one in enumerate(draw(st.lists(oracle, max_size=2)))]
    allowed.sort(key=lambda one: (one.oracle.exactness, one.name))
    named = {f"t{k}": choice(draw(oracle), f"n{k}") for k in range(len(offers)) if draw(st.integers(0, 4)) == 0}
    assign = {
        f"t{k}": f"s{draw(st.integers(0, len(slots) - 1))}" for k in range(len(offers)) if draw(st.integers(0, 5)) == 0
    }
    return offers, slots, named, allowed, assign


@settings(max_examples=300, deadline=None)
@given(small_problems())
def test_it_finds_what_an_exhaustive_search_finds(drawn):
    offers, slots, named, allowed, assign = drawn
    problem = Composite({f"t{k}": half_square(*one) for k, one in enumerate(offers)})
    expected = exhaustive(offers, slots, named, allowed, assign)
    options = {"oracles": named, "allowed": allowed, "assign": assign}
    if expected is None:
        with pytest.raises(PlanError, match=r"toy\.solver"):
            plan(problem, slots, **options)
        return
    made = plan(problem, slots, **options)
    assert seats(made) == expected
    assert sorted(t.name for here in made.assignment.terms.values() for t in here) == sorted(expected)
    assert made.exactness == max(one.exactness for one in made.placements)


SMOOTH = Slot("smooth", ("gradient",), wants=("value_and_gradient",), at_least=1)
REST = Slot("rest", ("prox",), at_most=1)
FIRST, SECOND = Slot("first", ("prox",), at_most=1), Slot("second", ("prox",), at_most=1)
GRADIENT = choice(Lifting(), "toy.gradient", named=False)
PROX = choice(Lifting(supplies=("prox",), exactness=Exactness.stochastic), "toy.prox", named=False)


class TestOrder:
    def test_terms_then_slots_in_the_order_given(self):
        both = half_square("gradient", "prox")
        assert seats(plan({"a": both, "b": both}, [SMOOTH, REST])) == {"a": ("smooth", None), "b": ("smooth", None)}
        assert seats(plan({"a": L1(), "b": both}, [SMOOTH, REST])) == {"a": ("rest", None), "b": ("smooth", None)}
        assert seats(plan({"a": both, "b": both}, [FIRST, SECOND])) == {"a": ("first", None), "b": ("second", None)}

    def test_it_goes_back_when_a_later_term_finds_no_place(self):
        # `a` could take the only place of `b`.
        a, b = half_square("prox", "residual"), half_square("prox")
        slots = [FIRST, Slot("other", ("residual",))]
        assert seats(plan({"a": a, "b": b}, slots)) == {"a": ("other", None), "b": ("first", None)}

    def test_a_slot_that_must_be_filled_draws_a_term_from_an_earlier_slot(self):
        both = half_square("gradient", "prox")
        slots = [REST, Slot("smooth", ("gradient",), at_least=1)]
        assert seats(plan({"a": both, "b": both}, slots)) == {"a": ("rest", None), "b": ("smooth", None)}
        assert seats(plan({"a": both}, slots)) == {"a": ("smooth", None)}

    def test_many_terms_that_cannot_be_placed_are_refused_quickly(self):
        terms = {f"t{k}": half_square("gradient", "prox") for k in range(40)}
        with pytest.raises(PlanError):
            plan(terms, [SMOOTH, REST, Slot("cut", ("residual",), at_least=1)])
        slots = [Slot(f"s{k}", ("prox",), at_most=1) for k in range(3)]
        with pytest.raises(PlanError, match="no place for"):
            plan(terms, slots)


class TestAssign:
    def test_the_user_decides(self):
        both = half_square("gradient", "prox")
        made = plan({"a": both, "b": both}, [SMOOTH, REST], assign={"a": "rest"})
        assert seats(made) == {"a": ("rest", None), "b": ("smooth", None)}

    def test_what_does_not_fit_there_is_refused_with_both_reasons(self):
        with pytest.raises(
            PlanError, match=r"needs gradient of term 'a', which offers only prox, prox_conjugate, value, values"
        ):
            plan({"a": L1(), "b": half_square("gradient")}, [SMOOTH, REST], assign={"a": "smooth"})

    @pytest.mark.parametrize(
        ("assign", "message"),
        [
            ({"a": "rst"}, r"toy\.solver has no slot 'rst'; did you mean 'rest'\?"),
            ({"los": "rest"}, r"the problem has no term 'los'; did you mean 'loss'\?"),
        ],
    )
    def test_unknown_names_are_answered_with_the_nearest(self, assign, message):
        with pytest.raises(InputError, match=message):
            plan({"loss": half_square("gradient"), "a": L1()}, [SMOOTH, REST], assign=assign)


class TestNumbers:
    def test_at_most_counts_disjoint_blocks_that_are_joined_as_one(self):
        blocks = {"u": (2,), "v": (3,)}
        terms = {"loss": half_square("gradient"), "a": L1(), "b": L1()}
        problem = Composite(terms, blocks=blocks, on={"a": "u", "b": "v"})
        assert seats(plan(problem, [SMOOTH, REST]))["b"] == ("rest", None)
        with pytest.raises(PlanError, match="'a' and 'b' each fit only slot 'rest', which takes at most 1"):
            plan(Composite(terms, blocks=blocks, on={"a": "u", "b": "u"}), [SMOOTH, REST])

    def test_in_a_slot_that_keeps_its_terms_apart_every_term_counts(self):
        blocks = {"u": (2,), "v": (3,)}
        problem = Composite({"a": L1(), "b": L1()}, blocks=blocks, on={"a": "u", "b": "v"})
        two = [Slot("all", ("prox",), at_least=2, each=True)]
        assert len(plan(problem, two).placements) == 2
        with pytest.raises(PlanError, match="at most 1"):
            plan(problem, [Slot("all", ("prox",), at_most=1, each=True)])

    def test_at_least_counts_too(self):
        with pytest.raises(PlanError, match=r"needs 2 terms with prox for slot 'all'; fitting: 'a'"):
            plan({"a": L1()}, [Slot("all", ("prox",), at_least=2, each=True)])
        with pytest.raises(PlanError, match=r"needs a term with gradient for slot 'smooth'; fitting: none"):
            plan({"a": L1()}, [SMOOTH, REST])

    def test_what_cannot_be_summed_is_not_joined(self):
        with pytest.raises(PlanError, match="would hold the sum of 'a' and 'b', and the sum has no prox"):
            plan({"a": L1(), "b": L1()}, [Slot("rest", ("prox",))])
        assert len(plan({"a": L1(), "b": L1()}, [Slot("rest", ("prox",), each=True)]).placements) == 2

    def test_two_sets_are_never_projected_in_turn(self):
        problem = Composite({"f": half_square("gradient")}, constraints=[Box(0.0, 1.0), Nonnegative()])
        with pytest.raises(
            PlanError, match=r"'box' and 'nonnegative' each fit only slot 'rest'.*projecting on one set after"
        ):
            plan(problem, [SMOOTH, REST])
        with pytest.raises(PlanError, match="the sum has no project"):
            plan(problem, [SMOOTH, Slot("sets", ("project",))])
        assert seats(plan(problem, [SMOOTH, FIRST, SECOND]))["nonnegative"] == ("second", None)
        apart = Composite(
            {"f": half_square("gradient")},
            constraints=[Box(0.0, 1.0), Nonnegative()],
            blocks={"u": (1,), "v": (1,)},
            on={"box": "u", "nonnegative": "v"},
        )
        assert seats(plan(apart, [SMOOTH, REST]))["nonnegative"] == ("rest", None)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Slot("s", ()), "slot 's' needs nothing"),
            (lambda: Slot("s", ("prox",), at_least=2, at_most=1), "at_least=2, at_most=1 admit no term"),
            (lambda: Slot("s", ("prox",), at_most=0), "at_least=0, at_most=0 admit no term"),
            (lambda: Slot("s", ("prox",), takes_map=True), "takes maps, which sums do not have"),
        ],
    )
    def test_slots_without_sense_are_refused(self, make, message):
        with pytest.raises(InputError, match=message):
            make()


class TestOracles:
    def test_none_stands_where_nobody_asked(self):
        with pytest.raises(PlanError):
            plan({"a": half_square("value")}, [SMOOTH], installed=[GRADIENT])

    def test_auto_fills_gaps_only_and_with_as_few_as_can_be(self):
        terms = {"a": half_square("value"), "b": half_square("gradient", "value"), "c": L1()}
        made = plan(terms, [SMOOTH, REST], allowed=[PROX, GRADIENT])
        assert seats(made) == {"a": ("smooth", "toy.gradient"), "b": ("smooth", None), "c": ("rest", None)}
        assert made.oracles == 1
        assert made.exactness is Exactness.approximate

    def test_auto_prefers_the_more_exact_to_the_earlier_slot(self):
        terms = {"b": half_square("gradient"), "a": half_square("value")}
        sharp = choice(Lifting(supplies=("prox",), exactness=Exactness.tolerance), "toy.sharp", named=False)
        assert seats(plan(terms, [SMOOTH, REST], allowed=[GRADIENT, sharp]))["a"] == ("rest", "toy.sharp")
        assert seats(plan(terms, [SMOOTH, REST], allowed=[GRADIENT, PROX]))["a"] == ("smooth", "toy.gradient")
        two = [choice(Lifting(exactness=level), f"toy.{level}", named=False) for level in (3, 2, 0, 1)]
        assert seats(plan(terms, [SMOOTH], allowed=two))["a"] == ("smooth", "toy.0")

    def test_fewer_oracles_come_before_more_exact_ones(self):
        # One stochastic oracle rather than two approximate ones.
        terms = {"a": half_square("value", "prox"), "b": half_square("value")}
        slots = [Slot("smooth", ("gradient",)), Slot("rest", ("prox",), at_most=1)]
        rough = choice(Lifting(exactness=Exactness.stochastic), "toy.rough", named=False)
        assert seats(plan(terms, slots, allowed=[rough])) == {"a": ("rest", None), "b": ("smooth", "toy.rough")}

    def test_a_slot_says_how_rough_it_may_be(self):
        strict = Slot("smooth", ("gradient",), accepts=Exactness.tolerance)
        with pytest.raises(
            PlanError, match=r"would be approximate through oracle toy.gradient, but slot 'smooth' accepts tolerance"
        ):
            plan({"a": half_square("value")}, [strict], oracles={"a": choice(Lifting(), "toy.gradient")})
        with pytest.raises(PlanError):
            plan({"a": half_square("value")}, [strict], allowed=[GRADIENT])

    def test_a_function_that_is_itself_rough_counts(self):
        rough = half_square("gradient")
        rough.exactness = Exactness.stochastic
        assert plan({"a": rough}, [SMOOTH]).exactness is Exactness.stochastic
        with pytest.raises(PlanError, match="is stochastic, but slot 'smooth' accepts exact at worst"):
            plan({"a": rough}, [Slot("smooth", ("gradient",), accepts=Exactness.exact)])

    def test_a_named_oracle_is_used_in_place_of_the_function_s_own_and_said(self):
        named = choice(Lifting(), "toy.gradient")
        made = plan({"a": half_square("value", "gradient")}, [SMOOTH], oracles={"a": named})
        assert seats(made) == {"a": ("smooth", "toy.gradient")}
        assert made.placements[0].replaces == ("gradient",)
        assert "(in place of its own gradient)" in str(made)
        pair = plan({"a": half_square("value_and_gradient")}, [SMOOTH], oracles={"a": named})
        assert pair.placements[0].replaces == ("gradient",)

    def test_an_oracle_for_a_term_that_has_no_use_for_it(self):
        named = choice(Lifting(), "toy.gradient")
        with pytest.raises(
            PlanError, match=r"in slot 'rest' it has no use for what oracle toy\.gradient supplies"
        ) as caught:
            plan({"b": half_square("prox"), "a": half_square("value", "prox")}, [REST], oracles={"a": named})
        assert caught.value.remedies[0] == "take 'a' out of oracles to see what fits without"

    def test_an_oracle_may_refuse(self):
        fussy = choice(Lifting(refusal="it is too rough"), "toy.fussy")
        with pytest.raises(PlanError, match=r"is refused by oracle toy.fussy: it is too rough"):
            plan({"a": half_square("value")}, [SMOOTH], oracles={"a": fussy})
        assert seats(plan({"a": half_square("value")}, [SMOOTH], allowed=[fussy, GRADIENT]))["a"][1] == "toy.gradient"

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ("los", r"the problem has no term 'los'; did you mean 'loss'\?"),
            ("slot:smoth", r"toy\.solver has no slot 'smoth'; did you mean 'smooth'\?"),
            ("smooth", r"no term 'smooth'; for the sum in a slot write 'slot:smooth'"),
            ("slot:apart", r"slot 'apart' of toy\.solver keeps its terms apart; name terms in place of 'slot:apart'"),
        ],
    )
    def test_unknown_places_are_answered_with_the_nearest(self, key, message):
        slots = [SMOOTH, Slot("apart", ("prox",), each=True)]
        with pytest.raises(InputError, match=message):
            plan({"loss": half_square("gradient")}, slots, oracles={key: choice(Lifting())})


class TestWants:
    OFFERED = half_square("value", "gradient", "value_and_gradient")

    def derivations(self, body, **options):
        return set(plan({"a": body}, [SMOOTH], **options).assignment.lifts["a"].derivations)

    def test_they_come_along_from_the_function(self):
        assert self.derivations(self.OFFERED) == {"gradient", "value_and_gradient"}
        assert self.derivations(half_square("value", "gradient")) == {"gradient", "value_and_gradient"}
        assert self.derivations(half_square("gradient")) == {"gradient"}

    def test_no_oracle_is_chosen_for_them(self):
        both = choice(Lifting(needs=("gradient",), supplies=("value_and_gradient",)), "toy.both", named=False)
        made = plan({"a": half_square("gradient")}, [SMOOTH], allowed=[both])
        assert seats(made) == {"a": ("smooth", None)}
        assert set(made.assignment.lifts["a"].derivations) == {"gradient"}

    def test_beside_an_oracle_only_what_it_supplies_itself_or_what_it_does_not_touch(self):
        named = {"a": choice(Lifting())}
        assert self.derivations(self.OFFERED, oracles=named) == {"gradient"}
        native = {"a": choice(Lifting(supplies=("gradient", "value_and_gradient")))}
        assert self.derivations(half_square("value"), oracles=native) == {"gradient", "value_and_gradient"}
        wanting = Slot("smooth", ("gradient",), wants=("value", "hvp"))
        body = half_square("value", "gradient", "hvp")
        made = plan({"a": body}, [wanting], oracles=named)
        assert set(made.assignment.lifts["a"].derivations) == {"gradient", "value", "hvp"}

    def test_what_the_function_offers_beside_an_oracle_never_goes_around_it(self):
        assert set(beside(frozenset({"gradient"}), frozenset({"value_and_gradient", "hvp"}))) == {"value", "hvp"}
        assert set(beside(frozenset({"prox"}), frozenset({"project", "value"}))) == {"value", "step"}
        assert set(beside(frozenset({"prox"}), frozenset({"prox", "value"}))) == {"value"}
        pair = Slot("s", ("value_and_gradient",))
        lifted = lift(frozenset({"value_and_gradient"}), pair, choice(Lifting()), half_square("value_and_gradient"))
        assert isinstance(lifted, Lift)
        assert lifted.derivations["value_and_gradient"].leaves == {"value", "gradient"}

    def test_a_named_oracle_comes_before_a_closed_form_that_would_do_without_it(self):
        dual = Slot("dual", ("prox_conjugate",), each=True, takes_map=True)
        made = plan({"a": L1()}, [dual], oracles={"a": choice(Lifting(supplies=("prox",)), "toy.prox")})
        assert made.placements[0].gets == ("prox_conjugate (Moreau)",)
        assert made.placements[0].replaces == ("prox",)


class TestOracleOfASlot:
    def test_it_lifts_the_sum(self):
        terms = {"a": half_square("value"), "b": half_square("value", "gradient")}
        made = plan(terms, [SMOOTH], oracles={"slot:smooth": choice(Lifting(), "toy.gradient")})
        assert [(one.term, one.oracle, one.gets) for one in made.placements] == [
            ("a", None, ("value",)),
            ("b", None, ("value",)),
            ("slot:smooth", "toy.gradient", ("gradient",)),
        ]
        assert made.exactness is Exactness.approximate

    def test_it_says_what_it_replaces(self):
        terms = {"a": half_square("value", "gradient"), "b": half_square("value", "gradient")}
        made = plan(terms, [SMOOTH], oracles={"slot:smooth": choice(Lifting(), "toy.gradient")})
        assert made.placements[-1].replaces == ("gradient",)

    def test_every_term_must_have_what_it_needs(self):
        terms = {"a": half_square("value"), "b": half_square("gradient")}
        with pytest.raises(PlanError, match="needs value of term 'b', which offers only gradient"):
            plan(terms, [SMOOTH], oracles={"slot:smooth": choice(Lifting())})

    def test_a_term_under_two_oracles_is_refused(self):
        oracles = {"slot:smooth": choice(Lifting(), "toy.one"), "a": choice(Lifting(), "toy.two")}
        with pytest.raises(PlanError, match=r"would stand under two oracles: its own toy\.two and the slot's toy\.one"):
            plan({"a": half_square("value")}, [SMOOTH], oracles=oracles)

    def test_a_slot_with_an_oracle_does_not_stay_empty(self):
        terms = {"a": half_square("gradient")}
        with pytest.raises(PlanError, match=r"oracle toy.prox cannot serve slot 'rest': it stays empty"):
            plan(terms, [SMOOTH, REST], oracles={"slot:rest": choice(Lifting(supplies=("prox",)), "toy.prox")})

    def test_what_it_cannot_supply_is_said(self):
        oracles = {"slot:smooth": choice(Lifting(supplies=("prox",)), "toy.prox")}
        with pytest.raises(PlanError, match=r"oracle toy\.prox cannot serve slot 'smooth': it gets only prox"):
            plan({"a": half_square("value")}, [SMOOTH], oracles=oracles)

    def test_its_refusal_sees_the_sum(self):
        seen = []

        class Looking(Lifting):
            def refuses(self, function):
                seen.append((function.convex, function.lipschitz))
                return None

        terms = {k: half_square("value", convex=True, lipschitz=1.0) for k in "ab"}
        plan(terms, [SMOOTH], oracles={"slot:smooth": choice(Looking())})
        assert seen[-1] == (True, 2.0)


class TestMaps:
    A = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    DUAL = Slot("dual", ("prox_conjugate",), each=True, takes_map=True)

    def test_a_slot_that_takes_the_map_sees_f_alone(self):
        made = plan({"a": L1() @ self.A}, [self.DUAL])
        assert made.placements[0].gets == ("prox_conjugate",)
        lifted = plan(
            {"a": half_square("value") @ self.A}, [self.DUAL], oracles={"a": choice(Lifting(supplies=("prox",)))}
        )
        assert lifted.placements[0].gets == ("prox_conjugate (Moreau)",)
        assert lifted.placements[0].dimension == 2

    def test_elsewhere_a_closed_form_of_f_is_no_closed_form_of_f_after_a_map(self):
        with pytest.raises(PlanError, match="needs prox of term 'a', which offers only value, values"):
            plan({"a": L1() @ self.A}, [REST])
        lifted = plan({"a": L1() @ self.A}, [REST], oracles={"a": choice(Lifting(supplies=("prox",)))})
        assert lifted.placements[0].dimension == 3
        semi = plan({"a": L1() @ np.eye(3)[:2]}, [REST])
        assert semi.placements[0].gets == ("prox (semi-orthogonal map)",)

    def test_a_function_with_a_data_matrix_is_no_composition(self):
        loss = LeastSquares(np.eye(3), np.ones(3))
        assert plan({"a": loss}, [self.DUAL]).placements[0].gets == ("prox_conjugate (Moreau)",)

    def test_rules_are_named_as_the_slot_sees_them(self):
        smooth = {"a": SquaredL2() @ self.A, "b": 0.5 * SquaredL2()}
        assert plan(smooth, [SMOOTH]).placements[0].gets == ("gradient (chain rule)",)
        assert plan({"a": 2.0 * L1() @ self.A}, [self.DUAL]).placements[0].gets == ("prox_conjugate (scaling)",)
        assert plan({"a": L1().translate(1.0)}, [REST]).placements[0].gets == ("prox (translation)",)
        box = Composite({}, constraints=[Box(0.0, 1.0)])
        assert plan(box, [REST]).placements[0].gets == ("prox (projection)",)


class TestPlan:
    def test_the_weakest_resume_counts(self):
        assert plan({"a": half_square("gradient")}, [SMOOTH]).resume == "exact"
        oracles = {"a": choice(Lifting(resume="none"))}
        assert plan({"a": half_square("value")}, [SMOOTH], oracles=oracles).resume == "none"

    def test_it_prints_and_turns_into_data(self):
        made = plan({"a": L1(), "b": half_square("gradient")}, [REST, SMOOTH, Slot("more", ("residual",))])
        assert str(made).splitlines()[0] == "plan: toy.solver on Composite"
        assert "empty slots: more" in str(made)
        data = made.to_dict()
        assert [one["slot"] for one in data["placements"]] == ["rest", "smooth"]
        assert data["exactness"] == "exact"

    def test_a_matcher_says_why_a_slot_is_closed(self):
        matcher = Matcher(Composite({"a": L1()}), [SMOOTH, REST], {})
        missing = matcher.options["a"]["smooth"]
        assert isinstance(missing, Missing)
        assert missing.capabilities == ("gradient",)
        assert [slot.name for slot in matcher.places(matcher.terms[0])] == ["rest"]

"""`infimum.explain`: what every installed solver would do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from toys import make_registry

import infimum
from infimum import Composite, Exactness, Function, InputError, PlanError
from infimum.explanation import able, explain_all, installed_oracles
from infimum.functions import L1, LeastSquares, SquaredL2
from infimum.plugins.records import Component

TV = Function(lambda x: float(np.abs(np.diff(x)).sum()), shape=(3,))
LOSS = LeastSquares(np.eye(3), np.ones(3))


@pytest.fixture(autouse=True)
def _toys(toy_registry):
    pass


def verdicts(problem, **options):
    return {
        row.solver: (row.verdict, row.plan and row.plan.exactness) for row in infimum.explain(problem, **options).rows
    }


def test_a_term_with_a_value_only():
    text = str(infimum.explain(Composite({"loss": LOSS, "tv": TV}, name="mine")))
    assert text.splitlines()[:3] == [
        "mine",
        "  term loss           gradient, hvp, jacobian, jvp, linear_system, prox, residual, value, value_and_gradient, "
        "values, vjp",
        "  term tv             value",
    ]
    assert text.splitlines()[3] == "takes it with an oracle:"
    assert "  toy.descent                      approximate  with tv: toy.to_gradient (approximate)" in text
    assert "  toy.two_proxes                   stochastic  with tv: toy.to_prox (stochastic)" in text
    assert "by oracle toy.to_prox in dimension 3" in text
    assert "takes it as it is" not in text


def test_a_step_that_is_missing_does_not_hide_the_oracle():
    problem = Composite({"loss": LOSS, "tv": TV})
    registry = make_registry(
        Component("real.descent", "solver", "infimum_splitting:GradientDescent", plugin="real", distribution="real")
    )
    text = str(explain_all(problem, registry=registry))
    assert "takes it once an option is set:\n  real.descent: splitting.gradient_descent: step='auto' is 1/L" in text
    assert text.endswith("\n      and with tv: toy.to_gradient (approximate)")


def test_each_solver_gets_its_verdict_most_exact_first():
    problem = Composite({"loss": LOSS, "tv": TV})
    assert list(verdicts(problem).items()) == [
        ("toy.descent", ("with oracles", Exactness.approximate)),
        ("toy.forward_backward", ("with oracles", Exactness.approximate)),
        ("toy.two_proxes", ("with oracles", Exactness.stochastic)),
    ]
    exact = Composite({"loss": LOSS, "penalty": L1()})
    assert verdicts(exact) == {
        "toy.forward_backward": ("as it is", Exactness.exact),
        "toy.two_proxes": ("as it is", Exactness.exact),
        "toy.descent": ("with oracles", Exactness.approximate),
    }


def test_what_no_solver_takes_is_told_with_the_reason():
    explained = infimum.explain(Composite({"a": Function(subgradient=lambda x: x)}))
    assert {row.verdict for row in explained.rows} == {"cannot"}
    text = str(explained)
    assert "cannot take it:\n  toy.descent needs gradient of term 'a', which offers only subgradient.\n" in text
    assert "    no installed oracle supplies gradient of 'a'" in text


def test_named_oracles_stay_named():
    problem = Composite({"loss": LOSS, "penalty": L1()})
    explained = infimum.explain(problem, oracles={"penalty": "toy.to_prox"})
    rows = {row.solver: row for row in explained.rows}
    assert rows["toy.forward_backward"].plan.placements[1].replaces == ("prox",)
    assert rows["toy.descent"].verdict == "cannot"
    assert "gets only prox from oracle toy.to_prox" in rows["toy.descent"].reason


def test_it_turns_into_data():
    data = infimum.explain(Composite({"loss": LOSS, "tv": TV})).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["terms"]["tv"] == "value"
    assert data["solvers"][0]["plan"]["placements"][1]["oracle"] == "toy.to_gradient"


def test_a_solver_that_needs_an_option_says_so():
    registry = make_registry(Component("toy.broken", "solver", "toys:Broken", plugin="toy", distribution="infimum-toy"))
    (row,) = [row for row in explain_all(Composite(LOSS), registry=registry).rows if row.solver == "toy.broken"]
    assert (row.verdict, row.plan) == ("cannot", None)
    assert row.reason.startswith("cannot be made with default options:")
    assert "must" in row.reason
    assert "toy.broken: cannot be made" in str(explain_all(Composite(LOSS), registry=registry))


def test_without_any_solver_it_says_where_to_look():
    from infimum.plugins.registry import Registry

    assert "no solver is installed" in str(explain_all(Composite(LOSS), registry=Registry([])))


def test_a_solver_without_a_problem_is_refused(toy_registry):
    with pytest.raises(InputError, match="assign: puts terms into the slots of a solver; name the solver too"):
        infimum.explain(Composite(LOSS), assign={"smooth": "objective"})


class TestTheBestSolver:
    def test_as_it_is_with_the_fewest_idle_slots(self, toy_registry):
        assert able(Composite({"f": SquaredL2()}), toy_registry) == [
            "toy.descent",
            "toy.forward_backward",
            "toy.two_proxes",
        ]
        assert able(Composite({"f": SquaredL2(), "g": L1()}), toy_registry) == [
            "toy.forward_backward",
            "toy.two_proxes",
        ]
        assert able(Composite({"tv": TV}), toy_registry) == []

    def test_with_oracles_the_fewest_come_first(self, toy_registry):
        problem = Composite({"tv": TV, "pen": L1()})
        allowed = installed_oracles(toy_registry)
        assert [one.name for one in allowed] == ["toy.to_gradient", "toy.to_prox"]
        found = able(problem, toy_registry, allowed=allowed)
        assert found == ["toy.forward_backward", "toy.two_proxes", "toy.descent"]

    def test_solve_takes_it_and_notes_it(self):
        result = infimum.solve(Composite({"f": LOSS, "g": 0.1 * L1()}), stopping="max_iter(50)", seed=0)
        assert "no solver was named: toy.forward_backward was chosen" in result.notes
        named = infimum.prepare(Composite({"tv": TV}), oracles={"tv": "toy.to_gradient"}, seed=0)
        assert named.plan.solver_name == "toy.descent"
        auto = infimum.prepare(
            Composite({"tv": TV, "g": L1()}),
            oracles="auto",
            seed=0,
            solver={"use": "toy.forward_backward", "step_size": 0.1},
        )
        assert auto.plan.placements[0].oracle == "toy.to_gradient"

    def test_where_there_is_none_it_says_with_which_oracle_there_would_be(self):
        with pytest.raises(PlanError) as caught:
            infimum.solve(Composite({"tv": TV}, name="mine"))
        assert caught.value.reason == "no solver was named and none takes mine as it is"
        assert "toy.descent takes it with  oracles: {tv: toy.to_gradient}  (approximate)" in caught.value.remedies
        with pytest.raises(PlanError, match="none takes mine with any installed oracle") as caught:
            infimum.solve(Composite({"a": Function(subgradient=lambda x: x)}, name="mine"), oracles="auto")
        assert "toy.descent: toy.descent needs gradient" in str(caught.value)

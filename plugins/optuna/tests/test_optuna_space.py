"""Search spaces: forms, refusals, conditions; what is suggested is always a point of the space."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from infimum.errors import InputError
from infimum_optuna import Space
from infimum_optuna.space import contains, enumerated

CONDITIONAL = {
    "kernel": ["rbf", "poly", None],
    "degree": {"low": 2, "high": 5, "when": {"kernel": "poly"}},
    "gamma": {"low": 1e-3, "high": 1.0, "log": True, "when": {"kernel": ["rbf", "poly"]}},
}


def test_forms() -> None:
    space = Space(
        {
            "a": {"low": 1, "high": 9, "step": 2},
            "b": {"low": 1, "high": 9, "type": "float"},
            "c": {"low": 1e-3, "high": 1, "log": True},
            "d": ["x", 2, 0.5, None, True],
            "e": {"choices": [1, 2]},
            "f": FloatDistribution(0, 1, step=0.25),
        }
    )
    assert space.distributions == {
        "a": IntDistribution(1, 9, step=2),
        "b": FloatDistribution(1.0, 9.0),
        "c": FloatDistribution(1e-3, 1.0, log=True),
        "d": CategoricalDistribution(("x", 2, 0.5, None, True)),
        "e": CategoricalDistribution((1, 2)),
        "f": FloatDistribution(0, 1, step=0.25),
    }


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({}, "not empty"),
        ([1], "expected a mapping"),
        ({"x": 3}, "'x' is 3; expected a list of choices"),
        ({"x": []}, "choices of 'x'"),
        ({"x": {"low": 1}}, "'x' needs 'high'"),
        ({"x": {"low": 1, "high": 2, "hihg": 3}}, "no key 'hihg'; did you mean 'high'?"),
        ({"x": {"low": 3, "high": 2}}, "low <= high"),
        ({"x": {"low": 0.0, "high": 2.0, "log": True}}, "low > 0"),
        ({"x": {"low": 0.0, "high": float("inf")}}, "high of 'x' is inf"),
        ({"x": {"low": True, "high": 2}}, "low of 'x' is True"),
        ({"x": {"low": 0.5, "high": 2, "type": "int"}}, "whole numbers"),
        ({"x": {"low": 0, "high": 2, "type": "integer"}}, "'int' or 'float'"),
        ({"x": {"low": 0, "high": 2, "log": "yes"}}, "true or false"),
        ({"x": [(1, 2)]}, "no storage keeps"),
        ({3: [1, 2]}, "is a string, got 3"),
        ({"x": {"low": 1, "high": 2, "when": {"y": 1}}, "y": [1, 2]}, "stands not before it"),
        ({"x": {"low": 1, "high": 2, "when": "y"}}, "earlier parameter"),
        ({"y": ["a", "b"], "x": {"low": 1, "high": 2, "when": {"y": ["a", "c"]}}}, "'y' is never 'c'"),
        ({"x": {"low": 0, "high": 10**400}}, "expected a finite number"),
    ],
)
def test_what_is_wrong_is_named(space: Any, said: str) -> None:
    with pytest.raises(InputError, match="space") as caught:
        Space(space)
    assert said in str(caught.value)


_NUMBERS = st.floats(-100, 100).filter(lambda one: one == 0 or abs(one) > 1e-3)


@st.composite
def parameters(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["int", "float", "log", "step", "choices"]))
    if kind == "choices":
        return draw(st.lists(st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3)), min_size=1))
    if kind == "int":
        low = draw(st.integers(-50, 50))
        return {"low": low, "high": low + draw(st.integers(0, 40)), "step": draw(st.integers(1, 7))}
    low = draw(_NUMBERS)
    if kind == "log":
        low = abs(low) + 1e-3
        return {"low": low, "high": low * draw(st.floats(1.0, 1e4)), "log": True}
    out = {"low": low, "high": low + draw(st.floats(0.1, 100.0)), "type": "float"}
    return out if kind == "float" else {**out, "step": draw(st.floats(0.05, 3.0))}


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=3), parameters(), min_size=1, max_size=4), st.integers(0, 99))
@pytest.mark.filterwarnings("ignore:The distribution is specified by")
def test_what_is_suggested_is_in_the_space(given_space: dict[str, Any], seed: int) -> None:
    """Also after `check`, and in the list of all values where there is one."""
    space = Space(given_space)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    for _ in range(3):
        params = space.suggest(study.ask())
        assert list(space.check(params)) == list(given_space)
        for one in space:
            values = enumerated(one.distribution)
            value = params[one.name]
            assert values is None or value in values or min(abs(value - one) for one in values) < 1e-8


def test_conditions_hold_in_suggestions_and_points() -> None:
    space = Space(CONDITIONAL)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = set()
    for _ in range(30):
        params = space.suggest(study.ask())
        seen.add(params["kernel"])
        assert ("degree" in params) is (params["kernel"] == "poly")
        assert ("gamma" in params) is (params["kernel"] is not None)
    assert seen == {"rbf", "poly", None}
    assert space.check({"kernel": None}) == {"kernel": None}
    with pytest.raises(InputError, match="'degree' exists only when kernel is 'poly'"):
        space.check({"kernel": "rbf", "gamma": 0.5, "degree": 3})
    with pytest.raises(InputError, match="'gamma' is missing"):
        space.check({"kernel": "rbf"})
    with pytest.raises(InputError, match=r"gamma = 2.0 is not in"):
        space.check({"kernel": "rbf", "gamma": 2.0})
    with pytest.raises(InputError, match="did you mean 'gamma'"):
        space.check({"kernel": "rbf", "gama": 0.5})


def test_contains_knows_types_and_steps() -> None:
    assert contains(CategoricalDistribution((1, 2)), 1) and not contains(CategoricalDistribution((1, 2)), True)
    assert contains(CategoricalDistribution((True, False)), True)
    assert not contains(CategoricalDistribution(("1",)), 1)
    assert contains(IntDistribution(1, 9, step=2), 7) and not contains(IntDistribution(1, 9, step=2), 8)
    assert not contains(IntDistribution(1, 9), 2.5)
    assert contains(FloatDistribution(0, 1, step=0.1), 0.3) and not contains(FloatDistribution(0, 1), "0.3")

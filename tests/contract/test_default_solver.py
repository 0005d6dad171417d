"""Which solver is taken where the user names none."""

from __future__ import annotations

import numpy as np
import pytest

import infimum
from infimum import Composite, Function
from infimum.explanation import able
from infimum.plugins.build import build
from infimum.plugins.registry import get_registry

PROBLEMS = [one.name for one in get_registry().components("problem") if one.plugin == "problems"]


def blind(name: str) -> bool:
    """Whether a solver looks at values only."""
    slots = build(name, "solver").instance.slots()
    return any(slot.needs == ("value",) for slot in slots if slot.at_least)


CLASSICAL = ("splitting", "scipy", "cocd")
"""The others are there to be named: they take nearly everything, and their preference puts them last."""


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_a_problem_offers_is_used(name: str) -> None:
    every = able(build(name, "problem").instance, get_registry())
    order = [one for one in every if one.partition(".")[0] in CLASSICAL]
    assert every[: len(order)] == order
    knowing = [one for one in order if not blind(one)]
    assert order[: len(knowing)] == knowing


@pytest.mark.parametrize(("gradient", "chosen"), [(None, "scipy.cobyqa"), (lambda x: 2 * x, "scipy.l_bfgs_b")])
def test_the_usual_choices(gradient: object, chosen: str) -> None:
    more = {} if gradient is None else {"gradient": gradient}
    problem = Composite(Function(lambda x: float(x @ x), **more))
    assert able(problem, get_registry())[0] == chosen
    result = infimum.solve(problem, np.ones(2), seed=0)
    assert f"no solver was named: {chosen} was chosen" in result.notes

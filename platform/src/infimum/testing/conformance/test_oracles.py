"""Every oracle: seeds repeat, state round-trips, counts agree, parts share nothing, the accuracy is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from infimum import Composite, api
from infimum.arrays import inner, norm
from infimum.checkpoint import freeze, thaw
from infimum.exactness import Exactness
from infimum.functions import Function
from infimum.oracle import Stateful
from infimum.plugins.records import Component
from infimum.testing.compare import difference
from infimum.testing.conformance.selection import cases, components, parametrize, sound
from infimum.testing.oracle_cases import ARGUMENTS, OracleCase, Probe, oracle_cases
from infimum.testing.reference import START
from infimum.testing.subject import kept
from infimum.testing.watching import Witness

pytestmark = pytest.mark.filterwarnings("ignore::infimum.errors.InfimumWarning")
CLOSE = {Exactness.exact: 1e-6, Exactness.tolerance: 1e-3, Exactness.approximate: 0.1, Exactness.stochastic: 0.5}
"""Relative error that is sane for an exactness; of repeated calls the mean."""
REPEATS = 64


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "component" in metafunc.fixturenames:
        parametrize(metafunc, "component", components(metafunc.config, "oracle"), "oracle")
    if "case" in metafunc.fixturenames:
        parametrize(metafunc, "case", cases(metafunc.config, "oracle", oracle_cases), "oracle")


def test_the_kit_has_a_function_for_it(component: Component) -> None:
    assert oracle_cases(component), (
        f"{component.name} lifts none of the kit's functions to a capability that the kit can call; give "
        f"{component.target} an attribute `reference_functions`, or exclude this test"
    )


def test_binding_evaluates_nothing_and_the_part_supplies_what_it_says(case: OracleCase) -> None:
    sound(case)
    witness = Witness()
    part = case.part(watch=lambda name, call, *args: witness.of_function("f", name, call, *args))
    assert not witness.calls, f"bind evaluated the function {witness.calls} times"
    missing = [name for name in case.oracle().supplies if not callable(getattr(part, name, None))]
    assert not missing, f"the part of {case.component.name} lacks {', '.join(missing)}"


def test_seeds_repeat(case: OracleCase) -> None:
    sound(case)
    one, other = ([case.call(part, k) for k in range(5)] for part in (case.part(seed=3), case.part(seed=3)))
    said = difference(one, other, "five results of the same seed")
    assert said is None, said


def test_no_global_generator_is_read_or_written(case: OracleCase) -> None:
    sound(case)
    before = np.random.get_state(legacy=False)
    part = case.part()
    first = [kept(case.call(part, k)) for k in range(3)]
    assert difference(before, np.random.get_state(legacy=False), "numpy.random") is None, "it draws from numpy.random"
    np.random.seed(99)
    part = case.part()
    second = [case.call(part, k) for k in range(3)]
    np.random.set_state(before)
    assert difference(first, second, "results") is None, "its results depend on numpy.random"


def test_two_parts_share_nothing(case: OracleCase) -> None:
    """A part used in turns with another of the same oracle object gives what it gives alone."""
    sound(case)
    alone = case.part(seed=3)
    expected = [kept(case.call(alone, k)) for k in range(5)]
    oracle = case.oracle()
    first, second = case.part(oracle, seed=3), case.part(oracle, seed=4)
    found = []
    for k in range(5):
        found.append(kept(case.call(first, k)))
        case.call(second, 7 - k)
    said = difference(expected, found, "results of a part")
    assert said is None, f"{said}, when another part of the same oracle is used in between: they share a buffer"


def test_results_and_arguments_are_left_alone(case: OracleCase) -> None:
    sound(case)
    part = case.part()
    given = case.arguments(0)
    result = getattr(part, case.capability)(*given)
    said = difference(given, case.arguments(0), "its arguments")
    assert said is None, f"{said}: it was changed in place"
    remembered = kept(result)
    for k in range(1, 4):
        case.call(part, k)
    said = difference(remembered, kept(result), "the first result")
    assert said is None, f"{said} after later calls: return a new array"


def test_its_state_round_trips(case: OracleCase) -> None:
    """A part that is dumped, and another one that takes its state up, go on alike."""
    sound(case)
    if case.oracle().resume != "exact":
        pytest.skip(f"resume = {case.oracle().resume}")
    whole = case.part(seed=3)
    expected = [kept(case.call(whole, k)) for k in range(6)]
    first, second = case.part(seed=3), case.part(seed=11)
    for k in range(3):
        case.call(first, k)
    if isinstance(first, Stateful):
        second.load_state_dict(thaw(freeze(first.state_dict())))
    found = [case.call(second, k) for k in range(3, 6)]
    said = difference(expected[3:], found, "results after a checkpoint")
    hint = "" if isinstance(first, Stateful) else "; a part with state needs state_dict() and load_state_dict()"
    assert said is None, said + hint


def test_counts_agree(case: OracleCase) -> None:
    """Evaluations that the host charges to the function are those that it sees itself."""
    if case.capability not in ARGUMENTS or not isinstance(sound(case).make(), Function):
        pytest.skip("only a function of the host's own family, with a capability of its vocabulary, can be probed")
    witness = Witness()
    body = case.body(watch=lambda name, call, *args: witness.of_function("f", name, call, *args))
    result = api.solve(
        Composite({"f": body}),
        START,
        solver=Probe(case.capability),
        oracles={"f": case.oracle()},
        stopping="max_iter(4)",
        seed=1,
    )
    monitored = result.monitored.get("problem", {}).get("value", 0)
    for name in {name for _, name in witness.points}:
        seen = witness.points["f", name] - (monitored if name == "value" else 0)
        charged = result.evaluations.get("f", {}).get(name, 0)
        assert charged == seen, f"{name}: the host counted {charged} points, the function {seen}"
    assert result.exactness == str(max(case.oracle().exactness, Exactness.exact))


def test_it_is_as_accurate_as_it_says(case: OracleCase) -> None:
    """The mean of repeated calls at one point against the exact result."""
    sound(case)
    exact = case.exact(1)
    if exact is None:
        pytest.skip("the exact result is not known")
    if isinstance(exact, tuple):
        exact = exact[-1]
    exactness = case.oracle().exactness
    repeats = 1 if exactness <= Exactness.tolerance else REPEATS
    part = case.part()
    found = []
    for _ in range(repeats):
        one = case.call(part, 1)
        found.append(one[-1] if isinstance(one, tuple) else one)
    late = found[len(found) // 2 :]
    mean = sum(late[1:], late[0]) / len(late)
    reach = norm(exact - case.point(1)) if case.capability == "prox" else norm(exact)
    error = norm(mean - exact)
    assert error <= CLOSE[exactness] * reach + 1e-9, (
        f"{exactness}: off by {error:.3g} from a result of size {reach:.3g} (mean of {len(late)} calls)"
    )
    if case.capability == "gradient":
        assert inner(mean, exact) > 0

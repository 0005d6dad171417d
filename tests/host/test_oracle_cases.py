"""Oracles that supply capabilities of their own say how the conformance kit calls them: `reference_arguments`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from infimum import Exactness, Oracle
from infimum.plugins import registry as registries
from infimum.plugins.records import Component, PluginRecord
from infimum.plugins.registry import Registry
from infimum.testing.conformance import test_oracles as kit
from infimum.testing.oracle_cases import ARGUMENTS, FUNCTIONS, OracleCase, oracle_cases

MODULE = "oracle_targets_for_tests"


class MirrorPart:
    def __init__(self, function: Any, *, careless: bool = False) -> None:
        self.function, self.careless = function, careless

    def simplex_step(self, v: Any, t: float) -> Any:
        assert v.min() > 0 and abs(v.sum() - 1.0) < 1e-12, "only points of the simplex make sense"
        moved = v * np.exp(-t * self.function.gradient(v))
        moved /= moved.sum()
        if self.careless:
            v[:] = moved
        return moved


@dataclass(frozen=True)
class Silent(Oracle):
    """A step on the simplex, of a capability that the kit has never heard of; says nothing of its arguments."""

    kind: ClassVar[str] = "proximal"
    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    supplies: ClassVar[tuple[str, ...]] = ("simplex_step",)
    exactness = Exactness.exact

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return MirrorPart(function)


def _point(k: int) -> tuple[Any, float]:
    return np.random.default_rng(k).dirichlet(np.ones(5)), 0.25


@dataclass(frozen=True)
class Telling(Silent):
    """The same, with the arguments of its k-th call."""

    reference_arguments: ClassVar[Mapping[str, Callable[[int], Any]]] = {"simplex_step": _point}


@dataclass(frozen=True)
class Careless(Telling):
    """Overwrites its argument."""

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return MirrorPart(function, careless=True)


class GradientPart:
    def __init__(self, function: Any) -> None:
        self.function = function

    def gradient(self, x: Any) -> Any:
        return self.function.gradient(x)


@dataclass(frozen=True)
class Picky(Oracle):
    """A capability of the kit's own, whose usual points are not for it."""

    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)
    reference_arguments: ClassVar[Mapping[str, Callable[[int], Any]]] = {"gradient": lambda k: (np.full(5, 1.0 + k),)}

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return GradientPart(function)


class Words:
    """A term that is no function."""

    capabilities = frozenset({"letters"})

    def letters(self, words: list[str]) -> list[int]:
        return [len(one) for one in words]

    def to(self, x: Any) -> Words:
        return self

    def check(self, x: Any) -> None:
        return None


class CountPart:
    def __init__(self, term: Any) -> None:
        self.term = term

    def total(self, words: list[str]) -> int:
        return sum(self.term.letters(words))


@dataclass(frozen=True)
class Counting(Oracle):
    """Of another term, called with no array."""

    needs: ClassVar[tuple[str, ...]] = ("letters",)
    supplies: ClassVar[tuple[str, ...]] = ("total",)
    reference_functions: ClassVar[Mapping[str, Callable[[], Any]]] = {"words": Words}
    reference_arguments: ClassVar[Mapping[str, Callable[[int], Any]]] = {"total": lambda k: (["one", "two"][: k + 1],)}

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return CountPart(function)


@pytest.fixture
def component(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Component]:
    monkeypatch.setitem(sys.modules, MODULE, sys.modules[__name__])
    names = ("Silent", "Telling", "Careless", "Picky", "Counting")
    made = {
        name: Component(f"p.{name.lower()}", "oracle", f"{MODULE}:{name}", plugin="p", distribution="infimum-p")
        for name in names
    }
    record = PluginRecord("p", "infimum-p", "1.0", "active", components=tuple(made.values()))
    monkeypatch.setattr(registries, "_registry", Registry([record]))
    return made.__getitem__


def only_case(component: Component) -> OracleCase:
    (case,) = oracle_cases(component)
    return case


CHECKS = (
    kit.test_binding_evaluates_nothing_and_the_part_supplies_what_it_says,
    kit.test_seeds_repeat,
    kit.test_two_parts_share_nothing,
    kit.test_results_and_arguments_are_left_alone,
    kit.test_its_state_round_trips,
)


def test_without_arguments_the_kit_cannot_call_it_and_says_so(component: Any) -> None:
    assert "simplex_step" not in ARGUMENTS
    assert oracle_cases(component("Silent")) == []
    with pytest.raises(AssertionError, match=r"p\.silent lifts none"):
        kit.test_the_kit_has_a_function_for_it(component("Silent"))


def test_it_is_called_with_its_own_arguments_made_anew(component: Any) -> None:
    kit.test_the_kit_has_a_function_for_it(component("Telling"))
    case = only_case(component("Telling"))
    assert (case.capability, case.function) == ("simplex_step", next(iter(FUNCTIONS)))
    first, again = case.arguments(2), case.arguments(2)
    assert first[0] is not again[0]
    np.testing.assert_array_equal(first[0], _point(2)[0])
    v, t = _point(2)
    expected = v * np.exp(-t * FUNCTIONS[case.function]().gradient(v))
    np.testing.assert_allclose(case.call(case.part(), 2), expected / expected.sum())
    for check in CHECKS:
        check(case)


def test_the_kit_finds_what_is_wrong_with_it(component: Any) -> None:
    with pytest.raises(AssertionError, match="changed in place"):
        kit.test_results_and_arguments_are_left_alone(only_case(component("Careless")))


def test_its_own_arguments_stand_in_for_those_of_the_kit(component: Any) -> None:
    case = only_case(component("Picky"))
    np.testing.assert_array_equal(case.arguments(3)[0], np.full(5, 4.0))
    exact = case.exact(3)
    np.testing.assert_array_equal(exact, FUNCTIONS[case.function]().gradient(np.full(5, 4.0)))
    kit.test_it_is_as_accurate_as_it_says(case)


def test_terms_of_other_families_are_taken_with_arguments_that_are_no_points(component: Any) -> None:
    case = only_case(component("Counting"))
    assert [case.call(case.part(), k) for k in range(2)] == [3, 6]
    for check in CHECKS:
        check(case)
    with pytest.raises(pytest.skip.Exception, match="host's own family"):
        kit.test_counts_agree(case)

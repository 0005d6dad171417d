"""Every component of any kind: it loads, is described, and its options are checked and round-trip."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import infimum
from infimum.constraints import Constraint
from infimum.errors import InfimumError
from infimum.oracle import Oracle
from infimum.plugins.build import build
from infimum.plugins.docs import summary
from infimum.plugins.options import describe_options, json_schema
from infimum.plugins.records import Component
from infimum.problem import Problem
from infimum.runfile.dump import dump_yaml, is_plain, plain
from infimum.schedule import Schedule
from infimum.solver import Solver
from infimum.stopping import StoppingRule
from infimum.testing.conformance.selection import components, load, parametrize
from infimum.testing.examples import built, examples

CLASSES: dict[str, type] = {
    "solver": Solver,
    "oracle": Oracle,
    "constraint": Constraint,
    "stopping_rule": StoppingRule,
    "schedule": Schedule,
}
RESUME = ("exact", "replay", "none")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    found = components(metafunc.config)
    parametrize(metafunc, "component", [one for one in found if one.kind != "converter"], "component")
    parametrize(metafunc, "converter", [one for one in found if one.kind == "converter"], "converter")


def test_a_converter_is_a_described_function_of_the_front(converter: Component) -> None:
    """What takes an object of another library stands in no run file: `infimum.NAME(object)`."""
    target = load(converter)
    assert callable(target) and summary(target), f"{converter.target} is no function with a docstring"
    assert getattr(infimum, converter.bare) is target
    with pytest.raises(InfimumError):
        target(object())


def test_it_loads_and_is_of_its_kind(component: Component) -> None:
    load(component)
    for options in examples(component):
        instance = built(component, options).instance
        expected = CLASSES.get(component.kind)
        if expected is not None:
            assert isinstance(instance, expected), f"{component.name} is a {type(instance).__name__}"
        elif component.kind == "problem":
            assert isinstance(instance, Problem) or callable(instance)
    resume = getattr(component.load(), "resume", "exact")
    assert resume in RESUME or isinstance(resume, property), f"resume = {resume!r}; expected one of {RESUME}"


def test_it_is_described(component: Component) -> None:
    target = load(component)
    assert component.summary, f"{component.name} is registered without a summary"
    assert summary(target), f"{component.target} has no docstring"
    bare = [one.name for one in describe_options(target) if not one.doc]
    assert not bare, f"{component.target}: options {', '.join(bare)} are not documented (section Parameters)"


def test_its_options_round_trip(component: Component) -> None:
    """Built, written as a specification, built again: equal, and so with every default written out."""
    target = load(component)
    for options in examples(component):
        first = built(component, options)
        again = build(first.spec, component.kind)
        assert again.spec == first.spec
        _assert_equal(first.instance, again.instance)
        if is_plain(first.options):
            assert dump_yaml(plain({"use": component.name, **first.options}))
        defaults = {
            one.name: one.default
            for one in describe_options(target)
            if not one.required and one.name not in options and is_plain(one.default)
        }
        written_out = {"use": component.name, **plain(defaults), **options}
        _assert_equal(first.instance, build(written_out, component.kind).instance)


def _assert_equal(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if any("__eq__" in vars(cls) for cls in type(one).__mro__[:-1]):
        try:
            alike = bool(one == other)
        except ValueError:
            # Fields that are arrays say nothing as a whole.
            alike = repr(one) == repr(other)
        assert alike, f"{one!r} and {other!r} are built from the same options"


def test_it_is_frozen(component: Component) -> None:
    target = load(component)
    if component.kind not in ("solver", "oracle", "stopping_rule", "schedule"):
        pytest.skip(f"a {component.kind} may be of any form")
    if not (inspect.isclass(target) and dataclasses.is_dataclass(target)):
        pytest.skip("not a dataclass")
    assert target.__dataclass_params__.frozen, f"{component.target} holds options: @dataclass(frozen=True)"  # type: ignore[attr-defined]


def test_unknown_options_are_refused(component: Component) -> None:
    load(component)
    options = {**examples(component)[0], "no_such_option": 1}
    with pytest.raises(InfimumError, match="no_such_option"):
        build({"use": component.name, **options}, component.kind)


def test_its_json_schema_is_valid_and_fits_the_examples(component: Component) -> None:
    target = load(component)
    schema = json_schema(component)
    known = {one.name for one in describe_options(target)}
    assert set(schema["properties"]) == known
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    for options in examples(component):
        jsonschema.validate(plain(options), schema)

"""Options: what fits an annotation, what does not, and the sentence for it; JSON Schema and descriptions."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NewType

import annotated_types
import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infimum.plugins.options import REQUIRED, check_options, describe_options, json_schema

if TYPE_CHECKING:
    from nowhere import Absent

Array = Any
Positive = NewType("Positive", float)


class Rule(enum.Enum):
    armijo = "a"
    wolfe = "w"


def no_seven(value: int) -> int:
    if value == 7:
        raise ValueError("seven is taken")
    return value


class Clock:
    """A class that is no option type: given as an object."""


@dataclass(frozen=True)
class Base:
    """Base.

    Attributes
    ----------
    seed : int
        Of the base class.
    """

    seed: int = 0


@dataclass(frozen=True)
class Everything(Base):
    """Options of all kinds.

    Parameters
    ----------
    step : float or "auto"
        Step size,
        in two lines.
    count, weight : number
        Two in one entry.

    Returns
    -------
    radius : nothing
        Not an option's text.
    """

    kind: ClassVar[str] = "test"
    step: Annotated[float, annotated_types.Gt(0)] | Literal["auto"] = "auto"
    count: Annotated[int, annotated_types.Ge(1)] = 1
    weight: Annotated[float, pydantic.Field(ge=0, lt=1, description="from Field")] = 0.5
    share: Annotated[float, pydantic.Field(le=1, description="from Field")] = 0.5
    flag: bool = False
    title: str = ""
    radii: tuple[Annotated[float, annotated_types.Gt(0)], ...] = ()
    pair: tuple[float, float] = (0.0, 1.0)
    limit: Annotated[float | None, annotated_types.Gt(0)] = None
    lower: Array | float = 0.0
    start: np.ndarray | None = None
    file: Path = Path("x")
    rule: Rule = Rule.armijo
    names: Sequence[str] = ()
    table: Mapping[str, float] = field(default_factory=dict)
    transform: Callable[[float], float] | None = None
    clock: Clock | None = None
    absent: Absent | None = None
    size: Positive = Positive(1.0)
    even: Annotated[int, annotated_types.Predicate(lambda n: n % 2 == 0)] = 0
    hidden: int = field(init=False, default=3)
    extra: InitVar[int] = 0


def checked(**options):
    return check_options(Everything, options, "thing t.e")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"step": 1}, 1.0),
        ({"step": "auto"}, "auto"),
        ({"count": 1e4}, 10000),
        ({"count": np.int32(3)}, 3),
        ({"weight": np.float32(0.25)}, 0.25),
        ({"flag": True}, True),
        ({"flag": np.bool_(True)}, True),
        ({"radii": [1, 2.5]}, (1.0, 2.5)),
        ({"radii": np.array([1.0, 2.5])}, (1.0, 2.5)),
        ({"limit": None}, None),
        ({"limit": 3}, 3.0),
        ({"lower": -1}, -1),
        ({"file": "a/b"}, Path("a/b")),
        ({"rule": "wolfe"}, Rule.wolfe),
        ({"rule": "w"}, Rule.wolfe),
        ({"names": ["a", "b"]}, ["a", "b"]),
        ({"table": {"a": 1}}, {"a": 1.0}),
        ({"transform": math.sin}, math.sin),
        ({"absent": "whatever"}, "whatever"),
        ({"size": 2}, 2.0),
        ({"even": 4}, 4),
        ({"extra": 5}, 5),
        ({"seed": 7}, 7),
        ({"step": math.inf}, math.inf),
    ],
)
def test_what_fits(options, expected):
    values, issues = checked(**options)
    assert issues == []
    ((_, value),) = values.items()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("options", "path", "said"),
    [
        ({"step": "fast"}, ("step",), "option 'step': expected a number > 0 or 'auto', got str 'fast'"),
        ({"step": True}, ("step",), "option 'step': expected a number > 0 or 'auto', got bool True"),
        ({"step": math.nan}, ("step",), "expected a number > 0 or 'auto', got float nan"),
        ({"step": 0}, ("step",), "expected a number > 0 or 'auto', got int 0"),
        ({"count": "3"}, ("count",), "option 'count': expected an integer >= 1, got str '3'"),
        ({"count": 2.5}, ("count",), "expected an integer >= 1, got float 2.5"),
        ({"count": math.inf}, ("count",), "expected an integer >= 1, got float inf"),
        ({"count": True}, ("count",), "expected an integer >= 1, got bool True"),
        ({"count": None}, ("count",), "expected an integer >= 1, got None"),
        ({"weight": 1}, ("weight",), "expected a number in [0, 1), got int 1"),
        ({"flag": 1}, ("flag",), "expected true or false, got int 1"),
        ({"flag": "yes"}, ("flag",), "expected true or false, got str 'yes'"),
        ({"title": 3}, ("title",), "expected a string, got int 3"),
        ({"radii": [1, -2]}, ("radii", 1), "option 'radii[1]': expected a number > 0, got int -2"),
        ({"radii": "12"}, ("radii",), "expected a list of numbers > 0, got str '12'"),
        ({"radii": 3}, ("radii",), "expected a list of numbers > 0, got int 3"),
        ({"pair": [1, 2, 3]}, ("pair",), "expected a list of 2 numbers, got list [1, 2, 3]"),
        ({"limit": -1}, ("limit",), "expected a number > 0 or null, got int -1"),
        ({"lower": "low"}, ("lower",), "expected an array or a number, got str 'low'"),
        ({"start": [[1], [1, 2]]}, ("start",), "expected an array or null, got list [[1], [1, 2]]"),
        ({"file": 3}, ("file",), "expected a path, got int 3"),
        ({"rule": "gold"}, ("rule",), "expected 'armijo' or 'wolfe', got str 'gold'"),
        ({"names": ["a", 1]}, ("names", 1), "option 'names[1]': expected a string, got int 1"),
        ({"table": {"a": "b"}}, ("table", "a"), "option 'table.a': expected a number, got str 'b'"),
        ({"transform": 1}, ("transform",), "expected a function or null, got int 1"),
        ({"clock": {"hands": 2}}, ("clock",), "expected a Clock or null (a component is written {use: name, …}), got"),
        ({"even": 3}, ("even",), "option 'even': predicate"),
        ({"hidden": 3}, ("hidden",), "thing t.e has no option 'hidden'"),
        ({"kind": "x"}, ("kind",), "thing t.e has no option 'kind'"),
    ],
)
def test_what_does_not_fit(options, path, said):
    values, (issue,) = checked(**options)
    assert values == {}
    assert issue.path == path
    assert said in issue.message
    assert issue.message.startswith("thing t.e")


def test_lists_become_arrays_where_arrays_are_asked_for():
    values, _ = checked(lower=[0, 1.5], start=[[1, 2], [3, 4]])
    np.testing.assert_array_equal(values["lower"], np.array([0.0, 1.5]))
    np.testing.assert_array_equal(values["start"], np.array([[1, 2], [3, 4]]))
    given_array = np.ones(3, dtype=np.float32)
    assert checked(lower=given_array)[0]["lower"] is given_array


def test_objects_of_a_class_pass_as_they_are():
    clock = Clock()
    assert checked(clock=clock)[0]["clock"] is clock


def test_all_mistakes_come_at_once_and_good_options_stay():
    values, issues = checked(step="fast", count=0, flag=True, stp=1)
    assert values == {"flag": True}
    assert [one.path for one in issues] == [("step",), ("count",), ("stp",)]
    assert "thing t.e has no option 'stp'; did you mean 'step'? (options: seed, step, count" in issues[2].message


def test_missing_options_are_named():
    @dataclass
    class Needs:
        data: str
        size: Annotated[int, annotated_types.Gt(0)]
        more: int = 0

    values, issues = check_options(Needs, {"dta": "x"}, "problem p.needs")
    assert values == {}
    assert [(one.path, one.message) for one in issues] == [
        (("dta",), "problem p.needs has no option 'dta'; did you mean 'data'? (options: data, size, more)"),
        ((), "problem p.needs needs option 'data' (string)"),
        ((), "problem p.needs needs option 'size' (integer > 0)"),
    ]


def test_functions_and_plain_classes():
    def make(n: int, *, noise: float = 0.0, **others: str) -> None:
        """Make."""

    values, issues = check_options(make, {"n": 3.0, "anything": "goes"}, "problem p.make")
    assert (values, issues) == ({"n": 3, "anything": "goes"}, [])

    class Plain:
        def __init__(self, n: int, mode: Literal["a", "b", "c"] = "a") -> None: ...

    _, (issue,) = check_options(Plain, {"n": 1, "mode": "d"}, "x")
    assert "expected 'a', 'b' or 'c', got str 'd'" in issue.message

    class Nothing:
        pass

    _, (issue,) = check_options(Nothing, {"n": 1}, "solver s.nothing")
    assert issue.message == "solver s.nothing has no option 'n'; it takes none"


def test_a_dataclass_with_its_own_init_names_its_options_there():
    @dataclass
    class Own:
        total: float

        def __init__(self, parts: list[float]) -> None:
            self.total = sum(parts)

    assert check_options(Own, {"parts": [1, 2]}, "x") == ({"parts": [1.0, 2.0]}, [])


def test_authors_own_validators_speak_for_themselves():
    def make(n: Annotated[int, pydantic.AfterValidator(no_seven)] = 0) -> None: ...

    _, (issue,) = check_options(make, {"n": 7}, "x y")
    assert issue.message == "x y: option 'n': seven is taken, got int 7"


def test_annotations_that_nobody_can_check_accept_anything():
    def make(a: "not an expression !" = None, b: ArrayOrProtocol = None) -> None:  # noqa: F722, F821
        ...

    value = object()
    assert check_options(make, {"a": value, "b": value}, "x") == ({"a": value, "b": value}, [])


def test_describe_options_reads_the_docstring():
    described = {one.name: one for one in describe_options(Everything)}
    assert list(described)[:3] == ["seed", "step", "count"]
    assert described["step"].type == "number > 0 or 'auto'"
    assert described["step"].default == "auto"
    assert described["step"].doc == "Step size, in two lines."
    assert described["count"].doc == described["weight"].doc == "Two in one entry."
    assert described["seed"].doc == "Of the base class."
    assert described["share"].doc == "from Field"
    assert described["table"].default == {}
    assert "hidden" not in described
    assert "radius" not in described

    def make(n: int) -> None: ...

    (option,) = describe_options(make)
    assert option.required
    assert option.default is REQUIRED


def test_json_schema_accepts_what_check_accepts():
    schema = json_schema(Everything)
    json.dumps(schema)
    assert schema["description"] == "Options of all kinds."
    assert schema["additionalProperties"] is False
    assert schema["required"] == []
    step = schema["properties"]["step"]
    assert step["description"] == "Step size, in two lines."
    assert step["default"] == "auto"
    assert {"exclusiveMinimum": 0, "type": "number"} in step["anyOf"]
    assert {"const": "auto", "type": "string"} in step["anyOf"]
    assert schema["properties"]["rule"] == {"enum": ["armijo", "wolfe"], "default": "armijo"}
    assert schema["properties"]["clock"]["anyOf"][0]["required"] == ["use"]


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_integral_floats_are_integers(n):
    def make(n: int) -> None: ...

    assert check_options(make, {"n": float(n)}, "x") == ({"n": n}, [])

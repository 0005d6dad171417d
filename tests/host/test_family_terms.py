"""What a family of problems may say of its metrics and counts, what an oracle may of itself, references in options."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import infimum
from infimum import Composite, Function, Metric, Problem, Slot, Solver, Term
from infimum.errors import InputError, PlanError
from infimum.plan.match import Choice
from infimum.plan.plan import make_plan
from infimum.plugins.build import build
from infimum.problem import Cadence
from infimum.vocabulary import CAPABILITIES, Capability


class Batches:
    capabilities = frozenset({"drawn", "slope"})

    def drawn(self, m: int) -> None: ...

    def slope(self, x: np.ndarray) -> np.ndarray:
        return 2 * x


class Family(Problem):
    family = "toy family"

    def __init__(self) -> None:
        self.seen: list[float] = []

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term("batches", Batches()),)

    @property
    def merit(self) -> str:
        return "value"

    @property
    def recorded(self) -> tuple[str, ...]:
        return ("size", "unknown here")

    def start(self, rng: np.random.Generator) -> Any:
        return np.ones(2)

    def metrics(self, point: Any) -> Any:
        def measure(x: np.ndarray, _: Any) -> float:
            self.seen.append(float(x @ x))
            return self.seen[-1]

        return {"value": Cadence(measure, 4), "size": Cadence(lambda x, _: float(np.abs(x).max()), 3)}


@dataclass(frozen=True)
class Halving(Solver):
    families: ClassVar[tuple[str, ...]] = ("composite", "toy family")
    metrics: ClassVar[dict[str, Metric]] = {
        "value": Metric(lambda state: 7.0, families=("composite",)),
        "batch": Metric(lambda state: 3.0, families=("toy family",)),
    }

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("smooth", needs=("gradient",)), Slot("batches", needs=("drawn", "slope"), at_most=1, empty=None))

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start}

    def step(self, parts: Any, state: Any) -> Any:
        if parts.batches is not None:
            parts.batches.drawn(5)
            return {"x": state["x"] - 0.25 * parts.batches.slope(state["x"])}
        return {"x": state["x"] - 0.25 * parts.smooth.gradient(state["x"])}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CAPABILITIES, "drawn", Capability("drawn(m): m samples", ("drawn",), points=int))


def test_a_costly_metric_is_taken_at_its_own_cadence_and_at_the_end() -> None:
    problem = Family()
    result = infimum.solve(problem, solver=Halving(), stopping="max_iter(10)", seed=0)
    trace = result.trace
    taken = trace["iteration"][np.isfinite(trace["value"])]
    assert list(taken) == [0, 4, 8, 10]
    assert list(trace["iteration"][np.isfinite(trace["size"])]) == [0, 3, 6, 9, 10]
    assert result.monitored["problem"] == {"value": 4, "size": 5}


def test_a_rule_that_reads_it_waits_for_it() -> None:
    problem = Family()
    result = infimum.solve(problem, solver=Halving(), stopping="target(0.5) | max_iter(50)", seed=0)
    assert result.iterations == 4
    assert len(problem.seen) == 2
    every = infimum.solve(Family(), solver=Halving(), stopping="target(0.5) | max_iter(50)", seed=0, value_every=1)
    assert every.iterations == 1


def test_one_measure_under_two_names_is_taken_once() -> None:
    class Twice(Family):
        def metrics(self, point: Any) -> Any:
            found = super().metrics(point)
            return {**found, "size": found["value"]}

    problem = Twice()
    result = infimum.solve(problem, solver=Halving(), stopping="max_iter(8)", seed=0)
    assert len(problem.seen) == 3 and result.monitored["problem"] == {"value": 3}
    assert np.array_equal(result.trace["size"], result.trace["value"], equal_nan=True)


def test_metrics_belong_to_families() -> None:
    plan = make_plan(Family(), Halving())
    assert set(plan.metrics) == {"batch"}
    composite = Composite(Function(lambda x: float(x @ x), gradient=lambda x: 2 * x))
    assert set(make_plan(composite, Halving()).metrics) == {"value"}


@pytest.mark.usefixtures("drawn")
def test_points_count_where_the_result_has_no_form() -> None:
    result = infimum.solve(Family(), solver=Halving(), stopping="max_calls(23, of='drawn') | max_iter(50)", seed=0)
    assert result.iterations == 5
    assert result.evaluations["batches"] == {"drawn": 25, "slope": 5}


def test_an_oracle_that_does_not_volunteer_is_taken_only_by_name() -> None:
    from toys import Lifting, half_square

    class Shy(Lifting):
        def volunteers(self, function: Any) -> bool:
            return getattr(function, "marked", False)

    problem = Composite({"f": half_square("value")})
    with pytest.raises(PlanError):
        make_plan(problem, Halving(), allowed=[Choice("shy", Shy(), named=False)])
    assert make_plan(problem, Halving(), oracles={"f": Choice("shy", Shy())}).oracles == 1
    problem.terms[0].body.marked = True  # type: ignore[attr-defined]
    assert make_plan(problem, Halving(), allowed=[Choice("shy", Shy(), named=False)]).oracles == 1


@dataclass(frozen=True)
class Holder:
    """Holds anything.

    Parameters
    ----------
    thing : object
        Anything.
    """

    thing: Any
    more: Any = None


def test_an_option_may_name_an_object_of_the_users() -> None:
    spec = {"thing": "python:math:fsum", "more": {"a": ["python:math:pi", 2]}}
    held, issues = _construct(spec)
    assert not issues
    assert held.instance.thing is math.fsum
    assert held.instance.more == {"a": [math.pi, 2]}
    assert held.options == spec
    _, issues = _construct({"thing": "python:math:fsun"})
    assert issues[0].path == ("thing",)
    assert "did you mean 'fsum'" in issues[0].message
    _, issues = _construct({"thing": "python:math:pi"}, allow_python=False)
    assert "--no-python" in issues[0].message
    with pytest.raises(InputError, match="was not found"):
        build({"use": f"python:{__name__}:Holder", "thing": "python:no_such_module_here:x"}, None)


def _construct(spec: dict[str, Any], **more: Any) -> Any:
    from infimum.plugins.build import _Builder

    builder = _Builder(None, more.get("allow_python", True), None)
    return builder._construct(Holder, None, "holder", spec, ())

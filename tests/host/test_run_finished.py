"""A solver that has nothing left to do says so by raising `Finished`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import infimum
from infimum.functions import Function
from infimum.solver import Finished, Metric, Slot, Solver
from infimum.status import Status


@dataclass(frozen=True)
class Tries(Solver):
    """Tries the points of a list, one an iteration."""

    points: tuple[float, ...] = (2.0, 1.0, 3.0)
    status: Status = Status.converged

    metrics: ClassVar[dict[str, Metric]] = {"value": Metric(lambda state: state["value"])}

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("objective", needs=("value",), at_least=1),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "value": parts.objective.value(start), "next": 0}

    def step(self, parts: Any, state: Any) -> Any:
        k = state["next"]
        if k == len(self.points):
            raise Finished("all points have been tried", self.status)
        x = np.full_like(state["x"], self.points[k])
        return {"x": x, "value": parts.objective.value(x), "next": k + 1}


def solve(**options: Any) -> infimum.Result:
    f = Function(lambda x: float(x @ x))
    chosen = {"stopping": "max_iter(50)", "seed": 0, **options}
    return infimum.solve(infimum.Composite(f, start=np.array([4.0])), **{"solver": Tries(), **chosen})


@pytest.mark.parametrize("check_every", [1, 2, 3, 7])
def test_it_ends_the_run_as_it_is(check_every: int) -> None:
    """Also between two checks: the iterations that were made are checked."""
    result = solve(check_every=check_every)
    assert result.status is Status.converged and result.message == "all points have been tried"
    assert result.error is None and result.evaluations == {"objective": {"value": 4}}
    assert result.iterations == 3 and result.x.tolist() == [3.0]
    assert result.best_x.tolist() == [1.0 if check_every <= 2 else 3.0]


def test_it_says_with_which_status() -> None:
    assert solve(solver=Tries(status=Status.stalled)).status is Status.stalled


def test_a_rule_that_fires_before_wins() -> None:
    assert solve(stopping="max_iter(3)").status is Status.limit

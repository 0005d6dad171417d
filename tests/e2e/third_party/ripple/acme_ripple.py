"""An oracle, a problem and a stopping rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt

from infimum import Composite, Exactness, Function, Oracle, StoppingRule
from infimum.functions import L1
from infimum.status import Status
from infimum.stopping.base import Reason


@dataclass(frozen=True)
class Central(Oracle):
    """Gradient by central differences along the coordinates, 2 n values each.

    Parameters
    ----------
    width : float
        Half the distance between the two points.
    """

    width: Annotated[float, Gt(0)] = 1e-5

    kind: ClassVar[str] = "zeroth-order"
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)
    exactness: ClassVar[Exactness] = Exactness.approximate

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return CentralPart(function, self.width)


class CentralPart:
    def __init__(self, function: Any, width: float) -> None:
        self.function, self.width = function, width

    def gradient(self, x: np.ndarray) -> np.ndarray:
        steps = self.width * np.eye(x.size)
        value = self.function.value
        return np.array([value(x + step) - value(x - step) for step in steps]) / (2 * self.width)


def bowl(n: Annotated[int, Ge(1)] = 4, penalty: Annotated[float, Ge(0)] = 0.1) -> Composite:
    """Minimize `sum_i c_i (x_i - t_i)^2 / 2 + penalty ||x||_1` with c from 1 to 2 and t from -1 to 1.

    Parameters
    ----------
    n : int
        Number of variables.
    penalty : float
        Weight of the l1 norm.
    """
    curvature, center = np.linspace(1.0, 2.0, n), np.linspace(-1.0, 1.0, n)
    valley = Function(value=lambda x: 0.5 * float(curvature @ (x - center) ** 2), convex=True, lipschitz=2.0)
    return Composite({"valley": valley, "penalty": penalty * L1()}, start=np.zeros(n), name="bowl")


@dataclass(frozen=True)
class Below(StoppingRule):
    """Stop once the value was at most `level` at `times` checks in a row.

    Parameters
    ----------
    level : float
        The value to reach.
    times : int
        How often in a row.
    """

    level: float
    times: Annotated[int, Ge(1)] = 3

    needs: ClassVar[tuple[str, ...]] = ("value",)
    status: ClassVar[Status] = Status.target_reached

    def start(self) -> BelowTracker:
        return BelowTracker(self)


class BelowTracker:
    def __init__(self, rule: Below) -> None:
        self.rule, self.count = rule, 0

    def update(self, progress: Any) -> Reason | None:
        value = progress.metrics.get("value")
        if value is None:
            return None
        self.count = self.count + 1 if value <= self.rule.level else 0
        if self.count < self.rule.times:
            return None
        message = f"value {value:g} <= {self.rule.level:g}, {self.count} times in a row"
        return Reason(str(self.rule), self.rule.status, message, {"value": value})

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count = state["count"]

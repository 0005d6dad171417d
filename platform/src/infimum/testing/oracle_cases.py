"""Oracles with functions that they lift: bound by hand, and behind a solver that only probes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from infimum.exactness import Exactness
from infimum.functions import L1, Huber, LeastSquares, SquaredL2
from infimum.oracle import Oracle
from infimum.plan.derive import derive
from infimum.plugins.records import Component
from infimum.solver import Slot, Solver
from infimum.testing.examples import built, examples
from infimum.testing.reference import START, A, B
from infimum.testing.watching import WatchedFunction

FUNCTIONS: dict[str, Callable[[], Any]] = {
    "least_squares": lambda: LeastSquares(A, B),
    "ridge": lambda: SquaredL2().translate(np.ones(5)),
    "huber": lambda: Huber(0.5),
    "l1": lambda: L1(0.3),
}
"""By name, in the order in which they are tried."""

ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "value": lambda x: (x,),
    "gradient": lambda x: (x,),
    "value_and_gradient": lambda x: (x,),
    "subgradient": lambda x: (x,),
    "prox": lambda x: (x, 0.5),
    "prox_conjugate": lambda x: (x, 0.5),
    "hvp": lambda x: (x, 0.0 * x + 1.0),
}
"""Arguments of capabilities that the kit knows how to call. An oracle that supplies others says them itself: attribute
`reference_arguments`, a mapping from capabilities to `arguments(k)`, the tuple for the k-th call."""


@dataclass(frozen=True)
class OracleCase:
    """An oracle with options, on a function that it takes, for one of the capabilities that it supplies."""

    component: Component
    options: Mapping[str, Any]
    function: str
    capability: str
    make: Callable[[], Any]
    number: int = 0

    @property
    def name(self) -> str:
        """The oracle, the function, the capability, and the number of the example where there are several."""
        tail = f"-{self.number}" if self.number else ""
        return f"{self.component.name}-{self.function}-{self.capability}{tail}"

    def oracle(self) -> Oracle:
        """A new object."""
        return built(self.component, self.options).instance  # type: ignore[no-any-return]

    def body(self, watch: Callable[..., Any] | None = None) -> Any:
        """The function, with nothing but what the oracle may use."""
        oracle = self.oracle()
        return WatchedFunction(self.make(), watch, only=(*oracle.needs, *oracle.wants))

    def part(self, oracle: Oracle | None = None, seed: int = 3, watch: Callable[..., Any] | None = None) -> Any:
        """A bound part with a generator of its own."""
        oracle = oracle or self.oracle()
        body = self.body(watch)
        return oracle.bind(body.to(self.point(0)), np.random.default_rng(seed))

    def point(self, k: int) -> Any:
        """The k-th point of a fixed sequence."""
        return START + 0.1 * k * np.array([1.0, -1.0, 0.5, 0.0, -0.5])

    def arguments(self, k: int) -> tuple[Any, ...]:
        """Arguments of the k-th call, made anew."""
        own = _own_arguments(self.component)
        if self.capability in own:
            return own[self.capability](k)
        return ARGUMENTS[self.capability](self.point(k))

    def call(self, part: Any, k: int) -> Any:
        """The capability at the k-th point."""
        return getattr(part, self.capability)(*self.arguments(k))

    def exact(self, k: int) -> Any:
        """What it should come close to, or None where that is not known."""
        function = self.make()
        if derive(self.capability, function.capabilities) is None or self.capability not in function.capabilities:
            return None
        return getattr(function, self.capability)(*self.arguments(k))


def _own_arguments(component: Component) -> Mapping[str, Callable[[int], tuple[Any, ...]]]:
    return getattr(component.load(), "reference_arguments", {})


@functools.cache
def oracle_cases(component: Component) -> list[OracleCase]:
    """For each example and each supplied capability that the kit can call: the first function that fits.

    An oracle that needs other functions than the host's names some: attribute `reference_functions`, a mapping or a
    method that gives one, from names to functions without arguments that return a `Function` of five variables (or
    another term, where `reference_arguments` says what to call its capabilities with).
    """
    callable_here = {*ARGUMENTS, *_own_arguments(component)}
    own = getattr(component.load(), "reference_functions", {})
    functions = {**(own() if callable(own) else own), **FUNCTIONS}
    found = []
    for number, options in enumerate(examples(component)):
        oracle = built(component, options).instance
        for capability in oracle.supplies:
            name = next((one for one in functions if _fits(oracle, functions[one](), capability)), None)
            if capability in callable_here and name is not None:
                found.append(OracleCase(component, options, name, capability, functions[name], number))
    return found


def _fits(oracle: Oracle, function: Any, capability: str) -> bool:
    offers = function.capabilities
    comparable = capability in offers or capability not in ARGUMENTS
    return comparable and set(oracle.needs) <= offers and oracle.refuses(function) is None


@dataclass(frozen=True)
class Probe(Solver):
    """Calls one capability at each step and stays where it is: counts and exactness without any method."""

    capability: str

    State: ClassVar[type | None] = None

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("part", needs=(self.capability,), at_least=1, accepts=Exactness.stochastic),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start}

    def step(self, parts: Any, state: Any) -> Any:
        getattr(parts.part, self.capability)(*ARGUMENTS[self.capability](state["x"]))
        return {"x": state["x"]}

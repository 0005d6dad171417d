"""Evaluators as oracles: they supply `evaluate` to a game that has none, and count what they evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge

from infimum.errors import InputError
from infimum.exactness import Exactness
from infimum.oracle import Oracle
from infimum_rmcts import evaluators
from infimum_rmcts.checks import integer

COUNTED = "evaluated"


def _reference_functions() -> Mapping[str, Callable[[], Any]]:
    from infimum_rmcts.games import TicTacToe
    from infimum_rmcts.problem import GameTerm

    game = TicTacToe()
    return {"tictactoe": lambda: GameTerm(game, game.initial())}


def _positions(k: int) -> tuple[Any]:
    from infimum_rmcts.games import TicTacToe
    from infimum_rmcts.problem import random_positions

    return (random_positions(TicTacToe(), 3 + k, 2, np.random.default_rng(k)),)


class _Evaluating(Oracle):
    """What the evaluators share."""

    kind: ClassVar[str] = "evaluator"
    needs: ClassVar[tuple[str, ...]] = (COUNTED,)
    supplies: ClassVar[tuple[str, ...]] = ("evaluate",)
    exactness = Exactness.approximate
    reference_functions: ClassVar[Callable[[], Any]] = _reference_functions
    reference_arguments: ClassVar[Mapping[str, Callable[[int], Any]]] = {"evaluate": _positions}


class _Part:
    """A game with an evaluator over it."""

    def __init__(self, function: Any, evaluator: Any) -> None:
        self.function, self.evaluator = function, evaluator

    def evaluate(self, S: Any) -> tuple[Any, Any]:
        self.function.evaluated(S)
        found: tuple[Any, Any] = self.evaluator(S)
        return found


@dataclass(frozen=True)
class Uniform(_Evaluating):
    """A flat prior and value 0: what is known comes from the ends of the game alone."""

    needs: ClassVar[tuple[str, ...]] = ("legal", COUNTED)

    def bind(self, function: Any, rng: np.random.Generator) -> _Part:
        return _Part(function, lambda S: (np.asarray(function.legal(S), np.float64), np.zeros(len(S))))


@dataclass(frozen=True)
class Heuristic(_Evaluating):
    """The game's own rules of thumb: its `heuristic(S) -> (prior, value)`."""

    needs: ClassVar[tuple[str, ...]] = ("heuristic", COUNTED)
    preference: ClassVar[int] = 1

    def bind(self, function: Any, rng: np.random.Generator) -> _Part:
        return _Part(function, function.heuristic)


@dataclass(frozen=True)
class Rollout(_Evaluating):
    """A flat prior and the mean score of random games.

    Parameters
    ----------
    rollouts : int, default 8
        Random games from each position, all played at once.
    max_plies : int, default 1000
        Moves after which a game counts as drawn.
    """

    rollouts: Annotated[int, Ge(1)] = 8
    max_plies: Annotated[int, Ge(1)] = 1000

    needs: ClassVar[tuple[str, ...]] = ("legal", "play", "terminal", COUNTED)
    wants: ClassVar[tuple[str, ...]] = ("mover",)
    exactness = Exactness.stochastic

    def __post_init__(self) -> None:
        integer("rmcts.rollout: rollouts", self.rollouts)
        integer("rmcts.rollout: max_plies", self.max_plies)

    def bind(self, function: Any, rng: np.random.Generator) -> RolloutPart:
        return RolloutPart(function, evaluators.Rollout(function, self.rollouts, rng, self.max_plies))


class RolloutPart(_Part):
    """Remembers its generator."""

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.evaluator.rng}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.evaluator.rng = state["rng"]


@dataclass(frozen=True)
class Network(_Evaluating):
    """A torch module, without gradients and in evaluation mode.

    Parameters
    ----------
    module : torch.nn.Module, or a function without arguments that returns one
        Of `encode(S)`, a batch (m, d), to logits (m, A) and values (m,) in [-1, 1]; `python:module:attribute` in a run
        file.
    max_batch : int, default 4096
        Positions in one call of the module at most.
    device : str, default "cpu"
        Where the positions are sent; the module must be there.

    Raises
    ------
    InputError
        If `module` cannot be called.
    """

    module: Any
    max_batch: Annotated[int, Ge(1)] = 4096
    device: str = "cpu"

    needs: ClassVar[tuple[str, ...]] = ("encode", COUNTED)
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ({"module": "python:infimum_rmcts.net:example"},)

    def __post_init__(self) -> None:
        if not callable(self.module):
            raise InputError(f"rmcts.network: module={self.module!r:.60}; expected a torch module or a function")
        integer("rmcts.network: max_batch", self.max_batch)

    def volunteers(self, function: Any) -> bool:
        return False

    def bind(self, function: Any, rng: np.random.Generator) -> _Part:
        module = self.module if hasattr(self.module, "parameters") else self.module()
        return _Part(function, evaluators.Network(module, function.encode, self.max_batch, self.device))


@dataclass(frozen=True)
class Cached(_Evaluating):
    """Remembers what another evaluator said of each position; only what is new is evaluated, and counted.

    Parameters
    ----------
    evaluator : oracle, default rmcts.rollout
        Such as `{use: rmcts.network, module: …}`.
    max_entries : int, default 1_000_000
        When more would be kept, all are forgotten first.
    """

    evaluator: Oracle = field(default_factory=Rollout)
    max_entries: Annotated[int, Ge(1)] = 1_000_000

    def __post_init__(self) -> None:
        if "evaluate" not in getattr(self.evaluator, "supplies", ()):
            raise InputError(
                f"rmcts.cached: evaluator={self.evaluator!r:.80}; expected an oracle that supplies evaluate"
            )
        integer("rmcts.cached: max_entries", self.max_entries)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.evaluator.needs

    @property
    def wants(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.evaluator.wants

    @property
    def exactness(self) -> Exactness:  # type: ignore[override]
        return self.evaluator.exactness

    def volunteers(self, function: Any) -> bool:
        return False

    def bind(self, function: Any, rng: np.random.Generator) -> CachedPart:
        return CachedPart(self.evaluator.bind(function, rng), self.max_entries)


class CachedPart:
    """What was evaluated, with the part of the evaluator below it."""

    def __init__(self, below: Any, max_entries: int) -> None:
        self.below = below
        self.cache = evaluators.Cached(below.evaluate, max_entries)

    def evaluate(self, S: Any) -> tuple[Any, Any]:
        return self.cache(S)

    def state_dict(self) -> dict[str, Any]:
        below = self.below.state_dict() if hasattr(self.below, "state_dict") else {}
        return {"cache": self.cache.state_dict(), "below": below}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cache.load_state_dict(state["cache"])
        if hasattr(self.below, "load_state_dict"):
            self.below.load_state_dict(state["below"])

"""The searches as solvers: an iteration is one evaluator call, so that budgets, traces and checkpoints cut through."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Le
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum.solver import Finished, Metric, Slot, Solver
from infimum.status import Status
from infimum_rmcts import record
from infimum_rmcts.checks import integer
from infimum_rmcts.game import Rules, check_nodes, check_numbers
from infimum_rmcts.problem import FAMILY, RULES
from infimum_rmcts.search import MAX_NODES, SearchResult
from infimum_rmcts.tree import Frontier, Level, backup, dump, expand, roots_frontier, statistics
from infimum_rmcts.trees import Trees

REFERENCE = (
    {"use": "rmcts.search", "game": {"use": "rmcts.connect_four"}, "positions": "random", "count": 3},
    {
        "use": "rmcts.search",
        "game": {"use": "rmcts.tictactoe"},
        "positions": "all",
        "every": 900,
        "reference": "minimax",
    },
)


def rules_of(part: Any) -> Rules:
    """What stands in the slot, as rules."""
    mover = part.mover if part.offers("mover") else None
    return Rules(part.num_actions, part.legal, part.play, part.terminal, part.evaluate, mover)


@dataclass(frozen=True)
class Search(Solver):
    """What both searches have in common."""

    num_simulations: Annotated[int, Ge(1)] = 256
    c_puct: Annotated[float, Gt(0)] = 1.0
    max_nodes: Annotated[int, Ge(1)] = MAX_NODES

    families: ClassVar[tuple[str, ...]] = (FAMILY,)
    reference_problems: ClassVar[tuple[Mapping[str, Any], ...]] = REFERENCE

    def __post_init__(self) -> None:
        check_numbers(self.num_simulations, self.c_puct, self.max_nodes)

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("game", needs=(*RULES, "evaluate"), wants=("mover",), at_least=1, at_most=1, empty=None),)

    def check(self, parts: Any) -> None:
        check_nodes(parts.game.roots, self.num_simulations, parts.game.num_actions, self.max_nodes)

    def search(self, rules: Rules, roots: Any, rng: np.random.Generator) -> SearchResult:
        """A whole search at checked roots."""
        raise NotImplementedError

    def solution(self, state: Any) -> NDArray[np.float64]:
        """The policies at the roots."""
        found: NDArray[np.float64] = state.policy
        return found


@dataclass(slots=True)
class TreeState:
    """A breadth-first search between two levels. `done` is the last search that was completed, if any."""

    policy: NDArray[np.float64]
    levels: list[Level]
    frontier: Frontier | None
    round: int
    rng: np.random.Generator
    facts: dict[str, Any]
    """What a report says of the game and the first root."""
    value: NDArray[np.float64] | None = None
    done: list[Level] = field(default_factory=list)
    game: Any = None
    """Packs positions for checkpoints; None once taken up from one, while positions are still packed."""


@dataclass(frozen=True)
class RMCTS(Search):
    """Breadth-first game-tree search with regularized policies: one evaluator batch per depth for all roots.

    An iteration is one level. The budget of a node is split over its actions in proportion to the prior, so the tree
    is known without looking at values; they come back from below through the policy that weighs them against the
    prior. Before the last level the policies are those of the tree so far. Chance is only in the rounding of budgets.

    Parameters
    ----------
    num_simulations : int, default 256
        Evaluations and terminal hits per root.
    c_puct : float, default 1.0
        Weight of the prior, for values in [-1, 1]; the value of the paper's timings.
    max_nodes : int, default 4_000_000
        Roots times simulations at most.
    doublings : int, default 0
        Searches with twice the simulations each that follow the first one. The policies are those of the last
        complete search. For curves over budgets, and to go on until a rule says stop.

    Raises
    ------
    InputError
        For numbers out of range, too many nodes, a position without a legal action, an evaluator that returns
        something wrong.

    References
    ----------
    K. Frankston, B. Howard, "Accelerating Monte-Carlo tree search with optimized posterior policies", 2026.
    """

    doublings: Annotated[int, Ge(0), Le(60)] = 0

    metrics: ClassVar[Mapping[str, Metric]] = {
        "root_value": Metric(lambda state: None if state.value is None else float(state.value.mean())),
        "depth": Metric(lambda state: float(len(state.levels))),
    }
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"num_simulations": 64},
        {"num_simulations": 16, "doublings": 3},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if integer("doublings", self.doublings, 0) > 60:
            raise InputError(f"doublings={self.doublings}: expected 60 at most")

    def check(self, parts: Any) -> None:
        most = self.num_simulations << self.doublings
        check_nodes(parts.game.roots, most, parts.game.num_actions, self.max_nodes)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> TreeState:
        part = parts.game
        frontier = roots_frontier(part.roots, self.num_simulations)
        return TreeState(start, [], frontier, 0, rng, record.facts(part.game, part.roots), game=part.game)

    def step(self, parts: Any, state: TreeState) -> TreeState:
        frontier, levels, number = state.frontier, state.levels, state.round
        if frontier is None:
            if number == self.doublings:
                total = self.num_simulations << number
                raise Finished(f"the search of {total} simulations is complete", Status.limit)
            number, levels = number + 1, []
            frontier = roots_frontier(parts.game.roots, self.num_simulations << number)
        elif state.game is None:
            frontier = replace(frontier, states=record.unpack(parts.game.game, frontier.states))
        rng = copy.deepcopy(state.rng)
        level, rest = expand(rules_of(parts.game), frontier, len(levels), rng)
        levels = [*levels, level]
        done = levels if rest is None else state.done
        policy, value = state.policy, state.value
        if rest is None or number == 0:
            found = backup(levels, rest, self.c_puct)
            policy, value = found.policy, found.value
        return TreeState(policy, levels, rest, number, rng, state.facts, value, done, parts.game.game)

    def search(self, rules: Rules, roots: Any, rng: np.random.Generator) -> SearchResult:
        rest: Frontier | None = roots_frontier(roots, self.num_simulations)
        levels: list[Level] = []
        while rest is not None:
            level, rest = expand(rules, rest, len(levels), rng)
            levels.append(level)
        found = backup(levels, None, self.c_puct)
        return SearchResult(found.policy, found.value, found.q, found.counts, statistics(levels))

    def extras(self, state: TreeState) -> dict[str, Any]:
        """Values and counts at the roots, and the tree below the first one."""
        levels = state.done or state.levels
        if not levels:
            return {}
        found = backup(levels, None if state.done else state.frontier, self.c_puct)
        arrays = {"policy": found.policy, "value": found.value, "q": found.q, "counts": found.counts}
        tree = record.from_levels(levels, found.values)
        more = {"prior": levels[0].prior, "stats": statistics(levels), "tree": tree}
        return {"what": record.SEARCH, **state.facts, **arrays, **more}

    def dump(self, state: TreeState) -> Any:
        frontier = None
        if state.frontier is not None:
            frontier = {**dump(state.frontier), "states": record.pack(state.game, state.frontier.states)}
        return {
            "policy": state.policy,
            "value": state.value,
            "levels": [dump(one) for one in state.levels],
            "complete": [] if state.done is state.levels else [dump(one) for one in state.done],
            "same": state.done is state.levels,
            "frontier": frontier,
            "round": state.round,
            "rng": state.rng,
            "facts": state.facts,
        }

    def load(self, tree: Any, start: Any) -> TreeState:
        levels = [Level(**one) for one in tree["levels"]]
        done = levels if tree["same"] else [Level(**one) for one in tree["complete"]]
        frontier = None if tree["frontier"] is None else Frontier(**tree["frontier"])
        return TreeState(
            tree["policy"], levels, frontier, tree["round"], tree["rng"], tree["facts"], tree["value"], done
        )


@dataclass(slots=True)
class PuctState:
    """The trees, which are filled in place, and what a report says of the game."""

    policy: NDArray[np.float64]
    trees: Trees
    facts: dict[str, Any]
    game: Any = None
    """As in `TreeState`."""
    packed: Any = None
    """Positions as a checkpoint holds them, until the next step."""


@dataclass(frozen=True)
class PUCT(Search):
    """Search by the PUCT rule, as AlphaZero does: the rival of `rmcts.rmcts`, one leaf per simulation and root.

    An iteration is one simulation at every root, and one evaluator batch for all of them. The policy is the share of
    the visits. Nothing is drawn.

    Parameters
    ----------
    num_simulations : int, default 256
        Evaluations and terminal hits per root, the root's own among them.
    c_puct : float, default 1.0
        Weight of the prior, for values in [-1, 1].
    max_nodes : int, default 4_000_000
        Roots times simulations at most.

    Raises
    ------
    InputError
        As `rmcts.rmcts`.

    References
    ----------
    D. Silver et al., "A general reinforcement learning algorithm that masters chess, shogi, and Go through self-play",
    Science 362, 2018.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {
        "root_value": Metric(
            lambda state: None if not state.trees.simulations else float(state.trees.root_values()[0].mean())
        ),
        "depth": Metric(lambda state: float(state.trees.depth)),
    }
    inplace: ClassVar[bool] = True
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ({"num_simulations": 64},)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> PuctState:
        part = parts.game
        trees = Trees(part.roots, len(part.roots), self.num_simulations, part.num_actions, self.c_puct)
        return PuctState(start, trees, record.facts(part.game, part.roots), part.game)

    def step(self, parts: Any, state: PuctState) -> PuctState:
        trees = state.trees
        if trees.simulations >= self.num_simulations:
            raise Finished(f"the search of {self.num_simulations} simulations is complete", Status.limit)
        if state.game is None:
            state.game = parts.game.game
            trees.place(parts.game.roots, record.unpack(state.game, state.packed))
            state.packed = None
        trees.simulate(rules_of(parts.game))
        state.policy = trees.policy()
        return state

    def search(self, rules: Rules, roots: Any, rng: np.random.Generator) -> SearchResult:
        trees = Trees(roots, len(roots), self.num_simulations, rules.num_actions, self.c_puct)
        for _ in range(self.num_simulations):
            trees.simulate(rules)
        value, q, counts = trees.root_values()
        return SearchResult(trees.policy(), value, q, counts, trees.statistics())

    def extras(self, state: PuctState) -> dict[str, Any]:
        """Values and visits at the roots, and the tree below the first one."""
        trees = state.trees
        if not trees.simulations:
            return {}
        value, q, counts = trees.root_values()
        arrays = {"policy": trees.policy(), "value": value, "q": q, "counts": counts}
        prior = trees.prior[trees.first]
        more = {"prior": prior, "stats": trees.statistics(), "tree": record.from_trees(trees)}
        return {"what": record.SEARCH, **state.facts, **arrays, **more}

    def dump(self, state: PuctState) -> Any:
        packed = state.packed if state.game is None else record.pack(state.game, state.trees.states)
        trees = state.trees.state_dict()
        return {"policy": state.policy, "facts": state.facts, "states": packed, "trees": trees}

    def load(self, tree: Any, start: Any) -> PuctState:
        trees = Trees(None, len(start), self.num_simulations, start.shape[1], self.c_puct)
        trees.load_state_dict(tree["trees"])
        return PuctState(tree["policy"], trees, tree["facts"], packed=tree["states"])

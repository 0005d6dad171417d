"""Two searches play each other, all games at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum.solver import Finished, Metric, Slot, Solver
from infimum.status import Status
from infimum_rmcts import record
from infimum_rmcts.checks import integer, not_negative
from infimum_rmcts.game import Rules, named, shown
from infimum_rmcts.policy import choose
from infimum_rmcts.problem import FAMILY, RULES
from infimum_rmcts.solvers import PUCT, RMCTS, Search, rules_of

NONE = -1
"""In the record of moves: the game was over."""


@dataclass(slots=True)
class MatchState:
    """G games after a number of plies."""

    states: Any
    players: NDArray[np.int64]
    """Who moves first in each game: 0 the player, 1 the opponent."""
    turn: NDArray[np.int64]
    """Who moves now."""
    points: NDArray[np.float64]
    """The player's: 1 for a win, 0.5 for a draw, NaN while a game goes on."""
    moves: list[NDArray[np.int64]]
    rng: np.random.Generator
    boards: list[str]
    """The first game as text, ply by ply."""
    actions: list[str]
    title: str
    game: Any = None


@dataclass(frozen=True)
class Match(Solver):
    """Play two searches against each other from every root; an iteration is one ply of all games.

    Both see the same evaluator, the one that stands in the slot. The run has converged when all games are over, and
    ends at a limit when some are not after `max_plies`. The solution is the record of the match, not a policy:
    `{"score", "wins", "draws", "losses", "unfinished"}` of the player.

    Parameters
    ----------
    player, opponent : solver, default rmcts.rmcts and rmcts.puct
        Their `num_simulations` and `c_puct` count; each move is a search from scratch.
    temperature : float, default 0.0
        Moves are drawn in proportion to `policy ** (1 / temperature)`; 0 takes the best, which makes the games of one
        opening differ only by the rounding of budgets.
    swap : bool, default True
        Play every root twice, with either side to move first.
    max_plies : int, default 1000
        Games that last longer stay unfinished.

    Raises
    ------
    InputError
        For players that are no searches or have doublings, a negative temperature, and whatever the searches raise.
    """

    player: Search = field(default_factory=RMCTS)
    opponent: Search = field(default_factory=PUCT)
    temperature: Annotated[float, Ge(0)] = 0.0
    swap: bool = True
    max_plies: Annotated[int, Ge(1)] = 1000

    families: ClassVar[tuple[str, ...]] = (FAMILY,)
    maps_points: ClassVar[bool] = False
    metrics: ClassVar[Mapping[str, Metric]] = {
        "score": Metric(lambda state: _score(state.points)),
        "finished": Metric(lambda state: float((~np.isnan(state.points)).mean())),
    }
    reference_problems: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"use": "rmcts.search", "game": {"use": "rmcts.tictactoe"}, "positions": "random", "count": 2, "plies": 1},
        {"use": "rmcts.search", "game": {"use": "rmcts.othello", "size": 4}},
    )
    examples: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {
            "player": {"use": "rmcts.rmcts", "num_simulations": 16},
            "opponent": {"use": "rmcts.puct", "num_simulations": 16},
            "temperature": 0.5,
        },
    )

    def __post_init__(self) -> None:
        for name in ("player", "opponent"):
            one = getattr(self, name)
            if not isinstance(one, Search):
                raise InputError(f"rmcts.match: {name}={one!r:.80}; expected rmcts.rmcts or rmcts.puct")
            if getattr(one, "doublings", 0):
                raise InputError(
                    f"rmcts.match: {name} searches once a move; leave out doublings, raise num_simulations"
                )
        not_negative("rmcts.match: temperature", self.temperature)
        integer("rmcts.match: max_plies", self.max_plies)
        if not isinstance(self.swap, bool):
            raise InputError(f"rmcts.match: swap={self.swap!r:.80}; expected true or false")

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("game", needs=(*RULES, "evaluate"), wants=("mover",), at_least=1, at_most=1, empty=None),)

    def check(self, parts: Any) -> None:
        self.player.check(parts)
        self.opponent.check(parts)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> MatchState:
        part = parts.game
        roots, count = part.roots, len(part.roots)
        players = np.zeros(count, np.int64)
        if self.swap:
            roots, players = np.concatenate([roots, roots]), np.concatenate([players, 1 - players])
        points = np.full(len(roots), np.nan)
        actions = [named(part.game, a) for a in range(part.num_actions)]
        boards = [shown(part.game, roots[0])]
        title = f"{_name(self.player)} against {_name(self.opponent)}, {record.facts(part.game, roots[:1])['game']}"
        return MatchState(roots, players, players.copy(), points, [], rng, boards, actions, title, part.game)

    def step(self, parts: Any, state: MatchState) -> MatchState:
        live = np.flatnonzero(np.isnan(state.points))
        if not len(live):
            games = f"all {len(state.points)} games are" if len(state.points) > 1 else "the game is"
            raise Finished(f"{games} over: {_words(state.points)}")
        if len(state.moves) >= self.max_plies:
            games = f"{len(live)} games were" if len(live) > 1 else "a game was"
            raise Finished(f"{games} not over after {self.max_plies} plies: {_words(state.points)}", Status.limit)
        game, rules, rng = parts.game.game, rules_of(parts.game), copy.deepcopy(state.rng)
        states = (state.states if state.game is not None else record.unpack(game, state.states)).copy()
        moves = self._moves(rules, states, state.turn, live, rng)
        before = states[live]
        after = rules.play(before, moves[live])
        sign = rules.signs(before, after)
        states[live] = after
        over, score = rules.terminal(after)
        turn, points = state.turn.copy(), state.points.copy()
        turn[live] = np.where(sign > 0, turn[live], 1 - turn[live])
        # The score is for whom `signs` takes to move at the end.
        own = np.where(turn[live] == 0, score, -score)
        points[live[over]] = 0.5 + 0.5 * np.sign(own[over])
        boards = [*state.boards, shown(game, states[0])] if live[0] == 0 else state.boards
        return MatchState(
            states, state.players, turn, points, [*state.moves, moves], rng, boards, state.actions, state.title, game
        )

    def _moves(self, rules: Rules, states: Any, turn: Any, live: Any, rng: np.random.Generator) -> NDArray[np.int64]:
        """A move in every game that goes on, from one search for each side."""
        moves = np.full(len(states), NONE, np.int64)
        for side, one in enumerate((self.player, self.opponent)):
            mine = live[turn[live] == side]
            if len(mine):
                policy = one.search(rules, states[mine], rng).policy
                moves[mine] = choose(policy, self.temperature, rng)
        return moves

    def solution(self, state: MatchState) -> dict[str, Any]:
        """The record of the match so far."""
        points = state.points
        counts = {
            name: int((points == value).sum()) for name, value in (("wins", 1.0), ("draws", 0.5), ("losses", 0.0))
        }
        return {"score": _score(points), **counts, "unfinished": int(np.isnan(points).sum())}

    def extras(self, state: MatchState) -> dict[str, Any]:
        """Moves of all games, and the first one board by board."""
        moves = np.array(state.moves).T if state.moves else np.zeros((len(state.points), 0), np.int64)
        return {
            "what": record.MATCH,
            "title": state.title,
            "moves": moves,
            "points": state.points,
            "first": state.players,
            "boards": state.boards,
            "actions": state.actions,
            "names": [_name(self.player), _name(self.opponent)],
        }

    def dump(self, state: MatchState) -> Any:
        tree = {name: getattr(state, name) for name in MatchState.__slots__ if name not in ("game", "states")}
        return {**tree, "states": record.pack(state.game, state.states)}

    def load(self, tree: Any, start: Any) -> MatchState:
        return MatchState(**tree)


def _score(points: NDArray[np.float64]) -> float | None:
    known = points[~np.isnan(points)]
    return float(known.mean()) if len(known) else None


def _words(points: NDArray[np.float64]) -> str:
    wins, draws, losses = ((points == one).sum() for one in (1.0, 0.5, 0.0))
    return f"{wins} won, {draws} drawn, {losses} lost"


def _name(search: Search) -> str:
    return f"{'RMCTS' if isinstance(search, RMCTS) else 'PUCT'}({search.num_simulations})"

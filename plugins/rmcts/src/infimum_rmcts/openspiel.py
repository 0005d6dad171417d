"""Games of OpenSpiel, position by position: slow beside the vectorized games, but there are a hundred of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_rmcts.game import Game

Floats = NDArray[np.float64]


class OpenSpiel(Game):
    """A deterministic game of OpenSpiel with perfect information and turns, for one player or two with zero sum.

    Positions are arrays of `pyspiel.State`. Every position costs some calls into OpenSpiel.

    Parameters
    ----------
    game : str, or pyspiel.Game
        Such as "breakthrough(rows=5,columns=4)".

    Raises
    ------
    InputError
        If OpenSpiel is not installed or knows no such game; for games with chance, hidden information, simultaneous
        moves, more than two players, or two whose scores do not sum to zero.
    """

    def __init__(self, game: Any = "tic_tac_toe") -> None:
        try:
            pyspiel = import_module("pyspiel")
        except ModuleNotFoundError:
            raise InputError("rmcts.openspiel needs OpenSpiel: pip install 'infimum-rmcts[openspiel]'") from None
        if isinstance(game, str):
            try:
                game = pyspiel.load_game(game)
            except Exception as error:
                said = str(error).splitlines()[0][:160]
                raise InputError(f"rmcts.openspiel: OpenSpiel has no game {game!r}: {said}") from None
        if not isinstance(game, pyspiel.Game):
            raise InputError(f"rmcts.openspiel: game={game!r:.80}; expected a name or a pyspiel.Game")
        kind = game.get_type()
        told = str(game)
        wrong = [
            (kind.chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC, "it has chance moves"),
            (kind.information != pyspiel.GameType.Information.PERFECT_INFORMATION, "information is hidden"),
            (kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL, "players do not move in turn"),
            (game.num_players() > 2, f"it has {game.num_players()} players"),
            (
                game.num_players() == 2 and kind.utility != pyspiel.GameType.Utility.ZERO_SUM,
                "the scores do not sum to zero",
            ),
        ]
        for bad, why in wrong:
            if bad:
                raise InputError(f"rmcts.openspiel: {told} cannot be searched: {why}")
        self.game, self.name = game, told
        self.num_actions = int(game.num_distinct_actions())

    def initial(self) -> Any:
        return _array([self.game.new_initial_state()])

    def mover(self, S: Any) -> NDArray[np.int64]:
        # At the end nobody moves: scores are then those of player 0.
        return np.array([max(0, one.current_player()) for one in S], np.int64)

    def legal(self, S: Any) -> NDArray[np.bool_]:
        found = np.zeros((len(S), self.num_actions), bool)
        for row, one in enumerate(S):
            found[row, one.legal_actions()] = True
        return found

    def play(self, S: Any, actions: NDArray[np.int64]) -> Any:
        return _array([one.child(int(a)) for one, a in zip(S, actions, strict=True)])

    def terminal(self, S: Any) -> tuple[NDArray[np.bool_], Floats]:
        over = np.array([one.is_terminal() for one in S], bool)
        return over, np.array([one.player_return(0) if end else 0.0 for one, end in zip(S, over, strict=True)])

    def encode(self, S: Any) -> NDArray[np.float32]:
        """OpenSpiel's observation for the player to move."""
        return np.array([one.observation_tensor(max(0, one.current_player())) for one in S], np.float32)

    def pack(self, S: Any) -> list[str]:
        return ["" if one is None else str(one.serialize()) for one in S]

    def unpack(self, tree: Any) -> Any:
        return _array([None if one == "" else self.game.deserialize_state(one) for one in tree])

    def show(self, state: Any) -> str:
        return str(state)

    def action_name(self, action: int) -> str:
        return str(action)


def _array(states: list[Any]) -> Any:
    found = np.empty(len(states), object)
    found[:] = states
    return found

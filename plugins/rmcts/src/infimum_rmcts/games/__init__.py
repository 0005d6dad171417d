"""Games with vectorized rules: tic-tac-toe, Connect-4, Othello with passes, explicit trees."""

from __future__ import annotations

from infimum_rmcts.games.connect_four import ConnectFour
from infimum_rmcts.games.othello import Othello
from infimum_rmcts.games.tictactoe import TicTacToe
from infimum_rmcts.games.tree import TreeGame

__all__ = ["ConnectFour", "Othello", "TicTacToe", "TreeGame"]

"""Breadth-first game-tree search with regularized policies, its rival PUCT, games and evaluators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_rmcts.evaluators import Cached, Network, Rollout, Uniform
    from infimum_rmcts.exact import all_positions, minimax
    from infimum_rmcts.game import Game
    from infimum_rmcts.games import ConnectFour, Othello, TicTacToe, TreeGame
    from infimum_rmcts.net import PolicyValueNet
    from infimum_rmcts.openspiel import OpenSpiel
    from infimum_rmcts.policy import choose, regularized_policy, split_budget
    from infimum_rmcts.problem import GameSearch
    from infimum_rmcts.search import SearchResult, puct, rmcts

__all__ = [
    "Cached",
    "ConnectFour",
    "Game",
    "GameSearch",
    "Network",
    "OpenSpiel",
    "Othello",
    "PolicyValueNet",
    "Rollout",
    "SearchResult",
    "TicTacToe",
    "TreeGame",
    "Uniform",
    "all_positions",
    "choose",
    "minimax",
    "puct",
    "regularized_policy",
    "rmcts",
    "split_budget",
]

_HOMES = {
    **dict.fromkeys(("Cached", "Network", "Rollout", "Uniform"), "evaluators"),
    **dict.fromkeys(("ConnectFour", "Othello", "TicTacToe", "TreeGame"), "games"),
    **dict.fromkeys(("all_positions", "minimax"), "exact"),
    **dict.fromkeys(("choose", "regularized_policy", "split_budget"), "policy"),
    **dict.fromkeys(("SearchResult", "puct", "rmcts"), "search"),
    "Game": "game",
    "GameSearch": "problem",
    "OpenSpiel": "openspiel",
    "PolicyValueNet": "net",
}
_EXTRAS = {"torch": ("PyTorch", "torch"), "pyspiel": ("OpenSpiel", "openspiel")}


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name in _EXTRAS:
            what, extra = _EXTRAS[error.name]
            raise ImportError(
                f"infimum_rmcts.{name} needs {what}, which is not installed: pip install 'infimum-rmcts[{extra}]'"
            ) from error
        raise

"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from infimum.plugins import hook

_EVALUATORS = {
    "uniform": ("Uniform", "a flat prior and value 0: what is known comes from the ends of the game"),
    "heuristic": ("Heuristic", "prior and value by the game's own rules of thumb"),
    "rollout": ("Rollout", "a flat prior and the mean score of random games"),
    "network": ("Network", "prior and value by a torch module"),
    "cached": ("Cached", "remembers what another evaluator said of each position"),
}
_GAMES = {
    "tictactoe": ("infimum_rmcts.games:TicTacToe", "tic-tac-toe"),
    "connect_four": ("infimum_rmcts.games:ConnectFour", "Connect-4 on bitboards, any board of up to 64 bits"),
    "othello": ("infimum_rmcts.games:Othello", "Othello on 4, 6 or 8 cells a side; who cannot move passes"),
    "tree": ("infimum_rmcts.games:TreeGame", "a game given as a tree of nested lists"),
    "openspiel": ("infimum_rmcts.openspiel:OpenSpiel", "a game of OpenSpiel, position by position"),
}


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    summary = "good moves at positions of a game, judged by full search where it is small"
    register("search", "infimum_rmcts.problem:search", kind="game search", summary=summary)


@hook
def infimum_oracles(register: Callable[..., None]) -> None:
    for name, (target, summary) in _EVALUATORS.items():
        register(name, f"infimum_rmcts.oracles:{target}", kind="evaluator", summary=summary)
    register(
        "kl_prox",
        "infimum_rmcts.mirror:KLProx",
        kind="proximal",
        summary="a step along the gradient within the simplex, near in the KL divergence",
    )


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    register(
        "rmcts",
        "infimum_rmcts.solvers:RMCTS",
        kind="game search",
        summary="breadth-first search with regularized policies, one evaluator batch per depth",
    )
    summary = "search by the PUCT rule, one leaf per simulation"
    register("puct", "infimum_rmcts.solvers:PUCT", kind="game search", summary=summary)
    register("match", "infimum_rmcts.match:Match", kind="game search", summary="two searches play each other")
    register(
        "mirror_descent",
        "infimum_rmcts.mirror:MirrorDescent",
        kind="mirror descent",
        summary="minimize over the simplex by steps that are near in the KL divergence",
    )


@hook
def infimum_components(register: Callable[..., None]) -> None:
    for name, (target, summary) in _GAMES.items():
        register(name, target, kind="game", summary=summary)


@hook
def infimum_observers(run: Any) -> Iterable[tuple[int, Callable[[Any], object]]]:
    # Not a run of ours unless our solvers were imported.
    match = sys.modules.get("infimum_rmcts.match")
    if match is None or not isinstance(run.solver, match.Match):
        return ()
    from infimum_rmcts.observe import observers

    return observers(run)


@hook
def infimum_run_finished(run: Any, result: Any) -> None:
    match = sys.modules.get("infimum_rmcts.match")
    if match is not None and isinstance(run.solver, match.Match):
        from infimum_rmcts.observe import finish

        finish(run, result)


@hook
def infimum_report_sections(result: Any) -> Iterable[Any]:
    if not any(str(one.get("what", "")).startswith("rmcts ") for one in result.extras.values()):
        return ()
    from infimum_rmcts.report import sections

    return tuple(sections(result.extras))

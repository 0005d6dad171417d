"""Tells a match while it is played: boards to the log, the last one to the notes of the result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from infimum_rmcts.match import Match
from infimum_rmcts.record import MATCH
from infimum_rmcts.report import game_text

log = logging.getLogger("infimum")


def observers(run: Any) -> list[tuple[int, Callable[[Any], object]]]:
    """One observer for a match, none for other runs."""
    if not isinstance(run.solver, Match):
        return []

    def tell(progress: Any) -> None:
        # The run takes up the new state after its observers; what they see is one ply old, the last ply by `finish`.
        state = run.state
        if state is not None and state.moves and len(state.boards) == len(state.moves) + 1:
            move = state.actions[int(state.moves[-1][0])]
            log.info("ply %d, %s\n%s", len(state.moves), move, state.boards[-1])

    return [(1, tell)]


def finish(run: Any, result: Any) -> None:
    """The first game of a match as a note of its result, which is printed and saved with it."""
    tree = next((one for one in result.extras.values() if one.get("what") == MATCH), None)
    if isinstance(run.solver, Match) and tree:
        run.note(game_text(tree, last=True))
        result.notes.append(run.notes[-1])

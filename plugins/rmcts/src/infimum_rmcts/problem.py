"""The family of game searches: a game and roots; a point is a policy at every root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum.problem import PointMetric, Problem, Term
from infimum.vocabulary import CAPABILITIES, Capability
from infimum_rmcts.checks import integer, numbers
from infimum_rmcts.exact import all_positions, minimax
from infimum_rmcts.game import Evaluator, Game, action_of, check_evaluator, check_game, check_roots

Floats = NDArray[np.float64]
FAMILY = "game search"
RULES = ("legal", "play", "terminal")
EXTRA = ("mover", "heuristic", "encode")
"""Capabilities that a game may have."""

_MEANINGS = {
    "legal": "legal(S) -> (m, A): which actions are legal in m positions",
    "play": "play(S, actions) -> the positions after one action each",
    "terminal": "terminal(S) -> (over (m,), score (m,))",
    "mover": "mover(S) -> (m,): the player to move",
    "heuristic": "heuristic(S) -> (prior (m, A), value (m,)), by rules of thumb",
    "encode": "encode(S) -> (m, d): positions as numbers for a network",
    "evaluate": "evaluate(S) -> (prior (m, A), value (m,)), for the player to move",
}


def _positions(states: Any) -> int:
    """How many positions a batch holds; a family of another plugin may use the same names for single things."""
    return len(states) if hasattr(states, "__len__") else 1


for _name, _meaning in _MEANINGS.items():
    CAPABILITIES.setdefault(_name, Capability(_meaning, (_name,), points=_positions))
CAPABILITIES.setdefault(
    "evaluated", Capability("evaluated(S): m positions are about to be evaluated", ("evaluate",), points=_positions)
)


class GameTerm:
    """A game with its roots, as a term of a problem: its rules are the capabilities.

    Attributes
    ----------
    game : Game
    roots : array, shape (B, ...)
    num_actions : int
    """

    def __init__(self, game: Any, roots: Any, evaluator: Evaluator | None = None) -> None:
        self.game, self.roots, self.num_actions = game, roots, int(game.num_actions)
        names = [*RULES, *(one for one in EXTRA if hasattr(game, one))]
        for name in names:
            setattr(self, name, getattr(game, name))
        if evaluator is not None:
            self.evaluate = evaluator
            names.append("evaluate")
        self.capabilities = frozenset([*names, "evaluated"])

    def evaluated(self, S: Any) -> None:
        """Evaluators that are not the game's own say here which positions they evaluate, so that they are counted."""

    def to(self, x: Any) -> GameTerm:
        return self

    def check(self, x: Any) -> None:
        return None

    def __repr__(self) -> str:
        return f"{_title(self.game)}, {len(self.roots)} roots"


class GameSearch(Problem):
    """Find good policies at positions of a game.

    A point is a policy at each root, shape (B, A). With a reference, `value` is its mean regret against best play
    (0 is perfect, smaller is better), and the metric `optimal` is the share of roots at which its most probable action
    is a best one; without one, points are not ranked.

    Parameters
    ----------
    game : Game
        Or any object with `num_actions`, `legal`, `play`, `terminal`.
    roots : array, shape (B, ...), optional
        Positions that are not over; the game's beginning by default.
    evaluator : callable, optional
        `evaluator(S) -> (prior (m, A), value (m,))`; without it an oracle must supply `evaluate`.
    reference : {"minimax"} or array, shape (B, A), optional
        Exact values of the actions, NaN where illegal; "minimax" computes them, for small games.
    name : str, optional

    Raises
    ------
    InputError
        For something that is no game, roots that are empty, over or of another shape than the game's positions, an
        evaluator that cannot be called, a reference of another shape or with NaN at a legal action.
    """

    family = FAMILY

    def __init__(
        self,
        game: Any,
        roots: Any = None,
        *,
        evaluator: Evaluator | None = None,
        reference: Literal["minimax"] | Any | None = None,
        name: str = "",
    ) -> None:
        check_game(game)
        if roots is None:
            if not hasattr(game, "initial"):
                raise InputError(f"{_title(game)} has no initial position: give roots")
            roots = game.initial()
        if evaluator is not None:
            check_evaluator(evaluator)
        # A copy: what the user changes later must not change the problem.
        self.game, self.roots = game, check_roots(game, roots).copy()
        self.legal = np.asarray(game.legal(self.roots), bool)
        self.name = name or f"search in {_title(game)}"
        self.exact = _reference(game, self.roots, self.legal, reference)
        self._terms = (Term("game", GameTerm(game, self.roots, evaluator)),)

    @property
    def terms(self) -> tuple[Term, ...]:
        return self._terms

    @property
    def merit(self) -> str | None:
        return "value" if self.exact is not None else None

    @property
    def recorded(self) -> tuple[str, ...]:
        return ("optimal",)

    def start(self, rng: np.random.Generator) -> Floats:
        """Flat policies over the legal actions."""
        return np.asarray(self.legal / self.legal.sum(axis=1, keepdims=True))

    def prepare(self, start: Any) -> Floats:
        policy = np.array(start, dtype=np.float64)
        if policy.shape != self.legal.shape:
            raise InputError(f"x0 has shape {policy.shape}; expected a policy at each root, {self.legal.shape}")
        if not np.all(np.isfinite(policy)) or np.any(policy < 0) or not np.allclose(policy.sum(axis=1), 1.0):
            raise InputError("x0: each row must be a policy, finite, >= 0 and with sum 1")
        if np.any(policy[~self.legal] > 0):
            raise InputError("x0: a policy has mass on an illegal action")
        return policy

    def copy(self, point: Floats) -> Floats:
        return point.copy()

    def size(self, point: Floats) -> float:
        return float(np.linalg.norm(point))

    def metrics(self, point: Floats) -> Mapping[str, PointMetric]:
        out: dict[str, PointMetric] = {"rel_change": _change(relative=True), "abs_change": _change(relative=False)}
        if self.exact is not None:
            q = np.where(self.legal, self.exact, -np.inf)
            best = q.max(axis=1)
            finite = np.where(self.legal, self.exact, 0.0)
            rows = np.arange(len(q))
            out["value"] = lambda x, _: float((best - (x * finite).sum(axis=1)).mean())
            out["optimal"] = lambda x, _: float((q[rows, x.argmax(axis=1)] >= best - 1e-9).mean())
        return out

    def describe(self, point: Any = None) -> str:
        many = len(self.roots)
        return f"{self.name} ({many} root{'s' if many != 1 else ''}, {self.game.num_actions} actions)"


def _title(game: Any) -> str:
    return str(getattr(game, "name", "") or type(game).__name__)


def _reference(game: Any, roots: Any, legal: Any, reference: Any) -> Floats | None:
    if reference is None:
        return None
    if isinstance(reference, str):
        if reference != "minimax":
            raise InputError(f"reference={reference!r}: expected 'minimax', an array, or none")
        return minimax(game, roots)[1]
    q = numbers("reference", reference)
    if q.shape != (len(roots), game.num_actions):
        raise InputError(
            f"reference has shape {q.shape}; expected values of the actions, {(len(roots), game.num_actions)}"
        )
    if not np.isfinite(q[legal]).all():
        raise InputError("reference: the value of a legal action is NaN or inf")
    return q


def _change(*, relative: bool) -> PointMetric:
    def change(x: Floats, previous: Floats | None) -> float | None:
        if previous is None:
            return None
        moved = float(np.linalg.norm(x - previous))
        return moved / max(1.0, float(np.linalg.norm(x))) if relative else moved

    return change


def search(
    game: Game,
    moves: Sequence[int | str] = (),
    positions: Literal["one", "random", "all"] = "one",
    count: Annotated[int, Ge(1)] = 100,
    plies: Annotated[int, Ge(0)] = 4,
    every: Annotated[int, Ge(1)] = 1,
    seed: Annotated[int, Ge(0)] = 0,
    reference: Literal["minimax"] | None = None,
) -> GameSearch:
    """Search at positions of a game.

    Parameters
    ----------
    game : Game
        Such as `{use: rmcts.connect_four}`, or `python:module:attribute`.
    moves : list, default []
        Moves from the beginning to the one position, as numbers or by name.
    positions : {"one", "random", "all"}, default "one"
        The position after `moves`; `count` positions after `plies` random moves from it (games that end before are
        drawn again); or every position of a small game that is not over.
    count : int, default 100
        Random positions.
    plies : int, default 4
        Random moves to each of them.
    every : int, default 1
        Of all positions, keep each `every`-th one.
    seed : int, default 0
        Of the random positions.
    reference : {"minimax"}, optional
        Judge policies against the exact values, computed by full search; for small games.

    Returns
    -------
    GameSearch

    Raises
    ------
    InputError
        For an illegal move, numbers out of range, or a game with too many positions for what is asked.
    """
    check_game(game)
    for name, value, least in (("count", count, 1), ("plies", plies, 0), ("every", every, 1), ("seed", seed, 0)):
        integer(name, value, least)
    if positions not in ("one", "random", "all"):
        raise InputError(f"positions={positions!r}: expected 'one', 'random' or 'all'")
    if positions == "all":
        if moves:
            raise InputError("positions: all takes every position from the beginning; leave out moves")
        roots = all_positions(game)[::every]
    else:
        roots = after(game, moves)
        if positions == "random":
            roots = random_positions(game, count, plies, np.random.default_rng(seed), roots)
    return GameSearch(game, roots, reference=reference)


search.examples = (  # type: ignore[attr-defined]
    {"game": {"use": "rmcts.tictactoe"}, "reference": "minimax", "moves": ["b2", "a3"]},
    {"game": {"use": "rmcts.connect_four"}, "positions": "random", "count": 6},
)


def after(game: Any, moves: Sequence[int | str]) -> Any:
    """The position after moves from the beginning, as a batch of one.

    Raises
    ------
    InputError
        For a move that is unknown, illegal, or comes after the end.
    """
    state = game.initial()
    for number, word in enumerate(moves, 1):
        action = action_of(game, word)
        if game.terminal(state)[0][0]:
            raise InputError(f"move {number} ({word}): the game is over before it")
        if not game.legal(state)[0, action]:
            raise InputError(f"move {number} ({word}) is illegal")
        state = game.play(state, np.array([action]))
    return state


def random_positions(game: Any, count: int, plies: int, rng: np.random.Generator, root: Any = None) -> Any:
    """Positions after `plies` random moves that are not over, drawn again where a game ended.

    Raises
    ------
    InputError
        If nearly all games end before.
    """
    start = game.initial() if root is None else root
    kept: list[Any] = []
    have = 0
    for _ in range(50):
        states = np.repeat(start, max(count, 8), axis=0)
        for _ in range(plies):
            states = states[~np.asarray(game.terminal(states)[0], bool)]
            if not len(states):
                break
            legal = np.asarray(game.legal(states), bool)
            states = game.play(states, np.where(legal, rng.random(legal.shape), -1.0).argmax(axis=1))
        states = states[~np.asarray(game.terminal(states)[0], bool)] if len(states) else states
        kept.append(states)
        have += len(states)
        if have >= count:
            return np.concatenate(kept)[:count]
    raise InputError(f"plies={plies}: nearly all games are over before that many moves; take fewer")

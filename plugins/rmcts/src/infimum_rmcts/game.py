"""The contract of games, batched over positions, and what a search sees of one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InfimumWarning, InputError, NonFiniteError
from infimum_rmcts.checks import integer, numbers, positive

Floats = NDArray[np.float64]
Evaluator = Callable[[Any], tuple[Any, Any]]
"""`evaluator(S) -> (prior (m, A), value (m,))`, the value for the player to move."""


@runtime_checkable
class GameLike(Protocol):
    """What a search needs of a game. `S` holds m positions along its first axis.

    A game may also have `mover(S) -> (m,)`, the player to move (whose frame a terminal score is in); without it the
    players alternate. And for people and evaluators: `initial()`, `heuristic(S)`, `encode(S)`, `show(s)`,
    `action_name(a)`, `pack(S)` and `unpack(tree)`.
    """

    num_actions: int

    def legal(self, S: Any) -> Any: ...
    def play(self, S: Any, actions: Any) -> Any: ...
    def terminal(self, S: Any) -> Any: ...


class Game:
    """Base of games: alternating or single-player, deterministic, of perfect information.

    Subclasses set `num_actions` and write `initial`, `legal`, `play` and `terminal`, vectorized over positions; states
    are arrays whose first axis counts the positions.
    """

    name: str = "game"
    num_actions: int = 0

    def initial(self) -> Any:
        """The first position, as a batch of one."""
        raise NotImplementedError

    def legal(self, S: Any) -> NDArray[np.bool_]:
        """Which actions are legal, shape (m, A). Asked for positions that are not terminal."""
        raise NotImplementedError

    def play(self, S: Any, actions: NDArray[np.int64]) -> Any:
        """The positions after one legal action each; a new array. The same arguments must give the same positions."""
        raise NotImplementedError

    def terminal(self, S: Any) -> tuple[NDArray[np.bool_], Floats]:
        """Whether each game is over, and its score for the player whom `mover` names (0 where it goes on)."""
        raise NotImplementedError

    def pack(self, S: Any) -> Any:
        """Positions as plain data, for checkpoints."""
        return S

    def unpack(self, tree: Any) -> Any:
        """Positions from what `pack` gave."""
        return tree

    def show(self, state: Any) -> str:
        """One position as text."""
        return str(state)

    def action_name(self, action: int) -> str:
        """An action as players write it."""
        return str(action)


def action_of(game: Any, word: Any) -> int:
    """The number of an action that is given as such or by its name.

    Raises
    ------
    InputError
        If the game has no such action.
    """
    if isinstance(word, int | np.integer) and not isinstance(word, bool) and 0 <= word < game.num_actions:
        return int(word)
    names = [named(game, a) for a in range(game.num_actions)]
    if str(word) in names:
        return names.index(str(word))
    raise InputError(f"move {word!r}: expected one of {', '.join(names[:12])}{', …' if len(names) > 12 else ''}")


def named(game: Any, action: int) -> str:
    """The name of an action, its number where the game gives none."""
    name = getattr(game, "action_name", None)
    return str(action) if name is None else str(name(action))


def shown(game: Any, state: Any) -> str:
    """One position as text."""
    show = getattr(game, "show", None)
    return str(state) if show is None else str(show(state))


def check_rules(game: Any, names: Sequence[str] = ("legal", "play", "terminal")) -> None:
    """Raise `InputError` unless `game` has these."""
    lacking = [name for name in names if not hasattr(game, name)]
    if lacking:
        raise InputError(f"{type(game).__name__} is no game: it lacks {', '.join(lacking)}")


def check_game(game: Any) -> None:
    """Raise `InputError` unless `game` has what a search needs."""
    check_rules(game, ("num_actions", "legal", "play", "terminal"))
    actions = game.num_actions
    if isinstance(actions, bool) or not isinstance(actions, int | np.integer) or actions < 1:
        raise InputError(f"{type(game).__name__}: num_actions={actions!r}; expected an integer >= 1")


class Rules:
    """A game with its evaluator, as a search sees them: every answer is checked for form.

    Parameters
    ----------
    num_actions : int
    legal, play, terminal : callable
    evaluate : callable
    mover : callable, optional
        Players alternate without it.
    name : str
        Of the evaluator, for messages.
    check : bool, default False
        Play every move twice, to find a game that is not deterministic.
    """

    def __init__(
        self,
        num_actions: int,
        legal: Callable[..., Any],
        play: Callable[..., Any],
        terminal: Callable[..., Any],
        evaluate: Evaluator,
        mover: Callable[..., Any] | None = None,
        *,
        name: str = "the evaluator",
        check: bool = False,
    ) -> None:
        check_evaluator(evaluate)
        self.num_actions, self.mover, self.name, self.check = int(num_actions), mover, name, check
        self._warned = False
        self._legal, self._play, self._terminal, self._evaluate = legal, play, terminal, evaluate

    @classmethod
    def of(cls, game: Any, evaluator: Evaluator, *, check: bool = False) -> Rules:
        """The rules of a checked game with an evaluator."""
        name = getattr(evaluator, "name", None) or getattr(evaluator, "__name__", type(evaluator).__name__)
        mover = getattr(game, "mover", None)
        return cls(
            game.num_actions,
            game.legal,
            game.play,
            game.terminal,
            evaluator,
            mover,
            name=f"evaluator {name}",
            check=check,
        )

    def terminal(self, S: Any) -> tuple[NDArray[np.bool_], Floats]:
        return checked_ends(self._terminal, S)

    def play(self, S: Any, actions: NDArray[np.int64]) -> Any:
        after = self._play(S, actions)
        if self.check and not _same(after, self._play(S, actions)):
            raise InputError(
                "play gave two different positions for one move: the game is stochastic, which this search cannot "
                "take (it would use one sampled successor for all simulations of a move)"
            )
        return after

    def signs(self, before: Any, after: Any) -> Floats:
        """+1 where the same player moves before and after, -1 where the other does."""
        if self.mover is None:
            return np.full(len(after), -1.0)
        return np.where(np.asarray(self.mover(before)) == np.asarray(self.mover(after)), 1.0, -1.0)

    def evaluate(self, S: Any, where: str) -> tuple[Floats, Floats]:
        """Prior over the legal actions, normalized, and value of positions that are not terminal."""
        m, width = len(S), self.num_actions
        legal = np.asarray(self._legal(S), bool)
        if legal.shape != (m, width):
            raise InputError(f"legal: expected shape ({m}, {width}), got {legal.shape}")
        prior, value = checked_answer(self._evaluate(S), m, width, f"{self.name} at {where}")
        prior = np.where(legal, prior, 0.0)
        total = prior @ np.ones((width, 1))
        lowest, size, least = float(prior.min()), float(np.abs(value).max()), float(total.min())
        # NaN passes through every one of these.
        if not (least - least + float(total.max()) < np.inf and size < np.inf):
            bad = "a value that is" if np.isfinite(total).all() else "a prior that is"
            raise NonFiniteError(f"{self.name} at {where}", "evaluate", f"{bad} NaN or inf")
        if lowest < 0.0:
            raise InputError(
                f"{self.name} at {where}: the prior is negative at a legal action ({lowest:.3g}); give probabilities, "
                "not logits"
            )
        if size > 1.0:
            self._outside()
        if least <= 0.0:
            # No mass on a legal action says nothing about them.
            blank = total[:, 0] <= 0.0
            if not (some := legal[blank].any(axis=1)).all():
                row = int(np.flatnonzero(blank)[np.argmin(some)])
                raise InputError(f"{where}: a position that is not terminal has no legal action: {S[row]!r:.200}")
            prior[blank] = legal[blank]
            total = prior.sum(axis=1, keepdims=True)
        return prior / total, value

    def _outside(self) -> None:
        # Once a search; a solver's searches begin anew, with the same words, which Python shows once.
        if self._warned:
            return
        self._warned = True
        text = (
            f"{self.name} gives values outside of [-1, 1]: nothing breaks, but c_puct weighs them against the prior; "
            "scale c_puct with them"
        )
        warnings.warn(text, InfimumWarning, stacklevel=4)


def _same(one: Any, other: Any) -> bool:
    if one.dtype.hasobject:
        return [str(s) for s in one] == [str(s) for s in other]
    return bool(np.array_equal(one, other))


def check_evaluator(evaluator: Any) -> None:
    """Raise `InputError` unless `evaluator` can be called."""
    if not callable(evaluator):
        raise InputError(f"evaluator={evaluator!r:.80}: expected a callable of positions that gives (prior, value)")


def checked_answer(answer: Any, m: int, width: int, who: str) -> tuple[Floats, Floats]:
    """What an evaluator said of m positions, as arrays (m, width) and (m,).

    Raises
    ------
    InputError
        For anything else.
    """
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InputError(f"{who}: expected (prior, value), got {type(answer).__name__}")
    prior, value = numbers(f"{who}: prior", answer[0]), numbers(f"{who}: value", answer[1])
    if prior.shape != (m, width) or value.shape != (m,):
        raise InputError(f"{who}: expected prior ({m}, {width}) and value ({m},), got {prior.shape} and {value.shape}")
    return prior, value


def checked_ends(terminal: Callable[..., Any], S: Any) -> tuple[NDArray[np.bool_], Floats]:
    """What a game says of the end of m games, each (m,), checked for form."""
    over, score = terminal(S)
    over, score = np.asarray(over, bool), np.asarray(score, np.float64)
    if over.shape != (len(S),) or score.shape != (len(S),):
        raise InputError(f"terminal: expected two arrays of shape ({len(S)},), got {over.shape} and {score.shape}")
    if over.any() and not np.isfinite(score[over]).all():
        raise InputError("terminal: the score of a game that is over is NaN or inf")
    return over, score


def check_positions(game: Any, positions: Any) -> Any:
    """Positions as an array of the shape and type of the game's first one.

    Raises
    ------
    InputError
        For none, or positions of another shape or type.
    """
    states = positions if isinstance(positions, np.ndarray) else np.asarray(positions)
    if states.ndim < 1 or len(states) == 0:
        raise InputError("roots: expected at least one position along the first axis, got none")
    first = game.initial() if hasattr(game, "initial") else None
    if not isinstance(first, np.ndarray):
        return states
    if states.shape[1:] != first.shape[1:]:
        raise InputError(
            f"roots: expected positions of shape {first.shape[1:]} along the first axis, got an array {states.shape}"
        )
    if states.dtype != first.dtype:
        like = states.astype(first.dtype) if states.dtype.kind in "biuf" and first.dtype.kind in "biuf" else None
        if like is None or not np.array_equal(like, states):
            raise InputError(f"roots: expected positions of type {first.dtype}, got {states.dtype}")
        states = like
    return states


def check_roots(game: Any, roots: Any) -> Any:
    """Roots as an array of at least one position, none of them terminal.

    Raises
    ------
    InputError
        As `check_positions`, and for a root where the game is over.
    """
    states = check_positions(game, roots)
    over, _ = checked_ends(game.terminal, states)
    if over.any():
        raise InputError(f"root {int(np.argmax(over))} is terminal: there is nothing to search")
    return states


def check_numbers(num_simulations: Any, c_puct: Any, max_nodes: Any) -> tuple[int, float]:
    """The numbers of a search; simulations and c_puct come back as plain ones.

    Raises
    ------
    InputError
        For simulations or max_nodes that are no integer >= 1, or c_puct that is not above 0.
    """
    integer("max_nodes", max_nodes)
    return integer("num_simulations", num_simulations), positive("c_puct", c_puct)


def check_nodes(roots: Any, num_simulations: int, num_actions: int, max_nodes: int) -> None:
    """Refuse a search that may need more than `max_nodes` nodes, with an estimate of their memory."""
    nodes = len(roots) * num_simulations
    if nodes > max_nodes:
        per_node = roots.nbytes // len(roots) + 4 * 8 * num_actions + 40
        raise InputError(
            f"{len(roots)} roots x {num_simulations} simulations may need {nodes} nodes, about "
            f"{nodes * per_node / 2**30:.1f} GiB, and max_nodes is {max_nodes}; search fewer roots at a time, or "
            "raise max_nodes"
        )

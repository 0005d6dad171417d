"""Bad input: every answer names the thing, what it was and what was expected."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from infimum.errors import InfimumWarning, InputError, NonFiniteError
from infimum_rmcts import (
    Cached,
    ConnectFour,
    GameSearch,
    Network,
    OpenSpiel,
    Othello,
    Rollout,
    TicTacToe,
    TreeGame,
    Uniform,
    all_positions,
    choose,
    minimax,
    oracles,
    puct,
    regularized_policy,
    rmcts,
    split_budget,
)
from infimum_rmcts.match import Match
from infimum_rmcts.mirror import MirrorDescent
from infimum_rmcts.problem import search
from infimum_rmcts.solvers import PUCT, RMCTS

GAME = TicTacToe()
START = GAME.initial()
NUMBERS: tuple[Any, ...] = ("1", None, True, np.nan, np.inf, 0, -1, [1.0, 2.0])
"""No finite number above 0."""
COUNTS: tuple[Any, ...] = ("8", None, True, 1.5, np.nan, -1)
"""No whole number of at least 0."""


def wrong(prior: Any, value: Any) -> Any:
    return lambda S: (np.broadcast_to(prior, (len(S), 9)).copy(), np.full(len(S), value))


@pytest.mark.parametrize("search", [rmcts, puct])
def test_bad_input_is_named(search: Any) -> None:
    game = TicTacToe()
    start = game.initial()
    flat = np.ones(9)
    for options, said in (
        ({"num_simulations": 0}, "num_simulations=0"),
        ({"num_simulations": 1.5}, "num_simulations=1.5"),
        ({"c_puct": 0.0}, "c_puct=0.0"),
        ({"c_puct": -1}, "c_puct=-1"),
        ({"max_nodes": 100}, "GiB"),
        ({"evaluator": wrong(-flat, 0.0)}, "give probabilities, not logits"),
        ({"evaluator": lambda S: (np.ones((len(S), 8)), np.zeros(len(S)))}, r"expected prior \(1, 9\)"),
        ({"evaluator": lambda S: np.ones((len(S), 9))}, r"expected \(prior, value\)"),
        ({"evaluator": lambda S: ("a", "b")}, "prior: expected an array of numbers, got 'a'"),
        ({"evaluator": lambda S: (np.ones((2, 9)), np.zeros(2))}, r"got \(2, 9\) and \(2,\)"),
        ({"evaluator": "uniform"}, "evaluator='uniform': expected a callable"),
    ):
        with pytest.raises(InputError, match=said):
            search(game, start, **options)
    with pytest.raises(NonFiniteError, match="prior"):
        search(game, start, 8, evaluator=wrong(flat * np.nan, 0.0))
    with pytest.raises(NonFiniteError, match="value"):
        search(game, start, 8, evaluator=wrong(flat, np.nan))
    with pytest.raises(InputError, match="got none"):
        search(game, start[:0])
    over = np.array([[0b000000000, 0b000000111]], np.uint64)
    with pytest.raises(InputError, match="root 0 is terminal"):
        search(game, over)
    with pytest.raises(InputError, match="it lacks num_actions, legal"):
        search(object(), start)
    with pytest.warns(InfimumWarning, match="outside"):
        search(game, start, 8, evaluator=wrong(flat, 1.5))


def test_the_level_of_a_wrong_evaluation_is_named() -> None:
    game = TicTacToe()

    def late(S: Any) -> Any:
        value = np.zeros(len(S))
        return np.ones((len(S), 9)), value if len(S) < 10 else value * np.nan

    with pytest.raises(NonFiniteError, match="level 2"):
        rmcts(game, game.initial(), 100, evaluator=late)


def test_games_that_are_not_what_they_should_be_are_refused() -> None:
    class Stuck(TicTacToe):
        def legal(self, S: Any) -> Any:
            return np.zeros((len(S), 9), bool)

    class Random(TicTacToe):
        def play(self, S: Any, actions: Any) -> Any:
            after = super().play(S, actions)
            return after if np.random.default_rng().random() < 0 else after ^ self.noise()

        def noise(self) -> Any:
            self.__dict__["k"] = self.__dict__.get("k", 0) + 1
            return np.uint64(self.__dict__["k"] % 2)

    with pytest.raises(InputError, match="no legal action"):
        rmcts(Stuck(), Stuck().initial(), 8)
    with pytest.raises(InputError, match="stochastic"):
        rmcts(Random(), Random().initial(), 8, check=True)


@pytest.mark.parametrize("search", [rmcts, puct])
@pytest.mark.parametrize("wrong", NUMBERS)
def test_no_number_is_taken_for_one(search: Any, wrong: Any) -> None:
    with pytest.raises(InputError, match="c_puct="):
        search(GAME, START, 8, wrong)
    if wrong != [1.0, 2.0]:
        with pytest.raises(InputError, match="num_simulations="):
            search(GAME, START, wrong)
        with pytest.raises(InputError, match="max_nodes="):
            search(GAME, START, 8, max_nodes=wrong)
    with pytest.raises(InputError, match="c="):
        regularized_policy([0.0, 1.0], [0.5, 0.5], 4, wrong)


@pytest.mark.parametrize("search", [rmcts, puct, lambda game, roots, n: GameSearch(game, roots)])
def test_positions_of_another_shape_or_type_are_refused(search: Any) -> None:
    for roots, said in (
        (START[0], r"of shape \(2,\)"),
        (np.zeros((2, 3), np.uint64), r"got an array \(2, 3\)"),
        ([], "got none"),
        ("abc", "got none"),
        (["ab"], "of shape"),
        ([["a", "b"]], "of type uint64"),
        (np.array([[-1, 0]]), "of type uint64, got int64"),
        (np.array([[0.5, 0]]), "of type uint64, got float64"),
    ):
        with pytest.raises(InputError, match=said):
            search(GAME, roots, 8)
    for like in ([[0, 0]], np.zeros((1, 2)), np.zeros((1, 2), np.int32)):
        search(GAME, like, 8)


def test_an_evaluator_outside_of_the_unit_interval_is_told_once_a_search() -> None:
    for find in (rmcts, puct):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            find(GAME, START, 64, evaluator=wrong(np.ones(9), 1.5))
        assert len(seen) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"q": ["a", "b"]}, "q: expected an array of numbers"),
        ({"q": [1j, 0]}, "q: expected an array of numbers"),
        ({"q": [[1, 2], [3]]}, "q: expected an array of numbers"),
        ({"q": 1.0, "prior": 1.0}, r"expected the same \(A,\) or \(m, A\)"),
        ({"q": np.zeros((1, 2, 2)), "prior": np.zeros((1, 2, 2))}, r"expected the same \(A,\) or \(m, A\)"),
        ({"n": "4"}, "n: expected an array of numbers"),
        ({"n": [1, 2]}, "expected one number > 0"),
        ({"n": np.inf}, "expected one number > 0"),
        ({"mask": [True]}, r"mask is \(1,\)"),
        ({"n": 1e300, "c": 1e-300}, "leaves the range of numbers"),
        ({"n": 1e-300, "c": 1e300}, "leaves the range of numbers"),
    ],
)
def test_a_policy_is_not_made_of_anything(changed: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"q": [0.0, 1.0], "prior": [0.5, 0.5], "n": 4, "c": 1.0, **changed}
    with pytest.raises(InputError, match=said):
        regularized_policy(**given)


@pytest.mark.parametrize("divergence", ["kl_prior_first", "kl_policy_first"])
@pytest.mark.parametrize("c", [1e-300, 1e-8, 1.0, 1e300])
def test_extreme_numbers_give_policies(divergence: Any, c: float) -> None:
    """Without a warning, and never NaN."""
    for q in ([1e308, -1e308], [1e-308, 0.0], [1.0, 1.0], [0.0, -1.0]):
        for prior in ([1e308, 1e308], [1e-310, 1e-310], [1.0, 1e-300], [1e-300, 1.0]):
            p = regularized_policy(q, prior, 7.0, c, divergence=divergence)
            assert p.sum() == pytest.approx(1.0)
            assert (p >= 0).all()
    assert regularized_policy(np.zeros((0, 3)), np.zeros((0, 3)), 4, c, divergence=divergence).shape == (0, 3)


@pytest.mark.parametrize(
    ("prior", "budget", "x", "said"),
    [
        ([0.5, 0.5], [3], [0.1], r"expected \(m, A\)"),
        ([[0.5, 0.5]], [3, 4], [0.1, 0.2], r"budget \(2,\)"),
        ([[0.5, 0.5]], [-3], [0.1], "whole numbers >= 0"),
        ([[0.5, 0.5]], [2.5], [0.1], "whole numbers >= 0"),
        ([[0.5, 0.5]], [3], [1.0], r"numbers in \[0, 1\)"),
        ([[0.5, 0.5]], [3], [np.nan], r"numbers in \[0, 1\)"),
        ([[0.0, 0.0]], [3], [0.1], "above 0 somewhere"),
        ([[np.nan, 0.5]], [3], [0.1], "must be finite"),
        ([["a", "b"]], [3], [0.1], "prior: expected an array of numbers"),
    ],
)
def test_budgets_are_not_split_by_anything(prior: Any, budget: Any, x: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        split_budget(prior, budget, x)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: choose("abc"), "policy: expected an array of numbers"),
        (lambda: choose([0.5, 0.5], "1", 0), "temperature='1'"),
        (lambda: choose([0.5, 0.5], np.nan, 0), "temperature=nan"),
        (lambda: choose([0.5, np.nan], 1.0, 0), "finite"),
        (lambda: choose([0.5, 0.5], 1.0, "seed"), "rng='seed'"),
        (lambda: rmcts(GAME, START, 8, rng=-1), "rng=-1"),  # type: ignore[arg-type]
        (lambda: Rollout(GAME, 1.5), "rollouts=1.5"),  # type: ignore[arg-type]
        (lambda: Rollout(GAME, max_plies=0), "max_plies=0"),
        (lambda: Rollout(None), "NoneType is no game"),
        (lambda: Rollout(GAME, rng="x"), "rng='x'"),  # type: ignore[arg-type]
        (lambda: Uniform(0), "num_actions=0"),
        (lambda: Cached(None), "evaluator=None"),
        (lambda: Cached(GAME.heuristic, 0), "max_entries=0"),
        (lambda: Cached(lambda S: 3)(START), r"expected \(prior, value\), got int"),
        (lambda: Cached(lambda S: (np.ones((1, 9)), np.zeros(1)))(all_positions(GAME)[:4]), r"expected prior \(4, 9\)"),
        (lambda: Network("net", GAME.encode), "module='net'"),
        (lambda: Network(GAME.encode, GAME.encode, 0), "max_batch=0"),
        (lambda: oracles.Rollout(0), "rollouts=0"),
        (lambda: oracles.Cached(None), "evaluator=None"),  # type: ignore[arg-type]
        (lambda: TreeGame([np.nan, 1]), "a score is nan"),
        (lambda: TreeGame([1, "a"]), "got 'a'"),
        (lambda: TreeGame(_deep(3000)), "deeper than 500"),
        (lambda: ConnectFour(0), "width=0"),
        (lambda: ConnectFour(10, 5), "expected 9 at most"),
        (lambda: ConnectFour(4, 4.5), "height=4.5"),  # type: ignore[arg-type]
        (lambda: ConnectFour(4, 4, 1), "connect=1"),
        (lambda: ConnectFour(9, 20), "64 bits"),
        (lambda: Othello(5), "size=5; expected 4, 6 or 8"),  # type: ignore[arg-type]
        (lambda: GameSearch(GAME, evaluator=3), "evaluator=3"),  # type: ignore[arg-type]
        (lambda: GameSearch(GAME, reference=np.full((1, 9), np.nan)), "legal action is NaN"),
        (lambda: GameSearch(GAME, reference=[["a"] * 9]), "reference: expected an array of numbers"),
        (lambda: GameSearch(GAME, reference=np.zeros((2, 9))), r"reference has shape \(2, 9\)"),
        (lambda: minimax(None, START), "NoneType is no game"),
        (lambda: all_positions(None), "NoneType is no game"),
        (lambda: RMCTS(8, doublings=61), "doublings=61"),
        (lambda: PUCT(8, max_nodes="9"), "max_nodes='9'"),  # type: ignore[arg-type]
        (lambda: Match(temperature=-1.0), "temperature=-1"),
        (lambda: Match(max_plies=0), "max_plies=0"),
        (lambda: Match(swap="no"), "swap='no'"),  # type: ignore[arg-type]
        (lambda: Match(RMCTS(8, doublings=2)), "leave out doublings"),
        (lambda: MirrorDescent(step="a"), "step='a'"),  # type: ignore[arg-type]
        (lambda: search(GAME, positions="some"), "positions='some'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_made_of_bad_input_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.parametrize("name", ["count", "plies", "every", "seed", "doublings"])
@pytest.mark.parametrize("wrong", COUNTS)
def test_counts_are_whole_numbers(name: str, wrong: Any) -> None:
    with pytest.raises(InputError, match=f"{name}="):
        RMCTS(8, doublings=wrong) if name == "doublings" else search(GAME, positions="random", **{name: wrong})


def test_openspiel_takes_names_and_games_only() -> None:
    pytest.importorskip("pyspiel")
    with pytest.raises(InputError, match="game=3; expected a name"):
        OpenSpiel(3)


def _deep(depth: int) -> Any:
    tree: Any = 1.0
    for _ in range(depth):
        tree = [tree]
    return tree

"""The searches: the exact toy, laws of the tree, games by their rules."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum.errors import InputError
from infimum_rmcts import (
    Cached,
    ConnectFour,
    Othello,
    Rollout,
    TicTacToe,
    TreeGame,
    Uniform,
    all_positions,
    minimax,
    puct,
    rmcts,
)
from infimum_rmcts.problem import random_positions

GAMES = [TicTacToe(), ConnectFour(), ConnectFour(4, 4, 3), Othello(4), Othello(6), Othello(8)]


def test_the_exact_toy() -> None:
    game = TreeGame([1, [-3, 2]])
    found = rmcts(game, game.initial(), num_simulations=1003, c_puct=1.0)
    assert found.counts.tolist() == [[501, 501]]
    np.testing.assert_allclose(found.policy, [[0.01596, 0.98404]], atol=5e-6)
    assert found.value[0] == pytest.approx(1.9563, abs=5e-5)
    assert found.q[0, 1] == pytest.approx(1.974, abs=5e-4)
    assert found.stats == {"calls": 2, "evaluated": 2, "nodes": 5, "terminal_hits": 1001, "depth": 2}


@pytest.mark.parametrize("game", GAMES, ids=lambda g: f"{g.name}{g.num_actions}")
@pytest.mark.parametrize("search", [rmcts, puct])
def test_simulations_are_spent_exactly(game: Any, search: Any) -> None:
    roots = random_positions(game, 5, 4, np.random.default_rng(0))
    found = search(game, roots, 97, 1.3, game.heuristic, 4)
    assert found.stats["evaluated"] + found.stats["terminal_hits"] == 97 * len(roots)
    assert (found.counts.sum(axis=1) == 96).all()
    np.testing.assert_allclose(found.policy.sum(axis=1), 1.0, atol=1e-12)
    assert (found.policy[~game.legal(roots)] == 0).all()
    assert (np.isnan(found.q) == (found.counts == 0)).all()
    assert (np.abs(found.value) <= 1).all()
    if search is rmcts:
        assert found.stats["calls"] <= found.stats["depth"] <= 30
    else:
        assert found.stats["calls"] <= 97


def test_one_evaluator_call_a_depth() -> None:
    game = ConnectFour()
    batches: list[int] = []

    def counted(S: Any) -> Any:
        batches.append(len(S))
        return np.ones((len(S), 7)), np.zeros(len(S))

    found = rmcts(game, game.initial(), 256, evaluator=counted)
    assert len(batches) == found.stats["calls"] == found.stats["depth"] <= 8
    assert sum(batches) == found.stats["evaluated"] == 256
    batches.clear()
    puct(game, game.initial(), 256, evaluator=counted)
    assert len(batches) == 256
    assert rmcts(game, game.initial(), 1024).stats["calls"] <= 8


@pytest.mark.parametrize("search", [rmcts, puct])
def test_many_roots_are_many_searches(search: Any) -> None:
    """Without chance (each root alone with the numbers that it would get) the batch gives the same bits."""
    game = ConnectFour()
    roots = random_positions(game, 9, 5, np.random.default_rng(3))
    if search is puct:
        whole = puct(game, roots, 60, evaluator=game.heuristic)
        for k in range(9):
            alone = puct(game, roots[k : k + 1], 60, evaluator=game.heuristic)
            assert np.array_equal(alone.policy[0], whole.policy[k])
            assert np.array_equal(alone.value[0], whole.value[k])
        return
    from infimum_rmcts.game import Rules
    from infimum_rmcts.tree import backup, expand, roots_frontier

    rules = Rules.of(game, game.heuristic)

    def run(states: Any) -> Any:
        rest: Any = roots_frontier(states, 60)
        levels: list[Any] = []
        while rest is not None:
            # One number for every node, whatever stands beside it.
            level, rest = expand(
                rules, rest, len(levels), np.random.default_rng(0), np.full((rest.sims > 1).sum(), 0.37)
            )
            levels.append(level)
        return backup(levels, None, 1.0)

    whole = run(roots)
    for k in range(9):
        alone = run(roots[k : k + 1])
        np.testing.assert_allclose(alone.policy[0], whole.policy[k], rtol=0, atol=1e-12)
        np.testing.assert_allclose(alone.value[0], whole.value[k], rtol=0, atol=1e-12)


def test_one_simulation_gives_the_prior() -> None:
    game = ConnectFour()
    prior, value = game.heuristic(game.initial())
    for search in (rmcts, puct):
        found = search(game, game.initial(), 1, evaluator=game.heuristic)
        np.testing.assert_allclose(found.policy, prior / prior.sum())
        assert found.value[0] == value[0]
        assert found.counts.sum() == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
@settings(deadline=None, max_examples=30)
def test_values_stay_between_what_was_seen(seed: int, players: int) -> None:
    rng = np.random.default_rng(seed)

    def grow(depth: int) -> Any:
        return float(rng.uniform(-1, 1)) if depth == 0 or rng.random() < 0.2 else [grow(depth - 1) for _ in range(3)]

    game = TreeGame([grow(3), grow(3), grow(3)], players)
    found = rmcts(game, game.initial(), 300, rng=seed)
    seen = [*found.q[0][~np.isnan(found.q[0])], 0.0]
    assert min(seen) - 1e-12 <= found.value[0] <= max(seen) + 1e-12


@pytest.mark.parametrize("players", [1, 2])
@pytest.mark.parametrize("search", [rmcts, puct])
def test_a_win_in_one_move_is_found(players: int, search: Any) -> None:
    game = TreeGame([0, [1, -1], 1, -1], players)
    found = search(game, game.initial(), 20_000 if search is rmcts else 2000)
    assert found.policy[0].argmax() == 2
    assert found.policy[0, 2] > 0.97 if players == 2 else found.policy[0, [1, 2]].sum() > 0.97


def test_the_move_of_a_player_who_moves_again_keeps_its_sign() -> None:
    """The two-player tree at depth 1 belongs to the other; the single player's to the same one."""
    tree = [[1, -1], [0.2, 0.1]]
    alone = rmcts(TreeGame(tree, 1), TreeGame(tree, 1).initial(), 100_000)
    other = rmcts(TreeGame(tree, 2), TreeGame(tree, 2).initial(), 100_000)
    assert alone.value[0] == pytest.approx(1.0, abs=0.03)
    assert other.value[0] == pytest.approx(0.1, abs=0.03)


def test_it_converges_to_minimax() -> None:
    game = TreeGame([[0.5, [-1, 0.9, 0.3]], [[0.7, -0.2], 0.6], [0.1, 0.2, -0.4]], 2)
    value, _ = minimax(game, game.initial())
    errors = [abs(rmcts(game, game.initial(), n).value[0] - value[0]) for n in (100, 10_000, 1_000_000)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01


def test_tictactoe_is_known_by_heart() -> None:
    game = TicTacToe()
    positions = all_positions(game)
    assert len(positions) == 4520
    value, q = minimax(game, game.initial())
    assert value[0] == 0.0
    assert np.nanmax(q[0]) == 0.0


@pytest.mark.slow
def test_connect_four_on_four_columns_is_solved() -> None:
    """4 x 4 Connect-4 is a draw, a known result."""
    game = ConnectFour(4, 4, 4)
    assert minimax(game, game.initial())[0][0] == 0.0


@pytest.mark.parametrize("search", [rmcts, puct])
def test_tictactoe_moves_agree_with_full_search(search: Any) -> None:
    game = TicTacToe()
    roots = all_positions(game)[::8]
    q = np.where(np.isnan(exact := minimax(game, roots)[1]), -np.inf, exact)
    rows, best = np.arange(len(q)), q.max(axis=1)

    def share(n: int) -> float:
        policy = search(game, roots, n, 1.0, game.heuristic).policy
        return float((q[rows, policy.argmax(axis=1)] >= best - 1e-9).mean())

    few, many = share(1), share(256)
    assert many > 0.97 > few


@pytest.mark.parametrize(
    ("game", "name"),
    [(TicTacToe(), "tic_tac_toe"), (ConnectFour(), "connect_four"), (Othello(8), "othello")],
    ids=["tic-tac-toe", "connect-four", "othello"],
)
def test_rules_agree_with_openspiel(game: Any, name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    rng, passing = np.random.default_rng(0), 64
    for _ in range(3 if name == "othello" else 40):
        state, mine, mover = pyspiel.load_game(name).new_initial_state(), game.initial(), 0
        while not state.is_terminal():
            legal = state.legal_actions()
            if name == "othello" and legal == [passing]:
                state.apply_action(passing)
                continue
            if name == "othello":
                mover = int(game.mover(mine)[0])
                assert mover == state.current_player()
            assert np.flatnonzero(game.legal(mine)[0]).tolist() == sorted(legal)
            assert not game.terminal(mine)[0][0]
            action = int(rng.choice(legal))
            state.apply_action(action)
            mine = game.play(mine, np.array([action]))
            mover = 1 - mover
        over, score = game.terminal(mine)
        assert over[0]
        final = int(game.mover(mine)[0]) if name == "othello" else mover
        assert score[0] == state.returns()[final]


def test_players_pass_in_othello() -> None:
    game = Othello(4)
    rng, again = np.random.default_rng(1), 0
    states = np.repeat(game.initial(), 200, axis=0)
    for _ in range(12):
        states = states[~game.terminal(states)[0]]
        legal = game.legal(states)
        after = game.play(states, np.where(legal, rng.random(legal.shape), -1).argmax(axis=1))
        again += int((game.mover(after) == game.mover(states)).sum())
        states = after
    assert again > 10


def test_the_openspiel_adapter_searches_alike() -> None:
    pytest.importorskip("pyspiel")
    from infimum_rmcts import OpenSpiel

    ours, theirs = TicTacToe(), OpenSpiel("tic_tac_toe")
    one = rmcts(ours, ours.initial(), 200, rng=3)
    other = rmcts(theirs, theirs.initial(), 200, rng=3)
    np.testing.assert_allclose(one.policy, other.policy, atol=1e-12)
    assert one.stats == other.stats
    packed = theirs.pack(theirs.play(theirs.initial(), np.array([4])))
    assert str(theirs.unpack(packed)[0]).splitlines()[1] == ".x."
    for name, why in (("kuhn_poker", "chance"), ("matrix_pd", "hidden"), ("no_such_game", "no game")):
        with pytest.raises(InputError, match=why):
            OpenSpiel(name)


def test_rollouts_estimate_the_mean_of_random_play() -> None:
    game = TreeGame([[1, -1, 1], [0.5, 0.5]], 2)
    prior, value = Rollout(game, 20_000, rng=0)(game.initial())
    assert prior.tolist() == [[1.0, 1.0, 0.0]]
    assert value[0] == pytest.approx(0.5 * (1 / 3) + 0.5 * 0.5, abs=0.03)
    passing = Othello(4)
    for state in (
        passing.initial(),
        passing.play(passing.initial(), np.array([int(passing.legal(passing.initial())[0].argmax())])),
    ):
        mean = Rollout(passing, 4000, rng=1)(state)[1][0]
        assert -1 <= mean <= 1


def test_the_cache_asks_once_for_a_position() -> None:
    game = TicTacToe()
    asked: list[int] = []

    def evaluator(S: Any) -> Any:
        asked.append(len(S))
        return game.heuristic(S)

    cached = Cached(evaluator)
    roots = np.repeat(game.initial(), 5, axis=0)
    with_it = rmcts(game, roots, 100, evaluator=cached, rng=0)
    without = rmcts(game, roots, 100, evaluator=game.heuristic, rng=0)
    np.testing.assert_array_equal(with_it.policy, without.policy)
    assert cached.hits + cached.misses == with_it.stats["evaluated"] == without.stats["evaluated"]
    assert sum(asked) < 350
    before = sum(asked)
    rmcts(game, roots, 100, evaluator=cached, rng=0)
    assert sum(asked) == before
    small = Cached(evaluator, max_entries=50)
    np.testing.assert_array_equal(rmcts(game, roots, 100, evaluator=small, rng=0).policy, without.policy)
    restored = Cached(evaluator)
    restored.load_state_dict(cached.state_dict())
    before = sum(asked)
    rmcts(game, roots, 100, evaluator=restored, rng=0)
    assert sum(asked) == before


def test_a_network_in_training_mode_is_put_back() -> None:
    torch = pytest.importorskip("torch")
    from infimum_rmcts import Network, PolicyValueNet

    game, net = TicTacToe(), PolicyValueNet(18, 9, 16)
    net.train()
    roots = all_positions(game)[:50]
    whole = Network(net, game.encode)(roots)
    pieces = Network(net, game.encode, max_batch=7)(roots)
    np.testing.assert_allclose(whole[0], pieces[0], atol=1e-6)
    assert net.training
    found = rmcts(game, roots, 32, evaluator=Network(net, game.encode))
    assert found.policy.dtype == np.float64
    assert all(one.grad is None for one in net.parameters())
    with pytest.raises(InputError, match="must return"):
        Network(torch.nn.Linear(18, 9), game.encode)(roots)


def test_priors_without_legal_mass_become_flat() -> None:
    game = TicTacToe()
    state = game.play(game.initial(), np.array([4]))
    found = rmcts(game, state, 1, evaluator=lambda S: (np.tile(np.eye(9)[4], (len(S), 1)), np.zeros(len(S))))
    np.testing.assert_allclose(found.policy[0], np.where(np.arange(9) == 4, 0.0, 1 / 8))


def test_evaluations_in_single_precision_are_taken() -> None:
    game = ConnectFour()

    def single(S: Any) -> Any:
        prior, value = game.heuristic(S)
        return prior.astype(np.float32), value.astype(np.float32)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rmcts(game, game.initial(), 128, evaluator=single)
    assert found.policy.dtype == np.float64
    assert found.policy.sum() == pytest.approx(1.0, abs=1e-12)


def test_uniform_is_what_stands_without_an_evaluator() -> None:
    game = TicTacToe()
    one = rmcts(game, game.initial(), 64, rng=2)
    other = rmcts(game, game.initial(), 64, evaluator=Uniform(9), rng=2)
    np.testing.assert_array_equal(one.policy, other.policy)

"""Breadth-first game search against PUCT: evaluator calls, speed, quality, matches.

The exact toy; calls and milliseconds of the processor per root on Connect-4 with one small network for all, also for
the PUCT bot of OpenSpiel (its Python one); the share of tic-tac-toe positions whose best move is found, against full
search, with three evaluators; matches at equal and at more simulations. One thread, medians of interleaved repeats.

    python benchmarks/rmcts.py [--repeats 7] [--games 200] [--only toy,speed,quality,match]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import infimum
from infimum_rmcts import ConnectFour, GameSearch, TicTacToe, TreeGame, all_positions, minimax, puct, rmcts
from infimum_rmcts.match import Match
from infimum_rmcts.oracles import Heuristic
from infimum_rmcts.problem import random_positions
from infimum_rmcts.solvers import PUCT, RMCTS

GAME = ConnectFour()
EVALUATORS = {"good prior": (1.0, 1.0, 1.0), "bad flat prior": (4.0, 6.0, 0.5), "bad sharp prior": (4.0, 1.0, 0.5)}
"""For tic-tac-toe: noise in the prior's logits, their temperature, noise in the values, in units of a win."""


class Perceptron:
    """A network of one hidden layer in NumPy on own and other stones: the evaluator of all searches of the table."""

    def __init__(self, inputs: int = 84, actions: int = 7, hidden: int = 64) -> None:
        rng = np.random.default_rng(5)
        self.first = rng.standard_normal((inputs, hidden)) / np.sqrt(inputs)
        self.last = rng.standard_normal((hidden, actions + 1)) / np.sqrt(hidden)
        self.calls = 0

    def of_planes(self, x: Any) -> tuple[Any, Any]:
        """Prior over all actions and value of a batch of planes."""
        self.calls += 1
        out = np.maximum(x @ self.first, 0.0) @ self.last
        weights = np.exp(out[:, :-1])
        return weights / weights.sum(axis=1, keepdims=True), np.tanh(out[:, -1])

    def __call__(self, S: Any) -> tuple[Any, Any]:
        return self.of_planes(GAME.encode(S))


def spiel_bot(network: Perceptron, simulations: int) -> Callable[[], Any]:
    """OpenSpiel's Python search with the PUCT rule and the same network; a search from the empty board."""
    import pyspiel
    from open_spiel.python.algorithms import mcts

    def planes(state: Any) -> Any:
        tensor = np.array(state.observation_tensor(), np.float32).reshape(3, 6, 7)
        own = state.current_player()
        return np.concatenate([tensor[own].T.ravel(), tensor[1 - own].T.ravel()])[None]

    class Evaluator(mcts.Evaluator):  # type: ignore[misc]
        """One evaluation serves the value and the prior of a state, as in OpenSpiel's AlphaZero."""

        def __init__(self) -> None:
            self.last: tuple[str | None, Any] = (None, None)

        def _look(self, state: Any) -> Any:
            key = state.history_str()
            if self.last[0] != key:
                self.last = (key, network.of_planes(planes(state)))
            return self.last[1]

        def evaluate(self, state: Any) -> Any:
            value = float(self._look(state)[1][0])
            return np.array([value, -value] if state.current_player() == 0 else [-value, value])

        def prior(self, state: Any) -> Any:
            prior = self._look(state)[0][0]
            legal = state.legal_actions()
            total = prior[legal].sum()
            return [(a, prior[a] / total) for a in legal]

    game = pyspiel.load_game("connect_four")
    bot = mcts.MCTSBot(game, 1.0, simulations, Evaluator(), solve=False, child_selection_fn=mcts.SearchNode.puct_value)
    _same_network(network, game, planes)
    return lambda: bot.mcts_search(game.new_initial_state())


def _same_network(network: Perceptron, game: Any, planes: Any) -> None:
    """Both sides of the table see the same numbers."""
    state, mine = game.new_initial_state(), GAME.initial()
    for action in (3, 3, 2, 4, 0, 0, 6):
        one, other = network.of_planes(planes(state)), network(mine)
        assert np.allclose(one[0], other[0]) and np.allclose(one[1], other[1])
        state.apply_action(action)
        mine = GAME.play(mine, np.array([action]))


def medians(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of the processor of each, interleaved, after one call to warm up."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            began = time.process_time()
            run()
            seconds[name].append(time.process_time() - began)
    return {name: float(np.median(one)) for name, one in seconds.items()}


def toy() -> None:
    game = TreeGame([1, [-3, 2]])
    found = rmcts(game, game.initial(), 1003)
    print("toy: one player, l -> 1, r -> (l -> -3, r -> 2), N = 1003, c = 1 (paper: 0.016, 0.984, value 1.96)")
    policy = found.policy[0]
    print(f"  root policy {policy[0]:.5f} / {policy[1]:.5f}, value {found.value[0]:.4f}, Q(r) {found.q[0, 1]:.4f}\n")


def speed(repeats: int) -> None:
    network = Perceptron()
    print("Connect-4, milliseconds of the processor per root, one network for all; in brackets: calls of the evaluator")
    spiel = find_spec("pyspiel") is not None
    for many in (1, 64):
        roots = GAME.initial() if many == 1 else random_positions(GAME, many, 4, np.random.default_rng(1))
        for n in (64, 256, 1024):
            runs: dict[str, Callable[[], Any]] = {
                "RMCTS": lambda n=n, roots=roots: rmcts(GAME, roots, n, 1.0, network),
                "PUCT": lambda n=n, roots=roots: puct(GAME, roots, n, 1.0, network),
            }
            if many == 1 and n == 256 and spiel:
                runs["OpenSpiel PUCT (Python)"] = spiel_bot(network, n)
            calls = {}
            for name, run in runs.items():
                network.calls = 0
                run()
                calls[name] = network.calls
            took = medians(runs, repeats if n * many < 60_000 else 3)
            text = ", ".join(f"{name} {1e3 * one / many:.2f} ({calls[name]})" for name, one in took.items())
            ratios = ", ".join(f"{one / took['RMCTS']:.1f}x" for name, one in took.items() if name != "RMCTS")
            print(f"  {many:3d} roots, N = {n:4d}: {text}; {ratios}")
    if not spiel:
        print("  OpenSpiel's PUCT bot: NOT SHOWN (pip install open-spiel)")
    flat = {n: rmcts(GAME, GAME.initial(), n).stats["calls"] for n in (64, 256, 1024)}
    print(f"  calls with a flat prior: {flat}; PUCT needs N\n")


def noisy(positions: Any, exact: Any, how: tuple[float, float, float], seed: int) -> Callable[[Any], tuple[Any, Any]]:
    """An evaluator that knows the exact values up to fixed noise, position by position."""
    prior_noise, temperature, value_noise = how
    rng = np.random.default_rng(seed)
    keys = positions[:, 0] | positions[:, 1] << np.uint64(9)
    order = np.argsort(keys)
    q = exact + prior_noise * rng.standard_normal(exact.shape)
    best = np.where(np.isnan(exact), -np.inf, exact).max(axis=1)
    weights = np.where(np.isnan(q), 0.0, np.exp(np.nan_to_num(q) / temperature))
    prior = weights / weights.sum(axis=1, keepdims=True)
    value = np.clip(best + value_noise * rng.standard_normal(len(best)), -1.0, 1.0)

    def evaluate(S: Any) -> tuple[Any, Any]:
        rows = order[np.searchsorted(keys[order], S[:, 0] | S[:, 1] << np.uint64(9))]
        return prior[rows], value[rows]

    return evaluate


def quality(every: int = 1) -> None:
    game = TicTacToe()
    positions = all_positions(game)
    _, exact = minimax(game, positions)
    roots, q = positions[::every], np.where(np.isnan(exact), -np.inf, exact)[::every]
    best = q.max(axis=1)

    def share(policy: Any) -> float:
        return float((q[np.arange(len(q)), policy.argmax(axis=1)] >= best - 1e-9).mean())

    print(f"tic-tac-toe, {len(roots)} positions: share whose chosen move is a best one (full search)")
    for name, how in EVALUATORS.items():
        evaluator = noisy(positions, exact, how, seed=0)
        print(
            f"  {name} (noise {how[0]:g}, temperature {how[1]:g}, values {how[2]:g}): "
            f"alone {share(evaluator(roots)[0]):.1%}"
        )
        for n in (4, 8, 32, 128):
            row = []
            for search in (rmcts, puct):
                began = time.process_time()
                found = search(game, roots, n, 1.0, evaluator)
                row.append((share(found.policy), time.process_time() - began, found.stats["calls"]))
            gap = 1.96 * np.sqrt(sum(one * (1 - one) for one, _, _ in row) / len(roots))
            texts = [f"{a:.1%} ({s:.2f} s, {c} calls)" for a, s, c in row]
            print(f"    N = {n:3d}: RMCTS {texts[0]}, PUCT {texts[1]}, difference +-{gap:.1%}")
    print()


def match(games: int) -> None:
    print(
        f"Connect-4 matches, {games} games from {games // 2} random openings with both sides, rules of thumb, temp 0.3"
    )
    roots = random_positions(GAME, games // 2, 4, np.random.default_rng(2))
    for ours, theirs in ((16, 16), (64, 64), (128, 64), (512, 64)):
        solver = Match(RMCTS(num_simulations=ours), PUCT(num_simulations=theirs), temperature=0.3)
        problem = GameSearch(GAME, roots)
        began = time.process_time()
        result = infimum.solve(problem, solver=solver, oracles={"game": Heuristic()}, stopping="max_iter(100)", seed=3)
        (record,) = result.extras.values()
        points = record["points"]
        error = points.std() / np.sqrt(len(points))
        took = time.process_time() - began
        x = result.x
        print(
            f"  RMCTS({ours}) against PUCT({theirs}): {points.mean():.3f} +- {error:.3f} "
            f"({x['wins']} won, {x['draws']} drawn, {x['losses']} lost; {took:.1f} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--every", type=int, default=1, help="of the tic-tac-toe positions, take each EVERY-th one")
    parser.add_argument("--only", default="toy,speed,quality,match")
    given = parser.parse_args()
    parts = given.only.split(",")
    if "toy" in parts:
        toy()
    if "speed" in parts:
        speed(given.repeats)
    if "quality" in parts:
        quality(given.every)
    if "match" in parts:
        match(given.games)


if __name__ == "__main__":
    main()

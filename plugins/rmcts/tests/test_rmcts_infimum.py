"""The searches under the host: budgets, counters, checkpoints, comparisons, matches, reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Status
from infimum.checkpoint import load_tree, save_tree
from infimum.errors import InfimumError, InputError, PlanError
from infimum.plan.bind import streams
from infimum.plugins.build import build
from infimum.plugins.registry import get_registry
from infimum.runfile import RunFile
from infimum.testing.compare import result_difference
from infimum_rmcts import ConnectFour, GameSearch, OpenSpiel, Othello, TicTacToe, TreeGame, minimax, puct, rmcts
from infimum_rmcts.match import Match
from infimum_rmcts.mirror import KLProx, MirrorDescent, example
from infimum_rmcts.oracles import Cached, Heuristic, Network, Rollout, Uniform
from infimum_rmcts.problem import after, random_positions, search
from infimum_rmcts.report import GAP, WIDTH, _children, _layout, sections
from infimum_rmcts.solvers import PUCT, RMCTS

RUNS = Path(__file__).parents[1] / "runs"
HEURISTIC = {"game": Heuristic()}


def solve(problem: Any, solver: Any, oracles: Any = None, stopping: str = "max_iter(2000)", **more: Any) -> Any:
    oracles = HEURISTIC if oracles is None else oracles
    return infimum.solve(problem, solver=solver, oracles=oracles, stopping=stopping, seed=3, **more)


def told(result: Any) -> Any:
    (extras,) = result.extras.values()
    return extras


def test_a_run_is_the_plain_search() -> None:
    game = ConnectFour()
    roots = random_positions(game, 6, 5, np.random.default_rng(0))
    problem = GameSearch(game, roots)
    result = solve(problem, RMCTS(200))
    assert result.status is Status.limit
    stats = told(result)["stats"]
    assert result.iterations == stats["calls"] == result.calls["game"]["evaluate"]
    assert result.evaluations["game"]["evaluate"] == stats["evaluated"]
    assert stats["evaluated"] + stats["terminal_hits"] == 6 * 200
    rival = solve(problem, PUCT(200))
    plain = puct(game, roots, 200, evaluator=game.heuristic)
    np.testing.assert_array_equal(rival.x, plain.policy)
    assert told(rival)["stats"] == plain.stats
    assert rival.evaluations["game"]["evaluate"] == plain.stats["evaluated"]
    same = rmcts(game, roots, 200, evaluator=game.heuristic, rng=streams(3)("solver"))
    np.testing.assert_array_equal(result.x, same.policy)


def test_an_evaluator_of_the_users_own_needs_no_oracle() -> None:
    game = TicTacToe()
    seen: list[int] = []

    def evaluator(S: Any) -> Any:
        seen.append(len(S))
        return game.heuristic(S)

    result = solve(GameSearch(game, evaluator=evaluator), RMCTS(100), oracles={})
    assert result.evaluations["game"]["evaluate"] == sum(seen) <= 100
    assert result.calls["game"]["evaluate"] == len(seen) == result.iterations


@pytest.mark.slow
def test_without_an_evaluator_the_plan_says_what_would_help() -> None:
    with pytest.raises(PlanError, match=r"rmcts\.heuristic"):
        solve(GameSearch(TicTacToe()), RMCTS(), oracles={})


@pytest.mark.parametrize("oracle", [Heuristic(), Cached(Rollout(2))])
@pytest.mark.parametrize("solver", [RMCTS(20, doublings=2), PUCT(12)])
def test_a_break_changes_no_bit(oracle: Any, solver: Any, tmp_path: Path) -> None:
    def run() -> Any:
        problem = GameSearch(Othello(4))
        return infimum.prepare(problem, solver=solver, oracles={"game": oracle}, stopping="max_iter(60)", seed=1)

    whole = run().solve()
    for split in (1, whole.iterations - 1):
        first = run()
        first.advance(split)
        save_tree(tmp_path / f"{split}", "state", first.state_dict())
        second = run().load_state_dict(load_tree(tmp_path / f"{split}", "state"))
        assert result_difference(whole, second.solve()) is None


@pytest.mark.parametrize("solver", [RMCTS(60), PUCT(40), Match(RMCTS(20), PUCT(20), swap=False)])
def test_positions_that_are_objects_are_kept_in_checkpoints(solver: Any) -> None:
    pytest.importorskip("pyspiel")

    def run() -> Any:
        game = OpenSpiel("tic_tac_toe")
        return infimum.prepare(
            GameSearch(game), solver=solver, oracles={"game": Uniform()}, stopping="max_iter(50)", seed=1
        )

    whole = run().solve()
    first = run()
    first.advance(2)
    second = run().load_state_dict(first.state_dict())
    assert second.state_dict().keys() == first.state_dict().keys()
    assert result_difference(whole, second.solve()) is None


def test_budgets_cut_a_search_between_two_evaluator_calls() -> None:
    problem = GameSearch(ConnectFour())
    for solver in (RMCTS(500), PUCT(500)):
        result = solve(problem, solver, stopping="max_calls(60, of='evaluate')")
        assert result.status is Status.limit
        assert "max_calls" in str(result.fired[0].rule)
        used = result.evaluations["game"]["evaluate"]
        assert used >= 60 if isinstance(solver, RMCTS) else used == 60
        np.testing.assert_allclose(result.x.sum(axis=1), 1.0)


def test_doublings_report_the_last_complete_search() -> None:
    problem = GameSearch(TicTacToe(), reference="minimax")
    result = solve(problem, RMCTS(16, doublings=3))
    assert told(result)["counts"].sum() == 16 * 8 - 1
    single = solve(problem, RMCTS(128))
    np.testing.assert_allclose(result.x, single.x, atol=0.1)


def test_policies_are_judged_by_full_search() -> None:
    problem = search(TicTacToe(), positions="all", every=40, reference="minimax")
    few, many = (solve(problem, RMCTS(n)) for n in (2, 400))
    assert many.value < few.value
    assert 0.95 < many.metrics["optimal"] <= 1.0
    assert many.best_value <= many.value
    target = solve(problem, PUCT(400), stopping="target(0.1) | max_iter(400)")
    assert target.status is Status.target_reached
    flat = problem.metrics(None)["value"](problem.start(np.random.default_rng(0)), None)
    assert flat > few.value


def test_positions_and_moves() -> None:
    game = TicTacToe()
    state = after(game, ["b2", 0])
    assert game.show(state[0]).splitlines() == ["O . .", ". X .", ". . ."]
    for moves, said in ((["b2", "b2"], "illegal"), (["z9"], "expected one of"), ([0, 3, 1, 4, 2, 5], "over before it")):
        with pytest.raises(InputError, match=said):
            after(game, moves)
    with pytest.raises(InputError, match="take fewer"):
        random_positions(game, 10, 9, np.random.default_rng(0))
    with pytest.raises(InputError, match="more than 3000"):
        minimax(ConnectFour(), ConnectFour().initial(), max_positions=3000)
    with pytest.raises(InputError, match="terminal"):
        GameSearch(game, np.array([[0, 7]], np.uint64))
    with pytest.raises(InputError, match="illegal action"):
        GameSearch(game, state).prepare(np.full((1, 9), 1 / 9))
    with pytest.raises(InputError, match="GiB"):
        solve(GameSearch(game), RMCTS(10_000, doublings=12))


def test_nan_ends_the_run() -> None:
    def evaluator(S: Any) -> Any:
        prior, value = TicTacToe().heuristic(S)
        return prior, value * np.nan if len(S) > 20 else value

    result = solve(GameSearch(TicTacToe(), evaluator=evaluator), RMCTS(200), oracles={})
    assert result.status is Status.nonfinite
    assert "level 2" in result.message
    np.testing.assert_allclose(result.x.sum(), 1.0)


def test_a_comparison_takes_both() -> None:
    problem = search(TicTacToe(), positions="all", every=300, reference="minimax")
    found = infimum.compare(
        [problem],
        {"rmcts": RMCTS(4, doublings=8), "puct": PUCT(300)},
        budget={"evaluate": 1500},
        oracles=HEURISTIC,
        seed=0,
        jobs=1,
        cache=False,
    )
    assert len(found.summary()) == 2


def test_a_match_is_played_out_and_told() -> None:
    game = Othello(4)
    problem = GameSearch(game, random_positions(game, 5, 2, np.random.default_rng(0)))
    solver = Match(RMCTS(40), PUCT(10), temperature=0.2)
    result = solve(problem, solver, stopping="max_iter(40)")
    x = result.x
    assert x["wins"] + x["draws"] + x["losses"] == 10
    assert x["score"] == pytest.approx((x["wins"] + 0.5 * x["draws"]) / 10)
    tree = told(result)
    # The record replays: who moves, and who won by the number of stones.
    for k in range(10):
        state, mover = problem.roots[k % 5 : k % 5 + 1], None
        first = int(game.mover(state)[0])
        for action in tree["moves"][k][tree["moves"][k] >= 0]:
            assert game.legal(state)[0, action]
            state = game.play(state, np.array([action]))
        over, score = game.terminal(state)
        mover = int(game.mover(state)[0])
        side = tree["first"][k] if mover == first else 1 - tree["first"][k]
        assert over[0]
        assert tree["points"][k] == 0.5 + 0.5 * (score[0] if side == 0 else -score[0])
    assert any("The first game" in note for note in result.notes)
    assert result.notes[-1].endswith(tree["boards"][-1])
    assert result.status is Status.converged
    assert "all 10 games are over" in result.message
    cut = solve(problem, Match(RMCTS(4), PUCT(4), max_plies=2))
    assert cut.x["unfinished"] == 10
    assert cut.status is Status.limit
    assert "10 games were not over after 2 plies" in cut.message
    with pytest.raises(InputError, match="expected rmcts"):
        Match(player=MirrorDescent())  # type: ignore[arg-type]


def test_the_stronger_side_wins_most_games() -> None:
    game = ConnectFour(5, 4, 3)
    problem = GameSearch(game, random_positions(game, 30, 1, np.random.default_rng(1)))
    result = solve(problem, Match(RMCTS(128), PUCT(1), temperature=0.2))
    assert result.x["score"] > 0.75


def test_a_network_is_an_oracle() -> None:
    pytest.importorskip("torch")
    oracle = build({"use": "rmcts.network", "module": "python:infimum_rmcts.net:example"}, "oracle").instance
    result = solve(GameSearch(TicTacToe()), RMCTS(64), oracles={"game": oracle})
    assert result.evaluations["game"]["evaluate"] == result.evaluations["game"]["encode"] <= 64
    with pytest.raises(InputError, match="expected a torch module"):
        Network(3)


def test_reports_show_the_tree_and_the_game() -> None:
    problem = GameSearch(ConnectFour())
    for result in (solve(problem, RMCTS(300)), solve(problem, PUCT(100)), solve(problem, Match(RMCTS(9), PUCT(9)))):
        (found,) = [one for one in get_registry().call_hook("infimum_report_sections", result=result) if one]
        (section,) = found
        assert section.figures and section.tables
        tree = told(result).get("tree")
        if tree is not None:
            parent, sims = np.asarray(tree["parent"]), np.asarray(tree["sims"])
            assert parent[0] == -1
            assert (parent[1:] < np.arange(1, len(parent))).all()
            children = np.bincount(parent[1:], sims[1:], minlength=len(parent))
            assert (children <= sims).all()
            assert (np.asarray(tree["depth"])[1:] == np.asarray(tree["depth"])[parent[1:]] + 1).all()
    assert not [one for one in get_registry().call_hook("infimum_report_sections", result=_other()) if one]


def test_a_report_shows_every_board_of_the_first_game() -> None:
    game = ConnectFour(5, 4, 3)
    result = solve(GameSearch(game), Match(RMCTS(9), PUCT(9), swap=False))
    tree = told(result)
    (section,) = sections(result.extras)
    assert not section.figures  # the lengths of one game are no picture
    head, *rows = section.text.split("\n\n")[1:]
    assert {1.0: "RMCTS(9) won", 0.5: "drawn", 0.0: "PUCT(9) won"}[tree["points"][0]] in head
    assert max(len(line) for row in rows for line in row.splitlines()) <= WIDTH
    shown: list[str] = []
    wide = max(len(line) for board in tree["boards"] for line in board.splitlines())
    for row in rows:
        lines = row.splitlines()
        for left in range(0, max(map(len, lines)), wide + GAP):
            shown.append("\n".join(line[left : left + wide].rstrip() for line in lines))
    assert [one.split("\n", 1)[1] for one in shown] == tree["boards"]
    titles = [one.split("\n", 1)[0] for one in shown]
    assert titles == ["start", *(f"{k}. {a + 1}" for k, a in enumerate(tree["moves"][0], 1))]


def test_the_moves_of_a_tree_stand_in_the_order_of_the_actions() -> None:
    """Those that end the game stand before the others in the record, not in the picture."""
    game = TreeGame([[0.5, 0.2], 1, [0.1, -1], -1])
    result = solve(GameSearch(game), RMCTS(400), oracles={"game": Uniform()})
    nodes = told(result)["tree"]
    children = _children(nodes)
    assert [int(nodes["action"][k]) for k in children[0]] == [0, 1, 2, 3]
    assert [int(nodes["action"][k]) for k in np.flatnonzero(nodes["depth"] == 1)] != [0, 1, 2, 3]
    x = _layout(children)
    assert (np.diff(x[children[0]]) > 0).all()
    leaves = [k for k, below in enumerate(children) if not below]
    assert sorted(x[leaves]) == list(range(len(leaves)))


def _other() -> Any:
    return infimum.solve(lambda x: float((x**2).sum()), np.ones(2), jac=lambda x: 2 * x, stopping="max_iter(2)", seed=0)


@pytest.mark.parametrize("divergence", ["kl_prior_first", "kl_policy_first"])
def test_steps_near_in_kl_reach_the_minimum_on_the_simplex(divergence: Any) -> None:
    problem = example()
    result = infimum.solve(
        problem,
        solver=MirrorDescent(step=1.0),
        oracles={"loss": KLProx(divergence)},
        stopping="residual(1e-9) | max_iter(20000)",
        seed=0,
    )
    expected = infimum.solve(problem, solver="splitting.proximal_gradient", stopping="grad_norm(1e-10)", seed=0)
    assert result.value == pytest.approx(expected.value, abs=1e-4)
    assert result.x.min() >= 0
    assert result.x.sum() == pytest.approx(1.0)
    with pytest.raises(InfimumError, match="kl_prox of constraint"):
        infimum.solve(
            infimum.Composite(
                {"loss": problem.terms[0].body}, constraints={"simplex": infimum.constraints.Simplex(2.0)}
            ),
            solver=MirrorDescent(),
            oracles={"loss": KLProx()},
        )


@pytest.mark.parametrize("name", ["connect-four", "mirror-descent", "play-connect-four"])
def test_run_files_are_in_order(name: str) -> None:
    assert RunFile.load(RUNS / f"{name}.yaml").prepare() is not None

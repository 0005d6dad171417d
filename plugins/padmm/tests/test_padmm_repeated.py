"""Without the host: solves again and again, receding horizons, problems built from others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infimum import Composite
from infimum.constraints import Affine, Box
from infimum.errors import InputError
from infimum.functions import L1, LeastSquares, Linear, Quadratic, SquaredL2
from infimum_padmm import BlockProblem, RecedingHorizon, Repeated, chain, control, from_composite, problems, split


def test_other_right_hand_sides_and_linear_parts_give_what_new_problems_give() -> None:
    rng = np.random.default_rng(0)
    A, H = rng.standard_normal((4, 6)), np.diag(np.arange(1.0, 7.0))

    def problem(b: np.ndarray, c: np.ndarray) -> BlockProblem:
        return BlockProblem({"x": Quadratic(H) + Linear(c), "z": 0.3 * L1()}, {"tie": {"x": A, "z": -1.0}}, {"tie": b})

    again = Repeated(problem(np.zeros(4), np.zeros(6)))
    again.solve()
    for _ in range(4):
        b, c = rng.standard_normal(4), rng.standard_normal(6)
        one = again.solve({"tie": b}, {"x": c}, tol=1e-10)
        other = Repeated(problem(b, c)).solve(tol=1e-10)
        assert one.status == other.status == "converged"
        np.testing.assert_allclose(one.x["x"], other.x["x"], atol=1e-8)
        np.testing.assert_allclose(one.multipliers["tie"], other.multipliers["tie"], atol=1e-7)


def test_a_second_solve_begins_where_the_first_ended() -> None:
    again = Repeated(problems.control(6))
    first = again.solve(tol=1e-9, check_every=1)
    assert again.solve(tol=1e-8, check_every=1).iterations == 1 < first.iterations
    again.forget()
    assert again.solve(tol=1e-9, check_every=1).iterations == first.iterations
    other = Repeated(problems.control(6))
    assert other.solve(start=first.x, multipliers=first.multipliers, tol=1e-8, check_every=1).iterations == 1


def test_looking_less_often_changes_nothing() -> None:
    one, other = (Repeated(problems.control(5), tau=1.3) for _ in range(2))
    a, b = one.solve(tol=0.0, max_iter=60, check_every=1), other.solve(tol=0.0, max_iter=60, check_every=20)
    for name in a.x:
        np.testing.assert_allclose(a.x[name], b.x[name], atol=1e-12)


def test_divergence_and_limits_are_told() -> None:
    lost = Repeated(problems.chen()).solve(start=np.ones(3), max_iter=5000)
    assert lost.status == "diverged" and lost.iterations < 1500
    assert Repeated(problems.chen(), prox_weight=20.0).solve(start=np.ones(3), max_iter=10).status == "limit"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rhs": {"row7": [1.0]}}, "no such row"),
        ({"rhs": {"row1": [1.0]}}, "has 1 entries; expected 2"),
        ({"linear": {"w": [1.0]}}, "no such block"),
        ({"rhs": {"row1": [np.nan, 1.0]}}, r"rhs of row 'row1'\[0\] is nan"),
        ({"rhs": [[1.0, 1.0]]}, "rhs: expected {row: array}"),
        ({"linear": {"x": [np.inf, 1.0]}}, r"linear part of block 'x'\[0\] is inf"),
        ({"linear": {"x": [1.0]}}, "has 1 entries; expected 2"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"tol": "1e-6"}, "tol is '1e-6'"),
        ({"max_iter": 0}, "max_iter is 0; expected a whole number of at least 1"),
        ({"check_every": 0}, "check_every is 0"),
        ({"start": np.full(4, np.nan)}, "a start must be finite"),
        ({"multipliers": {"row1": ["a", "b"]}}, "the multiplier of row 'row1'"),
        ({"linear": {"z": [1.0, 1.0]}}, "expected a quadratic block; this one is solved otherwise"),
    ],
)
def test_bad_changes(arguments: dict[str, Any], message: str) -> None:
    again = Repeated(BlockProblem({"x": SquaredL2(), "z": L1()}, [{"x": np.eye(2), "z": -1.0}]))
    with pytest.raises(InputError, match=message):
        again.solve(**arguments)


@pytest.mark.parametrize("grouping", ["condensed", "joint", "inputs", "stages"])
def test_a_receding_horizon_gives_the_inputs_of_an_interior_point_method(grouping: Any) -> None:
    cp = pytest.importorskip("cvxpy")
    A, B, state = problems.system(3, 2, 0.95, 4)
    s, u, first = cp.Variable((9, 3)), cp.Variable((8, 2)), cp.Parameter(3)
    rows = [s[0] == first, cp.abs(u) <= 0.4, *(s[k + 1] == A @ s[k] + B @ u[k] for k in range(8))]
    whole = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(s[1:]) + 0.05 * cp.sum_squares(u)), rows)
    plant, rng = RecedingHorizon(A, B, 8, Box(-0.4, 0.4), grouping=grouping), np.random.default_rng(0)
    for _ in range(5):
        first.value = state
        whole.solve(solver="CLARABEL")
        mine = plant.control(state, tol=1e-8)
        assert np.abs(mine).max() <= 0.4
        np.testing.assert_allclose(mine, u.value[0], atol=1e-5)
        state = A @ state + B @ mine + 0.3 * rng.standard_normal(3)
    with pytest.raises(InputError, match="the state has 2 entries; expected 3"):
        plant.control(np.zeros(2))


@pytest.mark.parametrize("seed", [60, 61, 62])
def test_inputs_at_their_bounds_are_finished_exactly(seed: int) -> None:
    A, B, state = problems.system(4, 2, 0.9, seed)
    plain, quick = (RecedingHorizon(A, B, 12, Box(-0.2, 0.3), finish=one) for one in (False, True))
    rng, counts = np.random.default_rng(seed), np.zeros(2, dtype=int)
    for _ in range(6):
        exact, found = plain.solve(state, tol=1e-9), quick.solve(state, tol=1e-9)
        assert exact.status == found.status == "converged" and found.primal_residual == 0.0
        np.testing.assert_allclose(found.x["inputs"], exact.x["inputs"], atol=1e-7)
        np.testing.assert_allclose(found.multipliers["copy"], exact.multipliers["copy"], atol=1e-6)
        counts += [exact.iterations, found.iterations]
        state = A @ state + B @ found.x["inputs"][:2] + 0.3 * rng.standard_normal(4)
    assert 3 * counts[1] < counts[0]
    assert (np.abs(exact.x["inputs"] - 0.05) > 0.249).any()
    assert plain.solve(state, tol=0.0, max_iter=3).iterations == 3
    assert quick.solve(50.0 * state, tol=0.0, max_iter=7).iterations == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": np.ones((2, 3))}, r"A is \(2, 3\)"),
        ({"B": np.ones(2)}, r"B is \(2,\)"),
        ({"A": "a"}, "A holds"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"horizon": 0}, "horizon is 0"),
        ({"grouping": "all"}, "grouping='all': expected one of 'condensed'"),
        ({"input_cost": -1.0}, "input_cost is -1.0"),
        ({"inputs": None}, "expected one Constraint"),
        ({"inputs": Box([-1.0, -1.0], [1.0, 1.0])}, r"lower of the box is \(2,\), x0 is \(3,\)"),
        ({"tau": 2.0}, "tau is 2.0"),
    ],
)
def test_bad_horizons(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"A": np.eye(2), "B": np.ones((2, 1)), "horizon": 3, "inputs": Box(-1.0, 1.0)}
    with pytest.raises(InputError, match=message):
        RecedingHorizon(**{**good, **arguments})
    for state in (np.array([np.nan, 1.0]), "ab", np.ones(3)):
        with pytest.raises(InputError, match="the state"):
            RecedingHorizon(**good).control(state)  # type: ignore[arg-type]


def test_groupings_have_one_solution() -> None:
    found = [Repeated(problems.control(5, grouping=g)).solve(tol=1e-10) for g in ("stages", "inputs", "joint")]
    u = [np.concatenate([one.x[f"u{k}"] for k in range(5)]) for one in found[:2]] + [found[2].x["u"]]
    np.testing.assert_allclose(u[0], u[1], atol=1e-8)
    np.testing.assert_allclose(u[0], u[2], atol=1e-8)


def test_builders_refuse_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="has 2 blocks, got 3"):
        chain([np.eye(2)], [None, None, SquaredL2()])
    with pytest.raises(InputError, match="expected"):
        control(np.eye(2), np.ones((3, 1)), 4, np.ones(2))
    with pytest.raises(InputError, match="at least 1"):
        control(np.eye(2), np.ones((2, 1)), 0, np.ones(2))
    with pytest.raises(InputError, match="grouping='each'"):
        control(np.eye(2), np.ones((2, 1)), 2, np.ones(2), grouping="each")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="penalty 'g': expected"):
        split({"x": SquaredL2()}, {"g": L1()})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="expected a BlockProblem, got str"):
        Repeated("problem")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected a Composite, got int"):
        from_composite(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'x' names a block and a penalty"):
        split({"x": SquaredL2()}, {"x": (L1(), {"x": np.eye(2)})})


def composites() -> dict[str, Composite]:
    rng = np.random.default_rng(2)
    A, b, D = rng.standard_normal((12, 6)), rng.standard_normal(12), np.diff(np.eye(6), axis=0)
    blocks = {"L": (6,), "S": (6,)}
    return {
        "fused": Composite({"fit": LeastSquares(A, b, "sum"), "sparse": 0.2 * L1(), "fused": 0.5 * L1() @ D}),
        "set": Composite({"fit": LeastSquares(A, b, "sum")}, constraints={"box": Box(-0.1, 0.1)}),
        "affine": Composite(
            {"fit": LeastSquares(A, b, "sum"), "sparse": L1()}, constraints={"sum": Affine(np.ones((1, 6)), np.ones(1))}
        ),
        "blocks": Composite(
            {"low": SquaredL2(), "sparse": 0.3 * L1(), "sum": SquaredL2().translate(b[:6]) @ {"L": 2.0, "S": 1.0}},
            blocks=blocks,
            on={"low": "L", "sparse": "S"},
        ),
    }


@pytest.mark.parametrize("name", ["fused", "set", "affine", "blocks"])
def test_a_composite_becomes_a_block_problem_with_the_same_optimum(name: str) -> None:
    bridge = pytest.importorskip("infimum_cvxpy")
    composite = composites()[name]
    problem = from_composite(composite)
    found = Repeated(problem).solve(tol=1e-9, max_iter=20_000)
    assert found.status == "converged"
    assert problem.value(found.x) == pytest.approx(bridge.reference(composite), abs=1e-5)


def test_what_from_composite_refuses() -> None:
    with pytest.raises(InputError, match="minimize"):
        from_composite(Composite({"f": -1.0 * SquaredL2()}, start=np.zeros(2), sense="max"))
    whole = Composite({"all": L1(), "L": SquaredL2()}, blocks={"L": (2,), "S": (2,)}, on={"L": "L"})
    with pytest.raises(InputError, match="term 'all' is on the whole packed vector"):
        from_composite(whole)

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
        ({"linear": {"z": [1.0, 1.0]}}, "expected a quadratic block and its 2 numbers"),
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
    with pytest.raises(InputError, match="the state is"):
        plant.control(np.zeros(2))


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

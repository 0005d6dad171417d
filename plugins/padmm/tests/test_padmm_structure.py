"""Orders, pivots, images, reports, and what is refused."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import infimum
from infimum.constraints import Box, L2Ball
from infimum.errors import InfimumWarning, InputError
from infimum.functions import L1, Function, Quadratic, SquaredL2
from infimum_padmm import PADMM, BlockProblem, Cauchy, Repeated, StructureError, certificate, problems
from infimum_padmm.structure import peel

SUM = SquaredL2()
EYE = np.eye(2)


def good(order: tuple[int, ...], rows: list[frozenset[int]]) -> bool:
    last = [max(row, key=order.index) for row in rows]
    return len(set(last)) == len(last)


@st.composite
def patterns(draw: st.DrawFn) -> tuple[int, list[frozenset[int]]]:
    n = draw(st.integers(1, 5))
    row = st.frozensets(st.integers(0, n - 1), min_size=1)
    return n, draw(st.lists(row, max_size=5))


@given(patterns())
def test_peeling_finds_an_order_exactly_where_brute_force_does(case: tuple[int, list[frozenset[int]]]) -> None:
    n, rows = case
    order, pivots, stuck = peel(n, rows)
    exists = any(good(one, rows) for one in itertools.permutations(range(n)))
    assert bool(order) is exists and bool(stuck) is not exists
    if exists:
        assert good(tuple(order), rows)
        assert pivots == {i: max(row, key=order.index) for i, row in enumerate(rows)}


@given(patterns())
def test_a_good_order_stays_as_it_is(case: tuple[int, list[frozenset[int]]]) -> None:
    n, rows = case
    if good(tuple(range(n)), rows):
        assert peel(n, rows)[0] == list(range(n))


@given(patterns())
def test_where_rows_are_stuck_every_block_of_them_occurs_twice(case: tuple[int, list[frozenset[int]]]) -> None:
    stuck = [case[1][i] for i in peel(*case)[2]]
    for block in frozenset().union(*stuck):
        assert sum(block in row for row in stuck) >= 2


def test_an_order_is_found_where_the_given_one_is_none() -> None:
    problem = BlockProblem(
        {"z": SUM, "x": SUM, "y": SUM}, [{"x": 1.0, "z": -1.0}, {"z": EYE, "y": -1.0}], shapes={"x": 2}
    )
    report = problem.report()
    assert report.order.index("x") > report.order.index("z") and report.order[-1] == "y"
    assert [row.pivot for row in report.rows] == ["x", "y"]


def test_two_rows_with_one_last_block_are_named_with_a_better_order() -> None:
    rows = {"first": {"x": EYE, "z": EYE}, "second": {"y": EYE, "z": EYE}}
    with pytest.raises(StructureError, match="rows 'first' and 'second' both end in block 'z'") as error:
        BlockProblem(dict.fromkeys("xyz", SUM), rows, order=["x", "y", "z"])
    assert error.value.rows == ("first", "second")
    better = re.findall(r"'(\w)'", str(error.value).split("order=")[1])
    assert BlockProblem(dict.fromkeys("xyz", SUM), rows, order=better).structure.order


def test_rows_without_any_order_are_reported() -> None:
    rows = {"one": {"x": EYE, "y": EYE}, "two": {"x": EYE, "y": -EYE}, "apart": {"z": EYE, "x": EYE}}
    with pytest.raises(StructureError, match="in the rows one, two every") as error:
        BlockProblem(dict.fromkeys("xyz", SUM), rows)
    assert error.value.rows == ("one", "two")


def test_duplicated_rows_clash() -> None:
    with pytest.raises(StructureError, match="row1, row2"):
        BlockProblem({"x": SUM, "y": SUM}, [{"x": EYE, "y": EYE}] * 2)


def bad_rows() -> dict[str, tuple[str, dict]]:
    ball = {"blocks": {"x": L1(), "y": SUM}, "rows": [{"x": EYE, "y": EYE}]}
    two = {"blocks": {"x": SUM, "y": SUM}}
    return {
        "empty": ("row 'row1' has no entries", {**two, "rows": [{}], "shapes": {"x": 2, "y": 2}}),
        "zeros": ("no entries but zeros", {**two, "rows": [{"x": 0 * EYE, "y": 0.0}]}),
        "unknown block": ("no block 'xx'", {**two, "rows": [{"xx": EYE, "y": EYE}]}),
        "no mapping": ("expected {block: matrix}", {**two, "rows": [3]}),
        "shape": (r"row 'row1', block 'y': the matrix is \(3, 3\); expected \(2, 3\)", {**two, "rows": [{"x": EYE, "y": np.eye(3)}]}),  # noqa: E501
        "number": ("2 times the identity", {**two, "rows": [{"x": np.ones((2, 3)), "y": 2.0}], "shapes": {"y": 3}}),
        "size": ("size of block 'y'", {**two, "rows": [{"x": EYE}]}),
        "length": ("size of block 'x'", {**two, "rows": [{"x": 1.0, "y": 1.0}]}),
        "function": ("block 'x'", {"blocks": {"x": SUM.translate(np.ones(3)), "y": None}, "rows": [{"x": EYE, "y": EYE}]}),  # noqa: E501
        "rhs row": ("no such row", {**two, "rows": [{"x": EYE, "y": EYE}], "rhs": {"row2": [1.0, 1.0]}}),
        "rhs count": ("rhs has 2 entries", {**two, "rows": [{"x": EYE, "y": EYE}], "rhs": [[1.0, 1.0], [0.0, 0.0]]}),
        "rhs nan": (r"rhs of row 'row1'\[0\] is nan", {**two, "rows": [{"x": EYE, "y": EYE}], "rhs": [[np.nan, 1.0]]}),
        "rhs text": ("rhs of row 'row1'", {**two, "rows": [{"x": EYE, "y": EYE}], "rhs": [["a", "b"]]}),
        "rhs number": ("rhs: expected", {**two, "rows": [{"x": EYE, "y": EYE}], "rhs": 5}),
        "rhs complex": ("is complex", {**two, "rows": [{"x": EYE, "y": EYE}], "rhs": [[1j, 0.0]]}),
        "complex": ("row 'row1', block 'x': the matrix is complex", {**two, "rows": [{"x": 1j * EYE, "y": EYE}]}),
        "nan": (r"row 'row1', block 'x': the matrix\[0, 0\] is nan", {**two, "rows": [{"x": np.nan * EYE, "y": EYE}]}),
        "ragged": ("no array of numbers", {**two, "rows": [{"x": [[1.0, 2.0], [3.0]], "y": EYE}]}),
        "text": ("row 'row1', block 'x'", {**two, "rows": [{"x": "A", "y": EYE}]}),
        "row name": ("1 is no name", {**two, "rows": {1: {"x": EYE, "y": EYE}}}),
        "block of another kind": ("1 is no name", {**two, "rows": [{1: EYE, "y": EYE}]}),
        "shapes text": ("expected a whole number", {**two, "rows": [{"x": EYE, "y": EYE}], "shapes": {"x": "2"}}),
        "shapes zero": ("at least 1", {"blocks": {"x": SUM}, "shapes": {"x": 0}}),
        "shapes list": ("shapes: expected", {**two, "rows": [{"x": EYE, "y": EYE}], "shapes": [2]}),
        "sets list": ("sets: expected", {**two, "rows": [{"x": EYE, "y": EYE}], "sets": [Box(0.0, 1.0)]}),
        "order text": ("order='xy'", {**two, "rows": [{"x": EYE, "y": EYE}], "order": "xy"}),
        "order number": ("order=5", {**two, "rows": [{"x": EYE, "y": EYE}], "order": 5}),
        "reference": ("reference is 'low'", {**two, "rows": [{"x": EYE, "y": EYE}], "reference": "low"}),
        "rhs length": ("expected", {**two, "rows": [{"x": EYE, "y": EYE}], "rhs": [[1.0, 1.0, 1.0]]}),
        "infeasible": (
            r"row 'row1' cannot be fulfilled.* by 1 of 1",
            {**two, "rows": [{"x": [[1.0], [0.0]], "y": [[2.0], [0.0]]}], "rhs": [[0.0, 1.0]]},
        ),
        "order": ("expected every block once", {**two, "rows": [{"x": EYE, "y": EYE}], "order": ["x"]}),
        "set": ("have no prox together", {**ball, "sets": {"x": Box(0.0, 1.0)}}),
        "set shape": ("block 'y' of shape .*: lower", {"blocks": {"y": Box([0.0] * 3)}, "shapes": {"y": 2}}),
        "set name": ("there is no such block", {**ball, "sets": {"w": Box(0.0, 1.0)}}),
        "two sets": ("expected one Constraint", {"blocks": {"x": Box(0.0, 1.0)}, "sets": {"x": Box(0.0, 1.0)}}),
        "no blocks": ("at least one block", {"blocks": {}}),
        "body": ("expected a Function, a Constraint or None", {"blocks": {"x": 3}}),
        "name": ("no name for a block", {"blocks": {"": SUM}}),
        "shapes": ("no such block", {**two, "rows": [{"x": EYE, "y": EYE}], "shapes": {"z": 2}}),
    }  # fmt: skip


@pytest.mark.parametrize("case", bad_rows())
def test_bad_problems_are_refused_with_names(case: str) -> None:
    message, arguments = bad_rows()[case]
    with pytest.raises(InputError, match=message):
        BlockProblem(**arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": 0.0}, r"beta is 0.0; expected a finite number > 0 \(1 is a good start\)"),
        ({"beta": {"row1": -1.0}}, "beta of row 'row1' is -1.0"),
        ({"beta": "automatic"}, "beta='automatic'"),
        ({"prox_weight": -1.0}, "prox_weight is -1.0"),
        ({"prox_weight": {"x": np.inf}}, "prox_weight of block 'x'"),
        ({"tau": 1.618034}, "tau is 1.618"),
        ({"tau": 0.0}, "tau is 0.0; expected 0 < tau < 1.6180"),
        ({"tau": "1"}, "tau is '1'"),
        ({"beta": None}, "beta is None; expected a finite number > 0"),
        ({"beta": True}, "beta is True"),
        ({"beta": {"row1": "1"}}, "beta of row 'row1' is '1'"),
        ({"beta": {1: 1.0}}, "beta: 1 is no name"),
        ({"prox_weight": [1.0]}, "prox_weight is"),
        ({"linearize": "sometimes"}, "linearize='sometimes': expected one of 'auto', 'never', 'always'"),
    ],
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PADMM(**options)
    with pytest.raises(InputError, match=message):
        Repeated(BlockProblem({"x": SUM, "y": SUM}, [{"x": EYE, "y": EYE}]), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": {"row2": 1.0}}, "no such row"),
        ({"prox_weight": {"w": 1.0}}, "no such block"),
        ({"multipliers": {"row1": [1.0]}}, "has 1 entries; expected 2"),
        ({"multipliers": {"row9": [1.0]}}, "no such row"),
        ({"multipliers": {"row1": [np.nan, 1.0]}}, r"the multiplier of row 'row1'\[0\] is nan"),
    ],
)
def test_options_that_do_not_fit_the_problem(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        infimum.solve(BlockProblem({"x": SUM, "y": SUM}, [{"x": EYE, "y": EYE}]), solver=PADMM(**options), seed=0)


def test_a_subproblem_without_unique_solution_says_what_helps() -> None:
    concave = Quadratic(np.diag([-3.0, 1.0]))
    problem = BlockProblem({"x": concave, "y": SUM}, [{"x": EYE, "y": EYE}])
    message = (
        r"block 'x': H \+ Q \+ P is not positive definite, its smallest eigenvalue is -2; raise beta above 3 times"
    )
    with pytest.raises(InputError, match=message + r".*prox_weight above 2"):
        Repeated(problem, beta=1.0)
    Repeated(problem, beta=3.1)
    Repeated(problem, prox_weight={"x": 2.1})


def test_a_prox_under_general_weights_needs_linearization() -> None:
    problem = BlockProblem({"x": L1(), "y": SUM}, [{"x": np.diag([1.0, 2.0]), "y": EYE}])
    with pytest.raises(InputError, match=r"block 'x'.* no multiple of the identity.*linearize='auto'"):
        Repeated(problem, linearize="never")
    Repeated(BlockProblem({"x": L1(), "y": SUM}, [{"x": 2.0 * EYE, "y": EYE}]), linearize="never")


def test_images_row_by_row_and_of_the_whole_matrix() -> None:
    pivot, other = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.array([[3.0], [0.0], [4.0]])
    report = BlockProblem({"x": SUM, "y": SUM}, [{"x": other, "y": pivot}], [[1.0, 2.0, 0.0]]).report()
    assert report.rows[0].images["x"] == pytest.approx(0.8, abs=1e-15) and report.rows[0].rhs == pytest.approx(0.0)
    assert "row 'row1': x is not in the image of its last block 'y' (residual 0.8)" in report.warnings
    assert report.whole == {"rank": 3, "rows": 3, "columns": 3, "distance": pytest.approx(0.8)}
    text = str(report)
    assert "order: x, y\nrow 'row1': pivot y (smooth); outside of its image: x 0.8, rhs 0" in text


def test_a_chain_passes_row_by_row_where_the_whole_matrix_does_not() -> None:
    report = problems.robust_chain().report()
    assert [row.worst for row in report.rows] == [0.0, 0.0, 0.0] and not report.warnings
    assert report.whole["rank"] == 45 and report.whole["columns"] == 60 and report.whole["distance"] > 0.8
    assert report.nonconvex == ("x4",)


def test_chens_example_is_called_by_name() -> None:
    report = problems.chen().report()
    assert any("Chen, He, Ye and Yuan" in text for text in report.warnings)
    assert not any("Chen" in text for text in problems.chen(1.0).report().warnings)
    assert not report.rows[0].reaches
    tree = report.as_tree()
    assert tree["pivots"] == {"equations": "x3"} and tree["warnings"] == list(report.warnings)


def test_nonconvex_problems_warn_row_by_row() -> None:
    tall = np.array([[1.0], [0.0]])
    problem = BlockProblem({"x": Cauchy(np.zeros(2)), "y": SUM}, {"tie": {"x": EYE, "y": tall}})
    with pytest.warns(InfimumWarning, match="row 'tie': x is not in the image of its last block 'y'"):
        infimum.solve(problem, solver=PADMM(), stopping="max_iter(2)", seed=0)


def test_relabelled_rows_give_the_same_iterates() -> None:
    one = problems.control(4)
    names = list(one.structure.rows)
    rows = {
        name: {one.structure.blocks[j]: map_ for j, map_ in row.items()}
        for name, row in zip(names, one.structure.entries, strict=True)
    }
    other = BlockProblem(
        one.functions, {name: rows[name] for name in reversed(names)}, dict(zip(names, one.structure.rhs, strict=True)),
        sets=one.sets,
    )  # fmt: skip
    a, b = (infimum.solve(p, solver=PADMM(), stopping="max_iter(30)", seed=0) for p in (one, other))
    for name in one.functions:
        np.testing.assert_allclose(a.x[name], b.x[name], atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, aslinearoperator], ids=["dense", "sparse", "operator"])
def test_matrices_sparse_matrices_and_operators_agree(kind: object) -> None:
    K = np.random.default_rng(0).standard_normal((4, 6))
    f = SquaredL2().translate(np.arange(6.0))
    problem = BlockProblem({"x": f, "z": 0.5 * L1()}, [{"x": kind(K), "z": -1.0}])  # type: ignore[operator]
    dense = BlockProblem({"x": f, "z": 0.5 * L1()}, [{"x": K, "z": -1.0}])
    x, y = (Repeated(p).solve(tol=1e-9).x["x"] for p in (problem, dense))
    np.testing.assert_allclose(x, y, atol=1e-10)


def test_points_are_numpy_float64() -> None:
    torch = pytest.importorskip("torch")
    problem = BlockProblem({"x": SUM, "y": SUM}, [{"x": EYE, "y": -EYE}])
    for start in (np.ones(4, dtype=np.float32), np.ones(4, dtype=int), {"x": np.ones(2), "y": np.ones(2)}):
        assert problem.prepare(start).dtype == np.float64
    for tensor in (torch.ones(4), {"x": torch.ones(2), "y": torch.ones(2)}):
        with pytest.raises(InputError, match=r"x0.* is an array of torch; expected a NumPy array"):
            infimum.solve(problem, tensor, solver=PADMM(), stopping="max_iter(1)", seed=0)
    with pytest.raises(InputError, match="row 'row1', block 'x': the matrix is an array of torch"):
        BlockProblem({"x": SUM, "y": SUM}, [{"x": torch.eye(2), "y": -EYE}])
    with pytest.raises(InputError, match="x0 is complex"):
        problem.prepare(1j * np.ones(4))


def test_images_too_large_to_be_computed_are_not_taken_for_reached() -> None:
    wide = sparse.random_array((3000, 2500), density=1e-3, rng=np.random.default_rng(0))
    report = BlockProblem({"x": Cauchy(np.zeros(3000)), "y": SUM}, {"tie": {"x": 1.0, "y": wide}}).report()
    assert not report.rows[0].known and not report.rows[0].reaches
    assert "row 'tie': too large to find out what lies in the image of its last block 'y'" in report.warnings


def test_the_certificate_asks_for_images_and_knows_linearized_blocks() -> None:
    tall = np.array([[1.0], [0.0]])
    short = BlockProblem({"x": SUM, "y": SUM}, {"tie": {"x": EYE, "y": tall}})
    assert set(certificate(short).margins.values()) == {-np.inf}
    K = np.diag([1.0, 3.0])
    problem = BlockProblem({"x": L1(), "y": SUM}, [{"x": K, "y": -1.0}])
    # A linearized block has P = s I - Q: lmin(Q + 2 P) = 2 s - 9 with s = 9.0009, in place of lmin(Q) = 1.
    assert certificate(problem, linearize="auto").margins["x"] == pytest.approx((2 * 9.0009 - 9.0) / 2)
    exact = BlockProblem({"x": 0.0 * SUM, "y": SUM}, [{"x": K, "y": -1.0}])
    assert certificate(exact).margins["x"] == pytest.approx(0.5)
    for wrong, message in (({"beta": -1.0}, "beta is -1.0"), ({"linearize": "no"}, "linearize='no'")):
        with pytest.raises(InputError, match=message):
            certificate(problem, **wrong)


@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_on_multipliers_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f = Quadratic(np.diag(rng.uniform(-0.5, 2.0, 3)), rng.standard_normal(3))
    maps = [rng.standard_normal((3, 3)) for _ in range(4)]
    rows = {"two": {"a": maps[0], "b": maps[1]}, "three": {"a": maps[2], "b": maps[3], "c": 2.0}}
    problem = BlockProblem({"a": SUM.translate(np.ones(3)), "b": 0.3 * SUM, "c": f}, rows)
    beta, P = {"two": 1.5, "three": 3.0}, 0.2
    bounds = certificate(problem, beta, P).multipliers
    again, made = Repeated(problem, beta=beta, prox_weight=P), []
    for _ in range(12):
        found = again.solve(tol=0.0, max_iter=1)
        made.append((found.x, found.multipliers))
    for (x0, _), (x1, old), (x2, new) in zip(made, made[1:], made[2:], strict=False):
        moves = [np.linalg.norm(x2[n] - x1[n]) for n in "abc"] + [np.linalg.norm(x1[n] - x0[n]) for n in "abc"]
        for row, T in bounds.items():
            assert np.linalg.norm(new[row] - old[row]) <= T @ moves + 1e-12


def test_certificate() -> None:
    problem = problems.robust_chain()
    assert not certificate(problem, 1.0).holds
    np.testing.assert_allclose(list(certificate(problem, 1.0).margins.values())[:3], [0.5, 1.0, -9.0], atol=1e-9)
    assert certificate(problem, {"row1": 3456.0, "row2": 144.0, "row3": 6.0}).holds
    not_smooth = BlockProblem({"x": SUM, "z": L1()}, [{"x": EYE, "z": -1.0}])
    assert not certificate(not_smooth).holds


def test_sets_of_blocks_count_as_violation_not_as_value() -> None:
    problem = BlockProblem({"x": SUM, "y": None}, [{"x": EYE, "y": -1.0}], sets={"x": L2Ball(1.0)})
    point = {"x": np.array([3.0, 4.0]), "y": np.array([3.0, 4.0])}
    assert problem.value(point) == pytest.approx(12.5)
    flat = problem.prepare(point)
    assert problem.metrics(flat)["violation"](flat, None) == pytest.approx(4.0)
    assert np.linalg.norm(problem.residuals({"x": np.ones(2), "y": np.zeros(2)})["row1"]) == pytest.approx(2**0.5)


def test_a_block_that_nothing_can_solve_is_refused() -> None:
    only = Function(value=lambda x: float(x @ x))
    with pytest.raises(InputError, match="block 'x' offers"):
        Repeated(BlockProblem({"x": only, "y": SUM}, [{"x": EYE, "y": -1.0}]))

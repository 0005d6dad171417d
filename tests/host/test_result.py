"""Results print, save and load; nothing is overwritten, nothing is pickled, damaged folders are refused."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import infimum
from infimum import Composite, Function, InputError, Metric, Result, Slot, Solver, Status, StoppingRule
from infimum.checkpoint import load_tree, save_tree
from infimum.functions import LeastSquares
from infimum.result import versions
from infimum.stopping import Reason, parse
from infimum.trace import Trace

GD = "splitting.gradient_descent"
A = np.random.default_rng(0).standard_normal((12, 3))
B = A.sum(axis=1)


def solved(stopping: str = "max_iter(12) | grad_norm(1e-9)", **options: Any) -> Result:
    return infimum.solve(
        Composite({"loss": LeastSquares(A, B)}, name="small"),
        np.zeros(3),
        solver=GD,
        stopping=stopping,
        seed=4,
        **options,
    )


def assert_equal(one: Result, other: Result) -> None:
    points = ("x", "best_x", "trace", "fired", "error", "dump")
    for name in (field.name for field in fields(Result) if field.name not in points):
        assert repr(getattr(one, name)) == repr(getattr(other, name)), name
    # The repr takes NaN for equal to itself.
    assert repr(one.fired) == repr(other.fired)
    assert (one.trace is None) == (other.trace is None)
    if one.trace is not None:
        assert list(one.trace) == list(other.trace)
        for column in one.trace:
            np.testing.assert_array_equal(one.trace[column], other.trace[column])
    for name in ("x", "best_x"):
        np.testing.assert_equal(getattr(one, name), getattr(other, name))


class TestRoundTrip:
    def test_a_plain_run(self, tmp_path: Path) -> None:
        result = solved()
        folder = result.save(tmp_path / "a" / "b")
        assert sorted(os.listdir(folder)) == ["result.json", "trace.npz", "x.npz"]
        with np.load(folder / "x.npz") as x, np.load(folder / "trace.npz") as trace:
            assert sorted(x.files) == ["best_x", "x"] and list(trace.files) == list(result.trace or ())
        loaded = Result.load(folder)
        assert_equal(result, loaded)
        assert str(loaded) == str(result) and loaded._repr_html_() == result._repr_html_()
        assert loaded.x.dtype == np.float64 and isinstance(loaded.status, Status)
        assert (loaded.success, loaded.fun, loaded.nit, loaded.nfev, loaded.njev) == (
            result.success,
            result.fun,
            result.nit,
            result.nfev,
            result.njev,
        )

    def test_a_string_serves_as_folder(self, tmp_path: Path) -> None:
        assert Result.load(str(solved().save(str(tmp_path / "out")))).iterations == 12

    def test_blocks(self, tmp_path: Path) -> None:
        problem = Composite(
            {"a": LeastSquares(np.eye(4), np.ones(4)), "b": LeastSquares(np.eye(2), np.ones(2))},
            blocks={"u": (4,), "w": (2,)},
            on={"a": "u", "b": "w"},
        )
        result = infimum.solve(problem, solver={"use": GD, "step": 0.1}, stopping="max_iter(4)", seed=0)
        assert {name: one.shape for name, one in result.x.items()} == {"u": (4,), "w": (2,)}
        loaded = Result.load(result.save(tmp_path / "out"))
        assert_equal(result, loaded)
        assert "u: [" in str(loaded)
        again = infimum.solve(problem, loaded, solver={"use": GD, "step": 0.1}, stopping="max_iter(0)", seed=0)
        np.testing.assert_array_equal(again.x["u"], result.x["u"])

    def test_a_loaded_result_is_a_warm_start(self, tmp_path: Path) -> None:
        first = solved("max_iter(5)")
        loaded = Result.load(first.save(tmp_path / "out"))
        whole = solved("max_iter(10)")
        np.testing.assert_array_equal(
            infimum.solve(Composite({"loss": LeastSquares(A, B)}), loaded, solver=GD, stopping="max_iter(5)", seed=0).x,
            whole.x,
        )

    def test_a_failed_run_keeps_its_text_and_loses_the_exception(self, tmp_path: Path) -> None:
        def burst(progress: Any) -> None:
            if progress.iteration == 2:
                raise RuntimeError("it's gone — ünïcode\n")

        result = solved(callback=burst)
        loaded = Result.load(result.save(tmp_path / "out"))
        assert loaded.status is Status.failed and "ünïcode" in loaded.message
        assert isinstance(result.error, RuntimeError) and loaded.error is None

    @pytest.mark.parametrize("stopping", ["max_iter(0)", "max_iter(3)"])
    def test_without_a_trace(self, stopping: str, tmp_path: Path) -> None:
        result = solved(stopping, max_rows=0)
        assert result.trace is None
        assert_equal(result, Result.load(result.save(tmp_path / "out")))

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_torch(self, dtype: str, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        x0 = torch.zeros(3, dtype=getattr(torch, dtype))
        problem = Composite(Function(lambda x: ((x - 1) ** 2).sum(), gradient=lambda x: 2 * (x - 1)))
        result = infimum.solve(problem, x0, solver={"use": GD, "step": 0.1}, stopping="max_iter(3)", seed=0)
        loaded = Result.load(result.save(tmp_path / "out"))
        assert torch.equal(loaded.x, result.x) and loaded.x.dtype == x0.dtype
        assert loaded.value == result.value and str(loaded) == str(result)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        numbers=st.lists(st.floats(), min_size=3, max_size=3),
        best=st.one_of(st.none(), st.floats()),
        text=st.text(max_size=20),
        seed=st.integers(0, 2**140),
    )
    def test_any_numbers(self, numbers: list[float], best: float | None, text: str, seed: int, tmp_path: Path) -> None:
        result = solved("max_iter(1)")
        result.x, result.best_value, result.value = np.array(numbers), best, numbers[0]
        result.message, result.seed, result.notes = text, seed, [text]
        result.metrics = {"value": numbers[1], "gap": math.nan}
        result.fired = (Reason("r", Status.limit, text, {"v": numbers[2]}),)
        result.trace = Trace({"iteration": np.array([0.0, 1.0]), "value": np.array(numbers[:2])})
        folder = tmp_path / str(len(os.listdir(tmp_path)))
        assert_equal(result, Result.load(result.save(folder)))
        json.loads((folder / "result.json").read_text(encoding="utf8"), parse_constant=pytest.fail)


class TestFiles:
    def test_nothing_is_overwritten(self, tmp_path: Path) -> None:
        result = solved()
        result.save(tmp_path)
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(InputError, match=r"already holds a result\.json; choose another folder"):
            solved("max_iter(1)").save(tmp_path)
        (tmp_path / "result.json").rename(tmp_path / "mine.json")
        with pytest.raises(InputError, match=r"already holds a x\.npz"):
            solved("max_iter(1)").save(tmp_path)
        assert (tmp_path / "mine.json").read_bytes() == before[tmp_path / "result.json"]

    def test_unless_that_is_asked_for(self, tmp_path: Path) -> None:
        solved().save(tmp_path)
        second = solved("max_iter(5)")
        assert_equal(second, Result.load(second.save(tmp_path, replace=True)))

    def test_what_is_no_plain_data_is_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        result = solved()
        result.x = object()
        with pytest.raises(InputError, match=r"\.x holds a object"):
            result.save(tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"result\.json: no such file; expected result\.json and its arrays"):
            Result.load(tmp_path)
        solved().save(tmp_path)
        (tmp_path / "x.npz").unlink()
        with pytest.raises(InputError, match=r"x\.npz: no such file"):
            Result.load(tmp_path)

    @pytest.mark.parametrize("name", ["result.json", "x.npz", "trace.npz"])
    def test_truncated(self, name: str, tmp_path: Path) -> None:
        solved().save(tmp_path)
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(InputError, match=rf"{name}: (cannot be read|does not fit its checksum)"):
            Result.load(tmp_path)

    @pytest.mark.parametrize("tree", [{"x": 1}, [1, 2], {"fired": 3}, {"fired": [], "trace": None, "status": "odd"}, 5])
    def test_a_tree_of_another_kind(self, tree: Any, tmp_path: Path) -> None:
        save_tree(tmp_path, "result", tree)
        with pytest.raises(InputError, match="holds no result of this version"):
            Result.load(tmp_path)

    def test_a_result_with_fields_of_another_version(self, tmp_path: Path) -> None:
        solved().save(tmp_path)
        tree = load_tree(tmp_path, "result")
        save_tree(tmp_path, "result", {"exactitude": tree.pop("exactness"), **tree})
        with pytest.raises(InputError, match="holds no result of this version"):
            Result.load(tmp_path)


@dataclass(frozen=True)
class Telling(Solver):
    """Gradient descent that has something to tell."""

    given: Any = None
    metrics: ClassVar[dict[str, Metric]] = {}

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("f", needs=("gradient",), at_least=1),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "path": [start]}

    def step(self, parts: Any, state: Any) -> Any:
        x = state["x"] - 0.1 * parts.f.gradient(state["x"])
        return {"x": x, "path": [*state["path"], x]}

    def extras(self, state: Any) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return {"path": np.array(state["path"]), "words": ["a"]} if self.given is None else self.given


@dataclass(frozen=True, repr=False)
class Counting(StoppingRule):
    """A rule whose tracker has something to tell."""

    n: int

    status: ClassVar[Status] = Status.limit
    limit: ClassVar[bool] = True

    def start(self) -> Any:
        return CountingTracker(self)


class CountingTracker:
    def __init__(self, rule: Counting) -> None:
        self.rule, self.seen = rule, 0

    def update(self, progress: Any) -> Any:
        self.seen += 1
        return Reason(str(self.rule), Status.limit, "enough") if self.seen > self.rule.n else None

    def extras(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


class TestExtras:
    def run(self, given: Any = None, stopping: Any = "max_iter(3)") -> Result:
        return infimum.solve(Composite({"loss": LeastSquares(A, B)}), solver=Telling(given), stopping=stopping, seed=0)

    def test_of_solver_and_rules_under_their_names(self, tmp_path: Path) -> None:
        rule = (Counting(9) & Counting(3)) | parse("max_iter(50)")
        result = self.run(stopping=rule)
        assert set(result.extras) == {"Telling", "counting", "counting 2"}
        assert result.extras["counting"] == {"seen": 10} and result.iterations == 9
        assert result.extras["Telling"]["path"].shape == (10, 3)
        folder = result.save(tmp_path / "out")
        assert (folder / "extras.npz").exists()
        loaded = Result.load(folder)
        np.testing.assert_array_equal(loaded.extras["Telling"]["path"], result.extras["Telling"]["path"])
        assert loaded.extras["Telling"]["words"] == ["a"]

    def test_nothing_by_default(self) -> None:
        assert solved().extras == {}

    @pytest.mark.parametrize("given", [RuntimeError("broken"), 5, {"f": len}])
    def test_what_cannot_be_told_costs_no_result(self, given: Any, caplog: pytest.LogCaptureFixture) -> None:
        result = self.run(given)
        assert result.extras == {} and result.iterations == 3 and "has no extras" in caplog.text


class TestText:
    def test_what_print_shows(self) -> None:
        text = str(solved())
        assert text.startswith("splitting.gradient_descent on small\n  status          limit: iteration 12 >= 12")
        for line in ("value", "x               [", "(3,) float64", "iterations      12 in", "seed            4"):
            assert line in text
        assert "exactness       exact" in text
        assert "evaluations     loss: 13 value, 13 gradient" in text
        assert repr(solved("max_iter(0)")).count("\n") >= 6

    def test_the_best_value_is_shown_where_it_is_another(self) -> None:
        up = Composite(Function(lambda x: float(x @ x), gradient=lambda x: -2 * x))
        result = infimum.solve(up, np.ones(2), solver={"use": GD, "step": 0.1}, stopping="max_iter(2)", seed=0)
        assert "best value      2 at iteration 0" in str(result)
        assert "best value" not in str(solved())

    def test_long_points_are_cut(self) -> None:
        result = infimum.solve(
            Composite({"loss": LeastSquares(np.eye(300), np.ones(300))}), solver=GD, stopping="max_iter(0)", seed=0
        )
        assert "[0, 0, 0, 0, 0, …]  (300,) float64" in str(result) and max(map(len, str(result).splitlines())) < 200

    def test_many_blocks_and_modules_are_cut(self) -> None:
        class Module:
            def __repr__(self) -> str:
                return "Module(\n" + "".join(f"  ({k}): Linear(in_features=3)\n" for k in range(9)) + ")"

        blocks = {f"block {k}": np.zeros(9) for k in range(40)}
        shown = {name: str(replace(solved(), x=x)) for name, x in (("blocks", blocks), ("module", Module()))}
        assert "block 2: [0, 0, 0, 0, 0, …]  (9,) float64, … (40 entries)" in shown["blocks"]
        assert "x               Module( (0): Linear(in_features=3) (1): Lin" in shown["module"]
        for text in shown.values():
            assert len(text.splitlines()) == len(str(solved()).splitlines()) and max(map(len, text.splitlines())) < 200

    def test_html_escapes(self) -> None:
        result = solved()
        result.message = "<script>alert(1)</script> & more"
        page = result._repr_html_()
        assert "<script>" not in page and "&lt;script&gt;" in page and page.startswith("<table><caption>splitting")

    def test_odd_points(self) -> None:
        result = solved()
        points = ((None, "None"), ({"a": [1], "b": "t"}, "a: [1], b: 't'"), ("y" * 500, "…"), (np.float64(2), "2"))
        for x, words in points:
            result.x = x
            assert words in str(result)

    def test_notes_stand_below(self) -> None:
        last = str(solved("grad_norm(1)")).splitlines()[-1]
        assert last == "  note: the stopping rule has no limit of its own: max_iter(10000) was added"

    def test_results_compare_by_identity(self) -> None:
        one, other = solved(), solved()
        assert one == one and one != other and len({one, other}) == 2


class TestVersions:
    def test_they_name_what_took_part(self) -> None:
        found = solved().versions
        assert {"python", "infimum", "numpy", "infimum-splitting"} <= set(found)
        assert found["numpy"] == np.__version__

    def test_metadata_is_read_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = solved().versions
        monkeypatch.setattr("importlib.metadata.version", lambda name: pytest.fail("read again"))
        second = solved().versions
        assert first == second and first is not second

    def test_unknown_distributions_are_left_out(self) -> None:
        assert "tests" not in versions("tests.host.nothing")

    def test_the_plan_stands_in_the_result_as_text_and_as_data(self) -> None:
        result = solved()
        assert "slot smooth" in result.plan and "stopping max_iter(12) | grad_norm(1e-09)" in result.plan
        assert result.details["solver"] == GD and result.details["placements"][0]["term"] == "loss"
        json.dumps(result.details)

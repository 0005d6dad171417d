"""Reports: their data, what they are made of, the page, and the pictures."""

from __future__ import annotations

import html
import json
import math
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, InputError
from infimum.functions import L1, LeastSquares
from infimum.many.comparison import Comparison
from infimum.many.members import Member, Runs
from infimum.many.sweeping import Sweep
from infimum.plugins import hook, registry
from infimum.plugins.loader import new_manager
from infimum.plugins.registry import Registry, get_registry
from infimum.reporting import Curve, Figure, Section, Table
from infimum.reporting.cells import grid
from infimum.reporting.curves import curve_figures, parameter_figures, profile_figures
from infimum.reporting.entries import gather
from infimum.reporting.plots import draw
from infimum.reporting.thin import POINTS, thin

A = np.random.default_rng(4).standard_normal((12, 3))
PG = "splitting.proximal_gradient"


def solve(step: float = 0.4, **options: Any) -> infimum.Result:
    problem = Composite({"loss": LeastSquares(A, np.ones(12)), "penalty": 0.1 * L1()})
    known = {"stopping": "max_iter(60) | grad_norm(1e-12)", "seed": 0}
    return infimum.solve(problem, solver={"use": PG, "step": step}, **{**known, **options})


def member(name: str, result: infimum.Result | None = None, **more: Any) -> Member:
    status = str(result.status) if result is not None else more.pop("status", "crashed")
    known = {
        "problem": "lasso",
        "solver": name,
        "values": {},
        "repetition": 0,
        "config": {},
        "id": name.replace(" ", ""),
    }
    return Member(name=name, **{**known, **more}, status=status, kept=result)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    members = [
        member(f"step {step} #{k}", solve(step, x0="random", repetition=k), solver=f"step {step}", repetition=k)
        for step in (0.01, 0.05)
        for k in range(4)
    ]
    members.append(member("lost", error="the process died with signal 9", traceback="Traceback: <boom>"))
    return Comparison(name="steps", members=tuple(members), budget="iterations", amount=60)


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    steps = [float(one) for one in np.geomspace(1e-4, 0.05, 20)]
    members = [member(f"step={step:.3g}", solve(step), values={"solver.step": step}) for step in steps]
    return Sweep(name="many steps", members=tuple(members), varied=("solver.step",))


def page_of(sources: Any, folder: Path) -> str:
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    return infimum.report(sources, out=folder / "report.html").read_text(encoding="utf-8")


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def text_of(page: str) -> str:
    """What a reader sees in the body, without scripts."""
    body = page[page.index("<body>") :]
    body = re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body.replace("<wbr>", ""))).split())


class TestData:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Curve([1, 2], [1.0]), "x has 2 entries and y has 1"),
            (lambda: Curve([1, 2], [1, 2], low=[0, 1]), "a band has two edges"),
            (lambda: Curve([1, 2], ["a", "b"]), "y must be numbers"),
            (lambda: Curve([[1, 2]], [[1, 2]]), "one column of numbers"),
            (lambda: Curve([1], [1], style="lines"), "did you mean 'line'"),
            (lambda: Figure("f", []), "there is no curve in it"),
            (lambda: Figure("f", {"x": []}), "there is no curve in it"),
            (lambda: Figure("f", [Curve([1], [1])], y_scale="ln"), "y_scale='ln'"),
            (lambda: Table(["a"], [[1, 2]]), "row 0 has 2 cells for 1 columns"),
            (lambda: Section("s", figures=["f"]), "figures hold Figure"),
        ],
    )
    def test_mistakes_are_named(self, make: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            make()

    def test_names_on_the_axis(self) -> None:
        assert Curve(["a", "b"], [1, 2], style="bars").categorical
        assert not Curve([], []).categorical

    def test_importing_it_loads_no_library(self) -> None:
        import subprocess

        code = (
            "import sys, infimum; from infimum.reporting import Section; infimum.report; "
            "print([m for m in ('plotly', 'matplotlib', 'jinja2', 'pandas') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == "[]", done.stderr


class TestThin:
    @pytest.mark.parametrize("n", [1, 499, 501, 4096, 100_000])
    def test_bounds_and_landmarks(self, n: int) -> None:
        y = np.random.default_rng(n).standard_normal(n)
        kept = thin(y)
        assert len(kept) <= POINTS and (np.diff(kept) > 0).all()
        assert {0, n - 1, int(y.argmin()), int(y.argmax())} <= set(kept.tolist())

    def test_a_lone_peak_and_gaps_survive(self) -> None:
        y = np.zeros(5000)
        y[3333], y[10] = 1.0, np.nan
        assert 3333 in thin(y)
        assert len(thin(np.full(5000, np.nan))) <= POINTS

    def test_the_beginning_stays_dense_for_a_log_axis(self) -> None:
        assert set(range(10)) <= set(thin(np.arange(4096.0)).tolist())


class TestCells:
    @pytest.mark.parametrize(
        ("values", "texts"),
        [
            ([3.0, 30.0, 4.0], ["3", "30", "4"]),
            ([79.5, 116.5, 100.0], ["79.5", "116.5", "100.0"]),
            ([1533.768717, 1533.768728], ["1 533.76872", "1 533.76873"]),
            ([1e-17, 0.0, -3.0], ["1.000e−17", "0", "−3.000e+00"]),
            ([math.inf, 20.0, None, math.nan], ["∞", "20", "", "–"]),
            ([1, 2_000_000], ["1", "2 000 000"]),
        ],
    )
    def test_a_column_has_one_form(self, values: list[Any], texts: list[str]) -> None:
        made = grid(Table(["a"], [[one] for one in values]))
        assert made.columns[0].numeric
        assert [row[0].text.replace("\u202f", " ") for row in made.rows] == texts

    def test_text_and_yes(self) -> None:
        made = grid(Table(["a", "b"], [["x", True], ["y", None]]))
        assert [[one.text for one in row] for row in made.rows] == [["x", "yes"], ["y", ""]]


class TestGather:
    def test_results_get_names_that_tell_them_apart(self) -> None:
        one = solve()
        assert [m.name for m in gather([one]).members] == [PG]
        assert [m.name for m in gather({"a": one, "b": one}).members] == ["a", "b"]
        assert len({m.name for m in gather([one, one, one]).members}) == 3

    def test_folders(self, tmp_path: Path, comparison: Comparison) -> None:
        solve(folder=tmp_path / "runs" / "one" / "a")
        solve(folder=tmp_path / "runs" / "one" / "b")
        comparison.save(tmp_path / "runs" / "many")
        found = gather(tmp_path / "runs")
        assert len(found.members) == 2 + len(comparison) and [type(one) for one in found.many] == [Comparison]
        assert len({one.name for one in found.members}) == len(found.members)
        assert len(gather([tmp_path / "runs" / "one" / "a"]).members) == 1

    def test_a_run_without_result_is_a_row(self, tmp_path: Path) -> None:
        solve(folder=tmp_path / "a")
        (tmp_path / "a" / "result.json").unlink()
        (found,) = gather(tmp_path).members
        assert found.status == "unfinished" and found.error is not None and found.result is None
        assert "unfinished" in text_of(page_of(tmp_path, tmp_path))

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("gopher://study.db", "is no folder, and no installed plugin knows it"),
            ([], "no run in what was given"),
            ([3], "expected folders, results or runs, got int"),
        ],
    )
    def test_what_is_no_source_is_refused(self, source: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            gather(source)

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no run in what was given"):
            gather(tmp_path)


class TestFigures:
    def test_repetitions_become_bands(self, comparison: Comparison) -> None:
        for figure in curve_figures(comparison.members):
            for curve in figure.views["iterations"]:
                assert curve.low is not None
                known = np.isfinite(curve.y)
                assert (curve.low[known] <= curve.y[known]).all() and (curve.y[known] <= curve.high[known]).all()
            assert {one.label for one in figure.views["iterations"]} <= {"step 0.01", "step 0.05"}

    def test_every_figure_has_every_axis(self, comparison: Comparison) -> None:
        for figure in curve_figures(comparison.members):
            assert {"iterations", "seconds", "gradient evaluations", "prox evaluations"} <= set(figure.views)

    def test_a_curve_is_the_trace(self) -> None:
        result = solve()
        (figure,) = curve_figures(gather(result).members, "grad_norm")
        assert result.trace is not None
        known = np.isfinite(result.trace["grad_norm"])
        (curve,) = figure.views["seconds"]
        np.testing.assert_array_equal(curve.x, result.trace["time"][known])
        np.testing.assert_array_equal(curve.y, result.trace["grad_norm"][known])
        assert figure.y_scale == "log"

    def test_the_distance_is_to_the_best_of_all(self, comparison: Comparison) -> None:
        best = min(one.result.best_value for one in comparison if one.result is not None)
        (figure,) = [one for one in curve_figures(comparison.members) if "Distance" in one.title]
        ends = [curve.y[-1] for curve in figure.views["iterations"]]
        assert f"{best:.8g}" in figure.text and min(ends) >= 0 and max(ends) > 1e-6

    def test_a_sweep_is_drawn_against_what_varied(self, sweep: Sweep) -> None:
        (figure,) = parameter_figures(sweep.members)
        assert figure.x == "solver.step" and figure.x_scale == "log"
        (curve,) = figure.curves
        np.testing.assert_array_equal(curve.x, [one.values["solver.step"] for one in sweep])

    def test_profiles(self, comparison: Comparison) -> None:
        performance, data = profile_figures(comparison)
        assert {one.label for one in performance.curves} == set(comparison.solvers)
        assert all(one.style == "steps" and one.y.min() >= 0 and one.y.max() <= 1 for one in performance.curves)
        assert data.x == "iterations"
        assert profile_figures(Runs(name="none", members=comparison.members)) == []


class TestPage:
    def test_everything_is_in_it(self, comparison: Comparison, tmp_path: Path) -> None:
        page = page_of(comparison, tmp_path)
        text = text_of(page)
        for part in ("Methods", "Curves", "Profiles", "Runs", "Why each run stopped", "Plan", "Manifest"):
            assert f'-title">{part}<' in page
        assert "iteration 60 >= 60" in text and "max_iter(60)" in text
        assert "the process died with signal 9" in text and "Traceback of lost" in text
        assert "smooth" in text and "exact" in text and "numpy" in text
        assert "Wins" in text and "9 runs" in text and "crashed" in text

    def test_it_asks_for_nothing(self, comparison: Comparison, tmp_path: Path) -> None:
        page = page_of(comparison, tmp_path)
        head = page[: page.index("<script>")]
        assert not re.search(r'(src|href)="(?!#|data:)', head)
        assert "default-src 'none'" in head and "url(" not in head and "@import" not in head

    def test_text_from_outside_stays_text(self, tmp_path: Path) -> None:
        evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028"
        result = replace(solve(), message=evil, notes=[evil])
        page = page_of([member(evil, result, problem=evil, config={"name": evil})], tmp_path)
        assert "<script>alert" not in page and "<img src=x" not in page
        assert page.count("</script>") == 3
        assert any(evil in one["labels"] for one in data_of(page)["figures"])

    def test_numbers_are_those_of_the_traces(self, tmp_path: Path) -> None:
        result = solve()
        data = data_of(page_of(result, tmp_path))
        figure = next(one for one in data["figures"] if one["title"] == "Gradient norm")
        curve = figure["views"][0]["curves"][0]
        assert result.trace is not None
        column = result.trace["grad_norm"]
        np.testing.assert_allclose(data["arrays"][curve["y"]], column[np.isfinite(column)], rtol=1e-5)

    def test_a_method_looks_the_same_everywhere(self, comparison: Comparison, tmp_path: Path) -> None:
        looks: dict[str, set[int]] = {}
        for figure in data_of(page_of(comparison, tmp_path))["figures"]:
            for curve in figure["views"][0]["curves"]:
                looks.setdefault(figure["labels"][curve["label"]], set()).add(curve["color"])
        assert all(len(one) == 1 for one in looks.values()) and len(set.union(*looks.values())) == len(looks)

    def test_two_hundred_runs_are_quick_and_small(self, tmp_path: Path) -> None:
        result = solve(0.001, stopping="max_iter(4000)", value_every=1)
        members = [member(f"run {k}", result, solver=f"run {k}", values={"solver.step": k}) for k in range(200)]
        pytest.importorskip("jinja2")
        plotly = pytest.importorskip("plotly.offline")
        began = time.process_time()
        path = infimum.report(Sweep(name="wide", members=tuple(members)), out=tmp_path / "report.html")
        assert time.process_time() - began < 20
        page = path.read_text(encoding="utf-8")
        assert len(page) - len(plotly.get_plotlyjs()) < 4e6
        assert max(map(len, data_of(page)["arrays"])) <= POINTS

    def test_a_run_that_recorded_nothing_has_a_page(self, tmp_path: Path) -> None:
        page = page_of(solve(max_rows=0), tmp_path)
        assert "Why it stopped" in page and len(page) < 100_000

    @pytest.mark.parametrize("module", ["jinja2", "plotly.offline"])
    def test_what_is_missing_is_named(self, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        result = solve()
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(InputError, match=r"pip install 'infimum\[report\]'"):
            infimum.report(result, out=tmp_path / "report.html")
        assert list(tmp_path.iterdir()) == []

    def test_bad_targets(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="format 'gif'"):
            infimum.report(solve(), out=tmp_path / "report.gif")
        with pytest.raises(InputError, match="there is no folder"):
            infimum.report(solve(), out=tmp_path / "nowhere" / "report.html")


class TestPlugins:
    @pytest.fixture
    def install(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        def plugins(*objects: Any) -> None:
            manager = new_manager()
            for k, one in enumerate(objects):
                manager.register(one, f"acme{k}")
            monkeypatch.setattr(registry, "_registry", Registry(get_registry().plugins, manager))

        return plugins

    def test_sections_and_sources(self, install: Any, tmp_path: Path) -> None:
        made = solve()

        class Plugin:
            @hook
            def infimum_report_sections(self, result: Any) -> Any:
                bars = Figure("Importance", [Curve(["a", "b"], [0.2, 0.8], style="bars")], y="share")
                tables = [Table(["Name", "Weight"], [["a", 0.2]], text="Weights.")]
                return [Section("Acme <b>", "First.\n\nSecond.", figures=[bars], tables=tables)]

            @hook
            def infimum_report_source(self, source: str) -> Any:
                return [("trial 0", made), ("trial 1", made)] if source.startswith("acme:") else None

        install(Plugin())
        page = page_of("acme:study", tmp_path)
        text = text_of(page)
        assert "trial 0" in text and "trial 1" in text and "Weights." in text
        assert "Acme &lt;b&gt;" in page and "<p>First.</p>" in page and "<p>Second.</p>" in page
        figure = next(one for one in data_of(page)["figures"] if one["title"] == "Importance")
        assert figure["views"][0]["curves"][0]["style"] == "bars"

    def test_a_paragraph_of_several_lines_keeps_them(self, install: Any, tmp_path: Path) -> None:
        made = solve()
        made.notes.append("the last board\n\n x o\n . <")

        class Plugin:
            @hook
            def infimum_report_sections(self, result: Any) -> Any:
                return [Section("Board", "Said.\n\n . x\no .")]

        install(Plugin())
        page = page_of(made, tmp_path)
        assert "<p>Said.</p>" in page and '<pre class="lines" tabindex="0"> . x\no .</pre>' in page
        assert 'the last board<pre class="lines" tabindex="0"> x o\n . &lt;</pre>' in page

    def test_a_plugin_that_fails_costs_its_section_alone(
        self, install: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Broken:
            @hook
            def infimum_report_sections(self, result: Any) -> Any:
                raise ValueError("out of ink")

        install(Broken())
        assert "Curves" in page_of(solve(), tmp_path)
        assert "hook infimum_report_sections failed: ValueError: out of ink" in caplog.text


class TestPictures:
    @pytest.fixture(autouse=True)
    def _matplotlib(self) -> None:
        pytest.importorskip("matplotlib").use("Agg")

    @pytest.mark.parametrize(("kind", "sign"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
    def test_a_file_for_each_figure(self, kind: str, sign: bytes, tmp_path: Path) -> None:
        first = infimum.report(solve(), out=tmp_path / f"steps.{kind}")
        assert first.name == f"steps.{kind}"
        assert {one.name for one in tmp_path.iterdir()} == {f"steps.{kind}", f"steps-2.{kind}"}
        assert all(one.read_bytes().startswith(sign) for one in tmp_path.iterdir())

    def test_the_same_runs_give_the_same_file(self, tmp_path: Path) -> None:
        result = solve()
        one = infimum.report(result, out=tmp_path / "a.svg").read_bytes()
        assert infimum.report(result, out=tmp_path / "b.svg").read_bytes() == one

    def test_result_plot(self) -> None:
        result = solve()
        assert result.trace is not None
        axes = result.plot("grad_norm", x="gradient")
        column = result.trace["grad_norm"]
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), column[np.isfinite(column)])
        assert axes.get_xlabel() == "gradient evaluations" and axes.get_yscale() == "log"
        assert result.plot(ax=axes) is axes

    def test_runs_plot(self, comparison: Comparison, sweep: Sweep) -> None:
        axes = comparison.plot("grad_norm")
        assert len(axes.lines) == 2 and len(axes.collections) == 2
        assert [one.get_text() for one in axes.get_legend().get_texts()] == ["step 0.01", "step 0.05"]
        assert len(sweep.plot(x="seconds").lines) == len(sweep)

    @pytest.mark.parametrize("n", [9, 200])
    @pytest.mark.parametrize("labels", [1, 20])
    @pytest.mark.parametrize("gap", [math.nan, math.inf, 0.0])
    def test_gaps_are_gaps(self, n: int, labels: int, gap: float) -> None:
        x, y = np.arange(1.0, n + 1), np.linspace(2, 3, n)
        y[[2, 5, 7]] = gap
        curves = [Curve(x, y, f"{k}", low=0.5 * y, high=2 * y) for k in range(labels)]
        axes = draw(Figure("f", curves, y_scale="log"))
        (line, *_) = axes.lines
        drawn = line.get_xydata()
        assert np.flatnonzero(np.isnan(drawn[:, 1])).tolist() == [2, 5, 7]
        assert 6 in line.get_markevery()  # between two gaps: no line shows it
        assert len(line.get_markevery()) < 20
        if gap != 0.0:
            band = axes.collections[0].get_paths()
            assert [sorted({*map(int, one.vertices[:, 0])})[0] for one in band] == [1, 4, 7, 9]

    def test_a_gap_across(self) -> None:
        axes = draw(Figure("f", [Curve([1, math.nan, 3, 4], [1.0, 2.0, 3.0, -1.0])]))
        drawn = axes.lines[0].get_xydata()
        assert np.flatnonzero(np.isnan(drawn).any(axis=1)).tolist() == [1] and drawn[3, 1] == -1

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"metric": "grad"}, "did you mean 'grad_norm'"), ({"x": "iteration"}, "did you mean 'iterations'")],
    )
    def test_mistakes(self, options: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            solve().plot(**options)
        with pytest.raises(InputError, match="no run recorded anything"):
            solve(max_rows=0).plot()

    def test_without_matplotlib(self, monkeypatch: pytest.MonkeyPatch) -> None:
        result = solve()
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(InputError, match=r"pip install 'infimum\[report\]'"):
            result.plot()

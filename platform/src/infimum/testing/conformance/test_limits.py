"""Every solver under the host's rules: limits hold, NaN ends the run, callbacks stop it, the counters agree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from infimum import arrays
from infimum.run.run import Run
from infimum.status import Status
from infimum.testing.cases import SolverCase, is_composite, solver_cases
from infimum.testing.conformance.selection import cases, parametrize, sound
from infimum.testing.watching import Witness, watched

pytestmark = pytest.mark.filterwarnings("ignore::infimum.errors.InfimumWarning")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, "case", cases(metafunc.config, "solver", solver_cases), "solver")


def _stoppable(case: SolverCase) -> None:
    if sound(case).solver().stops == "never":
        pytest.skip("stops = never: only the solver's own loop ends the run")


def _watchable(case: SolverCase) -> None:
    if not is_composite(case):
        pytest.skip("only the terms of a Composite can be watched by the kit")


def test_max_iter_holds(case: SolverCase) -> None:
    _stoppable(case)
    result = case.prepare(stopping="max_iter(4)").solve()
    if case.solver().drives and result.status is not Status.limit:
        assert result.iterations <= 4
        return
    assert result.status is Status.limit, result.message
    assert result.iterations == 4
    assert [one.rule for one in result.fired] == ["max_iter(4)"]


def test_a_stop_is_heard(case: SolverCase) -> None:
    """A loop of the solver's own evaluates nothing more once it was told to stop."""
    _stoppable(case)
    _watchable(case)
    if not case.solver().drives:
        pytest.skip("the host's own loop")
    witness, calls = Witness(), [0]
    problem = watched(case.make(), witness)
    case.prepare(problem, stopping="max_iter(3)", callback=lambda _: calls.append(witness.calls)).solve()
    # One evaluation may be on its way, and the record may want the value of the last point.
    allowed = 1 + len(problem.terms)
    more = witness.calls - calls[-1]
    assert more <= allowed, f"{more} evaluations after the stop"


def test_max_time_holds(case: SolverCase) -> None:
    _stoppable(case)
    result = case.prepare(stopping="max_time(1e-9) | max_iter(50)").solve()
    assert result.status is Status.limit and result.iterations <= 1, f"{result.iterations} iterations in no time"


def test_max_calls_holds(case: SolverCase) -> None:
    """The run ends at the first check at which the budget is used up."""
    _stoppable(case)
    clean = case.prepare().solve()
    totals: Counter[str] = Counter()
    for row in clean.evaluations.values():
        totals.update(row)
    counted = [name for name in totals if f"calls.{name}" in (clean.trace or {})]
    if not counted:
        pytest.skip("it evaluates nothing that the trace counts")
    of = max(counted, key=lambda name: totals[name])
    budget = totals[of] // 2
    if not 0 < budget < totals[of] or clean.iterations < 2:
        pytest.skip("the run is over at once")
    result = case.prepare(stopping=f"max_calls({budget}, of='{of}') | max_iter(50)", max_rows=512).solve()
    assert result.status is Status.limit, result.message
    used = sum(row.get(of, 0) for row in result.evaluations.values())
    assert used >= budget, f"the run ended after {used} evaluations of {budget}"
    assert result.trace is not None
    column = result.trace[f"calls.{of}"]
    column = column[np.isfinite(column)]
    assert all(column[:-1] < budget), f"the budget of {budget} was used up at a check and the run went on: {column}"


def test_a_callback_stops_it(case: SolverCase) -> None:
    _stoppable(case)
    for answer in (True, StopIteration):

        def tell(progress: Any, answer: Any = answer) -> bool:
            if progress.iteration >= 3 and answer is StopIteration:
                raise StopIteration
            return int(progress.iteration) >= 3

        result = case.prepare(callback=tell).solve()
        if case.solver().drives and result.iterations < 3:
            pytest.skip(f"its own loop ended at iteration {result.iterations}")
        assert result.status is Status.interrupted, result.message
        assert result.iterations == 3


def test_the_counters_agree_with_the_functions(case: SolverCase) -> None:
    """What the host charges to the terms, with what it evaluated for the record, is what the terms saw."""
    _watchable(sound(case))
    witness = Witness()
    run = case.prepare(watched(case.make(), witness))
    before = Counter(witness.points)
    result = run.solve()
    roles = {term.name: term.role for term in run.problem.terms}
    charged: Counter[tuple[str, str]] = Counter()
    for term, row in result.evaluations.items():
        for name, n in row.items():
            charged[term, name] += n
    for metric, n in result.monitored.get("problem", {}).items():
        for term, role in roles.items():
            if (metric, role) in (("value", "term"), ("gap", "term"), ("violation", "constraint")):
                charged[term, metric if metric != "gap" else "value"] += n
    seen = witness.points - before
    wrong = [
        f"{name} of '{term}': the host counted {charged[term, name]}, the function {seen[term, name]}"
        for term, name in sorted({*seen, *charged})
        if seen[term, name] != charged[term, name]
    ]
    assert not wrong, "\n".join(wrong)


def _calls_by_iteration(case: SolverCase) -> list[int]:
    """Calls of the functions up to each check of a clean run."""
    witness, calls = Witness(), []
    case.prepare(watched(case.make(), witness), value_every=1, callback=lambda _: calls.append(witness.calls)).solve()
    return calls


def test_nan_ends_the_run_and_the_best_finite_point_stays(case: SolverCase) -> None:
    """Every function turns NaN in the third iteration: status nonfinite, at most one check later."""
    _stoppable(case)
    _watchable(case)
    calls = _calls_by_iteration(case)
    after = calls[min(2, len(calls) - 1)]
    if after >= calls[-1]:
        after = calls[0]
    if after >= calls[-1]:
        pytest.skip("the run is over at once")
    at: list[int] = []
    runs: list[Run] = []
    witness = Witness(after, lambda: at.append(runs[0].monitor.iteration if runs else -1))
    runs.append(case.prepare(watched(case.make(), witness), value_every=1))
    result = runs[0].solve()
    assert at, "the run ended before the functions turned NaN"
    assert result.status is Status.nonfinite, f"NaN in iteration {at[0] + 1}: {result.status}, {result.message}"
    assert result.iterations <= at[0] + 1, f"NaN in iteration {at[0] + 1}, stopped at {result.iterations}"
    assert result.best_value is not None and np.isfinite(result.best_value)
    best = runs[0].problem.prepare(result.best_x)
    assert arrays.all_finite(best)
    clean: Any = case.make()
    assert clean.value(result.best_x) == pytest.approx(result.best_value, rel=1e-9, abs=1e-12)

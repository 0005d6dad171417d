"""Every solver's contract: pure steps, seeds, bitwise resume, metrics, arrays of every kind that it claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infimum.arrays import is_array
from infimum.checkpoint import freeze, load_tree, save_tree, thaw
from infimum.errors import InfimumError
from infimum.exactness import Exactness
from infimum.plugins.records import Component
from infimum.plugins.registry import get_registry
from infimum.result import Result
from infimum.run.cadence import Cadence, checkpoints
from infimum.run.run import Run
from infimum.run.saver import Saver
from infimum.testing.cases import STEPS, SolverCase, is_composite, solver_cases
from infimum.testing.compare import difference, result_difference
from infimum.testing.conformance.selection import cases, components, parametrize, sound, supports
from infimum.testing.watching import negated

pytestmark = pytest.mark.filterwarnings("ignore::infimum.errors.InfimumWarning")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "component" in metafunc.fixturenames:
        parametrize(metafunc, "component", components(metafunc.config, "solver"), "solver")
    if "case" in metafunc.fixturenames:
        parametrize(metafunc, "case", cases(metafunc.config, "solver", solver_cases), "solver")


def test_the_kit_has_a_problem_for_it(component: Component) -> None:
    assert solver_cases(component), (
        f"{component.name} takes none of the kit's problems, even with the installed oracles; give "
        f"{component.target} an attribute `reference_problems`, or exclude this test"
    )


def _dumped(run: Run, state: Any) -> Any:
    return freeze(run.solver.dump(state))


def _snapshot(run: Run) -> Any:
    return freeze(run.bound.state_dict())


def test_steps_are_pure(case: SolverCase) -> None:
    """Iteration 0 is the start; a step changes neither the start nor the state that it was given, and repeats."""
    run = sound(case).prepare()
    solver, parts = run.solver, run.bound.parts
    if solver.drives:
        pytest.skip("it runs a loop of its own")
    start = run.problem.copy(run.point)
    state = solver.init(parts, start, np.random.default_rng(1))
    if solver.maps_points:
        said = difference(run.problem.dump(run.point), run.problem.dump(solver.solution(state)), "the solution")
        assert said is None, f"{said} at iteration 0 and at the start"
    if solver.inplace:
        pytest.skip("inplace = True: it may change its state")
    for _ in range(3):
        before, held = _dumped(run, state), _snapshot(run)
        after = solver.step(parts, state)
        said = difference(before, _dumped(run, state), "the old state")
        assert said is None, f"{said} after a step: a step makes new arrays (or the solver says inplace = True)"
        said = difference(run.problem.dump(run.point), run.problem.dump(start), "the start")
        assert said is None, f"{said} after a step: x0 was changed in place"
        run.bound.load_state_dict(thaw(held))
        said = difference(_dumped(run, after), _dumped(run, solver.step(parts, state)), "the new state")
        assert said is None, f"{said} when the same step is made again: the solver keeps state outside of its state"
        state = after


def test_a_dumped_state_is_taken_up(case: SolverCase) -> None:
    run = sound(case).prepare()
    solver, parts = run.solver, run.bound.parts
    if solver.drives:
        pytest.skip("it runs a loop of its own")
    state = solver.init(parts, run.problem.copy(run.point), np.random.default_rng(1))
    for _ in range(2):
        state = solver.step(parts, state)
    tree = _dumped(run, state)
    loaded = solver.load(thaw(tree), run.problem.copy(run.point))
    said = difference(tree, _dumped(run, loaded), "the state")
    assert said is None, f"{said} after dump and load"


def test_x0_is_left_alone(case: SolverCase) -> None:
    problem = sound(case).make()
    x0 = problem.unpack(problem.prepare(problem.start(np.random.default_rng(2))))
    before = freeze(problem.dump(x0)) if not isinstance(x0, dict) else freeze(x0)
    case.prepare(problem, x0=x0).solve()
    after = freeze(problem.dump(x0)) if not isinstance(x0, dict) else freeze(x0)
    said = difference(before, after, "x0")
    assert said is None, f"{said}: it was changed in place"


def test_seeds_repeat(case: SolverCase) -> None:
    one, other = sound(case).prepare().solve(), case.prepare().solve()
    said = result_difference(one, other)
    assert said is None, f"{said} in two runs of the same seed: something outlives a run"


def test_no_global_generator_is_read_or_written(case: SolverCase) -> None:
    before = np.random.get_state(legacy=False)
    one = sound(case).prepare().solve()
    said = difference(before, np.random.get_state(legacy=False), "numpy.random")
    assert said is None, "it draws from numpy.random; use the generator that init is given"
    np.random.seed(99)
    other = case.prepare().solve()
    np.random.set_state(before)
    assert result_difference(one, other) is None, "it depends on numpy.random; use the generator that init is given"


def test_two_runs_of_one_object_do_not_meet(case: SolverCase) -> None:
    """One solver object in two runs that take turns: each gives what it gives alone."""
    if sound(case).solver().drives:
        first = case.prepare().solve()
        solver = case.solver()
        case.prepare(solver=solver, seed=8).solve()
        assert result_difference(first, case.prepare(solver=solver).solve()) is None
        return
    alone = case.prepare().solve()
    solver = case.solver()
    one, other = case.prepare(solver=solver), case.prepare(solver=solver, seed=8)
    for _ in range(STEPS):
        one.advance(1)
        other.advance(1)
    said = result_difference(alone, one.solve())
    assert said is None, f"{said} when another run of the same object takes turns with it"


@pytest.mark.parametrize("split", [1, 4, 9])
def test_resume_is_exact(case: SolverCase, split: int, tmp_path: Path) -> None:
    """Stopped, written to files, read into a new run and gone on with: the same bits as in one go."""
    whole = sound(case).prepare()
    if whole.plan.resume != "exact":
        pytest.skip(f"resume = {whole.plan.resume}")
    assert not whole.solver.drives, "resume = 'exact', but a loop that the host does not own cannot be taken up"
    first = case.prepare()
    first.advance(split)
    save_tree(tmp_path, "state", first.state_dict())
    second = case.prepare().load_state_dict(load_tree(tmp_path, "state"))
    said = result_difference(whole.solve(), second.solve())
    assert said is None, f"{said}, in one go and with a break after {split} iterations"


def test_its_checkpoints_take_it_up(case: SolverCase, tmp_path: Path) -> None:
    """Written while the run goes on and when it is interrupted, they disturb nothing and lead to the same bits."""
    whole = sound(case).prepare()
    if whole.plan.resume != "exact":
        pytest.skip(f"resume = {whole.plan.resume}")
    first = case.prepare(callback=lambda progress: progress.iteration == 7)
    first.saver = Saver(first, tmp_path, Cadence(iterations=3))
    first.solve()
    there = checkpoints(tmp_path)
    expected = whole.solve()
    assert there or expected.iterations < 3, "no checkpoint was written: " + "; ".join(first.notes)
    for iteration in there:
        second = case.prepare().load_state_dict(load_tree(tmp_path, str(iteration)))
        said = result_difference(expected, second.solve())
        assert said is None, f"{said}, in one go and from the checkpoint at iteration {iteration}"


def test_recording_changes_nothing(case: SolverCase) -> None:
    plain = sound(case).prepare(max_rows=0).solve()
    full = case.prepare()
    names = sorted(full.sampler.supplied)
    noisy = case.prepare(record=names, value_every=1, callback=lambda progress: dict(progress.metrics)).solve()
    said = difference(case_x(plain), case_x(noisy), "x")
    assert said is None, f"{said} with and without a record"
    assert plain.iterations == noisy.iterations
    assert plain.evaluations == noisy.evaluations


def case_x(result: Any) -> Any:
    """The solution as plain data."""
    return result.dump(result.x) if result.dump is not None else result.x


def test_metrics_are_known_before_the_run_and_are_scalars(case: SolverCase) -> None:
    run = sound(case).prepare()
    names = sorted(run.plan.metrics)
    assert set(names) <= {*run.solver.metrics, *run.bound.metrics}
    if not names:
        pytest.skip("it supplies no metric")
    seen: dict[str, list[Any]] = {name: [] for name in names}

    def watch(progress: Any) -> None:
        for name in names:
            seen[name].append(progress.metrics.get(name))

    result = case.prepare(record=names, callback=watch).solve()
    for name, values in seen.items():
        known = [one for one in values if one is not None]
        assert known or result.iterations < 1, f"metric {name} was not known at any of {len(values)} checks"
        wrong = [one for one in known if is_array(one) and one.ndim]
        assert not wrong, f"metric {name} is {wrong[0]!r}; expected a number"


def test_metrics_neither_change_the_state_nor_call_a_part(case: SolverCase) -> None:
    run = sound(case).prepare()
    if run.solver.drives:
        pytest.skip("it runs a loop of its own")
    run.advance(2)
    before, counts = _dumped(run, run.state), run.counters.state_dict()
    for metric in run.plan.metrics.values():
        metric.get(run.state)
    assert difference(before, _dumped(run, run.state), "the state") is None
    assert difference(counts, run.counters.state_dict(), "the counts") is None


def test_a_maximum_is_the_minimum_of_the_negative(case: SolverCase) -> None:
    if not is_composite(sound(case)):
        pytest.skip("only a Composite can be turned around by the kit")
    low = case.prepare().solve()
    try:
        run = case.prepare(negated(case.make()))
    except InfimumError as error:
        pytest.skip(f"its terms do not offer what is needed through a sign: {str(error).splitlines()[0]}")
    high = run.solve()
    said = difference(low.x, high.x, "x")
    assert said is None, f"{said} for the minimum and the maximum of the negative"
    assert low.iterations == high.iterations and low.status is high.status
    if low.value is not None and low.best_value is not None:
        assert high.value == pytest.approx(-low.value, rel=1e-12)
        assert high.best_value == pytest.approx(-low.best_value, rel=1e-12)


@pytest.mark.parametrize("form", ["float32", "torch"])
def test_arrays_of_every_kind(case: SolverCase, form: str) -> None:
    """The namespace and the dtype of x0 stay; torch gives what NumPy gives."""
    if not is_composite(sound(case)):
        pytest.skip("points of this family are no arrays")
    for target in (case.component, *(get_registry().find(one, "oracle") for one in case.oracles.values())):
        supports(target.load(), form)
    problem = case.make()
    x0 = problem.prepare(problem.start(np.random.default_rng(2)))
    expected = case.prepare(problem, x0=x0).solve()
    if form == "float32":
        given: Any = x0.astype(np.float32)
    else:
        given = pytest.importorskip("torch").as_tensor(x0)
    run = case.prepare(case.make(), x0=given)
    found = run.solve()
    x = run.problem.prepare(found.x)
    assert type(x) is type(given), f"x0 is a {type(given).__name__}, x a {type(x).__name__}"
    assert x.dtype == given.dtype, f"x0 is {given.dtype}, x {x.dtype}"
    if form == "torch" and run.plan.exactness is Exactness.exact:
        wanted = problem.prepare(expected.x)
        np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-6, atol=1e-8)


def test_the_result_can_be_saved(case: SolverCase, tmp_path: Path) -> None:
    result = sound(case).prepare().solve()
    loaded = Result.load(result.save(tmp_path / "out"))
    said = difference(case_x(result), loaded.x, "x")
    assert said is None, f"{said} after saving and loading"

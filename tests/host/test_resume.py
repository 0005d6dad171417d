"""A run cut anywhere, written to files and taken up by a fresh run goes on bit for bit as if it had not stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import infimum
from infimum import Composite, Function, InputError, Metric, Oracle, Result, Run, Slot, Solver, Status
from infimum.checkpoint import load_tree, save_tree
from infimum.constraints import Box
from infimum.functions import L1, LeastSquares
from infimum.run.monitor import Observer

RNG = np.random.default_rng(2)
A = RNG.standard_normal((15, 4))
B = A @ np.array([1.0, -2.0, 0.0, 3.0])
X0 = np.linspace(-1.0, 1.0, 4)
GD, PG, DR = "splitting.gradient_descent", "splitting.proximal_gradient", "splitting.douglas_rachford"
N = 18


def smooth(**options: Any) -> Composite:
    return Composite({"loss": LeastSquares(A, B)}, **options)


def lasso() -> Composite:
    return Composite({"loss": LeastSquares(A, B), "penalty": 0.1 * L1()})


@dataclass(frozen=True)
class Noisy(Oracle):
    """A gradient with noise, from a generator of the chosen kind."""

    bits: str = "PCG64"

    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        return NoisyPart(function, np.random.Generator(getattr(np.random, self.bits)(int(rng.integers(2**31)))))


class NoisyPart:
    def __init__(self, function: Any, rng: np.random.Generator) -> None:
        self.function, self.rng = function, rng

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.function.gradient(x) + 0.01 * self.rng.spawn(1)[0].standard_normal(x.shape) + self.rng.random()

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self.rng}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng = state["rng"]


@dataclass(frozen=True)
class TorchNoise(Oracle):
    """The same with a torch generator, seeded from the one of the host."""

    needs: ClassVar[tuple[str, ...]] = ("gradient",)
    supplies: ClassVar[tuple[str, ...]] = ("gradient",)

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        import torch

        return TorchNoisePart(function, torch.Generator().manual_seed(int(rng.integers(2**31))))


class TorchNoisePart(NoisyPart):
    def gradient(self, x: Any) -> Any:
        import torch

        return self.function.gradient(x) + 0.01 * torch.randn(x.shape, generator=self.rng, dtype=x.dtype)


@dataclass(frozen=True)
class Stepper(Solver):
    """Gradient steps in place, with a random length drawn from a generator in the state."""

    metrics: ClassVar[dict[str, Metric]] = {"value": Metric(lambda state: state["value"])}
    inplace: ClassVar[bool] = True

    def slots(self) -> tuple[Slot, ...]:
        return (Slot("f", needs=("value_and_gradient",), at_least=1),)

    def init(self, parts: Any, start: Any, rng: np.random.Generator) -> Any:
        return {"x": start, "rng": rng, "value": parts.f.value_and_gradient(start)[0]}

    def step(self, parts: Any, state: Any) -> Any:
        state["value"], gradient = parts.f.value_and_gradient(state["x"].copy())
        state["x"] -= 0.1 * state["rng"].random() * gradient
        return state


HILL = Function(lambda x: -float(x @ x), gradient=lambda x: -2 * x)
STEEP = {"problem": smooth, "solver": {"use": GD, "step": 0.05}}
CASES: dict[str, dict[str, Any]] = {
    "gradient_descent": {"problem": smooth, "solver": GD},
    "scheduled": {
        "problem": smooth,
        "solver": {"use": GD, "step": {"use": "core.power", "initial": 0.1, "exponent": 0.5}},
    },
    "maximize": {"problem": lambda: Composite(HILL, sense="max"), "solver": {"use": GD, "step": 0.1}},
    "proximal_gradient": {"problem": lasso, "solver": PG},
    "accelerated": {"problem": lasso, "solver": {"use": PG, "acceleration": True, "restart": True}},
    "box": {"problem": lambda: smooth(constraints=[Box(lower=0.0)]), "solver": PG},
    "douglas_rachford": {"problem": lasso, "solver": {"use": DR, "relaxation": 1.3}},
    "forward_difference": {**STEEP, "oracles": {"loss": "zeroth.forward_difference"}},
    "noise": {**STEEP, "oracles": {"loss": Noisy()}},
    "noise MT19937": {**STEEP, "oracles": {"loss": Noisy("MT19937")}},
    "noise PCG64DXSM": {**STEEP, "oracles": {"loss": Noisy("PCG64DXSM")}},
    "noise Philox": {**STEEP, "oracles": {"loss": Noisy("Philox")}},
    "in place": {"problem": smooth, "solver": Stepper()},
    "every metric": {
        "problem": lambda: smooth(reference=0.0),
        "solver": GD,
        "record": ["rel_change", "abs_change", "gap", "grad_norm"],
        "stopping": f"max_iter({N}) | (rel_change(1e-30, patience=5) & stall(50)) | target(-1)",
    },
    "stall": {
        "problem": lambda: Composite(Function(lambda x: float(np.floor(x @ x)), gradient=lambda x: 1e-3 * x)),
        "solver": {"use": GD, "step": 0.1},
        "stopping": "stall(11) | max_iter(500)",
    },
    "patience": {
        "problem": smooth,
        "solver": GD,
        "stopping": "rel_change(0.05, patience=7) | max_iter(500)",
    },
    "max_calls": {"problem": lasso, "solver": PG, "stopping": "max_calls(15, of='gradient') | max_calls(9, of='prox')"},
    "thin": {"problem": lasso, "solver": PG, "max_rows": 8},
    "no trace": {"problem": lasso, "solver": PG, "max_rows": 0},
    "value_every": {"problem": lasso, "solver": PG, "value_every": 4},
}


def make(case: str, **more: Any) -> Run:
    options = {"stopping": f"max_iter({N})", "seed": 9, **CASES[case], **more}
    x0 = options.pop("x0", X0)
    return infimum.prepare(options.pop("problem")(), x0, **options)


def assert_same(one: Result, other: Result) -> None:
    np.testing.assert_array_equal(np.asarray(one.x), np.asarray(other.x))
    np.testing.assert_array_equal(np.asarray(one.best_x), np.asarray(other.best_x))
    differ = ("x", "best_x", "fired", "trace", "elapsed", "error", "dump")
    for name in (field.name for field in fields(Result) if field.name not in differ):
        assert getattr(one, name) == getattr(other, name), name
    assert [(r.rule, r.message) for r in one.fired] == [(r.rule, r.message) for r in other.fired]
    assert (one.trace is None) == (other.trace is None)
    for name in one.trace or ():
        if name != "time":
            np.testing.assert_array_equal(one.trace[name], other.trace[name], err_msg=name)


class TestEverySplitPoint:
    @pytest.mark.parametrize("case", CASES)
    def test_through_files(self, case: str, tmp_path: Path) -> None:
        whole = make(case).solve()
        assert whole.iterations >= 8
        for cut in range(1, whole.iterations + 1, 5 if case.startswith("noise ") else 1):
            first = make(case)
            first.advance(cut)
            save_tree(tmp_path, "state", first.state_dict())
            second = make(case).load_state_dict(load_tree(tmp_path, "state"))
            assert_same(whole, second.solve())
            if cut % 4 == 0:
                # The run that was dumped is not disturbed by it.
                assert_same(whole, first.solve())

    @pytest.mark.parametrize("case", CASES)
    def test_a_new_run_for_every_iteration(self, case: str, tmp_path: Path) -> None:
        whole = make(case).solve()
        run = make(case)
        run.advance(1)
        while run.monitor.stop is None:
            save_tree(tmp_path, "state", run.state_dict())
            run = make(case).load_state_dict(load_tree(tmp_path, "state"))
            run.advance(1)
        assert_same(whole, run.solve())

    @settings(max_examples=15, deadline=None)
    @given(
        cuts=st.lists(st.integers(1, 6), min_size=1, max_size=8), case=st.sampled_from(["noise", "accelerated", "thin"])
    )
    def test_pieces_of_any_length_in_memory(self, cuts: list[int], case: str) -> None:
        run = make(case)
        for cut in cuts:
            run.advance(cut)
            run = make(case).load_state_dict(run.state_dict())
        assert_same(make(case).solve(), run.solve())

    def test_torch(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")

        def run() -> Run:
            problem = Composite(Function(lambda x: ((x - 1) ** 2).sum(), gradient=lambda x: 2 * (x - 1)))
            return infimum.prepare(
                problem,
                torch.zeros(4, dtype=torch.float32),
                solver={"use": GD, "step": 0.05},
                oracles={"objective": TorchNoise()},
                stopping="max_iter(9) | stall(5)",
                seed=1,
            )

        whole = run().solve()
        for cut in range(1, whole.iterations + 1):
            first = run()
            first.advance(cut)
            save_tree(tmp_path, "state", first.state_dict())
            assert_same(whole, run().load_state_dict(load_tree(tmp_path, "state")).solve())

    @pytest.mark.parametrize("case", ["gradient_descent", "noise"])
    def test_iterates_with_several_steps_a_check(self, case: str) -> None:
        whole = make(case, check_every=5).solve()
        for cut in range(1, N + 1):
            first = make(case, check_every=5)
            first.advance(cut)
            second = make(case, check_every=5).load_state_dict(first.state_dict()).solve()
            np.testing.assert_array_equal(second.x, whole.x)
            assert second.iterations == whole.iterations and second.evaluations == whole.evaluations
            if cut % 5 == 0:
                assert_same(whole, second)

    def test_observers_are_told_once_each(self) -> None:
        told: list[int] = []

        def run() -> Run:
            one = make("gradient_descent")
            one.monitor.observers = (Observer(lambda p: told.append(p.iteration), every=3),)
            return one

        first = run()
        first.advance(7)
        run().load_state_dict(first.state_dict()).solve()
        assert told == [0, 3, 6, 9, 12, 15, 18]


class TestEnds:
    def test_a_finished_run_does_not_step_again(self) -> None:
        run = make("gradient_descent")
        whole = run.solve()
        assert_same(whole, make("gradient_descent").load_state_dict(run.state_dict()).solve())

    @pytest.mark.parametrize("how", ["callback", "failure"])
    def test_what_was_stopped_from_outside_goes_on(self, how: str) -> None:
        def stop(progress: Any) -> bool:
            if progress.iteration == 6 and how == "failure":
                raise RuntimeError("disk full")
            return progress.iteration == 6

        first = make("noise", callback=stop)
        halted = first.solve()
        assert halted.iterations == 6 and halted.status is (Status.interrupted if how == "callback" else Status.failed)
        second = make("noise").load_state_dict(first.state_dict()).solve()
        assert_same(make("noise").solve(), second)

    def test_elapsed_accumulates(self) -> None:
        first = make("gradient_descent")
        first.advance(5)
        state = first.state_dict()
        state["monitor"]["elapsed"] = 1000.0
        result = make("gradient_descent").load_state_dict(state).solve()
        assert 1000 <= result.elapsed < 1001 and result.trace["time"][-1] >= 1000


class TestRefusals:
    def state(self, case: str = "gradient_descent", **more: Any) -> dict[str, Any]:
        run = make(case, **more)
        run.advance(3)
        return run.state_dict()

    @pytest.mark.parametrize(
        ("other", "words"),
        [
            (lambda: make("proximal_gradient"), "another plan"),
            (lambda: make("forward_difference"), "another plan"),
            (lambda: make("gradient_descent", stopping="max_iter(5)"), "another rule"),
            (lambda: make("gradient_descent", seed=10), "another seed"),
            (lambda: make("gradient_descent", repetition=1), "another repetition"),
            (lambda: make("gradient_descent", solver={"use": GD, "step": 0.01}), "another options"),
            (lambda: make("gradient_descent", x0=X0.astype(np.float32)), "another start"),
            (lambda: make("gradient_descent", max_rows=0), "max_rows"),
            (lambda: make("gradient_descent", record=["rel_change"]), "columns"),
        ],
    )
    def test_states_of_other_runs(self, other: Callable[[], Run], words: str) -> None:
        run = other()
        with pytest.raises(InputError, match=words):
            run.load_state_dict(self.state())

    def test_the_solver_s_and_the_oracle_s_options_count(self) -> None:
        with pytest.raises(InputError, match=r"another options:[\s\S]*PCG64[\s\S]*Philox"):
            make("noise Philox").load_state_dict(self.state("noise"))
        with pytest.raises(InputError, match="another options"):
            make("accelerated").load_state_dict(self.state("proximal_gradient"))

    @pytest.mark.parametrize("bad", [{}, {"format": 99}, {"format": None}])
    def test_other_formats(self, bad: dict[str, Any]) -> None:
        with pytest.raises(InputError, match="format"):
            make("gradient_descent").load_state_dict(bad)

    def test_a_torn_state(self) -> None:
        state = self.state()
        del state["plan"]
        with pytest.raises(InputError, match="another plan"):
            make("gradient_descent").load_state_dict(state)

    def test_nothing_to_dump_before_the_start(self) -> None:
        with pytest.raises(InputError, match="has not started"):
            make("gradient_descent").state_dict()

    def test_a_state_is_independent_of_the_run(self) -> None:
        run = make("in place")
        run.advance(4)
        state = run.state_dict()
        before = state["solver"]["x"].copy()
        run.advance(3)
        np.testing.assert_array_equal(state["solver"]["x"], before)
        other = make("in place").load_state_dict(state)
        other.advance(3)
        np.testing.assert_array_equal(state["solver"]["x"], before)
        np.testing.assert_array_equal(other.current, run.current)

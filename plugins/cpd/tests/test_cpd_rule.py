"""The rule in runs, in foreign loops, in training loops and in Optuna; its report."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite, Monitor, Status
from infimum.checkpoint import freeze, thaw
from infimum.errors import InfimumError, InputError
from infimum.functions import Function
from infimum.inputs import as_rule
from infimum.runfile import RunFile
from infimum.stopping import UNKNOWN, Progress, Reason
from infimum_cpd import Cusum, CusumCallback
from infimum_cpd.report import sections

RUNS = Path(__file__).resolve().parents[1] / "runs"


def answers(rule: Cusum, values: Any) -> list[Any]:
    tracker = rule.start()
    return [tracker.update(Progress(k, metrics={rule.metric: one})) for k, one in enumerate(values)]


def step(at: int, size: float, n: int = 200, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal(n)
    x[at:] += size
    return x


def test_it_is_unknown_while_it_learns_then_no_then_a_reason() -> None:
    found = answers(Cusum("loss", reference="warmup:50", skip=10), step(120, 2.0))
    assert found[:59] == [UNKNOWN] * 59 and found[59] is None
    first = next(k for k, one in enumerate(found) if isinstance(one, Reason))
    reason = found[first]
    assert 120 <= first < 130 and reason.status is Status.stalled
    assert abs(reason.values["onset"] - 120) <= 3 and "risen since about iteration" in reason.message
    assert reason.values["statistic"] >= reason.values["threshold"]


def test_it_stands_beside_other_rules_as_text() -> None:
    rule = as_rule("max_iter(500) | (cpd.cusum(metric='loss', direction='both', arl0=2000) & max_iter(10))")
    monitor = Monitor(rule, metrics=["loss"])
    for one in step(120, -2.0, 600):
        if stop := monitor.tick({"loss": one}):
            break
    assert stop is not None and 120 < monitor.iteration < 130
    assert "fallen since about iteration" in stop.message
    with pytest.raises(InputError, match="metric 'loss'"):
        Monitor(rule, metrics=["value"])


@pytest.mark.parametrize("reference", ["warmup:30", "normal:0.25,1.5,0.1,40", step(0, 0.0, 40).tolist()])
def test_text_and_mapping_are_read_back(reference: Any) -> None:
    rule = Cusum("loss", reference=reference, far=0.1, horizon=100, transform="change", action="warn", cooldown=3)
    assert as_rule(str(rule)) == rule == as_rule(rule.to_mapping())
    assert rule.detector().threshold == as_rule(str(rule)).detector().threshold


def test_labels_are_iterations_of_the_loop() -> None:
    rule = Cusum("loss", reference="normal:0,1", h=5.0)
    tracker = rule.start()
    for k, one in enumerate([0.0] * 20 + [3.0] * 9):
        answer = tracker.update(Progress(10 * k, metrics={"loss": one}))
        if answer:
            break
    assert answer.values["onset"] == 200 and k == 21


@pytest.mark.parametrize("cut", [5, 40, 90])
def test_state_goes_on_bit_for_bit(cut: int) -> None:
    rule = Cusum("loss", direction="both", reference="warmup:30", transform="change", whiten=True, action="warn", h=4.7)
    x = step(60, 0.5, 140)
    whole, first, second = rule.start(), rule.start(), rule.start()
    for k, one in enumerate(x):
        whole.update(Progress(k, metrics={"loss": one}))
    for k, one in enumerate(x[:cut]):
        first.update(Progress(k, metrics={"loss": one}))
    second.load_state_dict(thaw(freeze(first.state_dict())))
    for k, one in enumerate(x[cut:], cut):
        second.update(Progress(k, metrics={"loss": one}))
    assert second.state_dict() == whole.state_dict() and second.extras() == whole.extras()


def test_a_run_is_taken_up_with_the_same_alarm() -> None:
    def problem() -> Composite:
        rng = np.random.default_rng(3)
        A, b = rng.standard_normal((30, 5)), rng.standard_normal(30)
        loss = Function(
            value_and_gradient=lambda w: (float(((A @ w - b) ** 2).mean()), 2 * A.T @ (A @ w - b) / 30),
            lipschitz=8.0,
            shape=(5,),
        )
        return Composite({"loss": loss}, start=np.ones(5))

    rule = "max_iter(300) | cpd.cusum(metric='value', transform='log_change', reference='normal:-0.01,0.003')"
    options: dict[str, Any] = {
        "solver": {"use": "splitting.gradient_descent", "step": 0.02},
        "stopping": rule,
        "seed": 1,
    }
    whole = infimum.solve(problem(), **options)
    first = infimum.prepare(problem(), **options)
    first.advance(20)
    second = infimum.prepare(problem(), **options)
    second.load_state_dict(first.state_dict())
    result = second.solve()
    assert result.status is Status.stalled and result.message == whole.message
    assert result.iterations == whole.iterations > 20


def test_transforms() -> None:
    steps = Cusum("loss", transform="change", reference="normal:-1,0.5", h=4.0)
    found = answers(steps, [*range(50, 20, -1), *[20.5] * 30])
    assert next(k for k, one in enumerate(found) if isinstance(one, Reason)) == 33
    found = answers(Cusum("loss", transform="log", reference="normal:0,1", h=4.0), [1.0] * 5 + [20.0] * 5)
    assert next(k for k, one in enumerate(found) if isinstance(one, Reason)) == 6
    found = answers(Cusum("loss", transform="log_change", on_nan="stop", reference="normal:0,1"), [1.0, 2.0, -1.0])
    assert "was -1, which has no logarithm, at iteration 2" in found[2].message
    with pytest.raises(InputError, match="is -1 at iteration 1, which has no logarithm; take 'level' or 'change'"):
        answers(Cusum("loss", transform="log_change", reference="normal:0,1"), [math.nan, -1.0, -2.0])
    tracker = Cusum("loss", transform="log", reference="normal:0,1").start()
    for k, one in enumerate([1.0, -1.0, 2.0, math.nan]):
        tracker.update(Progress(k, metrics={"loss": one}))
    assert (tracker.extras()["samples"], tracker.extras()["refused"]) == (2, 2)  # type: ignore[attr-defined]


def test_nan_is_skipped_or_ends_or_raises() -> None:
    x = [0.0, math.nan, 1.0, math.inf]
    assert answers(Cusum("loss", reference="normal:0,1"), x) == [None, UNKNOWN, None, UNKNOWN]
    found = answers(Cusum("loss", reference="normal:0,1", on_nan="stop"), x)
    assert found[1].status is Status.nonfinite and found[1].message == "metric 'loss' was nan at iteration 1"
    with pytest.raises(InputError, match="metric 'loss' was nan at iteration 1"):
        answers(Cusum("loss", reference="normal:0,1", on_nan="raise"), x)
    with pytest.raises(InputError, match="metric 'loss' is a str"):
        answers(Cusum("loss", reference="normal:0,1"), ["much"])
    assert answers(Cusum("loss", reference="normal:0,1"), [None]) == [UNKNOWN]


def test_a_warning_goes_to_the_log_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    rule = Cusum("loss", reference="normal:0,1", h=5.0, action="warn", cooldown=4)
    with caplog.at_level(logging.WARNING, "infimum"):
        found = answers(rule, [0.0] * 10 + [3.0] * 12)
    assert not any(isinstance(one, Reason) for one in found)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        f"cpd.cusum at iteration {k}" for k in (11, 17)
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": ""}, "expected the name of a metric"),
        ({"transform": "difference"}, "transform='difference'"),
        ({"action": "halt"}, "action='halt'"),
        ({"skip": -1}, "skip=-1; expected a whole number >= 0"),
        ({"cooldown": 5}, "does nothing with action='stop'"),
        ({"reference": [1.0, 2.0]}, "reference needs >= 8 finite samples, got 2"),
        ({"reference": "warmup"}, "expected 'warmup:64'"),
        ({"h": 5, "far": 0.1, "horizon": 10}, "h and far each set the threshold"),
        ({"scale_floor": 0.0}, "scale_floor=0.0"),
        ({"direction": "sideways"}, "direction='sideways'"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Cusum(**options)


def test_text_with_mistakes_names_the_rule() -> None:
    for text, message in [
        ("cpd.cusum(metric='loss', treshold=3)", "no option 'treshold'"),
        ("cpd.cusum(metric='loss', k='half')", "k must be a number"),
        ("cpd.cusum(metric='loss', far=0.1)", "far and horizon go together"),
    ]:
        with pytest.raises(InfimumError, match=message):
            as_rule(text)


def test_a_training_loop_stops_at_a_drift() -> None:
    watch = CusumCallback(reference="warmup:100", arl0=5000.0)
    for value in step(250, 1.5, 400):
        if watch(value).stop:
            break
    assert 250 <= watch.steps <= 275 and abs((watch.decisions[0].onset or 0) - 250) <= 5
    assert "seen at step" in watch.decisions[0].reason
    other = CusumCallback(reference="warmup:100", arl0=5000.0)
    other.load_state_dict(thaw(freeze(watch.state_dict())))
    assert other.state_dict() == watch.state_dict() and other(9.0) == watch(9.0)


def _of_torch() -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    return optimizer, lambda one: torch.tensor(one, requires_grad=True)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: (SimpleNamespace(param_groups=[{"lr": 0.1}]), float), id="param_groups alone"),
        pytest.param(_of_torch, id="torch", marks=pytest.mark.slow),  # torch.optim takes seconds to import
    ],
)
def test_the_learning_rate_is_reduced(make: Callable[[], tuple[Any, Any]]) -> None:
    optimizer, loss = make()
    watch = CusumCallback(optimizer, action="reduce_lr", factor=0.5, min_lr=0.04, cooldown=5, reference="warmup:50")
    x = np.concatenate([step(100, 2.0, 300), step(0, 6.0, 300)])
    decisions = [watch(loss(one)) for one in x]
    assert not any(one.stop for one in decisions) and len(watch.decisions) >= 2
    assert optimizer.param_groups[0]["lr"] == 0.04
    with pytest.raises(InputError, match="needs a torch optimizer"):
        CusumCallback(action="reduce_lr")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factor": 2.0}, "factor=2"),
        ({"factor": "0.5"}, "factor='0.5'"),
        ({"cooldown": 2.5}, "cooldown=2.5; expected a whole number >= 0"),
        ({"min_lr": -1.0}, "min_lr=-1.0; expected a finite number >= 0"),
        ({"min_lr": math.nan}, "min_lr=nan"),
        ({"treshold": 3.0}, "no option 'treshold'"),
        ({"arl": 3.0}, "did you mean 'arl0'"),
    ],
)
def test_bad_options_of_the_callback_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CusumCallback(**options)


def test_a_loss_that_is_no_number_names_its_step() -> None:
    watch = CusumCallback(reference="normal:0,1")
    watch(0.0)
    with pytest.raises(InputError, match="CusumCallback: loss of step 1: expected a number, got 'high'"):
        watch("high")


@pytest.mark.slow
def test_digits_a_loss_that_drifts_by_a_higher_learning_rate() -> None:
    """A net on digits whose learning rate jumps at step 300: seen within 30 steps, no false alarm before."""
    torch = pytest.importorskip("torch")
    X, y = pytest.importorskip("sklearn.datasets").load_digits(return_X_y=True)
    generator = torch.Generator().manual_seed(0)
    inputs, labels = torch.as_tensor(X / 16.0, dtype=torch.float32), torch.as_tensor(y)
    weights = torch.zeros(64, 10, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.5)
    rule = as_rule("cpd.cusum(metric='loss', transform='log', skip=100, reference='warmup:150', zmax=5, h=12)")
    monitor = Monitor(rule, metrics=["loss"])
    for k in range(400):
        rows = torch.randint(len(labels), (64,), generator=generator)
        loss = torch.nn.functional.cross_entropy(inputs[rows] @ weights, labels[rows])
        if monitor.tick({"loss": loss.item()}):
            break
        optimizer.zero_grad()
        loss.backward()
        if k == 300:
            optimizer.param_groups[0]["lr"] *= 60
        optimizer.step()
    assert 300 < monitor.iteration <= 330


def test_an_optuna_study_stops() -> None:
    optuna = pytest.importorskip("optuna")
    stop_when = pytest.importorskip("infimum_optuna").stop_when
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    x = step(80, 3.0, 300, seed=4)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    callback = stop_when("max_iter(300) | cpd.cusum(metric='value', reference='warmup:40', far=0.01, horizon=300)")
    study.optimize(lambda trial: float(x[trial.number]), n_trials=300, callbacks=[callback])
    assert 80 < len(study.trials) < 100


def test_the_report_shows_the_statistic_and_the_alarm() -> None:
    result = RunFile.load(RUNS / "stream-drift.yaml").prepare().solve()
    assert result.status is Status.stalled and 800 <= result.iterations < 830
    [section] = sections(result.extras)
    assert section.title == "Change points of value" and len(section.figures) == 2
    [[alarm, onset]] = section.tables[0].rows
    assert alarm == result.iterations and abs(onset - 800) <= 5
    assert "skewed" not in section.text


def test_without_the_drift_the_same_run_goes_on() -> None:
    result = RunFile.load(RUNS / "stream-drift.yaml", ["problem.worse=1"]).prepare().solve()
    assert result.status is Status.limit

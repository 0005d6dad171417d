"""The monitor alone: numbering, statuses by rank, observers, threads, state."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum import InputError, Monitor, Status
from infimum.run.keeper import Keeper
from infimum.run.monitor import Observer, columns, iteration_limit
from infimum.run.stop import Stop, dump_reasons, load_reasons
from infimum.stopping import Reason, StoppingRule, max_iter, parse
from infimum.trace import Recorder


class TestNumbering:
    def test_the_first_tick_is_iteration_1(self) -> None:
        monitor = Monitor("max_iter(3)")
        assert monitor.iteration == -1
        stops = [monitor.tick({}) for _ in range(3)]
        assert stops[:2] == [None, None] and stops[2] is not None and stops[2].status is Status.limit

    def test_after_begin_too(self) -> None:
        monitor = Monitor("max_iter(2)")
        assert monitor.begin({}) is None and monitor.iteration == 0
        assert monitor.tick({}) is None and monitor.tick({}) is not None
        assert monitor.iteration == 2

    def test_begin_may_stop_already(self) -> None:
        assert str(Monitor("target(1)", ["value"]).begin({"value": 0.5}).status) == "target_reached"

    def test_after_a_stop_the_same_stop_comes_back_and_nothing_is_counted(self) -> None:
        told: list[int] = []
        monitor = Monitor("max_iter(2)", observers=[Observer(lambda p: told.append(p.iteration))])
        stops = [monitor.tick({}) for _ in range(6)]
        assert stops[1] is stops[5] is monitor.stop and monitor.iteration == 2 and told == [1, 2]

    def test_a_tick_may_stand_for_several_iterations(self) -> None:
        monitor = Monitor("max_iter(10)")
        assert [monitor.tick({}, advance=4) is None for _ in range(3)] == [True, True, False]
        assert monitor.iteration == 12

    def test_patience_counts_iterations_not_ticks(self) -> None:
        monitor = Monitor("rel_change(1, patience=10)", ["rel_change"])
        ticks = [monitor.tick({"rel_change": 0.1}, advance=5) for _ in range(3)]
        assert ticks[1] is None and ticks[2] is not None and ticks[2].status is Status.stalled

    @settings(max_examples=30, deadline=None)
    @given(workers=st.integers(2, 6), each=st.integers(1, 60), limit=st.integers(1, 150))
    def test_ticks_from_threads_are_numbered_once_each(self, workers: int, each: int, limit: int) -> None:
        seen: list[int] = []
        monitor = Monitor(max_iter(limit), observers=[Observer(lambda p: seen.append(p.iteration))])
        gate = threading.Barrier(workers)

        def work() -> None:
            gate.wait()
            for _ in range(each):
                monitor.tick({})

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = min(limit, workers * each)
        assert seen == list(range(1, done + 1)) and monitor.iteration == done
        assert (monitor.stop is not None) == (workers * each >= limit)

    def test_a_slow_tick_holds_others_back(self) -> None:
        order: list[str] = []

        def slow(progress: Any) -> None:
            order.append(f"in {progress.iteration}")
            time.sleep(0.01)
            order.append(f"out {progress.iteration}")

        monitor = Monitor("max_iter(100)", observers=[Observer(slow)])
        threads = [threading.Thread(target=monitor.tick, args=({},)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert order == [f"{word} {k}" for k in range(1, 5) for word in ("in", "out")]


class TestStatus:
    def tick(self, rule: str, metrics: dict[str, Any], **more: Any) -> Stop:
        stop = Monitor(rule, list(metrics), **more).tick(metrics)
        assert stop is not None
        return stop

    def test_the_first_by_rank_wins_and_all_are_reported(self) -> None:
        known = {"grad_norm": 0.5, "value": -1.0, "rel_change": 0.0}
        stop = self.tick("max_iter(1) | grad_norm(1) | target(0) | rel_change(1)", known)
        assert stop.status is Status.target_reached
        assert [(one.rule, str(one.status)) for one in stop.fired] == [
            ("max_iter(1)", "limit"),
            ("grad_norm(1)", "converged"),
            ("target(0)", "target_reached"),
            ("rel_change(1)", "stalled"),
        ]

    def test_divergence_before_a_rule(self) -> None:
        keeper = Keeper("value", divergence=10.0)
        monitor = Monitor("target(0) | max_iter(5)", ["value"], keeper=keeper)
        monitor.tick({"value": 1.0})
        stop = monitor.tick({"value": -11.0})
        assert stop.status is Status.diverged and [one.rule for one in stop.fired] == ["target(0)"]

    def test_a_request_before_everything(self) -> None:
        monitor = Monitor("max_iter(1)")
        monitor.request = Status.interrupted
        stop = monitor.tick({})
        assert stop.status is Status.interrupted and "by the user" in stop.message
        assert [one.rule for one in stop.fired] == ["max_iter(1)"]

    def test_nonfinite_before_diverged_before_converged(self) -> None:
        words = "interrupted failed nonfinite diverged infeasible target_reached converged stalled limit"
        assert " ".join(sorted(map(str, Status), key=lambda word: Status(word).rank)) == words
        assert [str(one) for one in Status if one.success] == ["target_reached", "converged"]

    def test_an_amended_check_may_turn_out_not_to_be_finite(self) -> None:
        monitor = Monitor("max_iter(1)", ["value"], keeper=Keeper("value"), recorder=Recorder(columns(["value"], [])))
        monitor.tick({})
        monitor.amend({"value": math.nan})
        assert monitor.stop.status is Status.nonfinite and [one.rule for one in monitor.stop.fired] == ["max_iter(1)"]

    def test_an_amended_check_may_be_the_best(self) -> None:
        keeper = Keeper("value")
        monitor = Monitor("max_iter(9)", ["value"], keeper=keeper, recorder=Recorder(columns(["value"], [])))
        monitor.tick({"value": 2.0}, "a")
        monitor.tick({}, "b")
        monitor.amend({"value": 1.0}, "b")
        assert keeper.best.point == "b" and monitor.trace()["value"].tolist() == [2.0, 1.0]

    def test_stops_are_plain_data(self) -> None:
        stop = self.tick("max_iter(1) | grad_norm(1)", {"grad_norm": 0.5})
        assert Stop.from_dict(stop.to_dict()) == stop
        assert load_reasons(dump_reasons(stop.fired)) == stop.fired


class TestRules:
    def test_a_metric_that_the_loop_lacks_is_refused_when_made(self) -> None:
        with pytest.raises(
            InputError,
            match=r"reads metrics 'gap', 'grad_norm', which this loop does not supply; it "
            r"supplies value",
        ):
            Monitor("gap(1) | grad_norm(1)", ["value"])

    def test_a_metric_that_is_not_known_now_is_no_reason(self) -> None:
        monitor = Monitor("grad_norm(1) | max_iter(9)", ["grad_norm"])
        assert monitor.tick({}) is None and monitor.tick({"grad_norm": None}) is None
        assert monitor.tick({"grad_norm": math.nan}) is None and monitor.tick({"grad_norm": 1.0}) is not None

    @pytest.mark.parametrize(
        ("rule", "limit"),
        [
            ("max_iter(7)", 7),
            ("max_iter(7) | max_iter(3) | max_time(1)", 3),
            ("max_iter(7) & max_time(1)", None),
            ("(max_iter(2) & grad_norm(1)) | max_iter(9)", 9),
            ("max_time(1)", None),
        ],
    )
    def test_iteration_limit(self, rule: str, limit: int | None) -> None:
        assert iteration_limit(parse(rule)) == limit

    def test_poll_sees_limits_between_checks_but_not_conditions(self) -> None:
        class Calls:
            n = 0

            def total(self, of: str) -> int:
                return self.n

        calls = Calls()
        monitor = Monitor("max_calls(5) | (max_calls(2) & max_iter(100))", calls=calls)
        monitor.begin({})
        calls.n = 4
        assert monitor.poll() is None
        calls.n = 5
        assert monitor.poll().status is Status.limit
        idle = Monitor("max_iter(1)")
        idle.begin({})
        idle.request = Status.interrupted
        assert idle.poll().status is Status.interrupted


class TestObservers:
    def test_the_progress_is_one_object(self) -> None:
        seen: list[Any] = []
        monitor = Monitor("max_iter(3)", ["value"], observers=[Observer(seen.append)])
        for k in range(3):
            monitor.tick({"value": float(k)})
        assert seen[0] is seen[2] and seen[0].metrics == {"value": 2.0}

    def test_cadence_with_several_iterations_a_tick(self) -> None:
        told: list[int] = []
        monitor = Monitor(
            "max_iter(30)", check_every=4, observers=[Observer(lambda p: told.append(p.iteration), every=10)]
        )
        monitor.begin({})
        while monitor.tick({}, advance=4) is None:
            pass
        assert told == [0, 12, 20, 32]


class TestClockAndState:
    def make(self, recorder: bool = True) -> Monitor:
        return Monitor(
            "max_iter(20) | rel_change(1e-3, patience=3) | stall(6)",
            ["value", "rel_change"],
            recorder=Recorder(columns(["value", "rel_change"], []), 8) if recorder else None,
            keeper=Keeper("value"),
        )

    def feed(self, monitor: Monitor, start: int, stop: int) -> None:
        for k in range(start, stop):
            monitor.tick({"value": 1.0 / (1 + k % 7), "rel_change": 0.0 if k > 11 else 1.0}, k)

    def test_the_clock_pauses(self) -> None:
        monitor = self.make()
        monitor.pause_clock()
        first = monitor.elapsed
        time.sleep(0.2)
        assert monitor.elapsed == first
        monitor.restart_clock()
        assert first <= monitor.elapsed < first + 0.2

    @pytest.mark.parametrize("cut", range(18))
    def test_taken_up_at_any_tick_it_goes_on_the_same(self, cut: int) -> None:
        whole, first, second = self.make(), self.make(), self.make()
        self.feed(whole, 0, 18)
        self.feed(first, 0, cut)
        second.load_state_dict(first.state_dict())
        self.feed(second, cut, 18)
        assert second.iteration == whole.iteration and second.stop == whole.stop
        one, other = whole.trace(), second.trace()
        for name in ("iteration", "value", "rel_change"):
            assert one[name].tolist() == other[name].tolist()
        assert (second.keeper.best.value, second.keeper.best.iteration) == (
            whole.keeper.best.value,
            whole.keeper.best.iteration,
        )

    def test_an_interrupt_ends_this_run_only_a_rule_the_next_one_too(self) -> None:
        for interrupted, rule in ((True, False), (False, True), (True, True)):
            monitor = Monitor("max_iter(2)")
            monitor.tick({})
            if interrupted:
                monitor.request = Status.interrupted
            if rule or interrupted:
                monitor.tick({}) if rule else monitor.check(1, {}, None)
            other = Monitor("max_iter(2)")
            other.load_state_dict(monitor.state_dict())
            assert (other.stop is not None) == rule
            if rule:
                assert other.stop.status is Status.limit

    def test_a_state_with_a_trace_needs_a_trace(self) -> None:
        with pytest.raises(InputError, match="without a trace"):
            self.make().load_state_dict(self.make(recorder=False).state_dict())
        with pytest.raises(InputError, match="with a trace"):
            self.make(recorder=False).load_state_dict(self.make().state_dict())

    def test_no_trace_no_table(self) -> None:
        with pytest.raises(InputError, match="records nothing"):
            self.make(recorder=False).trace()

    def test_a_trace_before_any_check_is_empty(self) -> None:
        assert self.make().trace().rows == 0


class TestUsersOwn:
    def test_a_rule_without_reason_objects_of_ours(self) -> None:
        class Odd(StoppingRule):
            def start(self) -> Any:
                class Tracker:
                    def update(self, progress: Any) -> Any:
                        return Reason("odd", Status.infeasible, "no") if progress.iteration % 2 else None

                    def state_dict(self) -> dict[str, Any]:
                        return {}

                    def load_state_dict(self, state: dict[str, Any]) -> None:
                        pass

                return Tracker()

        stop = Monitor(Odd()).tick({})
        assert stop.status is Status.infeasible and stop.fired[0].rule == "odd"


def test_a_metric_that_was_never_declared_is_refused_at_the_first_tick() -> None:
    monitor = Monitor("max_iter(5) | target(0)", metrics=["value"])
    with pytest.raises(InputError, match=r"tick got 'loss'.*knows 'value'"):
        monitor.tick({"loss": 1.0})


def test_rules_of_plugins_serve_by_name_in_a_loop_of_ones_own():
    monitor = Monitor('cpd.cusum(metric="value", reference="normal:0,1", k=0.5, h=4) | max_iter(50)', ["value"])
    stops = [monitor.tick({"value": 3.0 if k > 20 else 0.0}) for k in range(60)]
    (fired,) = next(stop for stop in stops if stop).fired
    assert fired.rule.startswith("cpd.cusum")
    with pytest.raises(InputError, match="the rule is empty"):
        Monitor("")

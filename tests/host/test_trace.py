"""Bounded traces: what stays after thinning, memory and cost at any length, objects that are no scalars."""

from __future__ import annotations

import math
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum import InputError, Monitor
from infimum.run.keeper import Keeper
from infimum.run.monitor import columns
from infimum.trace import BLOCK, Recorder, Trace, number, scalars


def filled(checks: int, max_rows: int = 16) -> Recorder:
    recorder = Recorder(["iteration", "value"], max_rows)
    for k in range(checks):
        if k == recorder.due:
            recorder.add(k, [k, float(k * k)])
    return recorder


class TestThinning:
    @settings(max_examples=150, deadline=None)
    @given(checks=st.integers(1, 3000), max_rows=st.integers(1, 70))
    def test_law(self, checks: int, max_rows: int) -> None:
        recorder = filled(checks, max_rows)
        table = recorder.finish([])
        iterations = table["iteration"].astype(int).tolist()
        kept = max(8, max_rows)
        assert iterations == list(range(0, checks, recorder.stride))[: len(iterations)]
        assert len(iterations) <= kept and (len(iterations) > kept // 2 - 1 or checks <= kept)
        # Nothing is thinned before it must be.
        assert recorder.stride == 1 or checks > kept
        assert table["value"].tolist() == [k * k for k in iterations]
        assert recorder.due % recorder.stride == 0 and recorder.due >= checks

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.floats(-10, 10), min_size=1, max_size=400), st.integers(8, 40))
    def test_first_last_and_best_stay(self, values: list[float], max_rows: int) -> None:
        keeper = Keeper("value")
        monitor = Monitor(
            "max_iter(100000)", ["value"], recorder=Recorder(columns(["value"], []), max_rows), keeper=keeper
        )
        monitor.begin({"value": values[0]})
        for value in values[1:]:
            monitor.tick({"value": value})
        table = monitor.trace()
        iterations = table["iteration"].astype(int).tolist()
        assert iterations == sorted(set(iterations)) and len(iterations) <= max_rows + 2
        assert {0, len(values) - 1, int(np.argmin(values))} <= set(iterations)
        assert table["value"].tolist() == [values[k] for k in iterations]
        assert np.all(np.diff(table["time"]) >= 0)

    @settings(max_examples=60, deadline=None)
    @given(checks=st.integers(2, 500), data=st.data())
    def test_going_on_from_a_state_is_the_same(self, checks: int, data: Any) -> None:
        cut = data.draw(st.integers(1, checks - 1))
        whole, first = filled(checks), filled(cut)
        second = Recorder(["iteration", "value"], 16)
        second.load_state_dict(first.state_dict())
        for k in range(cut, checks):
            if k == second.due:
                second.add(k, [k, float(k * k)])
        np.testing.assert_array_equal(whole.finish([])["value"], second.finish([])["value"])
        assert (whole.stride, whole.due) == (second.stride, second.due)

    def test_states_of_other_columns_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"columns iteration, value; this one has iteration, gap"):
            Recorder(["iteration", "gap"]).load_state_dict(filled(3).state_dict())

    def test_amend_replaces_the_last_row_only_if_it_is_of_that_iteration(self) -> None:
        recorder = filled(3)
        recorder.amend([2, -1.0])
        recorder.amend([7, -2.0])
        assert recorder.finish([])["value"].tolist() == [0.0, 1.0, -1.0]

    def test_no_rows(self) -> None:
        table = Recorder(["iteration", "value"]).finish([])
        assert table.rows == 0 and table["value"].shape == (0,)
        assert Recorder(["a"]).state_dict()["rows"].shape == (0, 1)


class TestMarks:
    """Checks at which points become feasible, or cease to be, stay whatever the stride."""

    def table(self, violations: list[float], max_rows: int = 8) -> Trace:
        keeper = Keeper("value", constrained=True)
        monitor = Monitor(
            "max_iter(100000)",
            ["value", "violation"],
            recorder=Recorder(columns(["value", "violation"], []), max_rows),
            keeper=keeper,
        )
        for k, violation in enumerate(violations):
            monitor.check(k, {"value": float(k), "violation": violation}, None)
        return monitor.trace()

    @settings(max_examples=60, deadline=None)
    @given(turns=st.sets(st.integers(1, 2000), max_size=7), checks=st.integers(2001, 2100))
    def test_every_change_of_feasibility_stays(self, turns: set[int], checks: int) -> None:
        feasible, violations = False, []
        for k in range(checks):
            feasible ^= k in turns
            violations.append(0.0 if feasible else 1.0)
        table = self.table(violations)
        iterations = table["iteration"].astype(int).tolist()
        assert turns | {0, checks - 1} <= set(iterations) and iterations == sorted(set(iterations))
        assert len(iterations) <= 8 + len(turns) + 3
        assert table["violation"].tolist() == [violations[k] for k in iterations]

    def test_they_are_bounded_too(self) -> None:
        table = self.table([float(k % 2) for k in range(20_000)])
        assert table.rows <= 8 + 8 + 2 and table["iteration"][-1] == 19_999

    def test_they_survive_a_state(self) -> None:
        first = Recorder(["iteration", "value"], 8)
        for k in range(40):
            if k == first.due:
                first.add(k, [k, 0.5])
            elif k in (13, 29):
                first.mark([k, 1.5])
        second = Recorder(["iteration", "value"], 8)
        second.load_state_dict(first.state_dict())
        second.amend([29, 2.5])
        table = second.finish([])
        assert {13, 29} <= set(table["iteration"].astype(int)) and 2.5 in table["value"]


class TestBudget:
    MIB = 2**20

    def monitor(self) -> Monitor:
        names = ["value", "grad_norm", "rel_change"]
        return Monitor("max_iter(1000000000)", names, recorder=Recorder(columns(names, [])), keeper=Keeper("value"))

    def test_1e8_checks_stay_small(self) -> None:
        tracemalloc.start()
        monitor = self.monitor()
        # Checks that are not recorded leave no trace, so jumping from one due check to the next shows all memory.
        k = 0
        while k < 100_000_000:
            monitor._checks = k
            monitor.check(k, {"value": 1.0 / (k + 1), "grad_norm": 1.0, "rel_change": None}, None)
            k = monitor.recorder.due
        table = monitor.trace()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 * self.MIB
        assert 2048 <= table.rows <= 4098 and table["iteration"][0] == 0
        assert table["iteration"][-1] >= 100_000_000 - monitor.recorder.stride

    def test_real_ticks_stay_small_and_cost_the_same_early_and_late(self) -> None:
        monitor = self.monitor()
        metrics = {"value": 1.0, "grad_norm": 1.0, "rel_change": 1.0}
        monitor.begin(metrics)
        tracemalloc.start()
        for _ in range(50_000):
            monitor.tick(metrics)
        early = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        spans = []
        for _ in range(5):
            began = time.process_time()
            for _ in range(40_000):
                monitor.tick(metrics)
            spans.append(time.process_time() - began)
        tracemalloc.start()
        for _ in range(50_000):
            monitor.tick(metrics)
        late = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert early < 8 * self.MIB and late < 8 * self.MIB
        assert min(spans[3:]) < 2.5 * min(spans[:2])

    @pytest.mark.slow
    def test_two_million_real_ticks(self) -> None:
        monitor = self.monitor()
        tracemalloc.start()
        for k in range(2_000_000):
            monitor.tick({"value": 1.0 / (k + 1), "grad_norm": 1.0, "rel_change": 1.0})
        table = monitor.trace()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * self.MIB
        assert table["iteration"][[0, -1]].tolist() == [1, 2_000_000] and table.rows <= 4098


class Posterior:
    """An object that a rule may read and no trace can hold."""


class TestScalars:
    def test_number(self) -> None:
        assert number(3) == 3.0 and number(True) == 1.0 and number(np.float32(0.5)) == 0.5
        assert number(np.array(2.0)) == 2.0 and number(math.inf) == math.inf
        for odd in (None, Posterior(), "1.0", np.ones(2), [1.0], np.str_("2"), np.complex128(1)):
            assert math.isnan(number(odd)), odd

    def test_torch(self) -> None:
        torch = pytest.importorskip("torch")
        assert number(torch.tensor(1.5)) == 1.5 and math.isnan(number(torch.ones(2)))

    def test_scalars(self) -> None:
        found = scalars({"a": 1, "b": None, "c": Posterior(), "d": np.float32(2), "e": math.nan})
        assert list(found) == ["a", "d", "e"] and all(type(one) is float for one in found.values())

    def test_objects_become_nan_and_do_not_pile_up(self) -> None:
        alive: list[int] = []

        class Heavy(Posterior):
            def __init__(self) -> None:
                alive.append(1)

            def __del__(self) -> None:
                alive.pop()

        monitor = Monitor("max_iter(100000)", ["model", "value"], recorder=Recorder(columns(["model", "value"], [])))
        for k in range(1000):
            monitor.tick({"model": Heavy(), "value": float(k)})
        assert len(alive) <= BLOCK + 1
        table = monitor.trace()
        assert np.isnan(table["model"]).all() and table["value"].tolist() == list(range(1000))
        state = monitor.state_dict()
        assert state["recorder"]["rows"].dtype == float


class TestTrace:
    def test_it_is_a_mapping_of_columns(self) -> None:
        table = Trace({"iteration": np.arange(3), "value": np.array([1, 2, 3], np.float32)})
        assert list(table) == ["iteration", "value"] and len(table) == 2 and table.rows == 3
        assert all(column.dtype == np.float64 for column in table.values())
        assert "value" in table and "gap" not in table and table.get("gap") is None
        assert repr(table) == "Trace(3 rows: iteration, value)"
        with pytest.raises(KeyError, match="no column 'gap'; it has iteration, value"):
            table["gap"]
        assert repr(Trace({})) == "Trace(0 rows: )"

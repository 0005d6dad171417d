"""Counting in points, and checks of what users' functions return."""

from __future__ import annotations

import numpy as np
import pytest

from infimum.counters import Counters, checked, counting, evaluating
from infimum.errors import InputError, NonFiniteError

x = np.arange(3.0)


def counted(capability, call, extended=False):
    counters = Counters()
    return evaluating(call, "f", capability, counters, extended=extended), counters


class TestCounting:
    def test_points_not_calls(self):
        values, counters = counted("values", lambda X: X.sum(axis=1))
        values(np.ones((7, 3)))
        values(np.ones((2, 3)))
        assert counters.total("value") == 9
        assert counters.table()["evaluations"] == {"f": {"value": 9}}

    def test_a_pair_is_one_of_each(self):
        pair, counters = counted("value_and_gradient", lambda x: (1.0, x))
        pair(x)
        assert counters.table()["evaluations"] == {"f": {"value": 1, "gradient": 1}}
        assert (counters.total("value"), counters.total("gradient"), counters.total("prox")) == (1, 1, 0)

    def test_totals_go_over_all_terms_and_ways_of_evaluating(self):
        counters = Counters()
        evaluating(lambda x: 1.0, "f", "value", counters, extended=False)(x)
        evaluating(lambda x: (1.0, x), "g", "value_and_gradient", counters, extended=False)(x)
        evaluating(lambda X: X[:, 0], "f", "values", counters, extended=False)(np.ones((4, 3)))
        assert counters.total("value") == 6
        assert counters.table()["evaluations"]["f"] == {"value": 5}

    def test_a_capability_outside_of_the_vocabulary_is_one_call(self):
        roll, counters = counted("transition", lambda state: [state + 1])
        assert roll(3) == [4]
        assert counters.table()["evaluations"] == {"f": {"transition": 1}}

    def test_calls_and_the_monitor_are_columns_of_their_own(self):
        counters = Counters()
        counting(lambda x: x, counters.call("rest", "prox", "rest"))(x)
        counters.watch("problem", "value").n += 2
        assert counters.total("value") == counters.total("prox") == 0
        table = {"evaluations": {}, "calls": {"rest": {"prox": 1}}, "monitor": {"problem": {"value": 2}}}
        assert counters.table() == table

    def test_a_call_may_be_the_same_count_as_an_evaluation(self):
        prox, counters = counted("prox", lambda v, t: v)
        counters.call("rest", "prox", "rest", same=counters.evaluation("f", "prox"))
        prox(x, 1.0)
        assert counters.table()["calls"] == {"rest": {"prox": 1}}
        assert counters.table()["evaluations"] == {"f": {"prox": 1}}

    def test_the_state_goes_round(self):
        pair, counters = counted("value_and_gradient", lambda x: (1.0, x))
        counters.call("smooth", "value_and_gradient", "smooth").n = 5
        pair(x)
        state = counters.state_dict()
        pair(x)
        counters.load_state_dict(state)
        assert counters.state_dict() == state
        assert counters.total("gradient") == 1


class TestForm:
    @pytest.mark.parametrize(
        ("capability", "call", "message"),
        [
            ("value", lambda x: x, r"value of term 'f' must return one number, got \(3,\) float64; sum it or take its"),
            ("value", lambda x: x[:, None], r"must return one number, got \(3, 1\) float64"),
            ("value", lambda x: x[:1], r"must return one number, got \(1,\) float64"),
            ("value", lambda x: None, r"value of term 'f' must return one number, got NoneType"),
            ("value", lambda x: 1j, "returned a complex number, 1j; expected a real one"),
            ("value", lambda x: np.array(1j), r"returned a complex number, 1j"),
            ("gradient", lambda x: x[:, None], r"gradient of term 'f' returned shape \(3, 1\) for x of \(3,\)"),
            ("gradient", lambda x: 1.0, "gradient of term 'f' must return an array like x, got float"),
            (
                "gradient",
                lambda x: x.astype(np.float32),
                r"returned \(3,\) float32 for x of \(3,\) float64; return the dtype",
            ),
            ("gradient", lambda x: x + 0j, r"returned \(3,\) complex128 for x of \(3,\) float64"),
            ("prox", lambda v, t: list(v), "prox of term 'f' must return an array like x, got list"),
            ("value_and_gradient", lambda x: x, r"must return \(value, gradient\), got \(3,\) float64"),
            ("value_and_gradient", lambda x: (x, x), "must return one number"),
            ("value_and_gradient", lambda x: (1.0, x[:2]), r"returned shape \(2,\)"),
            ("project", lambda x: x[:2], r"project of term 'f' returned shape \(2,\)"),
            ("violation", lambda x: x, "violation of term 'f' must return one number"),
        ],
    )
    def test_the_first_call_is_checked(self, capability, call, message):
        evaluate, _ = counted(capability, call)
        with pytest.raises(InputError, match=message):
            evaluate(x, 1.0) if capability == "prox" else evaluate(x)

    @pytest.mark.parametrize("out", [1, 1.5, True, np.float32(2), np.float64(2), np.array(3.0), np.int64(4)])
    def test_numbers_of_every_kind_are_values(self, out):
        evaluate, _ = counted("value", lambda x: out)
        assert evaluate(x) == out

    @pytest.mark.parametrize("m", [0, 2])
    def test_a_batch_gives_one_number_a_point(self, m):
        evaluate, _ = counted("values", lambda X: np.zeros((2, 1)))
        with pytest.raises(
            InputError, match=rf"values of term 'f' must return shape \({m},\) for {m} points, got \(2, 1\)"
        ):
            evaluate(np.zeros((m, 3)))

    def test_an_argument_changed_in_place_is_caught(self):
        def spoils(v, t):
            v *= t
            return v.copy()

        evaluate, _ = counted("prox", spoils)
        with pytest.raises(InputError, match=r"prox of term 'f' changed its argument in place; work on a copy"):
            evaluate(x.copy(), 2.0)
        plain = checked(lambda x: float(x.sort() or 0.0), "f", "value")
        with pytest.raises(InputError, match="value of term 'f' changed its argument in place"):
            plain(np.array([2.0, 1.0]))

    def test_a_failed_check_is_made_again(self):
        evaluate, _ = counted("gradient", lambda x: x[:2])
        for _ in range(2):
            with pytest.raises(InputError, match="returned shape"):
                evaluate(x)

    def test_torch_results_are_checked_too(self):
        torch = pytest.importorskip("torch")
        evaluate, _ = counted("gradient", lambda x: x.double())
        with pytest.raises(InputError, match=r"returned \(3,\) float64 for x of \(3,\) float32"):
            evaluate(torch.zeros(3))
        value, _ = counted("value", lambda x: x.sum())
        assert value(torch.ones(3)) == 3.0


class TestFinite:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("kind", [float, np.float32, np.float64])
    def test_a_value_that_is_not_finite_is_caught_where_it_arises(self, bad, kind):
        evaluate, _ = counted("value", lambda x: kind(bad))
        with pytest.raises(NonFiniteError, match=r"value of term 'f' returned (NaN|inf|-inf) at its evaluation 1"):
            evaluate(x)
        pair, _ = counted("value_and_gradient", lambda x: (kind(bad), x))
        with pytest.raises(NonFiniteError, match="value of term 'f'"):
            pair(x)

    def test_an_extended_function_may_return_inf_and_nothing_else(self):
        evaluate, _ = counted("value", lambda x: np.inf, extended=True)
        assert evaluate(x) == np.inf
        for bad in (np.nan, -np.inf):
            evaluate, _ = counted("value", lambda x, bad=bad: bad, extended=True)
            with pytest.raises(NonFiniteError):
                evaluate(x)

    @pytest.mark.parametrize("capability", ["gradient", "value_and_gradient", "values", "prox"])
    def test_an_array_that_is_not_finite_is_found_when_something_looks_wrong(self, capability):
        bad = np.array([1.0, np.nan, 0.0])
        outs = {"value_and_gradient": (1.0, bad)}
        evaluate, counters = counted(capability, lambda *args: outs.get(capability, bad))
        args = {"values": (np.ones((3, 2)),), "prox": (x, 1.0)}.get(capability, (x,))
        assert counters.culprit() is None
        evaluate(*args)
        assert f"{capability} of term 'f' returned NaN or inf at its evaluation" in counters.culprit()

"""Combinations: three-valued logic, no short cut, status precedence, where `~` may stand, state."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from infimum.errors import InputError
from infimum.status import Status
from infimum.stopping import (
    UNKNOWN,
    AllOf,
    AnyOf,
    Not,
    Progress,
    Reason,
    StoppingRule,
    grad_norm,
    max_calls,
    max_iter,
    max_time,
    rel_change,
    require_positive,
    stall,
    target,
    unconditional_limit,
)

NO, YES = None, "yes"


@dataclass(frozen=True)
class Scripted(StoppingRule):
    """Answers from a list, one per check, and counts the checks."""

    name: str
    answers: tuple = ()
    seen: list = field(default_factory=list, compare=False)
    outcome: Status = Status.stalled

    def start(self):
        return ScriptedTracker(self)


class ScriptedTracker:
    def __init__(self, rule: Scripted) -> None:
        self.rule, self.checks = rule, 0

    def update(self, progress: Progress):
        answer = self.rule.answers[self.checks % len(self.rule.answers)]
        self.checks += 1
        self.rule.seen.append(progress.iteration)
        name = self.rule.name
        return Reason(name, self.rule.outcome, f"{name} met", {name: 1.0}) if answer == YES else answer

    def state_dict(self):
        return {"checks": self.checks}

    def load_state_dict(self, state):
        self.checks = state["checks"]


def scripted(name: str, *answers, outcome: Status = Status.stalled) -> Scripted:
    return Scripted(name, answers, outcome=outcome)


def truth(answer):
    return answer if answer in (NO, UNKNOWN) else YES


VALUES = (NO, YES, UNKNOWN)
AND = {NO: 0, UNKNOWN: 1, YES: 2}


@pytest.mark.parametrize(("a", "b", "c"), list(itertools.product(VALUES, repeat=3)))
def test_three_valued_logic(a, b, c) -> None:
    rules = [scripted(name, answer) for name, answer in zip("abc", (a, b, c), strict=True)]
    lowest, highest = min((a, b, c), key=AND.get), max((a, b, c), key=AND.get)
    assert truth(AllOf(tuple(rules)).start().update(Progress())) == lowest
    assert truth(AnyOf(tuple(rules)).start().update(Progress())) == highest


@pytest.mark.parametrize(("answer", "negated"), [(NO, YES), (YES, NO), (UNKNOWN, UNKNOWN)])
def test_negation(answer, negated) -> None:
    rule = scripted("always", YES) & ~scripted("r", answer)
    assert truth(rule.start().update(Progress())) == negated


def test_every_child_is_updated_at_every_check() -> None:
    for make in (
        lambda a, b, c: a | b | c,
        lambda a, b, c: a & b & c,
        lambda a, b, c: a | (b & c),
        lambda a, b, c: a & ~b & (c | scripted("d", YES)),
    ):
        for answers in itertools.product(VALUES, repeat=2):
            rules = [scripted("a", answers[0]), scripted("b", answers[1]), scripted("c", NO, YES)]
            tracker = make(*rules).start()
            for k in range(3):
                tracker.update(Progress(iteration=k))
            assert [rule.seen for rule in rules] == [[0, 1, 2]] * 3


def test_a_window_goes_on_behind_a_rule_that_fired() -> None:
    tracker = (max_iter(0) | rel_change(1, patience=3)).start()
    reasons = [tracker.update(Progress(iteration=k, metrics={"rel_change": 0.5})) for k in range(3)]
    assert [len(reason.leaves()) for reason in reasons] == [1, 1, 2]


def test_all_must_hold_at_the_same_check() -> None:
    tracker = (scripted("a", YES, NO, YES) & scripted("b", NO, YES, YES)).start()
    assert [truth(tracker.update(Progress())) for _ in range(3)] == [NO, NO, YES]


def test_any_reports_everything_that_fired_and_the_first_status_wins() -> None:
    rule = max_iter(5) | rel_change(1e-3) | grad_norm(1e-6) | target(-1)
    progress = Progress(iteration=5, metrics={"rel_change": 1e-4, "grad_norm": 1e-7, "value": 0.0})
    reason = rule.start().update(progress)
    assert reason.status is Status.converged
    assert [(leaf.rule, leaf.status) for leaf in reason.leaves()] == [
        ("max_iter(5)", Status.limit),
        ("rel_change(0.001)", Status.stalled),
        ("grad_norm(1e-06)", Status.converged),
    ]
    assert reason.values == {"iteration": 5, "rel_change": 1e-4, "grad_norm": 1e-7}
    assert reason.message == "iteration 5 >= 5; rel_change 0.0001 <= 0.001; grad_norm 1e-07 <= 1e-06"
    assert reason.rule == "max_iter(5) | rel_change(0.001) | grad_norm(1e-06)"


def test_a_single_reason_is_passed_on_as_it_is() -> None:
    reason = (max_iter(5) | grad_norm(1e-6)).start().update(Progress(iteration=5))
    assert (reason.rule, reason.status, reason.leaves()) == ("max_iter(5)", Status.limit, (reason,))


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(Status, 2)))
def test_status_precedence_in_both_combinations_and_orders(first: Status, second: Status) -> None:
    a, b = scripted("a", YES, outcome=first), scripted("b", YES, outcome=second)
    for rule in (a | b, b | a, a & b, b & a):
        assert rule.start().update(Progress()).status is first


def test_all_merges_the_values_and_lists_its_leaves() -> None:
    rule = max_iter(3) & grad_norm(1e-3) & ~stall(2)
    progress = Progress(iteration=3, metrics={"grad_norm": 1e-4, "value": 1.0})
    reason = rule.start().update(progress)
    assert reason.rule == "max_iter(3) & grad_norm(0.001) & ~stall(2)"
    assert reason.status is Status.converged
    assert reason.values == {"iteration": 3, "grad_norm": 1e-4}
    assert reason.message == "iteration 3 >= 3 and grad_norm 0.0001 <= 0.001 and not stall(2)"
    assert [leaf.rule for leaf in reason.leaves()] == ["max_iter(3)", "grad_norm(0.001)"]


def test_a_negation_lends_no_status() -> None:
    rule = max_iter(3) & ~grad_norm(1e-3)
    reason = rule.start().update(Progress(iteration=3, metrics={"grad_norm": 1.0}))
    assert reason.status is Status.limit


def test_a_missing_metric_below_a_negation_does_not_stop() -> None:
    tracker = (max_iter(0) & ~grad_norm(1)).start()
    for metrics in ({}, {"grad_norm": None}, {"grad_norm": float("nan")}):
        assert tracker.update(Progress(metrics=metrics)) is UNKNOWN
    nested = (max_iter(0) & ~(grad_norm(1) | rel_change(1))).start()
    assert nested.update(Progress(metrics={"rel_change": 2.0})) is UNKNOWN
    assert nested.update(Progress(metrics={"rel_change": 0.5})) is None


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: (~max_iter(3)).start(), "~max_iter(3)"),
        (lambda: (~max_iter(3) & ~max_time(3)).start(), "~max_iter(3) & ~max_time(3)"),
        (lambda: max_iter(3) | ~grad_norm(1), "~grad_norm(1)"),
        (lambda: AnyOf((max_iter(3), ~grad_norm(1) & ~stall(2))), "~grad_norm(1) & ~stall(2)"),
        (lambda: Not(Not(max_iter(3))), "~max_iter(3)"),
        (lambda: ~(~max_iter(3) & ~max_time(3)), "~max_iter(3) & ~max_time(3)"),
        (lambda: require_positive(~max_iter(3)), "~max_iter(3)"),
    ],
)
def test_a_lone_negation_is_refused(make, part: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(f"'{part}' cannot stand alone")
    assert "inside '&' beside a rule without '~'" in str(caught.value)


def test_negations_may_come_first() -> None:
    rule = ~max_iter(3) & ~max_time(3) & grad_norm(1)
    assert rule == AllOf((Not(max_iter(3)), Not(max_time(3)), grad_norm(1)))
    reason = rule.start().update(Progress(metrics={"grad_norm": 0.5}))
    assert reason.status is Status.converged


def test_double_negation_is_the_rule() -> None:
    assert ~~grad_norm(1) == grad_norm(1)


def test_operators_flatten_and_keep_the_order() -> None:
    a, b, c, d = max_iter(1), max_iter(2), max_iter(3), max_iter(4)
    assert (a | b) | (c | d) == AnyOf((a, b, c, d))
    assert a & (b & c) == AllOf((a, b, c))
    assert a | b & c == AnyOf((a, AllOf((b, c))))
    assert AnyOf([a, AnyOf((b, c))]).rules == (a, b, c)
    assert a | b != b | a
    assert len({a | b, a | b, a & b}) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AnyOf((max_iter(1),)), "AnyOf takes two rules or more, got 1"),
        (lambda: AllOf(()), "AllOf takes two rules or more, got 0"),
        (lambda: AllOf((max_iter(1), "max_time(1)")), "AllOf takes stopping rules, got 'max_time(1)'"),
        (lambda: Not(3), "Not takes a stopping rule, got 3"),
        (lambda: max_iter(1) or max_time(2), "write '|' for 'or'"),
        (lambda: max_iter(1) and max_time(2), "write '|' for 'or', '&' for 'and'"),
        (lambda: not max_iter(1), "'~' for 'not'"),
    ],
)
def test_mistakes_when_combining(make, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)


def test_combining_with_something_else_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        max_iter(1) | 3
    with pytest.raises(TypeError):
        max_iter(1) & "grad_norm(1)"


def test_text_of_combinations() -> None:
    rule = max_iter(10) | (grad_norm(1e-6) & (rel_change(1) | stall(3)) & ~(max_time(1) | max_calls(2, of="gradient")))
    text = (
        "max_iter(10) | (grad_norm(1e-06) & (rel_change(1) | stall(3)) & ~(max_time(1) | max_calls(2, of='gradient')))"
    )
    assert str(rule) == repr(rule) == text


def test_metrics_of_a_combination() -> None:
    rule = max_iter(1) | (grad_norm(1) & ~stall(2)) | rel_change(1)
    assert rule.metrics() == {"grad_norm", "value", "rel_change"}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (max_iter(1), True),
        (max_time(1) | grad_norm(1), True),
        (grad_norm(1) | (stall(2) | max_calls(3)), True),
        (grad_norm(1), False),
        (max_iter(1) & grad_norm(1), False),
        (max_iter(1) & max_time(1), False),
        (grad_norm(1) | (max_iter(1) & stall(2)), False),
        (grad_norm(1) & ~max_iter(1), False),
    ],
)
def test_unconditional_limit(rule, expected: bool) -> None:
    assert unconditional_limit(rule) is expected


def test_state_follows_the_tree() -> None:
    rule = scripted("a", NO, YES) | (stall(2) & ~rel_change(1, patience=2))
    tracker = rule.start()
    tracker.update(Progress(iteration=4, metrics={"value": 3.0, "rel_change": 0.5}))
    state = tracker.state_dict()
    assert state == {"rules": [{"checks": 1}, {"rules": [{"best": 3.0, "at": 4}, {"rule": {"since": 4}}]}]}
    again = rule.start()
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert again.update(Progress(iteration=5)).rule == "a"


def test_state_of_another_tree_is_refused() -> None:
    state = (max_iter(1) | stall(2)).start().state_dict()
    with pytest.raises(InputError, match="of 2 stopping rules, this combination has 3"):
        (max_iter(1) | stall(2) | max_time(1)).start().load_state_dict(state)

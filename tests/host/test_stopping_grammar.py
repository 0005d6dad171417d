"""Text and mapping form: round trips, located mistakes, and that nothing is ever evaluated."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infimum.errors import InputError, PluginError, UnknownNameError
from infimum.stopping import (
    AllOf,
    AnyOf,
    GrammarError,
    MappingError,
    Not,
    Progress,
    StoppingRule,
    abs_change,
    feasibility,
    from_mapping,
    gap,
    grad_norm,
    max_calls,
    max_iter,
    max_time,
    parse,
    rel_change,
    residual,
    stall,
    target,
)
from infimum.stopping.combine import negative
from infimum.stopping.grammar import resolve_built_in

COUNTS = st.integers(0, 10**12)
PATIENCE = st.integers(1, 10**6)
TOL = st.floats(0, 1e300)
LEAF = st.one_of(
    st.builds(max_iter, COUNTS),
    st.builds(max_time, TOL),
    st.builds(target, st.floats(-1e300, 1e300)),
    st.builds(max_calls, COUNTS, st.sampled_from(["value", "gradient", "größe"])),
    st.builds(grad_norm, TOL),
    st.builds(residual, TOL),
    st.builds(gap, TOL),
    st.builds(feasibility, TOL),
    st.builds(rel_change, TOL, PATIENCE),
    st.builds(abs_change, TOL, PATIENCE),
    st.builds(stall, PATIENCE, TOL),
)


def _grown(inner):
    member = st.one_of(inner, inner.map(lambda rule: rule if negative(rule) else Not(rule)))
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map(lambda rules: AnyOf(tuple(rules))),
        st.tuples(inner, st.lists(member, min_size=1, max_size=3)).map(lambda pair: AllOf((pair[0], *pair[1]))),
    )


RULES = st.recursive(LEAF, _grown, max_leaves=12)


@settings(max_examples=200)
@given(RULES)
def test_text_mapping_and_object_are_the_same_rule(rule: StoppingRule) -> None:
    assert parse(str(rule)) == rule
    assert from_mapping(rule.to_mapping()) == rule
    assert str(parse(str(rule))) == str(rule)
    assert from_mapping(parse(str(rule)).to_mapping()).to_mapping() == rule.to_mapping()
    assert pickle.loads(pickle.dumps(rule)) == copy.deepcopy(rule) == rule


@settings(max_examples=300)
@given(st.text(alphabet="max_iter(1e4)|&~, gradnom=.'\"\n-[]{}#!é\\\0", max_size=40))
def test_any_text_is_a_rule_or_a_located_error(text: str) -> None:
    error = None
    try:
        rule = parse(text)
    except GrammarError as caught:
        error = caught
    if error is None:
        assert parse(str(rule)) == rule
    else:
        assert error.column == error.issues[0][0]
        assert all(0 <= column <= len(text) for column, _ in error.issues)


def test_the_example() -> None:
    text = "max_iter(1e4) | max_time(60) | (grad_norm(1e-6) & rel_change(1e-9, patience=10))"
    expected = max_iter(10_000) | max_time(60) | (grad_norm(1e-6) & rel_change(1e-9, patience=10))
    assert parse(text) == expected
    assert (
        from_mapping(
            {
                "any": [
                    {"max_iter": 1e4},
                    {"max_time": 60},
                    {"all": [{"grad_norm": 1e-6}, {"rel_change": {"tol": 1e-9, "patience": 10}}]},
                ]
            }
        )
        == expected
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max_iter(1) | max_iter(2) & max_iter(3)", max_iter(1) | (max_iter(2) & max_iter(3))),
        ("(max_iter(1) | max_iter(2)) & max_iter(3)", (max_iter(1) | max_iter(2)) & max_iter(3)),
        ("~max_iter(1) & ~max_iter(2) & stall(3)", ~max_iter(1) & ~max_iter(2) & stall(3)),
        ("stall(3) & (~max_iter(1) & ~max_iter(2))", stall(3) & ~max_iter(1) & ~max_iter(2)),
        ("~~max_iter(1)", max_iter(1)),
        ("core.max_iter(10)", max_iter(10)),
        ("  max_iter( n = 10 )  ", max_iter(10)),
        ("target(-2.5)", target(-2.5)),
        ("target(+2)", target(2)),
        ("max_iter(1_000)", max_iter(1000)),
        ("stall(min_delta=1, patience=2)", stall(2, 1)),
        ("max_calls(5, 'gradient')", max_calls(5, of="gradient")),
        ("\n  max_iter(10)\n  | grad_norm(\n      1e-6)\r\n", max_iter(10) | grad_norm(1e-6)),
        ("\tmax_iter(10)\t", max_iter(10)),
    ],
)
def test_text(text: str, expected: StoppingRule) -> None:
    assert parse(text) == expected


LONE = "cannot stand alone: it says when not to stop; put it inside '&' beside a rule without '~'"


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("", [(0, "the text is empty; write a rule such as max_iter(1000)")]),
        ("   ", [(0, "the text is empty")]),
        ("stall", [(0, "'stall' is a rule only with parentheses: write stall() or stall(...)")]),
        ("max_iter(1) | core.stall", [(14, "write core.stall() or core.stall(...)")]),
        ("max_itr(10)", [(0, "unknown stopping rule 'max_itr'; did you mean 'max_iter'?")]),
        ("core.max_itr(10)", [(0, "unknown stopping rule 'core.max_itr'; did you mean 'max_iter'?")]),
        ("zzz()", [(0, "unknown stopping rule 'zzz'; there are: abs_change")]),
        ("max_iter()", [(0, "max_iter needs the option 'n': write max_iter(n=...)")]),
        ("max_iter(1, 2, 3)", [(12, "max_iter takes at most 1 option without a name: n")]),
        ("rel_change(1, 2, 3)", [(17, "rel_change takes at most 2 options without a name: tol, patience")]),
        ("max_iter(1, n=2)", [(12, "max_iter: option 'n' is given twice")]),
        ("max_iter(n=1, n=2)", [(14, "max_iter: option 'n' is given twice")]),
        ("rel_change(1, patiense=3)", [(14, "rel_change has no option 'patiense'; did you mean 'patience'?")]),
        ("grad_norm('x')", [(10, "grad_norm: tol must be a number, got 'x'")]),
        ("grad_norm(tol=-1)", [(14, "grad_norm: tol must be >= 0, got -1")]),
        ("max_iter(1.5)", [(9, "max_iter: n must be a whole number, got 1.5")]),
        ("max_iter(-3)", [(9, "max_iter: n must be a whole number >= 0, got -3")]),
        ("max_iter(1e999)", [(9, "max_iter: n must be a whole number, got inf")]),
        ("max_time(1e999)", [(9, "max_time: seconds must be a finite number, got inf")]),
        ("max_iter(True)", [(9, "max_iter: n must be a whole number, got True")]),
        ("max_iter(-True)", [(9, "'-True' is not a plain number")]),
        ("max_iter(" + "9" * 400 + ")", [(9, "got an integer of 400 digits")]),
        ("gap(" + "9" * 400 + ")", [(4, "got an integer beyond 1e308")]),
        ("~max_iter(3)", [(0, f"'~max_iter(3)' {LONE}")]),
        ("stall(2) | ~max_iter(3)", [(11, f"'~max_iter(3)' {LONE}")]),
        ("stall(2) | ~max_iter(3) & ~gap(1)", [(11, f"'~max_iter(3) & ~gap(1)' {LONE}")]),
        ("~(~max_iter(1) & ~gap(2)) & stall(1)", [(2, f"'~max_iter(1) & ~gap(2)' {LONE}")]),
        ("max_iter(3) or max_time(2)", [(0, "write '|' for 'or'")]),
        ("max_iter(3) and max_time(2)", [(0, "write '&' for 'and'")]),
        ("gap(1) & (not max_time(2))", [(10, "write '~' for 'not'")]),
        ("max_iter(3) || max_time(2)", [(12, "write '|', not '||'")]),
        ("max_iter(3) && max_time(2)", [(12, "write '&', not '&&'")]),
        ("gap(1) & !max_iter(2)", [(9, "write '~' for 'not'")]),
        ("max_iter(3) # | x()", [(12, "a comment is not read here")]),
        ("grad_norm < 1e-6", [(0, "a comparison is not a rule: write the bound as an option, as in grad_norm(1e-6)")]),
        ("max_iter(1) + max_iter(2)", [(0, "is not a rule; write rules such as max_iter(1000)")]),
        ("-max_iter(1)", [(0, "'-max_iter(1)' is not a rule")]),
        ("100", [(0, "'100' is not a rule")]),
        ("max_iter(3", [(8, "'(' was never closed")]),
        ("max_iter(1) max_time(2)", [(12, "this is not a rule expression")]),
        ("max_iter(1); max_time(2)", [(11, "this is not a rule expression")]),
        ("  max_iter(1) |", [(15, "this is not a rule expression")]),
        ("(max_iter(1)) | (max_time(2)) )", [(30, "unmatched ')'")]),
        ("max_iter(1) | (a, max_iter(2))", [(14, "is not a rule")]),
        ("größe() | max_itr(1)", [(0, "unknown stopping rule 'größe'"), (10, "did you mean 'max_iter'?")]),
        ("max_iter(1)\n| max_itr(2)\n| gap(-1)", [(14, "'max_itr'"), (31, "gap: tol must be >= 0, got -1")]),
        ("max_iter(max_iter(3))", [(9, "'max_iter(3)' is not a plain number, text in quotes, True or False")]),
    ],
)
def test_mistakes_are_located(text: str, issues: list[tuple[int, str]]) -> None:
    with pytest.raises(GrammarError) as caught:
        parse(text)
    assert [column for column, _ in caught.value.issues] == [column for column, _ in issues]
    for (_, message), (_, expected) in zip(caught.value.issues, issues, strict=True):
        assert expected in message
    assert caught.value.column == issues[0][0]


def test_all_mistakes_come_at_once() -> None:
    text = "max_itr(10) | grad_norm(-1, tl=3) | stall | rel_change(1e-9, patiense=3) & ~foo(x) | ~gap(1)"
    with pytest.raises(GrammarError) as caught:
        parse(text)
    starts = [text[column:].split("(")[0][:8] for column, _ in caught.value.issues]
    assert starts == ["max_itr", "-1, tl=3", "tl=3) | ", "stall | ", "patiense", "foo", "x) | ~ga", "~gap"]


def test_the_error_points_at_the_place() -> None:
    with pytest.raises(GrammarError) as caught:
        parse("max_iter(10) | max_tme(60)")
    assert str(caught.value) == (
        "stopping rule, column 16: unknown stopping rule 'max_tme'; did you mean 'max_time'?\n"
        "    max_iter(10) | max_tme(60)\n"
        "                   ^"
    )
    with pytest.raises(GrammarError, match="stopping rule, line 2, column 3: unknown") as caught:
        parse("max_iter(10)\n| max_tme(60)")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.issues, str(again)) == (caught.value.issues, str(caught.value))
    assert isinstance(again, InputError)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "__import__('os').system('true')",
        "().__class__.__bases__[0].__subclasses__()",
        "max_iter.__class__(3)",
        "max_iter.__init__.__globals__['os']",
        "max_iter(1).start()",
        "max_iter(__import__('os').getpid())",
        "max_iter(open('/etc/passwd'))",
        "eval('1')",
        "exec('x=1')",
        "(lambda: max_iter(1))()",
        "lambda: 1",
        "[max_iter(i) for i in (1, 2)]",
        "{max_iter(1) for _ in '1'}",
        "(max_iter(i) for i in '1')",
        "max_iter(*[1])",
        "max_iter(**{'n': 1})",
        "max_iter(n=(x := 3))",
        "(x := max_iter(3))",
        "max_iter(f'{1}')",
        "f'{max_iter(1)}'",
        "max_iter(9**9**9**9)",
        "max_iter(10 * 10)",
        "max_iter(1 if True else 2)",
        "max_iter(1) if True else max_iter(2)",
        "max_iter(b'1')",
        "max_iter(1j)",
        "max_iter(None)",
        "max_iter(...)",
        "max_iter([1])",
        "max_iter('1' * 10)",
        "await max_iter(1)",
        "yield max_iter(1)",
        "max_iter[1](2)",
        "import os",
        "max_iter(1)\nimport os",
        "max_iter(1)\\\nimport os",
        "max_iter(1) ^ max_iter(2)",
        "max_calls(1, of='\\d')",
        "max_iter(1)\0",
        "\ud800()",
    ],
)
def test_code_is_refused(text: str) -> None:
    with pytest.raises(GrammarError) as caught:
        parse(text)
    assert str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "~" * 3000 + "gap(1)",
        "(" * 3000,
        "(" * 150 + "gap(1)" + ")" * 150 + "|",
        "gap(1) | " * 1000 + "gap(1)",
        "-" * 3000 + "1",
        "a." * 1900 + "a()",
        "gap(1)(" * 500,
        "gap(1 & (2 | (" * 60,
        "gap(1) | (gap(1) & (" * 30 + "gap(1)" + "))" * 30,
    ],
)
def test_size_and_depth_are_bounded(text: str) -> None:
    with pytest.raises(GrammarError) as caught:
        parse(text)
    assert len(str(caught.value)) < 5000


def test_a_long_flat_rule_is_fine() -> None:
    assert parse(" | ".join(["gap(1)"] * 400)) == AnyOf((gap(1),) * 400)
    assert parse("gap(1) & (" * 60 + "gap(1)" + ")" * 60) == AllOf((gap(1),) * 61)


def test_only_text_is_parsed() -> None:
    with pytest.raises(InputError, match="read from a string, got 3"):
        parse(3)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Cusum(StoppingRule):
    drift: float
    mode: Literal["up", "down"] = "up"
    window: int | None = None
    label: str = field(default="", kw_only=True)
    quiet: bool = False

    word = "cpd.cusum"

    def __post_init__(self) -> None:
        if self.drift > 100:
            raise ValueError("drift beyond 100 makes no sense")


@dataclass(frozen=True)
class Never(StoppingRule):
    def start(self):
        return NeverTracker()


class NeverTracker:
    def update(self, progress: Progress) -> None:
        return None


def early(tol: float = 1e-3, *, hard: bool = False) -> StoppingRule:
    return grad_norm(tol) | max_iter(10 if hard else 100)


def resolve(name: str):
    known = {"cpd.cusum": Cusum, "cusum": Cusum, "never": Never, "early": early, "wrong": lambda: 3}
    if name == "broken.rule":
        raise PluginError("plugin 'broken' could not be imported")
    if name in known:
        return known[name]
    try:
        return resolve_built_in(name)
    except UnknownNameError:
        raise UnknownNameError(f"no rule '{name}' is installed") from None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpd.cusum(1)", Cusum(1.0)),
        ("cusum(1, 'down', 5, label='a b', quiet=True)", Cusum(1.0, "down", 5, True, label="a b")),
        ("cusum(1, window=5.0)", Cusum(1.0, window=5)),
        ("never() | max_iter(3)", Never() | max_iter(3)),
        ("early(1e-2, hard=True)", grad_norm(1e-2) | max_iter(10)),
        ("early() | stall(3)", grad_norm(1e-3) | max_iter(100) | stall(3)),
    ],
)
def test_rules_of_plugins(text: str, expected: StoppingRule) -> None:
    assert parse(text, resolve) == expected
    assert parse(str(expected), resolve) == expected
    assert from_mapping(expected.to_mapping(), resolve) == expected


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("cusum(1, 'left')", [(9, "cusum: mode must be one of 'up', 'down', got 'left'")]),
        ("cusum(1, window='x')", [(16, "cusum: window must be a whole number or None, got 'x'")]),
        ("cusum(1, label=2)", [(15, "cusum: label must be a text in quotes, got 2")]),
        ("cusum(1, quiet=1)", [(15, "cusum: quiet must be True or False, got 1")]),
        ("cusum(101)", [(0, "cusum: drift beyond 100 makes no sense")]),
        ("never(3)", [(6, "never takes no option without its name")]),
        ("never(a=3)", [(6, "never has no option 'a'; it has none")]),
        ("max_iter(1) | broken.rule(3)", [(14, "plugin 'broken' could not be imported")]),
        ("cpd.cusom(3)", [(0, "no rule 'cpd.cusom' is installed")]),
        ("wrong()", [(0, "wrong gave 3, which is no stopping rule")]),
        ("early(hard='no')", [(11, "early: hard must be True or False, got 'no'")]),
    ],
)
def test_mistakes_in_rules_of_plugins(text: str, issues: list[tuple[int, str]]) -> None:
    with pytest.raises(GrammarError) as caught:
        parse(text, resolve)
    assert [column for column, _ in caught.value.issues] == [column for column, _ in issues]
    for (_, message), (_, expected) in zip(caught.value.issues, issues, strict=True):
        assert expected in message


def test_the_name_of_a_plugin_rule() -> None:
    assert str(Cusum(1.5, window=3, label="a'b")) == 'cpd.cusum(1.5, window=3, label="a\'b")'
    assert Cusum(1.5).to_mapping() == {"cpd.cusum": 1.5}
    assert str(Never()) == "never()"


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"max_iter": 1e4}, max_iter(10000)),
        ([{"max_iter": 1}, {"max_iter": 2}], max_iter(1) | max_iter(2)),
        ([{"max_iter": 1}], max_iter(1)),
        ({"any": [{"max_iter": 1}, "gap(1) & stall(2)"]}, max_iter(1) | (gap(1) & stall(2))),
        ("max_iter(3)", max_iter(3)),
        (
            {"all": [{"gap": 1}, {"not": {"any": [{"max_iter": 2}, {"max_time": 3}]}}]},
            gap(1) & ~(max_iter(2) | max_time(3)),
        ),
        ({"not": {"not": {"gap": 1}}}, gap(1)),
        ({"core.stall": {"patience": 3, "min_delta": 0.5}}, stall(3, 0.5)),
        ({"all": [gap(1), {"stall": 2}]}, gap(1) & stall(2)),
    ],
)
def test_mapping_form(form, expected: StoppingRule) -> None:
    assert from_mapping(form) == expected


def test_null_means_no_options() -> None:
    assert from_mapping({"never": None}, resolve) == from_mapping({"never": {}}, resolve) == Never()


@pytest.mark.parametrize(
    ("form", "issues"),
    [
        ({"max_itr": 1}, [(("max_itr",), "did you mean 'max_iter'?")]),
        (
            [{"max_iter": 1}, {"all": [{"gap": -1}, {"stall": {"patiense": 2}}]}],
            [
                ((1, "all", 0, "gap"), "gap: tol must be >= 0, got -1"),
                ((1, "all", 1, "stall", "patiense"), "did you mean 'patience'?"),
                ((1, "all", 1, "stall"), "stall needs the option 'patience'"),
            ],
        ),
        (
            {"rel_change": {"tol": "x", "patience": 0}},
            [
                (("rel_change", "tol"), "tol must be a number, got 'x'"),
                (("rel_change", "patience"), "patience must be a whole number >= 1, got 0"),
            ],
        ),
        ({"gap": [1, 2]}, [(("gap",), "gap: tol must be a number, got [1, 2]")]),
        ({"gap": None}, [(("gap",), "gap needs the option 'tol': write {gap: {tol: ...}}")]),
        ({"gap": 1, "stall": 2}, [((), "expected one rule name, got 2 (gap, stall); write several rules as a list")]),
        ({}, [((), "expected one rule name, got 0")]),
        ([], [((), "'any' takes a list of rules, got []")]),
        ({"all": {"gap": 1}}, [(("all",), "'all' takes a list of rules, got {'gap': 1}")]),
        (7, [((), "expected a rule such as {max_iter: 1000}, a list of rules or text, got 7")]),
        (None, [((), "got None")]),
        ({3: 4}, [((), "expected the name of a rule, got 3")]),
        ({"not": {"gap": 1}}, [((), f"'~gap(1)' {LONE}")]),
        ([{"gap": 1}, {"not": {"gap": 1}}], [((1,), f"'~gap(1)' {LONE}")]),
        ({"all": [{"not": {"gap": 1}}, {"not": "stall(1)"}]}, [((), f"'~gap(1) & ~stall(1)' {LONE}")]),
        (
            {"all": [{"gap": 1}, {"not": {"all": [{"not": {"gap": 1}}, {"not": {"gap": 2}}]}}]},
            [(("all", 1, "not"), f"'~gap(1) & ~gap(2)' {LONE}")],
        ),
        (["gap(1)", "max_tme(2)"], [((1,), "column 1 of 'max_tme(2)': unknown stopping rule 'max_tme'")]),
    ],
)
def test_mistakes_in_mappings_carry_their_path(form, issues) -> None:
    with pytest.raises(MappingError) as caught:
        from_mapping(form)
    assert [path for path, _ in caught.value.issues] == [path for path, _ in issues]
    for (_, message), (_, expected) in zip(caught.value.issues, issues, strict=True):
        assert expected in message


def test_the_mapping_error_reads_well() -> None:
    with pytest.raises(MappingError) as caught:
        from_mapping([{"gap": 1}, {"max_tme": 2}])
    assert str(caught.value) == "stopping[1].max_tme: unknown stopping rule 'max_tme'; did you mean 'max_time'?"
    assert pickle.loads(pickle.dumps(caught.value)).issues == caught.value.issues


def test_mappings_are_bounded_in_depth_and_size() -> None:
    deep: object = {"gap": 1}
    for _ in range(200):
        deep = {"not": deep}
    with pytest.raises(MappingError, match="nested too deeply"):
        from_mapping(deep)
    loop: list = []
    loop += [loop, loop]
    with pytest.raises(MappingError, match=r"nested too deeply|too many parts") as caught:
        from_mapping(loop)
    assert len(str(caught.value)) < 500_000

"""YAML as run files read it: scalars of YAML 1.2, mistakes with their place."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infimum.runfile.reader import MAX_VALUES, read_file, read_text, read_value
from infimum.runfile.tree import Place, RunFileError


def messages(text: str) -> list[str]:
    with pytest.raises(RunFileError) as caught:
        read_text(text, "f.yaml")
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 0.001),
        ("1e4", 10000.0),
        ("+1.5E+2", 150.0),
        (".5", 0.5),
        ("1.", 1.0),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("-12", -12),
        ("+3", 3),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2001-01-01", "2001-01-01"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!float 5", 5.0),
    ],
)
def test_scalars_follow_yaml_1_2(written: str, value: object) -> None:
    found = read_text(f"a: {written}\n", "f.yaml").plain["a"]
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_float() -> None:
    assert math.isnan(read_text("a: .nan", "f.yaml").plain["a"])


def test_every_value_and_key_knows_its_place() -> None:
    tree = read_text("problem:\n  use: a.b\n  list: [1, {c: 2}]\n", "dir/f.yaml")
    assert tree.plain == {"problem": {"use": "a.b", "list": [1, {"c": 2}]}}
    assert str(tree.place_of(("problem", "use"))) == "dir/f.yaml:2:8"
    assert str(tree.place_of(("problem", "use"), key=True)) == "dir/f.yaml:2:3"
    assert str(tree.place_of(("problem", "list", 1, "c"))) == "dir/f.yaml:3:17"
    assert str(tree.place_of(("problem", "list", 1, "absent"))) == "dir/f.yaml:3:13"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2\n", "f.yaml:2:1: key 'a' is given twice (first at f.yaml:1:1); keep one"),
        ("x: {b: 1, b: 2}\n", "f.yaml:1:11: key 'b' is given twice (first at f.yaml:1:5); keep one"),
        ("b:\n\t- 2\n", "f.yaml:2:1: this is not YAML: a tab may not be used to indent; use spaces"),
        ("a: [1,\n 2\n", "f.yaml:3:1: this is not YAML: a '[' or '{' is not closed (it opens at line 1, column 4)"),
        ("a: 'x\n", "f.yaml:2:1: this is not YAML: the quote is not closed (it opens at line 1, column 4)"),
        (
            "a: 1\n---\nb: 2\n",
            "f.yaml:2:1: this is not YAML: a run file is one YAML document; remove everything from this '---' on",
        ),
        (
            "a: *x\n",
            "f.yaml:1:4: this is not YAML: there is no anchor for this alias; text that begins with '*' needs quotes",
        ),
        ("a: %x\n", "f.yaml:1:4: this is not YAML: found character '%'; such text needs quotes"),
        ("a: &a [*a]\n", "f.yaml:1:4: an alias stands inside the value that it repeats"),
        (
            "<<: {a: 1}\n",
            "f.yaml:1:1: merge keys ('<<') are not used in run files; write the keys out or use 'extends'",
        ),
        ("1: 2\n", "f.yaml:1:1: a key must be text, got int 1; put it in quotes"),
        (
            "a: !!python/name:os.system x\n",
            "f.yaml:1:4: tags such as '!!python/name:os.system' are not used in run files; remove it",
        ),
        ("a: !!int abc\n", "f.yaml:1:4: 'abc' is not of the type that its tag '!!int' says"),
        ("- 1\n", "f.yaml:1:1: a mapping such as 'problem: ...' was expected, got a list"),
        ("just words\n", "f.yaml:1:1: a mapping such as 'problem: ...' was expected, got str 'just words'"),
        ("", "f.yaml:1:1: the file is empty; a run file needs at least a line 'problem: ...'"),
        ("# a comment\n", "f.yaml:1:1: the file is empty; a run file needs at least a line 'problem: ...'"),
        ("a: 1\nb: \x01\n", "f.yaml:2:4: character U+0001 may not stand in YAML"),
    ],
)
def test_mistakes_have_a_place_and_a_remedy(text: str, expected: str) -> None:
    assert messages(text) == [expected]


def test_several_mistakes_come_together() -> None:
    assert len(messages("a: 1\na: 2\n1: 3\nb: !x y\n")) == 3


def test_aliases_repeat_values() -> None:
    assert read_text("a: &v {c: 1}\nb: *v\n", "f.yaml").plain == {"a": {"c": 1}, "b": {"c": 1}}


def test_aliases_are_bounded() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    found = messages("\n".join(lines))
    assert len(found) == 1
    assert f"more than {MAX_VALUES} values" in found[0]


@pytest.mark.parametrize("depth", [70, 3000])
def test_depth_is_bounded(depth: int) -> None:
    assert "nested too deeply" in messages("x: " + "[" * depth + "]" * depth)[0]


def test_a_number_of_many_digits_is_refused() -> None:
    assert "5000 digits" in messages("x: " + "7" * 5000)[0]


@pytest.mark.parametrize(
    "text",
    [
        "s: max_iter(1e4) | bad(1)\n",
        "s: 'it''s max_iter(1) | bad(1)'\n",
        's: "a\\tb \\x41 | bad(1)"\n',
        's: "one \\\n    two bad(1)"\n',
        "s: >-\n   max_iter(1e4)\n   | bad(1)\n",
        "s: |\n   max_iter(1e4)\n   | bad(1)\n",
        "s: max_iter(1e4)\n  | bad(1)\n",
        "s: 'a\n\n   bad(1)'\n",
    ],
)
def test_characters_of_strings_are_found(text: str) -> None:
    node = read_text(text, "f.yaml").find(("s",))
    assert node is not None
    place = node.at(node.value.index("bad"))
    assert text.splitlines()[place.line - 1][place.column - 1 :].startswith("bad(1)")


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_gives_a_tree_or_located_mistakes(text: str) -> None:
    try:
        tree = read_text(text, "f.yaml")
        data, issues = tree.plain, []
    except RunFileError as error:
        data, issues = None, [str(one) for one in error.issues]
    assert isinstance(data, dict) or issues
    assert all(one.startswith("f.yaml:") and "\n" not in one for one in issues)


@given(st.text(max_size=30))
def test_positions_cover_double_quoted_text(value: str) -> None:
    node = read_text("s: " + json.dumps(value), "f.yaml").find(("s",))
    assert node is not None
    if isinstance(node.value, str):
        assert len(node.text) == len(node.value)


def test_files_that_cannot_be_read(tmp_path) -> None:
    cases = {"absent.yaml": "there is no such file"}
    (tmp_path / "folder.yaml").mkdir()
    cases["folder.yaml"] = "this is a folder, a run file was expected"
    for name, expected in cases.items():
        with pytest.raises(RunFileError) as caught:
            read_file(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {expected}"


def test_text_that_is_not_utf_8(tmp_path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: 1\nname: caf\xe9\n")
    with pytest.raises(RunFileError) as caught:
        read_file(path)
    assert str(caught.value) == f"{path}:2:10: byte 0xe9 is not UTF-8; save the file as UTF-8"


def test_a_byte_order_mark_is_no_mistake(tmp_path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    tree = read_file(path)
    assert tree.plain == {"a": 1, "b": 2}
    assert str(tree.place_of(("b",))) == f"{path}:2:4"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("", None),
        ("[1, 2]", [1, 2]),
        ("{use: a.b, n: 3}", {"use": "a.b", "n": 3}),
        ("max_iter(10) | max_time(5)", "max_iter(10) | max_time(5)"),
        ("& x", "& x"),
        ("a: b", "a: b"),
        ("- a", "- a"),
        ("'1'", "1"),
        ("%x", "%x"),
    ],
)
def test_override_values(text: str, value: object) -> None:
    assert read_value(text, Place("<here>")).plain == value


def test_an_unclosed_override_is_a_mistake() -> None:
    with pytest.raises(RunFileError, match=r"^<here>: this is not YAML: a '\[' or '\{' is not closed"):
        read_value("[1, 2", Place("<here>"))

"""`extends`, overrides and origins."""

from __future__ import annotations

import pytest

from infimum.runfile.loader import load_tree
from infimum.runfile.tree import RunFileError


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def loaded(path, *overrides: str):
    tree, issues = load_tree(path, overrides)
    assert issues == []
    return tree


def test_mappings_are_merged_and_lists_replaced(write) -> None:
    write("base.yaml", "problem: {use: a.b, n: 1, deep: {x: 1, y: 2}}\nconstraints: [{use: c.d}]\nseed: 1\n")
    write("run.yaml", "extends: base.yaml\nproblem: {n: 2, deep: {y: 3}}\nconstraints: [{use: e.f}]\n")
    assert loaded("run.yaml").plain == {
        "problem": {"use": "a.b", "n": 2, "deep": {"x": 1, "y": 3}},
        "constraints": [{"use": "e.f"}],
        "seed": 1,
    }


def test_another_component_takes_no_option_of_the_old_one(write) -> None:
    write("base.yaml", "problem: {use: a.b, n: 1}\nsolver: {use: s.t, step: {use: q.r, c: 1}, alien: 3}\n")
    write("run.yaml", "extends: base.yaml\nsolver: {use: x.y, step: 2}\n")
    assert loaded("run.yaml").plain["solver"] == {"use": "x.y", "step": 2}
    write("run.yaml", "extends: base.yaml\nsolver: {step: {use: z.z}}\n")
    assert loaded("run.yaml").plain["solver"] == {"use": "s.t", "step": {"use": "z.z"}, "alien": 3}
    write("run.yaml", "extends: base.yaml\nsolver: x.y\n")
    assert loaded("run.yaml").plain["solver"] == "x.y"


def test_the_same_component_without_its_plugin_is_merged(write) -> None:
    write("base.yaml", "solver: {use: s.t, step: 1, more: 2}\n")
    write("run.yaml", "extends: base.yaml\nsolver: {use: t, step: 5}\n")
    assert loaded("run.yaml").plain["solver"] == {"use": "t", "step": 5, "more": 2}


def test_options_reach_a_bare_name(write) -> None:
    write("base.yaml", "solver: s.t\noracles: {tv: h.p}\n")
    write("run.yaml", "extends: base.yaml\noracles: {tv: {samples: 3}}\n")
    assert loaded("run.yaml", "solver.step=1").plain == {
        "solver": {"use": "s.t", "step": 1},
        "oracles": {"tv": {"use": "h.p", "samples": 3}},
    }


def test_stopping_is_replaced_as_a_whole(write) -> None:
    write("base.yaml", "stopping: {any: [{max_iter: 1}]}\nx0: {file: a.npz, key: k}\n")
    write("run.yaml", "extends: base.yaml\nstopping: {all: [{max_iter: 2}]}\nx0: {file: b.npy}\n")
    assert loaded("run.yaml").plain == {"stopping": {"all": [{"max_iter": 2}]}, "x0": {"file": "b.npy"}}


def test_null_takes_a_value_away(write) -> None:
    write("base.yaml", "seed: 3\nname: x\n")
    write("run.yaml", "extends: base.yaml\nseed: null\n")
    assert loaded("run.yaml").plain == {"name": "x"}


def test_a_chain_of_files_is_relative_to_each(write) -> None:
    write("low/base.yaml", "name: low\nseed: 1\n")
    write("low/middle.yaml", "extends: base.yaml\nname: middle\n")
    path = write("run.yaml", "extends: low/middle.yaml\n")
    tree = loaded(path)
    assert tree.plain == {"name": "middle", "seed": 1}
    assert str(tree.place_of(("seed",))) == f"{path.parent}/low/base.yaml:2:7"


def test_circles_are_refused_with_their_chain(write) -> None:
    write("a.yaml", "extends: b.yaml\n")
    write("b.yaml", "extends: ./a.yaml\n")
    with pytest.raises(RunFileError) as caught:
        load_tree("a.yaml")
    assert str(caught.value) == "b.yaml:1:10: 'extends' goes in a circle: a.yaml -> b.yaml -> a.yaml"
    write("self.yaml", "extends: self.yaml\n")
    with pytest.raises(RunFileError, match=r"self.yaml -> self.yaml"):
        load_tree("self.yaml")


def test_extends_must_name_a_file(write) -> None:
    write("run.yaml", "extends: nowhere.yaml\n")
    with pytest.raises(RunFileError, match=r"^run.yaml:1:10: 'extends' names nowhere.yaml, which is no file"):
        load_tree("run.yaml")
    write("run.yaml", "extends: [a, b]\n")
    with pytest.raises(RunFileError, match=r"takes the path of one run file, got a list"):
        load_tree("run.yaml")


@pytest.mark.parametrize(
    ("argument", "path", "value"),
    [
        ("solver.step=1e-3", ("solver", "step"), 0.001),
        ("constraints.0.lower=1", ("constraints", 0, "lower"), 1),
        ("constraints.1=c.d", ("constraints", 1), "c.d"),
        ("stopping=max_iter(10) | max_time(5)", ("stopping",), "max_iter(10) | max_time(5)"),
        ("new.deep.key=[1,2]", ("new", "deep", "key"), [1, 2]),
        ("solver={use: x}", ("solver",), {"use": "x"}),
        ("problem.flag=yes", ("problem", "flag"), "yes"),
        ("name=a=b", ("name",), "a=b"),
    ],
)
def test_overrides(write, argument: str, path: tuple, value: object) -> None:
    write("run.yaml", "problem: {use: a.b}\nsolver: {use: s.t, step: 1}\nconstraints: [{use: c}, {use: d}]\n")
    node = loaded("run.yaml", argument).find(path)
    assert node is not None
    assert node.plain == value
    assert str(node.place) == f"<command line, argument 1: '{argument}'>"


def test_the_order_of_overrides_does_not_matter(write) -> None:
    write("run.yaml", "solver: {use: s.t, step: 1, old: 2}\n")
    for order in (["solver.use=x.y", "solver.step=5"], ["solver.step=5", "solver.use=x.y"]):
        assert loaded("run.yaml", *order).plain["solver"] == {"use": "x.y", "step": 5}
    for order in (["solver=x.y", "solver.step=5"], ["solver.step=5", "solver=x.y"]):
        assert loaded("run.yaml", *order).plain["solver"] == {"use": "x.y", "step": 5}
    assert loaded("run.yaml", "solver.step=5", "solver.step=6").plain["solver"]["step"] == 6


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("seed", "an override has the form key=value, such as solver.step=1e-3 or constraints.0.lower=1"),
        ("a..b=1", "an override has the form key=value, such as solver.step=1e-3 or constraints.0.lower=1"),
        (
            "constraints.3.lower=1",
            "'constraints' is a list of 1 (at run.yaml:2:14); '3' is no position in it, positions are 0 to 0",
        ),
        (
            "constraints.first=1",
            "'constraints' is a list of 1 (at run.yaml:2:14); 'first' is no position in it, positions are 0 to 0",
        ),
        ("seed.a=1", "'seed' is int 7 (at run.yaml:1:7), so 'seed.a' can't be set; set 'seed' itself"),
        ("seed=[1", "this is not YAML: a '[' or '{' is not closed (it opens at line 1, column 1)"),
        ("extends=x.yaml", "'extends' can't be given on the command line"),
    ],
)
def test_overrides_that_fit_nowhere(write, argument: str, message: str) -> None:
    write("run.yaml", "seed: 7\nconstraints: [{use: c}]\n")
    _, issues = load_tree("run.yaml", ["name=x", argument])
    assert [str(one) for one in issues] == [f"<command line, argument 2: '{argument}'>: {message}"]


def test_an_override_beats_the_file_which_beats_what_it_extends(write) -> None:
    write("base.yaml", "solver: {use: s.t, a: 1, b: 1, c: 1}\n")
    write("run.yaml", "extends: base.yaml\nsolver: {b: 2, c: 2}\n")
    tree = loaded("run.yaml", "solver.c=3")
    assert tree.plain["solver"] == {"use": "s.t", "a": 1, "b": 2, "c": 3}
    origins = {path[-1]: str(node.place) for path, node in tree.leaves()}
    assert origins == {
        "use": "base.yaml:1:15",
        "a": "base.yaml:1:23",
        "b": "run.yaml:2:13",
        "c": "<command line, argument 1: 'solver.c=3'>",
    }


def test_values_know_the_folder_that_they_are_relative_to(write) -> None:
    write("low/base.yaml", "x0: {file: a.npz}\nproblem: {use: a.b}\n")
    path = write("run.yaml", "extends: low/base.yaml\nproblem: {data: {file: b.csv}}\n")
    tree = loaded(path)
    assert tree.find(("x0", "file")).base == str(path.parent / "low")
    assert tree.find(("problem", "data", "file")).base == str(path.parent)

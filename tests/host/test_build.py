"""Building components from names, mappings, python: references and ready objects."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import Annotated, Any

import annotated_types
import pytest

from infimum.errors import InputError, PluginError, UnknownNameError
from infimum.plugins.build import Built, build, check_build
from infimum.plugins.records import Component, PluginRecord
from infimum.plugins.registry import Registry


@dataclass(frozen=True)
class Fixed:
    """A schedule."""

    value: Annotated[float, annotated_types.Gt(0)]

    def __call__(self, k: int) -> float:
        return self.value


@dataclass(frozen=True)
class Descent:
    """A solver."""

    step: float | Fixed = 0.1
    count: int = 1
    inner: Any = None

    def __post_init__(self) -> None:
        if self.count > 100:
            raise InputError(f"count must be at most 100, got {self.count}")
        if self.count == 13:
            raise RuntimeError("bad luck")
        if self.count == 14:
            raise InputError("p.descent: count=14 is worse")


class Problem:
    family = "test"

    def __init__(self, n: int) -> None:
        self.n = n


def make(n: int, noise: float = 0.0) -> Problem:
    return Problem(n)


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setitem(sys.modules, "build_targets_for_tests", sys.modules[__name__])

    def component(name, kind, attribute):
        return Component(name, kind, f"build_targets_for_tests:{attribute}", plugin="p", distribution="infimum-p")

    return Registry(
        [
            PluginRecord(
                "p",
                "infimum-p",
                "1.0",
                "active",
                components=(
                    component("p.descent", "solver", "Descent"),
                    component("p.fixed", "schedule", "Fixed"),
                    component("p.make", "problem", "make"),
                    component("p.problem", "problem", "Problem"),
                    component("p.gone", "solver", "Gone"),
                ),
            ),
        ]
    )


@pytest.fixture
def code(tmp_path):
    """Write modules into folders; forget them afterwards."""
    before = set(sys.modules)

    def write(text, name="user_code_for_build", folder="here"):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        (place / f"{name}.py").write_text(textwrap.dedent(text))
        return place

    yield write
    for name in set(sys.modules) - before:
        if "for_build" in name:
            del sys.modules[name]


def test_a_name_and_a_mapping(registry):
    assert build("descent", "solver", registry=registry) == Built(Descent(), "p.descent", {})
    built = build({"use": "p.descent", "step": 1, "count": 1e1}, "solver", registry=registry)
    assert built == Built(Descent(step=1.0, count=10), "p.descent", {"step": 1.0, "count": 10})
    assert built.spec == {"use": "p.descent", "step": 1.0, "count": 10}


def test_nested_components_are_built_first(registry):
    inner = [{"deep": {"use": "fixed", "value": 1}}, 5]
    spec = {"use": "descent", "step": {"use": "fixed", "value": 2}, "inner": inner}
    built = build(spec, "solver", registry=registry)
    assert built.instance.step == Fixed(2.0)
    assert built.instance.inner == [{"deep": Fixed(1.0)}, 5]
    assert built.options == {
        "step": {"use": "p.fixed", "value": 2.0},
        "inner": [{"deep": {"use": "p.fixed", "value": 1.0}}, 5],
    }
    assert build(built.spec, "solver", registry=registry) == built


def test_ready_objects_and_classes(registry):
    solver = Descent(step=3.0)
    assert build(solver, "solver", registry=registry) == Built(solver, "Descent", {})
    assert build(solver, "solver", registry=registry).instance is solver
    assert build(Descent, "solver", registry=registry).instance == Descent()

    def objective(x):
        return x @ x

    assert build(objective, "problem", registry=registry) == Built(objective, "objective", {})


def test_all_issues_with_paths(registry):
    built, issues = check_build(
        {"use": "p.descent", "step": {"use": "p.fixed", "value": -1}, "cuont": 2, "inner": {"use": "p.fixd"}},
        "solver",
        ("solver",),
        registry=registry,
    )
    assert built is None
    assert [(one.path, one.message) for one in issues] == [
        (("solver", "step", "value"), "schedule p.fixed: option 'value': expected a number > 0, got int -1"),
        (("solver", "inner", "use"), "no component called 'p.fixd'; did you mean 'p.fixed'?"),
        (
            ("solver", "cuont"),
            "solver p.descent has no option 'cuont'; did you mean 'count'? (options: step, count, inner)",
        ),
    ]


def test_an_unknown_name_still_shows_what_is_wrong_below(registry):
    _, issues = check_build({"use": "p.descnt", "step": {"use": "p.fixed"}}, "solver", ("solver",), registry=registry)
    assert [one.path for one in issues] == [("solver", "use"), ("solver", "step")]
    _, (issue,) = check_build("p.descnt", "solver", ("solver",), registry=registry)
    assert issue.path == ("solver",)


@pytest.mark.parametrize(
    ("spec", "path", "said"),
    [
        ({"step": 1}, (), "solver: 'use' must name a solver, such as use: plugin.name; there is no 'use'"),
        ({"use": 3}, ("use",), "got int 3"),
        ({"use": "p.descent", "count": 101}, (), "solver p.descent: count must be at most 100, got 101"),
        ({"use": "p.descent", "count": 13}, (), "solver p.descent: RuntimeError: bad luck ("),
        ({"use": "p.gone"}, ("use",), "solver p.gone of plugin p points to"),
    ],
)
def test_what_cannot_be_built(registry, spec, path, said):
    built, (issue,) = check_build(spec, "solver", registry=registry)
    assert built is None
    assert issue.path == path
    assert said in issue.message


def test_build_raises_what_fits(registry):
    with pytest.raises(UnknownNameError, match=r"did you mean 'p\.descent'"):
        build("p.descnt", "solver", registry=registry)
    with pytest.raises(PluginError, match="p\\.gone"):
        build("p.gone", "solver", registry=registry)
    with pytest.raises(InputError) as caught:
        build({"use": "p.descent", "count": "a", "stp": 1}, "solver", registry=registry)
    assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(InputError) as caught:
        build({"use": "p.descent", "count": 13}, "solver", registry=registry)
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(InputError, match=r"^solver p\.descent: count=14 is worse$"):
        build({"use": "p.descent", "count": 14}, "solver", registry=registry)


def test_problem_factories_need_their_options(registry):
    assert build({"use": "p.make", "n": 3}, "problem", registry=registry).instance.n == 3
    for name in ("p.make", "p.problem"):
        with pytest.raises(InputError, match=f"problem {name} needs option 'n' \\(integer\\)"):
            build(name, "problem", registry=registry)


USER = """
    import functools

    def my_problem(n: int = 5):
        return ["problem", n]

    def objective(x, shift=0.0):
        return (x - shift) ** 2

    def scaled(x, factor):
        return factor * x

    class Mine:
        def __init__(self, n: int = 1):
            self.n = n

    ready = Mine(7)
    doubled = functools.partial(my_problem, n=10)
"""


@pytest.mark.parametrize("base_as", [str, lambda path: path])
def test_python_factories_and_objects(code, base_as):
    base = base_as(code(USER))

    def made(attribute, **options):
        return build({"use": f"python:user_code_for_build:{attribute}", **options}, "problem", base=base)

    assert made("my_problem", n=50.0) == Built(["problem", 50], "python:user_code_for_build:my_problem", {"n": 50})
    assert made("my_problem").instance == ["problem", 5]
    assert made("Mine", n=2).instance.n == 2
    assert made("ready").instance.n == 7
    assert made("doubled").instance == ["problem", 10]
    with pytest.raises(InputError, match="is a ready object and takes no options, got 'n'"):
        made("ready", n=1)


def test_python_objectives_stay_functions(code):
    base = code(USER)
    plain = build("python:user_code_for_build:objective", "problem", base=base).instance
    assert plain(3.0) == 9.0
    bound = build({"use": "python:user_code_for_build:objective", "shift": 1}, "problem", base=base)
    assert isinstance(bound.instance, functools.partial)
    assert bound.instance(3.0) == 4.0
    assert bound.options == {"shift": 1}
    assert build({"use": "python:user_code_for_build:scaled", "factor": 2}, "problem", base=base).instance(4.0) == 8.0
    with pytest.raises(InputError, match="needs option 'factor'"):
        build("python:user_code_for_build:scaled", "problem", base=base)
    with pytest.raises(InputError, match=r"has no option 'shft'; did you mean 'shift'\? \(options: shift\)"):
        build({"use": "python:user_code_for_build:objective", "shft": 1}, "problem", base=base)


def test_python_can_be_refused(code):
    base = code("raise AssertionError('imported')")
    with pytest.raises(InputError, match="--no-python"):
        build("python:user_code_for_build:f", "problem", base=base, allow_python=False)
    _, (issue,) = check_build(
        {"use": "python:user_code_for_build:f"}, "problem", ("problem",), base=base, allow_python=False
    )
    assert issue.path == ("problem", "use")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("python:user_code_for_build:my_problm", "has no 'my_problm'; did you mean 'my_problem'?"),
        ("python:user_code_for_bild:f", "did you mean 'user_code_for_build'?"),
        ("python:user_code_for_build.part:f", "module 'user_code_for_build.part' was not found"),
        ("python:user_code_for_build", "write python:package.module:attribute"),
        ("python:user_code_for_build.py:f", "without '.py'"),
        ("python:Mine:", "is no reference to Python code"),
    ],
)
def test_python_references_that_lead_nowhere(code, reference, said):
    base = code(USER)
    with pytest.raises(InputError) as caught:
        build(reference, "problem", base=base)
    assert said in str(caught.value)
    if "not found" in str(caught.value):
        assert str(base) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nraise KeyError('data')\n", "KeyError: 'data' ({file}:2)"),
        ("import absent_for_sure_library\n", "No module named 'absent_for_sure_library' ({file}:1)"),
        ("def f(:\n", "SyntaxError"),
        ("raise SystemExit(2)\n", "SystemExit: 2 ({file}:1)"),
    ],
)
def test_an_exception_in_the_users_module_tells_the_place(code, text, said):
    base = code(text)
    with pytest.raises(InputError) as caught:
        build("python:user_code_for_build:f", "problem", base=base)
    assert said.format(file=base / "user_code_for_build.py") in str(caught.value)


def test_an_exception_in_the_users_factory_tells_the_place(code):
    base = code("def f(n=1):\n    return {}['key']\n")
    with pytest.raises(InputError, match=r"KeyError: 'key' \(.*user_code_for_build\.py:2\)"):
        build("python:user_code_for_build:f", "problem", base=base)


def test_each_folder_has_its_own_modules(code):
    one = code("from helper_for_build import name\nmade = [name]\n", folder="one")
    code("name = 'one'\n", name="helper_for_build", folder="one")
    two = code("from helper_for_build import name\nmade = [name]\n", folder="two")
    code("name = 'two'\n", name="helper_for_build", folder="two")
    three = code("import helper_for_build\nmade = []\n", folder="three")

    def made(base):
        return build("python:user_code_for_build:made", "problem", base=base).instance

    first = made(one)
    assert first == ["one"]
    assert made(two) == ["two"]
    assert made(one) is first
    with pytest.raises(InputError, match="No module named 'helper_for_build'"):
        made(three)
    assert made(two) == ["two"]
    assert str(one) not in sys.path


def test_a_module_that_the_program_imported_from_elsewhere_is_not_served(code, monkeypatch):
    elsewhere = code("made = ['elsewhere']\n", folder="elsewhere")
    here = code("made = ['here']\n", folder="here")
    monkeypatch.syspath_prepend(elsewhere)
    import user_code_for_build

    assert user_code_for_build.made == ["elsewhere"]
    assert build("python:user_code_for_build:made", "problem", base=here).instance == ["here"]


def test_a_file_named_like_an_installed_module_is_refused(code):
    base = code("made = 1\n", name="json")
    with pytest.raises(InputError, match=r"an installed module \(.*\) has the name of .*json\.py; rename"):
        build("python:json:made", "problem", base=base)
    import json

    assert json.dumps([]) == "[]"


def test_packages_below_the_folder(code):
    base = code("", name="unused_for_build")
    package = base / "package_for_build"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("class Holder:\n    made = ['inner']\n")
    assert build("python:package_for_build.inner:Holder.made", "problem", base=base).instance == ["inner"]


def test_python_needs_no_registry(code):
    """A reference to Python code is built without looking at installed plugins."""
    base = code(USER)
    script = (
        "import sys\n"
        "from infimum.plugins import registry\n"
        "from infimum.plugins.build import build\n"
        f"print(build('python:user_code_for_build:my_problem', 'problem', base={str(base)!r}).instance)\n"
        "assert registry._registry is None\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "['problem', 5]", done.stderr

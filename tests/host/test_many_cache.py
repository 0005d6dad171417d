"""What defines a run: its words, the code of plugins, the user's modules with what they import, data files."""

from __future__ import annotations

import json
import os
import shutil

import pytest

import infimum
from infimum.many import sources
from infimum.many.cache import Cache
from infimum.runfile import RunFile

MAIN = """
import numpy as np
from infimum import Composite
from infimum.functions import LeastSquares
import x_cache_helper
from x_cache_package import inner

def make(n: int = 3) -> Composite:
    scale = x_cache_helper.SCALE * inner.FACTOR
    weights = np.loadtxt(__file__.replace("x_cache_main.py", "weights.csv"))
    return Composite({"loss": LeastSquares(scale * np.eye(n), np.full(n, float(weights)), reduction="sum")})
"""
FILES = {
    "x_cache_main.py": MAIN,
    "x_cache_helper.py": "def late():\n    import x_cache_deep\n\nSCALE = 1.0\n",
    "x_cache_deep.py": "DEEP = 1\n",
    "x_cache_other.py": "UNUSED = 1\n",
    "x_cache_package/__init__.py": "from .beside import THING\n",
    "x_cache_package/inner.py": "from . import beside\nFACTOR = 1.0\n",
    "x_cache_package/beside.py": "THING = 1\n",
    "weights.csv": "1.0\n",
    "run.yaml": 'problem: {use: "python:x_cache_main:make"}\n'
    "solver: {use: splitting.gradient_descent, step: 0.1}\nstopping: max_iter(5)\nseed: 1\nrepeat: 2\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INFIMUM_CACHE", str(tmp_path / "cache"))
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def config(folder) -> dict:
    (folder / "one.yaml").write_text(FILES["run.yaml"].replace("repeat: 2\n", ""))
    return RunFile.load(folder / "one.yaml").resolved()


@pytest.mark.parametrize(
    "name",
    [
        "x_cache_main.py",
        "x_cache_helper.py",
        "x_cache_deep.py",
        "x_cache_package/__init__.py",
        "x_cache_package/inner.py",
        "x_cache_package/beside.py",
        "weights.csv",
    ],
)
def test_a_change_of_any_file_behind_a_run_changes_its_key(folder, name: str) -> None:
    stated = config(folder)
    before = Cache.key(stated, 0)
    assert before == Cache.key(stated, 0) and before != Cache.key(stated, 1)
    path = folder / name
    path.write_text(path.read_text() + ("# more\n" if name.endswith(".py") else "\n"))
    assert Cache.key(stated, 0) != before


def test_a_file_that_nothing_imports_changes_nothing(folder) -> None:
    stated = config(folder)
    before = Cache.key(stated, 0)
    (folder / "x_cache_other.py").write_text("UNUSED = 2\n")
    assert Cache.key(stated, 0) == before


def test_names_and_folders_change_nothing_options_and_seeds_do(folder) -> None:
    stated = config(folder)
    before = Cache.key(stated, 0)
    assert Cache.key({**stated, "name": "other", "output": {"dir": "elsewhere"}}, 0) == before
    assert Cache.key(dict(reversed(stated.items())), 0) == before
    assert Cache.key({**stated, "seed": 2}, 0) != before
    assert Cache.key({**stated, "solver": {**stated["solver"], "step": 0.2}}, 0) != before


def test_the_code_of_a_plugin_and_its_needs_are_in_the_key(folder, monkeypatch) -> None:
    stated = config(folder)
    before = Cache.key(stated, 0)
    assert "infimum:content" in sources.facts(stated)["code"]["splitting"]
    monkeypatch.setattr(sources, "package_hash", lambda package: f"other {package}")
    sources._plugin.cache_clear()
    try:
        assert Cache.key(stated, 0) != before
    finally:
        sources._plugin.cache_clear()


def test_a_plugin_that_a_module_imports_is_in_the_key(folder) -> None:
    stated = config(folder)
    assert "zeroth" not in sources.facts(stated)["code"]
    path = folder / "x_cache_deep.py"
    path.write_text("def late():\n    import infimum_zeroth\n")
    found = sources.facts(stated)
    assert "infimum-zeroth:content" in found["code"]["zeroth"]
    assert all(one.startswith(str(folder)) for one in found["files"]), "files of plugins are known by their package"


def sweep(**more):
    return infimum.sweep("run.yaml", jobs=1, **more)


def test_finished_runs_are_taken_from_the_cache(folder) -> None:
    first, second = sweep(), sweep()
    assert [one.cached for one in first] == [False, False]
    assert [one.cached for one in second] == [True, True]
    assert [one.result.value for one in second] == [one.result.value for one in first]
    assert [one.cached for one in sweep(fresh=True)] == [False, False]
    assert [one.cached for one in sweep(cache=False)] == [False, False]


def test_order_and_number_of_workers_change_neither_keys_nor_results(folder) -> None:
    first = infimum.sweep("run.yaml", jobs=1, product={"solver.step": [0.1, 0.2]})
    second = infimum.sweep("run.yaml", jobs=1, product={"solver.step": [0.2, 0.3, 0.1]})
    assert [one.cached for one in second] == [True, True, False, False, True, True]
    values = {one.name: one.result.value for one in first}
    assert all(values[one.name] == one.result.value for one in second if one.name in values)


def test_files_of_observers_come_along_and_others_are_written_anew(folder) -> None:
    def watched(*observers: dict) -> tuple[list[bool], list[bool]]:
        (folder / "watched.yaml").write_text(f"{FILES['run.yaml']}observers: {json.dumps(observers)}\n")
        runs = infimum.sweep("watched.yaml", jobs=1, folder=folder / f"out{len(list(folder.glob('out*')))}")
        return [one.cached for one in runs], [(one.folder / "progress.csv").exists() for one in runs]

    csv, apart = {"use": "core.csv"}, {"use": "core.csv", "path": str(folder / "apart.csv"), "overwrite": True}
    sweep()
    assert watched(csv) == ([False, False], [True, True])
    assert watched(csv) == ([True, True], [True, True])
    assert watched() == ([True, True], [False, False])
    for _ in range(2):
        assert watched(apart) == ([False, False], [False, False])
        (folder / "apart.csv").unlink()
    told = folder / "x_cache_told.py"
    told.write_text("def make():\n    return lambda progress: None\n")
    for _ in range(2):
        assert watched({"use": "python:x_cache_told:make"}) == ([False, False], [False, False])


@pytest.mark.filterwarnings("ignore::infimum.InfimumWarning")
def test_what_may_end_otherwise_is_not_cached(folder) -> None:
    text = FILES["run.yaml"]
    (folder / "drawn.yaml").write_text(text.replace("seed: 1\n", ""))
    infimum.sweep("drawn.yaml", jobs=1)
    (folder / "nan.yaml").write_text(text.replace("step: 0.1", "step: 1e200").replace("max_iter(5)", "max_iter(50)"))
    lost = infimum.sweep("nan.yaml", jobs=1)
    assert {one.status for one in lost} <= {"nonfinite", "diverged"}
    infimum.sweep(lambda x: float(x @ x), x0=[1.0], solver="scipy.nelder_mead", seed=1, repeat=2, jobs=1)
    assert list(Cache().entries()) == []


def test_runs_that_a_time_limit_ended_are_marked(folder) -> None:
    (folder / "timed.yaml").write_text(FILES["run.yaml"].replace("max_iter(5)", "max_time(0.02)"))
    infimum.sweep("timed.yaml", jobs=1)
    again = infimum.sweep("timed.yaml", jobs=1)
    assert all(one.cached and "time limit" in one.notes[-1] for one in again)
    assert all(one["time_limited"] for one in Cache().entries())


def test_a_damaged_entry_counts_as_absent(folder) -> None:
    sweep()
    for entry in (folder / "cache").iterdir():
        if (entry / "member.json").exists():
            (entry / "member.json").write_text("{")
    assert [one.cached for one in sweep()] == [False, False]


def test_a_copy_that_is_cut_off_leaves_nothing_behind(folder, monkeypatch) -> None:
    sweep()

    def cut(entry, target):
        target.mkdir()
        shutil.copy2(entry / "result.json", target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copytree", cut)
        with pytest.raises(KeyboardInterrupt):
            sweep(folder="out")
    assert list((folder / "out" / "members").iterdir()) == []
    assert "interrupted" in str(infimum.Runs.load("out"))
    assert [one.cached for one in sweep(folder="out", resume=True)] == [True, True]


def test_a_cache_that_cannot_be_written_is_no_error(folder, monkeypatch, caplog) -> None:
    (folder / "taken").write_text("a file")
    monkeypatch.setenv("INFIMUM_CACHE", str(folder / "taken" / "cache"))
    assert [one.status for one in sweep()] == ["limit", "limit"]
    assert "not cached" in caplog.text


def test_clearing(folder) -> None:
    sweep()
    cache = Cache()
    assert len(list(cache.entries())) == 2 and cache.clear(older_than=3600) == 0
    for entry in cache.folder.iterdir():
        os.utime(entry, (0, 0))
    assert cache.clear(older_than=3600) == 2 and list(cache.entries()) == []

"""Plain trees: freeze and thaw, generators of every kind, files that are damaged, foreign or of other versions."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import pkgutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from infimum import InputError
from infimum.checkpoint import _digest, freeze, load_tree, merge, save_tree, split, thaw


def change_data(folder: Path, old: str, new: str) -> None:
    """Change the data of `state.json` as another machine might have written them, checksum included."""
    path = folder / "state.json"
    content = json.loads(path.read_text())
    content["data"] = json.loads(json.dumps(content["data"]).replace(old, new))
    content["sha256"] = _digest(content["data"])
    path.write_text(json.dumps(content))


def own_sum(folder: Path) -> None:
    """Let the JSON vouch for the arrays that are there."""
    path = folder / "state.json"
    content = json.loads(path.read_text())
    content["files"]["state.npz"]["sha256"] = hashlib.sha256((folder / "state.npz").read_bytes()).hexdigest()
    path.write_text(json.dumps(content))


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**130), 2**130),
    st.floats(),
    st.text(max_size=8),
    hnp.arrays(
        st.one_of(hnp.floating_dtypes(), hnp.integer_dtypes(), hnp.boolean_dtypes(), hnp.complex_number_dtypes()),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    ),
)
KEYS = st.one_of(st.text(max_size=5), st.sampled_from(["a", "a/b", "b", "file", "allow_pickle", "x.npy", "..", "/x"]))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and (one.tobytes() == other.tobytes())
        )
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    # The repr tells -0.0 from 0.0.
    return type(one) is type(other) and repr(one) == repr(other)


class TestRoundTrip:
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(tree=TREES)
    def test_files(self, tree: Any, tmp_path: Path) -> None:
        frozen = freeze(tree)
        save_tree(tmp_path, "state", tree)
        assert same(frozen, load_tree(tmp_path, "state"))
        assert sorted(os.listdir(tmp_path)) == ["state.json", "state.npz"]

    @settings(max_examples=100, deadline=None)
    @given(tree=TREES)
    def test_in_memory(self, tree: Any) -> None:
        frozen = freeze(tree)
        assert same(frozen, freeze(frozen)) and same(frozen, thaw(frozen))
        data, found = split(frozen)
        json.dumps(data, allow_nan=False)
        assert same(frozen, merge(data, found))

    def test_everything_is_copied(self) -> None:
        x = np.zeros(3)
        frozen = freeze({"x": x, "deep": [{"y": x}]})
        x += 1
        assert not frozen["x"].any() and not frozen["deep"][0]["y"].any()
        loaded = thaw(frozen)
        loaded["x"] += 5
        assert not frozen["x"].any()

    def test_numpy_scalars_and_tuples_become_plain(self) -> None:
        frozen = freeze({"a": np.float32(0.5), "b": np.int64(3), "c": (1, 2), "d": np.bool_(True), "e": np.float64(1)})
        assert frozen == {"a": 0.5, "b": 3, "c": [1, 2], "d": True, "e": 1.0}
        assert [type(one) for one in frozen.values()] == [float, int, list, bool, float]

    def test_names_stay_readable(self, tmp_path: Path) -> None:
        save_tree(tmp_path, "r", {"x": np.ones(2), "trace": {"value": np.ones(3)}})
        with np.load(tmp_path / "r.npz") as stored:
            assert sorted(stored.files) == ["trace/value", "x"]


def resolve(name: str) -> Any:
    return pkgutil.resolve_name(name)


@dataclass
class Odd:
    x: int = 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("tree", "words"),
        [
            ({"a": [1, {"b": Odd()}]}, r"state\.a\[1\]\.b holds a Odd"),
            ({"f": len}, r"state\.f holds a builtin_function_or_method"),
            ({"s": {1, 2}}, r"state\.s holds a set"),
            ({"z": 1j}, r"state\.z holds a complex"),
            ({"z": np.complex128(1)}, r"state\.z holds a complex"),
            ({"b": b"raw"}, r"state\.b holds a bytes"),
            ({"o": np.array([Odd(), None])}, r"state\.o holds a array of object"),
            ({"a": {1: 2}}, r"state\.a: keys of a state are strings.*got 1"),
            ({"a": {"__array__": 2}}, r"state\.a: keys .* other than __array__"),
            ({"r": np.random.RandomState(0)}, r"state\.r holds a RandomState"),
        ],
    )
    def test_odd_objects_with_their_path(self, tree: Any, words: str, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=words):
            freeze(tree)
        with pytest.raises(InputError):
            save_tree(tmp_path / "new", "state", tree)
        assert not (tmp_path / "new").exists()

    def test_a_bit_generator_of_someone_else(self) -> None:
        class Mine(np.random.PCG64):
            pass

        with pytest.raises(InputError, match=r"state\.rng is a generator on Mine"):
            freeze({"rng": np.random.Generator(Mine(0))})


class TestGenerators:
    @pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
    def test_numpy(self, kind: str, tmp_path: Path) -> None:
        rng = np.random.Generator(getattr(np.random, kind)(np.random.SeedSequence(7, spawn_key=(1, 2))))
        rng.standard_normal(5)
        rng.integers(0, 10, dtype=np.int32)
        rng.spawn(2)
        save_tree(tmp_path, "state", {"rng": rng})
        again = thaw(load_tree(tmp_path, "state"))["rng"]
        in_memory = thaw(freeze({"rng": rng}))["rng"]
        expected = [rng.standard_normal(50), rng.integers(0, 10, 7, dtype=np.int32), rng.spawn(1)[0].random(5)]
        for other in (again, in_memory):
            found = [other.standard_normal(50), other.integers(0, 10, 7, dtype=np.int32), other.spawn(1)[0].random(5)]
            for one, two in zip(expected, found, strict=True):
                np.testing.assert_array_equal(one, two)

    def test_thawing_twice_gives_two_generators(self) -> None:
        frozen = freeze(np.random.default_rng(0))
        one, other = thaw(frozen), thaw(frozen)
        assert one.random() == other.random()

    def test_torch(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        rng = torch.Generator().manual_seed(3)
        torch.randn(5, generator=rng)
        save_tree(tmp_path, "state", {"rng": rng})
        again = thaw(load_tree(tmp_path, "state"))["rng"]
        assert torch.equal(torch.randn(9, generator=rng), torch.randn(9, generator=again))


class TestTensors:
    @pytest.mark.parametrize(
        "dtype", ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "int64", "int8", "bool", "complex64"]
    )
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
    def test_round_trip(self, dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        x = torch.arange(math.prod(shape)).reshape(shape).to(getattr(torch, dtype))
        save_tree(tmp_path, "state", {"x": x, "list": [x]})
        loaded = load_tree(tmp_path, "state")
        for other in (loaded["x"], loaded["list"][0], freeze(x), thaw(freeze(x))):
            assert other.dtype == x.dtype and other.shape == x.shape
            assert torch.equal(other.to(torch.complex128), x.to(torch.complex128))

    def test_tensors_that_are_transposed_or_part_of_a_graph(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        x = torch.ones(2, 3, requires_grad=True)
        tree = {"t": (2 * x).T, "b": torch.arange(6).reshape(2, 3).T.to(torch.bfloat16)}
        save_tree(tmp_path, "state", tree)
        loaded = load_tree(tmp_path, "state")
        assert torch.equal(loaded["t"], tree["t"]) and torch.equal(loaded["b"], tree["b"])
        assert not loaded["t"].requires_grad

    def test_a_device_that_is_absent_gives_cpu_tensors(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("this machine has the device")
        save_tree(tmp_path, "state", {"x": torch.ones(2)})
        change_data(tmp_path, '"cpu"', '"cuda:3"')
        assert load_tree(tmp_path, "state")["x"].device.type == "cpu"


class TestFiles:
    @pytest.fixture
    def saved(self, tmp_path: Path) -> Path:
        save_tree(tmp_path, "state", {"x": np.arange(200.0), "k": 3})
        return tmp_path

    def broken(self, folder: Path, words: str) -> None:
        with pytest.raises(InputError, match=words):
            load_tree(folder, "state")

    @pytest.mark.parametrize("suffix", ["json", "npz"])
    def test_missing(self, saved: Path, suffix: str) -> None:
        (saved / f"state.{suffix}").unlink()
        self.broken(saved, rf"state\.{suffix}: no such file; expected state\.json and its arrays")

    def test_missing_folder(self, tmp_path: Path) -> None:
        self.broken(tmp_path / "none", "no such file")

    @pytest.mark.parametrize("suffix", ["json", "npz"])
    @pytest.mark.parametrize("keep", [0, 10, 60, -12, -3])
    def test_truncated(self, saved: Path, suffix: str, keep: int) -> None:
        path = saved / f"state.{suffix}"
        path.write_bytes(path.read_bytes()[:keep])
        self.broken(saved, rf"state\.{suffix}: ")

    def test_every_bit_that_flips_in_the_arrays_is_found(self, saved: Path) -> None:
        path = saved / "state.npz"
        content = bytearray(path.read_bytes())
        content[400] ^= 1
        path.write_bytes(bytes(content))
        self.broken(saved, r"state\.npz: does not fit its checksum in state\.json")
        own_sum(saved)
        self.broken(saved, r"state\.npz: cannot be read")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[1, 2]", "not a file that infimum wrote"),
            ("3", "not a file that infimum wrote"),
            ("{}", "not a file that infimum wrote"),
            ('{"format": 99, "data": {}}', "format 99; this version of infimum reads format 2"),
            ('{"data": {}}', "format None"),
            ("\udcff", "cannot be read"),
        ],
    )
    def test_foreign_json(self, saved: Path, text: str, words: str) -> None:
        (saved / "state.json").write_bytes(text.encode("utf8", "surrogateescape"))
        self.broken(saved, words)

    def test_foreign_arrays(self, saved: Path) -> None:
        np.savez(saved / "other.npz", y=np.ones(2))
        (saved / "other.npz").replace(saved / "state.npz")
        self.broken(saved, "of another state")
        own_sum(saved)
        self.broken(saved, r"array 'x' is missing; do state\.json and state\.npz belong together")
        np.save(saved / "plain.npy", np.ones(2))
        (saved / "plain.npy").replace(saved / "state.npz")
        own_sum(saved)
        self.broken(saved, "cannot be read")

    def test_pickles_are_never_read(self, saved: Path) -> None:
        np.savez(saved / "bad.npz", x=np.array([Odd()], dtype=object))
        (saved / "bad.npz").replace(saved / "state.npz")
        own_sum(saved)
        self.broken(saved, "allow_pickle")

    def test_a_folder_in_the_place_of_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "state.json").mkdir()
        self.broken(tmp_path, "cannot be read")

    def test_data_that_were_changed_are_found(self, saved: Path) -> None:
        path = saved / "state.json"
        path.write_text(path.read_text().replace('"k": 3', '"k": 4'))
        self.broken(saved, r"state\.json: its data do not fit its checksum")

    def test_files_of_two_states_are_found(self, saved: Path) -> None:
        arrays = (saved / "state.npz").read_bytes()
        save_tree(saved, "state", {"x": np.arange(200.0) + 1, "k": 3})
        (saved / "state.npz").write_bytes(arrays)
        self.broken(saved, r"state\.npz: .*of another state")

    def test_arrays_in_files_of_their_own(self, tmp_path: Path) -> None:
        tree = {"k": 1, "x": np.ones(2), "y": {"deep": np.zeros(3)}, "t": {"a": np.arange(2)}, "none": None}
        save_tree(tmp_path, "state", tree, {"x.npz": ("x", "y"), "t.npz": ("t",), "e.npz": ("none",)})
        assert sorted(os.listdir(tmp_path)) == ["state.json", "t.npz", "x.npz"]
        with np.load(tmp_path / "x.npz") as x, np.load(tmp_path / "t.npz") as t:
            assert (sorted(x.files), t.files) == (["x", "y/deep"], ["a"])
        assert same(freeze(tree), load_tree(tmp_path, "state"))
        (tmp_path / "t.npz").unlink()
        self.broken(tmp_path, r"t\.npz: no such file")

    @pytest.mark.parametrize("what", ["write_array", "write", "fsync", "replace", "folder"])
    @pytest.mark.parametrize("nth", [1, 2])
    def test_a_full_disk_leaves_the_old_files_whole(
        self, saved: Path, what: str, nth: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        full = OSError(errno.ENOSPC, "No space left on device")
        calls = {"write_array": "numpy.lib.format.write_array", "fsync": "os.fsync", "replace": "pathlib.Path.replace"}
        calls |= {"write": "infimum.checkpoint.json_text", "folder": "infimum.checkpoint.sync_folder"}
        original, count = resolve(calls[what]), 0

        def failing(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == nth:
                raise full
            return original(*args, **options)

        monkeypatch.setattr(calls[what], failing)
        if what in ("write_array", "write", "folder") and nth == 2:
            pytest.skip("that happens once")
        with pytest.raises(OSError, match="No space left"):
            save_tree(saved, "state", {"x": np.zeros(3), "k": 4})
        monkeypatch.undo()
        assert sorted(os.listdir(saved)) == ["state.json", "state.npz"]
        # Either all of the old, or all of the new, or two that are known not to belong together.
        with suppress(InputError):
            assert load_tree(saved, "state")["k"] in (3, 4)

"""Plain data: any state as a tree of dict / list / scalar / str / array, and that tree as `npz` + JSON."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from infimum import arrays
from infimum.errors import InputError

FORMAT = 2
_SMALL = 2**20
_GENERATOR = "__generator__"
_TORCH_GENERATOR = "__torch_generator__"
_MARKS = ("__array__", "__float__", "__int__")
"""Keys that `split` uses for itself."""


def freeze(tree: Any, path: str = "state") -> Any:
    """A deep copy of `tree` as plain data: generators become their states, tuples become lists, arrays are copied.

    Raises
    ------
    InputError
        For anything that is not dict / list / tuple / scalar / str / None / array / generator, naming its path.
    """
    if isinstance(tree, np.generic):
        tree = tree.item()
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, Mapping):
        for key in tree:
            if not isinstance(key, str) or key in _MARKS:
                raise InputError(f"{path}: keys of a state are strings other than {', '.join(_MARKS)}, got {key!r}")
        return {key: freeze(value, f"{path}.{key}") for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [freeze(value, f"{path}[{k}]") for k, value in enumerate(tree)]
    if isinstance(tree, np.random.Generator):
        return _freeze_generator(tree, path)
    if arrays.is_array(tree) and not getattr(tree.dtype, "hasobject", False):
        return arrays.copy(tree)
    if type(tree).__module__.startswith("torch") and type(tree).__name__ == "Generator":
        return {_TORCH_GENERATOR: tree.get_state(), "device": str(tree.device)}
    what = f"array of {tree.dtype}" if arrays.is_array(tree) else type(tree).__name__
    raise InputError(
        f"{path} holds a {what}; a state is made of dict, list, number, str, array and generator "
        "(bring dump/load or state_dict/load_state_dict for anything else)"
    )


def _freeze_generator(rng: np.random.Generator, path: str) -> dict[str, Any]:
    """The state of the bits, and of the seed sequence that `rng.spawn` goes on with."""
    bits = rng.bit_generator
    if getattr(np.random, type(bits).__name__, None) is not type(bits):
        raise InputError(f"{path} is a generator on {type(bits).__name__}, which is none of NumPy's bit generators")
    seeds = getattr(bits.seed_seq, "state", None)
    return {_GENERATOR: freeze(dict(bits.state), path), "seeds": freeze(seeds, path)}


def thaw(tree: Any) -> Any:
    """The tree that `freeze` was given, with fresh generators and copies of the arrays."""
    if isinstance(tree, Mapping):
        if _GENERATOR in tree:
            state, seeds = thaw(tree[_GENERATOR]), tree["seeds"]
            kind = getattr(np.random, state["bit_generator"])
            bits = kind(np.random.SeedSequence(**seeds) if seeds is not None else 0)
            bits.state = state
            return np.random.Generator(bits)
        if _TORCH_GENERATOR in tree:
            import torch

            generator = torch.Generator(device=tree["device"])
            generator.set_state(tree[_TORCH_GENERATOR])
            return generator
        return {key: thaw(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [thaw(value) for value in tree]
    return arrays.copy(tree) if arrays.is_array(tree) else tree


def split(tree: Any, path: str = "", out: dict[str, np.ndarray] | None = None) -> tuple[Any, dict[str, np.ndarray]]:
    """A frozen tree as JSON-ready data plus named NumPy arrays that it points to."""
    found: dict[str, np.ndarray] = {} if out is None else out
    if isinstance(tree, Mapping):
        return {k: split(v, f"{path}/{k}" if path else k, found)[0] for k, v in tree.items()}, found
    if isinstance(tree, list):
        return [split(v, f"{path}/{k}", found)[0] for k, v in enumerate(tree)], found
    if arrays.is_array(tree):
        key = path if re.fullmatch(r"[\w][\w./ -]*", path, re.ASCII) and path not in found else f"array {len(found)}"
        data, found[key] = _array(tree)
        return {"__array__": key, **data}, found
    if isinstance(tree, float) and not math.isfinite(tree):
        return {"__float__": repr(tree)}, found
    if isinstance(tree, int) and not isinstance(tree, bool) and abs(tree) > 2**53:
        return {"__int__": str(tree)}, found
    return tree, found


def _array(tree: Any) -> tuple[dict[str, str], np.ndarray]:
    """What JSON says of an array, and the array for NumPy's format, which knows no bfloat16 and float8."""
    if isinstance(tree, np.ndarray):
        return {"kind": "numpy"}, tree
    data, tree = {"kind": "torch", "device": str(tree.device)}, tree.detach().cpu()
    try:
        return data, tree.numpy()
    except TypeError:
        import torch

        data["dtype"] = str(tree.dtype).rpartition(".")[2]
        return data, tree.view(torch.uint8 if tree.element_size() == 1 else torch.int16).numpy()


def merge(data: Any, found: Mapping[str, np.ndarray]) -> Any:
    """The tree that `split` took apart."""
    if isinstance(data, Mapping):
        if "__array__" in data:
            array = found[data["__array__"]]
            return array if data["kind"] == "numpy" else _tensor(data, array)
        if "__float__" in data:
            return float(data["__float__"])
        if "__int__" in data:
            return int(data["__int__"])
        return {key: merge(value, found) for key, value in data.items()}
    if isinstance(data, list):
        return [merge(value, found) for value in data]
    return data


def _tensor(data: Mapping[str, str], array: np.ndarray) -> Any:
    """A tensor on the device that it came from, or on the CPU where that device is absent."""
    import torch

    tensor = torch.as_tensor(array)
    if "dtype" in data:
        tensor = tensor.view(getattr(torch, data["dtype"]))
    try:
        return tensor.to(data["device"])
    except (RuntimeError, AssertionError):
        return tensor


def save_tree(folder: Path, name: str, tree: Any, apart: Mapping[str, Sequence[str]] | None = None) -> None:
    """Write a tree as `NAME.json` and `NAME.npz` in `folder`, which is made if it does not exist. No pickles.

    A file appears whole or not at all, the JSON file last; file and folder are flushed to the disk. The JSON holds the
    SHA-256 of its own data and of the array files, so that files that are damaged, truncated or of two different
    states are found by `load_tree`.

    Parameters
    ----------
    folder : path
    name : str
    tree : tree of dict / list / scalar / str / array / generator
        A dict where `apart` is given.
    apart : mapping of str to sequence of str, optional
        File name, such as "x.npz", to the keys of `tree` whose arrays stand in it. Where that is one key, its arrays
        are named without it. Files without arrays are left out; what is not named goes into `NAME.npz`.

    Raises
    ------
    InputError
        If the tree holds what is no plain data; nothing is written then.
    OSError
        If a file cannot be written; those that were there before are whole.
    """
    frozen = freeze(tree)
    data, files = _divided(frozen, f"{name}.npz", apart or {})
    folder.mkdir(parents=True, exist_ok=True)
    sums = {}
    for file, (keys, found) in files.items():
        sums[file] = {"sha256": _write_arrays(folder / file, found), "keys": keys}
    content = {"format": FORMAT, "sha256": _digest(data), "files": sums, "data": data}
    write_whole(folder / f"{name}.json", json_text(content))


def json_text(data: Mapping[str, Any]) -> str:
    """JSON with a line for each key of the upper two levels: to be read by people, and written by the encoder in C,
    which knows no indentation.

    Raises
    ------
    ValueError
        For inf and NaN, which JSON has not.
    """
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

    def lines(level: Mapping[str, Any], indent: str, one: Callable[[Any], str]) -> str:
        inner = f",\n{indent} ".join(f"{encode(key)}: {one(value)}" for key, value in level.items())
        return f"{{\n{indent} {inner}\n{indent}}}" if level else "{}"

    def second(value: Any) -> str:
        return lines(value, " ", encode) if isinstance(value, dict) else encode(value)

    return lines(data, "", second) + "\n"


Files = dict[str, tuple[list[str] | None, dict[str, np.ndarray]]]
"""File name to the keys of the tree that it is about (None for the whole tree), and its arrays."""


def _divided(frozen: Any, rest: str, apart: Mapping[str, Sequence[str]]) -> tuple[Any, Files]:
    """The JSON-ready data of a frozen tree, and its arrays by file."""
    if not apart:
        data, found = split(frozen)
        return data, {rest: (None, found)}
    taken = {key for keys in apart.values() for key in keys}
    groups = {**apart, rest: [key for key in frozen if key not in taken]}
    parts: dict[str, Any] = {}
    files: Files = {}
    for file, keys in groups.items():
        found = {}
        there = [key for key in keys if key in frozen]
        for key in there:
            parts[key] = split(frozen[key], "" if len(keys) == 1 else key, found)[0]
        if found:
            files[file] = (there, found)
    return {key: parts[key] for key in frozen}, files


def write_whole(path: Path, text: str, *, flush: bool = True) -> None:
    """Write a text file so that it appears whole or not at all; with `flush`, also after a power cut."""
    _write(path, text.encode("utf8"), flush=flush)
    if flush and not _relaxed.get():
        sync_folder(path.parent)


_relaxed: ContextVar[bool] = ContextVar("relaxed", default=False)


@contextmanager
def relaxed() -> Iterator[None]:
    """Files still appear whole or not at all, but are not waited for to be on the disk.

    For many small runs, of which a process waits for each anyway: what a power cut takes is run again.
    """
    token = _relaxed.set(True)
    try:
        yield
    finally:
        _relaxed.reset(token)


def _write(path: Path, content: bytes | Callable[[BinaryIO], Any], *, flush: bool = True) -> None:
    """Put a file in place that holds the content, or what a function fills it with; flushed to the disk before."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            if flush and not _relaxed.get():
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(data: Any) -> str:
    """Of JSON-ready data, the same before it is written and after it was read."""
    return hashlib.sha256(json.dumps(data, separators=(",", ":"), allow_nan=False).encode()).hexdigest()


def _write_arrays(path: Path, found: Mapping[str, np.ndarray]) -> str:
    """Write an `npz` file; its SHA-256. A small one is put together in memory, since an archive goes back and forth."""
    if sum(one.nbytes for one in found.values()) <= _SMALL:
        buffer = io.BytesIO()
        _archive(buffer, found)
        content = buffer.getvalue()
        _write(path, content)
        return hashlib.sha256(content).hexdigest()
    _write(path, lambda file: _archive(file, found))
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _archive(file: BinaryIO, found: Mapping[str, np.ndarray]) -> None:
    """Unlike `np.savez`, this takes any name and refuses pickles in every version of NumPy."""
    with zipfile.ZipFile(file, "w") as archive:
        for key, array in found.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def load_tree(folder: Path, name: str) -> Any:
    """Read what `save_tree` wrote.

    Raises
    ------
    InputError
        If a file is missing, damaged, of another state, not one of ours, or of another format.
    """
    path = folder / f"{name}.json"
    try:
        content = json.loads(path.read_text(encoding="utf8"))
        if not isinstance(content, dict) or "data" not in content:
            raise InputError(f"{path}: not a file that infimum wrote")
        if content.get("format") != FORMAT:
            raise InputError(f"{path}: format {content.get('format')!r}; this version of infimum reads format {FORMAT}")
        data = content["data"]
        if _digest(data) != content.get("sha256"):
            raise InputError(f"{path}: its data do not fit its checksum; the file was damaged or changed by hand")
        arrays_of: dict[str, dict[str, np.ndarray]] = {}
        for file, row in content["files"].items():
            path = folder / file
            found = _read_arrays(path, row["sha256"], f"{name}.json")
            if row["keys"] is None:
                return merge(data, found)
            arrays_of |= dict.fromkeys(row["keys"], found)
        return {key: merge(value, arrays_of.get(key, {})) for key, value in data.items()}
    except FileNotFoundError as error:
        raise InputError(f"{error.filename}: no such file; expected {name}.json and its arrays in {folder}") from None
    except KeyError as error:
        raise InputError(f"{path}: array {error} is missing; do {name}.json and {path.name} belong together?") from None
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read ({error}); is it complete?") from None


def _read_arrays(path: Path, digest: str, beside: str) -> dict[str, np.ndarray]:
    with path.open("rb") as file:
        source: Any = io.BytesIO(file.read()) if os.fstat(file.fileno()).st_size <= _SMALL else file
        if hashlib.file_digest(source, "sha256").hexdigest() != digest:
            raise InputError(
                f"{path}: does not fit its checksum in {beside}; it is damaged, incomplete or of another state"
            )
        # Only a zip archive: `np.load` reads other formats too.
        with zipfile.ZipFile(source) as archive:
            return {entry.removesuffix(".npy"): _read_array(archive, entry) for entry in archive.namelist()}


def _read_array(archive: zipfile.ZipFile, entry: str) -> np.ndarray:
    with archive.open(entry) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array

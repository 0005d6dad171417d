"""Plain data: any state as a tree of dict / list / scalar / str / array, and that tree as `npz` + JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from infimum import arrays
from infimum.errors import InputError

FORMAT = 1
_GENERATOR = "__generator__"
_TORCH_GENERATOR = "__torch_generator__"
_TORCH = "__torch__"


def freeze(tree: Any, path: str = "state") -> Any:
    """A deep copy of `tree` as plain data: generators become their states, tuples become lists, arrays are copied.

    Raises
    ------
    InputError
        For anything that is not dict / list / tuple / scalar / str / None / array / generator, naming its path.
    """
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree if not isinstance(tree, np.generic) else tree.item()
    if isinstance(tree, np.generic):
        return tree.item()
    if isinstance(tree, Mapping):
        for key in tree:
            if not isinstance(key, str):
                raise InputError(f"{path}: keys of a state are strings, got {key!r}")
        return {key: freeze(value, f"{path}.{key}") for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [freeze(value, f"{path}[{k}]") for k, value in enumerate(tree)]
    if isinstance(tree, np.random.Generator):
        return {_GENERATOR: freeze(tree.bit_generator.state, path)}
    if arrays.is_array(tree):
        return arrays.copy(tree)
    if type(tree).__module__.startswith("torch") and type(tree).__name__ == "Generator":
        return {_TORCH_GENERATOR: tree.get_state(), "device": str(tree.device)}
    raise InputError(
        f"{path} holds a {type(tree).__name__}; a state is made of dict, list, number, str, array and generator "
        "(bring dump/load or state_dict/load_state_dict for anything else)"
    )


def thaw(tree: Any) -> Any:
    """The tree that `freeze` was given, with fresh generators and copies of the arrays."""
    if isinstance(tree, Mapping):
        if _GENERATOR in tree:
            state = tree[_GENERATOR]
            bits = getattr(np.random, state["bit_generator"])()
            bits.state = thaw(state)
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
        key = path or "array"
        kind = "numpy" if isinstance(tree, np.ndarray) else _TORCH
        found[key] = np.asarray(tree if kind == "numpy" else tree.detach().cpu())
        return {"__array__": key, "kind": kind}, found
    if isinstance(tree, float) and not math.isfinite(tree):
        return {"__float__": repr(tree)}, found
    if isinstance(tree, int) and not isinstance(tree, bool) and abs(tree) > 2**53:
        return {"__int__": str(tree)}, found
    return tree, found


def merge(data: Any, found: Mapping[str, np.ndarray]) -> Any:
    """The tree that `split` took apart."""
    if isinstance(data, Mapping):
        if "__array__" in data:
            array = found[data["__array__"]]
            if data["kind"] == _TORCH:
                import torch

                return torch.as_tensor(array)
            return array
        if "__float__" in data:
            return float(data["__float__"])
        if "__int__" in data:
            return int(data["__int__"])
        return {key: merge(value, found) for key, value in data.items()}
    if isinstance(data, list):
        return [merge(value, found) for value in data]
    return data


def save_tree(folder: Path, name: str, tree: Any) -> None:
    """Write a tree as `NAME.json` and `NAME.npz` in `folder`, which is made if it does not exist. No pickles."""
    folder.mkdir(parents=True, exist_ok=True)
    data, found = split(freeze(tree))
    np.savez(folder / f"{name}.npz", allow_pickle=False, **found)
    text = json.dumps({"format": FORMAT, "data": data}, indent=1, allow_nan=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf8")


def load_tree(folder: Path, name: str) -> Any:
    """Read what `save_tree` wrote.

    Raises
    ------
    InputError
        If a file is missing or is not one of ours, or of a newer format.
    """
    path = folder / f"{name}.json"
    try:
        content = json.loads(path.read_text(encoding="utf8"))
        with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
            found = {key: stored[key] for key in stored.files}
    except FileNotFoundError as error:
        raise InputError(f"{error.filename}: no such file; expected {name}.json and {name}.npz in {folder}") from None
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: format {content.get('format')!r}, this version of infimum reads format {FORMAT}")
    return merge(content["data"], found)

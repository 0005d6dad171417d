"""A run made in Python as a run file, where names and plain data state the whole of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from infimum.errors import InfimumError
from infimum.run.run import Run
from infimum.runfile.dump import dump_yaml
from infimum.runfile.model import RunFile

_BESIDE = frozenset({"seed", "repetition", "verbose", "base", "assign", "solver", "record", "max_rows"})
"""Options that need no key of their own name: they stand elsewhere, in the manifest, or change no result."""
_SAME = ("oracles", "constraints", "stopping", "check_every", "value_every", "observers", "checkpoint")
_LARGEST = 10_000
"""Numbers that a start may hold to be written into the run file."""


def stated_config(run: Run, problem: Any, x0: Any, options: Mapping[str, Any]) -> tuple[dict[str, Any], str, list[str]]:
    """The resolved run file of a run made by `infimum.solve(problem, x0, **options)`.

    Returns
    -------
    config : dict
        {} where some argument is an object that no file holds.
    text : str
        The same as YAML.
    missing : list of str
        Those arguments.
    """
    given = {name: one for name, one in options.items() if one is not None}
    data: dict[str, Any] = {"problem": problem, "seed": run.seed, **{k: given[k] for k in _SAME if k in given}}
    solver = given.get("solver", run.plan.solver_name)
    assign = given.get("assign")
    data["solver"] = solver if not assign else {**(_as_mapping(solver)), "assign": assign}
    if x0 is not None:
        data["x0"] = _as_numbers(x0)
    trace = {"max_rows": given.get("max_rows"), "metrics": given.get("record")}
    trace = {name: one for name, one in trace.items() if one is not None}
    if trace:
        data["trace"] = trace
    missing = [name for name, one in data.items() if not _is_plain(one)]
    missing += sorted(set(given) - _BESIDE - set(_SAME))
    if missing:
        return {}, "", missing
    if "python:" in dump_yaml(data):
        data["python_path"] = [str(given.get("base") or Path.cwd())]
    return _resolved(data)


def _resolved(data: Mapping[str, Any]) -> tuple[dict[str, Any], str, list[str]]:
    """What the run file says when it is read; a problem that no file states where it cannot be."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solve.yaml"
        path.write_text(dump_yaml(data), encoding="utf-8")
        try:
            read = RunFile.load(path)
        except InfimumError:
            return {}, "", ["problem"]
        return read.resolved(), read.dump_yaml(), []


def _as_mapping(solver: Any) -> Any:
    return {"use": solver} if isinstance(solver, str) else solver


def _as_numbers(x0: Any) -> Any:
    """An array of double precision as nested lists, which a run file reads back bit for bit."""
    fits = isinstance(x0, np.ndarray) and x0.dtype == np.float64 and 0 < x0.size <= _LARGEST and np.isfinite(x0).all()
    return x0.tolist() if fits and x0.ndim else x0


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)

"""The top keys of a run file: what each means and the JSON Schema of those that are no component."""

from __future__ import annotations

from typing import Any

from infimum.run.cadence import DURATION

_POSITIVE: dict[str, Any] = {"type": "integer", "minimum": 1}

TOP_KEYS: dict[str, dict[str, Any]] = {
    "name": {
        "type": "string",
        "pattern": r"^(?!\.{1,2}$)[^/\\]+$",
        "description": "Name of the run; its folder below runs/.",
    },
    "extends": {"type": "string", "description": "A run file, relative to this one, on top of which this one stands."},
    "problem": {"description": "What is to be solved."},
    "oracles": {"description": "Term name to the oracle that lifts it, or 'auto'."},
    "constraints": {"description": "A list of constraints, or a mapping of names to constraints."},
    "solver": {"description": "The method; 'assign' puts terms into its slots."},
    "x0": {
        "description": "The start: zeros, random, numbers, {file: x.npz, key: x}, the best point of a saved result "
        "({run: FOLDER}), or python:module:attribute.",
    },
    "stopping": {"description": "When to stop: text such as 'max_iter(1e4) | grad_norm(1e-6)', a mapping or a list."},
    "seed": {"type": "integer", "minimum": 0, "description": "Seed of all random numbers of the run."},
    "check_every": {**_POSITIVE, "description": "Test the stopping rules every so many iterations."},
    "value_every": {**_POSITIVE, "description": "Evaluate the objective every so many iterations."},
    "trace": {
        "type": "object",
        "description": "What is recorded.",
        "additionalProperties": False,
        "properties": {
            "max_rows": {"type": "integer", "minimum": 0, "description": "At most so many rows; 0 records nothing."},
            "metrics": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Metrics to record beside the rules' own.",
            },
        },
    },
    "checkpoint": {
        "type": "object",
        "description": "When to write checkpoints into the run's folder, from which `infimum resume` goes on.",
        "additionalProperties": False,
        "required": ["every"],
        "properties": {
            "every": {
                "anyOf": [_POSITIVE, {"type": "string", "pattern": DURATION}],
                "description": "A time with its unit (30s, 5min, 2h), or a number of iterations.",
            },
            "keep": {**_POSITIVE, "description": "How many to keep; 2 by default."},
        },
    },
    "observers": {"description": "A list of what watches the run and writes down what it sees: core.csv, …"},
    "repeat": {**_POSITIVE, "description": "Solve so many times, each with random numbers of its own."},
    "sweep": {
        "description": "Values that vary: {product: {solver.step: [0.1, 1]}, zip: {…}, components: {solver: […]}, "
        "exclude: […]}; run it with 'infimum sweep'."
    },
    "compare": {
        "description": "Several solvers on one or several problems at an equal budget: {solvers: […], problems: […], "
        "budget: {iterations: 1000}, targets: […]}; run it with 'infimum compare'."
    },
    "python_path": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Folders, relative to this file, where python: references are looked up after the file's own.",
    },
    "output": {
        "type": "object",
        "description": "Where results go.",
        "additionalProperties": False,
        "properties": {"dir": {"type": "string", "description": "Folder for runs, relative to where you call from."}},
    },
}
"""In the order in which a resolved run file writes them."""

MANY_KEYS = ("repeat", "sweep", "compare")
"""Top keys that state many runs."""

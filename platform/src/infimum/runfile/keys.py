"""The top keys of a run file: what each means and the JSON Schema of those that are no component."""

from __future__ import annotations

from typing import Any

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

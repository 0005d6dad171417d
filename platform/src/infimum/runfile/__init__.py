"""Run files: YAML with places, `extends` and overrides; all mistakes at once; the JSON Schema for editors.

Names are looked up at first use: a file is read without what its run needs.
"""

from __future__ import annotations

from typing import Any

from infimum.lazy import look_up

_PUBLIC = {
    "Place": "tree",
    "RunFile": "model",
    "RunFileError": "tree",
    "RunFileIssue": "tree",
    "run_file_schema": "schema",
}

__all__ = ["Place", "RunFile", "RunFileError", "RunFileIssue", "run_file_schema"]


def __getattr__(name: str) -> Any:
    return look_up(__name__, _PUBLIC, name)

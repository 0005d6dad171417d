"""Run files: YAML with places, `extends` and overrides; all mistakes at once; the JSON Schema for editors.

Names are looked up at first use: a file is read without what its run needs.
"""

from __future__ import annotations

import importlib
from typing import Any

_PUBLIC = {
    "Place": "tree",
    "RunFile": "model",
    "RunFileError": "tree",
    "RunFileIssue": "tree",
    "run_file_schema": "schema",
}

__all__ = ["Place", "RunFile", "RunFileError", "RunFileIssue", "run_file_schema"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f"infimum.runfile.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'infimum.runfile' has no attribute '{name}'")

"""Run files: YAML with places, `extends` and overrides; all mistakes at once; the JSON Schema for editors."""

from __future__ import annotations

from infimum.runfile.model import RunFile
from infimum.runfile.schema import run_file_schema
from infimum.runfile.tree import Place, RunFileError, RunFileIssue

__all__ = ["Place", "RunFile", "RunFileError", "RunFileIssue", "run_file_schema"]

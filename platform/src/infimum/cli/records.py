"""Commands on the folder of a run: `resume`, `rerun`, `export`."""

from __future__ import annotations

import sys

from infimum.cli import guard
from infimum.cli.output import as_json, say
from infimum.cli.runs import ended
from infimum.records import RunFolder, rerun, resume
from infimum.records.export import export_trace


def resume_folder(folder: str, *, force: bool, quiet: bool, json: bool) -> int:
    """Go on with a run; exit codes as those of `run`."""
    kept = RunFolder.existing(folder)
    if kept.is_finished and not quiet and not json:
        say(f"{folder}: the run had come to its end; nothing is left to do")
    result = resume(folder, force=force, verbose=not (quiet or json) and sys.stderr.isatty())
    name = str(kept.manifest.get("name") or kept.path.name)
    return ended(result, kept, name, quiet=quiet, json=json)


def rerun_folder(folder: str, *, output: str | None, json: bool) -> int:
    """Repeat a run; exit code 1 where another result came out."""
    done = rerun(folder, output=output, verbose=not json and sys.stderr.isatty())
    if json:
        as_json(
            {
                "original": str(done.original),
                "repeated": str(done.repeated),
                "same": done.same,
                "made_of": done.made_of,
                "differences": done.differences,
            }
        )
    else:
        say(str(done))
    return guard.OK if done.same else guard.FAILED


def export_folder(folder: str, kind: str, *, output: str | None) -> None:
    """Write the trace and say where."""
    say(f"written: {export_trace(folder, kind, output)}")

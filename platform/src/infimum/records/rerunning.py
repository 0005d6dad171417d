"""Repeat a run from its folder and say what differs, in what it was made of and in what came out."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infimum.errors import InputError
from infimum.records.differences import code_differences, result_differences, surroundings_differences
from infimum.records.folder import ENDED_BEFORE_TIME, RunFolder
from infimum.records.solving import solve_into, solve_to_folder
from infimum.result import Result

log = logging.getLogger("infimum")


@dataclass(frozen=True, eq=False)
class Rerun:
    """A run that was repeated.

    Attributes
    ----------
    original, repeated : Path
        The two folders.
    before : Result or None
        What came out then; None where the run was killed before its end.
    result : Result
        What came out now.
    made_of : list of str
        What differs in code, libraries, threads, environment and machine.
    differences : list of str
        What differs in the result, bit by bit; times do not count.
    """

    original: Path
    repeated: Path
    before: Result | None
    result: Result
    made_of: list[str]
    differences: list[str]

    @property
    def same(self) -> bool:
        """Whether the same came out, bit for bit."""
        return self.before is not None and not self.differences

    def __str__(self) -> str:
        lines = [f"{self.original}, repeated in {self.repeated}"]
        lines += [f"  since then: {line}" for line in self.made_of] or ["  since then nothing has changed"]
        if self.before is None:
            lines.append("  there was no result to compare with")
        elif self.before.status in ENDED_BEFORE_TIME:
            lines.append(f"  the original was {self.before.status} at iteration {self.before.iterations}")
        lines += [f"  result: {line}" for line in self.differences]
        if self.same:
            lines.append("  result: the same, bit for bit")
        return "\n".join(lines)

    __repr__ = __str__


def rerun(
    folder: str | Path,
    problem: Any = None,
    x0: Any = None,
    *,
    output: str | Path | None = None,
    verbose: bool = False,
    **options: Any,
) -> Rerun:
    """Repeat a run with the same seed, in a new folder, and compare.

    Parameters
    ----------
    folder : path
        That of the run.
    problem, x0, **options
        Those of the `infimum.solve` that made the run, where they are objects that no file holds.
    output : path, optional
        Folder of the new run; by default a new one below that of all runs.
    verbose : bool, default False
        A progress bar on a terminal.

    Returns
    -------
    Rerun
        Prints well; `same` says whether the same came out.

    Raises
    ------
    InputError
        If there is no run in the folder, or its arguments are needed.
    """
    kept = RunFolder.existing(folder)
    then = kept.manifest
    before = kept.result() if kept.status is not None else None
    repetition = int(then.get("repetition", 0))
    if problem is None and kept.has_config:
        run_file = kept.run_file()
        target = RunFolder.at(output) if output is not None else RunFolder.create(run_file.output, run_file.name)
        result = solve_to_folder(run_file, target, repetition=repetition, verbose=verbose)
    elif problem is None:
        missing = ", ".join(then.get("python_arguments") or ["problem"])
        raise InputError(
            f"{kept.path} cannot be repeated from the folder alone: the run was made in Python from objects that no "
            f"file holds ({missing}); give the arguments of its infimum.solve again: "
            f"infimum.rerun({str(kept.path)!r}, problem, x0, solver=…, …)"
        )
    else:
        name = then.get("name") or "rerun"
        target = RunFolder.at(output) if output is not None else RunFolder.create("runs", name)
        known = {"seed": then["seed"], "repetition": repetition, "verbose": verbose}
        result = solve_into(target, problem, x0, name=name, **{**known, **options})
    now = target.manifest
    made_of = [*code_differences(then, now), *surroundings_differences(then, now)]
    differences = [] if before is None else result_differences(before, result)
    return Rerun(kept.path, target.path, before, result, made_of, differences)

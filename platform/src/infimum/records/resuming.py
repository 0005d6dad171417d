"""Take up a run that was interrupted or killed where its last checkpoint left it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infimum import api
from infimum.errors import InputError
from infimum.records.differences import code_differences, surroundings_differences
from infimum.records.folder import RunFolder
from infimum.records.manifests import manifest
from infimum.records.solving import at_work, solve_kept
from infimum.result import Result
from infimum.run.cadence import Cadence
from infimum.run.run import Run
from infimum.runfile.model import RunFile

log = logging.getLogger("infimum")


def resume(
    folder: str | Path,
    problem: Any = None,
    x0: Any = None,
    *,
    force: bool = False,
    verbose: bool = False,
    **options: Any,
) -> Result:
    """Go on with a run that was interrupted, killed or failed, from its last checkpoint.

    Where all its components have `resume = exact`, trace, counters and result are bit for bit those of a run that was
    never interrupted (apart from times), on the same machine with the same libraries and threads. A run with
    `resume = replay` runs again from its start, which gives the same. What is lost, at most since the last checkpoint
    that can be read, is logged.

    Parameters
    ----------
    folder : path
        That of the run, `runs/NAME/TIME`.
    problem, x0, **options
        Those of the `infimum.solve` that began the run. Needed only where they are objects that no file holds (a
        problem made of functions, a callback); the error says so. The seed comes from the folder.
    force : bool, default False
        Go on although the code of a plugin, of infimum, or of a file of yours has changed since; the result is then
        that of no single version. Changes of libraries, threads or machine are only warned of.
    verbose : bool, default False
        A progress bar on a terminal.

    Returns
    -------
    Result
        That of the whole run; of a run that had come to its end, the one that is there.

    Raises
    ------
    InputError
        If there is no run in the folder, another process is at it, it cannot be resumed, its arguments are needed, or
        code has changed.

    Examples
    --------
    >>> import infimum, tempfile
    >>> where = tempfile.mkdtemp() + "/run"
    >>> stated = {"problem": {"use": "problems.rosenbrock"}, "seed": 1, "stopping": "max_iter(9)"}
    >>> first = infimum.solve(**stated, solver={"use": "splitting.gradient_descent", "step": 1e-3}, folder=where)
    >>> infimum.resume(where).iterations
    9
    """
    kept = RunFolder.existing(folder)
    if kept.is_finished:
        log.info("%s: the run had come to its end", kept.path)
        # It may have been killed between its result and the end of its checkpoints.
        with suppress(InputError, OSError), kept.locked():
            kept.clear_checkpoints()
        return kept.result()
    with at_work(kept):
        then = kept.manifest
        run, run_file = _made(kept, then, problem, x0, {**options, "verbose": verbose})
        now = manifest(run_file, run, None if run_file is not None else {})
        changed = code_differences(then, now)
        _check_code(kept, changed, force)
        around = surroundings_differences(then, now)
        for line in around:
            log.warning("since the run began: %s", line)
        iteration = take_up(run, kept)
        entry = {"iteration": iteration, "at": datetime.now(UTC).isoformat(timespec="seconds")}
        _remember(kept, then, {**entry, "differences": [*changed, *around]})
        spec = run_file.resolved().get("checkpoint") if run_file is not None else then.get("checkpoint")
        return solve_kept(run, kept, Cadence.of(options.get("checkpoint", spec)))


def _made(
    kept: RunFolder, then: Mapping[str, Any], problem: Any, x0: Any, options: dict[str, Any]
) -> tuple[Run, RunFile | None]:
    """The run as it was at its start."""
    repetition = int(then.get("repetition", 0))
    if problem is None and kept.has_config:
        run_file = kept.run_file()
        verbose = options.pop("verbose")
        if options or x0 is not None:
            given = ", ".join([*(["x0"] if x0 is not None else []), *options])
            raise InputError(f"{kept.path} states its run itself; leave out {given}, or give the problem too")
        return run_file.prepare(repetition=repetition, verbose=verbose, folder=kept.path), run_file
    if problem is None:
        missing = ", ".join(then.get("python_arguments") or ["problem"])
        raise InputError(
            f"{kept.path} cannot be taken up from the folder alone: the run was made in Python from objects that no "
            f"file holds ({missing}); give the arguments of its infimum.solve again: "
            f"infimum.resume({str(kept.path)!r}, problem, x0, solver=…, …)"
        )
    stated = {name: one for name, one in options.items() if name != "checkpoint"}
    known = {"seed": then["seed"], "repetition": repetition, "folder": kept.path}
    return api.prepare(problem, x0, **{**known, **stated}), None


def _check_code(kept: RunFolder, changed: list[str], force: bool) -> None:
    if changed and not force:
        raise InputError(
            "\n  ".join(
                (
                    f"{kept.path}: the code that the run began with has changed, so it would go on as another run",
                    *changed,
                    "go on nevertheless with --force (in Python force=True), or repeat it with  infimum rerun",
                )
            )
        )
    for line in changed:
        log.warning("since the run began: %s", line)


def take_up(run: Run, kept: RunFolder) -> int | None:
    """Load the newest checkpoint that can be read into a run; its iteration, or None to begin at the start.

    Raises
    ------
    InputError
        If a component cannot be resumed, or the checkpoint is of another run.
    """
    kind = run.plan.resume
    if kind == "none" or run.solver.drives:
        raise InputError(
            f"{kept.path} cannot be resumed: {_who(run, 'none')} keeps no state that a run can be taken up from "
            f"(resume = none); repeat the run with  infimum rerun {kept.path}"
        )
    if kind == "replay":
        log.warning("%s is resumed by running again from the start (resume = replay)", _who(run, "replay"))
        return None
    there = kept.checkpoints()
    found = kept.checkpoint()
    if found is None:
        why = "none of its checkpoints can be read" if there else "it has no checkpoint"
        log.warning("%s: %s, so the run begins at its start", kept.path, why)
        return None
    iteration, state = found
    try:
        run.load_state_dict(state)
    except InputError as error:
        raise InputError(f"{kept.path}: the checkpoint at iteration {iteration} is of another run: {error}") from None
    if iteration != there[-1]:
        log.warning("resumed at iteration %d; what came after it is computed again", iteration)
    log.info("resumed at iteration %d", iteration)
    return iteration


def _who(run: Run, kind: str) -> str:
    """The components of a run that say `resume = kind`."""
    lifts = (*run.plan.assignment.lifts.values(), *run.plan.assignment.slot_lifts.values())
    named = {run.plan.solver_name: run.solver.resume, "the problem": run.problem.resume}
    named |= {one.choice.name: one.choice.oracle.resume for one in lifts if one.choice is not None}
    found = [name for name, one in named.items() if one == kind]
    return ", ".join(found) or run.plan.solver_name


def _remember(kept: RunFolder, then: dict[str, Any], entry: dict[str, Any]) -> None:
    try:
        kept.write_manifest({**then, "resumed": [*then.get("resumed", []), entry]})
    except OSError as error:
        log.warning("the manifest could not be written: %s", error)

"""Solve a run and write its folder: what was run first, checkpoints while it lasts, the result at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from infimum import api
from infimum.checkpoint import write_whole
from infimum.errors import InfimumError, InputError
from infimum.records.folder import CONFIG, ENDED_BEFORE_TIME, LOG, MANIFEST, RunFolder
from infimum.records.log import RunLog
from infimum.records.manifests import manifest
from infimum.records.stated import stated_config
from infimum.result import Result
from infimum.run.cadence import Cadence
from infimum.run.run import Run
from infimum.run.saver import Saver
from infimum.runfile.dump import dump_yaml
from infimum.runfile.model import RunFile

log = logging.getLogger("infimum")


def solve_to_folder(
    run_file: RunFile, folder: str | Path | RunFolder, *, repetition: int = 0, verbose: bool = False
) -> Result:
    """Solve what a run file states and write the run's whole folder.

    Parameters
    ----------
    run_file : RunFile
        Its key `checkpoint` says when to write checkpoints.
    folder : path
        A new or empty one, or one that holds no run yet; made if needed. Also one that `RunFolder.create` or
        `RunFolder.at` has made.
    repetition : int, default 0
        Number of this run among those of one seed.
    verbose : bool, default False
        A progress bar on a terminal.

    Returns
    -------
    Result
        Also where it could not be written, on a full disk; the log and a note in it say so then.

    Raises
    ------
    InputError
        If the folder holds a run already, or cannot be written to.
    RunFileError
        If the parts do not fit together.
    """
    kept = folder if isinstance(folder, RunFolder) else RunFolder.at(folder)
    with begun(kept) as starts:
        run = run_file.prepare(repetition=repetition, verbose=verbose, folder=kept.path)
        config = run_file.resolved()
        cadence = Cadence.of(config.get("checkpoint"))
        write_start(kept, config, dump_yaml(config), manifest(run_file, run, config), cadence)
        starts()
        return solve_kept(run, kept, cadence)


def solve_into(
    folder: str | Path | RunFolder,
    problem: Any,
    x0: Any = None,
    *,
    checkpoint: Any = None,
    name: str = "",
    **options: Any,
) -> Result:
    """`infimum.solve` with a folder that keeps the run; see there.

    A run that is stated by names and plain data is written down as a run file, and can be resumed and repeated from
    the folder alone; otherwise the manifest says which arguments have to be given again.
    """
    cadence = Cadence.of(checkpoint)
    kept = folder if isinstance(folder, RunFolder) else RunFolder.at(folder)
    with begun(kept) as starts:
        run = api.prepare(problem, x0, folder=kept.path, **options)
        config, text, missing = stated_config(run, problem, x0, {**options, "checkpoint": checkpoint})
        facts = manifest(None, run, config)
        write_start(
            kept, config, text, {**facts, "name": name, "checkpoint": checkpoint, "python_arguments": missing}, cadence
        )
        starts()
        return solve_kept(run, kept, cadence)


@contextmanager
def at_work(kept: RunFolder) -> Iterator[None]:
    """While a process is at a run: what it logs goes into the folder, and no other process takes it up."""
    with RunLog(kept.path / LOG), kept.locked():
        yield


@contextmanager
def begun(kept: RunFolder) -> Iterator[Callable[[], None]]:
    """`at_work` from the making of a run on; one that cannot be made leaves no folder behind.

    What it gives is called when the run is made and about to start.
    """
    # Until the folder is held, what stands in it may be another process's.
    unmade = False

    def starts() -> None:
        nonlocal unmade
        unmade = False

    try:
        with at_work(kept):
            unmade = True
            yield starts
    except BaseException:
        if unmade:
            with suppress(OSError):
                for name in (LOG, CONFIG, MANIFEST):
                    (kept.path / name).unlink(missing_ok=True)
                for folder in (kept.path, *kept.made):
                    folder.rmdir()
        raise


def write_start(kept: RunFolder, config: dict[str, Any], text: str, facts: dict[str, Any], cadence: Cadence) -> None:
    """The run file (where there is one) and the manifest.

    Raises
    ------
    InputError
        If the folder cannot be written to.
    """
    # Checkpoints are to outlive a power cut, so what they need must too; a run without any begins anew anyway.
    flush = cadence != Cadence()
    try:
        # The manifest last: without it the folder is that of no run.
        if config:
            write_whole(kept.path / CONFIG, text, flush=flush)
        kept.write_manifest(facts, flush=flush)
    except OSError as error:
        raise InputError(
            f"{kept.path} cannot be written to: {error.strerror or error}; choose another folder"
        ) from None


def solve_kept(run: Run, kept: RunFolder, cadence: Cadence) -> Result:
    """Solve a run whose folder has been begun (or that was taken up in it), and write what comes out."""
    run.saver = Saver(run, kept.checkpoint_folder, cadence)
    result = run.solve()
    try:
        result.save(kept.path, replace=True)
    except (OSError, InfimumError) as error:
        text = f"the result could not be written to {kept.path}: {error}"
        log.error(text)
        result.notes.append(text)
        return result
    if str(result.status) not in ENDED_BEFORE_TIME:
        try:
            kept.clear_checkpoints()
        except OSError as error:
            log.warning("the checkpoints in %s could not be removed: %s", kept.path, error)
    log.info("%s: %s", result.status, result.message)
    return result

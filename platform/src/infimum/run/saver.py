"""Checkpoints of a run: when they are due, how they are written, and what a failed write means."""

from __future__ import annotations

import errno
import logging
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infimum.checkpoint import save_tree
from infimum.run.cadence import Cadence, checkpoints, remove_checkpoint, remove_torn
from infimum.run.state import dump_run
from infimum.status import Status

if TYPE_CHECKING:
    from infimum.run.run import Run

log = logging.getLogger("infimum")


class Saver:
    """Writes the checkpoints of one run into a folder, as `ITERATION.json` and `ITERATION.npz`.

    A write that fails costs a warning and a note in the result, never the run: what was written before stays.

    Parameters
    ----------
    run : Run
    folder : path
        Made at the first checkpoint.
    cadence : Cadence
        Without iterations and seconds, only an interrupted run leaves a checkpoint.
    """

    def __init__(self, run: Run, folder: Path, cadence: Cadence) -> None:
        self._run, self.folder, self.cadence = run, folder, cadence
        self.possible = run.plan.resume == "exact" and not run.solver.drives
        """Whether the run can be taken up from a state at all."""
        self.saved: int | None = None
        """Iteration of the last checkpoint that was written whole."""
        self._failing = False

    def due(self) -> tuple[float, float]:
        """Iteration and elapsed seconds from which on the next one is to be written; inf for never."""
        if not self.possible:
            return math.inf, math.inf
        monitor, every, seconds = self._run.monitor, self.cadence.iterations, self.cadence.seconds
        count = math.inf if every is None else max(monitor.iteration, 0) // every * every + every
        return count, math.inf if seconds is None else monitor.elapsed + seconds

    def write(self) -> tuple[float, float]:
        """Write one, unless the run ends here anyway; when the next is due."""
        if self._run.monitor.stop is None:
            self._save()
        return self.due()

    def last(self) -> None:
        """The checkpoint of a run that was interrupted."""
        stop = self._run.monitor.stop
        if self.possible and self._run.state is not None and stop is not None and stop.status is Status.interrupted:
            self._save()
            if self.saved == self._run.monitor.iteration:
                log.info("interrupted at iteration %d: the state was kept", self.saved)

    def _save(self) -> None:
        run, began = self._run, time.perf_counter()
        # A step that was taken beyond the last check does not count in the name.
        iteration = max(run.monitor.iteration, 0)
        try:
            self._write(iteration, dump_run(run))
        except Exception as error:
            said = f"the checkpoint at iteration {iteration} could not be written: {error}"
            kept = "there is none before it" if self.saved is None else f"the last one is of iteration {self.saved}"
            log.warning("%s; %s", said, kept)
            if not self._failing:
                run.notes.append(f"{said}; {kept}")
            self._failing = True
        else:
            self._failing, self.saved = False, iteration
            log.debug("checkpoint at iteration %d", iteration)
        run.sampler.spent += time.perf_counter() - began

    def _write(self, iteration: int, state: Any) -> None:
        try:
            save_tree(self.folder, str(iteration), state)
        except OSError as error:
            old = checkpoints(self.folder)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or len(old) < 2:
                raise
            # The oldest makes room; the newest is never given up for one that may fail too.
            remove_checkpoint(self.folder, old[0])
            save_tree(self.folder, str(iteration), state)
        for old_one in checkpoints(self.folder)[: -self.cadence.keep]:
            remove_checkpoint(self.folder, old_one)
        remove_torn(self.folder)

"""TensorBoard: the columns of the trace as scalars."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from infimum.observers.base import Row, RunObserver, Watch
from infimum.observers.place import in_folder, is_inside, needed
from infimum.observers.thin import DENSE, Thinning
from infimum.stopping.base import Progress

if TYPE_CHECKING:
    from infimum.run.run import Run


@dataclass(frozen=True)
class TensorBoard(RunObserver):
    """Write an event file for TensorBoard (extra `tensorboard`; torch is not needed).

    Parameters
    ----------
    dir : str, default "tensorboard"
        Folder of the event file, relative to the run's folder, or to the present one where the run has none.
        `tensorboard --logdir runs` finds it anywhere below.
    every : int, default 1
        Iterations between points.
    dense : int, default 1000
        So many points are written at that cadence, as many again at twice the distance, and so on: a run of a million
        iterations writes some ten thousand points, and costs no more for being watched. The last check is always
        written.

    Notes
    -----
    Scalars are called as the columns of the trace; `calls.gradient` stands under `calls/gradient`.
    """

    dir: str = "tensorboard"
    every: Annotated[int, Ge(1)] = 1
    dense: Annotated[int, Ge(1)] = DENSE

    def start(self, run: Run) -> Watch:
        return _Events(run, self, needed("tensorboard.summary", "tensorboard"))

    @property
    def stays_in_folder(self) -> bool:
        return is_inside(self.dir)


class _Events(Watch):
    def __init__(self, run: Run, options: TensorBoard, library: Any) -> None:
        self.run, self.library = run, library
        self.folder = in_folder(run, options.dir)
        self.row, self.thinning = Row(run), Thinning(options.dense, options.every)
        self.writer: Any = None
        self.last = -1

    def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.writer = self.library.Writer(self.library.DirectoryOutput(str(self.folder)))

    def tell(self, progress: Progress) -> None:
        if self.thinning.wants(progress.iteration):
            self._write()

    def close(self) -> None:
        writer, self.writer = self.writer, self.writer
        try:
            # The run may have completed its last check meanwhile; a second point at one step replaces the first.
            if self.run.monitor.iteration >= 0:
                self._write()
        finally:
            self.writer = None
            writer.close()

    def _write(self) -> None:
        row = self.row.now()
        step = row.pop("iteration")
        for name, value in row.items():
            if math.isfinite(value):
                self.writer.add_scalar(name.replace(".", "/"), value, step)

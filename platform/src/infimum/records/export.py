"""The trace of a run as a table for other programs."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from infimum.errors import InputError
from infimum.records.folder import RunFolder
from infimum.trace import Trace

FORMATS = ("csv", "parquet")


def export_trace(folder: str | Path, kind: str = "csv", output: str | Path | None = None) -> Path:
    """Write a run's trace as CSV or Parquet.

    Parameters
    ----------
    folder : path
        That of the run.
    kind : {"csv", "parquet"}
        Parquet needs pandas and pyarrow: `pip install "infimum[export]"`.
    output : path, optional
        By default `trace.csv` or `trace.parquet` in the folder; replaced if it is there.

    Returns
    -------
    Path
        Of the file. Numbers are written so that they read back bit for bit; what was not computed is empty.

    Raises
    ------
    InputError
        If there is no trace, the kind is unknown, or a library is missing.
    """
    if kind not in FORMATS:
        raise InputError(f"format {kind!r}: expected one of {', '.join(FORMATS)}")
    trace = RunFolder(folder).result().trace
    if trace is None:
        raise InputError(f"{folder}: the run recorded no trace (max_rows: 0)")
    target = Path(output) if output is not None else Path(folder) / f"trace.{kind}"
    try:
        _csv(trace, target) if kind == "csv" else _parquet(trace, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def _csv(trace: Trace, target: Path) -> None:
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(trace)
        whole = [_whole(name) for name in trace]
        for row in zip(*(column.tolist() for column in trace.values()), strict=True):
            writer.writerow([_cell(one, is_count) for one, is_count in zip(row, whole, strict=True)])


def _cell(value: float, is_count: bool) -> str:
    return "" if math.isnan(value) else str(int(value)) if is_count else repr(value)


def _whole(name: str) -> bool:
    return name == "iteration" or name.startswith("calls.")


def _parquet(trace: Trace, target: Path) -> None:
    try:
        import pandas as pd
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(
            f'Parquet needs pandas and pyarrow ({error}): pip install "infimum[export]", or write --format csv'
        ) from None
    columns = {}
    for name, column in trace.items():
        known = ~np.isnan(column)
        # Counts are not taken for the best row, which is put in between; Int64 knows missing values.
        columns[name] = (
            pd.array(np.where(known, column, 0).astype(np.int64), dtype="Int64") if _whole(name) else pd.array(column)
        )
        if _whole(name):
            columns[name][~known] = pd.NA
    pd.DataFrame(columns).to_parquet(target, index=False)

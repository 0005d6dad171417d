"""`infimum.report`: a page, or pictures, about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infimum.checkpoint import write_whole
from infimum.errors import InputError, did_you_mean
from infimum.reporting.entries import gather

FORMATS = ("html", "png", "svg", "pdf")


def report(sources: Any, out: str | Path = "report.html", format: str | None = None) -> Path:
    """Write a report.

    Parameters
    ----------
    sources : str, path, Result, Runs, mapping of str to Result, or a sequence of those
        Folders of runs, of many runs, or folders that hold such folders; results and what `infimum.sweep` and
        `infimum.compare` return; or a text that a plugin knows, such as the address of a study.
    out : str or path, default "report.html"
        The file; replaced if it exists. For pictures, figures after the first get `-2`, `-3`, … in their names.
    format : {"html", "png", "svg", "pdf"}, optional
        By default that of the suffix of `out`. "html" is one page that opens without network: curves with switches
        for their axes, tables, plans, why each run stopped, what made them. The others are pictures by matplotlib of
        the same curves.

    Returns
    -------
    Path
        The page, or the first picture.

    Raises
    ------
    InputError
        If there is no run, the format is unknown, a library of the extra `report` is missing, or nothing was recorded
        that a picture could show.

    Examples
    --------
    >>> import infimum
    >>> infimum.report(["runs/lasso"], out="lasso.html")  # doctest: +SKIP
    """
    return write(sources, out, format)[0]


def write(sources: Any, out: str | Path, format: str | None = None) -> list[Path]:
    """Everything that `report` writes: the page, or one picture a figure."""
    path = Path(out)
    kind = (format or path.suffix.removeprefix(".") or "html").lower()
    if kind not in FORMATS:
        raise InputError(f"report: format '{kind}'; {did_you_mean(kind, FORMATS)}")
    if not path.suffix:
        path = path.with_suffix(f".{kind}")
    if not path.parent.is_dir():
        raise InputError(f"report: there is no folder {path.parent} to write {path.name} into")
    material = gather(sources)
    if kind == "html":
        from infimum.reporting.page import render

        write_whole(path, render(material))
        return [path]
    from infimum.reporting.plots import save_pictures

    return save_pictures(material, path, kind)

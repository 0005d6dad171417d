"""Command `report`."""

from __future__ import annotations

from infimum.cli.output import say


def write_report(sources: list[str], output: str, kind: str | None) -> None:
    """Write the page or the pictures and say where."""
    from infimum.reporting.write import write

    if kind is not None and kind.lower() != "html" and output == "report.html":
        output = f"report.{kind.lower()}"
    for path in write(sources, output, kind):
        say(f"written to {path}")

"""The command line: `infimum run FILE`, `check`, `explain`, `list`, `info`, `plugins`, `doctor`, `schema`, `show`."""

from __future__ import annotations


def main() -> None:
    """Entry point of the command `infimum`."""
    from infimum.cli.app import app

    app(prog_name="infimum")


__all__ = ["main"]

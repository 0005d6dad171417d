"""Arguments and options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

File = Annotated[str, typer.Argument(metavar="FILE", help="A run file (YAML).", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...",
        help="Values on top of the file's: solver.step=1e-3 constraints.0.lower=1",
        show_default=False,
    ),
]
NoPython = Annotated[bool, typer.Option("--no-python", help="Refuse 'python:module:attribute'.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Same as seed=N.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Save here instead of runs/NAME/TIME.", show_default=False),
]
Folder = Annotated[str, typer.Argument(metavar="DIR", help="Folder of a run, runs/NAME/TIME.", show_default=False)]

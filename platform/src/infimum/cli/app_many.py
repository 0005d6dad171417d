"""The commands on many runs: `sweep`, `compare` and `cache`; the options that the first two share are declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from infimum.cli.guard import guarded
from infimum.cli.parameters import File, Json, NoPython, Output, Overrides, Quiet


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("sweep")(guarded(_shared(sweep)))
    app.command("compare")(guarded(_shared(compare)))
    cache = typer.Typer(no_args_is_help=True, help="Look at, or empty, the cache of finished runs.")
    cache.command("list")(guarded(cache_list))
    cache.command("clear")(guarded(cache_clear))
    app.add_typer(cache, name="cache")


def how_many(
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, help="In place of the file's repeat.", show_default=False)
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Runs at a time; 1 runs in this process.", show_default=False),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine", metavar="NAME", help="loky, threading, dask, dask:ADDRESS or ray.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="End a run that takes longer.", show_default=False),
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of BLAS and OpenMP in each run.")] = 1,
    output: Output = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on in --output, or in the newest folder of this name; keep what is done."),
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="With --resume, run lost ones again.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run what is cached, too.")] = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache.")] = False,
    quiet: Quiet = False,
    json: Json = False,
    no_python: NoPython = False,
) -> dict[str, Any]:
    """The options that `sweep` and `compare` share, as arguments of `run_many`."""
    return {
        "options": {
            "jobs": jobs,
            "engine": engine,
            "timeout": timeout,
            "threads": threads,
            "resume": resume,
            "retry_failed": retry_failed,
            "fresh": fresh,
            "cache": not no_cache,
        },
        "stated": {"repeat": repeat, "allow_python": not no_python},
        "output": output,
        "quiet": quiet,
        "json": json,
    }


def _shared(command: Callable[..., int]) -> Callable[..., int]:
    """A command whose keyword-only `how` is made of the options of `how_many`, which join its own."""
    common = inspect.signature(how_many, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    def call(**given: Any) -> int:
        how = how_many(**{name: given.pop(name) for name in common})
        return command(**given, how=how)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    parameters = [one for one in own.parameters.values() if one.name != "how"]
    call.__signature__ = own.replace(parameters=[*parameters, *common.values()])  # type: ignore[attr-defined]
    return call


def sweep(
    file: File,
    overrides: Overrides = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="PLACE=VALUE,VALUE,…", help="Values that vary.", show_default=False),
    ] = None,
    *,
    how: dict[str, Any],
) -> int:
    """Solve what a run file states for many values; a run that fails is a row of the table."""
    from infimum.cli.many import run_many

    how["stated"]["sweep"] = vary or []
    return run_many(file, overrides or [], compares=False, **how)


def compare(
    file: File,
    overrides: Overrides = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="NAME=AMOUNT", help="In place of the file's budget.", show_default=False),
    ] = None,
    *,
    how: dict[str, Any],
) -> int:
    """Compare the solvers of a run file at an equal budget: iterations, seconds, or evaluations."""
    from infimum.cli.many import run_many

    how["stated"]["budget"] = budget
    return run_many(file, overrides or [], compares=True, **how)


def cache_list(json: Json = False) -> None:
    """List the runs that are kept."""
    from infimum.cli.many import cache_list

    cache_list(json=json)


def cache_clear(
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", metavar="DAYS", help="Only what was not used since.", show_default=False),
    ] = None,
) -> None:
    """Remove the runs that are kept."""
    from infimum.cli.many import cache_clear

    cache_clear(older_than)

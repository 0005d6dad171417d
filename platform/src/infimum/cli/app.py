"""The typer application: global options, and one thin function per command that imports its work at first use."""

from __future__ import annotations

from typing import Annotated

import typer

from infimum.cli import guard
from infimum.cli.guard import guarded

_EPILOG = (
    "Exit codes: 0 the command or the run ended normally (converged, stalled and limits included); "
    "1 the run ended nonfinite, diverged, infeasible or failed, or doctor found something broken; "
    "2 bad input: a run file with mistakes, an unknown name, parts that do not fit; 130 interrupted."
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="State a problem once; compose oracles, solvers, constraints and stopping rules; run and explain it.",
)

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


def _version(wanted: bool) -> None:
    if wanted:
        from infimum.versions import version_of

        typer.echo(f"infimum {version_of('infimum') or '(not installed)'}")
        raise typer.Exit


@app.callback()
@guarded
def options(
    strict_plugins: Annotated[
        bool, typer.Option("--strict-plugins", help="Fail if a plugin was set aside or has warnings.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Log more; -vv shows tracebacks too.")
    ] = 0,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    guard.verbosity = verbose
    if strict_plugins:
        from infimum.plugins.registry import get_registry

        get_registry(strict=True)


@app.command()
@guarded
def run(
    file: File,
    overrides: Overrides = None,
    seed: Seed = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", help="Save here instead of runs/NAME/TIME.", show_default=False),
    ] = None,
    observe: Annotated[
        list[str] | None,
        typer.Option("--observe", metavar="NAME", help="Same as observers=[NAME, …]: core.csv", show_default=False),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    json: Json = False,
    no_python: NoPython = False,
) -> int:
    """Solve what a run file states; print the result and where it was saved."""
    from infimum.cli.runs import run_file

    if observe:
        overrides = [*(overrides or []), f"observers=[{', '.join(observe)}]"]
    return run_file(file, overrides or [], seed=seed, output=output, quiet=quiet, json=json, python=not no_python)


@app.command()
@guarded
def resume(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of a run, runs/NAME/TIME.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Go on although code has changed since.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    json: Json = False,
) -> int:
    """Go on with a run that was interrupted or killed, from its last checkpoint."""
    from infimum.cli.records import resume_folder

    return resume_folder(folder, force=force, quiet=quiet, json=json)


@app.command()
@guarded
def rerun(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of a run, runs/NAME/TIME.", show_default=False)],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="DIR", help="Save here instead of runs/NAME/TIME.", show_default=False),
    ] = None,
    json: Json = False,
) -> int:
    """Repeat a run and say what differs; exit code 1 if another result came out."""
    from infimum.cli.records import rerun_folder

    return rerun_folder(folder, output=output, json=json)


@app.command()
@guarded
def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of a run, runs/NAME/TIME.", show_default=False)],
    kind: Annotated[str, typer.Option("--format", metavar="FORMAT", help="csv or parquet.")] = "csv",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write here instead of DIR/trace.*.", show_default=False),
    ] = None,
) -> None:
    """Write the trace of a run as a table for other programs."""
    from infimum.cli.records import export_folder

    export_folder(folder, kind, output=output)


Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Runs at a time; 1 runs in this process.", show_default=False),
]
Engine = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="loky, threading, dask, dask:ADDRESS or ray.", show_default=False),
]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", help="End a run that takes longer.", show_default=False),
]
Threads = Annotated[int, typer.Option("--threads", min=1, help="Threads of BLAS and OpenMP in each run.")]
Repeat = Annotated[
    int | None, typer.Option("--repeat", min=1, help="In place of the file's repeat.", show_default=False)
]
ManyOutput = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="DIR", help="Save here instead of runs/NAME/TIME.", show_default=False),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on in --output, or in the newest folder of this name; keep what is done.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="With --resume, run lost ones again.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run what is cached, too.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the cache.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


@app.command()
@guarded
def sweep(
    file: File,
    overrides: Overrides = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--sweep", metavar="PLACE=VALUE,VALUE,…", help="Values that vary.", show_default=False),
    ] = None,
    repeat: Repeat = None,
    jobs: Jobs = None,
    engine: Engine = None,
    timeout: Timeout = None,
    threads: Threads = 1,
    output: ManyOutput = None,
    resume: Resume = False,
    retry_failed: RetryFailed = False,
    fresh: Fresh = False,
    no_cache: NoCache = False,
    quiet: Quiet = False,
    json: Json = False,
    no_python: NoPython = False,
) -> int:
    """Solve what a run file states for many values; a run that fails is a row of the table."""
    from infimum.cli.many import run_many

    options = {"jobs": jobs, "engine": engine, "timeout": timeout, "threads": threads, "resume": resume}
    options |= {"retry_failed": retry_failed, "fresh": fresh, "cache": not no_cache}
    stated = {"sweep": vary or [], "repeat": repeat, "allow_python": not no_python}
    return run_many(
        file,
        overrides or [],
        compares=False,
        options=options,
        stated=stated,
        output=output,
        quiet=quiet,
        json=json,
    )


@app.command()
@guarded
def compare(
    file: File,
    overrides: Overrides = None,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="NAME=AMOUNT", help="In place of the file's budget.", show_default=False),
    ] = None,
    repeat: Repeat = None,
    jobs: Jobs = None,
    engine: Engine = None,
    timeout: Timeout = None,
    threads: Threads = 1,
    output: ManyOutput = None,
    resume: Resume = False,
    retry_failed: RetryFailed = False,
    fresh: Fresh = False,
    no_cache: NoCache = False,
    quiet: Quiet = False,
    json: Json = False,
    no_python: NoPython = False,
) -> int:
    """Compare the solvers of a run file at an equal budget: iterations, seconds, or evaluations."""
    from infimum.cli.many import run_many

    options = {"jobs": jobs, "engine": engine, "timeout": timeout, "threads": threads, "resume": resume}
    options |= {"retry_failed": retry_failed, "fresh": fresh, "cache": not no_cache}
    stated = {"budget": budget, "repeat": repeat, "allow_python": not no_python}
    return run_many(
        file, overrides or [], compares=True, options=options, stated=stated, output=output, quiet=quiet, json=json
    )


cache_app = typer.Typer(no_args_is_help=True, help="Look at, or empty, the cache of finished runs.")
app.add_typer(cache_app, name="cache")


@cache_app.command("list")
@guarded
def cache_list(json: Json = False) -> None:
    """List the runs that are kept."""
    from infimum.cli.many import cache_list

    cache_list(json=json)


@cache_app.command("clear")
@guarded
def cache_clear(
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", metavar="DAYS", help="Only what was not used since.", show_default=False),
    ] = None,
) -> None:
    """Remove the runs that are kept."""
    from infimum.cli.many import cache_clear

    cache_clear(older_than)


@app.command()
@guarded
def check(
    file: File,
    overrides: Overrides = None,
    numerics: Annotated[
        bool, typer.Option("--numerics", help="Also test gradients, proxes, maps and constants of every term.")
    ] = False,
    json: Json = False,
    no_python: NoPython = False,
) -> int:
    """Do everything up to the first step; list all mistakes at once."""
    if numerics:
        from infimum.cli.numerics import check_numerics

        return check_numerics(file, overrides or [], json=json, python=not no_python)
    from infimum.cli.many import check_many, states_many

    if many := states_many(file, overrides or []):
        return check_many(file, overrides or [], compares=many == "compare", json=json, python=not no_python)
    from infimum.cli.runs import check_file

    return check_file(file, overrides or [], json=json, python=not no_python)


@app.command()
@guarded
def explain(
    file: File,
    overrides: Overrides = None,
    every: Annotated[bool, typer.Option("--all", help="All installed solvers, not only the file's.")] = False,
    json: Json = False,
    no_python: NoPython = False,
) -> int:
    """Print how the problem fits the file's solver; without a solver in the file, or with --all, every solver."""
    from infimum.cli.runs import explain_file

    return explain_file(file, overrides or [], every=every, json=json, python=not no_python)


@app.command()
@guarded
def show(
    file: File,
    overrides: Overrides = None,
    origin: Annotated[bool, typer.Option("--origin", help="One value a line, with where it comes from.")] = False,
    json: Json = False,
    no_python: NoPython = False,
) -> None:
    """Print the resolved run file: qualified names, defaults filled in, overrides applied."""
    from infimum.cli.runs import show_file

    show_file(file, overrides or [], origin=origin, json=json, python=not no_python)


@app.command()
@guarded
def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Folders of runs or of many runs, or above them; or a source that a plugin knows.",
            show_default=False,
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page or picture.")] = "report.html",
    kind: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="html, png, svg or pdf.", show_default="by FILE"),
    ] = None,
) -> None:
    """Write a page about runs that opens without network, or pictures."""
    from infimum.cli.report import write_report

    write_report(sources, output, kind)


@app.command("list")
@guarded
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="solver, oracle, problem, constraint, stopping_rule, …", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List installed components, of one kind or of all."""
    from infimum.cli.installed import list_components

    list_components(kind, json=json)


@app.command()
@guarded
def info(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A component or a plugin.", show_default=False)],
    json: Json = False,
) -> None:
    """Describe a component: what it does, its options with types and defaults, what it needs."""
    from infimum.cli.info import describe

    describe(name, json=json)


@app.command()
@guarded
def plugins(json: Json = False) -> None:
    """List installed plugins: active, disabled, incompatible, failed or shadowed, and why."""
    from infimum.cli.installed import list_plugins

    list_plugins(json=json)


@app.command()
@guarded
def doctor(
    json: Json = False,
    load: Annotated[bool, typer.Option("--load", help="Import every component too, to find what cannot be.")] = False,
) -> int:
    """Look at Python, libraries and plugins; exit code 1 if something is broken."""
    from infimum.cli.doctor import examine

    return examine(json=json, load=load)


@app.command()
@guarded
def schema() -> None:
    """Print the JSON Schema of run files, made from the installed plugins, for completion in editors."""
    from infimum.cli.output import as_json
    from infimum.runfile.schema import run_file_schema

    as_json(run_file_schema())

"""The typer application: global options, and one thin function per command that imports its work at first use."""

from __future__ import annotations

from typing import Annotated

import typer

from infimum.cli import app_many, guard
from infimum.cli.guard import guarded
from infimum.cli.parameters import File, Folder, Json, NoPython, Output, Overrides, Quiet, Seed

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
    output: Output = None,
    observe: Annotated[
        list[str] | None,
        typer.Option("--observe", metavar="NAME", help="Same as observers=[NAME, …]: core.csv", show_default=False),
    ] = None,
    quiet: Quiet = False,
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
    folder: Folder,
    force: Annotated[bool, typer.Option("--force", help="Go on although code has changed since.")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Go on with a run that was interrupted or killed, from its last checkpoint."""
    from infimum.cli.records import resume_folder

    return resume_folder(folder, force=force, quiet=quiet, json=json)


@app.command()
@guarded
def rerun(
    folder: Folder,
    output: Output = None,
    json: Json = False,
) -> int:
    """Repeat a run and say what differs; exit code 1 if another result came out."""
    from infimum.cli.records import rerun_folder

    return rerun_folder(folder, output=output, json=json)


@app.command()
@guarded
def export(
    folder: Folder,
    kind: Annotated[str, typer.Option("--format", metavar="FORMAT", help="csv or parquet.")] = "csv",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write here instead of DIR/trace.*.", show_default=False),
    ] = None,
) -> None:
    """Write the trace of a run as a table for other programs."""
    from infimum.cli.records import export_folder

    export_folder(folder, kind, output=output)


app_many.add_to(app)


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

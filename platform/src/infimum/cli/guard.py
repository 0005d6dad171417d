"""What every command does around its work: exit codes, errors on stderr in one line each, quiet pipes, logging."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
"""Exit codes; 1 stands for a run that ended nonfinite, diverged, infeasible or failed."""

Command = TypeVar("Command", bound=Callable[..., Any])
verbosity = 0
"""How often `-v` was given; set by the application's callback."""


def guarded(command: Command) -> Command:
    """A command whose `InfimumError`, Ctrl-C and broken pipe end with the right exit code and without a traceback."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        try:
            with _logging(), _warnings():
                code = command(*args, **kwargs) or OK
            sys.stdout.flush()
        except BrokenPipeError:
            _close_stdout()
            code = OK
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            code = INTERRUPTED
        except Exception as error:
            from infimum.errors import InfimumError

            if not isinstance(error, InfimumError) or verbosity >= 2:
                raise
            fail(error)
            code = BAD_INPUT
        if code:
            raise typer.Exit(code)

    return wrapper  # type: ignore[return-value]


def fail(error: BaseException) -> None:
    """Write an error to stderr; the mistakes of a run file stay as they are, one a line."""
    located = hasattr(error, "issues")
    typer.echo(str(error) if located else f"error: {error}", err=True)


def _close_stdout() -> None:
    """Point stdout elsewhere, so that the interpreter's last flush does not complain."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  lives until the process ends


@contextmanager
def _logging() -> Iterator[None]:
    logger = logging.getLogger("infimum")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)])
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


@contextmanager
def _warnings() -> Iterator[None]:
    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        typer.echo(f"warning: {' '.join(str(message).split())}", err=True)

    with warnings.catch_warnings():
        from infimum.errors import InfimumWarning

        warnings.simplefilter("always", InfimumWarning)
        warnings.showwarning = show
        yield

"""One line about an exception in code that is not ours: its type, its text, and the file and line to look at."""

from __future__ import annotations

import traceback

_LONGEST = 400


def explain(error: BaseException, root: str = "") -> str:
    """`ValueError: text (file.py:12)`.

    Parameters
    ----------
    error : BaseException
        An exception that was raised, with its traceback.
    root : str, default ""
        Package or module whose code is to blame: the deepest frame in it is named, else the deepest one outside the
        import machinery and this package.
    """
    text = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    place = where(error, root)
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if place and not (isinstance(error, SyntaxError) and place in said):
        said += f" ({place})"
    return said


def where(error: BaseException, root: str = "") -> str:
    """`file:line` of the frame to look at, or "" if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    foreign = ""
    own = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = frame.f_globals.get("__name__", "") or ""
        file = frame.f_code.co_filename
        if root and _within(module, root):
            own = f"{file}:{line}"
        elif not (file.startswith("<") or _within(module, "importlib") or _within(module, "infimum.plugins")):
            foreign = f"{file}:{line}"
    return own or foreign


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")

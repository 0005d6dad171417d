"""Documentation of options, read from numpydoc docstrings."""

from __future__ import annotations

import inspect
import re
from typing import Any

_SECTIONS = ("Parameters", "Attributes", "Other Parameters")
_UNDERLINE = re.compile(r"-{3,}")
_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")


def option_docs(target: Any) -> dict[str, str]:
    """Option name to its description, from the docstrings of a function or of a class and its bases."""
    found: dict[str, str] = {}
    if inspect.isclass(target):
        for cls in reversed(target.__mro__[:-1]):
            for documented in (cls, cls.__dict__.get("__init__")):
                found.update(_parse(getattr(documented, "__doc__", None)))
        return found
    return _parse(getattr(target, "__doc__", None))


def summary(target: Any) -> str:
    """First line of the docstring; empty when there is none (or only the one that `dataclass` writes)."""
    text = inspect.cleandoc(getattr(target, "__doc__", None) or "")
    first = text.partition("\n")[0].strip()
    return "" if first.startswith(f"{getattr(target, '__name__', '')}(") else first


def _parse(docstring: str | None) -> dict[str, str]:
    lines = inspect.cleandoc(docstring or "").splitlines()
    found: dict[str, str] = {}
    for start, title in enumerate(lines[:-1]):
        if title.strip() in _SECTIONS and _UNDERLINE.fullmatch(lines[start + 1].strip()):
            _read_section(lines[start + 2 :], found)
    return found


def _read_section(lines: list[str], found: dict[str, str]) -> None:
    """Entries are flush left and their text is indented; a second underline ends the section."""
    names: list[str] = []
    text: list[str] = []
    for number, line in enumerate(lines):
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        if _UNDERLINE.fullmatch(following):
            break
        if line.strip() and not line[0].isspace():
            _store(found, names, text)
            entry = _ENTRY.fullmatch(line.strip())
            names = [name.strip(" *") for name in entry["names"].split(",")] if entry else []
            text = []
        else:
            text.append(line.strip())
    _store(found, names, text)


def _store(found: dict[str, str], names: list[str], text: list[str]) -> None:
    joined = " ".join(line for line in text if line)
    for name in names:
        found[name] = joined

"""Plain data to YAML that reads back the same under YAML 1.2 and under 1.1."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from infimum.runfile.reader import CoreLoader

_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one in C, where PyYAML was built with it: a sweep writes a file for each of its runs."""


class _Dumper(_Base):  # type: ignore[misc]
    """Quotes text that either version of YAML would take for something else."""

    yaml_implicit_resolvers: dict[Any, Any] = {  # noqa: RUF012  PyYAML's own attribute
        first: list(rules) for first, rules in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: Any, text: str) -> Any:
    style = '"' if _BREAKS & set(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_BREAKS = frozenset("\r\x85\u2028\u2029\ufeff")
"""Line breaks that would be folded away between single quotes."""
_Dumper.add_representer(str, _text)

for _tag, _regexp in CoreLoader.yaml_implicit_resolvers[None]:
    _Dumper.add_implicit_resolver(_tag, _regexp, None)


def dump_yaml(data: Mapping[str, Any]) -> str:
    """`data` as YAML text, keys in their order, short collections on one line."""
    text: str = yaml.dump(
        plain(data), Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=10_000, allow_unicode=True
    )
    return text


def is_plain(value: Any) -> bool:
    """Whether `value` can be written in a run file."""
    try:
        plain(value)
    except TypeError:
        return False
    return True


def plain(value: Any) -> Any:
    """`value` with tuples as lists, enumerations by name and NumPy scalars as numbers.

    Raises
    ------
    TypeError
        For a value that has no form in a run file.
    """
    if value is None or (isinstance(value, bool | str) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("keys of a run file are text")
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        return [plain(one) for one in value]
    raise TypeError(f"{type(value).__name__} has no form in a run file")

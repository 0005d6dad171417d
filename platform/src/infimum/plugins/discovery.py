"""Find plugins from the metadata of installed distributions, without importing any of them."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, EntryPoint, PackageMetadata

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from infimum.plugins.records import SNAKE_CASE, PluginRecord

GROUP = "infimum"
CORE = "core"


def host_version() -> str | None:
    """Version of the installed host, or None when it runs from a source tree that is not installed."""
    try:
        return importlib.metadata.version("infimum")
    except importlib.metadata.PackageNotFoundError:
        return None


def discover(
    distributions: Iterable[Distribution] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    host: str | None = None,
) -> tuple[list[PluginRecord], list[str]]:
    """Records of all installed plugins, sorted by name, from metadata only.

    Parameters
    ----------
    distributions : iterable of importlib.metadata.Distribution, optional
        Where to look; by default everything on `sys.path`.
    environ : mapping, optional
        Environment with `INFIMUM_PLUGINS` and `INFIMUM_DISABLE`; by default the process's.
    host : str, optional
        Version of the host to check against; by default the installed one.

    Returns
    -------
    records : list of PluginRecord
        With status `found` where nothing speaks against loading.
    warnings : list of str
        About the environment variables: names that no plugin carries.
    """
    environ = os.environ if environ is None else environ
    host = host_version() if host is None else host
    records = [_core(host), *_scan(importlib.metadata.distributions() if distributions is None else distributions)]
    records.sort(key=lambda one: (one.name, one.distribution != "infimum", canonicalize_name(one.distribution)))
    warnings = _apply_environment(records, environ)
    for record in records:
        if record.status == "found" and not SNAKE_CASE.fullmatch(record.name):
            record.set_aside("failed", f"entry point name '{record.name}' is not in snake_case; rename it")
        elif record.status == "found":
            _check_range(record, host)
    _shadow(records)
    return records, warnings


def _core(host: str | None) -> PluginRecord:
    module = "infimum.plugins.core"
    return PluginRecord(CORE, "infimum", host or "", module=module, entry=EntryPoint(CORE, module, GROUP))


def _scan(distributions: Iterable[Distribution]) -> list[PluginRecord]:
    records: list[PluginRecord] = []
    seen: set[str] = set()
    for distribution in distributions:
        entries = _entries(distribution)
        if not entries:
            continue
        metadata = distribution.metadata
        name, version = _text(metadata, "Name") or entries[0].name, _text(metadata, "Version")
        # The first of a name on sys.path is the one that imports find: an editable install may be listed twice.
        if canonicalize_name(name) in seen:
            continue
        seen.add(canonicalize_name(name))
        requires = _requires(metadata.get_all("Requires-Dist") or ())
        for entry in sorted(entries, key=lambda one: (one.name, one.value)):
            records.append(PluginRecord(entry.name, name, version, module=entry.value, requires=requires, entry=entry))
    return records


def _entries(distribution: Distribution) -> list[EntryPoint]:
    """Entry points of our group; the text is looked at first because parsing the metadata of everything is slow."""
    try:
        text = distribution.read_text("entry_points.txt")
        if not text or f"[{GROUP}]" not in text.replace(" ", ""):
            return []
        return [entry for entry in distribution.entry_points if entry.group == GROUP]
    except (OSError, ValueError):
        return []


def _text(metadata: PackageMetadata, key: str) -> str:
    found = metadata.get_all(key)
    return str(found[0]) if found else ""


def _requires(lines: Iterable[str]) -> str:
    """The joined version ranges of all requirements on the host that hold here."""
    ranges = SpecifierSet()
    for line in lines:
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue
        if canonicalize_name(wanted.name) == "infimum" and (
            wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        ):
            ranges &= wanted.specifier
    return ",".join(sorted(str(one) for one in ranges))


def _check_range(record: PluginRecord, host: str | None) -> None:
    if not record.requires or host is None:
        return
    if SpecifierSet(record.requires).contains(host, prereleases=True):
        return
    remedy = (
        f'pip install --upgrade "infimum{record.requires}"'
        if _host_is_old(record.requires, host)
        else f"pip install --upgrade {record.distribution}"
    )
    record.set_aside("incompatible", f"needs infimum {record.requires}, this is {host}; try: {remedy}")


def _host_is_old(ranges: str, host: str) -> bool:
    try:
        here = Version(host)
        return any(
            one.operator in (">=", ">", "==", "~=", "===") and here < Version(one.version.removesuffix(".*"))
            for one in SpecifierSet(ranges)
        )
    except InvalidVersion:
        return True


def _apply_environment(records: list[PluginRecord], environ: Mapping[str, str]) -> list[str]:
    known = {record.name for record in records}
    disabled, allowed = _names(environ.get("INFIMUM_DISABLE", "")), environ.get("INFIMUM_PLUGINS")
    only = None if allowed is None else _names(allowed)
    for record in records:
        if record.distribution == "infimum" and record.name == CORE:
            continue
        if record.name in disabled:
            record.set_aside("disabled", "named in INFIMUM_DISABLE")
        elif only is not None and record.name not in only:
            record.set_aside("disabled", f"not named in INFIMUM_PLUGINS={allowed}")
    warnings = [
        f"{variable} names '{name}', which no installed plugin carries"
        for variable, names in (("INFIMUM_DISABLE", disabled), ("INFIMUM_PLUGINS", only or ()))
        for name in names
        if name not in known
    ]
    if CORE in disabled:
        warnings.append("INFIMUM_DISABLE names 'core', which cannot be disabled")
    return warnings


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _shadow(records: list[PluginRecord]) -> None:
    """Of several records with one name, the first that could be loaded stays."""
    first: dict[str, PluginRecord] = {}
    for record in records:
        if record.status != "found":
            continue
        other = first.setdefault(record.name, record)
        if other is not record:
            record.set_aside(
                "shadowed",
                f"distributions {other.distribution} and {record.distribution} both have a plugin called "
                f"'{record.name}'; {other.distribution} is used; uninstall one: pip uninstall {record.distribution}",
            )

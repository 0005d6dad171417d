"""What a numerical check found, as an object that prints well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from infimum.errors import InputError

Severity = Literal["error", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or (a note) that is allowed but costs something.

    Attributes
    ----------
    check : str
        Which check found it: "gradient", "adjoint", "lipschitz", …
    message : str
        A sentence with the numbers.
    severity : {"error", "note"}
    values : mapping of str to float
        The numbers of the message.
    """

    check: str
    message: str
    severity: Severity = "error"
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


@dataclass
class Report:
    """The outcome of `check_function`, `check_map` or `check_constraint`.

    Attributes
    ----------
    subject : str
        What was checked, and at which kind of point.
    checked : list of str
        Checks that were made.
    skipped : dict
        Checks that could not be made, each with the reason.
    findings : list of Finding
    """

    subject: str
    checked: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing is wrong; notes do not count."""
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        """Findings that are no notes."""
        return [one for one in self.findings if one.severity == "error"]

    @property
    def notes(self) -> list[Finding]:
        """Findings that are allowed."""
        return [one for one in self.findings if one.severity == "note"]

    def of(self, check: str) -> list[Finding]:
        """Findings of one check."""
        return [one for one in self.findings if one.check == check]

    def add(self, check: str, message: str, *, severity: Severity = "error", **values: Any) -> None:
        self.findings.append(Finding(check, message, severity, values))

    def include(self, other: Report, prefix: str) -> None:
        """Take over another report, with `prefix` before its messages."""
        self.checked += [one for one in other.checked if one not in self.checked]
        self.skipped.update({key: text for key, text in other.skipped.items() if key not in self.skipped})
        self.findings += [
            Finding(one.check, f"{prefix}: {one.message}", one.severity, one.values) for one in other.findings
        ]

    def require(self) -> Report:
        """Itself, if nothing is wrong.

        Raises
        ------
        InputError
            With the whole report as its text.
        """
        if not self.ok:
            raise InputError(str(self))
        return self

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        errors, notes = len(self.errors), len(self.notes)
        verdict = "nothing wrong" if not errors else f"{errors} thing{'s' if errors > 1 else ''} wrong"
        extra = f", {notes} note{'s' if notes > 1 else ''}" if notes else ""
        lines = [f"{self.subject}: {verdict}{extra} in {len(self.checked)} checks"]
        lines += [f"  wrong    {one}" for one in self.errors]
        lines += [f"  note     {one}" for one in self.notes]
        lines.append(f"  checked  {', '.join(self.checked) or 'nothing'}")
        lines += [f"  skipped  {key}: {text}" for key, text in self.skipped.items()]
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "subject": self.subject,
            "ok": self.ok,
            "checked": list(self.checked),
            "skipped": dict(self.skipped),
            "findings": [
                {"check": one.check, "severity": one.severity, "message": one.message, "values": dict(one.values)}
                for one in self.findings
            ],
        }

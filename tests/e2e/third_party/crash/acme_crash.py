"""A plugin that fails when it is imported, by the worst of exceptions."""

from __future__ import annotations

raise SystemExit("acme_crash wants a license key")

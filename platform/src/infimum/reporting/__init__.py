"""Reports of one or many runs: pages that open anywhere, and pictures.

`Section`, `Figure`, `Curve` and `Table` are plain data that plugins make in the hook `infimum_report_sections`;
`infimum.report` writes the page or the pictures.
"""

from __future__ import annotations

from infimum.reporting.data import Curve, Figure, Section, Table

__all__ = ["Curve", "Figure", "Section", "Table"]

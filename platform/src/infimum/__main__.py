"""`python -m infimum`."""

from __future__ import annotations

from infimum.cli import main

main()

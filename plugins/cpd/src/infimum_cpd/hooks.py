"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from infimum.plugins import hook


@hook
def infimum_stopping_rules(register: Callable[..., None]) -> None:
    register(
        "cusum",
        "infimum_cpd.rule:Cusum",
        kind="change point",
        summary="the mean of a metric has moved for good, by CUSUM against a reference, at a stated false-alarm rate",
    )


@hook
def infimum_report_sections(result: Any) -> Iterable[Any]:
    if not any("cpd.cusum" in name for name in result.extras):
        return ()
    from infimum_cpd.report import sections

    return sections(result.extras)

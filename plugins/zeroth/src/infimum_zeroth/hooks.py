"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

ORACLES = (
    ("forward_difference", "ForwardDifference", "gradient by forward differences, n + 1 values each"),
    ("central_difference", "CentralDifference", "gradient by central differences, 2 n values each"),
    ("complex_step", "ComplexStep", "gradient to machine precision of analytic formulas, n + 1 values each"),
    ("random_directions", "RandomDirections", "gradient estimate from m random directions, 2 m or m + 1 values each"),
    ("spsa", "Spsa", "gradient estimate from m random sign vectors, 2 m values each"),
    ("random_block", "RandomBlock", "differences in B random coordinates, B + 1 or 2 B values each"),
    ("mezo", "Mezo", "gradient estimate from m replayed directions, 2 m values in the memory of two points"),
)
"""Name, which is that of the module, class, and what it does."""


@hook
def infimum_oracles(register: Callable[..., None]) -> None:
    for name, target, summary in ORACLES:
        register(name, f"infimum_zeroth.{name}:{target}", kind="zeroth-order", summary=summary)

"""What the plugin registers; imports nothing heavy."""

from __future__ import annotations

from infimum.plugins import hook


@hook
def infimum_oracles(register):
    register("central", "acme_ripple:Central", kind="zeroth-order", summary="gradient by central differences")


@hook
def infimum_problems(register):
    register("bowl", "acme_ripple:bowl", summary="a separable bowl that offers values only, plus an l1 norm")


@hook
def infimum_stopping_rules(register):
    register("below", "acme_ripple:Below", kind="target", summary="the value was below a level several times in a row")


@hook
def infimum_run_finished(run, result):
    result.notes = (*result.notes, f"ripple saw {result.iterations} iterations")

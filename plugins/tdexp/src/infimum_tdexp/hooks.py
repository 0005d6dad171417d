"""What this plugin registers; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable

from infimum.plugins import hook

_PROBLEMS = {
    "garnet": ("generators:garnet", "a random Markov reward process with random features"),
    "boyan_chain": ("generators:boyan_chain", "Boyan's chain: 13 states, 4 interpolated features, ends and restarts"),
    "random_walk": ("generators:random_walk", "a walk between two ends, seen through radial features"),
    "refresh_chain": ("generators:refresh_chain", "stays or is drawn anew: mixing at a chosen rate"),
    "baird": ("generators:baird", "Baird's off-policy star, on which TD(0) diverges"),
    "taxi": ("toy_text:taxi", "gymnasium's Taxi under a policy, position and errand as features"),
    "cliff_walking": ("toy_text:cliff_walking", "gymnasium's CliffWalking under a policy, one feature a cell"),
    "frozen_lake": ("toy_text:frozen_lake", "gymnasium's FrozenLake under a policy, one feature a cell"),
    "stream": ("recorded:stream", "recorded transitions from a file of arrays"),
}
_SCHEDULES = {
    "exponential": ("Exponential", "from eta0 down to eta0 beta/T by a constant factor, within a known horizon T"),
    "doubling": ("Doubling", "exponential steps over horizons that double, for an unknown number of steps"),
    "theory": ("Theory", "exponential steps with the largest eta0 that the theorems allow"),
}


@hook
def infimum_problems(register: Callable[..., None]) -> None:
    for name, (target, summary) in _PROBLEMS.items():
        register(name, f"infimum_tdexp.{target}", kind="policy evaluation", summary=summary)


@hook
def infimum_solvers(register: Callable[..., None]) -> None:
    register(
        "td0",
        "infimum_tdexp.td:TD0",
        kind="temporal difference",
        summary="TD(0) with linear features, for one run or many at once: last iterate or an average",
    )
    register(
        "lstd",
        "infimum_tdexp.lstd:LSTD",
        kind="least squares",
        summary="least-squares TD: the fixed point of the transitions seen, d^2 numbers a step",
    )


@hook
def infimum_components(register: Callable[..., None]) -> None:
    for name, (target, summary) in _SCHEDULES.items():
        register(name, f"infimum_tdexp.schedules:{target}", kind="schedule", summary=summary)

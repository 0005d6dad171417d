"""A plugin that breaks one rule with each of its components, and its entry module one of its own."""

from __future__ import annotations

import numpy  # noqa: F401  an entry module must not

from infimum.plugins import hook

SOLVERS = {
    "sound": "Sound",
    "mutates_start": "MutatesStart",
    "global_state": "GlobalState",
    "own_state": "OwnState",
    "forgets": "Forgets",
    "global_draws": "GlobalDraws",
    "vector_metric": "VectorMetric",
    "steps_without_state": "StepsWithoutState",
    "deaf": "Deaf",
    "never_seen": "NeverSeen",
    "sound_counter": "SoundCounter",
}
ORACLES = {
    "sound_oracle": "SoundOracle",
    "shared_buffer": "SharedBuffer",
    "reused_array": "ReusedArray",
    "hidden_memory": "HiddenMemory",
    "eager": "Eager",
    "doubled": "Doubled",
    "half_prox": "HalfProx",
}


@hook
def infimum_solvers(register):
    for name, target in SOLVERS.items():
        register(name, f"acme_broken:{target}", summary="gradient steps, more or less")


@hook
def infimum_oracles(register):
    for name, target in ORACLES.items():
        register(name, f"acme_broken:{target}", summary="a gradient or a prox, more or less")


@hook
def infimum_constraints(register):
    register("loose_ball", "acme_broken:LooseBall", summary="the unit ball, projected too far out")


@hook
def infimum_problems(register):
    register("countdown", "acme_broken:Countdown", summary="a family of its own")
    register("wrong_prox", "acme_broken:wrong_prox", summary="a term whose prox is off by a factor")
    register("moving_start", "acme_broken:moving_start", summary="a start that differs at every call")


@hook
def infimum_stopping_rules(register):
    register("shared_tracker", "acme_broken:SharedTracker", summary="one memory for all of its trackers")


@hook
def infimum_components(register):
    register("open_options", "acme_broken:open_options", kind="schedule", summary="takes any option")
    register("bare", "acme_broken:bare", kind="schedule", summary="does not describe its option")
    register("absent", "acme_broken:absent", kind="schedule", summary="is not there")

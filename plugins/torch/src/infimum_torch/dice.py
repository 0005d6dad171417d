"""Random numbers of a run on torch's global generators, which code of modules and loaders draws from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch


class Dice:
    """While entered, torch's global generators (and any others given) stand in a state of this object's own.

    Dropout, noise layers and loaders have no argument for a generator: they draw from the global one. A run enters its
    dice around such code, so that what it draws depends on the run alone, goes on after a checkpoint, and leaves the
    user's generators as they were.

    Parameters
    ----------
    seed : int
    device : torch.device
        Whose generator is covered, beside that of the CPU.
    more : iterable of torch.Generator
        Others, such as that of a loader.
    """

    def __init__(self, seed: int, device: torch.device, more: Iterable[torch.Generator] = ()) -> None:
        self.generators = [torch.default_generator, *more]
        if device.type == "cuda":
            torch.cuda.init()  # type: ignore[no-untyped-call]
            index = torch.cuda.current_device() if device.index is None else device.index
            self.generators.append(torch.cuda.default_generators[index])
        self.states = [torch.Generator(one.device).manual_seed(seed + k).get_state() for k, one in self._numbered()]
        self._theirs: list[torch.Tensor] = []

    def _numbered(self) -> Iterable[tuple[int, torch.Generator]]:
        return enumerate(self.generators)

    def __enter__(self) -> Dice:
        self._theirs = [one.get_state() for one in self.generators]
        self._set(self.states)
        return self

    def __exit__(self, *_: object) -> None:
        self.states = [one.get_state() for one in self.generators]
        self._set(self._theirs)

    def _set(self, states: list[torch.Tensor]) -> None:
        for one, state in zip(self.generators, states, strict=True):
            one.set_state(state)

    def state_dict(self) -> dict[str, Any]:
        return {"states": list(self.states)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.states = [one.cpu() for one in state["states"]]


def draw_seed(rng: Any) -> int:
    """A seed for a generator of torch from one of NumPy."""
    return int(rng.integers(2**62))

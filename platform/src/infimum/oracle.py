"""The contract of oracles: frozen options, and `bind(function, rng)` that makes the part with the mutable state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from infimum.exactness import Exactness

Resume = Literal["exact", "replay", "none"]
"""What a checkpoint of a component is worth: bit for bit, by running again from the start, or nothing."""


class Oracle:
    """Lifts capabilities: needs some of a function, supplies others.

    Subclasses are frozen dataclasses. `bind` must not evaluate the function.
    """

    kind: ClassVar[str] = "oracle"
    """A word for lists: "gradient", "zeroth-order", "proximal"."""
    needs: ClassVar[tuple[str, ...]] = ("value",)
    supplies: ClassVar[tuple[str, ...]] = ()
    wants: ClassVar[tuple[str, ...]] = ()
    """Capabilities that the part uses when the function offers them (`values` for batches)."""
    metrics: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """Numbers that a part knows of its last call: name to `get(part) -> float or None`. Rules and the trace ask for
    them by name; where several parts supply one, the largest counts. A getter must not change the part."""
    exactness: Exactness = Exactness.approximate
    resume: ClassVar[Resume] = "exact"
    preference: ClassVar[int] = 0
    """Among equally exact oracles that fit, the larger one comes first under `oracles: auto`."""

    def refuses(self, function: Any) -> str | None:
        """A reason why this oracle cannot serve `function` although it has what is needed, or None."""
        return None

    def volunteers(self, function: Any) -> bool:
        """Whether `oracles: auto` may choose this oracle for `function`; where it is named, nobody asks.

        False for what cannot be known without an evaluation, such as whether a function computes with torch.
        """
        return True

    def bind(self, function: Any, rng: np.random.Generator) -> Any:
        """A part for one slot of one run.

        Parameters
        ----------
        function : object
            Offers `needs` (and perhaps `wants`) as methods; evaluations through it are counted.
        rng : numpy.random.Generator
            This part's own generator.

        Returns
        -------
        object
            With a method for each of `supplies`. If it holds mutable state, that stands behind `state_dict()` and
            `load_state_dict(state)` as a tree of dict / list / scalar / str / array / generator. It may carry a fact
            of its own, `lipschitz`; the other facts stay those of the function.
        """
        raise NotImplementedError


@runtime_checkable
class Stateful(Protocol):
    """Something with mutable state that a checkpoint holds."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...

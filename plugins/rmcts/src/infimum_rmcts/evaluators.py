"""Evaluators: from positions to a prior over the actions and a value for the player to move."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_rmcts.checks import generator, integer
from infimum_rmcts.game import check_evaluator, check_rules, checked_answer

Floats = NDArray[np.float64]


class Uniform:
    """A flat prior and value 0: all that the search knows comes from the ends of the game.

    Parameters
    ----------
    num_actions : int
    """

    name = "uniform"

    def __init__(self, num_actions: int) -> None:
        self.num_actions = integer("num_actions", num_actions)

    def __call__(self, S: Any) -> tuple[Floats, Floats]:
        return np.ones((len(S), self.num_actions)), np.zeros(len(S))


class Rollout:
    """A flat prior and the mean score of random games, all positions and games at once.

    Parameters
    ----------
    game : Game
    rollouts : int, default 8
        Games from each position.
    rng : numpy.random.Generator or int, default 0
    max_plies : int, default 1000
        Moves after which a game counts as drawn.

    Raises
    ------
    InputError
        For something that is no game, or rollouts or max_plies below 1.
    """

    name = "rollout"

    def __init__(self, game: Any, rollouts: int = 8, rng: np.random.Generator | int = 0, max_plies: int = 1000) -> None:
        check_rules(game)
        self.game, self.rollouts, self.max_plies = game, integer("rollouts", rollouts), integer("max_plies", max_plies)
        self.mover = getattr(game, "mover", None)
        self.rng = generator(rng)

    def __call__(self, S: Any) -> tuple[Floats, Floats]:
        prior = np.asarray(self.game.legal(S), np.float64)
        states = np.repeat(S, self.rollouts, axis=0)
        scores, sign, alive = np.zeros(len(states)), np.ones(len(states)), np.arange(len(states))
        for _ in range(self.max_plies):
            over, score = self.game.terminal(states)
            scores[alive[over]] = sign[over] * score[over]
            states, sign, alive = states[~over], sign[~over], alive[~over]
            if not len(alive):
                break
            legal = np.asarray(self.game.legal(states), bool)
            action = np.where(legal, self.rng.random(legal.shape), -1.0).argmax(axis=1)
            after = self.game.play(states, action)
            same = False if self.mover is None else np.asarray(self.mover(states)) == np.asarray(self.mover(after))
            sign = np.where(same, sign, -sign)
            states = after
        return prior, scores.reshape(len(S), self.rollouts).mean(axis=1)


class Network:
    """A torch module as an evaluator, without gradients, in evaluation mode, in batches of bounded size.

    Parameters
    ----------
    module : torch.nn.Module or callable
        Of a batch (m, d) to logits (m, A) and values (m,) or (m, 1), the value as it is (end with a tanh).
    encode : callable
        Positions to an array (m, d), such as `game.encode`.
    max_batch : int, default 4096
        Positions in a call of the module at most.
    device : str, default "cpu"
        Where the positions are sent; the module must be there.
    """

    name = "network"

    def __init__(self, module: Any, encode: Any, max_batch: int = 4096, device: str = "cpu") -> None:
        for name, one in (("module", module), ("encode", encode)):
            if not callable(one):
                raise InputError(f"{name}={one!r:.80}: expected a callable")
        self.module, self.encode, self.device = module, encode, device
        self.max_batch = integer("max_batch", max_batch)

    def __call__(self, S: Any) -> tuple[Floats, Floats]:
        import torch

        training = bool(getattr(self.module, "training", False))
        if training:
            self.module.eval()
        try:
            with torch.no_grad():
                out = [self._batch(S[k : k + self.max_batch]) for k in range(0, max(len(S), 1), self.max_batch)]
        finally:
            if training:
                self.module.train()
        return np.concatenate([one for one, _ in out]), np.concatenate([one for _, one in out])

    def _batch(self, S: Any) -> tuple[Floats, Floats]:
        import torch

        dtype = next((one.dtype for one in getattr(self.module, "parameters", lambda: ())()), torch.float32)
        answer = self.module(torch.as_tensor(self.encode(S), dtype=dtype, device=self.device))
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise InputError(f"the module must return (logits, value), got {type(answer).__name__}")
        logits, value = answer
        prior = torch.softmax(logits.double(), dim=-1).cpu().numpy()
        return prior, value.double().reshape(-1).cpu().numpy()


class Cached:
    """Remembers what another evaluator said of each position.

    Parameters
    ----------
    evaluator : callable
    max_entries : int, default 1_000_000
        When more would be kept, all are forgotten first.

    Attributes
    ----------
    hits, misses : int
        Positions that were remembered, and that were not.
    """

    name = "cached"

    def __init__(self, evaluator: Any, max_entries: int = 1_000_000) -> None:
        check_evaluator(evaluator)
        self.evaluator, self.max_entries = evaluator, integer("max_entries", max_entries)
        self.hits = self.misses = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._rows: dict[Any, int] = {}
        self._keys: list[Any] = []
        self._prior: Floats | None = None
        self._value: Floats = np.zeros(0)

    def __call__(self, S: Any) -> tuple[Floats, Floats]:
        keys = _keys(S)
        rows = np.fromiter(map(self._rows.get, keys, _missing()), np.int64, len(keys))
        new = np.flatnonzero(rows < 0)
        self.hits += len(keys) - len(new)
        self.misses += len(new)
        if len(new):
            fresh = dict.fromkeys([keys[k] for k in new])
            if len(self._rows) + len(fresh) > self.max_entries:
                self.clear()
                new, fresh = np.arange(len(keys)), dict.fromkeys(keys)
            self._learn(S, keys, new, list(fresh))
            rows = np.fromiter(map(self._rows.__getitem__, keys), np.int64, len(keys))
        assert self._prior is not None
        return self._prior[rows], self._value[rows]

    def _learn(self, S: Any, keys: list[Any], new: Any, fresh: list[Any]) -> None:
        first = dict(zip([keys[k] for k in new[::-1]], new[::-1].tolist(), strict=True))
        answer = self.evaluator(S[[first[key] for key in fresh]])
        if self._prior is None:
            shape = np.shape(answer[0]) if isinstance(answer, tuple) else ()
            self._prior = np.zeros((0, shape[1] if len(shape) == 2 else 0))
        prior, value = checked_answer(answer, len(fresh), self._prior.shape[1], "the evaluator behind the cache")
        count = len(self._keys)
        if count + len(fresh) > len(self._prior):
            room = max(2 * len(self._prior), count + len(fresh), 256)
            self._prior = np.concatenate([self._prior, np.zeros((room - len(self._prior), self._prior.shape[1]))])
            self._value = np.concatenate([self._value, np.zeros(room - len(self._value))])
        self._prior[count : count + len(fresh)] = prior
        self._value[count : count + len(fresh)] = value
        self._rows.update(zip(fresh, range(count, count + len(fresh)), strict=True))
        self._keys += fresh

    def state_dict(self) -> dict[str, Any]:
        """Everything that is remembered, as plain data."""
        n = len(self._keys)
        text = bool(n) and isinstance(self._keys[0], str)
        keys: Any = list(self._keys) if text or not n else np.frombuffer(b"".join(self._keys), np.uint8).reshape(n, -1)
        prior = None if self._prior is None else self._prior[:n].copy()
        return {"keys": keys, "prior": prior, "value": self._value[:n].copy(), "counts": [self.hits, self.misses]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        keys = state["keys"]
        self._keys = list(keys) if isinstance(keys, list) else [row.tobytes() for row in keys]
        self._rows = {key: k for k, key in enumerate(self._keys)}
        self._prior, self._value = state["prior"], state["value"]
        self.hits, self.misses = (int(one) for one in state["counts"])


def _missing() -> Any:
    from itertools import repeat

    return repeat(-1)


def _keys(S: Any) -> list[Any]:
    """One hashable key a position: its bytes, or its text where positions are objects."""
    if S.dtype == object:
        return list(map(str, S))
    flat = np.ascontiguousarray(S).reshape(len(S), -1)
    return flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1])))[:, 0].tolist()  # type: ignore[no-any-return]

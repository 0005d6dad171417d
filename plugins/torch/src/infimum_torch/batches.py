"""Batches: where they come from, how they reach the device, and an endless stream of them that can be taken up."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from infimum.errors import InputError
from infimum_torch.dice import Dice

_END = object()


class Stream(Protocol):
    """Batches of one epoch after another."""

    taken: int
    """Batches handed out so far."""

    @property
    def epoch(self) -> float:
        """Epochs so far: whole ones where the length of an epoch is not known yet."""
        ...

    def next(self) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Tensors:
    """Data in memory: tensors with one row per sample, cut into batches.

    Parameters
    ----------
    tensors : sequence of array, each of shape (n, …)
        A batch is a tuple with some rows of each.
    batch_size : int, optional
        Rows of a batch; all rows without it.
    shuffle : bool, default True
        A new order for each epoch.
    drop_last : bool, default False
        Leave out a last batch that is smaller than the others.
    name : str, default "data"
        What errors call it.

    Raises
    ------
    InputError
        For no rows, different numbers of rows, or a batch size that is no positive integer.
    """

    def __init__(
        self,
        tensors: Sequence[Any],
        batch_size: int | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        name: str = "data",
    ) -> None:
        self.tensors = tuple(torch.as_tensor(one) for one in tensors)
        rows = {len(one) if one.ndim else 0 for one in self.tensors}
        if len(rows) != 1:
            raise InputError(f"{name}: the arrays have {sorted(rows)} rows; expected the same number")
        self.n = rows.pop()
        if self.n == 0:
            raise InputError(f"{name}: the arrays are empty; expected at least one row")
        if batch_size is not None and not (isinstance(batch_size, int) and batch_size >= 1):
            raise InputError(f"batch_size={batch_size}: expected an integer >= 1")
        self.batch_size = self.n if batch_size is None else min(batch_size, self.n)
        self.shuffle, self.drop_last = shuffle and self.batch_size < self.n, drop_last

    def __len__(self) -> int:
        return self.n // self.batch_size if self.drop_last else math.ceil(self.n / self.batch_size)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        """The batches in order, for evaluation."""
        for start in range(0, self.n, self.batch_size):
            yield tuple(one[start : start + self.batch_size] for one in self.tensors)

    def to(self, device: torch.device, dtype: torch.dtype | None) -> Tensors:
        """The same data on a device."""
        moved = Tensors(on_device(self.tensors, device, dtype), self.batch_size, self.shuffle, self.drop_last)
        moved.shuffle = self.shuffle
        return moved


class TensorStream:
    """The stream of `Tensors`; its order comes from a generator of its own."""

    def __init__(self, data: Tensors, seed: int) -> None:
        self.data, self.taken = data, 0
        self.generator = torch.Generator().manual_seed(seed)
        self._begin: Any = None
        self._order: torch.Tensor | None = None

    @property
    def epoch(self) -> float:
        return self.taken / len(self.data)

    def next(self) -> Any:
        data, position = self.data, self.taken % len(self.data)
        self.taken += 1
        if data.batch_size == data.n:
            return data.tensors
        start = position * data.batch_size
        if not data.shuffle:
            return tuple(one[start : start + data.batch_size] for one in data.tensors)
        if position == 0:
            self._begin = self.generator.get_state()
            self._order = None
        if self._order is None:
            self.generator.set_state(self._begin)
            self._order = torch.randperm(data.n, generator=self.generator).to(data.tensors[0].device)
        rows = self._order[start : start + data.batch_size]
        return tuple(one[rows] for one in data.tensors)

    def state_dict(self) -> dict[str, Any]:
        return {"taken": self.taken, "begin": self._begin, "generator": self.generator.get_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.taken, self._begin, self._order = int(state["taken"]), state["begin"], None
        self.generator.set_state(state["generator"])


class LoaderStream:
    """The stream of any iterable that gives the batches of an epoch each time it is iterated (a `DataLoader`).

    Whatever it draws from torch's generators, or from generators of its own, is drawn from this stream's dice. A
    stream that is taken up in the middle of an epoch begins that epoch again and passes over what was seen.
    """

    def __init__(self, loader: Any, seed: int, device: torch.device, dtype: torch.dtype | None) -> None:
        self.loader, self.device, self.dtype = loader, device, dtype
        self.dice = Dice(seed, device, generators_of(loader))
        self.length = len(loader) if hasattr(loader, "__len__") else None
        self._told = self.length is not None
        self.taken = self._position = self._epochs = 0
        self._begin = list(self.dice.states)
        self._iterator: Iterator[Any] | None = None
        self._ahead: Any = _END

    @property
    def epoch(self) -> float:
        return self._epochs + (self._position / self.length if self.length else 0.0)

    def next(self) -> Any:
        if self._iterator is None:
            self._resume()
        batch = self._draw() if self._told else self._ahead
        if batch is _END:
            self._end_epoch()
            batch = self._draw() if self._told else self._ahead
            if batch is _END:
                raise InputError("data: the loader is empty: an epoch of it has no batch")
        self._position += 1
        self.taken += 1
        if self.length is not None and self._position > self.length:
            raise InputError(self._changed(f"at least {self._position}"))
        if not self._told:
            # One batch ahead, to know that an epoch is over when its last batch is handed out.
            self._ahead = self._draw()
            if self._ahead is _END and self.length is None:
                self.length = self._position
        return on_device(batch, self.device, self.dtype)

    def _draw(self) -> Any:
        assert self._iterator is not None
        with self.dice:
            return next(self._iterator, _END)

    def _start_epoch(self) -> None:
        with self.dice:
            self._iterator = iter(once(self.loader))
        self._ahead = _END if self._told else self._draw()

    def _end_epoch(self) -> None:
        if self._position == 0:
            raise InputError("data: the loader is empty: an epoch of it has no batch")
        if self.length is not None and self._position != self.length:
            raise InputError(self._changed(str(self._position)))
        self._epochs, self._position = self._epochs + 1, 0
        self._begin = list(self.dice.states)
        self._start_epoch()

    def _changed(self, found: str) -> str:
        return (
            f"data: the loader changes its length: epoch {self._epochs + 1} has {found} batches, expected "
            f"{self.length}; give a loader whose epochs are equally long"
        )

    def _resume(self) -> None:
        """Begin the present epoch, and pass over the batches that were seen."""
        self.dice.states = list(self._begin)
        self._start_epoch()
        for _ in range(self._position):
            if self._told:
                self._draw()
            else:
                self._ahead = self._draw()

    def state_dict(self) -> dict[str, Any]:
        return {
            "taken": self.taken,
            "position": self._position,
            "epochs": self._epochs,
            "length": self.length,
            "begin": list(self._begin),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.taken, self._position = int(state["taken"]), int(state["position"])
        self._epochs, self.length = int(state["epochs"]), state["length"]
        self._begin = [one.cpu() for one in state["begin"]]
        self._iterator = None


def once(loader: Any) -> Any:
    """The loader for one epoch; workers that persist start anew, since what they have drawn cannot be taken up."""
    if not getattr(loader, "persistent_workers", False):
        return loader
    fresh = copy.copy(loader)
    fresh._iterator = None
    return fresh


def generators_of(loader: Any) -> list[torch.Generator]:
    """The generators that a `DataLoader` and its samplers hold."""
    found: dict[int, torch.Generator] = {}
    sampler = getattr(loader, "batch_sampler", None)
    for one in (loader, getattr(loader, "sampler", None), sampler, getattr(sampler, "sampler", None)):
        generator = getattr(one, "generator", None)
        if isinstance(generator, torch.Generator) and generator is not torch.default_generator:
            found[id(generator)] = generator
    return list(found.values())


def as_source(data: Any, batch_size: int | None, shuffle: bool, drop_last: bool, name: str = "data") -> Any:
    """What a user gave as data: arrays as `Tensors`, else a loader, checked as far as that draws no batch.

    Raises
    ------
    InputError
        For what can be read only once, an empty loader, or options that a loader does not take.
    """
    if callable(data) and not hasattr(data, "__iter__"):
        data = data()
    if isinstance(data, Tensors):
        return data
    if isinstance(data, torch.Tensor | np.ndarray):
        data = (data,)
    if isinstance(data, tuple) and data and all(isinstance(one, torch.Tensor | np.ndarray) for one in data):
        return Tensors(data, batch_size, shuffle, drop_last, name)
    if not hasattr(data, "__iter__"):
        hint = "; a dataset goes into a DataLoader" if hasattr(data, "__getitem__") else ""
        raise InputError(
            f"{name}: expected arrays (inputs, targets), a DataLoader or another iterable of batches, got "
            f"{type(data).__name__}{hint}"
        )
    if batch_size is not None:
        raise InputError(f"batch_size={batch_size} goes with {name} as arrays; a loader makes its own batches")
    if iter_is_self(data):
        raise InputError(f"{name}: {type(data).__name__} can be read only once; give a list or a DataLoader")
    if hasattr(data, "__len__") and len(data) == 0:
        raise InputError(f"{name}: the loader is empty; with drop_last=True the batch size must not exceed the data")
    return data


def iter_is_self(data: Any) -> bool:
    """Whether iterating uses it up, as that of a generator does."""
    return hasattr(data, "__next__")


def make_stream(source: Any, seed: int, device: torch.device, dtype: torch.dtype | None) -> Stream:
    """A stream of batches on a device."""
    if isinstance(source, Tensors):
        return TensorStream(source, seed)
    return LoaderStream(source, seed, device, dtype)


def on_device(batch: Any, device: torch.device, dtype: torch.dtype | None) -> Any:
    """A batch with every tensor in it on the device, floating ones in the dtype if one is given."""
    if isinstance(batch, np.ndarray):
        batch = torch.as_tensor(batch)
    if isinstance(batch, torch.Tensor):
        floating = dtype if dtype is not None and batch.is_floating_point() else None
        return batch.to(device=device, dtype=floating, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: on_device(value, device, dtype) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(on_device(one, device, dtype) for one in batch))
    if isinstance(batch, list | tuple):
        return tuple(on_device(one, device, dtype) for one in batch)
    return batch


def rows_of(batch: Any) -> int:
    """Number of samples in a batch: rows of the first tensor in it, 1 where there is none."""
    if isinstance(batch, torch.Tensor):
        return int(batch.shape[0]) if batch.ndim else 1
    inside = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, list | tuple) else ()
    return next((rows_of(one) for one in inside if isinstance(one, torch.Tensor | Mapping | list | tuple)), 1)

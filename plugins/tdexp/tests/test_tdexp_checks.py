"""What is no number, no array or no file is refused by name, wherever it is given."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum_tdexp
from infimum.errors import InputError
from infimum_tdexp import (
    LSTD,
    MRP,
    TD0,
    Doubling,
    Exponential,
    Grid,
    PolicyEvaluation,
    Stream,
    Theory,
    baird,
    boyan_chain,
    garnet,
    grid,
    random_walk,
    refresh_chain,
    theory,
)

Give = Callable[[Any], Any]
I2, FLAT = np.eye(2), [[0.5, 0.5], [0.5, 0.5]]


def process(**more: Any) -> MRP:
    options = {"P": FLAT, "r": [0, 1], "features": I2, "gamma": 0.9} | more
    return MRP(**options)


NUMBERS: dict[str, tuple[str, Give]] = {
    "MRP gamma": ("gamma", lambda bad: process(gamma=bad)),
    "MRP noise": ("noise", lambda bad: process(noise=bad)),
    "Stream gamma": ("gamma", lambda bad: Stream(I2, [1, 1], I2, gamma=bad)),
    "runs": ("runs", lambda bad: PolicyEvaluation(process(), runs=bad)),
    "mixing_time": ("delta", lambda bad: process().mixing_time(bad)),
    "garnet n": ("n must", lambda bad: garnet(n=bad)),
    "garnet d": ("d must", lambda bad: garnet(d=bad)),
    "garnet branching": ("branching", lambda bad: garnet(branching=bad)),
    "garnet spread": ("spread", lambda bad: garnet(spread=bad)),
    "garnet seed": ("data_seed", lambda bad: garnet(data_seed=bad)),
    "boyan_chain n": ("n must", lambda bad: boyan_chain(n=bad)),
    "random_walk n": ("n must", lambda bad: random_walk(n=bad)),
    "random_walk d": ("d must", lambda bad: random_walk(d=bad)),
    "random_walk width": ("width", lambda bad: random_walk(width=bad)),
    "refresh_chain rho": ("rho", lambda bad: refresh_chain(rho=bad)),
    "refresh_chain d": ("d must", lambda bad: refresh_chain(d=bad)),
    "baird gamma": ("gamma", lambda bad: baird(gamma=bad)),
    "grid steps": ("steps", lambda bad: grid(garnet(), {"e": Exponential(5)}, steps=bad)),
    "grid runs": ("runs", lambda bad: grid(garnet(), {"e": Exponential(5)}, steps=5, runs=bad)),
    "grid seed": ("seed", lambda bad: grid(garnet(), {"e": Exponential(5)}, steps=5, seed=bad)),
    "grid lam": ("lam", lambda bad: grid(garnet(), {"e": Exponential(5)}, steps=5, lam=bad)),
    "TD0 step": ("step", lambda bad: TD0(bad)),
    "TD0 lam": ("lam", lambda bad: TD0(lam=bad)),
    "LSTD ridge": ("ridge", lambda bad: LSTD(bad)),
    "Exponential horizon": ("horizon", lambda bad: Exponential(bad)),
    "Exponential eta0": ("eta0", lambda bad: Exponential(10, bad)),
    "Exponential beta": ("beta", lambda bad: Exponential(10, 1.0, bad)),
    "Doubling first": ("first", lambda bad: Doubling(bad)),
    "Theory gamma": ("gamma", lambda bad: Theory(10, bad)),
    "alpha": ("horizon", lambda bad: theory.alpha(bad)),
    "sum_bound": ("horizon", lambda bad: theory.sum_bound(bad)),
    "iid_step": ("gamma", lambda bad: theory.iid_step(bad)),
    "markov_step": ("omega", lambda bad: theory.markov_step(0.9, bad, 10)),
    "regularized_step": ("horizon", lambda bad: theory.regularized_step(bad)),
    "iid_bound": ("omega", lambda bad: theory.iid_bound(10, 0.9, bad, 1.0, 1.0)),
    "mixing_time rho": ("rho", lambda bad: theory.mixing_time(0.1, 1.0, bad)),
}


@pytest.mark.parametrize("place", NUMBERS)
def test_what_is_no_number_in_range_is_refused(place: str) -> None:
    name, give = NUMBERS[place]
    for bad in ("1", None, True, float("nan"), float("inf"), -1, [1.0], 1j):
        if bad is None and place == "Exponential horizon":
            continue
        with pytest.raises(InputError, match=name):
            give(bad)


def test_numbers_of_numpy_are_numbers() -> None:
    assert process(gamma=np.float32(0.5), noise=np.int64(0)).gamma == 0.5
    assert TD0(np.float32(0.5), np.int64(7), np.float64(0.1), np.int8(3)) == TD0(0.5, 7, 0.1, 3)
    assert Exponential(np.int32(10), np.float32(0.5)) == Exponential(10, 0.5)


ARRAYS: dict[str, Give] = {
    "MRP: P": lambda bad: process(P=bad),
    "MRP: r": lambda bad: process(r=bad),
    "MRP: features": lambda bad: process(features=bad),
    "MRP: restart": lambda bad: process(restart=bad),
    "MRP: mu": lambda bad: process(mu=bad, sampling="iid"),
    "stream: features": lambda bad: Stream(bad, [1.0, 1.0], I2),
    "stream: rewards": lambda bad: Stream(I2, bad, I2),
    "stream: next_features": lambda bad: Stream(I2, [1.0, 1.0], bad),
    "x0": lambda bad: garnet().prepare(bad),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_is_no_array_of_finite_numbers_is_refused(name: str) -> None:
    for bad in ("ab", [["a", "b"], ["c", "d"]], [[1.0], [0.5, 0.5]], [], [[1j, 0], [0, 1j]], [np.nan, 1.0], object()):
        with pytest.raises(InputError, match=name):
            ARRAYS[name](bad)


def test_long_features_are_scaled_without_overflow() -> None:
    assert np.allclose(process(features=1e300 * I2, scale_features=True).features, I2)
    with pytest.raises(InputError, match=r"max \|\|phi\|\| = 1e\+300 > 1"):
        process(features=1e300 * I2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is no .npz file"),
        (b"features, rewards", "is no .npz file"),
        (b"PK\x03\x04 and then nothing of sense", "is no .npz file"),
        (np.eye(2), "is no .npz file"),
        ({"features": np.array([{}], dtype=object)}, "is no .npz file"),
        ({"features": I2, "rewards": np.ones(2)}, "lacks next_features; it holds features, rewards"),
        ({"features": I2, "rewards": np.array(["a", "b"]), "next_features": I2}, "rewards holds"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_files_that_hold_no_record_are_refused(tmp_path: Path, content: Any, said: str) -> None:
    from infimum_tdexp.recorded import stream

    path = tmp_path / "record.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    elif content is not None:
        with open(path, "wb") as file:
            np.save(file, content)
    with pytest.raises(InputError, match=said):
        stream(path)


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda: grid(garnet().process, {"e": Exponential(5)}, steps=5), "expected a PolicyEvaluation"),  # type: ignore[arg-type]
        (lambda: grid(garnet(), [Exponential(5)], steps=5), "expected schedules by name"),  # type: ignore[arg-type]
        (lambda: grid(garnet(), {"e": 0.1}, steps=5), "expected schedules by name"),  # type: ignore[dict-item]
        (lambda: grid(garnet(), {"e": lambda k: "x"}, steps=5), "gave no number"),  # type: ignore[dict-item,return-value]
        (lambda: grid(garnet(), {"e": Exponential(5)}, steps=5, average=5), "must be below steps=5"),
        (lambda: grid(garnet(), {"e": Exponential(5)}, steps=5).errors(np.zeros(3)), r"shape \(…, 8\)"),
        (lambda: Theory(10, 0.9, beta=11.0), "at most the horizon, 10"),
    ],
)
def test_other_nonsense_is_refused(give: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        give()


def test_no_module_hides_what_the_package_exports() -> None:
    assert callable(grid) and grid.__module__ == Grid.__module__
    modules = {one.name for one in pkgutil.iter_modules(infimum_tdexp.__path__)}
    assert not modules & set(infimum_tdexp.__all__)
    # The estimator needs scikit-learn.
    exported = set(infimum_tdexp.__all__) - {"TDPolicyEvaluator"}
    assert not any(inspect.ismodule(getattr(infimum_tdexp, name)) for name in exported)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = infimum_tdexp.nothing

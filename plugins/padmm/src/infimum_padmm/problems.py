"""Block problems with fixed seeds and on real data."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt

from infimum.constraints import Box
from infimum.errors import InputError
from infimum.functions import L1, SquaredL2
from infimum_padmm.builders import Grouping, split
from infimum_padmm.builders import chain as build_chain
from infimum_padmm.builders import control as build_control
from infimum_padmm.functions import Cauchy, ScoreLogistic
from infimum_padmm.problem import BlockProblem

CHEN = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 2.0, 2.0]])
"""The three columns of Chen, He, Ye and Yuan."""


def orthogonal(rng: np.random.Generator, n: int) -> np.ndarray:
    """A random orthogonal matrix."""
    Q, R = np.linalg.qr(rng.standard_normal((n, n)))
    return np.asarray(Q * np.sign(np.diag(R)))


def chain(
    first: Annotated[float, Ge(0)] = 1.0,
    middle: Annotated[float, Ge(0)] = 1.0,
    last: Annotated[float, Ge(0)] = 1.0,
    n: Annotated[int, Ge(1)] = 15,
    data_seed: int = 0,
) -> BlockProblem:
    """A chain of four blocks of n entries: `first/2 |x1|^2 + middle/2 (|x2|^2 + |x3|^2) + last/2 |x4 - y|^2`.

    Parameters
    ----------
    first, middle, last : float, default 1
        Strong convexity; with `first` and `middle` 0 convergence is visibly sublinear.
    n : int, default 15
        Entries of each block.
    data_seed : int, default 0
        Of the maps, standard normal over sqrt(n), and of y.
    """
    rng = np.random.default_rng(data_seed)
    maps = [rng.standard_normal((n, n)) / np.sqrt(n) for _ in range(3)]
    y = rng.standard_normal(n)
    ends = [first * SquaredL2(), middle * SquaredL2(), middle * SquaredL2(), last * SquaredL2().translate(y)]
    return build_chain(maps, ends, name="chain")


def robust_chain(
    penalty: Annotated[float, Ge(0)] = 0.3, n: Annotated[int, Ge(3)] = 15, data_seed: int = 0
) -> BlockProblem:
    """A sparse signal through three orthogonal maps, one entry of the data far off: `penalty |x1|_1 + Cauchy(x4; y)`.

    Not convex; the last block is smooth.

    Parameters
    ----------
    penalty : float, default 0.3
        Factor of the 1-norm.
    n : int, default 15
        Entries of each block.
    data_seed : int, default 0
        Of the maps, the signal and the noise.
    """
    rng = np.random.default_rng(data_seed)
    maps = [orthogonal(rng, n) for _ in range(3)]
    signal = np.zeros(n)
    signal[rng.choice(n, 3, replace=False)] = 3.0 * rng.standard_normal(3)
    y = maps[2] @ maps[1] @ maps[0] @ signal + 0.05 * rng.standard_normal(n)
    y[0] += 15.0
    return build_chain(maps, [penalty * L1(), None, None, Cauchy(y)], name="robust chain")


def control(
    horizon: Annotated[int, Ge(1)] = 20,
    states: Annotated[int, Ge(1)] = 4,
    inputs: Annotated[int, Ge(1)] = 2,
    radius: Annotated[float, Ge(0)] = 0.9,
    bound: Annotated[float, Ge(0)] = 0.3,
    gain: Annotated[float, Gt(0)] = 0.5,
    grouping: Grouping = "stages",
    data_seed: int = 0,
) -> BlockProblem:
    """Optimal control of a random linear system with box-constrained inputs.

    Parameters
    ----------
    horizon : int, default 20
        Number of stages.
    states, inputs : int, default 4 and 2
        Entries of a state and of an input.
    radius : float, default 0.9
        Spectral radius of the dynamics.
    bound : float, default 0.3
        On each input.
    gain : float, default 0.5
        Factor of the inputs' standard normal matrix. The optimal value at the defaults is 6.2453546.
    grouping : {"stages", "inputs", "joint"}, default "stages"
        See `infimum_padmm.control`.
    data_seed : int, default 0
        Of the system and the initial state.
    """
    A, B, s0 = system(states, inputs, radius, data_seed, gain)
    box = Box(-bound, bound)
    return build_control(A, B, horizon, s0, inputs=box, grouping=grouping, name=f"control, {horizon} stages")


def system(
    states: int, inputs: int, radius: float, data_seed: int, gain: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and an initial state."""
    rng = np.random.default_rng(data_seed)
    A = rng.standard_normal((states, states))
    A *= radius / np.abs(np.linalg.eigvals(A)).max()
    return A, gain * rng.standard_normal((states, inputs)), 2.0 * rng.standard_normal(states)


def fused_logistic(ridge: Annotated[float, Ge(0)] = 0.05, fused: Annotated[float, Ge(0)] = 2.0) -> BlockProblem:
    """Logistic regression on breast_cancer (569 x 30, standardized) with `ridge |w|^2 + fused |D w|_1`.

    Blocks w, scores = X w and steps = D w, the differences of neighboring weights; the logistic loss is a sum over the
    rows. The optimal value at the defaults is 52.17623445.

    Parameters
    ----------
    ridge : float, default 0.05
        Factor of the squared norm.
    fused : float, default 2
        Factor of the 1-norm of the differences.
    """
    try:
        from sklearn.datasets import load_breast_cancer
    except ModuleNotFoundError as error:
        raise InputError("padmm.fused_logistic needs scikit-learn: pip install 'infimum-padmm[data]'") from error
    X, target = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return split(
        {"w": 2.0 * ridge * SquaredL2()},
        {
            "steps": (fused * L1(), {"w": np.diff(np.eye(X.shape[1]), axis=0)}),
            "scores": (ScoreLogistic(2.0 * target - 1.0), {"w": X}),
        },
        reference=52.17623445 if (ridge, fused) == (0.05, 2.0) else None,
        name="fused logistic regression",
    )


def chen(modulus: Annotated[float, Ge(0)] = 0.0) -> BlockProblem:
    """The example of Chen, He, Ye and Yuan: three numbers in one row of three equations, whose only solution is zero.

    A sweep over three blocks diverges from it, for every penalty, unless a proximal term or strong convexity helps.

    Parameters
    ----------
    modulus : float, default 0
        Strong convexity of each block's function, `modulus/2 x^2`.
    """
    f = modulus * SquaredL2() if modulus else None
    blocks = {f"x{j + 1}": f for j in range(3)}
    rows = {"equations": {f"x{j + 1}": CHEN[:, j] for j in range(3)}}
    return BlockProblem(blocks, rows, start=np.ones(3), name="Chen, He, Ye and Yuan")


def references() -> list[Any]:
    """Small problems of every kind of block, for the conformance kit."""
    D = np.diff(np.eye(8), axis=0)
    total = split(
        {"x": SquaredL2().translate(np.linspace(0.0, 1.0, 8) ** 2)},
        {"z": (0.1 * L1(), {"x": D})},
    )
    return [control(4), total, robust_chain(n=5)]

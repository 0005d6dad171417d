"""Base directions as pure functions of the gradient and what is remembered, for NumPy and torch.

A base gives a direction D and a factor for each matrix; the step goes along factor * D, which saves a pass over D.
"""

from __future__ import annotations

from typing import Any, Literal

from infimum.arrays import Array, namespace

BaseName = Literal["sgd", "vadam"]
Memory = dict[str, Any]


def sgd(
    G: Array, memory: Memory, momentum: float, dampening: float, nesterov: bool
) -> tuple[Array, Array | float, Memory]:
    """Gradient descent with (Nesterov) momentum, as in `torch.optim.SGD`."""
    if not momentum:
        return G, 1.0, memory
    old = memory.get("momentum")
    kept = G if old is None else momentum * old + (1.0 - dampening) * G
    return (G + momentum * kept if nesterov else kept), 1.0, {"momentum": kept}


def vadam(
    G: Array, memory: Memory, betas: tuple[float, float], eps: float, k: int
) -> tuple[Array, Array | float, Memory]:
    """VectorAdam: Adam's moments, but one second moment per matrix, of ||G||_F^2, so that the matrix is only rescaled.

    D then turns with the coordinates: for orthogonal O and Q, D(O G Q) = O D(G) Q, which element-wise Adam lacks.
    Source: S. Z. Ling and others, VectorAdam, arXiv 2205.13599.
    """
    xp = namespace(G)
    first, second = betas
    square = xp.linalg.vector_norm(G, axis=(-2, -1)) ** 2
    mean = (1.0 - first) * G if "mean" not in memory else first * memory["mean"] + (1.0 - first) * G
    seen = (1.0 - second) * square if "square" not in memory else second * memory["square"] + (1.0 - second) * square
    size = (seen / (1.0 - second ** (k + 1))) ** 0.5 + eps
    return mean, 1.0 / (size * (1.0 - first ** (k + 1))), {"mean": mean, "square": seen}

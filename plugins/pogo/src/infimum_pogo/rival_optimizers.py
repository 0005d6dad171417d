"""Rivals of POGO as optimizers of PyTorch: Landing, and Riemannian gradient descent with QR retraction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from infimum_pogo.base_optimizer import Group, StiefelOptimizer
from infimum_pogo.buckets import Bucket
from infimum_pogo.checks import check_number
from infimum_pogo.rivals import landing_step, riemannian_step


class Landing(StiefelOptimizer):
    """Landing: along `R + attraction (X X^H - I) X`, which draws near to orthonormal matrices over time.

    Costs a step of POGO, but the matrices stand off the set while the gradient moves.

    Parameters
    ----------
    params : as for `POGO`
    lr : float, default 0.1
    momentum : float, default 0
    attraction : float, default 1
        Weight of the normal direction.
    radius : float or None, default 0.5
        Steps are shortened so that ||X X^H - I|| stays within it; None trusts lr.
    rows, flatten, init, bucket : as for `POGO`

    Source: P. Ablin and G. Peyre, AISTATS 2022; P. Ablin and others, arXiv 2303.16510.
    """

    title = "Landing"

    def __init__(
        self,
        params: Any,
        lr: float | torch.Tensor = 0.1,
        momentum: float = 0.0,
        attraction: float = 1.0,
        radius: float | None = 0.5,
        rows: bool | str = True,
        flatten: Callable[[torch.Tensor], torch.Tensor] | None = None,
        init: str = "check",
        bucket: bool = True,
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "attraction": attraction, "radius": radius}
        super().__init__(params, {**options, "rows": rows, "flatten": flatten, "init": init}, bucket)

    def _check_group(self, group: Group, what: str) -> None:
        super()._check_group(group, what)
        check_number(group["attraction"], "attraction", what, 0.0)
        if group["radius"] is not None:
            check_number(group["radius"], "radius", what, 0.0, 1.0)

    def _move(self, bucket: Bucket, X: torch.Tensor, G: torch.Tensor) -> None:
        D, _ = self._direction(bucket, X, G)
        group = bucket.group
        X.copy_(landing_step(X, D, group["lr"], group["attraction"], group["radius"])[0])


class RiemannianSGD(StiefelOptimizer):
    """Riemannian gradient descent with QR retraction: feasible to rounding, one factorization a step.

    Its direction, the orthogonal projection of the gradient on the tangent space, has no factor 1/2 outside of the
    row space: equal lr means longer steps than in POGO.

    Parameters
    ----------
    params : as for `POGO`
    lr : float, default 0.1
    momentum : float, default 0
        The buffer lives in the ambient space, without vector transport.
    rows, flatten, init, bucket : as for `POGO`
    """

    title = "RiemannianSGD"

    def __init__(
        self,
        params: Any,
        lr: float | torch.Tensor = 0.1,
        momentum: float = 0.0,
        rows: bool | str = True,
        flatten: Callable[[torch.Tensor], torch.Tensor] | None = None,
        init: str = "check",
        bucket: bool = True,
    ) -> None:
        options = {"lr": lr, "momentum": momentum, "rows": rows, "flatten": flatten, "init": init}
        super().__init__(params, options, bucket)

    def _move(self, bucket: Bucket, X: torch.Tensor, G: torch.Tensor) -> None:
        D, _ = self._direction(bucket, X, G)
        X.copy_(riemannian_step(X, D, bucket.group["lr"]))

"""POGO as an optimizer of PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch

from infimum.errors import InfimumWarning, InputError
from infimum_pogo import kernel
from infimum_pogo.base_optimizer import LOOK, Diagnostics, Group, StiefelOptimizer
from infimum_pogo.buckets import Bucket, conv_rows
from infimum_pogo.checks import check_betas, check_number, check_safe, check_word, is_number, too_long

__all__ = ["POGO", "Diagnostics", "conv_rows"]


class POGO(StiefelOptimizer):
    """Optimize orthogonal matrices: they stay orthonormal at all times, by six products of matrices a step.

    For each matrix X (rows orthonormal, X X^H = I), with the base direction D:
    `R = 1/2 (X X^H D - X D^H X)`, `M = X - lr R`, `X <- M + 1/2 (M - M M^H M)`. R is tangent at every X, so from an
    orthonormal X the defect ||X X^H - I|| after a step is about 3/4 (lr ||R||)^4, and defects shrink quadratically.
    No factorization, no reparametrization of the module: give it the weights that shall be orthogonal, and all others
    to another optimizer.

    Matrices are parameters of shape (p, n) or batches (b, p, n), real or complex; parameters of equal shape move in
    one batched call. Parameters without a gradient are skipped, gradients may arrive late. All options except
    `bucket` may differ by parameter group; schedulers work. `state_dict` holds all that steps depend on; functions
    (`base`, `flatten`) are kept by name and must be given again. On a GPU a step never waits for the device.
    Under `torch.compile` the step is not traced into one graph: call it uncompiled (the iterates are the same).

    Parameters
    ----------
    params : iterable of parameters, of (name, parameter), or of parameter groups
    lr : float, optional
        Step size; by default 0.1 for "sgd" and 1.0 for "vadam", whose directions have norm about one (good values
        lie between 0.3 and 3).
    base : {"sgd", "vadam"} or callable, default "vadam"
        What makes the direction of the gradient: momentum; VectorAdam, which rescales whole matrices so that the
        step commutes with rotations; or `base(G, state) -> D` with G of shape (b, p, n), orthonormal along rows, and
        a dict of this parameter's own. A callable sees each parameter apart.
    momentum : float, default 0
        For "sgd", in [0, 1). The buffer lives in the ambient space; no transport is needed.
    dampening : float, default 0
        For "sgd".
    nesterov : bool, default False
        For "sgd".
    betas : pair of floats, default (0.9, 0.999)
        For "vadam".
    eps : float, default 1e-8
        For "vadam".
    weight_decay : float, default 0
        Adds weight_decay * X to the gradient, which has no part along the manifold.
    landing : {"half", "optimal"}, default "half"
        Landing step 1/2, or the one that leaves the smallest defect, by Newton's method on the landing polynomial.
        Half is the sturdier one.
    safe : float or None, default 0.5
        Step guard: matrix i takes the step min(lr, safe / ||R_i||), which keeps it where landing works. None: no guard.
    rows : bool or "auto", default True
        True: orthonormal rows, p <= n. False: orthonormal columns, p >= n. "auto": along the shorter side.
    flatten : callable, optional
        Makes matrices of a parameter of another shape, as a view: `infimum_pogo.conv_rows` for convolution kernels.
    init : {"check", "project", "ignore"}, default "check"
        What happens to a parameter that is not orthonormal: refused, replaced by its nearest point, or landed.
    bucket : bool, default True
        Whether parameters of equal shape move in one batched call.

    Raises
    ------
    InputError
        For options out of range, parameters that are no matrices, not orthonormal, sparse or not floating-point.

    Warns
    -----
    InfimumWarning
        Once, without a guard, if lr ||R|| reaches sqrt(2) (looked at on CPUs).

    Examples
    --------
    >>> import torch
    >>> from infimum_pogo import POGO
    >>> layer = torch.nn.Linear(64, 32)
    >>> rotation = POGO([layer.weight], lr=1.0, init="project")
    >>> rest = torch.optim.Adam([layer.bias], lr=1e-3)

    Source: A. Javaloy and A. Vergari, "An Embarrassingly Simple Way to Optimize Orthogonal Matrices at Scale", ICML
    2026, arXiv 2602.14656. The guard, the landing step by Newton's method and the buckets are our own.
    """

    title = "POGO"

    def __init__(
        self,
        params: Any,
        lr: float | torch.Tensor | None = None,
        base: str | Callable[[torch.Tensor, dict[str, Any]], torch.Tensor] = "vadam",
        momentum: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        landing: str = "half",
        safe: float | None = kernel.SAFE,
        rows: bool | str = True,
        flatten: Callable[[torch.Tensor], torch.Tensor] | None = None,
        init: str = "check",
        bucket: bool = True,
    ) -> None:
        if lr is None:
            lr = 1.0 if base == "vadam" else 0.1
        options = {"lr": lr, "base": base, "momentum": momentum, "dampening": dampening, "nesterov": nesterov}
        more = {"betas": betas, "eps": eps, "weight_decay": weight_decay, "landing": landing, "safe": safe}
        super().__init__(params, {**options, **more, "rows": rows, "flatten": flatten, "init": init}, bucket)

    def _check_group(self, group: Group, what: str) -> None:
        super()._check_group(group, what)
        if not callable(group["base"]):
            check_word(group["base"], "base", ("sgd", "vadam"), what)
        check_word(group["landing"], "landing", ("half", "optimal"), what)
        check_safe(group["safe"], what)
        check_betas(group["betas"], what)
        for name, open_low in (("eps", True), ("weight_decay", False), ("dampening", False)):
            check_number(group[name], name, what, 0.0, open_low=open_low)
        if group["nesterov"] and not (is_number(group["momentum"]) and group["momentum"] > 0):
            raise InputError(f"{what}: nesterov=True needs momentum above 0, got momentum={group['momentum']!r}")

    def _move(self, bucket: Bucket, X: torch.Tensor, G: torch.Tensor) -> None:
        group = bucket.group
        D, factor = self._direction(bucket, X, G)
        lr = group["lr"] * factor
        s = kernel.directions(X, D, self._desk)
        _, taken = kernel.move(X, s, lr, group["safe"], group["landing"] == "optimal", out=X)
        self._last.append(taken)
        self._moved += int(X.shape[0])
        if group["safe"] is None:
            if X.device.type == "cpu" and not self._warned:
                self._warn(float(group["lr"]), taken.reach())
        elif isinstance(taken.shortened, torch.Tensor):
            self._guarded.append(taken.shortened)
            if len(self._guarded) > LOOK:
                self._guarded = [torch.stack([one.to(X.device) for one in self._guarded]).sum()]
        else:
            self._shortened += int(taken.shortened)

    def _warn(self, lr: float, reach: float) -> None:
        if reach >= math.sqrt(2.0):
            self._warned = True
            warnings.warn(too_long(self.title, lr, reach), InfimumWarning, stacklevel=6)

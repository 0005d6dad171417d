"""A callback for training loops: end the loop, warn, or reduce the learning rate at a change point."""

from __future__ import annotations

import inspect
import logging
from dataclasses import dataclass
from typing import Any, Literal

from infimum.errors import InputError, did_you_mean
from infimum_cpd.checks import among, not_negative, sample, share, whole
from infimum_cpd.detector import CusumDetector

logger = logging.getLogger("infimum")

OPTIONS = tuple(inspect.signature(CusumDetector).parameters)
"""Those that the callback hands on to its detector."""


@dataclass(frozen=True)
class Decision:
    """What a callback found at one step.

    Attributes
    ----------
    alarm, stop : bool
        Whether the mean has moved, and whether the loop should end.
    statistic : float
        W, in standard deviations.
    onset : int or None
        Step at which the change began, at an alarm.
    reason : str
        A sentence at an alarm, else empty.
    """

    alarm: bool
    stop: bool
    statistic: float
    onset: int | None
    reason: str

    def __bool__(self) -> bool:
        return self.stop


class CusumCallback:
    """Watches a loss (or any number) inside a training loop of your own; call it once a step.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer, optional
        Whose `param_groups` get another learning rate with `action="reduce_lr"`. PyTorch itself is not imported.
    action : {"stop", "warn", "reduce_lr"}, default "stop"
        At an alarm: say stop, write to the log, or multiply the learning rates by `factor`. After the two latter a new
        reference is learned.
    factor : float, default 0.1
        For "reduce_lr", between 0 and 1.
    min_lr : float, default 0
        No learning rate is reduced below it.
    cooldown : int, default 0
        Steps left out after an alarm, before the new reference begins.
    metric : str, default "loss"
        The name in messages.
    **options
        Of `CusumDetector`; `after_alarm` is "relearn" except with "stop".

    Raises
    ------
    InputError
        For options that do not fit, such as "reduce_lr" without an optimizer.

    Examples
    --------
    >>> watch = CusumCallback(reference="normal:0.3,0.1", k=0.5, arl0=1000)
    >>> for step in range(100):
    ...     decision = watch(0.3 if step < 50 else 0.6)
    ...     if decision.stop:
    ...         break
    >>> step, decision.onset
    (52, 50)
    """

    def __init__(
        self,
        optimizer: Any = None,
        *,
        action: Literal["stop", "warn", "reduce_lr"] = "stop",
        factor: float = 0.1,
        min_lr: float = 0.0,
        cooldown: int = 0,
        metric: str = "loss",
        **options: Any,
    ) -> None:
        among("action", action, ("stop", "warn", "reduce_lr"), "CusumCallback")
        if action == "reduce_lr" and not hasattr(optimizer, "param_groups"):
            raise InputError(f"CusumCallback: action='reduce_lr' needs a torch optimizer, got {optimizer!r}")
        share("factor", factor, "CusumCallback")
        not_negative("min_lr", min_lr, "CusumCallback")
        whole("cooldown", cooldown, 0, "CusumCallback")
        for name in options:
            if name not in OPTIONS:
                raise InputError(f"CusumCallback: no option {name!r}; {did_you_mean(name, OPTIONS)}")
        learned = str(options.get("reference", "warmup")).startswith("warmup")
        options.setdefault("after_alarm", "continue" if action == "stop" else "relearn" if learned else "reset")
        self.detector = CusumDetector(**options)
        self.optimizer, self.action, self.factor, self.min_lr = optimizer, action, factor, min_lr
        self.cooldown, self.metric = cooldown, metric
        self.steps, self._rest = 0, 0
        self.decisions: list[Decision] = []
        """Those with an alarm."""

    def __call__(self, value: Any) -> Decision:
        """Take in the value of this step: a number, or a tensor with one element."""
        step = self.steps
        self.steps += 1
        if self._rest:
            self._rest -= 1
            return Decision(False, False, self.detector.statistic, None, "")
        if hasattr(value, "detach"):
            value = value.detach()  # a loss that requires a gradient warns when it is made a float
        detector = self.detector.update(sample(value, f"CusumCallback: {self.metric} of step {step}"), step)
        if not detector.drift_detected:
            return Decision(False, False, detector.statistic, None, "")
        reason = f"{self.metric}: the mean has moved since about step {detector.onset_index} (seen at step {step})"
        decision = Decision(True, self.action == "stop", detector.statistic, detector.onset_index, reason)
        self.decisions.append(decision)
        self._rest = self.cooldown
        if self.action != "stop":
            logger.warning("%s%s", reason, self._reduce() if self.action == "reduce_lr" else "")
        return decision

    def _reduce(self) -> str:
        for group in self.optimizer.param_groups:
            group["lr"] = max(self.min_lr, group["lr"] * self.factor)
        rates = ", ".join(format(group["lr"], ".3g") for group in self.optimizer.param_groups)
        return f"; learning rate {rates}"

    def state_dict(self) -> dict[str, Any]:
        """Plain data, beside the state of model and optimizer. The log of decisions is not in it."""
        return {"detector": self.detector.state_dict(), "steps": self.steps, "rest": self._rest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.detector.load_state_dict(state["detector"])
        self.steps, self._rest = int(state["steps"]), int(state["rest"])

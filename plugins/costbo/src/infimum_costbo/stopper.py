"""The cost-aware stopping rule as an Optuna callback, and for loops of one's own."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

from optuna.search_space import intersection_search_space
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from infimum.errors import InputError
from infimum_costbo.cost import Cost
from infimum_costbo.judge import Judge, Judgment, Terms
from infimum_costbo.observations import of_study, single_objective


class CostAwareStopper:
    """Stop a study when no further trial is expected to be worth its cost, whoever proposes the trials.

    Before the next trial the rule compares, at the best point of the space, the expected improvement with lam times the
    expected cost: as soon as it is smaller everywhere, the study stops.

        study.optimize(objective, n_trials=200, callbacks=[CostAwareStopper(lam=0.01, cost="user_attr:seconds")])

    Parameters
    ----------
    lam : float
        Worth of a unit of cost in units of the objective: 0.01 means that a gain of 0.01 justifies one unit of cost.
    cost : {"user_attr:NAME", "duration"}, callable or None, default None
        What a trial costs: a user attribute that the objective sets; the trial's wall-clock seconds; a function of
        the parameters, known beforehand; or one unit each.
    warp : {"auto", "log", None}, default "auto"
        "log" models the logarithm of the objective, "auto" does so for a positive objective to be minimized whose
        values spread over a factor of 3. Losses and error rates are skewed; without it the rule stops far too late.
    min_trials : int, optional
        Complete trials before it may stop; 2 (d + 1) by default, d the number of parameters, at least 2.
    window : int, default 1
        Average the gain per cost over the last trials; for many continuous parameters, where the search for the best
        point is imperfect, 20 is usual.
    calibrate : bool, default False
        Multiply the predicted gain by r_t, the share of earlier predictions that came true (`ei_calibration`): stops
        earlier where the model promises too much.
    seed : int, default 0
        Of the search for the best point.

    Raises
    ------
    InputError
        If an option does not fit; from `should_stop` if the study has several objectives, or the cost of a complete
        trial is missing or not positive.

    Notes
    -----
    It can be used as a callback, and by `should_stop(study)` where the loop is one's own (`study.stop()` raises
    there). Optuna calls it after a trial, so a study that is taken up again makes one before it can stop; ask
    `should_stop(study)` first. Under `n_jobs > 1` trials that are running do not count: they are paid for when they
    end. One object serves several studies.

    References
    ----------
    Xie et al., "Cost-aware Stopping for Bayesian Optimization", arXiv 2507.12453, section 3. Log warp and calibration
    are not in the paper.
    """

    def __init__(
        self,
        lam: float,
        *,
        cost: Cost = None,
        warp: Literal["auto", "log"] | None = "auto",
        min_trials: int | None = None,
        window: int = 1,
        calibrate: bool = False,
        seed: int = 0,
    ) -> None:
        check_options(warp, min_trials, window)
        if not isinstance(calibrate, bool):
            raise InputError(f"calibrate={calibrate!r}; expected True or False")
        check_seed(seed)
        self._terms = Terms(lam, cost, warp, min_trials, window, calibrate, seed)
        Judge(self._terms)
        self._judges: weakref.WeakKeyDictionary[Study, Judge] = weakref.WeakKeyDictionary()
        self._last = Judge(self._terms)
        self._warned = False
        self._lock = threading.RLock()

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """For `study.optimize(callbacks=[…])`: asks the study to stop."""
        if self.should_stop(study):
            study.stop()

    def should_stop(self, study: Study) -> bool:
        """Whether the next trial is not worth its cost."""
        return self.judge(study).stop

    def judge(self, study: Study) -> Judgment:
        """What the rule sees now, with the numbers."""
        single_objective(study)
        with self._lock:
            self._last = judge = self._judges.setdefault(study, Judge(self._terms))
            trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            space = {name: one for name, one in intersection_search_space(trials).items() if not one.single()}
            if not space and len(trials) > 1:
                self._say_once(study)
            return judge.look(of_study(study, judge.source, space))

    def _say_once(self, study: Study) -> None:
        if not self._warned:
            self._warned = True
            logging.getLogger("infimum").warning(
                f"CostAwareStopper: the trials of study {study.study_name!r} have no parameter with several values "
                "in common, so there is nothing to model; the study will not be stopped"
            )

    @property
    def lam(self) -> float:
        return self._terms.lam

    @property
    def history(self) -> Sequence[Judgment]:
        """All judgments of the study asked for last, in order."""
        return tuple(self._last.history)

    @property
    def last_log_eipc(self) -> float:
        """Largest log expected improvement per cost at the last judgment; NaN before there was a model."""
        return self._last.history[-1].log_eipc if self._last.history else float("nan")

    @property
    def predicted_gain(self) -> float:
        """Improvement that the next trial was expected to bring at the last judgment; NaN before there was a model."""
        return self._last.history[-1].gain if self._last.history else float("nan")

    @property
    def ei_calibration(self) -> float:
        """r_t, realized over predicted improvement so far, damped and at most 1."""
        return self._last.calibration

    def __getstate__(self) -> dict[str, Any]:
        # What was seen of a study belongs to that study object, which does not travel.
        return {"_terms": self._terms, "_warned": self._warned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._judges, self._last = weakref.WeakKeyDictionary(), Judge(self._terms)
        self._lock = threading.RLock()


def check_seed(seed: Any) -> None:
    """Refuse what NumPy's generators do not take.

    Raises
    ------
    InputError
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"seed={seed!r}; expected a whole number of 0 or more")


def check_options(warp: Any, min_trials: Any, window: Any, name: str = "min_trials") -> None:
    """Refuse options that do not fit.

    Raises
    ------
    InputError
    """
    if warp not in ("auto", "log", None):
        raise InputError(f"warp={warp!r}; expected 'auto', 'log' or None")
    if min_trials is not None and (isinstance(min_trials, bool) or not isinstance(min_trials, int) or min_trials < 0):
        raise InputError(f"{name}={min_trials!r}; expected a whole number of 0 or more, or None for 2 (d + 1)")
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise InputError(f"window={window!r}; expected a whole number of 1 or more")

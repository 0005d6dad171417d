"""Adversarial suffixes by CUSUM over token entropies, with the system prompt as the reference."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from infimum.errors import InputError
from infimum_cpd.checks import among, clip, not_negative, positive, share
from infimum_cpd.checks import text as a_text
from infimum_cpd.language import LanguageModel, TokenStats
from infimum_cpd.options import ONSETS
from infimum_cpd.reference import Reference
from infimum_cpd.statistic import Floats, cusum, glr_onset, last_zero_onset

SIGNALS = ("entropy", "nll")
SCORES = ("max", "length_robust")


@dataclass(frozen=True)
class Detection:
    """What the detector found in one text. Positions count from 0 and in the user's text.

    Attributes
    ----------
    score : float
        The largest W (or W/sqrt(t)): the number to rank texts by.
    alarm : bool
        Whether W reached the threshold.
    alarm_token, onset_token : int or None
        The first token with W >= h, and the estimated first token of the suffix.
    onset_char : int or None
        Where that token begins.
    trace : ndarray, shape (n,)
        W after each of the n tokens.
    stats : TokenStats
        Of the user's tokens; offsets in the user's text.
    reference : Reference
        From the tokens of the system prompt.
    threshold : float
        The h in force.
    """

    score: float
    alarm: bool
    alarm_token: int | None
    onset_token: int | None
    onset_char: int | None
    trace: Floats
    stats: TokenStats
    reference: Reference
    threshold: float

    @property
    def above(self) -> NDArray[np.int64]:
        """All tokens with W >= h."""
        return np.flatnonzero(self.trace >= self.threshold)


class EntropyDetector:
    """Finds the place from which a language model is persistently less certain than over the system prompt.

    The entropy of the distribution that predicts each token is a stream; median and MAD over the system prompt are its
    reference; a one-sided CUSUM finds a rise that lasts. No training, one pass of the model.

    Parameters
    ----------
    model : LanguageModel
        Anything with `token_stats(text)`: `CharNGram`, `SmolLM2`, `HuggingFaceLM`, yours.
    system_prompt : str
        In-control text, 8 tokens or more; the more the better.
    template : str, default "{system}{user}"
        How the model sees both. What follows the user's text is not read: the model is causal.
    signal : {"entropy", "nll"}, default "entropy"
        What is summed. The negative log-likelihood is the stronger signal where the suffix is improbable, and no signal
        where it was built to be probable.
    k : float, default 0
        Allowance. 0 is the paper's setting, with a false-alarm chance that grows with the length of the text; 0.5 is
        robust against length.
    h : float, optional
        Threshold; 10 when nothing is said. `calibrate` sets it from harmless texts.
    score : {"max", "length_robust"}, default "max"
        `length_robust` is the largest W_t/sqrt(t).
    onset : {"glr", "last_zero"}, default "glr"
        The last zero of W is far off with k = 0.
    zmax : float, optional
        Clip standardized samples.
    robust, scale_floor
        As in `Reference.of`; `scale_floor` is 1e-6 by default.

    Raises
    ------
    InputError
        For a template without {system} before {user}, options out of range, or a system prompt that is too short.

    References
    ----------
    M. Alshaalan, M. R. D. Rodrigues, arXiv 2605.19966. There the onset is the last zero and k = 0.
    """

    def __init__(
        self,
        model: LanguageModel,
        system_prompt: str,
        *,
        template: str = "{system}{user}",
        signal: Literal["entropy", "nll"] = "entropy",
        k: float = 0.0,
        h: float | None = None,
        score: Literal["max", "length_robust"] = "max",
        onset: Literal["glr", "last_zero"] = "glr",
        zmax: float | None = None,
        robust: bool = True,
        scale_floor: float = 1e-6,
    ) -> None:
        if not callable(getattr(model, "token_stats", None)):
            raise InputError(
                f"EntropyDetector: model is {model!r:.60}, which has no token_stats(text); expected a language model "
                "such as CharNGram(text), SmolLM2() or HuggingFaceLM(model, tokenizer)"
            )
        among("signal", signal, SIGNALS, "EntropyDetector")
        among("score", score, SCORES, "EntropyDetector")
        among("onset", onset, ONSETS, "EntropyDetector")
        positive("h", h, "EntropyDetector")
        not_negative("k", k, "EntropyDetector", ", in standard deviations")
        clip(zmax, k, "EntropyDetector")
        a_text("system_prompt", system_prompt, "EntropyDetector")
        a_text("template", template, "EntropyDetector")
        before, found, _ = template.partition("{user}")
        if not found or before.count("{system}") != 1:
            raise InputError(f"EntropyDetector: template={template!r}; expected {{system}} once and {{user}} after it")
        self.model, self.system_prompt, self.template = model, system_prompt, template
        self.prefix = before.replace("{system}", system_prompt)
        self.signal, self.k, self.threshold, self.kind = signal, float(k), 10.0 if h is None else float(h), score
        self.onset, self.zmax, self.robust, self.scale_floor = onset, zmax, robust, scale_floor
        try:
            self._reference(self.model.token_stats(self.prefix))
        except InputError as error:
            raise InputError(f"EntropyDetector: the tokens of the system prompt: {error}") from None

    def _reference(self, stats: TokenStats) -> Reference:
        return Reference.of(getattr(stats, self.signal), self.robust, self.scale_floor)

    def read(self, text: str) -> tuple[TokenStats, TokenStats]:
        """Statistics of the prefix and of the user's tokens, from one pass over both.

        A token that straddles the border is the user's.

        Raises
        ------
        InputError
            For a text that is no string, or in which there is no token.
        """
        a_text("the user's text", text, "EntropyDetector")
        stats = self.model.token_stats(self.prefix + text)
        user = stats.offsets[:, 1] > len(self.prefix)
        if not user.any():
            raise InputError(f"EntropyDetector: there is no token in the text {text!r:.40}")
        first = int(user.argmax())
        offsets = np.maximum(stats.offsets - len(self.prefix), 0)
        mine = TokenStats(stats.entropy[first:], stats.nll[first:], offsets[first:])
        return TokenStats(stats.entropy[:first], stats.nll[:first], stats.offsets[:first]), mine

    def score(self, text: str) -> Detection:
        """Look at one text.

        Parameters
        ----------
        text : str
            What the user wrote.

        Returns
        -------
        Detection
        """
        return self.judge(*self.read(text))

    def judge(self, prefix: TokenStats, user: TokenStats) -> Detection:
        """The same from statistics that are there already, as `read` gives them."""
        reference = self._reference(prefix)
        values = getattr(user, self.signal)
        good = np.isfinite(values)
        z = np.where(good, reference.standardize(np.where(good, values, 0.0)), self.k)  # adds nothing where unknown
        if self.zmax is not None:
            z = np.clip(z, -self.zmax, self.zmax)
        w = cusum(z, self.k)
        scaled = w / np.sqrt(np.arange(1, w.size + 1)) if self.kind == "length_robust" else w
        above = np.flatnonzero(scaled >= self.threshold)
        alarm = int(above[0]) if above.size else None
        onset = None
        if alarm is not None:
            onset = glr_onset(z, alarm) if self.onset == "glr" else last_zero_onset(w, alarm)
        char = None if onset is None else int(user.offsets[min(onset, len(user) - 1), 0])
        return Detection(
            float(scaled.max()), alarm is not None, alarm, onset, char, scaled, user, reference, self.threshold
        )

    def calibrate(self, harmless: Sequence[str], far: float = 0.05) -> float:
        """Set the threshold so that about a share `far` of texts like these raises an alarm.

        Parameters
        ----------
        harmless : sequence of str
            Of the lengths that are to be expected: with k = 0 the score grows with length. At least 1/far of them.
        far : float, default 0.05

        Returns
        -------
        float
            The threshold, just above the quantile of their scores.

        Raises
        ------
        InputError
            For too few texts, or `far` outside (0, 1).
        """
        share("far", far, "calibrate", "share")
        if isinstance(harmless, str):
            raise InputError("calibrate: harmless is one text; expected a list of texts")
        needed = math.ceil(1.0 / far)
        if len(harmless) < needed:
            raise InputError(f"calibrate: {len(harmless)} texts; a false-alarm rate of {far:g} needs {needed} or more")
        scores = np.sort([self.score(one).score for one in harmless])
        rank = min(len(scores) - 1, math.ceil((1.0 - far) * len(scores)) - 1)
        self.threshold = float(np.nextafter(max(scores[rank], 0.0), math.inf))
        return self.threshold

    def variant(self, **options: Any) -> EntropyDetector:
        """The same model and system prompt with other `signal`, `k`, `h`, …; the model is not asked again."""
        known = {"signal": "signal", "k": "k", "h": "threshold", "score": "kind", "onset": "onset", "zmax": "zmax"}
        if unknown := set(options) - set(known):
            raise InputError(f"variant: no option {sorted(unknown)}; there are {', '.join(known)}")
        for name, choices in (("signal", SIGNALS), ("score", SCORES), ("onset", ONSETS)):
            among(name, options.get(name, choices[0]), choices, "variant")
        not_negative("k", options.get("k", self.k), "variant", ", in standard deviations")
        clip(options.get("zmax", self.zmax), options.get("k", self.k), "variant")
        positive("h", options.get("h", self.threshold), "variant")
        other = copy.copy(self)
        for name, value in options.items():
            setattr(other, known[name], value)
        return other

    def options(self) -> dict[str, Any]:
        """The options as plain data, for a table or a log."""
        return {"signal": self.signal, "k": self.k, "h": self.threshold, "score": self.kind, "onset": self.onset}

"""Online change points by CUSUM: a stopping rule, a detector for any stream, and one for adversarial suffixes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infimum_cpd.baselines import length, perplexity, windowed_perplexity
    from infimum_cpd.detector import CusumDetector
    from infimum_cpd.entropy import Detection, EntropyDetector
    from infimum_cpd.evaluation import Comparison, auroc, best_f1, compare, localization
    from infimum_cpd.gate import Gate
    from infimum_cpd.huggingface import HuggingFaceLM
    from infimum_cpd.language import TokenStats
    from infimum_cpd.ngram import CharNGram
    from infimum_cpd.reference import Reference
    from infimum_cpd.rule import Cusum
    from infimum_cpd.smollm2 import SmolLM2
    from infimum_cpd.statistic import cusum, first_alarm, glr_onset, last_zero_onset
    from infimum_cpd.theory import arl0, delay, false_alarm_probability, threshold
    from infimum_cpd.training import CusumCallback, Decision

_HOMES = {
    "CharNGram": "ngram",
    "Comparison": "evaluation",
    "Cusum": "rule",
    "CusumCallback": "training",
    "CusumDetector": "detector",
    "Decision": "training",
    "Detection": "entropy",
    "EntropyDetector": "entropy",
    "Gate": "gate",
    "HuggingFaceLM": "huggingface",
    "Reference": "reference",
    "SmolLM2": "smollm2",
    "TokenStats": "language",
    "arl0": "theory",
    "auroc": "evaluation",
    "best_f1": "evaluation",
    "compare": "evaluation",
    "cusum": "statistic",
    "delay": "theory",
    "false_alarm_probability": "theory",
    "first_alarm": "statistic",
    "glr_onset": "statistic",
    "last_zero_onset": "statistic",
    "length": "baselines",
    "localization": "evaluation",
    "perplexity": "baselines",
    "threshold": "theory",
    "windowed_perplexity": "baselines",
}
__all__ = [
    "CharNGram",
    "Comparison",
    "Cusum",
    "CusumCallback",
    "CusumDetector",
    "Decision",
    "Detection",
    "EntropyDetector",
    "Gate",
    "HuggingFaceLM",
    "Reference",
    "SmolLM2",
    "TokenStats",
    "arl0",
    "auroc",
    "best_f1",
    "compare",
    "cusum",
    "delay",
    "false_alarm_probability",
    "first_alarm",
    "glr_onset",
    "last_zero_onset",
    "length",
    "localization",
    "perplexity",
    "threshold",
    "windowed_perplexity",
]


def __getattr__(name: str) -> object:
    # Imported at first use: the hooks stand in this package, and listing what is installed must stay quick.
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

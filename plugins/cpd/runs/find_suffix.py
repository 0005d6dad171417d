"""Finds where a made-up suffix begins in harmless text, by the character model that needs no download.

python plugins/cpd/runs/find_suffix.py
"""

from __future__ import annotations

import numpy as np

from infimum_cpd import CharNGram, EntropyDetector, Gate, compare
from infimum_cpd.synthetic import library_text, split_corpus, texts_with_suffix


def main() -> None:
    """Calibrate on harmless texts, look at one with a suffix, compare with the baselines, save guard calls."""
    train, corpus = split_corpus(library_text())
    model = CharNGram(train)
    texts = texts_with_suffix(model, corpus, "entropy_seeking", 60, np.random.default_rng(1))
    others = texts_with_suffix(model, corpus, "random", 60, np.random.default_rng(2)).harmless

    detector = EntropyDetector(model, texts.system)
    print(f"threshold for 5 % false alarms: {detector.calibrate(others, far=0.05):.1f}")
    found = detector.score(texts.suspicious[0])
    print(f"score {found.score:.1f}, alarm at character {found.alarm_token}, suffix from about {found.onset_char}")
    print(f"  before: …{texts.suspicious[0][found.onset_char - 40 : found.onset_char]!r}")
    print(f"  after:  {texts.suspicious[0][found.onset_char :][:60]!r}…")
    print(compare(detector, texts.harmless, texts.suspicious, [texts.start] * 60))

    gate = Gate(detector, guard=set(texts.suspicious).__contains__)
    refused = [gate(one) for one in (*texts.harmless, *texts.suspicious)]
    print(f"gate: {gate.saved:.0%} of the guard calls saved, {sum(refused)} of 60 suffixes refused")


if __name__ == "__main__":
    main()

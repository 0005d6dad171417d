"""Harmless texts with a made-up suffix, all of one length: what a detector can be tried on without any real attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from infimum.errors import InputError
from infimum_cpd.checks import among
from infimum_cpd.ngram import CharNGram

KINDS = ("entropy_seeking", "random", "low_order", "shuffled")
HEAD, SUFFIX, SYSTEM = 160, 120, 400
NOISE = 0.1
"""Scale of the chance among the characters to take, in nats: keeps a text from running in circles."""


@dataclass(frozen=True)
class Texts:
    """Texts of one length, with the suffix from `start` on.

    Attributes
    ----------
    system : str
        A text to take for the system prompt.
    harmless, suspicious : list of str
    start : int
        First character of the suffix in each of `suspicious`.
    """

    system: str
    harmless: list[str]
    suspicious: list[str]
    start: int


def library_text() -> list[str]:
    """English prose that every Python brings: the topics of its help system, white space collapsed."""
    from pydoc_data import topics

    return [" ".join(one.split()) for one in topics.topics.values()]


def split_corpus(texts: Sequence[str], share: float = 0.7) -> tuple[list[str], str]:
    """Texts to train on, every n-th left out, and the ones left out joined to one text to draw from."""
    every = max(2, round(1.0 / (1.0 - share)))
    return [one for i, one in enumerate(texts) if i % every], " ".join(texts[::every])


def texts_with_suffix(
    model: CharNGram,
    corpus: str,
    kind: Literal["entropy_seeking", "random", "low_order", "shuffled"],
    count: int,
    rng: np.random.Generator,
    cap: float | None = None,
) -> Texts:
    """`count` harmless texts of 280 characters, and as many of which the last 120 characters are replaced.

    Parameters
    ----------
    model : CharNGram
        What the suffixes are made by: an attacker who knows the detector's model.
    corpus : str
        Where heads, harmless texts and the system prompt of 400 characters are drawn from.
    kind : str
        "entropy_seeking": each character leads to where the next one is most uncertain, among those that keep the mean
        negative log-likelihood at most `cap`, so that perplexity stays that of prose; "random": letters; "low_order":
        drawn from the model's distributions given one character; "shuffled": the words of another piece of prose.
    count : int
    rng : numpy.random.Generator
    cap : float, optional
        Most mean negative log-likelihood of an entropy-seeking suffix, in nats; by default that of the harmless texts.

    Raises
    ------
    InputError
        For an unknown kind, or a corpus shorter than 2,000 characters.
    """
    among("kind", kind, KINDS, "texts_with_suffix")
    if len(corpus) < 2000:
        raise InputError(f"texts_with_suffix: the corpus has {len(corpus)} characters; expected 2000 or more")

    def pieces(size: int) -> list[str]:
        return [corpus[at : at + size] for at in rng.integers(0, len(corpus) - size, count)]

    at = int(rng.integers(0, len(corpus) - SYSTEM))
    system = corpus[at : at + SYSTEM]
    harmless, heads = pieces(HEAD + SUFFIX), pieces(HEAD)
    cap = float(np.mean([model.token_stats(one).nll.mean() for one in harmless])) if cap is None else cap
    make = {"entropy_seeking": _seeking, "random": _random, "low_order": _low_order, "shuffled": _shuffled}[kind]
    suffixes = make(model, heads, pieces(3 * SUFFIX), rng, cap)
    return Texts(system, harmless, [a + b for a, b in zip(heads, suffixes, strict=True)], HEAD)


def _seeking(
    model: CharNGram, heads: list[str], prose: list[str], rng: np.random.Generator, cap: float, tried: int = 8
) -> list[str]:
    texts, spent = list(heads), np.zeros(len(heads))
    letters = np.array([*model.alphabet, " "])
    for step in range(1, SUFFIX + 1):
        p = model.next_distribution(texts)[:, :-1]
        likely = np.argsort(-p, axis=1)[:, :tried]
        nll = -np.log(np.take_along_axis(p, likely, axis=1))
        ahead = [text[-8:] + letters[one] for text, row in zip(texts, likely, strict=True) for one in row]
        q = model.next_distribution(ahead)
        entropy = -(q * np.log(q)).sum(axis=1).reshape(nll.shape)
        allowed = (spent[:, None] + nll <= cap * step) | (np.arange(tried) == 0)
        taken = np.where(allowed, entropy + rng.gumbel(scale=NOISE, size=nll.shape), -np.inf).argmax(axis=1)
        spent += np.take_along_axis(nll, taken[:, None], axis=1)[:, 0]
        texts = [text + letters[row[one]] for text, row, one in zip(texts, likely, taken, strict=True)]
    return [text[len(head) :] for text, head in zip(texts, heads, strict=True)]


def _random(model: CharNGram, heads: list[str], prose: list[str], rng: np.random.Generator, cap: float) -> list[str]:
    letters = list("abcdefghijklmnopqrstuvwxyz     ")
    return ["".join(rng.choice(letters, SUFFIX)) for _ in heads]


def _low_order(model: CharNGram, heads: list[str], prose: list[str], rng: np.random.Generator, cap: float) -> list[str]:
    texts, letters = list(heads), np.array([*model.alphabet, " "])
    for _ in range(SUFFIX):
        p = model.next_distribution([one[-1:] for one in texts])
        chosen = (p.cumsum(axis=1) < rng.random((len(texts), 1))).sum(axis=1)
        texts = [one + letters[min(c, len(letters) - 1)] for one, c in zip(texts, chosen, strict=True)]
    return [text[len(head) :] for text, head in zip(texts, heads, strict=True)]


def _shuffled(model: CharNGram, heads: list[str], prose: list[str], rng: np.random.Generator, cap: float) -> list[str]:
    return [" ".join(rng.permutation(one.split()[1:-1]))[:SUFFIX].ljust(SUFFIX) for one in prose]

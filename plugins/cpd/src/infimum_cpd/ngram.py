"""A character n-gram language model with Witten-Bell smoothing: no download, trained in a second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infimum.errors import InputError
from infimum_cpd.checks import text as a_text
from infimum_cpd.checks import whole
from infimum_cpd.language import TokenStats

Floats = NDArray[np.float64]


class CharNGram:
    """Characters predicted from the `order - 1` before them.

    p(c | context) = (count(context c) + T p(c | shorter context)) / (count(context) + T), T the number of different
    characters seen after the context; the shortest distribution is uniform over the alphabet. Characters that were
    not seen in training share one symbol.

    Parameters
    ----------
    text : str or iterable of str
        What to train on; 100,000 characters make a usable model. Nothing is counted across two texts.
    order : int, default 5
        Length of the n-grams, 1 to 8.

    Raises
    ------
    InputError
        For no text, an order out of range, or an alphabet too large for it.

    References
    ----------
    I. Witten, T. Bell, The zero-frequency problem, IEEE Transactions on Information Theory 1991.
    """

    def __init__(self, text: str | Iterable[str], order: int = 5) -> None:
        texts = [text] if isinstance(text, str) else list(text) if np.iterable(text) else [text]
        for one in texts:
            a_text("text", one, "CharNGram")
        whole("order", order, 1, "CharNGram")
        if order > 8:
            raise InputError(f"CharNGram: order={order!r}; expected 1 to 8")
        if not any(texts):
            raise InputError("CharNGram: there is no text to train on")
        self.order = order
        self.alphabet = sorted(set().union(*texts))
        self.size = len(self.alphabet) + 1
        if self.size**order >= 2**62:
            raise InputError(f"CharNGram: {self.size} different characters are too many for order {order}")
        self._points = np.array([ord(one) for one in self.alphabet])
        self._levels = [self._count([self._encode(one) for one in texts], n) for n in range(order)]

    def token_stats(self, text: str) -> TokenStats:
        """Entropy and negative log-likelihood of every character, those of the first from nothing before it."""
        a_text("text", text, "CharNGram")
        codes = self._encode(text)
        n = codes.size
        entropy, nll = np.empty(n), np.empty(n)
        for low in range(0, n, 4096):
            high = min(n, low + 4096)
            p = self._predict(codes, np.arange(low, high))
            entropy[low:high] = -(p * np.log(p)).sum(axis=1)
            nll[low:high] = -np.log(p[np.arange(high - low), codes[low:high]])
        starts = np.arange(n)
        return TokenStats(entropy, nll, np.stack([starts, starts + 1], axis=1))

    def next_distribution(self, contexts: Sequence[str]) -> Floats:
        """Probabilities of the next character after each text, shape (texts, size); the last column is "other"."""
        width = self.order - 1
        tails = [one[max(0, len(one) - width) :] for one in contexts]
        lengths = np.array([len(one) for one in tails])
        codes, ends = self._encode("".join(tails)), np.cumsum(lengths)
        if not codes.size:
            codes = np.zeros(1, dtype=np.int64)
        return self._smoothed([np.where(lengths >= n, self._keys(codes, ends, n), -1) for n in range(self.order)])

    def _encode(self, text: str) -> NDArray[np.int64]:
        points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
        place = np.minimum(np.searchsorted(self._points, points), len(self._points) - 1)
        return np.where(self._points[place] == points, place, self.size - 1)

    def _keys(self, codes: NDArray[np.int64], ends: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        """One number for the n characters before each of `ends`; -1 where there are fewer."""
        keys = np.zeros(ends.size, dtype=np.int64)
        for back in range(n, 0, -1):
            keys = keys * self.size + codes[np.maximum(ends - back, 0)]
        return np.where(ends >= n, keys, -1)

    def _count(self, encoded: list[NDArray[np.int64]], n: int) -> tuple[NDArray[np.int64], sparse.csr_array]:
        """Contexts of n characters, sorted, and how often each character followed them."""
        pairs = [self._keys(one, np.arange(n, one.size), n) * self.size + one[n:] for one in encoded if one.size > n]
        found, counts = np.unique(np.concatenate([*pairs, np.empty(0, dtype=np.int64)]), return_counts=True)
        contexts, rows = np.unique(found // self.size, return_inverse=True)
        shape = (len(contexts) + 1, self.size)  # the last row is empty: contexts never seen
        return contexts, sparse.csr_array((counts.astype(float), (rows, found % self.size)), shape=shape)

    def _predict(self, codes: NDArray[np.int64], ends: NDArray[np.int64]) -> Floats:
        return self._smoothed([self._keys(codes, ends, n) for n in range(self.order)])

    def _smoothed(self, keys: list[NDArray[np.int64]]) -> Floats:
        p = np.full((keys[0].size, self.size), 1.0 / self.size)
        for (contexts, table), key in zip(self._levels, keys, strict=True):
            place = np.searchsorted(contexts, key)
            inside = np.flatnonzero(place < len(contexts))
            rows = inside[contexts[place[inside]] == key[inside]]
            counts = table[place[rows]].toarray()
            types = (counts > 0).sum(axis=1, keepdims=True)
            p[rows] = (counts + types * p[rows]) / (counts.sum(axis=1, keepdims=True) + types)
        return p

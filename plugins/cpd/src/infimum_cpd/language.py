"""What a detector asks of a language model: entropy and negative log-likelihood of every token of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TokenStats:
    """Numbers of the n tokens of a text.

    Attributes
    ----------
    entropy : ndarray, shape (n,)
        In nats, of the distribution that predicts the token, from what stands before it. NaN where nothing does.
    nll : ndarray, shape (n,)
        -ln of the probability of the token under that distribution; NaN likewise.
    offsets : ndarray of int, shape (n, 2)
        First character of each token and the one after its last.
    """

    entropy: NDArray[np.float64]
    nll: NDArray[np.float64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.entropy)


class LanguageModel(Protocol):
    """Any causal language model: `token_stats(text)` is all that is asked of it."""

    def token_stats(self, text: str) -> TokenStats: ...


def of_logits(logits: Any, ids: Any, offsets: NDArray[np.int64]) -> TokenStats:
    """Statistics from a causal model's outputs; the first token has none.

    Parameters
    ----------
    logits : torch.Tensor, shape (n, vocabulary)
        Row i predicts token i + 1.
    ids : torch.Tensor of int, shape (n,)
    offsets : ndarray, shape (n, 2)
    """
    n = len(offsets)
    entropy, nll = np.full(n, np.nan), np.full(n, np.nan)
    if n > 1:
        log_p = logits[:-1].float().log_softmax(dim=-1)
        entropy[1:] = -(log_p.exp() * log_p).nan_to_num(nan=0.0).sum(dim=-1).double().cpu().numpy()
        nll[1:] = -log_p.gather(1, ids[1:, None])[:, 0].double().cpu().numpy()
    return TokenStats(entropy, nll, offsets)

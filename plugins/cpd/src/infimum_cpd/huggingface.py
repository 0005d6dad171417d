"""A causal model of the user's own, with its fast tokenizer."""

from __future__ import annotations

from typing import Any

import numpy as np

from infimum.errors import InputError
from infimum_cpd.language import TokenStats, of_logits


class HuggingFaceLM:
    """Token statistics from a `transformers` causal model; nothing is downloaded here.

    Parameters
    ----------
    model : torch.nn.Module
        `model(input_ids).logits`, such as an `AutoModelForCausalLM`, in evaluation mode.
    tokenizer : PreTrainedTokenizerFast
        Must give offsets. No special tokens are added: write them into the detector's `template`.
    limit : int, optional
        Most tokens of a text; a longer one is refused. By default the model's `config.max_position_embeddings`.

    Raises
    ------
    InputError
        For a tokenizer without offsets, or a model in training mode (dropout makes its numbers random).
    """

    def __init__(self, model: Any, tokenizer: Any, limit: int | None = None) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(f"HuggingFaceLM: {type(tokenizer).__name__} gives no offsets; expected a fast tokenizer")
        if getattr(model, "training", False):
            raise InputError(f"HuggingFaceLM: {type(model).__name__} is in training mode; call model.eval() first")
        self.model, self.tokenizer = model, tokenizer
        self.limit = limit or getattr(getattr(model, "config", None), "max_position_embeddings", None)

    def token_stats(self, text: str) -> TokenStats:
        import torch

        coded = self.tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
        offsets = np.array(coded["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        if self.limit is not None and len(offsets) > self.limit:
            raise InputError(f"the text has {len(offsets)} tokens, the model takes {self.limit}; shorten it")
        device = next(iter(self.model.parameters())).device
        ids = torch.as_tensor(coded["input_ids"], dtype=torch.long, device=device)
        with torch.inference_mode():
            logits = self.model(ids[None]).logits[0] if len(offsets) else torch.empty(0, 1)
        return of_logits(logits, ids, offsets)

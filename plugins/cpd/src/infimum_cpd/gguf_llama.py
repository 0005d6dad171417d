"""A Llama from a GGUF file: reading the weights and the vocabulary, and the forward pass in PyTorch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

CONTROL = 3
"""The type of control tokens in a GGUF vocabulary."""


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], Any]:
    """Hyperparameters by their short names, weights as float32, and the byte-level BPE tokenizer of the file."""
    gguf: Any = import_module("gguf")
    reader = gguf.GGUFReader(path)
    fields = {name.removeprefix("llama."): one.contents() for name, one in reader.fields.items() if "llama." in name}
    tensors = {one.name: np.asarray(gguf.dequantize(one.data, one.tensor_type), np.float32) for one in reader.tensors}
    return fields, tensors, _tokenizer({name: one for name, one in reader.fields.items() if "tokenizer" in name})


def _tokenizer(fields: dict[str, Any]) -> Any:
    tokenizers: Any = import_module("tokenizers")
    models, splits = tokenizers.models, tokenizers.pre_tokenizers
    words = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(one.split(" ", 1)) for one in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = tokenizers.Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    digits = splits.Split(tokenizers.Regex(r"\p{N}"), "isolated")
    tokenizer.pre_tokenizer = splits.Sequence([digits, splits.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    special = [
        tokenizers.AddedToken(word, special=True) for word, kind in zip(words, kinds, strict=True) if kind == CONTROL
    ]
    tokenizer.add_special_tokens(special)
    return tokenizer


class Llama:
    """The forward pass over one sequence. GGUF keeps query and key rows in the order of interleaved rotary pairs."""

    def __init__(self, fields: dict[str, Any], tensors: dict[str, np.ndarray], device: str) -> None:
        self.device = torch.device(device)
        self.weights = {name: torch.from_numpy(np.array(one)).to(self.device) for name, one in tensors.items()}
        self.layers, self.heads = int(fields["block_count"]), int(fields["attention.head_count"])
        self.groups = int(fields.get("attention.head_count_kv", self.heads))
        self.eps = float(fields["attention.layer_norm_rms_epsilon"])
        self.base, self.context = float(fields.get("rope.freq_base", 1e4)), int(fields["context_length"])

    @torch.inference_mode()
    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits, shape (n, vocabulary), of the token after each of `ids`, shape (n,)."""
        w = self.weights
        x = w["token_embd.weight"][ids]
        turn = self._rotations(len(ids), x.shape[1] // self.heads)
        for i in range(self.layers):
            at = f"blk.{i}."
            x = x + self._attend(self._norm(x, w[at + "attn_norm.weight"]), at, turn)
            y = self._norm(x, w[at + "ffn_norm.weight"])
            y = F.silu(y @ w[at + "ffn_gate.weight"].T) * (y @ w[at + "ffn_up.weight"].T)
            x = x + y @ w[at + "ffn_down.weight"].T
        return self._norm(x, w["output_norm.weight"]) @ w.get("output.weight", w["token_embd.weight"]).T

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * weight

    def _rotations(self, n: int, width: int) -> torch.Tensor:
        rates = self.base ** (-torch.arange(0, width, 2, device=self.device) / width)
        angles = torch.arange(n, device=self.device)[:, None] * rates
        return torch.polar(torch.ones_like(angles), angles)

    def _attend(self, x: torch.Tensor, at: str, turn: torch.Tensor) -> torch.Tensor:
        n = len(x)
        q, k, v = (
            (x @ self.weights[f"{at}attn_{one}.weight"].T).view(n, count, -1).transpose(0, 1)
            for one, count in (("q", self.heads), ("k", self.groups), ("v", self.groups))
        )
        q, k = _rotated(q, turn), _rotated(k, turn)
        k, v = (one.repeat_interleave(self.heads // self.groups, dim=0) for one in (k, v))
        out = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        return out.transpose(0, 1).reshape(n, -1) @ self.weights[at + "attn_output.weight"].T


def _rotated(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2)

"""The numbers that decide a decoder's size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A decoder-only transformer: embedding, `layers` equal blocks, a final norm, a head over the vocabulary."""

    name: str
    """For people, and under `models/configs/`: llama3-8b."""
    family: str
    """Transformers' `model_type`: llama, qwen2, mistral, mixtral …"""
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    """Width of the MLP, or of one expert."""
    vocab: int
    max_positions: int
    tied: bool = False
    """The head is the embedding's own weight."""
    qkv_bias: bool = False
    experts: int = 0
    """Experts per block; 0 for a dense block."""
    experts_per_token: int = 0

    @property
    def query_width(self) -> int:
        """All query heads side by side."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """All key (or value) heads side by side."""
        return self.kv_heads * self.head_dim

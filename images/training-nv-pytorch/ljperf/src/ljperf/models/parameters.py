"""How many parameters a decoder has, and where.

A block is four attention matrices, three MLP matrices (per expert) and the vectors of its family. Families whose
vectors are not listed here are built without memory and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ljperf.models.shape import ModelShape


@dataclass(frozen=True, slots=True)
class Parameters:
    """Elements, each counted once: a tied head is its embedding."""

    total: int
    embedding: int
    layer: int
    """One block, with all its experts."""
    head: int
    """0 if tied."""
    final_norm: int
    linear_per_layer: int
    """The block's matrices: what ZeRO-3 gathers for matrix products."""


def _two_norms(shape: ModelShape) -> int:
    return 2 * shape.hidden


# Family -> elements of one block's normalisations (transformers, modeling_<family>.py). The final norm is one of
# `hidden` elements in each of them.
NORMS: Final[dict[str, Callable[[ModelShape], int]]] = {
    "llama": _two_norms,
    "mistral": _two_norms,
    "mixtral": _two_norms,
    "qwen2": _two_norms,
    "gemma": _two_norms,
    "phi3": _two_norms,
    "granite": _two_norms,
    "gemma2": lambda shape: 4 * shape.hidden,
    "qwen3": lambda shape: 2 * shape.hidden + 2 * shape.head_dim,
    "olmo2": lambda shape: 2 * shape.hidden + shape.query_width + shape.kv_width,
}


@lru_cache(maxsize=64)
def parameters_of(shape: ModelShape) -> Parameters:
    """Count the parameters of `shape`.

    An unlisted family is counted on a model without memory, which imports Transformers; raises UnknownModelError if
    that has no such family.
    """
    if shape.family not in NORMS:
        from ljperf.models.building import counted_parameters

        return counted_parameters(shape)
    embedding = shape.vocab * shape.hidden
    head = 0 if shape.tied else embedding
    linear = linear_elements(shape, max(shape.experts, 1))
    layer = linear + NORMS[shape.family](shape) + _biases(shape)
    total = embedding + shape.layers * layer + shape.hidden + head
    return Parameters(total, embedding, layer, head, shape.hidden, linear)


def linear_elements(shape: ModelShape, experts: int) -> int:
    """Elements of one block's matrices if it had that many experts: q, k, v, o; gate, up, down; the router."""
    attention = 2 * shape.hidden * (shape.query_width + shape.kv_width)
    return attention + 3 * shape.hidden * shape.ffn * experts + shape.hidden * shape.experts


def active_per_token(shape: ModelShape) -> int:
    """Parameters that one token meets in a block: those of the experts it is sent to, and all that is no expert's."""
    unused = max(shape.experts - shape.experts_per_token, 0) if shape.experts else 0
    return parameters_of(shape).layer - 3 * shape.hidden * shape.ffn * unused


def _biases(shape: ModelShape) -> int:
    return shape.query_width + 2 * shape.kv_width if shape.qkv_bias else 0

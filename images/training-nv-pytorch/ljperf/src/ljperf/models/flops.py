"""Floating-point operations of training, and which convention counts them.

A matrix product is two operations per element and token, once forward and twice backward: six per parameter. Attention
adds the two products of queries with keys and of scores with values. "full" counts them over the whole sequence, as
PaLM's appendix B, torchtitan and NVIDIA's published figures do; "causal" counts the half that a causal mask leaves.
The input embedding is a look-up and counts nothing; tied, it is the head and counts once.
"""

from __future__ import annotations

from typing import Final, Literal, assert_never

from ljperf.models.parameters import active_per_token, parameters_of
from ljperf.models.shape import ModelShape

Convention = Literal["full", "causal"]

FORWARD: Final = 2  # operations per parameter and token; backward is twice that
TRAIN: Final = 6


def flops_per_token(shape: ModelShape, sequence: int, convention: Convention = "full") -> float:
    """Operations of a forward and backward, per token, without what is computed again: the numerator of MFU."""
    parameters = parameters_of(shape)
    dense = parameters.total - parameters.layer * shape.layers
    dense -= parameters.embedding if parameters.head else 0
    layers = shape.layers * _layer_forward(shape, sequence, convention) * (TRAIN / FORWARD)
    return TRAIN * dense + layers


def hardware_flops_per_token(
    shape: ModelShape, sequence: int, recompute_layers: int, convention: Convention = "full"
) -> float:
    """The same with the second forward of the recomputed layers: the numerator of HFU."""
    again = recompute_layers * _layer_forward(shape, sequence, convention)
    return flops_per_token(shape, sequence, convention) + again


def _layer_forward(shape: ModelShape, sequence: int, convention: Convention) -> float:
    """Operations of one block's forward, per token."""
    # Two products, each of query_width x sequence, two operations each.
    attention = 4 * shape.query_width * sequence * _share(convention)
    return FORWARD * active_per_token(shape) + attention


def _share(convention: Convention) -> float:
    match convention:
        case "full":
            return 1.0
        case "causal":
            return 0.5
        case _:
            assert_never(convention)

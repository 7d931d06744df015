"""Weights that are on a device for a while beside its own: ZeRO-3's and FSDP's gathers, autocast's copies.

DeepSpeed counts in elements; its habits were read in 0.16.4 (`partitioned_param_coordinator.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ljperf.memory.states import autocasts, block_weights, embedding_and_head, sharding_of
from ljperf.models.parameters import parameters_of
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

REUSE_DISTANCE = 1_000_000_000  # stage3_max_reuse_distance: weights needed again within it are not released
FSDP_REDUCE = 4  # gradients are reduced in fp32


@dataclass(frozen=True, slots=True)
class Gathers:
    """Bytes of whole weights and of gradients on their way to their shard, by phase."""

    ends: int
    """While the head or the embedding runs."""
    block: int
    """While a block's backward runs."""
    pinned_per_kept_layer: int
    """Kept by a kept layer from its forward to its backward."""
    head_gradient: int
    """The head's whole gradient, from its backward until it is reduced."""
    reducing: int
    """Copies made while gradients are reduced."""
    held: int = 0
    """The head's whole weights and gradient for the whole of backward (FSDP's root)."""


NOTHING = Gathers(0, 0, 0, 0, 0)


def gathers_of(shape: ModelShape, setup: TrainingSetup) -> Gathers:
    """Gathers on one device; none where each rank has all weights, or where there is but one rank's share."""
    match sharding_of(setup):
        case "zero3":
            return _zero3(shape, setup)
        case "fsdp":
            return _fsdp(shape, setup)
        case "zero1" | "zero2":
            return _bucketed(shape, setup)
        case "none" if autocasts(setup):
            return _autocast(shape, setup)
        case _:
            return NOTHING


def _bucketed(shape: ModelShape, setup: TrainingSetup) -> Gathers:
    """ZeRO-1 and 2 share no weights, yet a gradient larger than a bucket is reduced on its own, out of place."""
    head = shape.vocab * shape.hidden
    return Gathers(0, 0, 0, setup.element_bytes * head if setup.zero_stage == 2 else 0, 0)


def _autocast(shape: ModelShape, setup: TrainingSetup) -> Gathers:
    """No rank lacks a weight, yet autograd keeps autocast's copy of each Linear weight from forward to backward."""
    size, weights = setup.element_bytes, parameters_of(shape).linear_per_layer
    return Gathers(size * shape.vocab * shape.hidden, size * weights, size * weights, 0, 0)


def _zero3(shape: ModelShape, setup: TrainingSetup) -> Gathers:
    size, head = setup.element_bytes, shape.vocab * shape.hidden
    layer = parameters_of(shape).layer
    ahead, several = prefetched(shape, setup)
    if setup.leaf_blocks:
        # Gathered flat and then concatenated into each weight; its gradients wait for the end of the block.
        block = size * (2 * layer + layer + ahead)
    else:
        block = size * (max(block_weights(shape)) + ahead * (2 if several else 1))
    reducing = size * min(setup.reduce_bucket, parameters_of(shape).total) if setup.world_size > 1 else 0
    return Gathers(size * (head + ahead), block, pinned(shape, setup), size * head, reducing)


def pinned(shape: ModelShape, setup: TrainingSetup) -> int:
    """Bytes of gathered Linear weights that autograd of a kept layer holds until its backward.

    Without `zero.Init`, eager autograd saves a view of the gathered storage, which then outlives its release.
    """
    if setup.zero_init or setup.compiled:
        return 0
    return setup.element_bytes * sum(block_weights(shape))


def prefetched(shape: ModelShape, setup: TrainingSetup) -> tuple[int, bool]:
    """Elements fetched ahead, and whether that is more than one weight.

    Whole weights are added until the bucket is full, so that the last one overshoots.
    """
    elements, count = 0, 0
    for weight in block_weights(shape) * min(shape.layers, 2):
        if elements >= setup.prefetch_bucket:
            break
        elements, count = elements + weight, count + 1
    return elements, count > 1


def reused(shape: ModelShape, setup: TrainingSetup) -> int:
    """Elements of the last blocks that stay gathered from forward to backward, as they are needed again soon.

    Between a weight's two uses lie the weights after it, twice.
    """
    after, kept = shape.vocab * shape.hidden, 0
    for _ in range(shape.layers):
        for weight in block_weights(shape):
            if 2 * after >= REUSE_DISTANCE:
                return kept
            kept, after = kept + weight, after + weight
    return kept


def _fsdp(shape: ModelShape, setup: TrainingSetup) -> Gathers:
    """FSDP2 with a unit per block: this block and the next are whole; the root (both ends) stays so all along."""
    size, layer = setup.element_bytes, parameters_of(shape).layer
    ends = size * embedding_and_head(shape)
    block = size * 2 * layer + size * layer + FSDP_REDUCE * layer
    return Gathers(0, block, 0, 0, 0, held=ends + size * shape.vocab * shape.hidden)

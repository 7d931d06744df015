"""Bytes of a model's states on one device: parameters, gradients, optimizer, buckets, for each way of sharding.

Where a number is a habit of DeepSpeed's, it was read in 0.16.4 (`runtime/zero/stage3.py`, `stage_1_and_2.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ljperf.errors import UsageError
from ljperf.models.parameters import Parameters, parameters_of
from ljperf.models.shape import ModelShape
from ljperf.setup import TrainingSetup

Sharding = Literal["none", "zero0", "zero1", "zero2", "zero3", "fsdp"]
ADAM_STATES = 8  # two fp32 moments per parameter
MASTER = 4  # one fp32 copy per parameter


@dataclass(frozen=True, slots=True)
class States:
    """Bytes on one device that depend on the parameters only."""

    parameters: int
    """Resident copies of the parameters in the compute type (or their shard)."""
    optimizer: int
    """Master parameters and moments."""
    gradients: int
    """Gradient buffers that are resident for the whole step."""
    per_gradient: float
    """Bytes that stay for each gradient element produced in backward, until the optimizer's step."""
    buckets: int
    """Communication buffers that are resident in backward."""
    step: int
    """What the optimizer's step allocates for a moment."""
    initial: int
    """What is alive while the engine is made, beside the context."""


def sharding_of(setup: TrainingSetup) -> Sharding:
    """What is shared among ranks, whatever the framework's name."""
    if setup.framework == "fsdp":
        return "fsdp"
    if setup.framework == "ddp" or (setup.framework == "hf" and setup.zero_stage == 0):
        return "none"
    stages: dict[int, Sharding] = {0: "zero0", 1: "zero1", 2: "zero2", 3: "zero3"}
    if setup.zero_stage not in stages:
        raise UsageError(f"ZeRO has no stage {setup.zero_stage}", hint="stages are 0, 1, 2 and 3")
    return stages[setup.zero_stage]


def autocasts(setup: TrainingSetup) -> bool:
    """Are parameters and the residual stream fp32, and only the matrix products of lower precision?"""
    return sharding_of(setup) == "none" and setup.precision != "fp32"


def stream_bytes(setup: TrainingSetup) -> int:
    """Bytes per element of the residual stream between blocks."""
    return 4 if autocasts(setup) else setup.element_bytes


def states_of(shape: ModelShape, setup: TrainingSetup) -> States:
    """States of `shape` on one of `setup.world_size` devices.

    Raises UsageError for a world size below 1 or an unknown stage.
    """
    if setup.world_size < 1:
        raise UsageError(f"a world of {setup.world_size} ranks cannot train", hint="--world-size is 1 or more")
    parameters = parameters_of(shape)
    match sharding_of(setup):
        case "none":
            return _replicated(parameters, setup)
        case "zero0":
            return _zero0(parameters, setup)
        case "zero1" | "zero2":
            return _zero12(parameters, setup)
        case "zero3":
            return _zero3(shape, parameters, setup)
        case "fsdp":
            return _fsdp(parameters, setup)


def shard(elements: int, ranks: int) -> int:
    """Elements of one rank's share, rounded up: ranks pad."""
    return -(-elements // ranks)


def _replicated(parameters: Parameters, setup: TrainingSetup) -> States:
    """DistributedDataParallel, or the Trainer without DeepSpeed: fp32 parameters, autocast to bf16 or fp16."""
    total = parameters.total
    if setup.framework == "ddp":  # the benchmark's gradients are views of its buckets, which stay
        return States(4 * total, ADAM_STATES * total, 4 * total, 0, 0, 0, 4 * total)
    buckets = 4 * total if setup.world_size > 1 else 0  # Accelerate's default: buckets beside the gradients
    return States(4 * total, ADAM_STATES * total, 0, 4, buckets, 0, 4 * total)


def _zero0(parameters: Parameters, setup: TrainingSetup) -> States:
    total, ranks = parameters.total, setup.world_size
    if setup.precision == "fp32":
        return States(4 * total, ADAM_STATES * total, 0, 4, 4 * min(total, setup.reduce_bucket), 0, 4 * total)
    # BF16_Optimizer: fp32 gradients of all parameters in flat buffers, bf16 ones until they are added to those.
    mine = shard(total, ranks)
    return States(2 * total, (MASTER + ADAM_STATES) * mine, 4 * total, 2, 0, 0, 2 * total)


def _zero12(parameters: Parameters, setup: TrainingSetup) -> States:
    total, size = parameters.total, setup.element_bytes
    mine = shard(total, setup.world_size)
    states = 0 if setup.optimizer_offload else (MASTER + ADAM_STATES) * mine
    step = 0 if setup.optimizer_offload else (size + 4) * mine  # the flattened shard, and its fp32 copy
    held = size if setup.zero_stage == 1 else 0  # stage 1 keeps each rank's whole gradients until the step
    buffers = 2 if setup.overlap_comm else 1
    buckets = buffers * size * setup.reduce_bucket
    return States(
        size * total, states, 0 if setup.optimizer_offload else size * mine, held, buckets, step, size * total
    )


def _zero3(shape: ModelShape, parameters: Parameters, setup: TrainingSetup) -> States:
    size, ranks = setup.element_bytes, setup.world_size
    persistent = persistent_elements(shape, setup)
    mine = shard(parameters.total - persistent, ranks) + persistent
    states = 0 if setup.optimizer_offload else (MASTER + ADAM_STATES) * shard(parameters.total, ranks)
    # `_prepare_fp32_grad_for_sub_group`: one sub-group's gradients in fp32 at a time.
    step = 0 if setup.optimizer_offload else 4 * min(shard(parameters.total, ranks), setup.sub_group)
    gradients = 0 if setup.optimizer_offload else size * shard(parameters.total, ranks)
    initial = size * (mine + largest_module(shape)) if setup.zero_init else size * parameters.total
    return States(size * mine, states, gradients, 0, size * setup.reduce_bucket, step, initial)


def _fsdp(parameters: Parameters, setup: TrainingSetup) -> States:
    """FSDP2: fp32 shards of parameters, gradients and moments."""
    mine = shard(parameters.total, setup.world_size)
    return States(4 * mine, ADAM_STATES * mine, 0, 4 / setup.world_size, 0, 0, 4 * parameters.total)


def persistent_elements(shape: ModelShape, setup: TrainingSetup) -> int:
    """Elements in parameters too small to be shared: ZeRO-3 keeps them on every rank (norms, biases)."""
    small = sum(size for size in small_parameters(shape) if size <= setup.persistence_threshold)
    large = [size for size in block_weights(shape) if size <= setup.persistence_threshold]
    ends = embedding_and_head(shape) if shape.vocab * shape.hidden <= setup.persistence_threshold else 0
    return (
        shape.layers * (small + sum(large))
        + (shape.hidden if shape.hidden <= setup.persistence_threshold else 0)
        + ends
    )


def embedding_and_head(shape: ModelShape) -> int:
    """Elements of the embedding and, unless tied, the head."""
    return shape.vocab * shape.hidden * (1 if shape.tied else 2)


def small_parameters(shape: ModelShape) -> tuple[int, ...]:
    """Elements of each vector of one block: two norms, and the biases of query, key and value where there are any."""
    biases = (shape.query_width, shape.kv_width, shape.kv_width) if shape.qkv_bias else ()
    return (shape.hidden, shape.hidden, *biases)


def block_weights(shape: ModelShape) -> tuple[int, ...]:
    """Elements of each matrix of one block, in the order in which backward needs them: down, up, gate, o, v, k, q."""
    wide = shape.hidden * shape.ffn
    experts = max(shape.experts, 1)
    router = (shape.hidden * shape.experts,) if shape.experts else ()
    query, pair = shape.hidden * shape.query_width, shape.hidden * shape.kv_width
    return (*(wide,) * (3 * experts), *router, query, pair, pair, query)


def largest_module(shape: ModelShape) -> int:
    """Elements of the largest single module: the embedding, or one matrix of the block."""
    return max(shape.vocab * shape.hidden, *block_weights(shape))

"""How a model is trained: the choices that decide time and memory; `plan` predicts them and `benchmark` runs them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Framework = Literal["deepspeed", "fsdp", "ddp", "hf"]
Precision = Literal["bf16", "fp16", "fp32"]
Attention = Literal["sdpa", "eager", "flash_attention_2"]
Loss = Literal["plain", "chunked", "liger"]

FRAMEWORKS: tuple[Framework, ...] = ("deepspeed", "fsdp", "ddp", "hf")


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """One way to train. Sizes of buckets and thresholds are in elements, as DeepSpeed counts them."""

    framework: Framework = "deepspeed"
    world_size: int = 1
    micro_batch: int = 1
    """Sequences per device and forward."""
    sequence: int = 2048
    accumulation: int = 1
    """Forwards per optimizer step."""
    zero_stage: int = 3
    """DeepSpeed only (hf: with a DeepSpeed config)."""
    precision: Precision = "bf16"
    attention: Attention = "sdpa"
    loss: Loss = "plain"
    compiled: bool = False
    recompute_layers: int = 0
    """How many of the first layers recompute their activations; all layers: full recomputation."""
    zero_init: bool = True
    """Was it built under `deepspeed.zero.Init`? If not, ZeRO-3 in eager mode keeps gathered weights until backward."""
    leaf_blocks: bool = False
    """The decoder block is a ZeRO-3 leaf module: gathered as a whole."""
    reduce_bucket: int = 500_000_000
    prefetch_bucket: int = 50_000_000
    persistence_threshold: int = 100_000
    sub_group: int = 1_000_000_000
    optimizer: Literal["adamw"] = "adamw"
    optimizer_offload: bool = False
    overlap_comm: bool = False
    """ZeRO-1 and 2: reduce beside backward, with a second bucket for it."""

    @property
    def tokens(self) -> int:
        """Tokens per device and forward."""
        return self.micro_batch * self.sequence

    @property
    def element_bytes(self) -> int:
        """Bytes per element of the type that computes."""
        return 4 if self.precision == "fp32" else 2

    def recomputing(self, layers: int) -> TrainingSetup:
        """The same with that many layers recomputed."""
        return replace(self, recompute_layers=layers)

"""A running model's `TrainingSetup` and device: read from the model, its engine and its first batch."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ljperf.errors import LjperfError
from ljperf.setup import Attention, Framework, Precision, TrainingSetup

if TYPE_CHECKING:
    from torch import nn

    from ljperf.devices import Device
    from ljperf.recompute.layers import Asked

DEVICE = "CHECKPOINT_OPTIMIZATION_DEVICE"  # plan as if for this one: h20-96g


class DoubtError(LjperfError):
    """Not enough is known to plan; all layers recompute."""


def setup_of(model: nn.Module, engine: Any | None, asked: Asked) -> TrainingSetup:
    """How it is trained. Raises DoubtError where guessing would be dangerous."""
    setup = TrainingSetup(
        framework=framework_of(model, engine),
        world_size=world_size(),
        micro_batch=asked.sequences,
        sequence=asked.sequence,
        zero_stage=0,
        precision=precision_of(model),
        attention=attention_of(model),
        compiled=False,  # a compiled block keeps less: planned as if it were not, k errs to the safe side
        zero_init=True,
    )
    return setup if engine is None else with_engine(setup, model, engine)


def with_engine(setup: TrainingSetup, model: nn.Module, engine: Any) -> TrainingSetup:
    """The same with what DeepSpeed's engine says about ZeRO; sizes in elements, as DeepSpeed has them."""
    stage = int(engine.zero_optimization_stage())
    offload = engine.zero_offload_optimizer()
    setup = replace(setup, zero_stage=stage, optimizer_offload=offload_device(offload) not in (None, "none"))
    if stage == 0:
        return setup
    return replace(
        setup,
        zero_init=stage < 3 or linear_is_zero3s(),
        leaf_blocks=stage == 3 and any(getattr(module, "_z3_leaf", False) for module in model.modules()),
        reduce_bucket=int(engine.zero_reduce_bucket_size()),
        prefetch_bucket=int(engine.zero_prefetch_bucket_size()),
        persistence_threshold=int(engine.zero_param_persistence_threshold()),
        sub_group=int(engine.zero_sub_group_size()),
    )


def offload_device(offload: Any) -> str | None:
    """Where the optimizer's states are, as a word; None on the device itself."""
    if offload is None:
        return None
    device = getattr(offload, "device", None)
    return str(getattr(device, "value", device))


def framework_of(model: nn.Module, engine: Any | None) -> Framework:
    """DeepSpeed, FSDP, or else DDP. Raises DoubtError for a ZeRO-3 model whose engine we have not seen."""
    if engine is not None:
        return "deepspeed"
    if any(hasattr(parameter, "ds_id") for parameter in model.parameters()):
        raise DoubtError("ZeRO-3 has its parameters, but its engine was made before us")
    sharded = any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules())
    sharded = sharded or any(type(parameter).__name__ == "DTensor" for parameter in model.parameters())
    return "fsdp" if sharded else "ddp"


def linear_is_zero3s() -> bool:
    """Was the model built under `deepspeed.zero.Init`? It leaves its own linear function, which pins no weight."""
    import torch.nn.functional

    return bool(torch.nn.functional.linear.__name__ == "zero3_linear_wrap")


def precision_of(model: nn.Module) -> Precision:
    """Of the parameters; under autocast the plan for fp32 errs to the safe side."""
    import torch

    kinds: dict[torch.dtype, Precision] = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
    found = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    if len(found) != 1 or not found <= set(kinds):
        raise DoubtError("its parameters are of several types")
    return kinds[found.pop()]


def attention_of(model: nn.Module) -> Attention:
    """Transformers' name of the attention kernel. Raises DoubtError for one that the plan does not know."""
    name = str(getattr(getattr(model, "config", None), "_attn_implementation", None) or "eager")
    if name not in ("sdpa", "eager", "flash_attention_2"):
        raise DoubtError(f"nothing is known of its attention, {name}")
    return cast(Attention, name)


def world_size() -> int:
    """Ranks of the default group; 1 without one."""
    import torch.distributed

    return torch.distributed.get_world_size() if in_group() else 1


def in_group() -> bool:
    """Is there a process group?"""
    import torch.distributed

    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def device_here() -> Device:
    """The device that DEVICE names, or the one here less what others use of it. Raises DoubtError without one."""
    import torch

    from ljperf.devices import device_named, found

    if name := os.environ.get(DEVICE):
        return device_named(name)
    device = found(torch.cuda.current_device()) if torch.cuda.is_available() else None
    if device is None:
        raise DoubtError("there is no accelerator to plan for", hint=f"{DEVICE}=h20-96g plans for one")
    free, _total = torch.cuda.mem_get_info()
    return replace(device, memory_bytes=min(device.memory_bytes, free + torch.cuda.memory_reserved()))

"""PyTorch's first FSDP, which shards on CPUs where the second does not yet: up to PyTorch 2.5."""

from __future__ import annotations

import contextlib

from ljperf.benchmark.frameworks.job import (
    GRADIENT_CLIPPING,
    Job,
    StepLoop,
    blocks,
    built,
    compile_each,
    optimizer_for,
    stepper,
)
from ljperf.models.building import dtype_of


def prepare(job: Job) -> StepLoop:
    """Build, compile the blocks, and wrap: fp32 shards, gathered block by block in the run's precision."""
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = built(job, torch.float32)
    kinds = {type(block) for block in blocks(model)}
    compile_each(model, job)
    precision = MixedPrecision(param_dtype=dtype_of(job.setup.precision), reduce_dtype=torch.float32)
    wrapped = FullyShardedDataParallel(
        model,
        auto_wrap_policy=ModuleWrapPolicy(kinds),
        mixed_precision=precision,
        device_id=torch.device(job.place.device),
        use_orig_params=True,
    )
    step = stepper(
        wrapped,
        optimizer_for(wrapped, job),
        synchronised=lambda last: contextlib.nullcontext() if last else wrapped.no_sync(),
        clip=lambda: wrapped.clip_grad_norm_(GRADIENT_CLIPPING),
    )
    return StepLoop(step, job.batches(), job.setup.accumulation, job.place.device)

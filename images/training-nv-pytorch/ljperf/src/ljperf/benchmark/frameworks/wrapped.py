"""PyTorch's first FSDP, which shards on CPUs where the second does not yet: up to PyTorch 2.5."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ljperf.benchmark.frameworks.job import (
    GRADIENT_CLIPPING,
    Job,
    StepLoop,
    blocks,
    built,
    compile_each,
    dtype_of,
    mean,
    optimizer_for,
)

if TYPE_CHECKING:
    import torch


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
    step = _stepper(wrapped, optimizer_for(wrapped, job))
    return StepLoop(step, job.batches(), job.setup.accumulation, job.place.device)


def _stepper(model: Any, optimizer: torch.optim.Optimizer) -> Callable[[Sequence[torch.Tensor]], float]:
    def step(batches: Sequence[torch.Tensor]) -> float:
        losses = []
        for index, ids in enumerate(batches):
            last = index == len(batches) - 1
            with contextlib.nullcontext() if last else model.no_sync():
                loss = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
                (loss / len(batches)).backward()
            losses.append(loss.detach())
        model.clip_grad_norm_(GRADIENT_CLIPPING)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return mean(losses)

    return step

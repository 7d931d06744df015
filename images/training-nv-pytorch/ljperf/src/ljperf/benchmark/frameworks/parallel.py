"""PyTorch's DistributedDataParallel: fp32 parameters on every rank, lower precision by autocast."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ljperf.benchmark.frameworks.job import (
    GRADIENT_CLIPPING,
    Job,
    StepLoop,
    built,
    compile_each,
    mean,
    optimizer_for,
)
from ljperf.models.building import dtype_of

if TYPE_CHECKING:
    import torch


def prepare(job: Job) -> StepLoop:
    """Build on the device; compile the blocks; wrap."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    model = built(job, torch.float32).to(job.place.device)
    compile_each(model, job)
    ids = [job.place.local_rank] if job.place.kind == "cuda" else None
    wrapped = DistributedDataParallel(model, device_ids=ids, gradient_as_bucket_view=True)
    step = _stepper(wrapped, optimizer_for(wrapped, job), job)
    return StepLoop(step, job.batches(), job.setup.accumulation, job.place.device)


def _stepper(model: Any, optimizer: torch.optim.Optimizer, job: Job) -> Callable[[Sequence[torch.Tensor]], float]:
    import torch

    half = job.setup.precision != "fp32"
    autocast = {"device_type": job.place.kind, "dtype": dtype_of(job.setup.precision), "enabled": half}
    scaler = torch.amp.GradScaler(job.place.kind, enabled=job.setup.precision == "fp16")

    def step(batches: Sequence[torch.Tensor]) -> float:
        losses = []
        for index, ids in enumerate(batches):
            last = index == len(batches) - 1
            with contextlib.nullcontext() if last else model.no_sync():
                with torch.autocast(**autocast):
                    loss = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
                scaler.scale(loss / len(batches)).backward()
            losses.append(loss.detach())
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_CLIPPING)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return mean(losses)

    return step

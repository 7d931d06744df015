"""PyTorch's FSDP2: fp32 shards, gathered block by block in the run's precision, gradients reduced in fp32."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    import torch
    from torch import nn


def prepare(job: Job) -> StepLoop:
    """Build without memory for the weights, compile and shard each block, then fill this rank's shards."""
    import torch
    from accelerate import init_empty_weights

    if job.place.kind == "cpu" and not _knows_cpus(torch.__version__):
        from ljperf.benchmark.frameworks.wrapped import prepare as prepare_wrapped

        return prepare_wrapped(job)

    model = built(job, torch.float32, init_empty_weights(include_buffers=False))
    compile_each(model, job)
    _shard(model, job)
    _fill(model, job)
    step = stepper(
        model,
        optimizer_for(model, job),
        synchronised=partial(_synchronised, model),
        clip=lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_CLIPPING),
    )
    return StepLoop(step, job.batches(), job.setup.accumulation, job.place.device)


def _shard(model: nn.Module, job: Job) -> None:
    import torch
    from torch.distributed.device_mesh import init_device_mesh

    fully_shard, policy = _fsdp()
    mesh = init_device_mesh(job.place.kind, (job.place.world_size,))
    how = {"mesh": mesh, "mp_policy": policy(dtype_of(job.setup.precision), torch.float32)}
    for block in blocks(model):
        fully_shard(block, **how)
    fully_shard(model, **how)


def _knows_cpus(version: str) -> bool:
    """Up to PyTorch 2.5, FSDP2 asks for CUDA streams whatever the device."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return (major, minor) >= (2, 6)


def _fsdp() -> tuple[Any, Any]:
    try:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    except ImportError:  # its place up to PyTorch 2.5
        from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard
    return fully_shard, MixedPrecisionPolicy


def _fill(model: nn.Module, job: Job) -> None:
    """Give the shards memory and values: norms one, biases zero, matrices as Transformers starts them.

    Buffers are real already and keep their values: `to_empty` would take those of the rotary embedding.
    """
    import torch

    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.to_empty(device=job.place.device)
    generator = torch.Generator(job.place.device).manual_seed(job.request.seed + job.place.rank)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            local: torch.Tensor = parameter.to_local()
            if parameter.dim() > 1:
                local.normal_(0.0, 0.02, generator=generator)
            else:
                local.fill_(0.0 if name.endswith("bias") else 1.0)
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])


@contextlib.contextmanager
def _synchronised(model: Any, last: bool) -> Iterator[None]:
    model.set_requires_gradient_sync(last)
    yield

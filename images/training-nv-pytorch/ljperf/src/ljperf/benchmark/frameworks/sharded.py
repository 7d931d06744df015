"""PyTorch's FSDP2: fp32 shards, gathered block by block in the run's precision, gradients reduced in fp32."""

from __future__ import annotations

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
    step = _stepper(model, optimizer_for(model, job))
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


def _stepper(model: Any, optimizer: torch.optim.Optimizer) -> Callable[[Sequence[torch.Tensor]], float]:
    import torch

    def step(batches: Sequence[torch.Tensor]) -> float:
        losses = []
        for index, ids in enumerate(batches):
            model.set_requires_gradient_sync(index == len(batches) - 1)
            loss = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
            (loss / len(batches)).backward()
            losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_CLIPPING)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return mean(losses)

    return step

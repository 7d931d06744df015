"""A short training on this machine's GPU, and what it took. Imports PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ljperf.memory.measuring import Configuration, Measured
from ljperf.memory.tracking import predicted_peak, recompute_first

if TYPE_CHECKING:
    from torch import nn

STEPS = 3  # the first one also warms up libraries' workspaces; the allocator has settled by the third


def measure(configuration: Configuration) -> Measured:
    """Train a few steps on the current CUDA device and read its counters."""
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    train(configuration, "cuda")
    free, total = torch.cuda.mem_get_info()
    measured = Measured(
        name=configuration.name,
        allocated=torch.cuda.max_memory_allocated() - before,
        reserved=torch.cuda.max_memory_reserved(),
        # Others on the same device would be counted as ours: a calibration wants it for itself.
        beside=total - free - torch.cuda.memory_reserved(),
        predicted=predicted_peak(configuration.shape, configuration.setup).bytes,
    )
    torch.cuda.empty_cache()
    return measured


def train(configuration: Configuration, device: str) -> float:
    """Forward and backward a few times, gradients dropped in between, as the phase model has it; the last loss."""
    import torch

    from ljperf.models.building import build

    shape, setup = configuration.shape, configuration.setup
    with torch.device(device):
        model: nn.Module = build(shape, dtype=torch.bfloat16, attention=setup.attention).train()
        ids = torch.randint(shape.vocab, (setup.micro_batch, setup.sequence))
    recompute_first(model, setup.recompute_layers)
    value = 0.0
    for _ in range(STEPS):
        model.zero_grad(set_to_none=True)
        loss = model(input_ids=ids, labels=ids, use_cache=False)["loss"]
        loss.backward()
        value = float(loss.detach())
    return value


def join_ranks() -> tuple[int, int]:
    """This rank and the number of ranks; started by torchrun, with a communicator that has carried something."""
    import os

    import torch
    import torch.distributed as dist

    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks == 1:
        return 0, 1
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl")
    dist.all_reduce(torch.ones(1 << 24, device="cuda"))
    return dist.get_rank(), ranks


def environment() -> str:
    """What a kept measurement holds for."""
    import os

    import torch

    allocator = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "default allocator")
    return f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}, {allocator}"

"""The ranks: those of the launcher that started us, or torchrun's that we start."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ljperf.errors import LjperfError, UsageError

Backend = Literal["auto", "gloo", "nccl"]


class NoGpuError(LjperfError):
    """NCCL was asked for, and there is no GPU for each rank."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group as one rank sees it."""

    rank: int
    ranks: int
    machines: int
    backend: Literal["gloo", "nccl"]
    device: str


def default_nproc() -> int:
    """A rank for each GPU; two where there is none, since one alone has nothing to send."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 2


def start(nproc: int, arguments: Sequence[str]) -> int:
    """Run this command on that many ranks here, and give its exit code; Ctrl-C ends all."""
    from ljperf.benchmark.launch import end_with_parent, environment_of, torchrun

    command = torchrun(nproc, arguments, "comm")
    child = subprocess.Popen(command, env=environment_of(nproc), preexec_fn=end_with_parent)
    try:
        return child.wait()
    except BaseException:
        child.terminate()  # torchrun ends its ranks
        child.wait()
        raise


@contextlib.contextmanager
def joined(backend: Backend, environment: Mapping[str, str] = os.environ) -> Iterator[Group]:
    """Be one of the launcher's ranks. Raises NoGpuError, UsageError."""
    import torch
    import torch.distributed as dist

    from ljperf.benchmark.place import leave_group

    local = int(environment.get("LOCAL_RANK", "0"))
    chosen = backend_of(backend, local)
    device = f"cuda:{local}" if chosen == "nccl" else "cpu"
    if chosen == "nccl":
        torch.cuda.set_device(local)
    dist.init_process_group(chosen)
    yield Group(dist.get_rank(), dist.get_world_size(), _machines(environment), chosen, device)
    # Not after a failure: a collective that waits for a rank that is gone would keep this one too.
    leave_group()


def _machines(environment: Mapping[str, str]) -> int:
    here = int(environment.get("LOCAL_WORLD_SIZE", environment["WORLD_SIZE"]))
    return max(1, int(environment["WORLD_SIZE"]) // max(1, here))


def backend_of(backend: Backend, local: int) -> Literal["gloo", "nccl"]:
    """NCCL where this rank has a GPU. Raises NoGpuError if it was asked for and has none, UsageError without NCCL."""
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if backend == "gloo" or (backend == "auto" and local >= gpus):
        return "gloo"
    if local >= gpus:
        hint = "use --backend gloo, or start the container with GPUs (docker run --gpus all)"
        raise NoGpuError(f"nccl needs a GPU for each rank, and local rank {local} has none of {gpus}", hint=hint)
    if not torch.distributed.is_nccl_available():
        raise UsageError(f"PyTorch {torch.__version__} has no NCCL", hint="use --backend gloo")
    return "nccl"

"""Where a rank runs: its number, its device, and the group that it joins."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ljperf.benchmark.request import DeviceKind
from ljperf.errors import LjperfError

SETTLING_S = 0.2


class NoDeviceError(LjperfError):
    """The device that was asked for is not there."""


@dataclass(frozen=True, slots=True)
class Place:
    """One rank's place."""

    rank: int
    local_rank: int
    world_size: int
    kind: Literal["cpu", "cuda"]

    @property
    def device(self) -> str:
        """As torch names it."""
        return f"cuda:{self.local_rank}" if self.kind == "cuda" else "cpu"


def launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Has a launcher (torchrun, DeepSpeed's, Ray) started this process as one of its ranks?"""
    return "RANK" in environment and "WORLD_SIZE" in environment


def found(kind: DeviceKind, environment: Mapping[str, str] = os.environ) -> Place:
    """This rank's place. Raises NoDeviceError for an explicit cuda without one, or with fewer GPUs than ranks here."""
    import torch

    local = int(environment.get("LOCAL_RANK", "0"))
    gpus = torch.cuda.device_count() if kind != "cpu" and torch.cuda.is_available() else 0
    if kind == "cuda" and not gpus:
        hint = "use --device cpu, or start the container with GPUs (docker run --gpus all)"
        raise NoDeviceError(f"--device cuda, but PyTorch {torch.__version__} sees no GPU", hint=hint)
    if gpus and local >= gpus:
        raise NoDeviceError(f"local rank {local} has no GPU: there are {gpus}", hint=f"give --nproc {gpus} or less")
    rank, size = int(environment.get("RANK", "0")), int(environment.get("WORLD_SIZE", "1"))
    return Place(rank, local, size, "cuda" if gpus else "cpu")


@contextlib.contextmanager
def joined(place: Place) -> Iterator[None]:
    """Be a member of the launcher's group, or of one's own; a group that exists already (Ray's) is used."""
    import torch
    import torch.distributed as dist

    if place.kind == "cuda":
        torch.cuda.set_device(place.local_rank)
    if dist.is_initialized():
        yield
        return
    backend = "nccl" if place.kind == "cuda" else "gloo"
    with _alone() if not launched() else contextlib.nullcontext():
        dist.init_process_group(backend)
        yield
        # Not after a failure: a collective that waits for a rank that is gone would keep this one too.
        leave_group()


def leave_group() -> None:
    """Leave the default group together with all others; each rank has to call it."""
    import torch.distributed as dist

    dist.barrier()
    # Gloo of PyTorch 2.5 joins its threads while it holds the interpreter's lock, and one of them may want it, to let
    # the last tensors go: the two would wait for each other forever.
    time.sleep(SETTLING_S)
    dist.destroy_process_group()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """The variables of a launcher, for a group of one: DeepSpeed looks for MPI where they are missing."""
    ours = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

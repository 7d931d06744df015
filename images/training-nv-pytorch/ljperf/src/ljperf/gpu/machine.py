"""Which machine this is: without it, no number means anything."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from ljperf.environment.devices_here import driver, processor
from ljperf.environment.versions import installed_versions

PACKAGES = ("torch", "triton", "transformers", "accelerate", "deepspeed", "liger-kernel", "nvidia-nccl-cu12", "ljperf")


@dataclass(frozen=True, slots=True)
class Machine:
    """What is told of it."""

    device: str
    memory_bytes: int | None
    """Of the GPU; None on a CPU."""
    driver: str | None
    cuda: str | None
    processor: str
    cores: int
    kernel: str
    versions: dict[str, str]
    date: str

    @property
    def is_gpu(self) -> bool:
        """Is there one?"""
        return self.memory_bytes is not None

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def look(use_gpu: bool) -> Machine:
    """Ask PyTorch and the driver. Imports torch."""
    import torch

    gpu = use_gpu and torch.cuda.is_available()
    properties = torch.cuda.get_device_properties(0) if gpu else None
    return Machine(
        device=properties.name if properties else "CPU",
        memory_bytes=properties.total_memory if properties else None,
        driver=driver() if gpu else None,
        cuda=torch.version.cuda if gpu else None,
        processor=processor(),
        cores=len(os.sched_getaffinity(0)),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        versions=installed_versions(PACKAGES),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )

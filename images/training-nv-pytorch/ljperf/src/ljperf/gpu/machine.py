"""Which machine this is: without it, no number means anything."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

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
        versions=versions(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )


def driver() -> str | None:
    """The driver's version, from nvidia-smi; None if it is not there."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        asked = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        return asked.stdout.splitlines()[0].strip() or None
    return None


def processor() -> str:
    """The CPU's name."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def versions() -> dict[str, str]:
    """Python and the packages, as far as installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found

"""Accelerators as PyTorch sees them, the libraries it has loaded for them, and the processor."""

from __future__ import annotations

import contextlib
import platform
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device."""

    name: str
    memory_bytes: int


def accelerators() -> tuple[tuple[Accelerator, ...], str | None]:
    """All that PyTorch can use, none without PyTorch, a driver or a device; and why it cannot be asked, if so."""
    try:
        return _asked(), None
    except ModuleNotFoundError as error:
        return (), None if error.name == "torch" else f"{type(error).__name__}: {error}"
    except Exception as error:  # a library of another version, a driver that fails: this command is for such
        return (), f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _asked() -> tuple[Accelerator, ...]:
    import torch

    if not torch.cuda.is_available():
        return ()
    properties = (torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count()))
    return tuple(Accelerator(each.name, each.total_memory) for each in properties)


def device_files(folder: Path = Path("/dev")) -> int:
    """GPUs that the container was given: /dev/nvidia0 and so on."""
    return sum(path.name.removeprefix("nvidia").isdigit() for path in folder.glob("nvidia[0-9]*"))


def rdma(folder: Path = Path("/sys/class/infiniband")) -> tuple[str, ...]:
    """InfiniBand and RoCE devices, as NCCL_IB_HCA names them."""
    return tuple(sorted(path.name for path in folder.iterdir())) if folder.is_dir() else ()


def driver() -> str | None:
    """The driver's version; None where none answers."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.split("\n", 1)[0].strip() or None


def processor() -> str:
    """The CPU's name."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def communication() -> str | None:
    """The communication library that answers in this process; None where none of a GPU does."""
    try:
        from ljperf.comm.library import nccl

        library = nccl()
    except ImportError:
        return None
    return None if library is None else str(library)


def interfaces() -> tuple[str, ...]:
    """Names of network interfaces, but for the loopback."""
    return tuple(name for _, name in socket.if_nameindex() if name != "lo")

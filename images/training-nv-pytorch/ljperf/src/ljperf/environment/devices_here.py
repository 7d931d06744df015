"""Accelerators, as PyTorch sees them, and the libraries it has loaded for them."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device."""

    name: str
    memory_bytes: int


def accelerators() -> tuple[Accelerator, ...]:
    """All that PyTorch can use; none without PyTorch, a driver or a device."""
    try:
        import torch
    except ImportError:
        return ()
    if not torch.cuda.is_available():
        return ()
    properties = (torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count()))
    return tuple(Accelerator(each.name, each.total_memory) for each in properties)


def driver() -> str | None:
    """The driver's version; None where none answers."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.split("\n", 1)[0].strip() or None


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

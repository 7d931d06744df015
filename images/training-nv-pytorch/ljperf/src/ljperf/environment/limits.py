"""How much of the machine a container may use: cores, memory, shared memory."""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
SHARED: Final = Path("/dev/shm")
_UNLIMITED: Final = 1 << 60
"""What version 1 of control groups says when there is no limit is beyond any memory."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes and cores; None where nothing limits, or nothing says so."""

    cores: float
    memory_bytes: int | None
    shared_bytes: int | None
    """Size of /dev/shm, through which data loaders and NCCL hand over."""
    locked_bytes: int | None = None
    """Memory that may be locked (ulimit -l), as RDMA needs it."""


def limits(cgroups: Path = CGROUPS, shared: Path = SHARED) -> Limits:
    """Read control groups of either version, and the size of /dev/shm."""
    quota = _quota(cgroups)
    cores = float(len(os.sched_getaffinity(0)))
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return Limits(
        cores=cores if quota is None else min(cores, quota),
        memory_bytes=_memory(cgroups),
        shared_bytes=_size(shared),
        locked_bytes=None if locked == resource.RLIM_INFINITY else locked,
    )


def _quota(cgroups: Path) -> float | None:
    whole = _words(cgroups / "cpu.max")
    if not whole:  # version 1 says it in two files
        whole = [word for name in ("quota", "period") for word in _words(cgroups / f"cpu/cpu.cfs_{name}_us")]
    if len(whole) != 2 or not whole[0].isdecimal():
        return None
    return int(whole[0]) / int(whole[1])


def _memory(cgroups: Path) -> int | None:
    words = _words(cgroups / "memory.max") or _words(cgroups / "memory/memory.limit_in_bytes")
    if not words or not words[0].isdecimal():
        return None
    return int(words[0]) if int(words[0]) < _UNLIMITED else None


def _size(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).total
    except OSError:
        return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
